"""Several targets at once: each by itself, all together, and some where the others are known."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import stats

from guarantees.check import Check
from posterity import BayesianLinearRegression
from posterity.distributions import JointPrediction

POINTS = 10
Array = np.ndarray


def drawn(rng: np.random.Generator, n: int, q: int) -> tuple[JointPrediction, Array]:
    """Predict 10 rows from n others, and return the targets too; one cause is common to all."""
    X = rng.normal(size=(n + POINTS, 3))
    common = rng.normal(size=(n + POINTS, 1)) * rng.normal(size=q)
    y = X @ rng.normal(size=(3, q)) + common + 0.5 * rng.normal(size=(n + POINTS, q))
    model = BayesianLinearRegression().fit(X[:n], y[:n])
    return model.predict_distribution(X[n:]), y[n:]


def held(predictive: JointPrediction, y: Array) -> tuple[int, int]:
    """Intervals of each target by itself."""
    low, high = predictive.interval(0.95)
    return int(np.sum((low <= y) & (y <= high))), y.size


def alone(rng: np.random.Generator, *, n: int, q: int) -> tuple[int, int]:
    """Each target, nothing of the others known."""
    return held(*drawn(rng, n, q))


def given(rng: np.random.Generator, *, n: int, q: int, known: int) -> tuple[int, int]:
    """The last target where the first ``known`` are known."""
    predictive, y = drawn(rng, n, q)
    some = predictive.given(list(range(known)), y[:, :known])
    return held(some, y[:, known:])


def lacking(rng: np.random.Generator, *, n: int, monotone: bool) -> tuple[int, int]:
    """Each of four targets, of which rows lack a third, anywhere or in order."""
    X = rng.normal(size=(n + POINTS, 3))
    common = rng.normal(size=(n + POINTS, 1)) * rng.normal(size=4)
    y = X @ rng.normal(size=(3, 4)) + common + 0.5 * rng.normal(size=(n + POINTS, 4))
    gone = rng.random(size=(n, 4)) < 1.0 / 3.0
    if monotone:
        gone = rng.random(size=(n, 1)) < [0.0, 0.2, 0.4, 0.6]
    model = BayesianLinearRegression().fit(X[:n], np.where(gone, np.nan, y[:n]))
    return held(model.predict_distribution(X[n:]), y[n:])


def together(rng: np.random.Generator, *, n: int, q: int) -> tuple[int, int]:
    """The smallest region of all targets: an ellipsoid, by the F distribution."""
    predictive, y = drawn(rng, n, q)
    z = (y - predictive.loc) / predictive.scale
    squared = np.sum(z * np.linalg.solve(predictive.correlation, z.T).T, axis=1) / q
    return int(np.sum(squared <= stats.f.ppf(0.95, q, predictive.df))), POINTS


def checks() -> list[Check]:
    """Few rows and many, four targets and ten."""
    made = []
    for n, q in ((10, 4), (20, 10), (100, 10)):
        setting = f"p = 3, n = {n}, q = {q}"
        bounds = {"replicates": 500, "lowest": 0.93, "highest": 0.985}
        made += [
            Check("Several targets", f"{setting}, each", 0.95, partial(alone, n=n, q=q), **bounds),
            Check(
                "Several targets",
                f"{setting}, all others known",
                0.95,
                partial(given, n=n, q=q, known=q - 1),
                **bounds,
            ),
            Check(
                "Several targets",
                f"{setting}, half of them known",
                0.95,
                partial(given, n=n, q=q, known=q // 2),
                **bounds,
            ),
            Check(
                "Several targets",
                f"{setting}, region of all",
                0.95,
                partial(together, n=n, q=q),
                **bounds,
            ),
        ]
    for n in (30, 100):
        for monotone in (True, False):
            made.append(
                Check(
                    "Several targets",
                    f"p = 3, n = {n}, q = 4, a third missing" + (", monotone" if monotone else ""),
                    0.95,
                    partial(lacking, n=n, monotone=monotone),
                    replicates=150 if monotone else 40,
                    lowest=0.92,
                    highest=0.985,
                )
            )
    return made
