"""Predictions where rows come again or targets are whole numbers, which must not say "no noise"."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from guarantees.check import Check
from posterity import BayesianLinearRegression, BayesianRobustRegression
from posterity.basis import HilbertSpaceGP, RandomFourier

NEW = 200
MODELS: dict[str, Callable[[], Any]] = {
    "linear": BayesianLinearRegression,
    'linear, "ard"': partial(BayesianLinearRegression, prior_precision="ard"),
    "Student-t": BayesianRobustRegression,
    "Laplace": partial(BayesianRobustRegression, likelihood="laplace"),
    "HilbertSpaceGP": lambda: BayesianLinearRegression(basis=HilbertSpaceGP()),
    "RandomFourier": lambda: BayesianLinearRegression(basis=RandomFourier()),
    'basis="auto"': lambda: BayesianLinearRegression(basis="auto"),
}


def repeated(
    rng: np.random.Generator, *, model: str, n: int, p: int, again: int, way: str
) -> tuple[int, int]:
    """New observations, after the first ``again`` of n rows came twice."""
    X = rng.normal(size=(n + NEW, p))
    y = X[:, 0] + rng.normal(size=n + NEW)
    rows = np.r_[np.arange(n), np.arange(again)]
    learned = MODELS[model]()
    if way == "weights of 2":
        learned.fit(X[:n], y[:n], sample_weight=1.0 + (np.arange(n) < again))
    elif way == "batches":
        for some in np.array_split(rows, 3):
            learned.partial_fit(X[some], y[some])
    elif way == "rows":
        for row in rows:
            learned.learn_one(X[row], y[row])
    else:
        learned.fit(X[rows], y[rows])
    return _count(learned, X[n:], y[n:])


def whole_numbers(rng: np.random.Generator, *, model: str, way: str) -> tuple[int, int]:
    """New observations, of which about half are the same whole number."""
    X = rng.normal(size=(200 + NEW, 3))
    y = np.round(0.3 * (2.0 + X @ [1.0, -0.5, 0.0] + rng.normal(size=200 + NEW)))
    learned = MODELS[model]()
    learn = learned.partial_fit if way == "one pass" else learned.fit
    return _count(learn(X[:200], y[:200]), X[200:], y[200:])


def _count(learned: Any, X: np.ndarray, y: np.ndarray) -> tuple[int, int]:
    low, high = learned.predict_interval(X, 0.95).T
    return int(np.sum((low <= y) & (y <= high))), len(y)


def checks() -> list[Check]:
    """More columns or functions than rows; whole numbers of few values."""
    settings = [
        (model, 50, 60, again, way)
        for model, again, way in (
            ("linear", 0, "fit"),
            ("linear", 8, "fit"),
            ("linear", 50, "fit"),
            ("linear", 8, "batches"),
            ("linear", 8, "rows"),
            ("linear", 8, "weights of 2"),
            ('linear, "ard"', 0, "fit"),
            ('linear, "ard"', 8, "fit"),
            ("Student-t", 0, "fit"),
            ("Student-t", 8, "fit"),
            ("Laplace", 0, "fit"),
            ("Laplace", 8, "fit"),
        )
    ]
    settings += [
        (model, 120, 4, again, "fit")
        for model in ("HilbertSpaceGP", "RandomFourier", 'basis="auto"')
        for again in (0, 40, 120)
    ]
    found = [
        Check(
            "Noise: predictions where rows come again",
            f"{model}, p = {p}, n = {n}, {again} rows twice, {way}",
            0.95,
            partial(repeated, model=model, n=n, p=p, again=again, way=way),
            replicates=10,
            lowest=0.9,
            highest=0.985,
        )
        for model, n, p, again, way in settings
    ]
    for model in ("linear", "Student-t", "Laplace"):
        for way in ("fit", "one pass"):
            simulate = partial(whole_numbers, model=model, way=way)
            setting = f"{model}, half of them equal, p = 3, n = 200, {way}"
            topic = "Noise: predictions of whole numbers"
            found.append(Check(topic, setting, 0.95, simulate, 10, 0.93, 0.99))
    return found
