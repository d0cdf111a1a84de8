"""Holidays and own events have effects; what comes is known from the calendar."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("pandas", reason="needs pandas")
pytest.importorskip("holidays", reason="needs holidays (posterity[holidays])")

import pandas as pd

from posterity.files import dumps, loads
from posterity.forecasting import Forecaster, ForecastWarning, Form
from posterity.forecasting.calendar import Calendar
from posterity.forecasting.holidays import (
    AFTER,
    ANY,
    AT_WEEKEND,
    BEFORE,
    BRIDGE,
    UNSEEN,
    Events,
    find_days,
    read_events,
    write_events,
)
from posterity.forecasting.reading import read

Array = np.ndarray
FORMS = [Form(7, (1, 2, 3)), Form(1, (), (2.0, 8.0), waves=((7.0, 3),))]
EASTER = ["2023-04-07", "2023-04-10", "2024-03-29", "2024-04-01", "2025-04-18", "2025-04-21"]


def make_days(last: str, n: int, seed: int = 0) -> Any:
    days = pd.date_range(end=last, periods=n)
    rng = np.random.default_rng(seed)
    y = 200.0 + np.array([0, 5, 10, 15, 40, 60, -50.0])[days.day_of_week] + 5 * rng.normal(size=n)
    return pd.DataFrame({"ds": days, "y": y})


def add_effect(frame: Any, dates: list[str], effect: float) -> Any:
    return frame.assign(y=frame.y + effect * frame.ds.isin(pd.to_datetime(dates)))


def count(name: str, frame: Any, holidays: Any = "DE") -> list[str]:
    """Days on which a column is not 0."""
    panel = read(frame)
    events = Events.of(holidays, None, panel)
    column = events.add_to(panel).columns[0, :, events.names.index(name)]
    return [str(day.date()) for day in frame.ds[column > 0]]


def test_a_holiday_is_forecast_at_its_moved_day() -> None:
    frame = add_effect(make_days("2025-04-15", 900), EASTER, -150.0)
    low, high = Forecaster(forms=FORMS, holidays="DE").fit(frame).forecast(10).interval(0.95)
    usual = 200.0 + np.array([0, 5, 10, 15, 40, 60, -50.0])
    assert low[2] < usual[4] - 150.0 < high[2]
    assert low[5] < usual[0] - 150.0 < high[5]
    assert high[2] < usual[4] - 100.0
    assert low[9] < usual[4] < high[9]


def test_columns_of_the_calendar() -> None:
    frame = make_days("2024-12-31", 731)
    assert count("Good Friday", frame) == ["2023-04-07", "2024-03-29"]
    assert "2023-12-26" in count(ANY, frame)
    assert count(AT_WEEKEND, frame) == ["2023-01-01"]
    assert "2024-05-08" in count(BEFORE, frame)
    assert "2024-12-27" in count(AFTER, frame)
    assert "2024-12-26" not in count(AFTER, frame)
    # Ascension Day is a Thursday; 2 May 2023, 30 October 2023, 2 October 2023 come before one.
    assert {"2023-05-19", "2024-05-10", "2023-10-02"} <= set(count(BRIDGE, frame))
    assert "2024-05-08" not in count(BRIDGE, frame)


def test_parts_of_a_country_and_several() -> None:
    frame = make_days("2024-12-31", 731)
    assert "Epiphany" not in Events.of("DE", None, read(frame)).names
    assert "Epiphany" in Events.of("DE-BY", None, read(frame)).names
    both = Events.of(["DE", "FR"], None, read(frame)).names
    assert {"German Unity Day", "National Day"} <= set(both)


def test_weeks_and_months_count_days() -> None:
    weeks = pd.DataFrame({"ds": pd.date_range("2022-01-02", periods=157, freq="W"), "y": 1.0})
    weeks["y"] = np.random.default_rng(0).normal(size=157)
    panel = read(weeks)
    events = Events.of("DE", None, panel)
    good = events.add_to(panel).columns[0, :, events.names.index("Good Friday")]
    assert [str(day.date()) for day in weeks.ds[good > 0]] == [
        "2022-04-17",
        "2023-04-09",
        "2024-03-31",
    ]
    months = pd.DataFrame({"ds": pd.date_range("2020-01-31", periods=60, freq="ME")})
    months["y"] = np.random.default_rng(0).normal(size=60)
    names = Events.of("DE", None, read(months)).names
    assert "Good Friday" in names
    assert "Christmas Day" not in names  # always in December: that is its season


def test_days_of_steps() -> None:
    def first_and_last(*times: str, index: int = 0) -> tuple[str, str]:
        array = np.array(times, dtype="datetime64[s]")
        kind = "months" if len(set(array.astype("datetime64[M]"))) == len(array) > 2 else "seconds"
        apart = array.astype(f"datetime64[{'M' if kind == 'months' else 's'}]").astype(np.int64)
        calendar = Calendar.of(array, np.diff(apart))
        first, stop = find_days(calendar, np.array([index]))
        return str(first[0]), str(stop[0])

    assert first_and_last("2024-01-01", "2024-01-02") == ("2024-01-01", "2024-01-02")
    assert first_and_last("2024-01-07", "2024-01-14") == ("2024-01-01", "2024-01-08")
    assert first_and_last("2024-01-01", "2024-01-08") == ("2024-01-01", "2024-01-08")
    assert first_and_last("2024-01-01T00", "2024-01-01T01", index=30) == (
        "2024-01-02",
        "2024-01-03",
    )
    ends = "2024-01-31", "2024-02-29", "2024-03-31"
    assert first_and_last(*ends, index=1) == ("2024-02-01", "2024-03-01")


def test_hours_have_the_holiday_of_their_place() -> None:
    times = pd.date_range("2024-12-20", periods=24 * 10, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"ds": times, "y": np.random.default_rng(0).normal(size=240)})
    panel = read(frame)
    events = Events.of("DE", None, panel)
    column = events.add_to(panel).columns[0, :, events.names.index("Christmas Day")]
    assert [str(time) for time in times[column > 0]][:1] == ["2024-12-25 00:00:00+01:00"]
    assert column.sum() == 24


def test_a_holiday_that_was_not_seen_is_wide() -> None:
    frame = add_effect(make_days("2024-03-20", 150), ["2023-12-25", "2023-12-26"], -150.0)
    forecast = Forecaster(forms=FORMS, holidays="DE").fit(frame).forecast(14)
    low, high = forecast.interval()
    width = high - low
    assert width[8] > 2.0 * width[7]
    assert UNSEEN not in forecast.components()


@pytest.mark.parametrize(
    "events",
    [
        {"sale": ["2023-03-01", "2023-09-05", "2024-02-20", date(2024, 12, 28)]},
        {"sale": pd.to_datetime(["2024-12-28", "2023-03-01", "2023-09-05", "2024-02-20"])},
        pd.DataFrame({"ds": ["2023-03-01", "2023-09-05", "2024-02-20", "2024-12-28"]}).assign(
            event="sale"
        ),
    ],
)
def test_own_events_come_in_many_ways(events: Any) -> None:
    frame = make_days("2024-12-24", 724)
    frame = add_effect(frame, ["2023-03-01", "2023-09-05", "2024-02-20"], 90.0)
    forecast = Forecaster(forms=FORMS, events=events).fit(frame).forecast(7)
    sale = forecast.components()["sale"]
    low, high = sale.interval(0.95)
    assert low[3] < 90.0 < high[3]
    assert low[3] > 60.0
    assert np.abs(sale.mean()[[0, 1, 2]]).max() < 10.0


def test_windows_have_effects_of_their_own() -> None:
    events = pd.DataFrame(
        {"ds": ["2024-05-01"], "holiday": ["fair"], "lower_window": -1, "upper_window": 2}
    )
    found = read_events(events)
    assert sorted(found) == ["fair", "fair +1", "fair +2", "fair -1"]
    assert str(found["fair +2"][0]) == "2024-05-03"
    assert read_events(write_events(events)).keys() == found.keys()
    assert Events((), found, tuple(found)).find_groups(1) == {"fair": [1, 2, 3, 4]}


def test_rows_batches_files_and_clones_agree() -> None:
    frame = add_effect(make_days("2025-03-31", 400), EASTER, -150.0)
    events = pd.DataFrame({"ds": ["2024-06-03", "2025-04-02"], "event": "fair"})
    new = Forecaster(forms=FORMS, holidays="DE", events=events, n_draws=8)
    whole = clone(new).fit(frame)
    parts = clone(new).fit(frame[:300]).partial_fit(frame[300:350])
    for y in frame.y[350:]:
        parts.learn_one(y)
    loaded = loads(dumps(whole))
    expected = whole.forecast(30).median()
    np.testing.assert_allclose(parts.forecast(30).median(), expected)
    np.testing.assert_array_equal(loaded.forecast(30).median(), expected)
    assert dumps(loaded) == dumps(whole)


def test_each_series_has_its_own_effects() -> None:
    one = add_effect(make_days("2025-04-15", 500), EASTER, -150.0).assign(unique_id="a")
    other = make_days("2025-04-15", 500, seed=1).assign(unique_id="b")
    both = Forecaster(forms=FORMS, holidays="DE").fit(pd.concat([one, other])).forecast(7)
    effects = both.components()["holidays"].mean()
    assert effects[0, 2] < -100.0
    assert abs(effects[1, 2]) < 40.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"holidays": "XX"}, "no such country"),
        ({"holidays": "DE-QQ"}, "DE has no part 'QQ': give one of BB, BE"),
        ({"events": {"sale": ["tomorrow"]}}, "event 'sale': times such as"),
        ({"events": {"trend": ["2024-12-24"]}}, "an event is called 'trend', as a component is"),
        (
            {"events": pd.DataFrame({"ds": ["2024-12-24"], "event": "x", "unique_id": "a"})},
            "events are those of all series",
        ),
        (
            {"events": pd.DataFrame({"ds": ["2024-12-24"], "event": "x", "lower_window": 1})},
            "lower_window counts days before",
        ),
        ({"events": pd.DataFrame({"when": ["2024-01-01"]})}, "it needs 'ds'"),
    ],
)
def test_what_is_wrong_is_said(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Forecaster(**parameters).fit(make_days("2024-12-31", 60)).forecast(3)


def test_regions_may_be_written_otherwise() -> None:
    frame = make_days("2024-12-31", 366)
    expected = Events.of("DE-BY", None, read(frame)).names
    assert Events.of("de_by", None, read(frame)).names == expected
    germany = Events.of("Germany", None, read(frame)).names
    assert germany == Events.of("DE", None, read(frame)).names


def test_wrong_types_years_and_numbers_are_said() -> None:
    days = make_days("2024-12-31", 60)
    with pytest.raises(TypeError, match="own days go in events"):
        Forecaster(holidays={"DE": 1}).fit(days)
    with pytest.raises(TypeError, match="events must be a mapping"):
        Forecaster(events=3).fit(days)
    with pytest.raises(ValueError, match="the rows have numbers"):
        Forecaster(holidays="DE").fit(np.arange(30.0)).forecast(3)
    with pytest.raises(ValueError, match="are known up to 2100, and"):
        Forecaster(forms=[Form()], holidays="DE").fit(make_days("2100-12-20", 60)).forecast(30)
    with pytest.warns(ForecastWarning, match="are known from 1991 on"):
        Forecaster(forms=[Form()], holidays="DE").fit(make_days("1990-12-20", 60)).forecast(3)


def test_an_event_that_has_not_been_is_said() -> None:
    with pytest.warns(ForecastWarning, match="on a day of the event 'fair': nothing is known"):
        Forecaster(forms=FORMS, events={"fair": ["2025-01-03"]}).fit(
            make_days("2024-12-31", 60)
        ).forecast(5)
