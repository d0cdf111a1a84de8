"""Forecasts of series of one kind, whose course without noise is known.

python benchmarks/forecasts_kinds.py prints a line for each kind: the error of the median against
the course, what 95% intervals of steps and of the sum of up to 30 steps hold, and how wide they are
over the right ones. With statsforecast installed the errors and widths of its AutoETS stand beside.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from posterity.forecasting import Forecaster

Array = NDArray[np.float64]
SERIES, NORMAL = 10, 3.92


@dataclass(frozen=True)
class Kind:
    """Series of ``rows`` values, ``steps`` ahead, by ``frequency``; ``noise`` is its sd there."""

    name: str
    make: Callable[[Any], Any]
    rows: int
    steps: int
    frequency: str
    season: int
    noise: float = 5.0


def make_months(t: Array) -> Array:
    return 200.0 + 50.0 * np.sin(2.0 * np.pi * t / 12)


def move(course: Callable[[Any], Any], at: int, factor: float) -> Callable[[Any], Any]:
    return lambda t: course(t) * np.where(t >= at, factor, 1.0)


def make_flat(t: Array) -> Array:
    return np.full(len(t), 200.0)


KINDS = (
    Kind("level", lambda t: 100.0 + 0.0 * t, 100, 14, "D", 7),
    Kind("level", lambda t: 100.0 + 0.0 * t, 730, 14, "D", 7),
    Kind("level", lambda t: 100.0 + 0.0 * t, 730, 60, "D", 7),
    Kind("level", lambda t: 100.0 + 0.0 * t, 730, 180, "D", 7),
    Kind("weekends + 10", lambda t: 100.0 + 10.0 * (t % 7 >= 5), 100, 14, "D", 7),
    Kind("weekends + 10", lambda t: 100.0 + 10.0 * (t % 7 >= 5), 730, 60, "D", 7),
    Kind("sine of 20", lambda t: 100.0 + 20.0 * np.sin(np.pi * t / 6), 60, 12, "MS", 12),
    Kind("sine of 20", lambda t: 100.0 + 20.0 * np.sin(np.pi * t / 6), 120, 12, "MS", 12),
    Kind("sine of 20", lambda t: 100.0 + 20.0 * np.sin(np.pi * t / 6), 240, 36, "MS", 12),
    Kind("a year of 20, weekends", lambda t: 100.0 + 20.0 * np.sin(2 * np.pi * t / 365.25)
         + 5.0 * (t % 7 >= 5), 1461, 90, "D", 7, 2.0),
    Kind("months, last 4 at 30%", move(make_months, 56, 0.3), 60, 12, "MS", 12),
    Kind("months, last 6 at 30%", move(make_months, 54, 0.3), 60, 12, "MS", 12),
    Kind("months, last 10 at 30%", move(make_months, 50, 0.3), 60, 12, "MS", 12),
    Kind("no season, last 6 at 30%", move(make_flat, 54, 0.3), 60, 12, "MS", 12),
    Kind("months, level falls by 140", lambda t: make_months(t) - 140.0 * (t >= 54), 60, 12, "MS",
         12),
    Kind("months, last 6 at 300%", move(make_months, 54, 3.0), 60, 12, "MS", 12),
)  # fmt: skip


def main() -> None:
    """Print the table."""
    print("| series | rows | steps | error | held | width | sum held | sum width | AutoETS: error "
          "| held | width |")  # fmt: skip
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.mean([measure(kind, seed) for seed in range(SERIES)], axis=0)
        cells = " | ".join("" if np.isnan(one) else f"{one:.2f}" for one in found)
        print(f"| {kind.name} | {kind.rows} | {kind.steps} | {cells} |", flush=True)


def measure(kind: Kind, seed: int) -> list[float]:
    """The numbers of a line, of one series."""
    t = np.arange(float(kind.rows + kind.steps))
    course = kind.make(t)
    y = course + kind.noise * np.random.default_rng(seed).normal(size=len(t))
    known, outcome, ahead = y[: kind.rows], y[kind.rows :], course[kind.rows :]
    times = pd.date_range("2022-01-03", periods=kind.rows, freq=kind.frequency)
    forecast = Forecaster().fit(pd.Series(known, index=times)).forecast(kind.steps)
    low, high = forecast.interval(0.95)
    count = min(kind.steps, 30)
    least, most = (float(end[0]) for end in forecast.total(count).interval(0.95))
    right = NORMAL * kind.noise
    return [
        float(np.abs(forecast.median() - ahead).mean()),
        float(np.mean((low <= outcome) & (outcome <= high))),
        float(np.mean(high - low)) / right,
        float(least <= outcome[:count].sum() <= most),
        (most - least) / (right * np.sqrt(count)),
        *measure_peer(kind, known, outcome, ahead),
    ]


def measure_peer(kind: Kind, known: Array, outcome: Array, ahead: Array) -> list[float]:
    """Error, coverage and width of AutoETS; NaN where it is not installed."""
    try:
        models = import_module("statsforecast.models")
    except ImportError:
        return [np.nan] * 3
    found: Any = models.AutoETS(season_length=kind.season).forecast(known, kind.steps, level=[95])
    low, high = found["lo-95"], found["hi-95"]
    held = float(np.mean((low <= outcome) & (outcome <= high)))
    width = float(np.mean(high - low)) / (NORMAL * kind.noise)
    return [float(np.abs(found["mean"] - ahead).mean()), held, width]


if __name__ == "__main__":
    main()
