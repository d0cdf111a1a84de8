"""Indexes of periods and of times with a zone are times, and nothing warns."""

from __future__ import annotations

import warnings
from datetime import UTC

import numpy as np
import pandas as pd
import pytest

from posterity.forecasting import Forecaster


@pytest.mark.parametrize(
    ("index", "following"),
    [
        (pd.period_range("2020-01", periods=40, freq="M"), "2023-05"),
        (pd.date_range("2020-03-20", periods=60, freq="h", tz="Europe/Berlin"), "2020-03-22T11"),
        (pd.date_range("2020-01-31", periods=40, freq="ME"), "2023-05-31"),
    ],
)
def test_an_index_says_when(index: pd.Index, following: str) -> None:
    values = pd.Series(np.random.default_rng(0).normal(size=len(index)), index)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        forecast = Forecaster().fit(values).forecast(1)
    time = forecast.times[0]
    if index.dtype.kind == "M" and getattr(index, "tz", None) is not None:
        time = np.datetime64(time.astimezone(UTC).replace(tzinfo=None))
    assert time == np.datetime64(following)


def frames_of_days(times: pd.DatetimeIndex, y: np.ndarray) -> dict[str, object]:
    frame = pd.DataFrame({"ds": times, "y": y})
    made: dict[str, object] = {
        "column": frame,
        "index": pd.Series(y, times),
        "objects": pd.DataFrame({"ds": times.astype(object), "y": y}),
    }
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    made["polars"] = polars.DataFrame({"ds": polars.Series(times), "y": y})
    made["arrow"] = arrow.table({"ds": arrow.array(times), "y": y})
    return made


@pytest.mark.parametrize("kind", ["column", "index", "objects", "polars", "arrow"])
@pytest.mark.parametrize("hour", ["", " 06:00"])
def test_local_days_stay_days_where_clocks_change(kind: str, hour: str) -> None:
    times = pd.date_range("2024-03-01" + hour, periods=60, freq="D", tz="Europe/Berlin")
    y = np.random.default_rng(0).normal(size=60)
    model = Forecaster().fit(frames_of_days(times[:50], y[:50])[kind])
    assert model.periods_ == (7,)
    following = pd.Timestamp("2024-04-20" + hour, tz="Europe/Berlin")
    assert model.forecast(1).times[0] == following
    later = model.partial_fit(frames_of_days(times[50:51], y[50:51])[kind]).partial_fit(
        frames_of_days(times[51:], y[51:])[kind]
    )
    assert later.n_observations_ == 60


def test_hours_with_a_zone_are_in_utc_one_by_one_too() -> None:
    times = pd.date_range("2024-03-30", periods=50, freq="h", tz="Europe/Berlin")
    y = np.random.default_rng(0).normal(size=50)
    whole = Forecaster().fit(pd.Series(y, times))
    parts = (
        Forecaster().fit(pd.Series(y[:49], times[:49])).partial_fit(pd.Series(y[49:], times[49:]))
    )
    assert parts.forecast(1).times[0] == whole.forecast(1).times[0]
