"""Families of amounts, lifetimes, shares, counts and directions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from posterity import BayesianGeneralizedLinear
from posterity.files import load, save
from posterity.kernel import find_sites
from posterity.likelihoods import (
    Beta,
    BetaBinomial,
    Binomial,
    Exponential,
    Gamma,
    Geometric,
    Hurdle,
    InverseGaussian,
    Likelihood,
    LinearNegativeBinomial,
    LogLogistic,
    LogNormal,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Sites,
    SkewNormal,
    Truncated,
    Tweedie,
    VonMises,
    Weibull,
    ZeroInflated,
    laplace_sites,
    moment_sites,
)
from posterity.likelihoods.averages import integrate_derivatives
from posterity.likelihoods.likelihood import ParametricLikelihood
from posterity.likelihoods.words import read_likelihood

Array = np.ndarray
ETA = np.linspace(-2.0, 2.0, 9)

# A likelihood, targets, and whether its curvature is the second derivative wherever that is large.
CASES: list[tuple[Any, tuple[float, ...]]] = [
    (Weibull(2.0), (0.2, 1.3)),
    (Exponential(), (0.2, 1.3)),
    (LogLogistic(3.0), (0.2, 1.3)),
    (LogNormal(0.5), (0.2, 1.3)),
    (InverseGaussian(0.7), (0.2, 1.3)),
    (Tweedie(1.5, 2.0), (0.0, 1.3)),
    (Tweedie(1.1, 1e-3), (1.3,)),
    (Beta(5.0), (0.1, 0.6)),
    (Binomial(7), (0.0, 3.0)),
    (BetaBinomial(7, 3.0), (0.0, 3.0)),
    (Geometric(), (0.0, 3.0)),
    (LinearNegativeBinomial(0.7), (0.0, 3.0)),
    (SkewNormal(3.0, 0.5), (-1.0, 0.7)),
    (SkewNormal(-2.0), (0.3,)),
    (VonMises(4.0), (-2.0, 0.5)),
    (Ordinal(4, (1.0, 2.0)), (0.0, 1.0, 3.0)),
    (Ordinal(4, (1.0, 2.0), "probit"), (0.0, 1.0, 3.0)),
]
COUNTS = (Poisson(), NegativeBinomial(0.5), LinearNegativeBinomial(0.7))
AMOUNTS = (Gamma(2.0), LogNormal(0.5), Weibull(2.0), LogLogistic(3.0))
PAIRS = [(likelihood, y) for likelihood, targets in CASES for y in targets]
LEARNED = [
    *(Weibull(), LogLogistic(), LogNormal(), InverseGaussian(), Tweedie(), Beta()),
    *(BetaBinomial(8), NegativeBinomial(), LinearNegativeBinomial(), VonMises()),
]
SECONDS = (InverseGaussian, LinearNegativeBinomial, Tweedie, BetaBinomial)
NOT_CONCAVE = (InverseGaussian, LinearNegativeBinomial, VonMises)


@pytest.mark.parametrize(("likelihood", "y"), PAIRS, ids=str)
def test_derivatives_are_those_of_the_log_density(likelihood: Likelihood, y: float) -> None:
    targets, step = np.full(9, y), 1e-4
    slope, curvature = likelihood.derivatives(targets, ETA)
    up, here, down = (likelihood.log_density(targets, ETA + off) for off in (step, 0.0, -step))
    size = 1.0 + np.abs(slope)
    np.testing.assert_allclose(slope / size, (up - down) / (2.0 * step) / size, atol=1e-5)
    second = -(up - 2.0 * here + down) / step**2
    as_it_is = second > 0.9 * curvature  # else it is what is there at least
    np.testing.assert_allclose(curvature[as_it_is], second[as_it_is], rtol=1e-3, atol=1e-3)
    assert (curvature[~as_it_is] > second[~as_it_is]).all()
    assert (curvature >= 0.0).all()
    assert as_it_is.mean() > 0.2


@pytest.mark.parametrize(("likelihood", "y"), PAIRS, ids=str)
def test_averages_are_those_of_quadrature(likelihood: Likelihood, y: float) -> None:
    targets, variance = np.full(9, y), np.full(9, 0.2)
    value, slope, _ = likelihood.average(targets, ETA, variance)
    expected = integrate_derivatives(likelihood, targets, ETA, variance)
    np.testing.assert_allclose(value, expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("likelihood", "y"), PAIRS[:-8], ids=str)
def test_the_density_is_that_of_the_distribution(likelihood: Likelihood, y: float) -> None:
    if isinstance(likelihood, Geometric):
        known: Any = stats.geom(1.0 / (1.0 + np.exp(ETA)), loc=-1)
    else:
        known = likelihood.distribution(ETA)
    expected = getattr(known, "logpmf", None) or known.logpdf
    np.testing.assert_allclose(
        likelihood.log_density(np.full(9, y), ETA), expected(y), rtol=1e-9, atol=1e-9
    )
    whole = Exponential() == likelihood or not isinstance(likelihood, Weibull)
    if whole and hasattr(type(likelihood), "link_function"):
        np.testing.assert_allclose(likelihood.mean(ETA), known.mean(), rtol=1e-3)


COMPILED = [
    *[(one, y) for one, y in PAIRS if one.kernel_code is not None],
    *[(ZeroInflated(one, 0.6), y) for one in COUNTS for y in (0.0, 2.0)],
    *[(Hurdle(one, 0.6), y) for one in (*COUNTS, *AMOUNTS) for y in (0.0, 2.0)],
    *[(Truncated(one, low=1.0), 2.0) for one in COUNTS[:2]],
]


@pytest.mark.parametrize(("likelihood", "y"), COMPILED, ids=str)
@pytest.mark.parametrize("variance", [1e-3, 0.3, 20.0])
@pytest.mark.parametrize("moments", [False, True])
def test_compiled_code_finds_the_same_sites(
    likelihood: Likelihood, y: float, variance: float, moments: bool
) -> None:
    rows = np.full(9, y), ETA, np.full(9, variance)
    ours = Sites(*find_sites(*likelihood.kernel_code, moments, *rows))
    theirs = (moment_sites if moments else laplace_sites)(likelihood, *rows)
    means, variances = np.array(
        [
            ((one.precision * one.target + ETA / variance) * total, total)
            for one in (ours, theirs)
            for total in [1.0 / (one.precision + 1.0 / variance)]
        ]
    ).swapaxes(0, 1)
    atol = 1e-3 * np.sqrt(variances[1])  # quadrature of what is not log-concave has fewer digits
    assert (abs(means[0] - means[1]) < atol).all()
    np.testing.assert_allclose(variances[0], variances[1], rtol=1e-4)
    np.testing.assert_allclose(ours.log_normalizer, theirs.log_normalizer, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "likelihood", [Weibull(), Beta(), BetaBinomial(8), Tweedie(), NegativeBinomial()], ids=str
)
def test_compiled_rows_tell_of_a_parameter_what_rows_in_order_do(
    likelihood: ParametricLikelihood,
) -> None:
    X, y = draw(likelihood, 200)
    one, two = (BayesianGeneralizedLinear(likelihood).fit(X[:100], y[:100]) for _ in range(2))
    for x, target in zip(X[100:], y[100:], strict=True):
        one.learn_one(x, target)
    two.predict_then_learn(X[100:], y[100:])
    sd, (phi,) = two.posterior_.std()[1:], two.likelihood_parameters_.values()
    assert (abs(one.coef_ - two.coef_) < 1e-4 * sd).all()
    assert one.log_evidence_ == pytest.approx(two.log_evidence_, abs=1e-3)
    (same,) = one.likelihood_parameters_.values()
    assert same.mean() == pytest.approx(phi.mean(), rel=1e-4)
    with pytest.raises(ValueError, match="y"):
        one.learn_one(X[0], -1.0)


def test_many_densities_of_tweedie_are_those_of_each() -> None:
    y = np.exp(np.random.default_rng(0).normal(size=3000))
    for known in (Tweedie(1.5, 2.0), Tweedie(1.1, 0.02), Tweedie(1.9, 0.3)):
        some = known.log_density(y[:50], np.zeros(50))
        np.testing.assert_allclose(known.log_density(y, np.zeros(3000))[:50], some, atol=1e-7)


@pytest.mark.parametrize(("power", "dispersion"), [(1.2, 0.5), (1.5, 2.0), (1.8, 1.0)])
def test_amounts_of_tweedie_sum_to_one(power: float, dispersion: float) -> None:
    known, zero = Tweedie(power, dispersion), np.zeros(1)

    def density(y: float) -> float:
        return float(np.exp(known.log_density(np.array([y]), zero))[0])

    of_two = density(0.0) + integrate.quad(density, 0.0, 2.0, limit=200)[0]
    told = known.distribution(zero)
    assert told.cdf(2.0)[0] == pytest.approx(of_two, abs=1e-5)
    assert told.ppf(told.cdf(2.0))[0] == pytest.approx(2.0, rel=1e-9)
    draws = told.rvs((20_000, 1), np.random.default_rng(0))
    assert draws.mean() == pytest.approx(1.0, abs=4.0 * (dispersion / 20_000) ** 0.5)
    assert told.var()[0] == pytest.approx(dispersion)


def test_the_series_of_tweedie_meets_its_expansion() -> None:
    for power in (1.05, 1.2, 1.5, 1.8, 1.95):
        border = 0.005 ** (1.0 / (power - 2.0))
        ends = border * np.array([1.0 - 1e-9, 1.0 + 1e-9])
        below, above = Tweedie(power, 1.0).log_base_density(ends)
        assert below == pytest.approx(above, abs=2e-4)


# ---- R's figures ---------------------------------------------------------------------------------

I = np.arange(60)  # noqa: E741
X = np.column_stack([(I * 7 % 30) / 15 - 1, (I * 11 % 17) / 8 - 1])
U = (I * 37 % 60 + 0.5) / 60
IS_ZERO = (I**2 * 7 % 61 + 0.5) / 61 < 0.25
LOG_MEAN = 0.4 + X @ [0.5, -0.3]
MEAN, P = np.exp(LOG_MEAN), expit(LOG_MEAN)
TARGETS = {
    "gamma": stats.gamma(2, scale=MEAN / 2).ppf(U),
    "inverse gaussian": stats.invgauss(0.5 * MEAN, scale=2.0).ppf(U),
    "weibull": stats.weibull_min(2, scale=MEAN).ppf(U),
    "exponential": stats.expon(scale=MEAN).ppf(U),
    "log normal": stats.lognorm(0.7, scale=MEAN).ppf(U),
    "log logistic": stats.fisk(2, scale=MEAN).ppf(U),
    "tweedie": np.where(U < 0.25, 0, stats.gamma(1.5, scale=MEAN / 1.2).ppf(U)),
    "beta": stats.beta(5 * P, 5 * (1 - P)).ppf(U),
    "binomial": stats.binom(8, P).ppf(U),
    "beta binomial": stats.betabinom(8, 4 * P, 4 * (1 - P)).ppf(U),
    "negative binomial": stats.nbinom(2.0, 1 / (1 + MEAN / 2)).ppf(U),
    "linear negative binomial": stats.nbinom(MEAN, 0.5).ppf(U),
    "probit": np.digitize(LOG_MEAN - 0.4 + stats.norm.ppf(U), [-0.6, 0.3, 1.2]),
    "logit": np.digitize(LOG_MEAN - 0.4 + stats.logistic.ppf(U), [-1.0, 0.3, 1.6]),
    "zero-inflated": np.where(IS_ZERO, 0, stats.poisson(MEAN).ppf(U)),
    "zero-inflated, dispersed": np.where(IS_ZERO, 0, stats.nbinom(2, 1 / (1 + MEAN / 2)).ppf(U)),
    "hurdle": np.where(IS_ZERO, 0, stats.poisson(MEAN).ppf(U)),
    "truncated": np.maximum(1, stats.poisson(MEAN).ppf(U)),
}
# Maximum likelihood of R 4: survival::survreg, glm of statmod::tweedie, statmod::dinvgauss, glm,
# glmmTMB, ordinal::clm. Its parameter, its coefficients, and their standard deviations given the
# parameter. These are left out where negative curvatures of rows count as none here.
PEERS: dict[str, tuple[Any, tuple[float, ...], tuple[float, ...]]] = {
    "gamma": (
        Gamma(2.786734145),
        (0.344070446, 1.169719571, -0.301562673),
        (0.077462216, 0.133637633, 0.127545788),
    ),
    "inverse gaussian": (
        InverseGaussian(0.3450231028),
        (0.3512751652, 1.132487081, -0.2339333362),
        (),
    ),
    "weibull": (
        Weibull(1 / 0.4028566182),
        (0.37417323, 0.94625437, -0.31108443),
        (0.05209058, 0.08811156, 0.08620356),
    ),
    "exponential": (
        Exponential(),
        (0.28217286, 1.41786147, -0.31434389),
        (0.12930772, 0.22114618, 0.21343396),
    ),
    "log normal": (
        LogNormal(0.5681419515),
        (0.42282568, 1.18719719, -0.29033891),
        (0.07346909, 0.12735420, 0.11897631),
    ),
    "log logistic": (
        LogLogistic(1 / 0.4499617001),
        (0.42839133, 1.35197087, -0.29876797),
        (0.10662582, 0.20294161, 0.17411385),
    ),
    "tweedie": (
        Tweedie(1.5, 0.7713702549),
        (0.45773395, 1.40414389, -0.31471505),
        (0.10429366, 0.17670009, 0.16088827),
    ),
    "beta": (
        Beta(8.032639147),
        (0.46160291, 1.41134912, -0.32597293),
        (0.09220502, 0.16386469, 0.14889402),
    ),
    "binomial": (
        Binomial(8),
        (0.44268324, 1.28803511, -0.30727717),
        (0.10098001, 0.18243109, 0.16136225),
    ),
    "beta binomial": (
        BetaBinomial(8, 8.053690118),
        (0.48661510, 1.69310083, -0.33484332),
        (0.13924680, 0.26104324, 0.22138370),
    ),
    "negative binomial": (
        NegativeBinomial(1 / 5.584555133),
        (0.21424478, 1.48701520, -0.37162030),
        (0.14330765, 0.23911743, 0.20085301),
    ),
    "linear negative binomial": (
        LinearNegativeBinomial(0.03310766902),
        (0.15106673, 1.60353730, -0.31934575),
        (0.13940804, 0.22278052, 0.16742477),
    ),
    "probit": (
        Ordinal(4, tuple(np.diff([-0.8533954936, 0.4220958009, 1.4603119146])), "probit"),
        (-0.4220958009, 1.6209811586, -0.4327478744),
        (),
    ),
    "logit": (
        Ordinal(4, tuple(np.diff([-1.272574727, 0.3166517667, 1.752236223]))),
        (-0.3166517667, 1.920536999, -0.3725036952),
        (),
    ),
    "zero-inflated": (
        ZeroInflated(Poisson(), 0.4),
        (0.241812145, 1.142400396, -0.599679674),
        (),
    ),
    "zero-inflated, dispersed": (
        ZeroInflated(NegativeBinomial(0.5), 0.4),
        (0.144726915, 1.355944536, -0.760986111),
        (),
    ),
    "hurdle": (
        Hurdle(Poisson(), 2 / 3),
        (0.000882596358, 1.401507144971, -0.647675822492),
        (0.24516747, 0.35207030, 0.25510089),
    ),
    "truncated": (
        Truncated(Poisson(), low=1),
        (-0.0962205698, 1.6698057317, -0.3699639698),
        (0.19898103, 0.30382254, 0.20797523),
    ),
}


@pytest.mark.parametrize("name", PEERS)
def test_mode_and_curvature_are_those_of_r(name: str) -> None:
    likelihood, coefficients, sds = PEERS[name]
    model = BayesianGeneralizedLinear(likelihood, prior_precision=0.0, approximation="laplace")
    model.fit(X, np.round(TARGETS[name], 3))
    found, sd = np.append(model.intercept_, model.coef_), model.posterior_.std()
    np.testing.assert_allclose((found - coefficients) / sd, 0.0, atol=1e-4)
    np.testing.assert_allclose(sd[: len(sds)], sds, rtol=1e-4)


# ---- learned parameters --------------------------------------------------------------------------


def draw(likelihood: Any, n: int, seed: int = 0) -> tuple[Array, Array]:
    """A feature, and targets of the parameter 2, or less where that is much."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    known = likelihood.with_parameter(
        0.5 if isinstance(likelihood, Tweedie | InverseGaussian) else 2
    )
    eta = 0.3 + 0.5 * X[:, 0]
    if isinstance(likelihood, NegativeBinomial):
        return X, rng.negative_binomial(0.5, 1.0 / (1.0 + 2.0 * np.exp(eta))).astype(float)
    return X, np.asarray(known.distribution(eta).rvs(random_state=rng), dtype=float)


