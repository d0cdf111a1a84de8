"""Labels of more classes than have all of their covariance kept: 30 to 200."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from guarantees.check import Check
from posterity import BayesianLogisticRegression

Of = Literal["rare", "common"]


def probabilities(
    rng: np.random.Generator, *, n_classes: int, p: int, n: int, of: Of
) -> tuple[int, int]:
    """Intervals at 30 rows of the third of the classes that came least often, or most often.

    Coefficients are from N(0, 1 / 4), intercepts from N(0, 1): the commonest of 30 classes comes
    some fifty times as often as the rarest. The rows are learned at their mode.
    """
    eta_of = 0.5 * rng.normal(size=(n_classes, p))
    X = rng.normal(size=(n + 30, p))
    eta = rng.normal(size=n_classes) + X @ eta_of.T
    y = np.argmax(eta[:n] + rng.gumbel(size=(n, n_classes)), axis=1)
    counts = np.bincount(y, minlength=n_classes)
    y[:n_classes][counts == 0] = np.flatnonzero(counts == 0)  # a class without rows is no class
    model = BayesianLogisticRegression().fit(X[:n], y)
    expected = np.exp(eta[n:] - eta[n:].max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    order, third = np.argsort(counts), n_classes // 3
    some = order[:third] if of == "rare" else order[-third:]
    low, high = np.moveaxis(model.predict_interval(X[n:])[:, some], 2, 0)
    return int(np.sum((low <= expected[:, some]) & (expected[:, some] <= high))), 30 * third


def checks() -> list[Check]:
    """Three sizes; rare classes and common ones by themselves."""
    settings: list[tuple[int, int, int, int]] = [
        (30, 21, 1500, 6),
        (100, 6, 2000, 4),
        (200, 4, 3000, 3),
    ]
    return [
        Check(
            "Probabilities of many classes",
            f"{n_classes} classes, {p} features, {n:,} rows, {of} classes",
            0.95,
            partial(probabilities, n_classes=n_classes, p=p, n=n, of=of),
            replicates=replicates,
            lowest=0.9,
            highest=0.98,
        )
        for n_classes, p, n, replicates in settings
        for of in ("rare", "common")
    ]
