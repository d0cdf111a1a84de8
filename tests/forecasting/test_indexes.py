"""Frames without times follow the last rows; whole numbers in an index are times."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from posterity.files import dumps, loads
from posterity.forecasting import Forecaster, Form, GapWarning, VectorAutoregression

Array = NDArray[np.float64]
SIMPLE = [Form(1, (1, 2))]


def walks(n: int = 100, k: int = 2) -> Array:
    return np.cumsum(np.random.default_rng(0).normal(size=(n, k)), axis=0)


def as_given(kind: str, rows: Array) -> Any:
    pair = {"a": rows[:, 0], "b": rows[:, 1]}
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(pair)
    if kind == "arrow":
        return pytest.importorskip("pyarrow").table(pair)
    if kind == "long":
        return pd.DataFrame({"y": pair["a"]})
    return {"pandas": pd.DataFrame(pair), "series": pd.Series(pair["a"]), "array": rows}[kind]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "long", "series", "array"])
def test_rows_of_frames_without_times_follow_the_last_ones(kind: str) -> None:
    y = walks()
    whole = Forecaster(forms=SIMPLE).fit(as_given(kind, y)).predict(3)
    parts = Forecaster(forms=SIMPLE).fit(as_given(kind, y[:60]))
    tested = parts.before(0)
    parts.partial_fit(as_given(kind, y[60:]))
    np.testing.assert_allclose(parts.predict(3), whole)
    tested.forecast_then_learn(as_given(kind, y[60:]), h=1)
    np.testing.assert_allclose(tested.predict(3), whole)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_signals_of_frames_without_times_follow_the_last_ones(kind: str) -> None:
    y = walks()
    vector = VectorAutoregression(lags=2).fit(as_given(kind, y[:60]))
    vector.partial_fit(as_given(kind, y[60:]))
    whole = VectorAutoregression(lags=2).fit(as_given(kind, y))
    np.testing.assert_allclose(vector.predict(3), whole.predict(3))


def test_slices_follow_however_they_are_numbered() -> None:
    y = walks()
    for data in (pd.DataFrame(y, columns=["a", "b"]), pd.Series(y[:, 0])):
        whole = Forecaster(forms=SIMPLE).fit(data)
        for later in (data[60:], data[60:].reset_index(drop=True)):
            parts = Forecaster(forms=SIMPLE).fit(data[:60]).partial_fit(later)
            np.testing.assert_allclose(parts.predict(3), whole.predict(3))
            np.testing.assert_array_equal(parts.forecast(1).times, whole.forecast(1).times)


@pytest.mark.parametrize("name", [None, "year", "ds"])
def test_whole_numbers_of_an_index_are_times(name: str | None) -> None:
    y = walks()
    years = pd.RangeIndex(1900, 2000, name=name)
    for data in (pd.DataFrame(y, years, columns=["a", "b"]), pd.Series(y[:, 0], years)):
        fitted = Forecaster(forms=SIMPLE).fit(data)
        assert np.ravel(fitted.forecast(2).times)[:2].tolist() == [2000, 2001]
        shuffled = Forecaster(forms=SIMPLE).fit(data.sample(frac=1.0, random_state=0))
        np.testing.assert_array_equal(shuffled.values_, fitted.values_)
        later = Forecaster(forms=SIMPLE).fit(data[:50]).partial_fit(data[50:][::-1])
        np.testing.assert_array_equal(later.values_, fitted.values_)
    default = pd.Series(y[:, 0]).sample(frac=1.0, random_state=0)
    np.testing.assert_array_equal(Forecaster().fit(default).values_[0], y[:, 0])


def test_what_a_selection_leaves_in_an_index_is_asked_about() -> None:
    y = pd.Series(walks()[:, 0])
    with pytest.warns(GapWarning, match=r"after 9 .*\(1 missing\)"):
        assert Forecaster().fit(y.drop(10)).values_.shape == (1, 100)
    some = pd.Series(y.to_numpy(), np.cumsum(np.random.default_rng(0).integers(1, 9, size=100)))
    with pytest.raises(ValueError, match=r"reset_index\(drop=True\).*name the index 'ds'"):
        Forecaster().fit(some)
    assert Forecaster().fit(some.reset_index(drop=True)).n_observations_ == 100
    with pytest.warns(GapWarning):
        assert Forecaster().fit(some.rename_axis("ds")).n_observations_ == 100
    both = pd.concat([y, y])
    with pytest.raises(ValueError, match="has the time 0 twice"):
        Forecaster().fit(both)
    frame = pd.DataFrame({"unique_id": ["a", "b"] * 10, "y": 1.0}, pd.RangeIndex(5, 25))
    with pytest.raises(ValueError, match="needs the column 'ds'"):
        Forecaster().fit(frame)
    dated = Forecaster().fit(pd.Series(y.to_numpy(), pd.date_range("2026", periods=100)))
    assert dated.partial_fit(y[50:60]).n_observations_ == 110  # numbers are no dates: rows follow
    with pytest.raises(ValueError, match=r"times are whole numbers, but .* are dates"):
        dated.partial_fit(pd.DataFrame({"ds": [100], "y": [1.0]}))


def test_exogenous_columns_stay_with_their_rows() -> None:
    rng = np.random.default_rng(0)
    days = pd.date_range("2026-01-01", periods=80)
    x = pd.DataFrame({"sale": rng.integers(0, 2, size=80).astype(float)}, days)
    y = 10.0 * x["sale"] + rng.normal(size=80)
    mixed = rng.permutation(80)
    fitted = Forecaster(forms=SIMPLE).fit(y, x)
    shuffled = Forecaster(forms=SIMPLE).fit(y.iloc[mixed], x.iloc[mixed])
    future = [[0.0], [1.0]]
    np.testing.assert_allclose(shuffled.predict(2, future), fitted.predict(2, future))
    with pytest.raises(ValueError, match="the index of X is not that of y"):
        Forecaster().fit(y, x.iloc[mixed])


@pytest.mark.parametrize("first", [0, 5])
def test_merged_whole_numbers_are_the_whole(first: int) -> None:
    y = walks(150)
    frame = pd.concat(
        [
            pd.DataFrame({"unique_id": name, "ds": np.arange(150) + first, "y": column})
            for name, column in zip("ab", y.T, strict=True)
        ]
    )
    parts = [
        Forecaster(forms=SIMPLE).fit(frame[some])
        for some in (frame["ds"] < 70 + first, frame["ds"] >= 70 + first)
    ]
    whole = Forecaster(forms=SIMPLE).fit(frame)
    np.testing.assert_allclose(parts[0].merge(parts[1]).predict(3), whole.predict(3))
    thin = Forecaster(forms=SIMPLE).fit(pd.DataFrame({"ds": np.arange(0, 40, 4), "y": y[:10, 0]}))
    even = Forecaster(forms=SIMPLE).fit(pd.DataFrame({"ds": np.arange(0, 20, 2), "y": y[:10, 0]}))
    late = pd.DataFrame({"ds": np.arange(20, 60, 4), "y": y[10:20, 0]})
    merged = even.merge(Forecaster(forms=SIMPLE).fit(late))
    assert np.flatnonzero(np.isnan(merged.values_[0])).tolist() == list(range(11, 28, 2))
    with pytest.raises(ValueError, match="does not fit"):
        thin.merge(Forecaster().fit(pd.DataFrame({"ds": np.arange(41, 60), "y": y[:19, 0]})))
    dates = pd.Series(y[:, 0], pd.date_range("2026", periods=150))
    with pytest.raises(ValueError, match=r"times are dates, but .* are whole numbers"):
        thin.merge(Forecaster().fit(dates))


@pytest.mark.parametrize(
    ("freq", "following"),
    [
        ("BME", ["2023-06-30", "2023-07-31", "2023-08-31", "2023-09-29"]),
        ("BMS", ["2023-06-01", "2023-07-03", "2023-08-01", "2023-09-01"]),
        ("BQE-DEC", ["2023-06-30", "2023-09-29", "2023-12-29", "2024-03-29"]),
    ],
)
def test_working_days_at_ends_of_months_are_months(freq: str, following: list[str]) -> None:
    days = pd.date_range("2015-01-01", "2023-05-31", freq=freq)
    y = np.cumsum(np.random.default_rng(0).normal(size=len(days)))
    # The working day before stands for a holiday.
    holiday = days.to_numpy().copy()
    holiday[1] -= np.timedelta64(int(freq == "BME"), "D")
    with warnings.catch_warnings():
        warnings.simplefilter("error", GapWarning)
        forecaster = Forecaster().fit(pd.DataFrame({"ds": holiday, "y": y}))
    forecast = forecaster.forecast(4)
    assert forecaster.periods_ == ((4,) if freq.startswith("BQ") else (12,))
    assert [str(time)[:10] for time in np.ravel(forecast.times)] == following
    later = forecaster.partial_fit(pd.DataFrame({"ds": forecast.times[:1], "y": [0.0]}))
    assert str(np.ravel(later.forecast(1).times)[0])[:10] == following[1]
    again = loads(dumps(later))
    assert np.array_equal(again.forecast(2).times, later.forecast(2).times)
