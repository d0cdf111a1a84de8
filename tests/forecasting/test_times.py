"""Times come back as they went in, so that forecasts join with the rows that come."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity import Forecaster
from posterity.adapters.nixtla import NixtlaForecaster
from posterity.files import dumps, loads
from posterity.forecasting import Form, VectorAutoregression
from posterity.forecasting.writing import Writing, read_text

FORMS = [Form(1, (1, 2)), Form()]
PARIS = {"tz": "Europe/Paris"}
H = 5


def as_text(times: Any, form: str) -> list[str]:
    return [one.strftime(form) for one in times]


WRITTEN: dict[str, Any] = {
    "hours of Paris in autumn": pd.date_range("2024-10-25", periods=60, freq="h", **PARIS),
    "hours of Paris in spring": pd.date_range("2024-03-29", periods=60, freq="h", **PARIS),
    "days of Paris": pd.date_range("2024-10-01", periods=60, **PARIS),
    "months of Paris": pd.date_range("2020-01-01", periods=60, freq="MS", **PARIS),
    "hours in UTC": pd.date_range("2024-10-25", periods=60, freq="h", tz="UTC"),
    "hours of an offset": pd.date_range("2024-10-25", periods=60, freq="h", tz="+05:30"),
    "naive hours": pd.date_range("2024-10-25", periods=60, freq="h"),
    "days": pd.date_range("2024-10-01", periods=60),
    "working days": pd.bdate_range("2024-10-01", periods=60),
    "weeks": pd.date_range("2024-01-01", periods=60, freq="W-MON"),
    "months": pd.date_range("2024-01-01", periods=60, freq="MS"),
    "ends of months": pd.date_range("2024-01-01", periods=60, freq="ME"),
    "quarters": pd.date_range("2004-01-01", periods=60, freq="QE"),
    "years": pd.date_range("1924-01-01", periods=60, freq="YS"),
    "periods of months": pd.period_range("1970-01", periods=60, freq="M"),
    "periods of quarters": pd.period_range("1970Q1", periods=60, freq="Q"),
    "periods of weeks": pd.period_range("2020-01-06", periods=60, freq="W"),
    "periods of years": pd.period_range("1920", periods=60, freq="Y"),
    "periods of hours": pd.period_range("2020-01-01", periods=60, freq="h"),
    "text of months": as_text(pd.date_range("1970-11-01", periods=60, freq="MS"), "%Y-%m"),
    "text of days": as_text(pd.date_range("1970-11-01", periods=60), "%Y-%m-%d"),
    "text of hours": as_text(pd.date_range("2024-01-01", periods=60, freq="h"), "%Y-%m-%d %H:%M"),
    "text of seconds": as_text(
        pd.date_range("2024-01-01", periods=60, freq="s"), "%Y-%m-%dT%H:%M:%S"
    ),
    "text of years": [str(year) for year in range(1920, 1980)],
    "text of quarters": [f"{year}Q{part}" for year in range(1920, 1935) for part in range(1, 5)],
    "months of years 1 to 5": [f"{year}-{month}" for year in range(1, 6) for month in range(1, 13)],
    "years as whole numbers": list(range(1920, 1980)),
    "years 3 to 62": list(range(3, 63)),
    "whole numbers as floats": np.arange(1920.0, 1980.0),
    "dates": [date(2024, 1, 1) + timedelta(days=day) for day in range(60)],
}  # fmt: skip


def make_frame(times: Any) -> pd.DataFrame:
    y = 50.0 + np.cumsum(np.random.default_rng(0).normal(size=len(times)))
    return pd.DataFrame({"ds": times, "y": y})


@pytest.mark.parametrize("name", WRITTEN)
def test_forecasts_join_with_the_rows_that_come(name: str) -> None:
    frame = make_frame(WRITTEN[name])
    model = Forecaster(forms=FORMS, seasonality=()).fit(frame[:-H])
    joined = model.forecast(H).to_frame().merge(frame, on="ds")
    np.testing.assert_array_equal(joined["y"], frame["y"][-H:])
    assert joined["Forecaster"].notna().all()
    streamed = loads(dumps(model)).partial_fit(frame[-H:-2]).forecast(2).to_frame()
    np.testing.assert_array_equal(streamed.merge(frame, on="ds")["y"], frame["y"][-2:])


@pytest.mark.parametrize("name", ["hours of Paris in autumn", "text of months", "months"])
def test_panels_and_vectors_join_too(name: str) -> None:
    frame = make_frame(WRITTEN[name])
    both = pd.concat([frame.assign(unique_id=one) for one in "ab"])
    past = both.groupby("unique_id").head(55)
    for forecast in (
        Forecaster(forms=FORMS, seasonality=()).fit(past).forecast(H),
        Forecaster(forms=FORMS, seasonality=()).fit(past).forecast(H, series=["b"]),
    ):
        joined = forecast.to_frame().merge(both, on=["unique_id", "ds"])
        assert len(joined) == H * len(forecast.ids)
    cross = NixtlaForecaster(forms=FORMS, seasonality=()).cross_validation(2, past)
    assert len(cross.merge(both, on=["unique_id", "ds"])) == 4
    wide = pd.DataFrame({"ds": frame["ds"], "a": frame["y"], "b": -frame["y"]})
    vector = VectorAutoregression(lags=1).fit(wide[:-H]).forecast(H).to_frame()
    assert len(vector.merge(wide, on="ds")) == 2 * H


def test_polars_and_arrow_keep_the_zone() -> None:
    polars = pytest.importorskip("polars")
    times = WRITTEN["hours of Paris in autumn"]
    frame = polars.DataFrame({"ds": polars.Series(times), "y": make_frame(times)["y"].to_numpy()})
    model = NixtlaForecaster(forms=FORMS, seasonality=()).fit(
        frame[:-H].with_columns(unique_id=polars.lit("a"))
    )
    assert len(model.predict(H).join(frame, on=polars.col("ds").dt.cast_time_unit("us"))) == H
    arrow = Forecaster(forms=FORMS, seasonality=()).fit(frame[:-H].to_arrow())
    assert list(arrow.forecast(H).times) == list(times[-H:])


def test_times_have_the_zone_and_the_precision_that_went_in() -> None:
    zoned = make_frame(pd.date_range("2024-10-20", "2024-10-31 23:00", freq="h", **PARIS))
    model = Forecaster(forms=FORMS, seasonality=()).fit(zoned)
    assert str(model.forecast(1).times[0]) == "2024-11-01 00:00:00+01:00"
    assert str(model.times_[0, -1]) == "2024-10-31 23:00:00+01:00"
    months = Forecaster(forms=FORMS).fit(make_frame(WRITTEN["text of months"]))
    assert str(months.forecast(1).times[0]) == "1975-11"
    early = Forecaster(forms=FORMS).fit(make_frame(WRITTEN["months of years 1 to 5"][:-1]))
    assert early.forecast(2).to_columns([])["ds"].tolist() == ["5-12", "6-1"]


def daily(times: pd.DatetimeIndex) -> np.ndarray:
    """Of the hours of the clock: a day, a night, and a peak at noon."""
    day = (times.hour >= 7) & (times.hour < 20)
    return np.where(day, 50.0, 10.0) + np.where(times.hour == 12, 30.0, 0.0)


@pytest.mark.parametrize(
    "begin",
    [
        "2024-10-07",  # clocks changed on the last day that was learned
        "2024-10-10",  # and some days before
        "2024-10-05",  # they change in the steps that are forecast
        "2024-03-15",
        "2024-03-09",
        "2024-06-09",
    ],
)
def test_a_season_of_hours_follows_the_clock(begin: str) -> None:
    n, h = 21 * 24, 48
    times = pd.date_range(begin, periods=n + h, freq="h", **PARIS)
    y = daily(times) + np.random.default_rng(0).normal(size=n + h)
    forms = [Form(24, (1, 24, 25)), Form(1, tuple(range(1, 26))), Form(24)]
    model = Forecaster(forms=forms).fit(pd.Series(y[:n], times[:n]))
    forecast = model.forecast(h)
    assert [one.timestamp() for one in forecast.times] == [one.timestamp() for one in times[n:]]
    assert np.abs(forecast.median() - daily(times[n:])).max() < 5.0
    low, high = forecast.interval(0.95)
    assert ((low < y[n:]) & (y[n:] < high)).mean() > 0.85
    assert np.isfinite(forecast.rvs(10, rng=0)).all()
    np.testing.assert_allclose(forecast.total().mean()[0], forecast.mean().sum(), rtol=1e-6)


@pytest.mark.parametrize("begin", ["2024-10-05", "2024-03-09"])
def test_columns_of_the_next_hours_stay_with_their_hours(begin: str) -> None:
    n, h = 21 * 24, 48
    times = pd.date_range(begin, periods=n + h, freq="h", **PARIS)
    rng = np.random.default_rng(0)
    sale = (rng.random(n + h) < 0.2).astype(float)
    y = daily(times) + 100.0 * sale + rng.normal(size=n + h)
    frame = pd.DataFrame({"ds": times, "y": y, "sale": sale})
    model = Forecaster(forms=[Form(24, (1, 24, 25)), Form(24)]).fit(frame[:n])
    # The hour that comes twice has one row, and one value of each column.
    usual = np.append(True, times[n + 1 :].hour != times[n:-1].hour)
    twice = ~(usual & np.append(usual[1:], True))
    for plan in (frame[["ds", "sale"]][n:], frame[["sale"]][n:].to_numpy()):
        off = np.abs(model.forecast(h, plan).median() - y[n:])
        assert off[~twice].max() < 12.0


def test_rows_come_one_by_one_over_a_change_of_clocks() -> None:
    times = pd.date_range("2024-10-20", periods=24 * 10, freq="h", **PARIS)
    y = daily(times) + np.random.default_rng(0).normal(size=len(times))
    forms = [Form(24, (1, 24)), Form(24)]
    whole = Forecaster(forms=forms).fit(pd.Series(y, times))
    parts = Forecaster(forms=forms).fit(pd.Series(y[:160], times[:160]))
    for value in y[160:]:
        parts.learn_one(value)
    np.testing.assert_allclose(parts.predict(24), whole.predict(24))
    assert list(parts.forecast(1).times) == list(whole.forecast(1).times)


def test_naive_hours_that_come_twice_ask_for_the_zone() -> None:
    naive = pd.date_range("2024-10-20", periods=24 * 14, freq="h", **PARIS).tz_localize(None)
    with pytest.raises(
        ValueError, match=r"2024-10-27T02:00:00 twice: clocks were set.*tz_localize"
    ):
        Forecaster().fit(make_frame(naive))
    days = pd.DatetimeIndex([*pd.date_range("2024-10-20", periods=30), pd.Timestamp("2024-10-27")])
    with pytest.raises(ValueError, match="2024-10-27 twice: each time may come once"):
        Forecaster().fit(make_frame(days))


@pytest.mark.parametrize(
    ("texts", "form", "unit"),
    [
        (["1975-10", "1975-11"], "{year:04d}-{month:02d}", "M"),
        (["3-12", "4-1"], "{year:01d}-{month}", "M"),
        (["1990-Q1", "1990-Q2"], "{year:04d}-Q{quarter}", "M"),
        (["2024-1-5", "2024-11-15"], "{year:04d}-{month}-{day}", "D"),
    ],
)
def test_text_is_written_as_it_was_read(texts: list[str], form: str, unit: str) -> None:
    writing = Writing.of(np.array(texts))
    assert (writing.form, writing.unit) == (form, unit)
    assert writing.write(read_text(np.array(texts))).tolist() == texts


def test_text_that_is_mixed_or_no_time_has_no_writing() -> None:
    assert Writing.of(np.array(["2024-01", "2024-01-05"])) == Writing()
    assert Writing.of(np.array(["soon"])) == Writing()
    assert Writing.of(np.arange(3)) == Writing()
