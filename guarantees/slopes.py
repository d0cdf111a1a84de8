"""Slopes of columns, and intercepts, beside a column of groups: models of many features."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from guarantees.check import Check
from posterity.sparse import DiagonalLinearRegression, SparseLinearRegression

TOPIC = "Slopes of columns beside groups"
# Sizes of a slope in standard errors.
SIZES = (0.0, 1.0, 1.5, 2.0, 3.0)
# Groups, and rows of each.
TABLES = ((5, 6), (8, 4), (20, 10), (30, 2), (200, 5))


def slopes(
    rng: np.random.Generator,
    *,
    kind: Any,
    table: tuple[int, int],
    columns: int = 1,
    offset: float = 0.0,
    intercept: bool = False,
) -> tuple[int, int]:
    """Intervals of slopes of each size, or of the intercept, from the summary."""
    groups, rows = table
    n, held = groups * rows, 0
    group = np.repeat(np.arange(groups), rows)
    for size in SIZES:
        X = rng.normal(size=(n, columns))
        truth = size / np.sqrt(n) * rng.choice([-1.0, 1.0], size=columns)
        y = 1.0 + 0.3 * rng.normal(size=groups)[group] + X @ truth + rng.normal(size=n)
        frame = pd.DataFrame(X + offset).add_prefix("x").assign(group=group)
        found = kind(categorical_features=["group"]).fit(frame, y).summary()
        names = ["intercept"] if intercept else [f"x{place}" for place in range(columns)]
        truths = np.ones(1) if intercept else truth
        low, high = found.loc[names, ["low", "high"]].to_numpy().T
        held += int(np.sum((low <= truths) & (truths <= high)))
    return held, len(SIZES) * (1 if intercept else columns)


def arms(rng: np.random.Generator, *, table: tuple[int, int]) -> tuple[int, int]:
    """Intervals of what is expected of either arm, a text column of two levels; one group."""
    groups, rows = table
    n, held = groups * rows, 0
    for size in SIZES:
        arm, effect = rng.integers(0, 2, n), 2.0 * size / np.sqrt(n)
        y = 1.0 + effect * arm + rng.normal(size=n)
        frame = pd.DataFrame({"arm": np.where(arm == 1, "new", "old")})
        model = SparseLinearRegression().fit(frame, y)
        either = pd.DataFrame({"arm": ["old", "new"]})
        low, high = model.predict_interval(either, of="mean").T
        truth = 1.0 + effect * np.arange(2)
        held += int(np.sum((low <= truth) & (truth <= high)))
    return held, 2 * len(SIZES)


def checks() -> list[Check]:
    """Few groups and many; one column and five; near 0 and far from it; text of two levels."""
    sparse, named = partial(slopes, kind=SparseLinearRegression), "sizes of 0 to 3 standard errors"
    found = []
    for table in TABLES:
        where = f"{table[0]} groups of {table[1]} rows"
        found.append((f"sparse: {where}, {named}", partial(sparse, table=table)))
        found.append((f"sparse: {where}, intercept", partial(sparse, table=table, intercept=True)))
    found += [
        ("sparse: 20 groups of 10 rows, five columns", partial(sparse, table=(20, 10), columns=5)),
        ("sparse: 20 groups of 100 rows", partial(sparse, table=(20, 100))),
        (
            "sparse: 20 groups of 10 rows, a column at 1,000 standard deviations from 0",
            partial(sparse, table=(20, 10), offset=1000.0),
        ),
        ("sparse: 200 rows, text of two levels", partial(arms, table=(20, 10))),
        (
            "diagonal: 20 groups of 10 rows, a column at 1,000 standard deviations from 0",
            partial(slopes, kind=DiagonalLinearRegression, table=(20, 10), offset=1000.0),
        ),
    ]
    return [Check(TOPIC, setting, 0.95, simulate, 40, 0.93, 0.97) for setting, simulate in found]