@pytest.mark.parametrize("likelihood", LEARNED, ids=str)
def test_means_are_those_of_a_grid(likelihood: ParametricLikelihood) -> None:
    X, y = draw(likelihood, 30)
    model = BayesianGeneralizedLinear(likelihood, prior_precision=1.0).fit(X, y)
    mean, sd = np.append(model.intercept_, model.coef_), model.posterior_.std()
    (known,) = model.likelihood_parameters_.values()
    assert likelihood.parameter is not None
    log, log_sd = np.log(known.median()), known.args[0]
    places, t = np.linspace(-6.0, 6.0, 31), log + log_sd * np.linspace(-6.0, 6.0, 31)
    a, b = (axis.ravel() for axis in np.meshgrid(*(mean[:, None] + sd[:, None] * places)))
    eta = a + X * b
    logs = np.array(
        [
            likelihood.with_parameter(float(np.exp(one))).log_density(y[:, None], eta).sum(axis=0)
            + likelihood.parameter.log_density(np.asarray(one))
            - 0.5 * b * b
            for one in t
        ]
    )
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    axes = (a, mean[0], sd[0]), (b, mean[1], sd[1]), (t[:, None] + 0.0 * a, log, log_sd)
    for (values, found, spread), far in zip(axes, (0.1, 0.1, 0.2), strict=True):
        exact = float(np.sum(mass * values))
        exact_sd = float(np.sum(mass * (values - exact) ** 2)) ** 0.5
        if isinstance(likelihood, NOT_CONCAVE):  # so few rows have skewed posteriors
            assert abs(found - exact) < 0.2 * exact_sd
            assert 0.6 < spread / exact_sd < 1.12
        else:
            assert abs(found - exact) < far * exact_sd
            assert 0.9 < spread / exact_sd < 1.12


