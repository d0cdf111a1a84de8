"""The next steps of the series in a table, as a table, and as a page."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from posterity.cli.group import describe_command
from posterity.cli.pages import check_page, write_text
from posterity.cli.predict import open_writer
from posterity.cli.reading import Reading
from posterity.cli.series import Columns, as_typed, read_table, without_hours
from posterity.cli.tables import name_input, table_path
from posterity.cli.text import print_notes
from posterity.forecasting import Forecaster, reconcile
from posterity.forecasting.reading import ID, TIME
from posterity.forecasting.steps import StepsAhead
from posterity.report import About, forecast_report


@dataclass(frozen=True, kw_only=True)
class Settings(Reading):
    """Options of the verb, one field each."""

    file: str
    target: str
    time: str | None
    series: str | None
    horizon: int
    features: tuple[str, ...] | None
    future: str | None
    holidays: tuple[str, ...]
    events: str | None
    censored: str | None
    capacity: float | None
    floor: float
    region: str | None
    seasonality: tuple[int, ...]
    output: str | None
    level: float
    quantiles: tuple[float, ...]
    report: str | None
    quiet: bool
    command: str = field(default_factory=describe_command)


def run(settings: Settings) -> None:
    """Read, learn, forecast, write, and draw."""
    if settings.features and settings.future is None:
        raise ValueError(
            "--features needs --future FILE, with the values of these columns in the next steps"
        )
    columns = Columns(
        target=settings.target,
        time=settings.time,
        series=settings.series,
        features=settings.features or (),
        censored=settings.censored,
        region=settings.region,
    )
    opened = open_writer(settings.output)
    page = check_page(settings.report)
    with _collect_warnings() as notes:
        with table_path(settings.file) as path:
            frame = columns.read(path, settings.text)
        future = None
        if settings.features and settings.future is not None:
            future = columns.read(settings.future, settings.text, future=True)
        events = None if settings.events is None else read_table(settings.events, settings.text)
        model = _make_forecaster(settings, events).fit(frame)
        forecast = model.forecast(settings.horizon, X_future=future)
        sums = reconcile(forecast, frame.regions, bottom_up=True) if frame.regions else None
    with opened() as write:
        write(_make_batch(settings, forecast, frame.time_type))
        if sums is not None:
            whole = _make_batch(settings, sums, frame.time_type)
            write(whole.slice(len(forecast.ids) * settings.horizon))
    if page is not None:
        about = _describe_forecast(settings, notes)
        write_text(forecast_report(model, forecast, about, sums), page)
    print_notes(frame.notes, quiet=settings.quiet, page=page)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=1)


def _make_forecaster(settings: Settings, events: Any) -> Forecaster:
    return Forecaster(
        seasonality=settings.seasonality or None,
        holidays=settings.holidays or None,
        events=events,
        censored=settings.censored,
        capacity=settings.capacity,
        floor=settings.floor,
    )


def _make_batch(settings: Settings, forecast: StepsAhead, time_type: object) -> pa.RecordBatch:
    """A row for each series and step; times are of the type they were read as, or text."""
    columns: dict[str, Any] = {}
    if settings.series is not None:
        columns[settings.series] = forecast.to_columns(())[ID]
    times = forecast.to_columns(())[TIME]
    text = settings.output is None or settings.output.lower().endswith(".csv")
    columns[settings.time or "row"] = without_hours(times) if text else as_typed(times, time_type)
    low, high = forecast.interval(settings.level)
    numbers = {
        "median": forecast.median(), "mean": forecast.mean(), "std": forecast.std(),
        "lower": low, "upper": high,
    }  # fmt: skip
    numbers |= {f"q{q:g}": forecast.quantile(q) for q in settings.quantiles}
    columns |= {name: np.reshape(values, -1) for name, values in numbers.items()}
    return pa.RecordBatch.from_pydict({name: pa.array(each) for name, each in columns.items()})


def _describe_forecast(settings: Settings, notes: list[str]) -> About:
    shown = {
        "horizon": f"{settings.horizon:,}",
        "time": settings.time or "the order of the rows",
        "series": settings.series or "",
        "features": ", ".join(settings.features or ()),
        "seasonality": ", ".join(map(str, settings.seasonality)),
        "holidays": ", ".join(settings.holidays),
        "events": settings.events or "",
        "sold out": settings.censored or "",
        "capacity": "" if settings.capacity is None else f"{settings.capacity:g}",
        "sums by": settings.region or "",
    }
    name = os.path.basename(name_input(settings.file))
    return About(
        title=f"{name}: {settings.target}, {settings.horizon} steps ahead",
        target=settings.target,
        command=settings.command,
        problems=notes,
        settings=[(name, value) for name, value in shown.items() if value],
    )


@contextmanager
def _collect_warnings() -> Iterator[list[str]]:
    """Collect the texts of the warnings raised meanwhile."""
    remarks: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield remarks
    remarks.extend(dict.fromkeys(str(each.message) for each in caught))
