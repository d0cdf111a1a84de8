"""Intervals of forecasts that hold at each step ahead."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from posterity.calibration import ConformalForecaster
from posterity.files import dumps, loads
from posterity.forecasting import Forecaster, Form

Array = NDArray[np.float64]
WALK = [Form(drift=False)]


def wilder(n: int = 500, first: int = 80) -> Array:
    """A walk whose steps are soon three times as large."""
    rng = np.random.default_rng(0)
    return np.cumsum(np.where(np.arange(n) < first, 1.0, 3.0) * rng.normal(size=n))


def test_intervals_hold_at_each_step() -> None:
    y = wilder()
    known = Forecaster(forms=WALK, n_draws=8).fit(y[:80])
    plain = known.before(0).forecast_then_learn(y[80:], 4).by_step()["coverage"]
    conformal = ConformalForecaster(known, horizon=4)
    held = conformal.forecast_then_learn(y[80:]).by_step()["coverage"]
    assert (plain < 0.92).all()
    assert (held > plain).all()
    assert (np.abs(held - 0.95) < 0.025).all()
    low, high = conformal.interval()
    own_low, own_high = conformal.model_.forecast(4).interval(0.95)
    assert low.shape == (4,)
    assert (high - low > own_high - own_low).all()
    assert known.n_observations_ == 80  # what was given is as it was


def test_ends_know_only_what_has_come() -> None:
    y = wilder(140)
    other = y.copy()
    other[120:] += 50.0
    predictive = [
        ConformalForecaster(Forecaster(forms=WALK, n_draws=8).fit(y[:80]), horizon=3)
        .forecast_then_learn(values[80:])
        for values in (y, other)
    ]  # fmt: skip
    for name in ("low", "high", "median"):
        first, second = (getattr(each, name) for each in predictive)
        np.testing.assert_allclose(first[:41], second[:41], rtol=1e-10)
        assert (first[42:, :, 0] != second[42:, :, 0]).any()


def test_what_is_learned_goes_on() -> None:
    """In two parts; ends begin as the forecaster's own."""
    y = wilder(200)
    known = Forecaster(forms=WALK, n_draws=8).fit(y[:80])
    parts = ConformalForecaster(known, horizon=1)
    first = parts.forecast_then_learn(y[80:140])
    np.testing.assert_allclose(first.low[0, 0], known.forecast(1).interval(0.95)[0], rtol=1e-8)
    parts.forecast_then_learn(y[140:])
    whole = ConformalForecaster(known, horizon=1)
    whole.forecast_then_learn(y[80:])
    # Forms are weighed anew where the second part begins: widths differ a little.
    widths = [np.subtract(*each.interval()[::-1]) for each in (parts, whole)]
    np.testing.assert_allclose(widths[0], widths[1], rtol=0.03)


def test_it_is_kept_in_a_file() -> None:
    y = wilder(120)
    conformal = ConformalForecaster(Forecaster(forms=WALK, n_draws=8).fit(y[:80]), horizon=2)
    conformal.forecast_then_learn(y[80:110])
    again = loads(dumps(conformal))
    for each in (conformal, again):
        each.forecast_then_learn(y[110:])
    np.testing.assert_array_equal(again.interval(), conformal.interval())


def test_many_series_and_values_that_are_missing() -> None:
    y = np.stack([wilder(160), wilder(160)[::-1]], axis=1)
    y[100, 0] = np.nan
    conformal = ConformalForecaster(Forecaster(forms=WALK, n_draws=8).fit(y[:80]), horizon=2)
    predictive = conformal.forecast_then_learn(y[80:])
    assert np.isnan(predictive.pit[20, 0, 0])
    assert np.isfinite(predictive.low[:79]).all()
    assert conformal.interval()[0].shape == (2, 2)


def test_what_is_refused() -> None:
    known = Forecaster(forms=WALK, n_draws=8).fit(wilder(90)[:80])
    with pytest.raises(NotFittedError, match="forecast_then_learn first"):
        ConformalForecaster(known, horizon=2).interval()
    with pytest.raises(ValueError, match="level is 95"):
        ConformalForecaster(known, horizon=2, level=95).forecast_then_learn([1.0])
    with pytest.raises(ValueError, match="rate is 0"):
        ConformalForecaster(known, horizon=2, rate=0.0).forecast_then_learn([1.0])
    with pytest.raises(ValueError, match="horizon must be a whole number"):
        ConformalForecaster(known, horizon=0).forecast_then_learn([1.0])
    conformal = ConformalForecaster(known, horizon=2)
    conformal.forecast_then_learn(wilder(90)[80:])
    before = conformal.interval()
    with pytest.raises(ValueError, match="infinite"):
        conformal.forecast_then_learn([1.0, np.inf])
    np.testing.assert_array_equal(conformal.interval(), before)
