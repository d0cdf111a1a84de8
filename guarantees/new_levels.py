"""Categories that come for the first time: rows are predicted with what is not known of them."""

from __future__ import annotations

from functools import partial

import numpy as np

from guarantees.check import Check
from posterity import BayesianLinearRegression

LEVELS = 20
ROWS = 100


def _rows(rng: np.random.Generator, effect: float, zipf: bool) -> tuple[np.ndarray, ...]:
    """One-hot columns (n, 20), targets with effects N(0, effect^2) and noise of sd 1, levels."""
    shares = 1.0 / np.arange(1, LEVELS + 1) if zipf else np.ones(LEVELS)
    levels = rng.choice(LEVELS, ROWS, p=shares / shares.sum())
    y = (effect * rng.normal(size=LEVELS))[levels] + rng.normal(size=ROWS)
    return np.eye(LEVELS)[levels], y, levels


def row_by_row(
    rng: np.random.Generator, *, effect: float, zipf: bool, new: bool
) -> tuple[int, int]:
    """Intervals of the first row of each level (but the very first row), or of all other rows."""
    X, y, levels = _rows(rng, effect, zipf)
    low, high = BayesianLinearRegression().predict_then_learn(X, y).interval(0.95)
    first = np.zeros(ROWS, dtype=bool)
    first[np.unique(levels, return_index=True)[1]] = True
    asked = first if new else ~first
    asked[:2] = False
    return int(np.sum((low <= y)[asked] & (y <= high)[asked])), int(asked.sum())


def after_fit(rng: np.random.Generator, *, effect: float, zipf: bool) -> tuple[int, int]:
    """Intervals of rows whose level was not among the 30 rows of ``fit``."""
    X, y, levels = _rows(rng, effect, zipf)
    unseen = np.flatnonzero(~np.isin(levels, levels[:30]))
    unseen = unseen[unseen >= 30]
    if not len(unseen):
        return 0, 0
    model = BayesianLinearRegression().fit(X[:30], y[:30])
    low, high = model.predict_distribution(X[unseen]).interval(0.95)
    return int(np.sum((low <= y[unseen]) & (y[unseen] <= high))), len(unseen)


def checks() -> list[Check]:
    """20 levels, equally frequent or with shares of 1, 1/2, 1/3, ..., over sizes of the effects."""
    found = []
    for zipf in (False, True):
        shares = "shares 1/k" if zipf else "equal shares"
        for effect in (0.5, 1.0, 3.0, 10.0):
            setting = f"20 levels, {shares}, effects of {effect:g} noise sds"
            for topic, simulate, replicates in (
                ("New categories, row by row", partial(row_by_row, new=True), 40),
                ("New categories after fit", after_fit, 150),
            ):
                found.append(
                    Check(
                        topic,
                        setting,
                        0.95,
                        partial(simulate, effect=effect, zipf=zipf),
                        replicates=replicates,
                        lowest=0.93,
                        highest=0.975,
                    )
                )
        found.append(
            Check(
                "Rows of categories that came before",
                f"20 levels, {shares}, effects of 3 noise sds",
                0.95,
                partial(row_by_row, effect=3.0, zipf=zipf, new=False),
                replicates=40,
                lowest=0.93,
                highest=0.97,
            )
        )
    return found
