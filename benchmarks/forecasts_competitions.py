"""Further competitions: POSTERITY_COMPETITIONS=FOLDER python benchmarks/forecasts_competitions.py.

FOLDER has ``competitions.csv`` with the columns competition, period (yearly, quarterly, monthly,
other), part (train, test) and values (numbers with blanks between), series by series: those of
R's packages Mcomp (M1, M3) and Tcomp (tourism). Every forecast comes from the defaults, with
nothing but the horizon and the frequency; OWA is beside that of the Theta method.
"""

from __future__ import annotations

import csv
import os
import time
import warnings
from pathlib import Path

import forecasts
import numpy as np
from forecasts import Series
from forecasts_other import theta

from posterity.forecasting import Forecaster

PERIODS = {"yearly": 1, "quarterly": 4, "monthly": 12, "other": 1}
# Competition and period, and the series of each part.
Sets = dict[tuple[str, str], dict[str, Series]]


def main() -> None:
    """Print a line for each competition and period."""
    print("| | series | rows | steps | OWA | Theta | 80% held | 95% held | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for (competition, period), parts in read().items():
        m = PERIODS[period]
        train, test = usable(parts["train"], parts["test"], m)
        h = len(test[0])
        start = time.process_time()
        model = Forecaster(seasonality=(m,) if m > 1 else ())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # short series
            forecast = model.fit(dict(enumerate(train))).forecast(h)
        median, (low, high) = forecast.median(), forecast.interval(0.95)
        inner = forecast.interval(0.8)
        seconds = time.process_time() - start
        owa, *_, held = forecasts.scores(train, test, m, median, low, high)
        peer = np.array([theta(y, m, h) for y in train])
        theirs = forecasts.scores(train, test, m, peer, peer, peer)[0]
        inside = np.mean((inner[0] <= np.array(test)) & (np.array(test) <= inner[1]))
        rows = int(np.median([len(y) for y in train]))
        print(
            f"| {competition} {period} | {len(train)} | {rows} | {h} | {owa:.3f} | {theirs:.3f} "
            f"| {inside:.3f} | {held:.3f} | {seconds:.0f} |",
            flush=True,
        )


def usable(train: Series, test: Series, m: int) -> tuple[Series, Series]:
    """Series of the usual horizon for which errors can be scaled."""
    h = int(np.median([len(y) for y in test]))
    kept = [
        (y, came)
        for y, came in zip(train, test, strict=True)
        if len(came) == h and len(y) > m and np.abs(y[m:] - y[:-m]).mean() > 0.0
    ]
    return [y for y, _ in kept], [came for _, came in kept]


def read() -> Sets:
    """All series, by competition and period."""
    sets: Sets = {}
    path = Path(os.environ["POSTERITY_COMPETITIONS"]) / "competitions.csv"
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            parts = sets.setdefault((row["competition"], row["period"]), {"train": [], "test": []})
            parts[row["part"]].append(np.array(row["values"].split(), dtype=np.float64))
    return sets


if __name__ == "__main__":
    main()
