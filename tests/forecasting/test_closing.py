"""Days on which a series is always 0 are known ahead, and say nothing of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs pandas")
import pandas as pd

from posterity.files import dumps, loads
from posterity.forecasting import Forecaster, Form, reconcile
from posterity.forecasting.closed_days import find_closed
from posterity.forecasting.panel import Panel

Array = np.ndarray
FORMS = [
    Form(7, (1, 2, 3)),
    Form(1, (), (2.0, 8.0), log=True, waves=((7.0, 3),)),
    Form(0, (1,), drift=False, log=True, waves=((7.0, 3),)),
]
DAYS = pd.date_range("2025-01-01", periods=182)
SUNDAY = np.asarray(DAYS.day_of_week == 6)


def make_sales(seed: int = 0, noise: float = 0.05) -> Array:
    """Multiplied by weekday, and 0 on Sundays."""
    week = np.array([1.0, 0.9, 0.95, 1.0, 1.3, 1.5, 0.0])[DAYS.day_of_week]
    return 200.0 * week * np.exp(noise * np.random.default_rng(seed).normal(size=len(DAYS)))


def find_places(values: Array) -> list[int]:
    closing = find_closed(Panel.of_arrays({"a": values}), (7,))
    return np.flatnonzero(closing.places[0][0]).tolist() if closing.places else []


def test_closed_days_are_zero_and_others_as_if_these_were_missing() -> None:
    y = make_sales()
    without = np.where(SUNDAY, np.nan, y)
    h = 14
    forecaster = Forecaster(seasonality=7, forms=FORMS, n_draws=8)
    one = forecaster.fit(pd.Series(y[:-h], index=DAYS[:-h])).forecast(h)
    other = forecaster.fit(pd.Series(without[:-h], index=DAYS[:-h])).forecast(h)
    shut = SUNDAY[-h:]
    for of in ("median", "mean", "std"):
        np.testing.assert_allclose(getattr(one, of)()[~shut], getattr(other, of)()[~shut])
        assert (getattr(one, of)()[shut] == 0.0).all()
    assert (one.rvs(50, random_state=0)[:, shut] == 0.0).all()
    assert (one.cdf(np.zeros(h))[shut] == 1.0).all()
    assert (one.cdf(-np.ones(h))[shut] == 0.0).all()
    assert (one.logpdf(np.zeros(h))[shut] == 0.0).all()
    np.testing.assert_allclose(one.crps(y[-h:])[~shut], other.crps(y[-h:])[~shut])
    np.testing.assert_allclose(one.crps(np.full(h, 3.0))[shut], 3.0)
    np.testing.assert_array_equal(one.interval()[1][shut], 0.0)


def test_sums_leave_closed_days_out() -> None:
    y = make_sales(noise=0.02)
    forecast = Forecaster(seasonality=7, forms=FORMS).fit(pd.Series(y, index=DAYS)).forecast(14)
    np.testing.assert_allclose(forecast.total().mean(), forecast.mean().sum(), rtol=1e-3)
    drawn = forecast.rvs(4000, random_state=0).sum(axis=1)
    np.testing.assert_allclose(forecast.total().std()[0], drawn.std(), rtol=0.1)
    assert 0.9 * 1330.0 * 2 < forecast.total().mean()[0] < 1.1 * 1330.0 * 2


def test_components_add_up_to_zero_on_closed_days() -> None:
    y = make_sales()
    forecast = Forecaster(seasonality=7, forms=FORMS).fit(pd.Series(y, index=DAYS)).forecast(14)
    parts = forecast.components()
    assert list(parts) == ["trend", "season 7", "closed"]
    whole = sum(part.mean() for part in parts.values())
    shut = forecast.median() == 0.0
    assert shut.sum() == 2
    np.testing.assert_allclose(whole[shut], 0.0, atol=1e-9)
    np.testing.assert_allclose(whole[~shut], forecast.mean()[~shut], rtol=0.02)
    assert (parts["closed"].mean()[~shut] == 0.0).all()


def test_what_is_closed() -> None:
    y = make_sales()
    sundays = np.unique(np.flatnonzero(SUNDAY) % 7).tolist()
    assert find_places(y) == sundays
    opened = y.copy()
    opened[np.flatnonzero(SUNDAY)[10]] = 50.0
    assert find_places(opened) == []
    few = np.where(np.arange(len(y)) % 7 == sundays[0], y, np.maximum(y, 1.0))
    assert find_places(few[-22:]) == []  # three Sundays
    demand = np.random.default_rng(0).poisson(0.2, 182).astype(float)
    assert find_places(demand) == []
    assert find_places(np.where(SUNDAY, 0.0, -y)) == []
    assert find_places(np.zeros(100)) == []


def test_a_column_may_say_what_is_closed() -> None:
    rng = np.random.default_rng(0)
    shut = rng.random(182) < 0.05
    y = np.where(shut, 0.0, 50.0 + rng.normal(size=182))
    forecaster = Forecaster(seasonality=(), forms=[Form(0, drift=False, log=True)])
    forecast = forecaster.fit(y[:170], shut[:170, None].astype(float))
    coming = np.zeros((12, 1))
    coming[3] = 1.0
    median = forecast.forecast(12, coming).median()
    assert median[3] == 0.0
    np.testing.assert_allclose(np.delete(median, 3), 50.0, atol=2.0)


def test_rows_parts_files_and_progress_agree() -> None:
    y = pd.Series(make_sales(), index=DAYS)
    new: dict[str, Any] = {"seasonality": 7, "forms": FORMS, "n_draws": 8}
    whole = Forecaster(**new).fit(y)
    parts = Forecaster(**new).fit(y[:150]).partial_fit(y[150:170])
    for value in y[170:]:
        parts.learn_one(value)
    expected = whole.forecast(8).median()
    np.testing.assert_allclose(parts.forecast(8).median(), expected)
    np.testing.assert_array_equal(loads(dumps(whole)).forecast(8).median(), expected)
    progress = Forecaster(**new).fit(y[:150]).forecast_then_learn(y[150:], 3)
    shut = np.flatnonzero(SUNDAY[150:])
    assert (progress.high[shut, 0, 0] == 0.0).all()
    assert (progress.crps[shut, 0, 0] == 0.0).all()
    assert (progress.crps[:-3].mean()) < 10.0


def test_shops_of_which_one_is_closed_add_up() -> None:
    both = {"a": make_sales(0), "b": np.where(SUNDAY, 80.0, 0.0) + make_sales(1)}
    frame = pd.DataFrame({"ds": DAYS, **both})
    forecast = Forecaster(forms=FORMS, n_draws=8).fit(frame).forecast(7)
    agreed = reconcile(forecast, {"all": ["a", "b"]})
    np.testing.assert_allclose(agreed.mean()[2], agreed.mean()[:2].sum(axis=0))
    closed = forecast.median()[0] == 0.0
    assert closed.sum() == 1
    assert (forecast.median()[1] > 0.0).all()
    np.testing.assert_allclose(forecast.covariance()[closed, 0], 0.0)
