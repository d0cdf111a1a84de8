"""Dates as hour, weekday and month; the past of the target; columns of numbers as categories."""

from __future__ import annotations

import datetime
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.evaluation import progressive_validation
from posterity.io import TableError, TextFormat, learn_stream, open_table, predict_stream
from posterity.io.calendar import PARTS, find_date_format, part_codes

HOURS = pd.date_range("2023-12-30 22:00", periods=400, freq="7h")


def rows_of(stream):
    batches = [batch[:2] for batch in stream]
    return np.vstack([X for X, _ in batches]), np.concatenate([y for _, y in batches])


@pytest.fixture
def load():
    rng = np.random.default_rng(1)
    return pd.DataFrame({"when": HOURS, "load": np.cumsum(rng.normal(size=len(HOURS)))})


def test_calendar_is_that_of_pandas(load):
    stream = open_table(load, "load", dates="calendar")
    X, _ = rows_of(stream)
    found = pd.DataFrame(X, columns=stream.feature_names)
    for part, words in (
        ("hour", HOURS.hour.astype(str)),
        ("weekday", HOURS.strftime("%a")),
        ("month", HOURS.strftime("%b")),
    ):
        for level in PARTS[part][0][1:]:
            assert (found.pop(f"when.{part}={level}") == (words == level)).all()
    days = (HOURS - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")
    assert list(found) == ["when"]
    assert np.allclose(found["when"], days)


def test_parts_that_do_not_differ_are_left_out(load):
    dates = [datetime.date(2024, 1, 1) + datetime.timedelta(7 * i) for i in range(40)]
    weekly = pa.table({"when": dates, "y": np.arange(40.0)})
    names = open_table(weekly, "y", dates="calendar").feature_names
    assert {name.partition("=")[0] for name in names} == {"when.month", "when"}
    shuffled = load.sample(frac=1.0, random_state=0)
    assert "when" not in open_table(shuffled, "load", dates="calendar").feature_names
    times = pa.table({"at": [datetime.time(hour) for hour in (3, 4, 2)], "y": [1.0, 2.0, 3.0]})
    names = open_table(times, "y", dates="calendar").feature_names
    assert names == (*(f"at.hour={hour}" for hour in range(1, 24)), "at")[:23]


def test_a_time_zone_is_where_the_clock_hangs():
    stamps = pa.array([0, None], pa.timestamp("s", tz="America/New_York"))
    codes, words = part_codes(stamps, "hour")
    assert words[codes[0]] == "19"
    assert codes[1] == len(words)
    assert pickle.loads(pickle.dumps(part_codes)) is part_codes


def test_a_model_finds_the_calendar_again(load):
    model = learn_stream(BayesianLinearRegression(), load, "load", dates="calendar")
    (predictive,) = predict_stream(model, load[["when"]].iloc[::-1])
    (again,) = predict_stream(model, load[["when"]])
    assert np.allclose(predictive["mean"].to_numpy()[::-1], again["mean"])
    X, _ = rows_of(open_table(load, "load", dates="calendar"))
    assert np.allclose(
        again["mean"], model.predict(pd.DataFrame(X, columns=model.feature_names_in_))
    )
    with pytest.raises(TableError, match="'when' holds text, and was numbers or dates when it"):
        next(predict_stream(model, pa.table({"when": ["today"]})))


@given(
    lags=st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True),
    rows=st.integers(10, 40),
    memory=st.integers(1, 4000),
)
def test_lags_are_the_values_so_many_rows_before(lags, rows, memory):
    y = np.random.default_rng(rows).normal(size=rows)
    frame = pd.DataFrame({"x": np.arange(rows), "y": y})
    stream = open_table(frame, "y", lags=lags, memory=memory)
    expected = frame.assign(**{f"y.lag{k}": frame["y"].shift(k) for k in lags}).dropna()
    for _ in range(2):  # each pass starts anew
        batches = list(stream)
        X = np.vstack([X for X, _ in batches])
        assert np.array_equal(X, expected.drop(columns="y").to_numpy())
        assert np.array_equal(np.concatenate([y for _, y in batches]), expected["y"])
    assert stream.feature_names == ("x", *(f"y.lag{k}" for k in lags))
    assert stream.n_before == max(lags)
    assert stream.n_skipped == 0


def test_lags_count_rows_that_are_left_out():
    frame = pd.DataFrame({"y": [1.0, 2.0, np.nan, 4.0, 5.0, 6.0]})
    stream = open_table(frame, "y", lags=[2], missing="skip")
    X, y = rows_of(stream)
    assert X.ravel().tolist() == [2.0, 4.0]  # the fifth row's past is missing
    assert y.tolist() == [4.0, 6.0]
    assert stream.n_left_out == {"y": 1}
    with pytest.raises(ValueError, match="whole numbers of rows from 1 up, got 0"):
        open_table(frame, "y", lags=[0])


def test_a_lag_does_not_see_the_row_itself():
    y = np.random.default_rng(0).normal(size=2000)
    result = progressive_validation(
        BayesianLinearRegression(), open_table(pd.DataFrame({"y": y}), "y", lags=[1, 2])
    )
    assert result.n_rows == 1998
    assert result.rmse > 0.97  # noise can't be foreseen


def test_a_model_with_lags_takes_the_past_from_the_table():
    y = np.cumsum(np.random.default_rng(0).normal(size=200))
    model = learn_stream(BayesianLinearRegression(), pd.DataFrame({"y": y}), "y", lags=[1, 3])
    assert model.feature_names_in_.tolist() == ["y.lag1", "y.lag3"]
    coming = pd.DataFrame({"y": [*y[-3:], np.nan]})
    (predictive,) = predict_stream(model, coming)
    assert predictive.index.tolist() == [3]
    expected = float(model.coef_ @ [y[-1], y[-3]] + model.intercept_)
    assert predictive["mean"].iloc[0] == pytest.approx(expected)
    with pytest.raises(TableError, match=r"feature 'y\.lag1' is not a column"):
        next(predict_stream(model, pd.DataFrame({"x": y})))


