"""Values far from all others: found when they come, left out of forecasts, and said."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity.forecasting import Forecaster, ForecastWarning, VectorAutoregression
from posterity.forecasting.moves import Moves
from posterity.forecasting.outliers import find_outliers, leave_out_outliers
from posterity.forecasting.panel import OUTLIER, STEP, Panel, find_steps

Array = np.ndarray


def seasonal(seed: int, n: int = 160) -> Array:
    rng = np.random.default_rng(seed)
    return 100.0 + 10.0 * np.sin(2.0 * np.pi * np.arange(n) / 7.0) + rng.normal(0.0, 3.0, n)


def with_glitches(seed: int, n: int, size: float, missing: float) -> Array:
    rng = np.random.default_rng(seed)
    y = np.round(rng.normal(0.0, 3.0, n).cumsum(), int(rng.integers(0, 3)))
    places = rng.integers(0, n, rng.integers(0, 5))
    y[places] += size * rng.choice([-1.0, 1.0, 1.0], len(places))
    y[rng.random(n) < missing] = np.nan
    return y


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([0.0, 60.0, 200.0, 1e6, 1e200]),
    missing=st.sampled_from([0.0, 0.2]),
)
def test_many_series_are_as_one_and_no_value_waits_for_the_next(
    seed: int, size: float, missing: float
) -> None:
    y = np.stack([with_glitches(seed + k, 90, size, missing) for k in range(3)])
    found = find_outliers(y, (7,))
    for values, own in zip(y, found, strict=True):
        np.testing.assert_array_equal(own, find_outliers(values[None], (7,))[0])
        assert not own[np.isnan(values)].any()
    for stop in (30, 60):
        # Whether the level has moved with a value is known when the next one comes.
        before = find_outliers(y[:, :stop], (7,)) > 0
        np.testing.assert_array_equal(found[:, :stop] > 0, before)


@pytest.mark.parametrize(
    ("change", "ignored"),
    [
        (lambda y: y, []),
        (lambda y: np.where(np.arange(160) == 90, 1e6, y), [90]),
        (lambda y: np.where(np.arange(160) == 90, -400.0, y), [90]),
        (lambda y: np.where(np.arange(160) >= 90, y + 900.0, y), [90]),  # the level moves
        (lambda y: np.where(np.isin(np.arange(160), [90, 130]), 1e6, y), [90, 130]),
        (lambda y: np.where(np.isin(np.arange(160), [90, 91]), 1e6, y), [90, 92]),  # and back
        (lambda y: np.where(np.arange(160) == 15, 1e6, y), []),  # too early to tell
        (lambda y: np.where(np.arange(160) == 90, 115.0, y), []),  # not so far
        (lambda y: np.where(np.arange(160) == 90, 160.0, y), [90]),
        (lambda y: np.where(np.arange(160) % 10 == 9, 1e6, 0.0), []),  # rare demand
        (lambda y: np.exp(2.0 * (y - 100.0) / 3.0), []),  # far in units, not in logarithms
        (lambda y: np.full(160, 5.0), []),
    ],
)
def test_which_values_are_left_out(change: object, ignored: list[int]) -> None:
    found = find_outliers(change(seasonal(0))[None], (7,))[0]  # type: ignore[operator]
    rest = [place for place in np.flatnonzero(found) if place < 140 or place in ignored]
    assert rest == ignored


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_forecasts_are_those_of_a_missing_value(size: float) -> None:
    y = seasonal(1)
    glitch, gap = y.copy(), y.copy()
    glitch[120], gap[120] = size, np.nan
    with pytest.warns(ForecastWarning, match=r"of the series at 120 is far from what"):
        forecast = Forecaster().fit(glitch).forecast(7)
    expected = Forecaster().fit(gap).forecast(7)
    np.testing.assert_array_equal(forecast.interval(0.95), expected.interval(0.95))
    learned = Forecaster(outliers="learn").fit(glitch).forecast(7)
    low, high = forecast.interval(0.95)
    assert np.mean(np.ptp(learned.interval(0.95), axis=0)) > 1.5 * np.mean(high - low)


def test_what_is_left_out_can_be_seen_and_stays_in_the_values() -> None:
    y = seasonal(2)
    y[100] = 1e6
    forecaster = Forecaster().fit({"a": y, "b": seasonal(3)})
    assert np.argwhere(forecaster.outliers_).tolist() == [[0, 100]]
    assert forecaster.values_[0, 100] == 1e6
    assert not Forecaster(outliers="learn").fit(y).outliers_.any()


def test_rows_in_parts_leave_out_the_same() -> None:
    y = seasonal(4)
    y[[80, 140]] = 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForecastWarning)
        whole = Forecaster(n_draws=8).fit(y)
        parts = Forecaster(n_draws=8).fit(y[:80])
        for value in y[80:85]:
            parts.learn_one(value)
        parts.partial_fit(y[85:])
        np.testing.assert_array_equal(parts.outliers_, whole.outliers_)
        np.testing.assert_array_equal(parts.predict(3), whole.predict(3))
        progress = Forecaster(n_draws=8).fit(y[:120]).forecast_then_learn(y[120:], 3)
    assert progress.outcomes[20, 0, 0] == 1e6  # what came is compared with its forecast
    assert progress.p_values()[20, 0, 0] < 1e-12
    assert np.nanmax(progress.high - progress.low) < 60.0


def test_exogenous_columns_may_explain_what_is_far() -> None:
    y, sale = seasonal(5), (np.arange(160) % 50 == 45).astype(float)
    y += 2000.0 * sale
    forecaster = Forecaster(n_draws=8).fit(y, sale[:, None])
    assert not forecaster.outliers_.any()
    assert Forecaster(n_draws=8).fit(y).outliers_.any()
    assert forecaster.forecast(1, [[1.0]]).median()[0] == pytest.approx(2092.0, abs=10.0)
    y[120] = 1e6  # no sale
    again = Forecaster(n_draws=8).fit(y, sale[:, None])
    assert np.flatnonzero(again.outliers_).tolist() == [120]
    with pytest.warns(ForecastWarning, match="at 120 is far"):
        median = again.forecast(1, [[1.0]]).median()
    assert median[0] == pytest.approx(2092.0, abs=10.0)


def test_signals_that_follow_each_other() -> None:
    rng = np.random.default_rng(6)
    y = rng.normal(size=(120, 2))
    for row in range(1, 120):
        y[row] += 0.6 * y[row - 1, ::-1]
    plain = VectorAutoregression(n_draws=16).fit(y).forecast(4).interval(0.95)
    y[70, 0] = 1e6
    with pytest.warns(ForecastWarning, match="is far from what the values before"):
        low, high = VectorAutoregression(n_draws=16).fit(y).forecast(4).interval(0.95)
    assert (high - low).mean() < 1.3 * (plain[1] - plain[0]).mean()
    learned = VectorAutoregression(n_draws=16, outliers="learn").fit(y).forecast(4)
    assert np.ptp(learned.interval(0.95), axis=0)[0].min() > 1e4


@pytest.mark.parametrize("model", [Forecaster, VectorAutoregression])
def test_an_unknown_choice(model: type) -> None:
    with pytest.raises(ValueError, match=r'outliers is "?.*: give "ignore" to leave out'):
        model(outliers="drop").fit(np.arange(20.0)[:, None].repeat(2, axis=1))


@pytest.mark.parametrize("factor", [0.3, 3.0])
@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
def test_a_level_that_moves_is_followed(factor: float) -> None:
    """Six months after a closure, the season is that of before: at the new level."""
    errors, widths, held = [], [], []
    for seed in range(6):
        t = np.arange(72)
        course = 200.0 + 50.0 * np.sin(2.0 * np.pi * t / 12)
        course[54:] *= factor
        y = course + 5.0 * np.random.default_rng(seed).normal(size=72)
        model = Forecaster(seasonality=12).fit(y[:60])
        assert np.flatnonzero(model.outliers_).tolist() == [54]
        forecast = model.forecast(12)
        low, high = forecast.interval(0.95)
        errors.append(np.abs(forecast.median() - course[60:]).mean())
        widths.append(np.mean(high - low))
        held.append(np.mean((low <= y[60:]) & (y[60:] <= high)))
    level = 200.0 * factor
    assert np.mean(errors) < 0.15 * level
    assert np.mean(widths) < 1.1 * level
    assert np.mean(held) > 0.8


@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
def test_outliers_inside_the_range_of_a_season_are_seen() -> None:
    t = np.arange(96)
    rng = np.random.default_rng(0)
    y = 100.0 + 0.3 * t + 10.0 * np.sin(2.0 * np.pi * t / 12) + rng.normal(size=96)
    glitch = y.copy()
    glitch[[57, 75]] += [25.0, -25.0]
    assert (y.min() < glitch[[57, 75]]).all()
    assert (glitch[[57, 75]] < y.max()).all()
    model = Forecaster(seasonality=12).fit(glitch)
    assert np.flatnonzero(model.outliers_).tolist() == [57, 75]
    low, high = model.forecast(12).interval(0.9)
    plain = Forecaster(seasonality=12).fit(y).forecast(12).interval(0.9)
    assert np.mean(high - low) < 1.4 * np.mean(plain[1] - plain[0])


@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
def test_rows_after_a_step_are_learned_one_by_one_as_at_once() -> None:
    y = seasonal(3) + np.where(np.arange(160) >= 130, 400.0, 0.0)
    whole, parts = Forecaster(n_draws=8).fit(y), Forecaster(n_draws=8).fit(y[:131])
    for value in y[131:134]:
        parts.learn_one(value)
    parts.partial_fit(y[134:])
    np.testing.assert_array_equal(parts.predict(7), whole.predict(7))
    progress = Forecaster(n_draws=8).fit(y[:120]).forecast_then_learn(y[120:], 1)
    assert np.abs(progress.median[-14:, 0, 0] - y[-14:]).mean() < 8.0


def test_a_column_that_rises_hides_no_outlier() -> None:
    y = seasonal(7)
    y[120] = 1e4
    columns = np.stack([np.arange(160.0), (np.arange(160) % 9 == 4).astype(float)], axis=1)
    found = find_outliers((y + 60.0 * columns[:, 1])[None], (7,), columns[None])
    assert np.flatnonzero(found[0]).tolist() == [120]


def test_a_gap_in_a_season_is_as_the_season_before() -> None:
    """Two Sundays were not observed: the next ones are as Sundays are."""
    rng = np.random.default_rng(0)
    week = np.array([200.0, 205.0, 210.0, 215.0, 240.0, 260.0, 150.0])
    y = np.tile(week, 30) + rng.normal(0.0, 5.0, 210)
    y[[69, 76]] = np.nan
    assert not find_outliers(y[None], (7,)).any()
    y[83] += 200.0
    assert np.flatnonzero(find_outliers(y[None], (7,))[0]).tolist() == [83]


def test_a_gap_after_an_outlier_is_not_bridged_by_it() -> None:
    y = seasonal(8)
    y[100], y[101:104] = 1e4, np.nan
    assert np.flatnonzero(find_outliers(y[None], (7,))[0]).tolist() == [100]


@pytest.mark.parametrize("after", [6, 24, 168])
def test_a_step_in_hours_is_found_and_measured_against_the_week(after: int) -> None:
    """Also at the end of a weekend, whose last day is no level of Monday."""
    n = 24 * 35
    t = np.arange(n)
    y = 100.0 + 20.0 * np.sin(2.0 * np.pi * t / 24) + 10.0 * (t // 24 % 7 >= 5)
    y += 3.0 * np.random.default_rng(0).normal(size=n) - 60.0 * (t >= n - after)
    panel = leave_out_outliers(Panel.of_arrays({"a": y}), "ignore", (24, 168))
    assert panel.left_out is not None
    assert np.flatnonzero(panel.left_out[0] == STEP).tolist() == [n - after]
    moves = Moves.of(y[None], panel.left_out, n, (24, 168))
    np.testing.assert_allclose(moves.moved[0, 0], 60.0, atol=4.0 * moves.error[0])
    assert moves.error[0] < 3.0


def test_jumps_of_a_walk_are_no_outliers() -> None:
    rng = np.random.default_rng(1)
    walk = np.cumsum(rng.standard_t(3, size=(40, 400)), axis=1)
    found = find_outliers(walk)
    assert (found == OUTLIER).sum() <= 3 < (found == STEP).sum()


@pytest.mark.parametrize("drop", [27.0])
def test_a_step_that_lasts_is_known_by_its_eighth_value(drop: float) -> None:
    n, after = 24 * 35, 72
    t = np.arange(n)
    y = 100.0 + 20.0 * np.sin(2.0 * np.pi * t / 24) + 10.0 * (t // 24 % 7 >= 5)
    y += 3.0 * np.random.default_rng(0).normal(size=n) - drop * (t >= n - after)
    found = find_outliers(y[None], (24, 168))
    (step,) = np.flatnonzero(find_steps(found)[0])
    assert n - after <= step < n - after + 24
    assert np.flatnonzero(found[0]).tolist() == [step + 7]
    for known in range(n - after + 1, n, 5):  # it is not known before, and stays
        part = find_outliers(y[None, :known], (24, 168))
        np.testing.assert_array_equal(part, found[:, :known])
    moves = Moves.of(y[None], found, n, (24, 168))
    assert not moves.moved[0, step:].any()
    assert not Moves.of(y[None], found, step + 7, (24, 168)).moved.any()
