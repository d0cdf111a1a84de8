"""Categories that come for the first time: rows are predicted with what is not known of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from guarantees.check import Check
from posterity import BayesianLinearRegression, BayesianLogisticRegression


def _rows(rng: np.random.Generator, k: int, effect: float, zipf: bool) -> tuple[np.ndarray, ...]:
    """One-hot columns (5 k, k), targets with effects N(0, effect^2) and noise of sd 1, levels."""
    shares = 1.0 / np.arange(1, k + 1) if zipf else np.ones(k)
    levels = rng.choice(k, 5 * k, p=shares / shares.sum())
    y = (effect * rng.normal(size=k))[levels] + rng.normal(size=5 * k)
    return np.eye(k)[levels], y, levels


def row_by_row(
    rng: np.random.Generator, *, k: int, effect: float, zipf: bool, new: bool
) -> tuple[int, int]:
    """Intervals of the first row of each level (but the very first row), or of all other rows."""
    X, y, levels = _rows(rng, k, effect, zipf)
    low, high = BayesianLinearRegression().predict_then_learn(X, y).interval(0.95)
    first = np.zeros(len(y), dtype=bool)
    first[np.unique(levels, return_index=True)[1]] = True
    asked = first if new else ~first
    asked[:2] = False
    return int(np.sum((low <= y)[asked] & (y <= high)[asked])), int(asked.sum())


def after_fit(rng: np.random.Generator, *, k: int, effect: float, zipf: bool) -> tuple[int, int]:
    """Intervals of rows whose level was not among the first rows, 3 for 2 levels."""
    X, y, levels = _rows(rng, k, effect, zipf)
    seen = 3 * k // 2
    unseen = np.flatnonzero(~np.isin(levels, levels[:seen]))
    unseen = unseen[unseen >= seen]
    if not len(unseen):
        return 0, 0
    model = BayesianLinearRegression().fit(X[:seen], y[:seen])
    low, high = model.predict_distribution(X[unseen]).interval(0.95)
    return int(np.sum((low <= y[unseen]) & (y[unseen] <= high))), len(unseen)


def means(rng: np.random.Generator, *, k: int, effect: float) -> tuple[int, int]:
    """Expected values of levels that came to none of 3 rows for 2 levels."""
    effects = effect * rng.normal(size=k)
    levels = rng.integers(0, k, 3 * k // 2)
    y = effects[levels] + rng.normal(size=len(levels))
    model = BayesianLinearRegression().fit(np.eye(k)[levels], y)
    low, high = model.predict_interval(np.eye(k), of="mean").T
    held = (low <= effects) & (effects <= high)
    unseen = ~np.isin(np.arange(k), levels)
    return int(np.sum(held[unseen])), int(unseen.sum())


def probabilities(rng: np.random.Generator, *, k: int, n_classes: int) -> tuple[int, int]:
    """Probabilities of several classes at such levels, 5 rows for 2 levels."""
    odds = rng.normal(size=(k, n_classes)) + rng.normal(size=n_classes)
    truth = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    levels = rng.integers(0, k, 5 * k // 2)
    y = np.array([rng.choice(n_classes, p=truth[level]) for level in levels])
    model = BayesianLogisticRegression()
    model.partial_fit(np.eye(k)[levels], y, classes=list(range(n_classes)))
    unseen = ~np.isin(np.arange(k), levels)
    if not unseen.any():
        return 0, 0
    ends = model.predict_interval(np.eye(k)[unseen])
    held = (ends[..., 0] <= truth[unseen]) & (truth[unseen] <= ends[..., 1])
    return int(np.sum(held)), held.size


ROW_BY_ROW, AFTER_FIT = "New categories, row by row", "New categories after fit"


def checks() -> list[Check]:
    """Levels equally frequent or with shares of 1, 1/2, 1/3, ..., over sizes of the effects."""
    found = []
    for zipf in (False, True):
        for effect in (0.5, 1.0, 3.0, 10.0):
            some = {"k": 20, "zipf": zipf, "effect": effect}
            found.append(_check(ROW_BY_ROW, partial(row_by_row, new=True), some, 40))
            found.append(_check(AFTER_FIT, after_fit, some, 150))
        some = {"k": 20, "zipf": zipf, "effect": 3.0}
        topic = "Rows of known categories"
        found.append(_check(topic, partial(row_by_row, new=False), some, 40))
    for effect in (1.0, 3.0, 10.0):
        some = {"k": 200, "zipf": False, "effect": effect}
        found.append(_check(ROW_BY_ROW, partial(row_by_row, new=True), some, 2))
        found.append(_check(AFTER_FIT, after_fit, some, 12))
    for effect in (0.5, 1.0, 3.0):
        setting = f"expected values, 60 levels, effects of {effect:g} noise sds"
        simulate = partial(means, k=60, effect=effect)
        found.append(
            Check("What is expected of new categories", setting, 0.95, simulate, 60, 0.92, 0.985)
        )
    for n_classes in (3, 6):
        setting = f"probabilities of {n_classes} classes, 60 levels"
        simulate = partial(probabilities, k=60, n_classes=n_classes)
        found.append(
            Check("What is expected of new categories", setting, 0.95, simulate, 20, 0.88, 0.99)
        )
    return found


def _check(topic: str, simulate: Any, some: dict[str, Any], replicates: int) -> Check:
    shares = "shares 1/k" if some["zipf"] else "equal shares"
    setting = f"{some['k']} levels, {shares}, effects of {some['effect']:g} noise sds"
    highest = 0.975 if topic in (ROW_BY_ROW, AFTER_FIT) else 0.97
    return Check(topic, setting, 0.95, partial(simulate, **some), replicates, 0.93, highest)
