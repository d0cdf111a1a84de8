"""Vector autoregressions of few rows and many: what intervals of the next steps hold."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from guarantees.check import Check
from posterity.forecasting import VectorAutoregression

Array = NDArray[np.float64]
HORIZON = 8


def simulated(rng: np.random.Generator, n: int, q: int, *, walks: bool) -> Array:
    """Signals that follow each other a little, with noise in common; or their sums."""
    coefficients = 0.5 * np.eye(q) + rng.normal(size=(q, q)) * 0.15
    radius = np.abs(np.linalg.eigvals(coefficients)).max()
    coefficients *= min(1.0, 0.95 / radius)
    root = np.eye(q) + 0.4 * rng.normal(size=(q, q))
    y = np.zeros((n + 50, q))
    for t in range(1, len(y)):
        y[t] = coefficients @ y[t - 1] + root @ rng.normal(size=q)
    return np.cumsum(y, axis=0)[50:] if walks else y[50:]


def steps(rng: np.random.Generator, *, n: int, q: int, walks: bool) -> tuple[int, int]:
    """Each signal at each of the next eight steps."""
    y = simulated(rng, n + HORIZON, q, walks=walks)
    low, high = VectorAutoregression(lags=2).fit(y[:n]).forecast(HORIZON).interval(0.95)
    came = y[n:].T
    return int(np.sum((low <= came) & (came <= high))), came.size


def checks() -> list[Check]:
    """Few rows and many, signals that return and their sums."""
    return [
        Check(
            "Forecasts by vector autoregression",
            f"{'sums of ' if walks else ''}autoregressions, q = {q}, {n} rows",
            0.95,
            partial(steps, n=n, q=q, walks=walks),
            replicates=120,
            lowest=0.86 if walks else 0.92,
            highest=0.98,
        )
        for n, q in ((40, 3), (150, 6))
        for walks in (False, True)
    ]
