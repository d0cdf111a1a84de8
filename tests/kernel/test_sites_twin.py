"""Sites in the kernel beside their NumPy twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import polygamma, psi
from twins import sites as twin_sites

from posterity import kernel
from posterity.likelihoods import (
    Bernoulli,
    Beta,
    BetaBinomial,
    Gamma,
    Gaussian,
    InverseGaussian,
    LaplaceNoise,
    Likelihood,
    LinearNegativeBinomial,
    LogLogistic,
    LogNormal,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Quantile,
    Sites,
    StudentT,
    Tweedie,
    Weibull,
    ZeroInflated,
    laplace_sites,
    moment_sites,
)
from posterity.likelihoods.averages import ROUNDING, make_quadrature_rule
from posterity.likelihoods.moderation import log_expected_logistic

Array = np.ndarray
LIKELIHOODS = [
    Bernoulli(),
    Bernoulli("probit"),
    Poisson(),
    NegativeBinomial(0.5),
    Gaussian(2.0),
    StudentT(4.0, 0.5),
    LaplaceNoise(0.7),
    Quantile(0.9, 0.3),
]


def targets(likelihood: Likelihood, eta: Array, rng: np.random.Generator) -> Array:
    if isinstance(likelihood, Bernoulli):
        return (rng.random(len(eta)) < 0.5).astype(float)
    if isinstance(likelihood, Poisson | NegativeBinomial):
        return rng.poisson(np.exp(np.minimum(eta, 6.0))).astype(float)
    return eta + rng.standard_t(2, size=len(eta))


def both(
    likelihood: Likelihood, moments: bool, y: Array, mean: Array, variance: Array, weights: Array
) -> tuple[Sites, Sites]:
    known = likelihood.kernel_code
    assert known is not None
    ours = Sites(*kernel.find_sites(*known, moments, y, mean, variance, weights))
    if moments:
        return ours, moment_sites(likelihood, y, mean, variance, weights)
    return ours, laplace_sites(likelihood, y, mean, variance, weights)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@pytest.mark.parametrize("moments", [False, True])
@given(seed=st.integers(0, 10**6))
def test_sites(likelihood: Likelihood, moments: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mean, variance = 3.0 * rng.normal(size=20), 10.0 ** rng.uniform(-4.0, 0.5, size=20)
    weights = rng.choice([0.0, 0.3, 1.0, 5.0], size=20)
    y = targets(likelihood, mean, rng)
    ours, theirs = both(likelihood, moments, y, mean, variance, weights)
    assert ours.log_normalizer == pytest.approx(theirs.log_normalizer, rel=1e-6, abs=1e-6)
    after = [1.0 / (1.0 / variance + sites.precision) for sites in (ours, theirs)]
    assert after[0] == pytest.approx(after[1], rel=1e-5)
    centres = [
        spread * (mean / variance + sites.precision * sites.target)
        for spread, sites in zip(after, (ours, theirs), strict=True)
    ]
    assert (centres[0] - centres[1]) / np.sqrt(variance) == pytest.approx(np.zeros(20), abs=1e-5)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@pytest.mark.parametrize("moments", [False, True])
def test_sites_stay_finite_whatever_comes(likelihood: Likelihood, moments: bool) -> None:
    grid = np.meshgrid(
        [-1e6, -700.0, -5.0, 0.0, 40.0, 1e6],
        [0.0, 1e-12, 1.0, 1e3, 1e12, np.inf],
        [0.0, 1e-12, 1.0, 1e12],
        [0.0, 1.0] if isinstance(likelihood, Bernoulli) else [0.0, 1.0, 1e9],
    )
    mean, variance, weights, y = (np.ravel(values).copy() for values in grid)
    known = likelihood.kernel_code
    assert known is not None
    precision, target, log_normalizer = kernel.find_sites(
        *known, moments, y, mean, variance, weights
    )
    assert np.isfinite(precision).all()
    assert np.isfinite(target).all()
    assert (precision >= 0.0).all()
    assert not np.isnan(log_normalizer).any()


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    m=st.integers(1, 18),
    intercept=st.booleans(),
    flat=st.booleans(),
    fades=st.booleans(),
)
def test_learning_row_after_row(
    likelihood: Likelihood, seed: int, n: int, m: int, intercept: bool, flat: bool, fades: bool
) -> None:
    rng = np.random.default_rng(seed)
    known = likelihood.kernel_code
    assert known is not None
    X, offsets = 0.5 * rng.normal(size=(n, m)), 0.3 * rng.normal(size=n)
    y, weights = targets(likelihood, X[:, 0], rng), rng.choice([0.0, 1.0, 2.0], size=n)
    discounts = rng.choice([0.9, 0.99, 1.0], size=n) if fades else None
    ours = kernel.empty_triangle(m + intercept + 1)
    if not flat:
        ours[np.arange(m + intercept), np.arange(m + intercept)] = rng.uniform(1.0, 2.0)
    theirs = ours.copy()

    def find(y: float, mean: float, variance: float, weight: float) -> tuple[float, float, float]:
        found = kernel.find_sites(
            *known, True, *(np.array([v]) for v in (y, mean, variance, weight))
        )
        return found[0][0], found[1][0], found[2][0]

    predictive = kernel.learn_sites(
        ours, *known, True, X, y, weights, intercept, offsets, discounts
    )
    twins = twin_sites.learn_sites(find, theirs, X, y, weights, intercept, offsets, discounts)
    for mine, expected in zip(predictive[:3], twins[:3], strict=True):
        assert mine == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert ours.T @ ours == pytest.approx(theirs.T @ theirs, rel=1e-6, abs=1e-6)
    assert not np.tril(ours[:, : len(ours)], -1).any()


def test_the_prior_does_not_fade() -> None:
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(200, 4)), np.ones(200)
    y, discounts = X[:, 0] + rng.normal(size=200), np.full(200, 0.95)
    prior = kernel.empty_triangle(6)
    prior[np.arange(5), np.arange(5)] = 1.5
    ours, theirs = prior.copy(), prior.copy()
    known = Gaussian(1.0).kernel_code
    assert known is not None
    kernel.learn_sites(ours, *known, False, X, y, weights, True, None, discounts, prior)
    twin_sites.learn_sites(
        lambda y, *_: (1.0, y, 0.0), theirs, X, y, weights, True, None, discounts, prior
    )
    assert ours.T @ ours == pytest.approx(theirs.T @ theirs, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [
        (InverseGaussian(1e-8), 0.953),
        (InverseGaussian(1.0), 0.07),
        (InverseGaussian(1e3), 2.5),
        (Beta(3.0), 0.05),
        (Beta(1e4), 0.5),
        (BetaBinomial(8, 5.0), 2.0),
        (LinearNegativeBinomial(0.01), 6.0),
        (LinearNegativeBinomial(30.0), 25.0),
    ],
    ids=repr,
)
def test_at_modes_of_what_is_not_concave_the_density_has_no_slope(
    likelihood: Likelihood, y: float
) -> None:
    mean, variance = (one.ravel() for one in np.meshgrid([-7.0, -1.0, 3.0, 7.44], [0.1, 2.0, 50.0]))
    ones = np.ones(len(mean))
    for sites in both(likelihood, False, y * ones, mean, variance, ones):
        mode = (sites.precision * sites.target + mean / variance) / (sites.precision + 1 / variance)
        slope, curvature = likelihood.derivatives(y * ones, mode)
        off = mode - mean - variance * slope
        assert off / (1.0 + variance * curvature) == pytest.approx(0.0 * ones, abs=1e-5)


@pytest.mark.parametrize("likelihood", LIKELIHOODS[:6], ids=repr)
def test_working_rows_are_newtons(likelihood: Likelihood) -> None:
    rng = np.random.default_rng(4)
    known = likelihood.kernel_code
    assert known is not None
    eta, weights = rng.normal(size=21), rng.uniform(0.5, 2.0, 21)
    y, precision, pull = targets(likelihood, eta, rng), np.empty(21), np.empty(21)
    density, said = kernel.working_rows(*known, y, eta, weights, precision, pull)
    slope, curvature = likelihood.derivatives(y, eta)
    assert precision == pytest.approx(weights * curvature)
    assert pull == pytest.approx(weights * slope)
    assert said == pytest.approx(0.5 * np.sum(weights * slope**2 / curvature))
    gained = kernel.total_density(*known, y, eta, weights)
    assert gained == pytest.approx(weights @ likelihood.log_density(y, eta))
    nothing = kernel.working_rows(*known, y, np.zeros(21), weights, precision, pull)[0]
    expected = weights @ (likelihood.log_density(y, eta) - likelihood.log_density(y, np.zeros(21)))
    assert density - nothing == pytest.approx(expected)


AMOUNTS = [
    Gamma(2.0),
    InverseGaussian(0.5),
    Tweedie(1.5, 0.8),
    Tweedie(1.2, 0.001),
    Weibull(1.5),
    LogLogistic(2.0),
    LogNormal(0.7),
]
COUNTS = [Poisson(), NegativeBinomial(0.5), LinearNegativeBinomial(0.3), BetaBinomial(6, 5.0)]
COUNTS += [ZeroInflated(one, zero_odds=0.4) for one in COUNTS[:3]]
COUNTS += [Ordinal(7, gaps=(0.2, 0.5, 1.0, 1.5, 0.1)), Ordinal(7, (1.0,) * 5, link="probit")]


@pytest.mark.parametrize("likelihood", [*AMOUNTS, *COUNTS, Beta(5.0), *LIKELIHOODS[:6]], ids=repr)
@pytest.mark.parametrize("spread", [1.0, 25.0])
def test_averages_at_nodes_are_those_of_densities_and_derivatives(
    likelihood: Likelihood, spread: float
) -> None:
    n, rng = 45, np.random.default_rng(7)  # no multiple of what a register holds
    mean, sd = spread * rng.normal(size=n), rng.uniform(0.0, 0.5, size=n)
    y = rng.integers(0, 2, size=n) if isinstance(likelihood, Bernoulli) else rng.gamma(2.0, size=n)
    if likelihood in COUNTS:
        y = np.round(np.minimum(y, 6.0))
    if isinstance(likelihood, Tweedie):
        y *= rng.random(n) < 0.7
    if isinstance(likelihood, Beta):
        y = rng.beta(2.0, 1.0, size=n)
    nodes, shares = make_quadrature_rule(4)
    known = likelihood.kernel_code
    assert known is not None
    ours = kernel.average_densities(*known, y.astype(float), mean, sd, nodes, shares, np.inf)
    eta = mean + sd * nodes[:, None]
    slope, curvature = likelihood.derivatives(y, eta)
    value = shares @ likelihood.log_density(y, eta)
    assert ours[0] == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert ours[1] == pytest.approx(shares @ slope, rel=1e-9, abs=1e-9)
    told, bend = shares @ curvature, -((shares * nodes) @ slope) / sd
    known_well = (told - bend) * sd * sd <= ROUNDING
    assert ours[2] == pytest.approx(np.where(known_well, told, bend), rel=1e-8, abs=1e-9)


def test_digammas_of_all_sizes() -> None:
    x = np.concatenate([10.0 ** np.linspace(-150.0, 12.0, 500), np.linspace(0.01, 30.0, 1001)])
    digamma, trigamma = kernel.find_digammas(x)
    assert digamma == pytest.approx(psi(x), rel=1e-12, abs=1e-13)
    assert trigamma == pytest.approx(polygamma(1, x), rel=1e-12)


def test_expected_labels() -> None:
    rng = np.random.default_rng(5)
    mean, variance = 30.0 * rng.normal(size=37), rng.uniform(0.0, 1.0, size=37)
    yes, no = kernel.expected_labels(mean, variance)
    assert yes == pytest.approx(log_expected_logistic(mean, variance), abs=1e-6)
    assert no == pytest.approx(log_expected_logistic(-mean, variance), abs=1e-6)


def test_wrong_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="mean has length 2: expected 3"):
        kernel.find_sites(1, (0.0, 0.0, 0.0), False, np.ones(3), np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="the kernel knows no likelihood 99"):
        kernel.find_sites(99, (0.0, 0.0, 0.0), False, np.ones(3), np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="X has 2 columns: the triangle expects 3"):
        kernel.learn_sites(
            kernel.empty_triangle(4), 1, (0.0, 0.0, 0.0), False, np.ones((3, 2)), np.ones(3), None,
            False,
        )  # fmt: skip


@pytest.mark.parametrize(
    "likelihood", [StudentT(4.0, 0.5), StudentT(1.0, 1.0), LaplaceNoise(0.7), Quantile(0.9, 0.3)]
)
def test_moments_are_those_of_a_fine_grid(likelihood: Likelihood) -> None:
    rng = np.random.default_rng(0)
    y, mean = 2.0 * rng.normal(size=20), rng.normal(size=20)
    variance, weights = np.exp(rng.normal(size=20)), rng.choice([0.5, 1.0, 2.0], size=20)
    assert likelihood.kernel_code is not None
    predictive = kernel.find_moments(*likelihood.kernel_code, y, mean, variance, weights)
    x = np.linspace(-12.0, 12.0, 100_001)
    for i in range(20):
        eta = mean[i] + np.sqrt(variance[i]) * x
        log_density = likelihood.log_density(np.full(len(eta), y[i]), eta)
        density = np.exp(weights[i] * log_density - 0.5 * x * x) / np.sqrt(2.0 * np.pi)
        mass = np.trapezoid(density, x)
        centre = np.trapezoid(density * x, x) / mass
        spread = np.trapezoid(density * x * x, x) / mass - centre**2
        expected = [np.log(mass), centre * np.sqrt(variance[i]), spread]
        np.testing.assert_allclose([one[i] for one in predictive], expected, atol=2e-6)


@pytest.mark.parametrize("df", [1.0, 4.0, 30.0])
def test_moments_of_a_narrow_belief_beside_student_t_noise(df: float) -> None:
    rng = np.random.default_rng(0)
    n, wide = 200, df * 0.49
    y, mean, weights = 2.0 * rng.standard_t(2, size=n), np.zeros(n), rng.choice([0.3, 1.0], size=n)
    half = 0.5 * weights * (df + 1.0)
    # On both sides of where the kernel takes other rules, and another formula.
    variance = 10.0 ** rng.uniform(-6.0, 1.0, size=n) * 0.1 * wide / (1.0 + half)
    known = StudentT(df, 0.7).kernel_code
    assert known is not None
    predictive = kernel.find_moments(*known, y, mean, variance, weights)
    x = np.linspace(-12.0, 12.0, 4_001)
    off = y[:, None] - np.sqrt(variance)[:, None] * x
    powers = -half[:, None] * np.log1p(np.square(off) / wide)
    mass = np.exp(weights * known[1][2])[:, None] * np.exp(powers - 0.5 * x * x)
    mass *= (x[1] - x[0]) / np.sqrt(2.0 * np.pi)
    total = mass.sum(axis=1)
    centre = (mass @ x) / total
    expected = [np.log(total), centre * np.sqrt(variance), (mass @ (x * x)) / total - centre**2]
    narrow = variance * (1.0 + half) < 0.1 * wide
    for some, tolerance in ((narrow, 1e-11), (~narrow, 2e-5)):
        assert some.any()
        for ours, theirs in zip(predictive, expected, strict=True):
            np.testing.assert_allclose(ours[some], theirs[some], atol=tolerance)


@pytest.mark.parametrize("likelihood", [StudentT(4.0, 1.0), LaplaceNoise(1.0)])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 600), bold=st.floats(0.02, 1.0))
def test_a_round_of_matching_is_that_of_its_twin(
    likelihood: Likelihood, seed: int, n: int, bold: float
) -> None:
    rng = np.random.default_rng(seed)
    known = likelihood.kernel_code
    assert known is not None
    fit, scale = rng.normal(size=n), float(np.exp(rng.normal()))
    rows = fit + scale * rng.standard_t(2, size=n), fit, 10.0 ** rng.uniform(-5.0, -0.5, size=n)
    weights, weight = rng.choice([0.5, 1.0, 3.0], size=n), rng.uniform(0.05, 1.5, size=n)
    sites = weights, weight, fit + rng.normal(size=n), scale, bold

    def find(off: Array, variance: Array, power: Array) -> tuple[Array, Array, Array]:
        return kernel.find_moments(*known, off, np.zeros(n), variance, power)

    predictive = kernel.match_rows(*known, *rows, *sites)
    for ours, theirs in zip(predictive, twin_sites.match_rows(find, *rows, *sites), strict=True):
        size = 1.0 + np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11 * size)


def test_a_round_of_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="no rows to match"):
        kernel.match_rows(6, (4.0, 1.0, 0.0), *[np.empty(0)] * 6, 1.0, 1.0)


@pytest.mark.parametrize("variance", [1e-6, 1e-3, 0.3, 0.5, 0.51, 2.0, 8.0, 50.0, 1e3, 1e4])
def test_labels_have_ten_digits_whatever_is_known(variance: float) -> None:
    """The trapezoidal rule, sixteen times as fine as anything needs."""
    sd, means = np.sqrt(variance), np.array([-50.0, -9.0, -2.0, 0.0, 0.7, 4.0, 50.0])
    for mean in means:
        # About where the likelihood leads: at most so far above the mean.
        low, high = mean - 12.0 * sd, mean + variance + 12.0 * sd
        z = np.linspace(low, high, min(int((high - low) / min(0.05, 0.05 * sd)) + 2, 4_000_001))
        log_part = -np.logaddexp(0.0, -z) - 0.5 * np.square((z - mean) / sd)
        part = np.exp(log_part - log_part.max())
        slope = part @ np.exp(-np.logaddexp(0.0, z)) / part.sum()
        bend = part @ np.exp(-np.logaddexp(0.0, z) - np.logaddexp(0.0, -z)) / part.sum()
        log_mass = log_part.max() + np.log(part.sum() * (z[1] - z[0]) / sd / np.sqrt(2.0 * np.pi))
        centre = part @ z / part.sum()
        shrunk = part @ np.square(z - centre) / part.sum() / variance
        small = part @ np.square(np.exp(-np.logaddexp(0.0, z)) - slope) / part.sum()
        lost = variance * (bend - small) if shrunk > 0.5 else 1.0 - shrunk
        for y, sign in ((1.0, 1.0), (0.0, -1.0)):
            arguments = (np.array([one]) for one in (y, sign * mean, variance))
            predictive = kernel.find_sites(1, (0.0, 0.0, 0.0), True, *arguments)
            precision, target, ours = (float(one[0]) for one in predictive)
            assert ours == pytest.approx(log_mass, rel=1e-10, abs=1e-10)
            if lost > 1e-7:
                assert precision == pytest.approx(lost / (1.0 - lost) / variance, rel=1e-9)
                moved = sign * (target - sign * mean) * precision * variance
                moved /= 1.0 + precision * variance
                assert moved == pytest.approx(variance * slope, rel=1e-9, abs=1e-12 * sd)
