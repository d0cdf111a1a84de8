"""Curves by default settings, each kind of function by itself; and outside of the rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from guarantees.check import Check
from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)
from posterity.basis import HilbertSpaceGP, Spline

FUNCTIONS: dict[str, Any] = {
    "sine": lambda x: np.sin(3.0 * x),
    "bump": lambda x: np.exp(-np.square(x / 0.15)),
    "step": lambda x: (x > 0.0) * 1.0,
    "line": lambda x: x,
    "hockey stick": lambda x: 2.0 * np.maximum(x, 0.0),
    "sin 30x": lambda x: np.sin(30.0 * x),
}
BASES: dict[str, Any] = {
    "Spline()": Spline(),
    '"auto"': "auto",
    "HilbertSpaceGP()": HilbertSpaceGP(),
}
# Rows and how many data sets, those of "auto" apart, whose exact process takes seconds.
SIZES = ((40, 60), (200, 40), (1000, 30), (10_000, 12))
SIZES_OF_AUTO = ((40, 60), (60, 60), (200, 40))
# The share held averages over places next to a jump, where the curve cannot follow it.
LOWEST = {"step": 0.85}


def held(
    rng: np.random.Generator, *, basis: str, function: str, n: int, noise: float, outside: bool
) -> tuple[int, int]:
    """Places in [-1, 1], or from 1.05 to 1.5, at which the interval of the mean has the truth."""
    curve = FUNCTIONS[function]
    x = rng.uniform(-1.0, 1.0, size=(n, 1))
    y = curve(x[:, 0]) + noise * rng.normal(size=n)
    places = np.linspace(1.05, 1.5, 10) if outside else np.linspace(-0.99, 0.99, 100)
    if not outside:
        places = places[(places >= x.min()) & (places <= x.max())]
    model = BayesianLinearRegression(basis=BASES[basis]).fit(x, y)
    low, high = model.predict_interval(places[:, None], of="mean").T
    truth = curve(places)
    return int(np.sum((low <= truth) & (truth <= high))), len(places)


def held_in_stream(rng: np.random.Generator, *, function: str, n: int) -> tuple[int, int]:
    """The same after rows from left to right, ten by ten, whose first place the first knots."""
    curve = FUNCTIONS[function]
    x = np.sort(rng.uniform(-1.0, 1.0, size=(n, 1)), axis=0)
    y = curve(x[:, 0]) + 0.3 * rng.normal(size=n)
    model = BayesianLinearRegression(basis=Spline())
    for first in range(0, n, 10):
        model.partial_fit(x[first : first + 10], y[first : first + 10])
    places = np.linspace(x[0, 0], x[-1, 0], 100)
    low, high = model.predict_interval(places[:, None], of="mean").T
    truth = curve(places)
    return int(np.sum((low <= truth) & (truth <= high))), len(places)


def held_of_means(rng: np.random.Generator, *, of: str, function: str, n: int) -> tuple[int, int]:
    """The same of probabilities of labels, whose log odds are twice the curve, or of counts."""
    curve = FUNCTIONS[function]
    x, places = rng.uniform(-1.0, 1.0, size=(n, 1)), np.linspace(-0.95, 0.95, 60)
    eta, truth = curve(x[:, 0]), curve(places)
    model: Any
    if of == "labels":
        y, truth = rng.uniform(size=n) < expit(2.0 * eta), expit(2.0 * truth)
        model = BayesianLogisticRegression(basis=Spline()).fit(x, y)
    else:
        y, truth = rng.poisson(np.exp(eta)), np.exp(truth)
        model = BayesianPoissonRegression(basis=Spline()).fit(x, y)
    low, high = model.predict_interval(places[:, None], of="mean").T
    return int(np.sum((low <= truth) & (truth <= high))), len(places)


def checks() -> list[Check]:
    """Every function by itself, for an average over functions hides the hard ones."""
    found = []
    for basis, sizes in (("Spline()", SIZES), ('"auto"', SIZES_OF_AUTO)):
        for function in FUNCTIONS:
            cells = [(n, 0.3, replicates) for n, replicates in sizes]
            if basis == "Spline()":
                cells += [(200, 0.1, 40), (200, 1.0, 40)]
            for n, noise, replicates in cells:
                cell = {"basis": basis, "function": function, "n": n, "noise": noise}
                setting = f"{basis}: {function}, n = {n:,}, noise {noise}"
                simulate = partial(held, outside=False, **cell)
                bound = LOWEST.get(function, 0.9)
                topic = "Curves inside of the rows"
                found.append(Check(topic, setting, 0.95, simulate, replicates, bound, 1.0))
    for function in FUNCTIONS:
        bound = LOWEST.get(function, 0.9)
        topic = "Curves row by row, as their domain grows"
        stream = partial(held_in_stream, function=function, n=200)
        setting = f"Spline(): {function}, n = 200 from left to right, noise 0.3"
        found.append(Check(topic, setting, 0.95, stream, 40, bound, 1.0))
    for of in ("labels", "counts"):
        for function in ("sine", "bump", "step", "line", "hockey stick"):
            bound = LOWEST.get(function, 0.9)
            topic = "Curves of labels and counts"
            means = partial(held_of_means, of=of, function=function, n=300)
            setting = f"Spline(): {of}, {function}, n = 300"
            found.append(Check(topic, setting, 0.95, means, 40, bound, 1.0))
    for basis in BASES:
        for function in ("line", "sine"):
            cell = {"basis": basis, "function": function, "n": 60, "noise": 0.3}
            setting = f"{basis}: {function}, n = 60, rows in [-1, 1], places from 1.05 to 1.5"
            simulate = partial(held, outside=True, **cell)
            topic = "Curves outside of the rows"
            found.append(Check(topic, setting, 0.95, simulate, 40, 0.86, 1.0))
    return found
