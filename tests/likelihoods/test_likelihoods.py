"""Likelihoods against SciPy, and their sites against quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit

from posterity.likelihoods import (
    Bernoulli,
    Gamma,
    Gaussian,
    LaplaceNoise,
    Likelihood,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Quantile,
    Sites,
    StudentT,
    laplace_sites,
    moment_sites,
)
from posterity.likelihoods.modes import modes

Array = np.ndarray
ETA = np.linspace(-4.0, 4.0, 17)

# Likelihood, a target, and the same density in SciPy as a function of eta.
CASES = {
    "logit": (Bernoulli(), 1.0, lambda eta: stats.bernoulli.logpmf(1, expit(eta))),
    "logit no": (Bernoulli(), 0.0, lambda eta: stats.bernoulli.logpmf(0, expit(eta))),
    "probit": (Bernoulli("probit"), 0.0, lambda eta: stats.norm.logsf(eta)),
    "Poisson": (Poisson(), 3.0, lambda eta: stats.poisson.logpmf(3, np.exp(eta))),
    "negative binomial": (
        NegativeBinomial(0.5),
        3.0,
        lambda eta: stats.nbinom.logpmf(3, 2.0, 1.0 / (1.0 + 0.5 * np.exp(eta))),
    ),
    "Gaussian": (Gaussian(4.0), 0.7, lambda eta: stats.norm.logpdf(0.7, eta, 0.5)),
    "Student-t": (StudentT(3.0, 0.5), 0.7, lambda eta: stats.t.logpdf(0.7, 3.0, eta, 0.5)),
    "Laplace": (LaplaceNoise(0.5), 0.7, lambda eta: stats.laplace.logpdf(0.7, eta, 0.5)),
    "quantile": (
        Quantile(0.8, 1.0),
        0.7,
        lambda eta: stats.laplace_asymmetric.logpdf(0.7, 2.0, eta, 1.0 / np.sqrt(0.16)),
    ),
}
LIKELIHOODS = [case[0] for case in CASES.values()]
SMOOTH = ["logit", "logit no", "probit", "Poisson", "negative binomial", "Gaussian"]


@pytest.mark.parametrize("name", CASES)
def test_log_density_is_scipys(name: str) -> None:
    likelihood, y, expected = CASES[name]
    assert likelihood.log_density(np.full(17, y), ETA) == pytest.approx(expected(ETA), abs=1e-11)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_the_log_density(name: str) -> None:
    likelihood, y, _ = CASES[name]
    targets, step = np.full(17, y), 1e-4
    slope, curvature = likelihood.derivatives(targets, ETA)
    up, here, down = (likelihood.log_density(targets, ETA + off) for off in (step, 0.0, -step))
    assert slope == pytest.approx((up - down) / (2.0 * step), rel=1e-6, abs=1e-7)
    assert curvature == pytest.approx(-(up - 2.0 * here + down) / step**2, rel=1e-4, abs=1e-5)


def test_a_student_ts_curvature_is_the_weight_of_its_scale_mixture() -> None:
    noise = StudentT(3.0, 0.5)
    slope, weight = noise.derivatives(np.zeros(17), ETA)
    assert slope == pytest.approx(-weight * ETA)
    assert (weight > 0.0).all()


def quadrature(
    likelihood: Likelihood, y: float, mean: float, variance: float, weight: float = 1.0
) -> tuple[float, float, float]:
    """log Z, mean and variance of likelihood^weight times Normal(mean, variance)."""
    scale = np.sqrt(variance)
    eta = np.linspace(mean - 14.0 * scale, mean + 14.0 * scale, 400_001)
    log_density = weight * likelihood.log_density(np.array(y), eta)
    log_density = log_density - 0.5 * (eta - mean) ** 2 / variance
    top = log_density.max()
    density = np.exp(log_density - top)
    total = integrate.trapezoid(density, eta)
    centre = integrate.trapezoid(density * eta, eta) / total
    spread = integrate.trapezoid(density * (eta - centre) ** 2, eta) / total
    return top + np.log(total / np.sqrt(2.0 * np.pi * variance)), centre, spread


def posterior(sites: Sites, mean: float, variance: float) -> tuple[float, float]:
    """Mean and variance after a site."""
    after = 1.0 / (1.0 / variance + sites.precision[0])
    return after * (mean / variance + sites.precision[0] * sites.target[0]), after


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("mean", "variance", "weight"), [(0.0, 0.1, 1.0), (-1.0, 1.0, 2.0), (1.0, 4.0, 0.5)]
)
def test_moment_sites_match_quadrature(
    name: str, mean: float, variance: float, weight: float
) -> None:
    likelihood, y, _ = CASES[name]
    sites = moment_sites(likelihood, y, mean, variance, weight, n_nodes=32)
    log_mass, centre, spread = quadrature(likelihood, y, mean, variance, weight)
    found, width = posterior(sites, mean, variance)
    assert sites.log_normalizer[0] == pytest.approx(log_mass, abs=1e-6)
    assert (found - centre) / np.sqrt(spread) == pytest.approx(0.0, abs=1e-5)
    assert width / spread == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("name", SMOOTH)
def test_laplace_sites_have_the_mode_and_its_curvature(name: str) -> None:
    likelihood, y, _ = CASES[name]
    sites = laplace_sites(likelihood, y, 0.5, 2.0)
    mode, after = posterior(sites, 0.5, 2.0)
    slope, curvature = likelihood.derivatives(np.array([y]), np.array([mode]))
    assert slope[0] == pytest.approx((mode - 0.5) / 2.0, abs=1e-9)
    assert 1.0 / after == pytest.approx(0.5 + curvature[0], rel=1e-9)


@pytest.mark.parametrize("y", [0.0, 30.0])
def test_an_outlier_tells_a_student_t_next_to_nothing(y: float) -> None:
    sites = moment_sites(StudentT(4.0, 1.0), y, 0.0, 0.5)
    centre, _ = posterior(sites, 0.0, 0.5)
    log_mass, expected, _ = quadrature(StudentT(4.0, 1.0), y, 0.0, 0.5)
    assert centre == pytest.approx(expected, abs=1e-6)
    assert sites.log_normalizer[0] == pytest.approx(log_mass, abs=1e-7)
    assert (sites.precision[0] < 1e-3) == (y == 30.0)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=CASES)
@given(
    mean=st.sampled_from([-1e6, -700.0, -5.0, 0.0, 40.0, 1e6]),
    variance=st.sampled_from([1e-12, 1e-3, 1.0, 1e3, 1e12, np.inf]),
    weight=st.sampled_from([0.0, 1e-12, 1.0, 1e12]),
    count=st.sampled_from([0.0, 1.0, 1e9]),
    approximation=st.sampled_from([laplace_sites, moment_sites]),
)
def test_sites_are_finite_whatever_comes(  # type: ignore[no-untyped-def]
    likelihood, mean, variance, weight, count, approximation
) -> None:
    y = min(count, 1.0) if isinstance(likelihood, Bernoulli) else count
    sites = approximation(likelihood, y, mean, variance, weight)
    assert np.isfinite(sites.precision).all()
    assert np.isfinite(sites.target).all()
    assert (sites.precision >= 0.0).all()
    assert not np.isnan(sites.log_normalizer).any()
    if weight == 0.0:
        assert sites.log_normalizer[0] == 0.0


def test_a_likelihood_of_ones_own() -> None:
    """The documented example, of exponential waiting times: the protocol is all there is."""

    @dataclass(frozen=True)
    class Waiting(Likelihood):
        def log_density(self, y: Array, eta: Array) -> Array:
            return -eta - y * np.exp(-eta)

        def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
            share = y * np.exp(-eta)
            return share - 1.0, share

        def check_targets(self, y: Array) -> None:
            pass

        def predictive(self, mean: Array, variance: Array) -> None:
            pass

    sites = moment_sites(Waiting(), 2.0, 0.0, 1.0)
    log_mass, centre, spread = quadrature(Waiting(), 2.0, 0.0, 1.0)
    assert sites.log_normalizer[0] == pytest.approx(log_mass, abs=1e-6)
    assert posterior(sites, 0.0, 1.0) == pytest.approx((centre, spread), rel=1e-5)


@pytest.mark.parametrize(
    ("likelihood", "bad", "message"),
    [
        (Bernoulli(), 0.5, "y in row 1 is 0.5: a label must be 0 or 1"),
        (Poisson(), -1.0, "y in row 1 is -1: a count must be a whole number, 0 or more"),
        (NegativeBinomial(), 1.5, "y in row 1 is 1.5: a count must be a whole number, 0 or more"),
        (StudentT(), np.inf, "y in row 1 is inf: a target must be finite"),
    ],
)
def test_targets_that_cannot_be(likelihood: Likelihood, bad: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        likelihood.check_targets(np.array([1.0, bad]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bernoulli("cloglog"), "link is 'cloglog': it must be 'logit' or 'probit'"),
        (lambda: NegativeBinomial(0.0), "dispersion is 0.0: it must be positive and finite"),
        (lambda: StudentT(-1.0), "df is -1.0: it must be positive and finite"),
        (lambda: LaplaceNoise(0.0), "scale is 0.0: it must be positive and finite"),
        (lambda: Quantile(1.0), "q is 1.0: it must lie between 0 and 1, as in 0.9"),
    ],
)
def test_settings_that_cannot_be(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        make()


@given(
    mean=st.floats(-8.0, 8.0),
    variance=st.sampled_from([1e-6, 0.5, 1.0, 1.1, 30.0]),
    link=st.sampled_from(["logit", "probit"]),
)
def test_probabilities_are_averaged_over_eta(mean: float, variance: float, link: str) -> None:
    likelihood = Bernoulli(link)  # type: ignore[arg-type]
    predictive = likelihood.predictive(np.array([mean]), np.array([variance]))
    expected = quadrature(likelihood, 1.0, mean, variance)[0]
    # A probability is right to 1e-8; of one below that, by a wide belief, fewer digits are.
    assert predictive.pmf(1.0)[0] == pytest.approx(np.exp(expected), rel=1e-3, abs=1e-300)
    assert predictive.pmf(1.0)[0] == pytest.approx(np.exp(expected), abs=1e-8)
    assert predictive.mean() + predictive.pmf(0.0) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("noise", [StudentT(4.0, 0.5), LaplaceNoise(0.5), Quantile(0.8, 0.3)])
def test_predictions_of_new_targets_are_the_noise_around_eta(noise: Likelihood) -> None:
    predictive = noise.predictive(np.array([1.0]), np.array([0.3]))
    for y in (-1.0, 0.9, 1.5, 4.0):
        expected = np.exp(quadrature(noise, y, 1.0, 0.3)[0])
        assert predictive.pdf([y])[0] == pytest.approx(expected, rel=0.02)


def test_the_mode_of_amounts_and_ratings_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    mean, variance, ones = rng.normal(size=60), rng.gamma(1.0, size=60), np.ones(60)
    targets = {Gamma(2.0): rng.gamma(2.0, size=60), Ordinal(3, (1.5,)): rng.integers(3, size=60)}
    for likelihood, y in targets.items():
        looks: list[int] = []
        kind = type(likelihood)
        derivatives = kind.derivatives

        def count(self: Any, *at: Any, known: Any = derivatives, looks: Any = looks) -> Any:
            looks.append(1)
            return known(self, *at)

        monkeypatch.setattr(kind, "derivatives", count)
        modes(likelihood, y, mean, variance, ones)
        assert len(looks) < 20


def test_the_mode_of_an_amount_far_from_what_was_believed() -> None:
    believed = np.array([40.0]), np.array([200.0]), np.array([400.0])
    mode = modes(Gamma(2.0), np.array([2.0]), *believed)
    slope = Gamma(2.0).derivatives(np.array([2.0]), mode)[0]
    np.testing.assert_allclose(mode, believed[0] + 200.0 * 400.0 * slope, atol=1e-6)
