"""The kernel of scores beside the distributions, whose expansions it repeats, and beside mpmath."""

from __future__ import annotations

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from posterity import kernel
from posterity.distributions import Normal, StudentT

SEEDS = st.integers(0, 10**6)
FREEDOM = st.sampled_from([64.0, 70.0, 300.0, 999.9, 1000.0, 1e5, 1e12, np.inf])


def served(z: np.ndarray, df: np.ndarray) -> np.ndarray:
    return (df >= 64.0) & (np.log1p(z * z / df) <= 0.24)


@given(seed=SEEDS, least=FREEDOM, n=st.integers(0, 700), far=st.sampled_from([1.0, 10.0, 1e6]))
def test_scores_are_those_of_the_distributions(seed: int, least: float, n: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    df = least * rng.choice([1.0, 1.0, 3.7], size=n)
    loc, scale = rng.normal(size=n), np.exp(rng.normal(size=n))
    y = loc + scale * far * rng.standard_t(3.0, size=n)
    log_density, crps, central = kernel.t_scores(y, loc, scale, df)
    predictive, there = StudentT(df, loc, scale), served((y - loc) / scale, df)
    assert np.array_equal(np.isfinite(crps), there)
    assert np.array_equal(np.isfinite(log_density), there)
    assert np.array_equal(np.isfinite(central), there)
    log_density -= np.log(scale)
    near = [
        (log_density, predictive.logpdf(y), 1e-13),
        (crps, predictive.crps(y), 1e-13),
        (0.5 + 0.5 * central, predictive.cdf(y), 4e-16),
    ]
    for mine, expected, tolerance in near:
        np.testing.assert_allclose(mine[there], expected[there], rtol=1e-13, atol=tolerance)


@given(seed=SEEDS, least=FREEDOM, level=st.floats(1e-6, 1.0 - 1e-7))
def test_widths_are_those_of_the_distributions(seed: int, least: float, level: float) -> None:
    rng = np.random.default_rng(seed)
    df, scale = least * rng.choice([1.0, 2.0], size=300), np.exp(rng.normal(size=300))
    quantile = -float(ndtri(0.5 * (1.0 - level)))
    halves = kernel.t_half_widths(300, scale, df, quantile)
    there = (df >= 64.0) & (quantile**2 / (df - 0.5) <= 0.24)
    assert np.array_equal(np.isfinite(halves), there)
    _, high = StudentT(df, 0.0, scale).interval(level)
    np.testing.assert_allclose(halves[there], high[there], rtol=3e-13)


def test_the_normal_distribution_to_the_last_digits() -> None:
    y = np.linspace(-8.0, 8.0, 401)
    one, many = np.ones(1), np.full(1, np.inf)
    log_density, crps, central = kernel.t_scores(y, np.zeros(1), one, many)
    with mpmath.workdps(40):
        for k, z in enumerate(map(mpmath.mpf, y.tolist())):
            middle = mpmath.erf(z / mpmath.sqrt(2))
            density = mpmath.npdf(z)
            expected = z * middle + 2 * density - 1 / mpmath.sqrt(mpmath.pi)
            assert central[k] == pytest.approx(float(middle), abs=5e-16)
            assert crps[k] == pytest.approx(float(expected), rel=1e-14)
            assert log_density[k] == pytest.approx(float(mpmath.log(density)), rel=1e-15)
    np.testing.assert_allclose(crps, Normal().crps(y), rtol=1e-14)


def test_rows_that_the_series_do_not_serve() -> None:
    y = np.array([0.0, 0.0, 0.0, 0.0, 0.0, np.nan, np.inf])
    scale = np.array([0.0, np.inf, np.nan, -1.0, 1.0, 1.0, 1.0])
    df = np.array([100.0, 100.0, 100.0, 100.0, 63.9, 100.0, 100.0])
    for predictive in kernel.t_scores(y, np.zeros(7), scale, df):
        assert np.isnan(predictive).all()
    assert np.isnan(kernel.t_half_widths(7, scale, df, 1.96)[:5]).all()


@pytest.mark.parametrize("splits", [[0, 50], [0, 1, 2, 20, 50]])
def test_running_forecasts_know_what_came_before(splits: list[int]) -> None:
    news = 1e6 + np.random.default_rng(0).normal(size=50)
    mean, steps = np.zeros(3), np.zeros(2)
    predictive, stepped = [], []
    for start, end in pairwise(splits):
        predictive.append(kernel.running_mean(news[start:end], mean))
        stepped.append(kernel.running_steps(news[start:end] - 1e6, steps))
    df, loc, scale = (np.concatenate(part) for part in zip(*predictive, strict=True))
    for k in range(50):
        seen = news[: k + 1]
        assert df[k] == k
        assert loc[k] == pytest.approx(seen.mean(), rel=1e-15)
        if k:
            assert scale[k] == pytest.approx(seen.std(ddof=1) * np.sqrt(1 + 1 / (k + 1)), rel=1e-9)
    assert np.isinf(scale[0])
    df, scale = (np.concatenate(part) for part in zip(*stepped, strict=True))
    np.testing.assert_array_equal(df, np.arange(1.0, 51.0))
    expected = np.sqrt(np.cumsum((news - 1e6) ** 2) / df)
    np.testing.assert_allclose(scale, expected, rtol=1e-12)


def test_lengths_are_checked() -> None:
    one, two = np.ones(1), np.ones(2)
    with pytest.raises(ValueError, match="scale has length 2: expected 3, or 1 for all rows"):
        kernel.t_scores(np.ones(3), one, two, one)
    with pytest.raises(ValueError, match="df has length 2: expected 3, or 1 for all rows"):
        kernel.t_half_widths(3, one, two, 1.0)
    with pytest.raises(ValueError, match="known has length 2: expected 3"):
        kernel.running_mean(one, two)
    with pytest.raises(ValueError, match="known has length 1: expected 2"):
        kernel.running_steps(one, one)
