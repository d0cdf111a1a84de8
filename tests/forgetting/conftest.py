"""Streams that several tests of forgetting share."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

Stream = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="session")
def drift() -> Stream:
    """Halford (2020): 100 rows of one line, 50 in between, 100 of another."""
    random = np.random.RandomState(42)
    first, second = np.array([-0.3, 0.5]), np.array([1.0, -0.7])
    rows, targets = [], []
    for i in range(250):
        # As published: in between, the share of the first line jumps to 0 and grows.
        share = 1.0 if i < 100 else (i - 100) / 50 if i < 150 else 0.0
        x = np.array([1.0, random.uniform(-1.0, 1.0)])
        rows.append(x)
        targets.append((share * first + (1.0 - share) * second) @ x + random.normal(0.0, 0.2))
    return np.array(rows), np.array(targets)


@pytest.fixture(scope="session")
def electricity(data_folder: Path) -> Stream:
    """elec2: the price in New South Wales; vicprice is constant for its first months."""
    features = ("period", "nswdemand", "vicprice", "vicdemand", "transfer")
    with (data_folder / "streams" / "elec2.csv").open(newline="") as file:
        rows = [
            [float(row[name]) for name in (*features, "nswprice")] for row in csv.DictReader(file)
        ]
    values = np.array(rows)
    return np.ascontiguousarray(values[:, :-1]), np.ascontiguousarray(values[:, -1])
