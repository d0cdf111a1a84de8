"""Forecasts of daily sales with holidays: python benchmarks/forecasts_holidays.py.

Simulated sales with a week, a year and the holidays of Bavaria, each with an effect of its own, and
days before and after them; 28 days ahead at Christmas, Easter or in autumn. Errors, and coverage of
90% intervals, on holidays and the days around, and on all others. With Prophet installed its
figures stand beside: with the same holidays, a day before and after, and multiplicative seasons.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module, util
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from posterity.forecasting import Forecaster

Array = NDArray[np.float64]
REGION, STEPS, SERIES, LEVEL = "DE-BY", 28, 16, 0.9
ENDS = "2026-04-20", "2025-12-18", "2026-03-25", "2025-10-15"


def list_holidays() -> dict[Any, str]:
    """Names of holidays by day."""
    country, part = REGION.split("-")
    return dict(
        import_module("holidays").country_holidays(country, subdiv=part, years=range(2021, 2028))
    )


def make(seed: int, n: int, *, multiplied: bool) -> tuple[Any, Array, NDArray[np.bool_]]:
    """Days, sales, and which days are holidays or next to one."""
    rng, named = np.random.default_rng(seed), list_holidays()
    first = pd.Timestamp(ENDS[seed % len(ENDS)]) - pd.Timedelta(days=n)
    days = pd.date_range(first, periods=n + STEPS)
    week = np.array([0.9, 0.85, 0.9, 1.0, 1.3, 1.5, 0.55])[days.day_of_week]
    year = 1.0 + 0.2 * np.sin(2.0 * np.pi * days.day_of_year / 365.25 - 1.0)
    effects = {name: rng.normal(-0.7, 0.25) for name in sorted(set(named.values()))}
    before, after = rng.normal(0.3, 0.1), rng.normal(0.1, 0.1)
    free, one = set(pd.to_datetime(list(named))), pd.Timedelta(days=1)
    effect = np.array(
        [
            effects[named[day.date()]] if day in free
            else before if day + one in free
            else after if day - one in free
            else 0.0
            for day in days
        ]
    )  # fmt: skip
    errors, noise = np.zeros(len(days)), rng.normal(size=len(days))
    for row in range(1, len(days)):
        errors[row] = 0.4 * errors[row - 1] + noise[row]
    level = 200.0 * np.exp(0.0002 * np.arange(len(days))) * year * week
    if multiplied:
        return days, np.asarray(level * np.exp(effect + 0.08 * errors)), effect != 0.0
    return days, np.asarray(level + 200.0 * effect + 14.0 * errors), effect != 0.0


def ask_posterity(table: Any, _days: Any) -> tuple[Array, Array, Array]:
    forecast = Forecaster(holidays=REGION).fit(table).forecast(STEPS)
    return forecast.median(), *forecast.interval(LEVEL)


def ask_without_holidays(table: Any, _days: Any) -> tuple[Array, Array, Array]:
    forecast = Forecaster().fit(table).forecast(STEPS)
    return forecast.median(), *forecast.interval(LEVEL)


def ask_prophet(table: Any, days: Any) -> tuple[Array, Array, Array]:
    rows = [
        {"ds": day, "holiday": name, "lower_window": -1, "upper_window": 1}
        for day, name in list_holidays().items()
    ]
    model = import_module("prophet").Prophet(
        interval_width=LEVEL, holidays=pd.DataFrame(rows), seasonality_mode="multiplicative"
    )
    found = model.fit(table).predict(pd.DataFrame({"ds": days}))
    return tuple(found[name].to_numpy() for name in ("yhat", "yhat_lower", "yhat_upper"))


def score(ask: Callable[..., Any], n: int, *, multiplied: bool) -> Array:
    """Errors and coverage on holidays and on other days, and seconds for a series."""
    rows, start = [], time.process_time()
    for seed in range(SERIES):
        days, y, special = make(seed, n, multiplied=multiplied)
        middle, low, high = ask(pd.DataFrame({"ds": days[:n], "y": y[:n]}), days[n:])
        error, held = np.abs(middle - y[n:]), (low <= y[n:]) & (y[n:] <= high)
        some = special[n:]
        rows.append([each[part].mean() for part in (some, ~some) for each in (error, held)])
    return np.append(np.mean(rows, axis=0), (time.process_time() - start) / SERIES)


def main() -> None:
    """Print a line for each kind of series and forecaster."""
    warnings.simplefilter("ignore")
    for name in ("prophet", "cmdstanpy"):
        logging.getLogger(name).disabled = True
    asked = {"ours": ask_posterity, "ours without holidays": ask_without_holidays}
    if util.find_spec("prophet"):
        asked["Prophet"] = ask_prophet
    print("| effects | rows | | holidays: error | 90% held | other days: error | 90% held | s |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for multiplied in (True, False):
        for n in (400, 1096):
            for name, ask in asked.items():
                one, two, three, four, seconds = score(ask, n, multiplied=multiplied)
                kind = "multiplied" if multiplied else "added"
                print(
                    f"| {kind} | {n} | {name} | {one:.1f} | {two:.2f} | {three:.1f} | {four:.2f} | "
                    f"{seconds:.1f} |"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main()
