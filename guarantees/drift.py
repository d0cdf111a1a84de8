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


# Steps of the level, of one slope and of the other four, and jumps of the level and of all slopes.
KINDS: dict[str, tuple[float, float, float, float, float]] = {
    "the level walks by 1 noise sd": (1.0, 0.0, 0.0, 0.0, 0.0),
    "the level walks by .2": (0.2, 0.0, 0.0, 0.0, 0.0),
    "one slope walks by .2": (0.0, 0.2, 0.0, 0.0, 0.0),
    "all walk by .03": (0.03, 0.03, 0.03, 0.0, 0.0),
    "the level jumps by 4": (0.0, 0.0, 0.0, 4.0, 0.0),
    "all jump by 4": (0.0, 0.0, 0.0, 4.0, 4.0),
}
LATE = 100


def _draw(rng: np.random.Generator, kind: str) -> tuple[Array, Array]:
    level, slope, others, level_jump, slope_jump = KINDS[kind]
    steps = rng.normal(size=(800, 6)) * [level, slope, *[others] * 4]
    steps[400] += [level_jump, *[slope_jump] * 5]
    X, coefficients = rng.normal(size=(800, 5)), np.cumsum(steps, axis=0)
    y = coefficients[:, 0] + np.sum(X * coefficients[:, 1:], axis=1)
    return X, y + rng.normal(size=800)


def followed(rng: np.random.Generator, *, kind: str, first: int, last: int) -> tuple[int, int]:
    """Rows of a stretch whose target was in the interval predicted before it was learned."""
    X, y = _draw(rng, kind)
    predictive = BayesianLinearRegression(forgetting="adaptive").predict_then_learn(X, y)
    probability = predictive.cdf(y)[first:last]
    return int(np.sum((probability > 0.025) & (probability < 0.975))), last - first


def late(rng: np.random.Generator, *, told: bool) -> tuple[int, int]:
    """Rows in intervals of a model that has learned all but the last 100 rows."""
    X, y = _draw(rng, "all walk by .03")
    model, times = BayesianLinearRegression(forgetting="adaptive"), np.arange(800.0)
    held = 0
    for start in range(100, 800 - LATE, 50):
        known, asked = slice(start - 100 if start == 100 else start - 50, start), start + LATE
        model.partial_fit(X[known], y[known], times=times[known])
        rows = slice(asked - 1, asked)
        low, high = model.predict_interval(X[rows], times=times[rows] if told else None)[0]
        held += int(low <= y[asked - 1] <= high)
    return held, len(range(100, 800 - LATE, 50))


def calm(rng: np.random.Generator, *, tails: str) -> tuple[int, int]:
    """1 if no change is reported in 500 rows of which nothing changes."""
    X, y = rng.normal(size=(500, 3)), rng.normal(size=500)
    if tails == "1% outliers of 8 sds":
        y[rng.choice(500, 5, replace=False)] += 8.0
    elif tails == "Student-t noise, 3 degrees of freedom":
        y = rng.standard_t(3, size=500)
    y += X @ [1.0, -1.0, 0.5]
    return int(len(BayesianLinearRegression(forgetting="changepoint").fit(X, y).changes_) == 0), 1


def _kinds() -> list[Check]:
    """Intervals by kind of change, with late labels, and streams that Changepoint leaves whole."""
    stretches = [(f"rows 100 to 800, {kind}", kind, 100, 800) for kind in KINDS]
    stretches += [(f"50 rows after, {kind}", kind, 400, 450) for kind in KINDS if "jump" in kind]
    found = [
        Check(
            "Drift",
            f"Adaptive, {name}",
            0.95,
            partial(followed, kind=kind, first=a, last=b),
            20,
            0.9,
            0.97,
        )
        for name, kind, a, b in stretches
    ]
    found += [
        Check(
            "Drift",
            f"Adaptive, labels 100 rows late, all walk by .03, {name}",
            0.95,
            partial(late, told=told),
            30,
            low,
        )
        for name, told, low in (("times= given", True, 0.92), ("times= not given", False, 0.85))
    ]
    return found + [
        Check(
            "Drift",
            f"Changepoint, no false change in 500 rows, {tails}",
            0.95,
            partial(calm, tails=tails),
            60,
            0.8,
        )
        for tails in (
            "Gaussian noise",
            "1% outliers of 8 sds",
            "Student-t noise, 3 degrees of freedom",
        )
    ]


def checks() -> list[Check]:
    """Worlds that change, by kind, and memories that are shorter than there are features."""
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
    return adaptive + short + _kinds()
