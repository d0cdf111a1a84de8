"""Learners of every kind with thirty good rows, and rows that are odd in every way."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from posterity import (
    Averaged,
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
    GroupedRegression,
)
from posterity.basis import HilbertSpaceGP, Spline
from posterity.calibration import Conformal, Recalibrated
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Directional,
    Exponential,
    RandomWalk,
    Stabilized,
    Window,
)
from posterity.likelihoods import Gaussian

N = 30
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3))
Y = X @ [1.0, 2.0, -1.0] + 0.3 * RNG.normal(size=N)
ONES = (Y > 0.0).astype(float)
THREE = np.digitize(Y, [-1.0, 1.0]).astype(float)
COUNTS = RNG.poisson(np.exp(0.3 * Y)).astype(float)
PAIRS = np.column_stack([Y, 1.0 - Y])

WAYS = (
    Exponential(discount=0.9),
    Stabilized(discount=0.9),
    Adaptive(discounts=(1.0, 0.9)),
    Window(size=20),
    Directional(discount=0.95),
    RandomWalk(variance=0.01),
    Changepoint(hazard=0.05, max_runs=10),
)


def averaged() -> Averaged:
    members = {p: BayesianLinearRegression(prior_precision=p) for p in (0.1, 10.0)}
    return Averaged([(f"precision {p}", model) for p, model in members.items()])


LEARNERS: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    "linear": (BayesianLinearRegression, Y),
    "flat": (lambda: BayesianLinearRegression(prior_precision=0.0), Y),
    "known noise": (lambda: BayesianLinearRegression(noise_precision=1.0), Y),
    "ard": (lambda: BayesianLinearRegression(prior_precision="ard"), Y),
    **{
        type(way).__name__: (lambda way=way: BayesianLinearRegression(forgetting=way), Y)
        for way in WAYS
    },
    "noise that varies": (lambda: BayesianLinearRegression(noise="linear"), Y),
    "spline": (lambda: BayesianLinearRegression(basis=Spline(n_knots=4)), Y),
    "curve": (lambda: BayesianLinearRegression(basis=HilbertSpaceGP(n_functions=4)), Y),
    "several targets": (BayesianLinearRegression, PAIRS),
    "logistic": (BayesianLogisticRegression, ONES),
    "logistic that forgets": (lambda: BayesianLogisticRegression(forgetting=WAYS[1]), ONES),
    "three classes": (BayesianLogisticRegression, THREE),
    "poisson": (BayesianPoissonRegression, COUNTS),
    "poisson that forgets": (lambda: BayesianPoissonRegression(forgetting=WAYS[1]), COUNTS),
    "negative binomial": (BayesianNegativeBinomialRegression, COUNTS),
    "robust": (BayesianRobustRegression, Y),
    "quantile": (lambda: BayesianQuantileRegression(quantile=0.3), Y),
    "generalized": (lambda: BayesianGeneralizedLinear(Gaussian(1.0)), Y),
    "grouped": (GroupedRegression, Y),
    "averaged": (averaged, Y),
    "conformal": (lambda: Conformal(BayesianLinearRegression()), Y),
    "recalibrated": (lambda: Recalibrated(BayesianLinearRegression()), Y),
}

SIZES = (
    *(5e-324, 1e-320, 1e-300, 1e-200, 1e-160, 1e-100, 1e-76, 1e-70, 1e-60, 1e-30),
    *(1e10, 1e30, 1e60, 1e74, 1e75, 1e76, 1e100, 1e149, 1e150, 1e151, 1e200, 1e300, 1.7e308),
)
NO_NUMBERS: dict[str, Any] = {
    "infinite": np.inf,
    "NaN": np.nan,
    "whole beyond floats": 10**400,
    "None": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "date": datetime.date(2024, 2, 29),
    "stamp": pd.Timestamp("2024-02-29"),
    "span": np.timedelta64(3, "D"),
    "complex": 1.0 + 2.0j,
    "bytes": b"1",
    "text": "1",
    "text with underscores": "1_000",
    "text with spaces": " 2 ",
    "list": [1.0],
}
Batch = tuple[str, Any, Any, Any]


def odd_batches(y: np.ndarray) -> Iterator[Batch]:
    """Four rows each, with targets of the kind of ``y`` and weights, odd in one way."""
    rows, targets = X[:4], y[:4]
    for size in SIZES:
        yield f"X {size:g}", _changed(rows, size), targets, None
        with np.errstate(over="ignore"):
            column, whole, scaled = rows * [1.0, -size, 1.0], rows * size, targets * size
        yield f"X -{size:g}, all of a column", column, targets, None
        yield f"X {size:g}, all", whole, targets, None
        yield f"y {size:g}", rows, _changed(targets, size), None
        yield f"y {size:g}, all", rows, scaled, None
        yield f"weight {size:g}", rows, targets, np.array([1.0, size, 1.0, 1.0])
        yield f"weight {size:g}, all", rows, targets, np.full(4, size)
    yield "mixed scales", rows * [1e-60, 1.0, 1e60], targets, None
    yield "rows of mixed scales", rows * np.logspace(-60, 60, 4)[:, None], targets, None
    yield "large, of weight", rows * 1e50, targets, np.full(4, 1e50)
    yield "large, of more weight", rows * 1e50, targets, np.full(4, 1e60)
    yield "large, of small weight", rows * 1e100, targets, np.full(4, 1e-60)
    yield "2^53", rows, _changed(targets, 2.0**53), None
    yield "beyond 2^53", rows, _changed(targets, 2.0**54), None
    yield "half", rows, _changed(targets, 0.5), None
    yield "less than nothing", rows, _changed(targets, -1.0), None
    yield "no weight", rows, targets, np.zeros(4)
    for name, value in NO_NUMBERS.items():
        yield f"X {name}", _changed(rows.astype(object), value), targets, None
        yield f"y {name}", rows, _changed(targets.astype(object), value), None
        weights = np.ones(4, dtype=object)
        yield f"weight {name}", rows, targets, _changed(weights, value)
    yield "X of bytes", rows.round(1).astype("S8"), targets, None
    yield "X of text", rows.round(1).astype(str), targets, None
    yield "X of dates", (1e6 * rows).astype("M8[D]"), targets, None
    yield "y of dates", rows, targets.astype("M8[D]"), None
    yield "masked X", np.ma.masked_greater(rows, 0.5), targets, None
    masked = np.zeros(targets.shape, dtype=bool)
    masked.flat[1] = True
    yield "masked y", rows, np.ma.array(targets, mask=masked), None
    yield "masked weights", rows, targets, np.ma.array(np.ones(4), mask=[1, 0, 0, 0])


def _changed(values: np.ndarray, value: Any) -> np.ndarray:
    changed = values.copy()
    changed[(1,) * changed.ndim] = value
    return changed