@pytest.mark.parametrize(
    "likelihood",
    [
        pytest.param(one, marks=pytest.mark.slow) if isinstance(one, SECONDS) else one
        for one in LEARNED
    ],
    ids=str,
)
def test_rows_batches_and_files_tell_nearly_the_same(
    likelihood: ParametricLikelihood, tmp_path: Path
) -> None:
    X, y = draw(likelihood, 60)
    whole = BayesianGeneralizedLinear(likelihood).fit(X, y)
    parts = BayesianGeneralizedLinear(likelihood).partial_fit(X[:40], y[:40])
    for x, target in zip(X[40:42], y[40:42], strict=True):
        parts.learn_one(x, target)
    parts.partial_fit(X[42:], y[42:])
    sd = whole.posterior_.std()[1]
    assert abs(parts.coef_ - whole.coef_)[0] < 0.4 * sd
    save(parts, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), parts.predict(X))
    rest = BayesianGeneralizedLinear(likelihood).fit(X[30:], y[30:])
    merged = BayesianGeneralizedLinear(likelihood).fit(X[:30], y[:30]).merge(rest)
    assert abs(merged.coef_ - whole.coef_)[0] < 0.4 * sd


def test_predictions_with_a_parameter_for_each_row_are_those_of_some_rows() -> None:
    """More rows than are asked together at once."""
    X, y = draw(Weibull(), 1100)
    shapes = np.exp(0.1 * X[:, 0])
    each = Weibull().with_parameter(shapes).predictive(0.5 * X[:, 0], np.full(1100, 0.1))
    asked: list[Any] = [
        *(lambda one, y: one.cdf(y), lambda one, _: one.mean(), lambda one, _: one.ppf(0.9))
    ]
    for ask in asked:
        whole = ask(each, y)
        np.testing.assert_array_equal(ask(each[1050:1060], y[1050:1060]), whole[1050:1060])
        alone = Weibull(shapes[7]).predictive(0.5 * X[7:8, 0], np.full(1, 0.1))
        np.testing.assert_allclose(ask(alone, y[7:8]), whole[7:8])


