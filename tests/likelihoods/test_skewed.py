"""Skewed noise, beside SciPy's skew normal."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from posterity import BayesianGeneralizedLinear
from posterity.likelihoods import Gaussian, SkewNormal


def test_the_mode_is_the_most_probable_one() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 1))
    noise = SkewNormal(4.0, 0.5)
    y = noise.distribution(0.3 + 0.8 * x[:, 0]).rvs(random_state=rng)
    model = BayesianGeneralizedLinear(noise, prior_precision=0.0, approximation="laplace").fit(x, y)
    location = -0.5 * 4.0 / 17.0**0.5 * (2.0 / np.pi) ** 0.5

    def cost(w: np.ndarray) -> float:
        return -float(stats.skewnorm(4.0, w[0] + w[1] * x[:, 0] + location, 0.5).logpdf(y).sum())

    found = optimize.minimize(cost, [0.0, 0.0], method="BFGS", tol=1e-9).x
    np.testing.assert_allclose([model.intercept_, model.coef_[0]], found, atol=1e-5)


def test_predictions_are_skew_normal_too() -> None:
    """A normal eta adds to the normal part of the noise, and nothing to the skewed one."""
    mean, variance = np.array([0.2, -1.0]), np.array([0.3, 2.0])
    delta, wide = 3.0 / 10.0**0.5, np.sqrt(0.25 + variance)
    share = delta * 0.5 / wide
    location = mean - delta * 0.5 * (2.0 / np.pi) ** 0.5
    exact = stats.skewnorm(share / np.sqrt(1.0 - share**2), location, wide)
    found = SkewNormal(3.0, 0.5).predictive(mean, variance)
    y = np.array([0.7, -2.0])
    np.testing.assert_allclose(found.cdf(y), exact.cdf(y), atol=1e-8)
    np.testing.assert_allclose(found.logpdf(y), exact.logpdf(y), atol=2e-4)
    np.testing.assert_allclose(found.mean(), mean, atol=1e-8)
    np.testing.assert_allclose(found.var(), exact.var(), rtol=1e-6)


def test_without_skew_it_is_gaussian() -> None:
    y, eta = np.array([0.7, -50.0]), np.array([0.1, 3.0])
    for found, expected in zip(
        SkewNormal(0.0, 2.0).derivatives(y, eta), Gaussian(0.25).derivatives(y, eta), strict=True
    ):
        np.testing.assert_allclose(found, expected)


def test_far_targets_have_derivatives() -> None:
    slope, bend = SkewNormal(5.0).derivatives(np.array([-1e8, 1e8]), np.zeros(2))
    np.testing.assert_allclose(slope, [-26e8, 1e8], rtol=1e-6)
    assert bend[1] == 1.0
    assert 1.0 <= bend[0] <= 26.0


@pytest.mark.parametrize(("skew", "scale"), [(np.inf, 1.0), (np.nan, 1.0), (1.0, 0.0)])
def test_parameters_that_cannot_be(skew: float, scale: float) -> None:
    with pytest.raises(ValueError, match=r"(skew|scale) is"):
        SkewNormal(skew, scale)
