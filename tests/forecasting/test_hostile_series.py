"""Series that are not what forecasts hope for: answers stay finite, ordered and honest."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from posterity.forecasting import Forecaster, ForecastWarning

Array = NDArray[np.float64]
H = 48


def hostile() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    noise, t = rng.normal(size=100), np.arange(100)
    season = 10.0 + 5.0 * np.sin(2.0 * np.pi * t / 12) + 0.3 * noise
    return {
        "constant": np.full(50, 3.0),
        "zeros": np.zeros(50),
        "spike": np.where(t == 50, 1e6, noise),
        "late spike": np.where(t == 97, 1e6, noise),
        "zeros but three": np.where(np.isin(t, [20, 60, 90]), 3.0, 0.0),
        "level shift": np.where(t < 80, 0.0, 50.0) + noise,
        "trend": 1e9 * t,
        "noisy trend": 1e9 * t + 1e8 * noise,
        "tiny": 1e-9 * (5.0 + noise),
        "counts": rng.poisson(0.4, 100).astype(np.float64),
        "half missing": np.where(rng.random(100) < 0.5, np.nan, noise),
        "duplicates": np.repeat(noise[:50], 2),
        "missing season": np.where((t >= 36) & (t < 48), np.nan, season),
        "signs": (-1.0) ** t,
        "exponential": np.exp(0.5 * t),
        "missing end": np.append(noise, np.full(5, np.nan)),
    }


@pytest.mark.parametrize("name", hostile())
def test_answers_are_finite_and_ordered(name: str) -> None:
    y = hostile()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecast = Forecaster().fit(y).forecast(H)
    wide, narrow = forecast.interval(0.95), forecast.interval(0.5)
    ends = np.stack([wide[0], narrow[0], forecast.median(), narrow[1], wide[1]])
    assert np.isfinite(ends).all()
    # Numbers of 300 digits have no more digits than others.
    assert (np.diff(ends, axis=0) >= -1e-12 * np.abs(ends[:-1])).all()
    assert np.isfinite(forecast.mean()).all()
    paths = forecast.rvs(200, rng=0)
    assert np.isfinite(paths).all()
    assert np.isfinite(forecast.total().interval()).all()
    if np.nanmin(y) >= 0.0 and (y == np.round(y)).all():
        assert ends.min() >= 0.0
        assert paths.min() >= 0.0
        assert forecast.total().quantile(0.001) >= 0.0


@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
@pytest.mark.parametrize("name", ["noisy trend", "tiny", "level shift", "missing season", "counts"])
def test_intervals_hold_the_next_values(name: str) -> None:
    """Of a series whose future follows its past: at least eight of the last ten values."""
    y = hostile()[name]
    low, high = Forecaster().fit(y[:-10]).forecast(10).interval(0.95)
    assert np.sum((low <= y[-10:]) & (y[-10:] <= high)) >= 8


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, 2.0, 3.0], "at least 4"),
        ([np.nan] * 10, "at least 4"),
        ([1.0, 2.0, np.inf, 3.0, 4.0], "inf"),
    ],
)
def test_what_has_no_forecast_says_why(y: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Forecaster().fit(np.array(y))


# ---- lower bounds --------------------------------------------------------------------------------


def counts(n: int = 100) -> Array:
    return np.random.default_rng(3).poisson(0.5, n).astype(np.float64)


def test_counts_have_no_negative_values() -> None:
    """Means, quantiles, scores and sums are those of the sample paths."""
    forecast = Forecaster().fit(counts()).forecast(6)
    paths = forecast.rvs(40_000, rng=1)
    assert paths.min() == 0.0
    assert (forecast.interval()[0] == 0.0).all()
    np.testing.assert_allclose(forecast.mean(), paths.mean(axis=0), rtol=0.03)
    np.testing.assert_allclose(forecast.std(), paths.std(axis=0), rtol=0.05)
    np.testing.assert_allclose(forecast.cdf(0.0), (paths == 0.0).mean(axis=0), atol=0.01)
    assert (forecast.cdf(-0.1) == 0.0).all()
    assert (forecast.logpdf(-0.1) == -np.inf).all()
    np.testing.assert_allclose(forecast.logpdf(0.0), np.log(forecast.cdf(0.0)))
    for y in (-1.0, 0.0, 0.7, 3.0):
        apart = np.abs(paths[:20_000] - paths[20_000:]).mean(axis=0)
        np.testing.assert_allclose(
            forecast.crps(y), np.abs(paths - y).mean(axis=0) - 0.5 * apart, atol=0.02
        )
    total, sums = forecast.total(), paths.sum(axis=1)
    np.testing.assert_allclose(total.mean(), forecast.mean().sum(), rtol=0.01)
    np.testing.assert_allclose(total.std(), sums.std(), rtol=0.06)
    for q in (0.1, 0.5, 0.9):
        np.testing.assert_allclose(total.quantile(q), np.quantile(sums, q), rtol=0.08, atol=0.05)


def test_a_bound_is_given_found_or_left_out() -> None:
    y = counts()

    def lowest(values: Array, bound: float | str | None) -> float:
        forecaster = Forecaster(lower_bound=bound).fit(values)
        return float(forecaster.forecast(3).quantile(1e-6).min())

    assert lowest(y, "auto") == 0.0
    assert lowest(y, None) < 0.0
    assert lowest(y, 0.0) == 0.0
    assert lowest(np.append(y, -1.0), "auto") < 0.0
    assert lowest(y + 0.2 * (y > 0), "auto") == 0.0  # amounts, some of which are 0
    assert lowest(y + 5.01, "auto") != 0.0
    assert lowest(y - 1.0, -1.0) == -1.0
    with pytest.raises(ValueError, match="lower_bound"):
        Forecaster(lower_bound=np.nan).fit(y)


def test_series_have_bounds_of_their_own() -> None:
    forecaster = Forecaster().fit({"counts": counts(), "others": counts() - 3.0})
    forecast = forecaster.forecast(3)
    low = forecast.quantile(1e-6)
    assert (low[0] == 0.0).all()
    assert (low[1] < -3.0).all()
    assert forecast.rvs(500, rng=0)[:, 1].min() < -3.0
    sums = forecast.total().quantile(1e-6)
    assert sums[0] >= 0.0 > sums[1]
    unbounded = Forecaster(lower_bound=None).fit(dict(zip("ab", forecaster.values_, strict=True)))
    np.testing.assert_allclose(forecast.total().mean()[1], unbounded.forecast(3).total().mean()[1])


def test_a_bound_in_a_stream_is_known_from_the_past_alone() -> None:
    y = np.append(counts(60), [-2.0, 0.0, 1.0])
    progress = Forecaster(seasonality=()).fit(y[:50]).forecast_then_learn(y[50:], h=1)
    assert (progress.low[:11] >= 0.0).all()
    assert (progress.low[11:] < 0.0).all()


def test_a_change_after_a_constant_stretch_is_no_explosion() -> None:
    for before, after in [(2.5, 2.25), (7.0, 8.0), (-7.5, 8.0)]:
        forecast = Forecaster().fit([before] * 60 + [after]).forecast(4)
        low, high = forecast.interval(0.95)
        assert (np.abs(forecast.median() - after) < abs(after - before)).all()
        assert (high - low < 4.0 * abs(after - before)).all()


def test_values_missing_at_the_end_make_forecasts_wide() -> None:
    y = np.cumsum(np.random.default_rng(1).normal(size=120))
    whole = Forecaster().fit(y).forecast(13)
    cut = Forecaster().fit(np.append(y, [np.nan] * 10)).forecast(3)
    assert cut.std() == pytest.approx(whole.std()[10:], rel=0.25)
    assert cut.median() == pytest.approx(whole.median()[10:], abs=0.5)


@pytest.mark.parametrize("seasonality", ["weekly", -7, 1, [7, None], np.nan])
def test_periods_that_are_none(seasonality: Any) -> None:
    with pytest.raises(ValueError, match=r"periods are numbers of steps, at least 2, as in"):
        Forecaster(seasonality=seasonality).fit(np.arange(20.0))


def test_each_season_that_was_given_and_is_longer_than_the_rows_is_named() -> None:
    y = np.random.default_rng(0).normal(size=60)
    with pytest.warns(ForecastWarning, match="shorter than two seasons of 365: forecasts go"):
        Forecaster(seasonality=(7, 365)).fit(y).forecast(3)


def test_holidays_that_are_no_codes() -> None:
    with pytest.raises(TypeError, match="holidays is 49: give the code of a country"):
        Forecaster(holidays=49).fit(np.arange(20.0))