# ---- what can't be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("likelihood", "bad", "message"),
    [
        (Weibull(), 0.0, "y in row 1 is 0: Weibull knows positive and finite numbers"),
        (LogNormal(), -1.0, "y in row 1 is -1: LogNormal knows positive"),
        (InverseGaussian(), 0.0, "y in row 1 is 0: InverseGaussian knows positive"),
        (Tweedie(), -1.0, "y in row 1 is -1: an amount under Tweedie must be 0 or more"),
        (Beta(), 1.0, "y in row 1 is 1: a share under Beta must lie between 0 and 1"),
        (Binomial(3), 4.0, "y in row 1 is 4: a number of successes must be a whole number, 0 to 3"),
        (BetaBinomial(3), 0.5, "y in row 1 is 0.5: a number of successes"),
        (VonMises(), 180.0, "y in row 1 is 180: a direction under VonMises must lie from -pi"),
        (LinearNegativeBinomial(), 0.5, "y in row 1 is 0.5: a count must be a whole number"),
    ],
)
def test_targets_that_cannot_be(likelihood: Likelihood, bad: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianGeneralizedLinear(likelihood).fit([[0.0], [1.0]], [0.5 if bad == 1.0 else 1.0, bad])


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("ordinal", "it must be 'bernoulli', .* 'ordinal:5'"),
        ("weibul", "it must be 'bernoulli'"),
        ("gamma:much", "after the colon come numbers"),
        ("gamma:1,2", "'gamma' takes at most 1 numbers"),
        ("gamma:-1", "shape is -1.0: it must be positive"),
        ("tweedie:2", "power is 2.0: it must lie between"),
        ("binomial:0", "trials is 0.0: it must be a whole number, 1 or more"),
    ],
)
def test_words_that_name_nothing(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_likelihood(word)


def test_words_name_likelihoods() -> None:
    assert read_likelihood("log-normal") == LogNormal()
    assert read_likelihood("tweedie:1.6") == Tweedie(1.6)
    assert read_likelihood("beta_binomial:7") == BetaBinomial(7)
    assert read_likelihood("ordinal:5") == Ordinal(5)
    X, y = draw(Weibull(), 30)
    assert BayesianGeneralizedLinear("weibull").fit(X, y).coef_.shape == (1,)


def test_a_learned_parameter_is_asked_for() -> None:
    with pytest.raises(ValueError, match="the shape of Weibull\\(\\) is learned by a model: give"):
        Weibull().log_density(np.ones(1), np.ones(1))


def test_quantiles_of_an_inverse_gaussian_row_that_is_hardly_known():
    # Those of SciPy end the process where the mean is very large.
    model = BayesianGeneralizedLinear(InverseGaussian()).fit([[0.0, 1.0]], [2.0])
    low, high = model.predict_interval([[0.0, 1.0]])[0]
    assert 0.0 < low < 2.0 < high < np.inf


@pytest.mark.parametrize("likelihood", [InverseGaussian(0.5), Tweedie(1.9, 0.5)])
def test_amounts_far_above_their_mean_are_never_likely(likelihood):
    # Beyond the ends of exponentials, too, the likelihood pulls eta back.
    y, eta = np.array([0.7, 1.0, 3.0]), np.full(3, -1000.0)
    assert (likelihood.log_density(y, eta) < -1e20).all()
    assert (likelihood.derivatives(y, eta)[0] > 1e20).all()


def test_the_first_inverse_gaussian_amounts_of_many_features_are_learned():
    # An infinite mean is about as likely as any: no average may go there.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, 10))
    y = rng.wald(np.exp(1.0 + X[:, :2] @ [0.5, -0.3]), 1.0 / 0.3)
    rows, at_once = (BayesianGeneralizedLinear(InverseGaussian()) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(24):
            rows.learn_one(X[n], y[n])
    at_once.fit(X, y)
    off = (rows.coef_ - at_once.coef_) / at_once.posterior_.std()[1:]
    assert np.abs(off).max() < 1.0


def test_batches_of_two_angles_are_learned_with_three_features():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(24, 3))
    y = rng.vonmises(2.0 * np.arctan(0.3 + X @ [0.5, -0.4, 0.0]), 4.0)
    model = BayesianGeneralizedLinear(VonMises())
    for start in range(0, 24, 2):
        model.partial_fit(X[start : start + 2], y[start : start + 2])
    assert (np.abs(model.coef_ - [0.5, -0.4, 0.0]) < 0.5).all()


def test_inverse_gaussian_distributions_are_those_of_scipy():
    ours = InverseGaussian(0.5).distribution(np.log([3.0]))
    theirs, levels = stats.invgauss(1.5, scale=2.0), np.array([0.001, 0.2, 0.5, 0.999])
    y = theirs.ppf(levels)
    for name in ("logpdf", "cdf", "logcdf", "logsf"):
        np.testing.assert_allclose(getattr(ours, name)(y), getattr(theirs, name)(y), rtol=1e-10)
    np.testing.assert_allclose(ours.ppf(levels), y, rtol=1e-9)
    np.testing.assert_allclose(ours.var(), theirs.var(), rtol=1e-12)


@pytest.mark.parametrize("mean", [1e-3, 2.0, 1e4])
def test_quantiles_of_negative_binomials(mean):
    levels = np.array([1e-6, 0.1, 0.5, 0.975, 1.0 - 1e-9])
    ours = LinearNegativeBinomial(1.5).distribution(np.log([mean])).ppf(levels)
    np.testing.assert_array_equal(ours, stats.nbinom(mean / 1.5, 0.4).ppf(levels))


def test_quantiles_of_a_count_of_which_hardly_anything_is_known_are_found():
    # The search of SciPy does not end there.
    model = BayesianGeneralizedLinear(LinearNegativeBinomial()).fit([[0.1, -0.1]], [2.0])
    assert np.isfinite(model.predict_interval([[-0.6, 0.1]])).all()
    assert LinearNegativeBinomial(1.5).distribution(690.0).ppf(0.975) > 1e299


@pytest.mark.parametrize("likelihood", [Weibull(2.0), LogNormal(0.5), Gamma(2.0), Exponential()])
def test_a_mean_that_quadrature_cannot_hold_is_infinite_and_quantiles_are_numbers(likelihood):
    predicted = likelihood.predictive(np.zeros(3), np.array([0.25, 100.0, 1e4]))
    assert np.isfinite(predicted.mean()).tolist() == [True, False, False]
    low, high = predicted.interval(0.9)
    assert ((low > 0.0) & (low < high) & (high < np.inf)).all()
