"""Linear regression with the default prior: predictions of five rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from guarantees.check import Check
from posterity import BayesianLinearRegression


def predictions(rng: np.random.Generator, *, n: int, p: int, signal: float) -> tuple[int, int]:
    """Intervals of 20 new observations; coefficients from N(0, signal^2), noise of sd 1."""
    X = rng.normal(size=(n + 20, p))
    y = 1.0 + X @ (signal * rng.normal(size=p)) + rng.normal(size=n + 20)
    model = BayesianLinearRegression().fit(X[:n], y[:n])
    low, high = model.predict_distribution(X[n:]).interval(0.95)
    return int(np.sum((low <= y[n:]) & (y[n:] <= high))), 20


def checks() -> list[Check]:
    """Five rows and one feature, over signals weak and strong."""
    return [
        Check(
            "Predictions of linear regression",
            f"p = 1, n = 5, signal {signal}",
            0.95,
            partial(predictions, n=5, p=1, signal=signal),
            replicates=2000,
            lowest=0.94,
            highest=0.965,
        )
        for signal in (0.3, 1.0, 3.0)
    ]
