"""Correlations between the shocks of several series."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from posterity.forecasting import Forecaster, Form
from posterity.forecasting.dependence import ShockCorrelation

Array = NDArray[np.float64]
ENDS = np.zeros(3, dtype=np.int64)


def shocks(n: int, seed: int = 0) -> Array:
    """Three series, the first two of which go together."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    own = rng.normal(size=(3, n))
    return own + np.array([[1.5], [1.5], [0.0]]) * common


def shrunk(residuals: Array) -> Array:
    """The same by loops, as Schafer and Strimmer (2005) write it."""
    z = residuals - residuals.mean(axis=1, keepdims=True)
    z /= z.std(axis=1, ddof=1, keepdims=True)
    count, n = z.shape
    correlation, variance, square = np.eye(count), 0.0, 0.0
    for i in range(count):
        for j in range(count):
            if i != j:
                w = z[i] * z[j]
                correlation[i, j] = n / (n - 1) * w.mean()
                variance += n / (n - 1) ** 3 * np.square(w - w.mean()).sum()
                square += correlation[i, j] ** 2
    kept = 1.0 - min(1.0, max(0.0, variance / square))
    return np.where(np.eye(count) > 0, 1.0, kept * correlation)


@pytest.mark.parametrize("n", [8, 30, 400])
def test_correlations_are_shrunk_as_much_as_they_are_unsure(n: int) -> None:
    residuals = shocks(n)
    found = ShockCorrelation.of(residuals, ENDS).correlation()
    np.testing.assert_allclose(found, shrunk(residuals), rtol=1e-9)


def test_more_series_than_times() -> None:
    residuals = np.random.default_rng(0).normal(size=(60, 12))
    found = ShockCorrelation.of(residuals, np.zeros(60, dtype=np.int64))
    np.testing.assert_allclose(found.correlation(), shrunk(residuals), rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(found.correlation()).min() > 0.0


def test_draws_have_the_correlations() -> None:
    found = ShockCorrelation.of(shocks(200), ENDS)
    drawn = found.draw(np.random.default_rng(1), 20_000, 2)
    for step in range(2):
        np.testing.assert_allclose(np.cov(drawn[:, :, step].T), found.correlation(), atol=0.03)
    across = np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 1])[0, 1]
    assert abs(across) < 0.03


def test_series_that_end_at_other_times_are_independent() -> None:
    found = ShockCorrelation.of(shocks(100), np.array([5, 9, 9]))
    assert found.correlation()[0, 1] == 0.0
    drawn = found.draw(np.random.default_rng(1), 20_000, 1)[:, :, 0]
    np.testing.assert_allclose(np.cov(drawn.T), found.correlation(), atol=0.03)


def test_constant_missing_and_short_series_are_independent() -> None:
    residuals = shocks(50)
    residuals[1] = 0.0
    assert ShockCorrelation.of(residuals, ENDS).correlation()[0, 1] == 0.0
    residuals[1] = np.nan
    assert ShockCorrelation.of(residuals, ENDS).correlation()[0, 1] == 0.0
    assert (ShockCorrelation.of(shocks(3), ENDS).correlation() == np.eye(3)).all()
    apart = shocks(50)
    apart[0, 25:], apart[1, :25] = np.nan, np.nan
    assert ShockCorrelation.of(apart, ENDS).correlation()[0, 1] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("log", [False, True])
def test_covariances_are_those_of_sample_paths(log: bool) -> None:
    walks = 100.0 + np.cumsum(shocks(90), axis=1)
    forms = [Form(log=log), Form(1, (1, 2), log=log)]
    forecast = Forecaster(forms=forms).fit(dict(zip("abc", walks, strict=True))).forecast(4)
    assert forecast.shocks.correlation()[0, 1] == pytest.approx(0.69, abs=0.15)
    assert forecast.shocks.correlation()[0, 2] == pytest.approx(0.0, abs=0.2)
    paths = forecast.rvs(40_000, random_state=0)
    covariance = forecast.covariance()
    for step in range(4):
        expected = np.cov(paths[:, :, step].T)
        sd = np.sqrt(np.diag(expected))
        np.testing.assert_allclose(covariance[step], expected, atol=0.05 * sd.max() ** 2)
    # Steps of two series that are apart are correlated, too, as walks are.
    assert np.corrcoef(paths[:, 0, 0], paths[:, 1, 3])[0, 1] > 0.2


def test_forecasts_of_each_series_do_not_depend_on_the_correlation() -> None:
    walks = 100.0 + np.cumsum(shocks(90), axis=1)
    forms = [Form(), Form(1, (1, 2))]
    both = Forecaster(forms=forms).fit(dict(zip("ab", walks[:2], strict=True))).forecast(3)
    other = Forecaster(forms=forms).fit({"a": walks[0], "b": walks[2]}).forecast(3)
    # Its own forecast; how wide all are made is learned from both series.
    np.testing.assert_allclose(
        both.paths[0].mean[0].mean(axis=0), other.paths[0].mean[0].mean(axis=0)
    )
    np.testing.assert_allclose(
        both.paths[0].sd[0] / both.paths[0].sd[0, 0, 0],
        other.paths[0].sd[0] / other.paths[0].sd[0, 0, 0],
    )
