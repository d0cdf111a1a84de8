"""Streams whose world changes, and memories that hold fewer rows than there are features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from guarantees.check import Check
from posterity import BayesianLinearRegression
from posterity.forgetting import Adaptive, Directional, Exponential, Forgetting, Stabilized

Array = np.ndarray
N = 1000
# The first rows are not judged: they are about small samples, not about change.
FIRST = 30


def _jumps(rng: np.random.Generator) -> tuple[Array, Array]:
    moved = 2.0 * rng.normal(size=(N, 3)) * (rng.random((N, 1)) < 0.01)
    return np.cumsum(moved, axis=0), np.ones(N)


def _walk(rng: np.random.Generator) -> tuple[Array, Array]:
    return np.cumsum(0.06 * rng.normal(size=(N, 3)), axis=0), np.ones(N)


def _recurring(rng: np.random.Generator) -> tuple[Array, Array]:
    return np.where(np.arange(N)[:, None] // 150 % 2, -3.0, 3.0) * np.ones(3), np.ones(N)


def _outliers(rng: np.random.Generator) -> tuple[Array, Array]:
    return np.ones((N, 3)), np.where(rng.random(N) < 0.02, 20.0, 1.0)


def _noise(rng: np.random.Generator) -> tuple[Array, Array]:
    return np.ones((N, 3)), np.exp(np.cumsum(0.05 * rng.normal(size=N)))


def _nothing(rng: np.random.Generator) -> tuple[Array, Array]:
    return np.ones((N, 3)), np.ones(N)


World = Callable[[np.random.Generator], tuple[Array, Array]]
WORLDS: dict[str, World] = {
    "jumps every 100 rows": _jumps,
    "coefficients that wander": _walk,
    "two worlds by turns": _recurring,
    "2% outliers of 20 sds": _outliers,
    "noise that wanders": _noise,
    "nothing changes": _nothing,
}


def held(rng: np.random.Generator, *, world: World) -> tuple[int, int]:
    """Rows whose target was in the interval predicted before it was learned."""
    coefficients, sd = world(rng)
    X = rng.normal(size=(N, 3))
    y = np.sum(X * coefficients, axis=1) + sd * rng.normal(size=N)
    predictive = BayesianLinearRegression(forgetting=Adaptive()).predict_then_learn(X, y)
    probability = predictive.cdf(y)[FIRST:]  # quicker than the ends of intervals
    return int(np.sum((probability > 0.025) & (probability < 0.975))), N - FIRST


def faded(
    rng: np.random.Generator, *, p: int, n: int, forgetting: Forgetting, of: str
) -> tuple[int, int]:
    """Means or targets of 50 new rows, held after a stream in which nothing changed."""
    X = rng.normal(size=(n + 50, p))
    expected = X @ rng.normal(size=p) / np.sqrt(p)
    y = expected + rng.normal(size=n + 50)
    model = BayesianLinearRegression(forgetting=forgetting)
    model.predict_then_learn(X[:n], y[:n])
    low, high = model.predict_interval(X[n:], of=of).T
    truth = expected[n:] if of == "mean" else y[n:]
    return int(np.sum((low <= truth) & (truth <= high))), 50


def checks() -> list[Check]:
    """Six worlds of 1,000 rows, and memories that are shorter than there are features."""
    adaptive = [
        Check(
            "Streams under Adaptive, each row predicted before it is learned",
            f"3 features, 1,000 rows, {name}",
            0.95,
            partial(held, world=world),
            replicates=20,
            lowest=0.94,
            highest=0.97,
        )
        for name, world in WORLDS.items()
    ]
    short = [
        Check(
            "New rows after a short memory",
            f"{type(forgetting).__name__}({forgetting.discount}), p = {p}, n = {n}, {of}",
            0.95,
            partial(faded, p=p, n=n, forgetting=forgetting, of=of),
            replicates=30,
            lowest=0.9,
            highest=1.0,
        )
        for forgetting, p, n in (
            (Exponential(0.95), 20, 300),
            (Exponential(0.98), 60, 300),
            (Stabilized(0.95), 60, 300),
            (Exponential(0.99), 200, 100),
            (Directional(0.95), 20, 300),
            (Directional(0.95), 60, 300),
        )
        for of in ("mean", "observation")
    ]
    return adaptive + short
