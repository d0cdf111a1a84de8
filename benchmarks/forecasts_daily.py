"""Daily sales with a week: forecasts beside the mean of the last eight same weekdays.

python benchmarks/forecasts_daily.py prints a line for each of five kinds of simulated series: 20 of
731 days, of which the next 28 are forecast from three origins by the defaults.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from posterity.forecasting import Forecaster

Array = NDArray[np.float64]

WEEK = np.array([0.8, 0.9, 0.95, 1.0, 1.25, 1.5, 0.6])
KINDS = (
    "weekday profile, noise 25%",
    "weekday profile, noise 10%",
    "level that wanders, noise 20%",
    "slow yearly wave, noise 25%",
    "counts, 8 a day",
)
DAYS, STEPS, SERIES, ORIGINS = 731, 28, 20, 3


def main() -> None:
    """Print the table."""
    print("| series | mean of eight weekdays | ours | ratio | 80% held | 80% width | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        started = time.process_time()
        ours, theirs, held, width = measure(kind)
        print(
            f"| {kind} | {theirs:.3g} | {ours:.3g} | {ours / theirs:.3f} | {held:.3f} "
            f"| {width:.3g} | {time.process_time() - started:.1f} |",
            flush=True,
        )


def measure(kind: str, origins: int = ORIGINS) -> tuple[float, float, float, float]:
    """Mean absolute errors of ours and of theirs; share held and width of 80% intervals."""
    rng = np.random.default_rng(0)
    series = np.array([simulate(kind, rng) for _ in range(SERIES)])
    found = []
    for origin in range(origins):
        known = DAYS - STEPS * (ORIGINS - origin)
        table = pd.DataFrame(
            {
                "unique_id": np.repeat(np.arange(SERIES), known),
                "ds": np.tile(pd.date_range("2024-01-01", periods=known), SERIES),
                "y": series[:, :known].ravel(),
            }
        )
        forecast = Forecaster().fit(table).forecast(STEPS)
        outcome = series[:, known : known + STEPS]
        median = np.asarray(forecast.median()).reshape(outcome.shape)
        low, high = (np.asarray(end).reshape(outcome.shape) for end in forecast.interval(0.8))
        average = np.array([average_weekdays(one[:known]) for one in series])
        errors = np.abs(median - outcome).mean(), np.abs(average - outcome).mean()
        found.append((*errors, np.mean((low <= outcome) & (outcome <= high)), (high - low).mean()))
    ours, theirs, held, width = np.mean(found, axis=0).tolist()
    return ours, theirs, held, width


def simulate(kind: str, rng: np.random.Generator) -> Array:
    """(731,) values of one series."""
    days = np.arange(DAYS)
    week = WEEK * np.exp(0.1 * rng.normal(size=7))
    usual, noise = 300.0 * np.exp(0.3 * rng.normal()) * week[days % 7], rng.normal(size=DAYS)
    if kind == KINDS[0]:
        return np.asarray(usual * (1.0 + 0.25 * noise))
    if kind == KINDS[1]:
        return np.asarray(usual * (1.0 + 0.10 * noise))
    if kind == KINDS[2]:
        level = np.exp(np.cumsum(0.02 * rng.normal(size=DAYS)))
        return np.asarray(usual * level * (1.0 + 0.2 * noise))
    if kind == KINDS[3]:
        wave = 1.0 + 0.2 * np.sin(2.0 * np.pi * days / 365.25 + rng.uniform(0.0, 6.0))
        return np.asarray(usual * wave * (1.0 + 0.25 * noise))
    return rng.poisson(8.0 * week[days % 7] / week.mean()).astype(np.float64)


def average_weekdays(values: Array, weeks: int = 8) -> Array:
    """(28,) means of the last so many same weekdays."""
    last = values[-7 * weeks :].reshape(weeks, 7).mean(axis=0)
    return np.resize(last, STEPS)


if __name__ == "__main__":
    main()
