"""Groups with few rows: expected values in groups that are known, and in new ones."""

from __future__ import annotations

from functools import partial

import numpy as np

from guarantees.check import Check
from posterity import GroupedRegression


def means(
    rng: np.random.Generator,
    *,
    n_groups: int,
    n_rows: int,
    p: int,
    sd: float,
    way: str,
    new: bool,
) -> tuple[int, int]:
    """Intervals of the mean at 50 rows; coefficients with this sd over groups, noise of 1."""
    truth = rng.normal(size=p + 1) + sd * rng.normal(size=(n_groups + 5, p + 1))
    keys = rng.permutation(np.repeat(np.arange(n_groups), n_rows))
    X = rng.normal(size=(len(keys), p))
    y = truth[keys, 0] + np.sum(X * truth[keys, 1:], axis=1) + rng.normal(size=len(keys))
    model = GroupedRegression()
    if way == "fit":
        model.fit(X, y, groups=keys)
    elif way == "rows":
        model.predict_then_learn(X, y, groups=keys)
    else:
        for first in range(0, len(X), 100):
            some = slice(first, first + 100)
            model.partial_fit(X[some], y[some], groups=keys[some])
    asked = n_groups + rng.integers(0, 5, size=50) if new else rng.integers(0, n_groups, size=50)
    X = rng.normal(size=(50, p))
    expected = truth[asked, 0] + np.sum(X * truth[asked, 1:], axis=1)
    low, high = model.predict_interval(X, groups=asked, of="mean").T
    return int(np.sum((low <= expected) & (expected <= high))), 50


# Groups, rows a group, features, sd of coefficients over groups, data sets.
SETTINGS = [
    (5, 3, 2, 1.0, 200),
    (5, 20, 2, 1.0, 200),
    (30, 3, 2, 1.0, 100),
    (30, 3, 2, 0.0, 100),
    (30, 3, 2, 10.0, 100),
    (30, 3, 5, 0.3, 100),
    (300, 3, 10, 0.3, 20),
    (30, 10, 20, 0.3, 20),
    (8, 4, 8, 0.5, 100),
]


def checks() -> list[Check]:
    """Every setting by fit; those of few rows in batches and row by row, too."""
    ways = {(30, 3, 5): ["fit", "batches", "rows"], (5, 3, 2): ["fit", "batches", "rows"]}
    return [
        Check(
            f"Expected values in {'new' if new else 'known'} groups",
            f"{groups} groups of {rows} rows, p = {p}, coefficients with an sd of {sd:g}, {way}",
            0.95,
            partial(means, n_groups=groups, n_rows=rows, p=p, sd=sd, way=way, new=new),
            replicates,
            0.9,
            1.0,
        )
        for groups, rows, p, sd, replicates in SETTINGS
        for way in ways.get((groups, rows, p), ["fit"])
        for new in (False, True)
    ]
