"""Other frequencies and short series: POSTERITY_DATA=FOLDER python benchmarks/forecasts_other.py.

They are made of the series that ``benchmarks/forecasts.py`` has: sums of months, weeks and hours,
and their first or last values alone. Every forecast comes from the defaults; OWA is beside that of
the Theta method (Assimakopoulos and Nikolopoulos 2000) and of the value one season ago.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

import forecasts
import numpy as np
from forecasts import Array, Series

from posterity.forecasting import Forecaster

# Periods, the period for scores, series to learn, and their outcomes.
Made = tuple[tuple[int, ...], int, Series, Series]


def main() -> None:
    """Print a line for each set, or for those that the command line names."""
    print("| | series | rows | steps | OWA | Theta | a season ago | 95% held | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    made = sets()
    for name in sys.argv[1:] or made:
        periods, m, train, test = made[name]
        h = len(test[0])
        start = time.process_time()
        forecast = Forecaster(seasonality=periods).fit(dict(enumerate(train))).forecast(h)
        median, (low, high) = forecast.median(), forecast.interval(0.95)
        seconds = time.process_time() - start
        owa, _, _, _, held = forecasts.scores(train, test, m, median, low, high)
        peers = [np.array([say(y, m, h) for y in train]) for say in (theta, season_ago)]
        scores = [forecasts.scores(train, test, m, one, one, one)[0] for one in peers]
        rows = int(np.median([len(y) for y in train]))
        print(
            f"| {name} | {len(train)} | {rows} | {h} | {owa:.3f} | {scores[0]:.3f} "
            f"| {scores[1]:.3f} | {held:.3f} | {seconds:.0f} |",
            flush=True,
        )


def sets() -> dict[str, Made]:
    """Prepare each competition's series for the forecasters."""
    months, weeks, hours = (
        [np.concatenate(pair) for pair in zip(*forecasts.read(name), strict=True)]
        for name in ("M3 monthly", "M4 weekly", "M4 hourly")
    )
    return {
        "quarters of months": ((4,), 4, *cut(summed(months, 3), 8, 10)),
        "years of months": ((), 1, *cut(summed(months, 12), 4, 6)),
        "years of weeks": ((), 1, *cut(summed(weeks, 52), 6, 8)),
        "four weeks": ((13,), 13, *cut(summed(weeks, 4), 13, 27)),
        "days of hours": ((7,), 7, *cut(summed(hours, 24), 7, 20)),
        "8 months": ((), 1, *cut(months, 6, 8, 8)),
        "16 months": ((12,), 12, *cut(months, 6, 16, 16)),
        "20 months": ((12,), 12, *cut(months, 8, 20, 20)),
        "28 months": ((12,), 12, *cut(months, 12, 28, 28)),
        "60 weeks": ((52,), 1, *cut(weeks, 13, 60, 60)),
    }


def summed(series: Series, steps: int) -> Series:
    """Sums of so many steps, the last ones whole."""
    return [y[len(y) % steps :].reshape(-1, steps).sum(axis=1) for y in series]


def cut(
    series: Iterable[Array], h: int, least: int, most: int | None = None
) -> tuple[Series, Series]:
    """Series of enough rows before the last ``h``, at most ``most`` of them, that are not flat."""
    some = [y for y in series if len(y) >= h + least]
    train = [y[:-h][-(most or len(y)) :] for y in some]
    moves = [len(set(y.tolist())) > 1 for y in train]
    chosen = [pair for pair, kept in zip(zip(train, some, strict=True), moves, strict=True) if kept]
    return [y for y, _ in chosen], [whole[-h:] for _, whole in chosen]


def season_ago(y: Array, m: int, h: int) -> Array:
    """The value one season ago."""
    return np.resize(y[-m:], h)


def theta(y: Array, m: int, h: int) -> Array:
    """Exponential smoothing with half the trend's drift, seasonally adjusted as Naive2."""
    n, season = len(y), np.ones(len(y) + h)
    if forecasts.seasonal(y, m):
        indices = forecasts.indices(y, m)
        season = indices[np.arange(n + h) % m]
    z = y / season[:n]
    drift = 0.5 * np.polyfit(np.arange(n), z, 1)[0]
    rates = np.linspace(0.02, 1.0, 50)
    level, lost = np.full(50, z[0]), np.zeros(50)
    for value in z[1:]:
        lost += np.square(value - level)
        level = level + rates * (value - level)
    best = int(lost.argmin())
    rate = rates[best]
    steps = np.arange(h) + (1.0 - (1.0 - rate) ** n) / rate
    return np.asarray((level[best] + drift * steps) * season[n:])


if __name__ == "__main__":
    main()
