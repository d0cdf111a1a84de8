"""What exogenous columns have is taken off before lags look at the series."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from posterity.forecasting import Forecaster, Form

Array = np.ndarray


def series(seed: int, n: int = 134) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    errors = rng.normal(0.0, 3.0, n)
    for row in range(1, n):
        errors[row] += 0.6 * errors[row - 1]
    return 200.0 + errors, (rng.random(n) < 0.15).astype(float)[:, None]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("effect", [3.0, 15.0, 150.0])
def test_a_known_effect_makes_no_interval_wider(effect: float, log: bool) -> None:
    ratios, errors = [], []
    for seed in range(8):
        y, sale = series(seed)
        sold = y * np.exp(effect / 150.0 * sale[:, 0]) if log else y + effect * sale[:, 0]
        forms = [Form(1, (1, 2, 3), log=log)]
        fitted = Forecaster(forms=forms, n_draws=16).fit(sold[:120], sale[:120])
        plain = Forecaster(forms=forms, n_draws=16).fit(y[:120])
        one, other = fitted.forecast(14, 0.0 * sale[120:]), plain.forecast(14)
        ratios.append(
            np.mean(np.ptp(one.interval(0.95), axis=0) / np.ptp(other.interval(), axis=0))
        )
        errors.append(np.mean(np.abs(one.median() - other.median())))
    assert 0.9 < np.mean(ratios) < 1.1
    assert np.mean(errors) < 1.5


def test_adding_a_multiple_of_a_column_adds_it_to_the_forecast() -> None:
    y, sale = series(0)
    forms = [Form(1, (1, 2)), Form(7, (1, 7))]
    base = Forecaster(forms=forms).fit(y[:120], sale[:120]).forecast(14, sale[120:])
    shifted = Forecaster(forms=forms).fit(y[:120] + 1e4 * sale[:120, 0], sale[:120])
    more = shifted.forecast(14, sale[120:])
    # But for the shrinkage of so large an effect.
    np.testing.assert_allclose(more.median() - 1e4 * sale[120:, 0], base.median(), atol=3.0)


def test_progress_is_what_was_known_before() -> None:
    y, sale = series(1)
    forms = [Form(1, (1, 2)), Form(1, (1,), log=True)]
    model = Forecaster(forms=forms, n_draws=8).fit(y[:100] + 50.0 * sale[:100, 0], sale[:100])
    progress = model.before(0).forecast_then_learn(
        y[100:] + 50.0 * sale[100:, 0], 5, sale[100:], level=0.9
    )
    first = model.forecast(5, sale[100:105])
    np.testing.assert_allclose(progress.median[0, 0], first.median(), rtol=1e-9)
    low, high = first.interval(0.9)
    np.testing.assert_allclose(progress.low[0, 0], low, rtol=1e-9)
    np.testing.assert_allclose(progress.high[0, 0], high, rtol=1e-9)
    assert 0.8 < progress.by_step()["coverage"].mean() <= 1.0


def test_a_column_with_a_season_of_its_own_is_no_season_of_the_series() -> None:
    y, _ = series(2)
    payday = (np.arange(134) % 10 == 3).astype(float)[:, None]
    sold = y + 60.0 * payday[:, 0]
    assert Forecaster().fit(sold).periods_ == (10,)
    assert 10 not in Forecaster().fit(sold, payday).periods_


def test_what_a_column_did_days_ago_has_effects() -> None:
    """A sale that takes from the next day, beside least squares that know the lag."""
    ours, theirs = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        sale = (rng.random(214) < 0.12).astype(float)
        before = np.append(0.0, sale[:-1])
        y = 100.0 + 60.0 * sale - 30.0 * before + 5.0 * rng.normal(size=214)
        forecast = Forecaster(seasonality=7).fit(y[:200], sale[:200]).forecast(14, sale[200:, None])
        design = np.column_stack([np.ones(214), sale, before])
        right = design[200:] @ np.linalg.lstsq(design[:200], y[:200], rcond=None)[0]
        ours.append(np.abs(forecast.median() - y[200:]).mean())
        theirs.append(np.abs(right - y[200:]).mean())
    assert np.mean(ours) < 1.1 * np.mean(theirs)


def test_lags_of_columns_are_those_of_columns_shifted_by_hand() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=92)
    before = np.concatenate([x[:1], x[:-1]])
    y = 3.0 * x + 2.0 * before + 0.5 * rng.normal(size=92)
    form = Form(0, (1,), drift=False)
    lagged = replace(form, column_lags=(1,))
    one = Forecaster(forms=[lagged]).fit(y[:80], x[:80]).forecast(12, x[80:, None])
    both = np.column_stack([x, before])
    other = Forecaster(forms=[form]).fit(y[:80], both[:80]).forecast(12, both[80:])
    np.testing.assert_allclose(one.interval(0.9), other.interval(0.9), rtol=1e-6, atol=1e-6)
