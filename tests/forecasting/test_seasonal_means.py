"""Forms that look at the same place in earlier seasons, and the power of the weights."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.forecasting import Forecaster, Form, rows
from posterity.forecasting.choosing import choose_forms
from posterity.forecasting.panel import Panel
from posterity.forecasting.rows import Levels
from posterity.forecasting.trials import TrialScores
from posterity.forecasting.weighing import POWERS, choose_power, compare_without_each


def test_the_window_is_that_of_means_of_the_same_weekday() -> None:
    rng = np.random.default_rng(0)
    z, form = rng.normal(size=200), Form(7, seasonal_half_lives=(2.0,))
    weights = 0.5 ** (np.arange(6) / 2.0)
    weights /= weights.sum()
    same, last_week = form.window.T @ z[::-1][: form.length]
    weekdays = z[-7 * np.arange(1, 7)]
    weeks = z[-42:].reshape(6, 7).mean(axis=1)[::-1]
    assert form.length == 42
    assert same == pytest.approx(weights @ weekdays - weekdays[0])
    assert last_week == pytest.approx(weeks[0] - weights @ weeks)


def test_a_constant_or_a_season_that_returns_changes_nothing_but_the_forecast() -> None:
    """Both columns are differences: they are 0 of a season that returns."""
    form = Form(7, seasonal_half_lives=(2.0, 8.0))
    week = np.tile(np.arange(7.0), 30)[: form.length]
    np.testing.assert_allclose(form.window.T @ week, 0.0, atol=1e-12)


def test_forms_of_long_seasons_are_left_out_of_short_series() -> None:
    assert any(form.seasonal_half_lives for form in choose_forms(700, (7,)))
    assert not any(form.seasonal_half_lives for form in choose_forms(60, (7,)))
    assert str(Form(7, seasonal_half_lives=(2, 8))) == "difference 7, means of seasons 2, 8"


def test_what_such_forms_need() -> None:
    with pytest.raises(ValueError, match="means over seasons need a season: give difference"):
        Form(seasonal_half_lives=(2.0,))
    with pytest.raises(ValueError, match="half-lives must be positive"):
        Form(7, seasonal_half_lives=(0.0,))


@pytest.mark.slow
def test_a_week_with_noise_is_forecast_nearly_as_well_as_by_its_means() -> None:
    rng = np.random.default_rng(1)
    week = np.array([80.0, 90.0, 95.0, 100.0, 125.0, 150.0, 60.0])
    days = np.arange(728)
    error = {"ours": 0.0, "truth": 0.0, "eight": 0.0}
    held = 0.0
    for _ in range(8):
        y = week[days % 7] + 20.0 * rng.normal(size=728)
        forecast = Forecaster(seasonality=7).fit(y[:700]).forecast(28)
        error["ours"] += np.abs(np.ravel(forecast.median()) - y[700:]).mean()
        error["truth"] += np.abs(week[days[700:] % 7] - y[700:]).mean()
        last = y[644:700].reshape(8, 7).mean(axis=0)
        error["eight"] += np.abs(np.tile(last, 4) - y[700:]).mean()
        low, high = forecast.interval(0.8)
        held += np.mean((np.ravel(low) <= y[700:]) & (y[700:] <= np.ravel(high))) / 8
    assert error["ours"] < error["eight"]
    assert error["ours"] < 1.05 * error["truth"]
    assert 0.7 < held < 0.9


def scores_of(sds: tuple[float, ...], *, series: int, windows: int, seed: int) -> TrialScores:
    """Forms whose errors have these sds, each with noise of its own."""
    rng = np.random.default_rng(seed)
    shape = (len(sds), series, windows, 12)
    outcomes = rng.normal(size=shape[1:])
    mean = np.array(sds)[:, None, None, None] * rng.normal(size=shape)
    crps = np.abs(mean - outcomes)
    none = np.full(shape, np.nan)
    log = np.zeros(len(sds), dtype=bool)
    return TrialScores(mean, np.ones(shape), crps, none, outcomes, log)


def find_power(tried: TrialScores) -> float:
    usable = np.ones(tried.crps.shape[:2], dtype=bool)
    return choose_power(tried, compare_without_each(tried, usable))


def test_the_power_is_large_only_where_some_forms_are_better() -> None:
    alike, unlike = [
        [find_power(scores_of(sds, series=20, windows=3, seed=seed)) for seed in range(10)]
        for sds in ((1.0,) * 6, (0.1, *(2.0,) * 5))
    ]
    assert np.median(alike) == POWERS[0]
    assert min(unlike) > POWERS[0]


def test_a_single_window_says_nothing_of_the_power() -> None:
    tried = scores_of((0.1, 2.0), series=5, windows=1, seed=0)
    assert find_power(tried) == POWERS[0]


@pytest.mark.parametrize(
    "form", [Form(24, (1, 2), (30.0,), seasonal_half_lives=(12.0,)), Form(1, (), (3.0, 80.0))]
)
def test_long_means_are_the_same_by_filters(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    """All columns at once, and one value after the other, of a series far from 0 with gaps."""
    rng = np.random.default_rng(0)
    values = 1e5 + np.cumsum(rng.normal(size=(2, 3000)), axis=1)
    values[0, :700] = np.nan
    values[1, 1500:1510] = np.nan
    levels = Levels.of(Panel.of_arrays({"a": values[0], "b": values[1]}), log=False)
    triangles = []
    for most in (1_000, 10**9):
        monkeypatch.setattr(rows, "MANY_COLUMNS", most)
        bank = rows.make_bank(form, levels)
        rows.learn(bank, levels, form, 0, 3000)
        triangles.append(bank.triangles.copy())
    scale = np.abs(triangles[1]).max()
    np.testing.assert_allclose(triangles[0], triangles[1], rtol=1e-7, atol=1e-9 * scale)
