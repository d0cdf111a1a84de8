"""Sizes are checked before memory is taken: grids of steps, horizons, sums."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from posterity import safety
from posterity.forecasting import Forecaster, Form, VectorAutoregression

pandas = pytest.importorskip("pandas")

Y = np.random.default_rng(0).normal(size=51)
SECONDS = pandas.date_range("2024-01-01", periods=50, freq="s")
FAR = pandas.DatetimeIndex(["2025-01-01"])
GAP = "the gap after 2024-01-01T00:00:49 is 31,622,350 steps of 1 second, .*: is the time right"


def test_a_far_date_is_named() -> None:
    with pytest.raises(ValueError, match=GAP):
        Forecaster().fit(pandas.Series(Y, index=SECONDS.append(FAR)))
    with pytest.raises(ValueError, match=GAP):
        VectorAutoregression().fit(pandas.DataFrame({"a": Y}, index=SECONDS.append(FAR)))
    with pytest.raises(ValueError, match=r"the gap after 49 is .* steps of 1 unit"):
        Forecaster().fit(pandas.DataFrame({"ds": [*range(50), 10**15], "y": Y}))


def test_a_far_date_that_comes_later_leaves_the_model_as_it_was() -> None:
    model = Forecaster(forms=[Form()], seasonality=()).fit(pandas.Series(Y[:50], index=SECONDS))
    before = model.predict(2)
    with pytest.raises(ValueError, match=GAP):
        model.partial_fit(pandas.Series(Y[50:], index=FAR))
    np.testing.assert_array_equal(model.predict(2), before)
    assert model.n_observations_ == 50


def test_times_without_a_grid_are_refused() -> None:
    times = pandas.to_datetime("2024-01-01") + pandas.to_timedelta(3601 * np.arange(51) + 7, "s")
    times = times[:-1].append(times[-1:] + pandas.Timedelta("1s"))
    with pytest.raises(ValueError, match="there are 51 rows, and 180,052 steps of 1 second"):
        Forecaster().fit(pandas.Series(Y, index=times))


def test_gaps_of_some_thousand_steps_are_none_too_many() -> None:
    times = SECONDS.append(pandas.DatetimeIndex(["2024-01-01 02:00"]))
    with pytest.warns(UserWarning, match="7150 missing"):
        model = Forecaster(forms=[Form()], seasonality=()).fit(pandas.Series(Y, index=times))
    assert model.predict(1).shape == (1,)


def test_a_horizon_is_no_hundred_times_as_long_as_the_rows() -> None:
    model, vector = Forecaster().fit(Y), VectorAutoregression(lags=1).fit({"a": Y, "b": Y[::-1]})
    for refused in (
        lambda: model.forecast(100_000),
        lambda: model.forecast_then_learn(Y, h=100_000),
        lambda: vector.forecast(100_000),
        lambda: vector.impulse_responses(100_000),
    ):
        with pytest.raises(ValueError, match=r"h is 100,000, and 51 rows .* at most 10,000 steps"):
            refused()
    far = Forecaster(forms=[Form(1, (1, 2))], n_draws=2).fit(Y).forecast(10_000)
    assert np.isfinite(far.interval()).all()


def test_memory_of_horizons_and_sums_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = Forecaster(forms=[Form(log=True)]).fit(Y + 10.0).forecast(500)
    vector = VectorAutoregression(lags=1).fit({"a": Y, "b": Y[::-1]})
    monkeypatch.setattr(safety, "machine_memory", lambda: 1e6)
    with pytest.raises(ValueError, match="the sum of 500 steps needs"):
        walk.total()
    with pytest.raises(ValueError, match="a forecast of 2 signals 1,000 steps ahead needs"):
        vector.forecast(1000)
    with pytest.raises(ValueError, match="a grid of 200 series and 1,000 steps needs"):
        Forecaster().fit(
            pandas.DataFrame(np.ones((1000, 200)), index=pandas.RangeIndex(1000, name="ds"))
        )


def test_signals_learned_by_threads_are_all_there() -> None:
    model = VectorAutoregression(lags=1).fit(np.random.default_rng(0).normal(size=(50, 2)))
    rows = np.random.default_rng(1).normal(size=(4, 40, 2))

    def learn(mine: np.ndarray) -> None:
        for row in mine:
            model.partial_fit(row[None])

    threads = [threading.Thread(target=learn, args=(mine,)) for mine in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model._panel is not None
    assert model._panel.length == 50 + 160


@pytest.mark.parametrize("power", [13, 400, 5000])
def test_horizons_beyond_all_numbers(power: int) -> None:
    for model in (Forecaster(), VectorAutoregression(lags=1)):
        series = {"s": np.arange(40.0) % 7, "t": np.arange(40.0) % 3}
        with pytest.raises(ValueError, match="h is beyond 1,000,000,000,000 steps: forecast fewer"):
            model.fit(series).forecast(10**power)


def test_values_beyond_all_numbers() -> None:
    with pytest.raises(ValueError, match="in row 1, the value is a whole number beyond"):
        Forecaster().fit([1.0, 10**400, 2.0, 3.0, 1.0])
