"""Every sixtieth monthly series of the M3 competition, from the defaults."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np

from posterity.forecasting import Forecaster


def test_m3_monthly(data_folder: Path) -> None:
    with gzip.open(data_folder / "forecasting" / "m3_monthly.csv.gz", "rt") as file:
        rows = list(csv.reader(file))[1:]
    parts: dict[str, dict[str, np.ndarray]] = {"train": {}, "test": {}}
    for name, part, values in rows:
        parts[part][name] = np.array(values.split(), dtype=float)
    names = sorted(parts["train"])[::60]
    known = {name: parts["train"][name] for name in names}
    came = np.array([parts["test"][name] for name in names])
    forecast = Forecaster(seasonality=12).fit(known).forecast(18)
    scale = np.array([np.abs(y[12:] - y[:-12]).mean() for y in known.values()])[:, None]
    naive = np.array([np.resize(y[-12:], 18) for y in known.values()])
    error = np.abs(forecast.median() - came) / scale
    assert error.mean() < 0.9 * (np.abs(naive - came) / scale).mean()
    low, high = forecast.interval(0.95)
    assert 0.88 < np.mean((low <= came) & (came <= high)) < 0.99
    assert (forecast.crps(came) / scale).mean() < 0.75 * error.mean()
