"""Accuracy on the M competitions: POSTERITY_DATA=FOLDER python benchmarks/forecasts.py.

FOLDER has ``forecasting/m4_hourly_train.csv.gz`` and ``..._test``, the same of ``weekly``, and
``m3_monthly.csv.gz`` (columns unique_id, part, values). Every forecast comes from the defaults,
with nothing but the horizon and the frequency of the competition. Scores are those of M4: OWA is
the mean of sMAPE and MASE, each over that of Naive2; MSIS and coverage are of the 95% intervals.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from posterity.forecasting import Forecaster

Array = NDArray[np.float64]
Series = list[Array]

# Name: periods of the frequency, M4's period for scores and Naive2, horizon.
SETS = {
    "M4 hourly": ((24, 168), 24, 48),
    "M4 weekly": ((52,), 1, 13),
    "M3 monthly": ((12,), 12, 18),
}


def main() -> None:
    """Print a line for each competition, or for those that the command line names."""
    print("| | series | OWA | sMAPE | MASE | MSIS | 95% held | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in sys.argv[1:] or SETS:
        periods, m, h = SETS[name]
        train, test = read(name)
        start = time.process_time()
        forecast = Forecaster(seasonality=periods).fit(dict(enumerate(train))).forecast(h)
        median, (low, high) = forecast.median(), forecast.interval(0.95)
        seconds = time.process_time() - start
        owa, smape, mase, msis, held = scores(train, test, m, median, low, high)
        print(
            f"| {name}, {h} steps | {len(train)} | {owa:.4f} | {smape:.2f} | {mase:.3f} | "
            f"{msis:.2f} | {held:.3f} | {seconds:.0f} |",
            flush=True,
        )


def read(name: str) -> tuple[Series, Series]:
    """Series to learn and their outcomes."""
    folder = Path(os.environ["POSTERITY_DATA"]) / "forecasting"
    if name == "M3 monthly":
        parts: dict[str, Series] = {"train": [], "test": []}
        for _, part, values in _lines(folder / "m3_monthly.csv.gz"):
            parts[part].append(np.array(values.split(), dtype=np.float64))
        return parts["train"], parts["test"]
    stem = name.lower().replace(" ", "_")
    train, test = (
        [np.array([one for one in row[1:] if one not in {"", "NA"}], np.float64) for row in rows]
        for rows in (_lines(folder / f"{stem}_{part}.csv.gz") for part in ("train", "test"))
    )
    return train, test


def _lines(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


# ---- scores, as M4 defines them (Makridakis, Spiliotis and Assimakopoulos 2020) -----------------


def scores(
    train: Series, test: Series, m: int, median: Array, low: Array, high: Array
) -> tuple[float, ...]:
    """OWA, sMAPE, MASE, MSIS and the share held, means over series."""
    predictive = []
    for y, came, point, below, above in zip(train, test, median, low, high, strict=True):
        naive = naive2(y, m, len(came))
        scale = np.abs(y[m:] - y[:-m]).mean()
        width = above - below + 40.0 * np.maximum(below - came, 0.0)
        width += 40.0 * np.maximum(came - above, 0.0)
        predictive.append(
            (
                _smape(came, point),
                _smape(came, naive),
                np.abs(came - point).mean() / scale,
                np.abs(came - naive).mean() / scale,
                width.mean() / scale,
                np.mean((below <= came) & (came <= above)),
            )
        )
    smape, smape_naive, mase, mase_naive, msis, held = np.mean(predictive, axis=0)
    return 0.5 * (smape / smape_naive + mase / mase_naive), smape, mase, msis, held


def _smape(came: Array, point: Array) -> float:
    return float(np.mean(200.0 * np.abs(came - point) / (np.abs(came) + np.abs(point))))


def naive2(y: Array, m: int, h: int) -> Array:
    """The last value, seasonally adjusted by classical decomposition where a 90% test says so."""
    if not seasonal(y, m):
        return np.full(h, y[-1])
    each, n = indices(y, m), len(y)
    return y[-1] / each[(n - 1) % m] * each[(n + np.arange(h)) % m]


def indices(y: Array, m: int) -> Array:
    """(m,) seasonal indices of the classical multiplicative decomposition."""
    n, half = len(y), m // 2
    weights = np.ones(m) / m if m % 2 else np.r_[0.5, np.ones(m - 1), 0.5] / m
    trend = np.full(n, np.nan)
    trend[half : n - half] = np.convolve(y, weights, "valid")
    found = np.array([np.nanmean((y / trend)[place::m]) for place in range(m)])
    return found / found.mean()


def seasonal(y: Array, m: int) -> bool:
    """Return True if the autocorrelation at a season is significant at 90%."""
    if m <= 1 or len(y) < 3 * m:
        return False
    off = y - y.mean()
    correlations = np.array([off[lag:] @ off[:-lag] for lag in range(1, m + 1)]) / (off @ off)
    bound = 1.645 * np.sqrt((1.0 + 2.0 * np.sum(np.square(correlations[:-1]))) / len(y))
    return bool(abs(correlations[-1]) > bound)


if __name__ == "__main__":
    main()
