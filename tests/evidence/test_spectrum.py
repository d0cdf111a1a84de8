"""The evidence in the data's singular values is the evidence of the model."""

from __future__ import annotations

import warnings

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import approx_fprime

from posterity.evidence import Spectrum
from posterity.factor import Factor
from posterity.noise import KnownNoise, LearnedNoise, Noise
from posterity.posteriors import LinearPosterior
from posterity.priors import GaussianPrior

NOISES = [LearnedNoise(), LearnedNoise(1.5, 0.5), KnownNoise(2.0)]
RATIOS = [1e-6, 0.3, 1.0, 40.0, 1e8]
SIZES = [(0, 2), (1, 3), (2, 3), (5, 3), (4, 8), (50, 5), (20, 0)]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_it_is_the_evidence_of_the_fixed_prior(
    n: int, m: int, intercept: bool, noise: Noise, make_rows, make_factor
) -> None:
    X, y = make_rows(n, m)
    data = make_factor(X, y, intercept=intercept)
    mean, shape = np.linspace(-1.0, 1.0, m), np.linspace(0.5, 2.0, m)
    spectrum = Spectrum.of(data, intercept=intercept, mean=mean, shape=shape)
    found = spectrum.log_evidence(np.array(RATIOS), noise)
    for ratio, value in zip(RATIOS, found, strict=True):
        belief = GaussianPrior(mean, ratio * shape)
        prior = belief.factor(m, intercept=intercept)
        factor = prior.copy()
        factor.merge(data)
        fixed = LinearPosterior(belief, noise, intercept, prior, factor).log_evidence
        assert value == pytest.approx(fixed, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("ratio", RATIOS)
def test_it_is_the_density_of_the_target(ratio: float, make_rows, make_factor) -> None:
    X, y = make_rows(12, 4)
    mean, shape = np.array([0.5, 0.0, -1.0, 2.0]), np.array([1.0, 4.0, 0.2, 1.0])
    data = make_factor(X, y, intercept=False)
    spectrum = Spectrum.of(data, intercept=False, mean=mean, shape=shape)
    spread = np.eye(12) + (X / (ratio * shape)) @ X.T
    normal = stats.multivariate_normal(X @ mean, spread / 2.5)
    assert spectrum.log_evidence(ratio, KnownNoise(2.5))[0] == pytest.approx(
        normal.logpdf(y), rel=1e-8
    )
    student = stats.multivariate_t(X @ mean, spread * (3.0 / 2.0), df=4.0)
    assert spectrum.log_evidence(ratio, LearnedNoise(2.0, 3.0))[0] == pytest.approx(
        student.logpdf(y), rel=1e-8
    )


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize(("n", "m"), [(30, 4), (5, 8)])
def test_slopes_are_derivatives(n: int, m: int, noise: Noise, make_rows, make_factor) -> None:
    data = make_factor(*make_rows(n, m), intercept=True)
    spectrum = Spectrum.of(data, intercept=True, mean=np.zeros(m), shape=np.ones(m))

    def value(log_ratio: np.ndarray) -> float:
        return float(spectrum.log_evidence(np.exp(log_ratio), noise)[0])

    def slope(log_ratio: np.ndarray) -> float:
        return float(spectrum.slopes(np.exp(log_ratio), noise)[0][0])

    for at in ([-3.0], [0.5], [4.0]):
        first, second = spectrum.slopes(np.exp(at), noise)
        assert first[0] == pytest.approx(approx_fprime(at, value)[0], rel=1e-4, abs=1e-5)
        assert second[0] == pytest.approx(approx_fprime(at, slope)[0], rel=1e-4, abs=1e-5)


def test_a_pinned_feature_is_not_there(make_rows, make_factor) -> None:
    X, y = make_rows(20, 3)
    without = Spectrum.of(
        make_factor(X[:, :2], y, intercept=True),
        intercept=True,
        mean=np.zeros(2),
        shape=np.ones(2),
    )
    pinned = Spectrum.of(
        make_factor(X, y, intercept=True),
        intercept=True,
        mean=np.zeros(3),
        shape=np.array([1.0, 1.0, np.inf]),
    )
    for noise in NOISES:
        assert np.allclose(
            pinned.log_evidence(np.array(RATIOS), noise),
            without.log_evidence(np.array(RATIOS), noise),
            rtol=1e-12,
        )
    assert np.allclose(pinned.n_parameters(0.7), without.n_parameters(0.7))


@pytest.mark.parametrize("m", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_it_is_the_integral_over_the_coefficients(m: int, make_rows, make_factor) -> None:
    """Bishop 2006, eq. 3.77: the likelihood, integrated over the prior, in many digits."""
    X, y = make_rows(4, m, signal=0.5)
    alpha, beta = 1.7, 0.8
    gram = (X.T @ X).tolist()
    moments = (X.T @ y).tolist()
    square = float(y @ y)

    def joint(*w: mpmath.mpf) -> mpmath.mpf:
        fit = sum(w[i] * gram[i][j] * w[j] for i in range(m) for j in range(m))
        misfit = square - 2 * sum(w[i] * moments[i] for i in range(m)) + fit
        return mpmath.exp(-beta / 2 * misfit - alpha / 2 * sum(part**2 for part in w))

    with mpmath.workdps(20):
        integral = mpmath.quad(joint, *[[-8, -2, 0, 2, 8]] * m)
        value = mpmath.log(integral) + m * mpmath.log(alpha / (2 * mpmath.pi)) / 2
        value += 2 * mpmath.log(beta / (2 * mpmath.pi))
    data = make_factor(X, y, intercept=False)
    spectrum = Spectrum.of(data, intercept=False, mean=np.zeros(m), shape=np.ones(m))
    found = spectrum.log_evidence(alpha / beta, KnownNoise(beta))[0]
    assert found == pytest.approx(float(value), abs=1e-10)


def test_shares_whose_products_underflow_have_logarithms() -> None:
    """Of a strong signal under a weak prior eight shares of 1e-45 are no number of double size."""
    data = Factor(8)
    data.append(1e20 * np.eye(8), np.ones((8, 1)))
    shape = np.ones(8)
    spectrum = Spectrum.of(data, intercept=False, mean=np.zeros(8), shape=shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = spectrum.log_determinants(spectrum.shares(1e-5))
    np.testing.assert_allclose(found, 8.0 * np.log(1e-45), rtol=1e-12)
