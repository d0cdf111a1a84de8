"""Diagonal models: probabilities of rows of many features, and new observations."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from guarantees.check import Check
from posterity.sparse import DiagonalLinearRegression, DiagonalLogisticRegression

TOPIC = "Diagonal models of many features"


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


def checks() -> list[Check]:
    """A few rows a level, and many."""
    return [
        Check(TOPIC, f"{what}, n = {n:,}", 0.95, partial(simulate, n=n), 40, 0.93, 0.97)
        for what, simulate in (
            ("probabilities of labels", probabilities),
            ("new observations", observations),
        )
        for n in (1_000, 10_000)
    ]
