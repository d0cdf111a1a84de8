"""Models of many features: probabilities of labels, and new observations."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from guarantees.check import Check
from posterity.factorization import BayesianFactorizationClassifier
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    SparseLogisticRegression,
)

TOPIC = "Diagonal models of many features"
PROBABILITIES = "Probabilities by users and items"
# Rows, users, items, standard deviation of their log odds, intercept; and what is held at least.
SETTINGS: dict[str, tuple[int, int, int, float, float]] = {
    "4,000 rows of 200 users and 50 items": (4_000, 200, 50, 1.0, -1.0),
    "2,000 rows of 1,500 users and 1,000 items": (2_000, 1_500, 1_000, 1.0, 0.0),
    "4,000 rows, strong effects": (4_000, 200, 50, 4.0, 0.0),
    "20,000 rows, a label in some 400": (20_000, 200, 50, 1.0, -7.0),
    "30 rows of 5 users and 4 items": (30, 5, 4, 1.0, 0.0),
}
LOWEST = {
    "diagonal, fit": (DiagonalLogisticRegression, (0.93, 0.92, 0.91, 0.82, 0.92)),
    "diagonal, one pass": (DiagonalLogisticRegression, (0.93, 0.93, 0.89, 0.85, 0.92)),
    "sparse": (SparseLogisticRegression, (0.93, 0.93, 0.92, 0.88, 0.92)),
    "factorization machine": (BayesianFactorizationClassifier, (0.93, 0.92, 0.89, 0.88, 0.93)),
}


def rows(rng: np.random.Generator, n: int) -> tuple[list[list[str]], NDArray[Any]]:
    """Tokens of six columns of 5 to 2,000 levels, and the sums of their weights."""
    eta, tokens = np.zeros(n), []
    for column, levels in enumerate(np.geomspace(5, 2000, 6).astype(int)):
        level = rng.integers(0, levels, size=n)
        eta += 0.5 * rng.normal(size=levels)[level]
        tokens.append([f"{column}={place}" for place in level])
    return [list(row) for row in zip(*tokens, strict=True)], eta


def probabilities(rng: np.random.Generator, *, n: int) -> tuple[int, int]:
    """Intervals of the probabilities of 500 new rows, new levels among them."""
    X, eta = rows(rng, n + 500)
    truth = expit(eta - 1.0)
    y = (rng.random(n) < truth[:n]).astype(int)
    low, high = DiagonalLogisticRegression().fit(X[:n], y).predict_interval(X[n:]).T
    return int(np.sum((low <= truth[n:]) & (truth[n:] <= high))), 500


def observations(rng: np.random.Generator, *, n: int) -> tuple[int, int]:
    """Intervals of 500 new observations, noise of sd 1."""
    X, eta = rows(rng, n + 500)
    y = 3.0 + eta + rng.normal(size=n + 500)
    low, high = DiagonalLinearRegression().fit(X[:n], y[:n]).predict_interval(X[n:]).T
    return int(np.sum((low <= y[n:]) & (y[n:] <= high))), 500


def meetings(
    rng: np.random.Generator, *, kind: Any, setting: tuple[int, int, int, float, float], fit: bool
) -> tuple[int, int]:
    """Intervals of the probabilities of 500 new rows of users and items."""
    n, users, items, size, intercept = setting
    X = np.stack([rng.integers(0, users, n + 500), rng.integers(0, items, n + 500)], axis=1)
    eta = size * (rng.normal(size=users)[X[:, 0]] + rng.normal(size=items)[X[:, 1]])
    truth = expit(intercept + eta)
    y = (rng.random(n) < truth[:n]).astype(int)
    how = {"rank": 2} if kind is BayesianFactorizationClassifier else ALL_LEVELS
    model = kind(**how)
    if fit and 0 < y.sum() < n:
        model.fit(X[:n], y)
    else:
        model.partial_fit(X[:n], y, classes=[0, 1])
    low, high = model.predict_interval(X[n:]).T
    return int(np.sum((low <= truth[n:]) & (truth[n:] <= high))), 500


ALL_LEVELS = {"categorical_features": "all"}


def checks() -> list[Check]:
    """A few rows a level, and many."""
    by_meeting = [
        Check(
            PROBABILITIES,
            f"{name}: {setting}",
            0.95,
            partial(meetings, kind=kind, setting=numbers, fit=name.endswith("fit")),
            20,
            least,
            0.985,
        )
        for name, (kind, lowest) in LOWEST.items()
        for (setting, numbers), least in zip(SETTINGS.items(), lowest, strict=True)
    ]
    return by_meeting + [
        Check(TOPIC, f"{what}, n = {n:,}", 0.95, partial(simulate, n=n), 40, 0.93, 0.97)
        for what, simulate in (
            ("probabilities of labels", probabilities),
            ("new observations", observations),
        )
        for n in (1_000, 10_000)
    ]
