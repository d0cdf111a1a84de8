"""Linear regression whose noise depends on the features, where noise is low and high."""

from __future__ import annotations

from functools import partial

import numpy as np

from guarantees.check import Check
from posterity import BayesianLinearRegression

NEW = 150


def predictions(
    rng: np.random.Generator, *, n: int, p: int, slope: float, rows: bool, part: str
) -> tuple[int, int]:
    """New observations in the third of the rows with the least or the most noise, or all means.

    The log of the noise's variance rises by ``slope`` a standard deviation of the first feature.
    """
    X = rng.normal(size=(n + NEW, p))
    expected = 1.0 + X @ rng.normal(size=p)
    y = expected + np.exp(0.5 * slope * X[:, 0]) * rng.normal(size=n + NEW)
    model = BayesianLinearRegression(noise="linear")
    learn = model.predict_then_learn if rows else model.fit
    learn(X[:n], y[:n])
    of = "mean" if part == "mean" else "observation"
    truth = expected[n:] if part == "mean" else y[n:]
    low, high = model.predict_interval(X[n:], 0.95, of=of).T
    held = (low <= truth) & (truth <= high)
    order = np.argsort(X[n:, 0])
    third = {"all": order, "mean": order, "low": order[: NEW // 3], "high": order[-NEW // 3 :]}[
        part
    ]
    return int(held[third].sum()), len(third)


def describe(slope: float, part: str) -> str:
    """Which rows are looked at, or what of them."""
    if part == "mean":
        return "means"
    return "noise constant" if slope == 0.0 else f"third of {part} noise"


def checks() -> list[Check]:
    """By size, way of learning, and third of the rows; and noise that is constant."""
    settings = [
        (n, p, 1.5, rows, part)
        for n, p, rows in (
            (50, 1, False),
            (50, 1, True),
            (200, 5, False),
            (200, 5, True),
            (5000, 5, False),
            (5000, 5, True),
        )
        for part in ("low", "high")
    ]
    settings += [(n, 5, 1.5, rows, "mean") for n in (50, 200) for rows in (False, True)]
    settings += [(50, 1, 0.0, rows, "all") for rows in (False, True)]
    settings += [(200, 20, 0.0, rows, "all") for rows in (False, True)]
    return [
        Check(
            "Predictions of linear regression with noise='linear'",
            f"p = {p}, n = {n:,}, {'row by row' if rows else 'fit'}, " + describe(slope, part),
            0.95,
            partial(predictions, n=n, p=p, slope=slope, rows=rows, part=part),
            replicates={50: 50, 200: 30, 5000: 4}[n],
            lowest=0.90 if slope else 0.93,
            highest=0.998 if slope and n < 5000 else 0.975,
        )
        for n, p, slope, rows, part in settings
    ]
