"""Forms that start from a level, and waves: rows, posterior and paths beside least squares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from posterity.factor import Factor
from posterity.forecasting import Forecaster, Form
from posterity.forecasting.choosing import choose_forms
from posterity.forecasting.panel import Panel
from posterity.forecasting.posterior import Posterior, Prior
from posterity.forecasting.rows import Levels, learn, make_bank, n_columns

Array = np.ndarray
YEAR = 365.2425


def make_design(form: Form, y: Array, first: int, stop: int) -> Array:
    """The known columns and lags of a form at steps, written down: [level, lags, waves]."""
    t = np.arange(first, stop)
    columns = [np.ones(len(t))] + ([t / 100.0] if form.drift else [])
    columns += [y[t - lag] for lag in form.lags]
    for period, count in form.waves:
        columns += [np.cos(2.0 * np.pi * k * t / period) for k in range(1, count + 1)]
        columns += [np.sin(2.0 * np.pi * k * t / period) for k in range(1, count + 1)]
    return np.column_stack(columns)


@pytest.mark.parametrize("drift", [False, True])
def test_rows_and_coefficients_are_those_of_least_squares(drift: bool) -> None:
    """With a prior that is nearly flat; the level is as flat under any."""
    rng = np.random.default_rng(0)
    y = 50.0 + 3.0 * np.sin(2.0 * np.pi * np.arange(200) / 7.5) + rng.normal(size=200)
    form = Form(0, (1, 3), drift=drift, waves=((7.5, 2),))
    levels = Levels.of(Panel.of_arrays({"a": y}), log=False)
    bank = make_bank(form, levels)
    learn(bank, levels, form, 0, 200)
    p = n_columns(form, levels)
    X, target = make_design(form, y, 3, 200), y[3:]
    factor = Factor(p)
    factor.append(X.copy(), target[:, None])
    triangle = bank.triangles[:, :, : p + 1]
    np.testing.assert_allclose(np.abs(triangle[0]), np.abs(factor.triangle[:, : p + 1]), atol=1e-9)
    free = form.n_free
    flat = Prior(np.zeros(p - free), 1e6 * np.eye(p - free))
    expected = np.linalg.lstsq(X, target, rcond=None)[0]
    posterior = Posterior.of(triangle, bank.count, flat, form)
    np.testing.assert_allclose(posterior.coefficients()[0], expected, rtol=1e-4, atol=1e-5)
    draws = posterior.draws(4096)
    residual = target - X @ expected
    variance = residual @ residual / (len(X) - p)
    np.testing.assert_allclose(
        draws.coefficients[0].std(axis=0),
        np.sqrt(variance * np.diag(np.linalg.inv(X.T @ X))),
        rtol=0.08,
    )


def test_adding_a_constant_moves_the_forecast_by_it() -> None:
    y = np.random.default_rng(1).normal(size=80)
    forms = [Form(0, (1, 2)), Form(0, (1,), drift=False)]
    one = Forecaster(forms=forms).fit(y).forecast(5)
    other = Forecaster(forms=forms).fit(y + 1e4).forecast(5)
    np.testing.assert_allclose(other.interval(0.9), np.array(one.interval(0.9)) + 1e4, rtol=1e-8)


def test_a_stable_series_has_the_interval_of_its_noise_far_ahead() -> None:
    """And the total of h steps one of sqrt(h) times that, but for the level's own error."""
    widths, totals = [], []
    for seed in range(8):
        y = 100.0 + 5.0 * np.random.default_rng(seed).normal(size=400)
        forecast = Forecaster(forms=[Form(0, (1, 2, 3), drift=False)]).fit(y).forecast(30)
        low, high = forecast.interval(0.95)
        widths.append(np.mean(high - low))
        low, high = forecast.total().interval(0.95)
        totals.append(float(high[0] - low[0]))
    assert np.mean(widths) == pytest.approx(2.0 * 1.96 * 5.0, rel=0.05)
    assert np.mean(totals) == pytest.approx(2.0 * 1.96 * 5.0 * np.sqrt(30.0), rel=0.2)


def test_exogenous_columns_explain_a_stable_series_as_least_squares_does() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=90)
    y = 50.0 + 5.0 * x + rng.normal(size=90)
    model = Forecaster(forms=[Form(0, drift=False)]).fit(y[:80], X=x[:80])
    X = np.column_stack([np.ones(80), x[:80]])
    level, slope = np.linalg.lstsq(X, y[:80], rcond=None)[0]
    found = model.forecast(10, X_future=x[80:, None]).median()
    np.testing.assert_allclose(found, level + slope * x[80:], atol=0.05)


def test_days_of_some_years_have_the_season_of_a_year() -> None:
    """Two years of days, not one; and its course is found within a part of the noise."""
    days = pd.date_range("2020-01-01", periods=4 * 365 + 90)
    t = np.arange(len(days))
    course = 100.0 + 20.0 * np.sin(2.0 * np.pi * t / YEAR) + 5.0 * (t % 7 >= 5)
    y = course + 2.0 * np.random.default_rng(3).normal(size=len(t))
    assert Forecaster().fit(pd.Series(y[:700], index=days[:700])).periods_ == (7,)
    model = Forecaster().fit(pd.Series(y[:-90], index=days[:-90]))
    assert model.periods_ == (7, YEAR)
    forecast = model.forecast(90)
    low, high = forecast.interval(0.95)
    assert np.abs(forecast.median() - course[-90:]).mean() < 0.6
    assert np.mean(high - low) < 1.2 * 2.0 * 1.96 * 2.0
    assert 0.88 < np.mean((low <= y[-90:]) & (y[-90:] <= high)) <= 1.0


def test_a_season_need_not_be_whole() -> None:
    t = np.arange(300)
    course = 10.0 * np.sin(2.0 * np.pi * t / 33.3)
    y = course + np.random.default_rng(4).normal(size=300)
    forecast = Forecaster(seasonality=33.3).fit(y[:270]).forecast(30)
    assert np.abs(forecast.median() - course[270:]).mean() < 1.0
    assert any(form.waves == ((33.3, 10),) for form in choose_forms(270, (33.3,)))


def test_weeks_have_one_season_of_a_year() -> None:
    forms = choose_forms(300, (52, 52.1775))
    assert not any((52.0, 12) in form.waves for form in forms)
    assert any(form.difference == 52 for form in forms)
