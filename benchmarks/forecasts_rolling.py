"""Rolling-origin forecasts beside peers: python benchmarks/forecasts_rolling.py.

The folder POSTERITY_DATA has ``streams/``: bikes, prices of electricity, airline passengers and the
approval of a president. Visits of pages are simulated: a trend that breaks, a week, a year,
holidays and outliers. Of each set fifteen cutoffs, the last of which leaves one horizon. Everybody
sees the same rows before, and says the quantiles of each step; twice their mean pinball loss is the
CRPS. Sets may be named. Peers are those that are installed, of statsforecast and prophet; TBATS
only of short series.
"""

from __future__ import annotations

import csv
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from posterity.forecasting import Forecaster

Array = NDArray[np.float64]
CUTOFFS, TBATS_ROWS, YEAR = 15, 800, 365
QUANTILES = np.arange(0.025, 1.0, 0.05)
LEVELS = np.round(100.0 * (1.0 - 2.0 * QUANTILES[: len(QUANTILES) // 2]), 6).tolist()
HELD = 0, -1  # 95%


@dataclass(frozen=True)
class Set:
    """A series with its frequency and periods, the horizon, and most rows that are seen.

    Ours and Prophet find the periods by themselves.
    """

    read: Callable[[], Array]
    begin: str
    frequency: str
    periods: tuple[int, ...]
    h: int
    rows: int


def read_stream(file: str, column: str) -> Callable[[], Array]:
    def read() -> Array:
        path = Path(os.environ["POSTERITY_DATA"]) / "streams" / file
        with path.open(encoding="utf-8", newline="") as rows:
            return np.array([float(row[column]) for row in csv.DictReader(rows)])

    return read


def read_bikes(frequency: str) -> Callable[[], Array]:
    """Bikes by the hour or the day; hours without a row had none."""

    def read() -> Array:
        table = pd.read_csv(Path(os.environ["POSTERITY_DATA"]) / "streams/bike-sharing-hour.csv")
        times = pd.to_datetime(table["dteday"]) + pd.to_timedelta(table["hr"], unit="h")
        return table["cnt"].set_axis(times).resample(frequency).sum().to_numpy(np.float64)

    return read


def simulate_page(seed: int) -> Callable[[], Array]:
    """Four years of daily visits of a page."""

    def simulate() -> Array:
        rng, t = np.random.default_rng(seed), np.arange(1461)
        slopes = np.cumsum(np.isin(t, rng.choice(t, 4)) * rng.normal(0.0, 0.0008, size=1461))
        trend = np.cumsum(slopes + 0.0002)
        week = rng.normal(0.0, 0.15, size=7)[t % 7]
        angle = 2.0 * np.pi * t / 365.25
        waves = [np.sin(k * angle + rng.uniform(0.0, 6.0)) / k for k in (1, 2, 3)]
        days = rng.choice(365, 8, replace=False)
        holidays = rng.normal(0.0, 0.5, size=8) @ (t % 365 == days[:, None])
        errors = 0.08 * rng.standard_t(4, size=1461)
        for row in range(1, len(t)):
            errors[row] += 0.5 * errors[row - 1]
        outliers = (rng.random(1461) < 0.005) * rng.exponential(1.0, size=1461)
        log = 6.0 + trend + week + 0.15 * sum(waves) + holidays + errors + outliers
        return np.round(np.exp(log))

    return simulate


SETS = {
    "bikes by the hour": Set(read_bikes("h"), "2011-01-01", "h", (24, 168), 24, 4032),
    "bikes by the day": Set(read_bikes("D"), "2011-01-01", "D", (7,), 14, 731),
    "price of electricity": Set(
        read_stream("elec2.csv", "nswprice"), "1996-05-07", "30min", (48, 336), 48, 4032
    ),
    "airline passengers": Set(
        read_stream("airline-passengers.csv", "passengers"), "1949-01-01", "MS", (12,), 4, 144
    ),
    "approval of a president": Set(
        read_stream("trump_approval.csv", "five_thirty_eight"), "2017-02-23", "D", (7,), 14, 700
    ),
    **{
        f"page {seed + 1}": Set(simulate_page(seed), "2020-01-01", "D", (7, 365), 28, 1461)
        for seed in range(4)
    },
}


# ---- who forecasts: (h, q) quantiles of the steps after a table ----------------------------------


def ask_posterity(table: Any, some: Set) -> Array:
    forecast = Forecaster().fit(table).forecast(some.h)
    return np.column_stack([np.reshape(forecast.quantile(q), -1) for q in QUANTILES])


def ask_prophet(table: Any, some: Set) -> Array:
    model = import_module("prophet").Prophet(uncertainty_samples=1000)
    future = model.fit(table).make_future_dataframe(some.h, freq=some.frequency).tail(some.h)
    samples = model.predictive_samples(future)["yhat"]
    return np.asarray(np.quantile(samples, QUANTILES, axis=1).T)


def ask_statsforecast(make: Callable[[Any, Set], Any]) -> Callable[[Any, Set], Array]:
    def ask(table: Any, some: Set) -> Array:
        model = make(import_module("statsforecast.models"), some)
        found = model.forecast(table["y"].to_numpy(np.float64), some.h, level=LEVELS)
        low = [found[f"lo-{level}"] for level in LEVELS]
        high = [found[f"hi-{level}"] for level in reversed(LEVELS)]
        return np.column_stack([*low, *high])

    return ask


PEERS: dict[str, tuple[str, Callable[[Any, Set], Array]]] = {
    "Prophet": ("prophet", ask_prophet),
    "MSTL": ("statsforecast", ask_statsforecast(lambda m, s: m.MSTL(list(s.periods)))),
    "AutoETS": ("statsforecast", ask_statsforecast(lambda m, s: m.AutoETS(s.periods[0]))),
    "TBATS": ("statsforecast", ask_statsforecast(lambda m, s: m.AutoTBATS(list(s.periods)))),
    "seasonal naive": (
        "statsforecast",
        ask_statsforecast(lambda m, s: m.SeasonalNaive(max(n for n in s.periods if n < YEAR))),
    ),
}


def score(ask: Callable[[Any, Set], Array], some: Set) -> tuple[float, float, float]:
    """The mean CRPS, what 95% intervals held, and seconds of a forecast."""
    y, crps, held, start = some.read(), [], [], time.process_time()
    times = pd.date_range(some.begin, periods=len(y), freq=some.frequency)
    apart = min(some.h, (len(y) - some.h) // (2 * CUTOFFS))
    for end in len(y) - some.h - apart * np.arange(CUTOFFS):
        seen = slice(max(end - some.rows, 0), end)
        quantiles = ask(pd.DataFrame({"ds": times[seen], "y": y[seen]}), some)
        came = y[end : end + some.h, None]
        crps.append(2.0 * np.mean((came - quantiles) * (QUANTILES - (came < quantiles))))
        low, high = (quantiles[:, end] for end in HELD)
        held.append(np.mean((low <= came[:, 0]) & (came[:, 0] <= high)))
    seconds = (time.process_time() - start) / CUTOFFS
    return float(np.mean(crps)), float(np.mean(held)), seconds


def main() -> None:
    """Print the table: CRPS, as a share of that of the first line, and what is held."""
    warnings.simplefilter("ignore")
    for name in ("prophet", "cmdstanpy"):
        logging.getLogger(name).disabled = True
    asked: dict[str, Callable[[Any, Set], Array]] = {"ours": ask_posterity}
    asked |= {name: ask for name, (package, ask) in PEERS.items() if util.find_spec(package)}
    print(f"| set | {' | '.join(asked)} |")
    print("|---|" + "---:|" * len(asked))
    for name in sys.argv[1:] or SETS:
        found = {
            who: score(ask, SETS[name])
            for who, ask in asked.items()
            if who != "TBATS" or SETS[name].rows <= TBATS_ROWS
        }
        cells = [
            f"{found[who][0]:.4g} ({found[who][1]:.2f}, {found[who][2]:.2f} s)"
            if who in found
            else ""
            for who in asked
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