def test_numbers_that_are_categories():
    frame = pd.DataFrame({"zip": [10, 9, 10, 9, 7], "y": np.arange(5.0)})
    stream = open_table(frame, "y", categories=["zip"])
    assert stream.feature_names == ("zip=9", "zip=10")
    assert open_table(frame, "y", levels={"zip": [7, 8, 9, 10]}).feature_names == (
        "zip=8", "zip=9", "zip=10",
    )  # fmt: skip
    model = learn_stream(BayesianLinearRegression(), frame, "y", categories=["zip"])
    floats = frame[["zip"]].astype(float)
    (predictive,) = predict_stream(model, floats)
    assert predictive["mean"].iloc[0] == predictive["mean"].iloc[2]
    with pytest.raises(
        TableError, match="category 'zop' is not a column of the file; did you mean"
    ):
        open_table(frame, "y", categories=["zop"])
    frame["zip"] = pd.Categorical(frame["zip"])
    assert open_table(frame, "y").feature_names == ("zip=7", "zip=9")


def test_a_missing_category_can_be_a_level():
    zones = pa.table({"zone": ["a", None, "b", None], "n": [1.0, None, 3.0, 4.0], "y": [1.0] * 4})
    stream = open_table(zones, "y", missing="level")
    X, _ = rows_of(stream)
    assert stream.feature_names == ("zone=b", "zone=missing", "n")
    assert X.tolist() == [[0, 0, 1], [0, 1, 1], [1, 0, 3], [0, 1, 4]]
    assert stream.n_missing == {"n": 1}
    model = learn_stream(BayesianLinearRegression(), zones, "y", missing="level")
    (predictive,) = predict_stream(
        model, pa.table({"zone": [None], "n": [1.0]}).cast(zones.schema.remove(2))
    )
    assert predictive.num_rows == 1


def test_holes_are_counted_by_column():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [np.nan, np.nan, 1.0], "y": [1.0, 2, 3]})
    stream = open_table(frame, "y", missing="mean")
    list(stream)
    assert stream.n_missing == {"a": 1, "b": 2}
    assert stream.n_left_out == {"b": 2}
    with pytest.raises(TableError) as caught:
        list(open_table(frame, "y"))
    assert caught.value.__notes__ == ["missing in the 3 rows from there: 'b' 2, 'a' 1"]


EUROPEAN = "when;n;price\n30.04.21;1.234;3,25\n01.05.21;2.000.000;-1.000,5\n02.05.21;;4\n"


def test_numbers_and_dates_as_written_in_europe(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text(EUROPEAN)
    text = TextFormat(decimal=",", thousands=".", date_format="%d.%m.%y")
    stream = open_table(path, "price", text=text, dates="days", missing="mean")
    X, y = rows_of(stream)
    assert y.tolist() == [3.25, -1000.5, 4.0]
    assert X[:, 1].tolist() == [1234.0, 2000000.0, 1000617.0]
    assert np.diff(X[:, 0]).tolist() == [1.0, 1.0]
    path.write_text(EUROPEAN + "03.05.21;1.23;5\n" * 5)
    with pytest.raises(
        TableError,
        match=r"'price' holds text in 2 of 8 rows, first '3,25' in line 2.*decimal=\",\"",
    ):
        open_table(path, "price")
    path.write_text("x;y\n" + "1.000;1\n" * 300_000 + "1.0.0;1\n")
    with pytest.raises(TableError, match=r"'x' held numbers until '1\.0\.0' in line 300002"):
        list(open_table(path, "y", text=TextFormat(thousands=".", decimal=",")))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decimal": ";"}, "a point or a comma"),
        ({"thousands": "."}, "can't both be"),
        ({"thousands": "12"}, "must be one character"),
        ({"date_format": "dd.mm.yy"}, "contain day, month and year"),
    ],
)
def test_formats_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        TextFormat(**settings)
    with pytest.raises(ValueError, match="text= is for text files"):
        open_table(pd.DataFrame({"x": [1.0], "y": [1.0]}), "y", text=TextFormat())


@pytest.mark.parametrize(
    ("dates", "how"),
    [
        (["04/30/21", "05/01/21"], "%m/%d/%y"),
        (["30/04/2021"], "%d/%m/%Y"),
        (["1.2.21"], "%d.%m.%y"),
        (["2021/04/30"], "%Y/%m/%d"),
        (["04/30/2021 12:30", "04/01/2021 1:00"], "%m/%d/%Y %H:%M"),
        (["04/30/21", "north"], ""),
        ([], ""),
    ],
)
def test_how_dates_are_written_is_said(dates, how):
    assert find_date_format(dates) == how


def test_months_are_dates_and_other_ways_are_named(tmp_path):
    path = tmp_path / "passengers.csv"
    path.write_text(
        "month,y\n" + "".join(f"19{49 + i // 12}-{i % 12 + 1:02},{i}\n" for i in range(30))
    )
    names = open_table(path, "y", dates="calendar").feature_names
    assert names[0] == "month.month=Feb"
    assert names[-1] == "month"
    path.write_text("day,y\n04/30/21,1\n05/01/21,2\n")
    with pytest.raises(TableError, match=r"looks like dates, as in '04/30/21'.*%m/%d/%y"):
        open_table(path, "y")
    assert open_table(path, "y", categories=["day"]).feature_names == ("day=05/01/21",)
