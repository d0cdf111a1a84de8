"""Forecasts in one pass over streams: POSTERITY_DATA=FOLDER python benchmarks/forecast_streams.py.

FOLDER has ``streams/`` (airline passengers, approval of a president, bikes by the hour, prices of
electricity by the half hour). Before each row of the test part everybody forecasts h steps; nobody
has seen what is compared. Scores are means of the CRPS over rows and steps, as shares of that of
the seasonal naive forecast. Peers without distributions get that of their own last errors at the
same step, up to 500 of them.

Statsmodels is refitted at some rows only, spread over the test part, and compared there.
"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.forecasting import Forecaster

Array = NDArray[np.float64]

MEMORY, BEFORE, REFITS = 500, 500, 12


@dataclass(frozen=True)
class Stream:
    """A file, its column, seasonal periods, the horizon, and how many rows are the test part."""

    file: str
    column: str
    periods: tuple[int, ...]
    h: int
    test: int

    def read(self) -> Array:
        """The values, in the order of the file."""
        path = Path(os.environ["POSTERITY_DATA"]) / "streams" / self.file
        with path.open(encoding="utf-8", newline="") as file:
            return np.array([float(row[self.column]) for row in csv.DictReader(file)])


STREAMS = {
    "airline": Stream("airline-passengers.csv", "passengers", (12,), 12, 108),
    "trump": Stream("trump_approval.csv", "five_thirty_eight", (7,), 7, 700),
    "bikes": Stream("bike-sharing-hour.csv", "cnt", (24, 168), 24, 2000),
    "elec2 price": Stream("elec2.csv", "nswprice", (48, 336), 48, 2000),
}


def main() -> None:
    """Print a line for each stream, or for those that the command line names."""
    print("| | steps | seasonal naive | Forecaster | SNARIMAX | HoltWinters | 95% held |", end="")
    print(" ms a row | statsmodels, refitted | ms a row |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name in sys.argv[1:] or STREAMS:
        stream = STREAMS[name]
        y = stream.read()
        ours, held, seconds = _ours(stream, y)
        naive = _of_points(stream, y, _naive(stream, y))
        river = [
            min((_of_points(stream, y, _river(make, stream, y)) for make in makers), key=np.nanmean)
            for makers in (_snarimax(stream), _holt_winters(stream))
        ]
        rows, refitted, each = _statsmodels(stream, y)
        unit = np.nanmean(naive)
        scores = [np.nanmean(score) / unit for score in (ours, *river)]
        there = np.nanmean(refitted) / np.nanmean(ours[rows])
        print(
            f"| {name} | {stream.h} | {unit:.4g} | {scores[0]:.3f} | {scores[1]:.3f} "
            f"| {scores[2]:.3f} "
            f"| {held:.3f} | {1e3 * seconds:.0f} | {there:.2f} of ours | {1e3 * each:.0f} |",
            flush=True,
        )


def _ours(stream: Stream, y: Array) -> tuple[Array, float, float]:
    """(test, h) scores, the share of outcomes held, and seconds a row."""
    first = len(y) - stream.test
    model = Forecaster(seasonality=stream.periods).fit(y[:first])
    start = time.process_time()
    progress = model.forecast_then_learn(y[first:], stream.h)
    seconds = (time.process_time() - start) / stream.test
    known = np.isfinite(progress.outcomes)
    held = (progress.low <= progress.outcomes) & (progress.outcomes <= progress.high)
    return progress.crps[:, 0], float(held[known].mean()), seconds


# ---- peers that say a point ----------------------------------------------------------------------


def _of_points(stream: Stream, y: Array, points: Iterator[Array]) -> Array:
    """(test, h) CRPS of points with the distribution of their last errors at the step."""
    first, h = len(y) - stream.test, stream.h
    start = _starts(stream, y)
    scores = np.full((stream.test, h), np.nan)
    errors: list[list[float]] = [[] for _ in range(h)]
    said: dict[int, Array] = {}
    for row, point in zip(range(start, len(y)), points, strict=True):
        # What came right before this row was forecast by those before, each so many steps ahead.
        for step in range(min(h, row - start)):
            errors[step].append(y[row - 1] - said[row - 1 - step][step])
        said[row] = point
        for step in range(min(h, len(y) - row) if row >= first else 0):
            past = np.array(errors[step][-MEMORY:] or [0.0])
            scores[row - first, step] = _crps(past, y[row + step] - point[step])
    return scores


def _crps(sample: Array, y: float) -> float:
    """Of an empirical distribution."""
    if not (np.isfinite(sample).all() and np.isfinite(y)):
        return np.inf
    n, ordered = len(sample), np.sort(sample)
    between = ordered @ (2.0 * np.arange(n) - n + 1.0) / n**2
    return float(np.abs(sample - y).mean() - between)


def _starts(stream: Stream, y: Array) -> int:
    first = len(y) - stream.test
    return max(first - BEFORE, first - first // 2)


def _naive(stream: Stream, y: Array) -> Iterator[Array]:
    m = max(period for period in stream.periods)
    steps = np.arange(stream.h) % m - m
    return (y[row + steps] for row in range(_starts(stream, y), len(y)))


def _snarimax(stream: Stream) -> list[Callable[[], Any]]:
    from river.time_series import SNARIMAX

    m = stream.periods[0]
    return [
        lambda: SNARIMAX(p=0, d=0, q=0, m=m, sp=3, sq=6),
        lambda: SNARIMAX(p=3, d=1, q=1, m=m, sp=2, sd=1, sq=0),
    ]


def _holt_winters(stream: Stream) -> list[Callable[[], Any]]:
    from river.time_series import HoltWinters

    m = stream.periods[0]
    return [
        lambda: HoltWinters(alpha=0.3, beta=0.1, gamma=0.6, seasonality=m, multiplicative=True),
        lambda: HoltWinters(alpha=0.3, beta=0.1, gamma=0.6, seasonality=m),
        lambda: HoltWinters(alpha=0.3),
    ]


def _river(make: Callable[[], Any], stream: Stream, y: Array) -> Iterator[Array]:
    model, start = make(), _starts(stream, y)
    for row, value in enumerate(y):
        if row >= start:
            with np.errstate(all="ignore"):
                yield np.array(model.forecast(horizon=stream.h))
        model.learn_one(float(value))


# ---- statsmodels ---------------------------------------------------------------------------------


def _statsmodels(stream: Stream, y: Array) -> tuple[NDArray[np.intp], Array, float]:
    """Rows of the test part, (rows, h) CRPS there, and seconds a row: a state-space ETS model."""
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel

    first, h, m = len(y) - stream.test, stream.h, stream.periods[0]
    rows = np.unique(np.linspace(0, stream.test - h, REFITS).astype(int))
    scores = np.full((len(rows), h), np.nan)
    start = time.process_time()
    for number, row in enumerate(rows):
        past = y[: first + row]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = "mul" if stream.column == "passengers" else "add"
            model = ETSModel(past, error="add", trend="add", seasonal=kind, seasonal_periods=m)
            paths = model.fit(disp=False).simulate(h, anchor="end", repetitions=500, rng=0)
        came = y[first + row : first + row + h]
        scores[number] = [_crps(paths[k], came[k]) for k in range(h)]
    return rows, scores, (time.process_time() - start) / len(rows)


if __name__ == "__main__":
    main()
