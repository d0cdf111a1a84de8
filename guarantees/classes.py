"""Labels, two classes and many, and counts in one pass: probabilities and coefficients."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from guarantees.check import Check
from posterity import BayesianLogisticRegression, BayesianPoissonRegression

Way = Literal["fit", "batches of 100", "rows", "rows, classes not named before"]
# Counts or labels in the order of their target are met around a Gaussian that knows of one kind of
# target only: what their intervals hold is stated, not promised.
IN_ORDER = "counts in increasing order"


def probabilities(
    rng: np.random.Generator, *, n_classes: int, p: int, n: int, way: Way
) -> tuple[int, int]:
    """Intervals of the probabilities of all classes at 30 rows; coefficients from N(0, 1)."""
    truth = rng.normal(size=(n_classes, p + 1))
    X = np.column_stack([np.ones(n + 30), rng.normal(size=(n + 30, p))])
    eta = X @ truth.T
    if n_classes == 2:
        eta /= np.sqrt(2.0)  # the log odds are then a difference of variance 1, too
    y = np.argmax(eta[:n] + rng.gumbel(size=(n, n_classes)), axis=1)
    expected = np.exp(eta[n:] - eta[n:].max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    rows, new = X[:n, 1:], X[n:, 1:]
    model = _learned(BayesianLogisticRegression(), rows, y, way, np.arange(n_classes))
    ends = model.predict_interval(new)
    if n_classes == 2:
        expected, ends = expected[:, 1], ends
    low, high = ends[..., 0], ends[..., 1]
    return int(np.sum((low <= expected) & (expected <= high))), expected.size


def _learned(
    model: BayesianLogisticRegression,
    X: np.ndarray,
    y: np.ndarray,
    way: Way,
    classes: np.ndarray,
) -> BayesianLogisticRegression:
    if way == "fit":
        return model.fit(X, y)
    if way == "rows, classes not named before":
        for row, label in zip(X, y, strict=True):
            model.learn_one(row, int(label))
        return model
    if way == "rows":
        model.predict_then_learn(X, y, classes=classes)
        return model
    for start in range(0, len(X), 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100], classes=classes)
    return model


def two_classes(
    rng: np.random.Generator, *, p: int, n: int, level: float, spread: float, way: Way
) -> tuple[int, int]:
    """Probabilities of 50 rows of two classes; log odds have this level, and about this sd."""
    truth = spread / np.sqrt(p) * rng.normal(size=p)
    X = rng.normal(size=(n + 50, p))
    expected = 1.0 / (1.0 + np.exp(-level - X @ truth))
    y = (rng.random(n) < expected[:n]).astype(int)
    model = _learned(BayesianLogisticRegression(), X[:n], y, way, np.arange(2))
    low, high = model.predict_interval(X[n:]).T
    return int(np.sum((low <= expected[n:]) & (expected[n:] <= high))), 50


def counts(rng: np.random.Generator, *, n: int, in_order: bool) -> tuple[int, int]:
    """Intervals of an intercept and three coefficients of log rates, row by row."""
    truth = np.array([0.5, *(0.5 * rng.normal(size=3))])
    X = rng.normal(size=(n, 3))
    y = rng.poisson(np.exp(truth[0] + X @ truth[1:]))
    order = np.argsort(y, kind="stable") if in_order else np.arange(n)
    model = BayesianPoissonRegression()
    model.predict_then_learn(X[order], y[order])
    posterior = model.posterior_
    reach = 1.96 * posterior.std()
    return int(np.sum(np.abs(posterior.mean - truth) <= reach)), 4


def checks() -> list[Check]:
    """Two to ten classes in three ways; counts in random order and in their own."""
    settings: list[tuple[int, int, int, Way, int, float]] = [
        (2, 4, 1000, "fit", 100, 0.93),
        (2, 4, 1000, "batches of 100", 100, 0.93),
        (2, 4, 1000, "rows", 100, 0.93),
        (3, 4, 400, "fit", 60, 0.92),
        (3, 4, 400, "batches of 100", 40, 0.92),
        (3, 4, 400, "rows", 40, 0.90),
        (5, 4, 400, "batches of 100", 20, 0.90),
        (5, 4, 400, "rows", 20, 0.90),
        (7, 18, 400, "rows, classes not named before", 10, 0.90),
        (10, 4, 1000, "fit", 20, 0.90),
        (10, 4, 1000, "batches of 100", 6, 0.88),
        (10, 4, 1000, "rows", 6, 0.88),
        (10, 20, 500, "batches of 100", 4, 0.88),
        (10, 20, 500, "rows", 4, 0.86),
    ]
    labels = [
        Check(
            "Probabilities of classes",
            f"{n_classes} classes, {p} features, {n:,} rows: {way}",
            0.95,
            partial(probabilities, n_classes=n_classes, p=p, n=n, way=way),
            replicates=replicates,
            lowest=lowest,
            highest=0.98,
        )
        for n_classes, p, n, way, replicates, lowest in settings
    ]
    rates = [
        Check(
            "Coefficients of counts, row by row",
            f"3 features, 1,000 rows, {IN_ORDER if in_order else 'random order'}",
            0.95,
            partial(counts, n=1000, in_order=in_order),
            replicates=200,
            lowest=lowest,
            highest=0.98,
        )
        for in_order, lowest in ((False, 0.92), (True, 0.2))
    ]
    ways: tuple[Way, ...] = ("fit", "batches of 100", "rows")
    kinds: dict[str, tuple[dict[str, Any], int]] = {
        "nearly separated, 30 features": ({"p": 30, "level": 0.0, "spread": 6.0}, 20),
        "rare, 5 features, 4% of labels": ({"p": 5, "level": -5.0, "spread": 2.2}, 80),
    }
    hard = [
        Check(
            "Probabilities of classes",
            f"2 classes, {kind}, 1,000 rows: {way}",
            0.95,
            partial(two_classes, n=1000, way=way, **settings),
            replicates=replicates,
            lowest=0.90,
            highest=0.99,
        )
        for kind, (settings, replicates) in kinds.items()
        for way in ways
    ]
    return labels + hard + rates
