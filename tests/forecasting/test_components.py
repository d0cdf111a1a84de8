"""Components of a forecast: they add up, and their intervals hold."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.forecasting import Forecaster, Form

Array = np.ndarray
FORMS = [
    Form(1, (), (2.0, 8.0), waves=((7.0, 3),)),
    Form(7, (1, 2, 3)),
    Form(0, (1, 2, 3), drift=False, waves=((7.0, 3),)),
]
WEEK = np.array([0.0, 5.0, 10.0, 15.0, 40.0, 60.0, -130.0])


def make_series(n: int, seed: int = 0, slope: float = 0.0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    promotion = (rng.random(n) < 0.15).astype(float)
    trend = 300.0 + slope * np.arange(n)
    return (
        trend + WEEK[np.arange(n) % 7] + 50 * promotion + 5 * rng.normal(size=n),
        promotion,
        trend,
    )


@pytest.mark.parametrize("log", [False, True])
def test_they_add_up(log: bool) -> None:
    y, promotion, _ = make_series(154)
    forms = [
        Form(form.difference, form.lags, form.half_lives, log, waves=form.waves) for form in FORMS
    ]
    forecaster = Forecaster(seasonality=7, forms=forms, n_draws=8)
    forecast = forecaster.fit(y[:140], promotion[:140, None]).forecast(14, promotion[140:, None])
    parts = forecast.components()
    assert list(parts) == ["trend", "season 7", "x0"]
    whole = sum(part.mean() for part in parts.values())
    np.testing.assert_allclose(whole, forecast.mean(), rtol=0.01 if log else 1e-9)
    assert np.abs(parts["x0"].mean()[promotion[140:] == 1.0] - 50.0).max() < (30.0 if log else 15.0)
    np.testing.assert_allclose(parts["season 7"].mean()[:7].sum(), 0.0, atol=20.0)


def test_the_truth_is_inside() -> None:
    held: dict[str, list[bool]] = {}
    for seed in range(10):
        y, promotion, trend = make_series(147 + 14, seed, slope=0.1)
        forecaster = Forecaster(seasonality=7, forms=FORMS, n_draws=16)
        fitted = forecaster.fit(y[:147], promotion[:147, None])
        parts = fitted.forecast(14, promotion[147:, None]).components()
        truth = {"trend": trend, "season 7": WEEK[np.arange(161) % 7], "x0": 50.0 * promotion}
        for name, part in parts.items():
            low, high = part.interval(0.95)
            inside = (low - 1e-6 <= truth[name][147:]) & (truth[name][147:] <= high + 1e-6)
            held.setdefault(name, []).extend(inside.tolist())
    assert {name: np.mean(each) > 0.85 for name, each in held.items()} == dict.fromkeys(held, True)


def test_a_column_that_is_called_as_a_component_is_one_of_its_own() -> None:
    y, promotion, _ = make_series(147)
    table = {"ds": np.arange(147), "y": y, "trend": promotion}
    frame = pytest.importorskip("pandas").DataFrame(table)
    forecaster = Forecaster(seasonality=7, forms=FORMS, n_draws=8).fit(frame[:140])
    forecast = forecaster.forecast(7, frame[140:][["ds", "trend"]])
    parts = forecast.components()
    assert list(parts) == ["trend", "season 7", "column trend"]
    np.testing.assert_allclose(sum(part.mean() for part in parts.values()), forecast.mean())


def test_two_seasons_are_told_apart() -> None:
    t, rng = np.arange(24 * 28 + 48), np.random.default_rng(0)
    day, week = 10.0 * np.sin(2 * np.pi * t / 24), 20.0 * (t // 24 % 7 >= 5)
    y = 100.0 + day + week + rng.normal(size=len(t))
    parts = Forecaster(seasonality=(24, 168), n_draws=8).fit(y[:-48]).forecast(48).components()
    np.testing.assert_allclose(parts["season 24"].mean(), day[-48:], atol=3.0)
    np.testing.assert_allclose(parts["season 168"].mean(), week[-48:] - 40.0 / 7.0, atol=6.0)
    np.testing.assert_allclose(parts["trend"].mean(), 100.0 + 40.0 / 7.0, atol=4.0)


def test_without_seasons_all_is_trend() -> None:
    y = np.cumsum(np.random.default_rng(0).normal(size=60))
    forecast = Forecaster(seasonality=(), forms=[Form(drift=False)]).fit(y).forecast(5)
    parts = forecast.components()
    np.testing.assert_allclose(parts["trend"].mean(), forecast.mean())
    low, high = parts["trend"].interval()
    assert (high - low >= 0.99 * np.ptp(forecast.interval(), axis=0)).all()


def test_some_series_have_the_components_that_they_have_among_all() -> None:
    rows = {name: make_series(140, seed)[0] for seed, name in enumerate("abc")}
    forecast = Forecaster(seasonality=7, forms=FORMS, n_draws=8).fit(rows).forecast(7)
    whole, one = forecast.components(), forecast.select(["b"]).components()
    np.testing.assert_allclose(one["trend"].mean()[0], whole["trend"].mean()[1])
    assert whole.to_columns()["unique_id"].tolist() == ["a"] * 7 + ["b"] * 7 + ["c"] * 7
    assert "season 7-lo-95" in whole.to_columns()
    assert repr(one).startswith("Components(trend ")
    with pytest.raises(KeyError, match="there are \\['trend', 'season 7'\\]"):
        one["season 12"]


def test_rows_that_were_not_observed_change_little() -> None:
    y, _, trend = make_series(140)
    y[-3:] = np.nan
    parts = Forecaster(seasonality=7, forms=FORMS, n_draws=8).fit(y).forecast(7).components()
    np.testing.assert_allclose(parts["trend"].mean(), trend[:7], atol=15.0)
