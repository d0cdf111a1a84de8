"""Means beyond a quantile, beside their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from posterity.distributions import Mixture, Normal, StudentT
from posterity.distributions.transformed import Transformed
from posterity.likelihoods import Gamma, Poisson


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_it_is_the_mean_beyond_a_quantile(level: float) -> None:
    z = stats.norm.ppf(level)
    normal = stats.norm.pdf(z) / (1.0 - level)
    told = Normal([0.0, 3.0], [1.0, 2.0])
    np.testing.assert_allclose(told.expected_shortfall(level), [normal, 3.0 + 2.0 * normal], 1e-5)
    same = Mixture([told, told], [0.5, 0.5]).expected_shortfall(level)
    np.testing.assert_allclose(same, told.expected_shortfall(level), rtol=1e-6)
    log_normal = Transformed(Normal([0.0], [1.5]), np.exp, np.log).expected_shortfall(level)
    exact = np.exp(0.5 * 1.5**2) * stats.norm.sf(z - 1.5) / (1.0 - level)
    np.testing.assert_allclose(log_normal, exact, rtol=1e-5)
    t = stats.t(3.0)
    exact = t.expect(lambda x: x, lb=t.ppf(level)) / (1.0 - level)
    np.testing.assert_allclose(StudentT([3.0], [0.0], [1.0]).expected_shortfall(level), exact, 1e-3)


def test_it_is_that_of_draws_under_likelihoods() -> None:
    for likelihood in (Gamma(2.0), Poisson()):
        told = likelihood.predictive(np.array([1.0]), np.array([0.2]))
        draws = np.sort(told.rvs((200_000, 1), np.random.default_rng(0))[:, 0])
        expected = draws[-10_000:].mean()
        np.testing.assert_allclose(told.expected_shortfall(0.95), expected, rtol=0.02)


def test_levels_lie_between_0_and_1() -> None:
    with pytest.raises(ValueError, match="level must lie between 0 and 1, but it is 95"):
        Normal(0.0, 1.0).expected_shortfall(95)
