"""Strong and weak coefficients in one table, each kind by itself, by default settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from guarantees.check import Check
from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.forgetting import Stabilized
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

TOPICS = {what: f"Coefficients of unequal size: the {what}" for what in ("strong", "weak")}
# What a row tells of its predictor, in units of a row under normal noise of variance 1.
TOLD = {
    "linear": 1.0,
    "logistic": 0.25,
    "Poisson": 1.0,
    "negative binomial": 0.5,
    "robust": 0.5,
    "quantile": 0.64,
}
MODELS: dict[str, Any] = {
    "linear": BayesianLinearRegression,
    "logistic": BayesianLogisticRegression,
    "Poisson": BayesianPoissonRegression,
    "negative binomial": BayesianNegativeBinomialRegression,
    "robust": BayesianRobustRegression,
    "quantile": partial(BayesianQuantileRegression, quantile=0.5),
}
# Effects of the levels of two categories, and shares of rows of the first one's.
AGES, SHARES = np.array([0.9, 0.5, 0.1, 0.0, 0.15]), [0.05, 0.1, 0.3, 0.35, 0.2]


def draw_target(rng: np.random.Generator, kind: str, eta: np.ndarray) -> np.ndarray:
    """Targets of these predictors, under the noise of that model."""
    if kind in ("linear", "quantile"):
        return eta + rng.normal(size=len(eta))
    if kind == "robust":
        return eta + rng.standard_t(3, size=len(eta))
    if kind == "logistic":
        return (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    more = rng.gamma(1.0, 1.0, len(eta)) if kind == "negative binomial" else 1.0
    return rng.poisson(np.exp(eta) * more)


def held(
    rng: np.random.Generator,
    *,
    kind: str,
    what: str,
    n: int,
    p: int,
    strong: int,
    size: float,
    correlation: float = 0.0,
    null: bool = False,
    way: str = "fit",
) -> tuple[int, int]:
    """``strong`` of p effects have this size in standard errors, the others half a one, or none."""
    X = np.sqrt(1.0 - correlation) * rng.normal(size=(n, p))
    X += np.sqrt(correlation) * rng.normal(size=(n, 1))
    error = 1.0 / np.sqrt(n * (1.0 - correlation) * TOLD[kind])
    truth = np.zeros(p) if null else 0.5 * error * rng.normal(size=p)
    truth[:strong] = size * error * rng.choice([-1.0, 1.0], strong)
    y = draw_target(rng, kind, X @ truth)
    forgetting = {"forgetting": Stabilized(0.9999)} if way == "Stabilized" else {}
    model = MODELS[kind](**forgetting)
    if way == "fit":
        model.fit(X, y)
    else:
        step = n // 10 if way == "batches" else 1
        for first in range(0, n, step):
            model.partial_fit(X[first : first + step], y[first : first + step])
    low, high = np.asarray(model.posterior_.interval(0.95))[1:].T
    some = slice(0, strong) if what == "strong" else slice(strong, None)
    return int(np.sum((low <= truth)[some] & (truth <= high)[some])), len(truth[some])


def held_wide(
    rng: np.random.Generator, *, model: Any, what: str, n: int, p: int, size: float
) -> tuple[int, int]:
    """The same with one strong effect, in a model of many features."""
    kind = next(kind for kind in TOLD if kind.capitalize() in model.__name__)
    X, error = rng.normal(size=(n, p)), 1.0 / np.sqrt(n * TOLD[kind])
    truth = 0.5 * error * rng.normal(size=p)
    truth[0] = size * error * rng.choice([-1.0, 1.0])
    table = model().fit(X, draw_target(rng, kind, X @ truth)).summary().iloc[1:]
    some = slice(0, 1) if what == "strong" else slice(1, None)
    inside = (table["low"] <= truth) & (truth <= table["high"])
    return int(np.sum(inside[some])), len(truth[some])


def held_levels(
    rng: np.random.Generator, *, kind: str, what: str, by_hand: bool, n: int, noise: float = 1.0
) -> tuple[int, int]:
    """Levels against a base: the strongest of five, or 19 of 20 that differ little (sd 0.2)."""
    region, age = rng.choice(20, n), rng.choice(5, n, p=SHARES)
    regions = 0.2 * rng.normal(size=20)
    eta = regions[region] + AGES[age]
    exposure: dict[str, Any] = {}
    if kind == "Poisson":
        exposure = {"exposure": 0.1 * rng.gamma(2.0, 0.5, n)}
        y = rng.poisson(exposure["exposure"] * np.exp(eta))
    else:
        y = eta + noise * rng.normal(size=n)
    model = MODELS[kind]()
    if by_hand:
        columns = [age == k for k in (0, 1, 2, 4)] + [region == k for k in range(1, 20)]
        model.fit(np.column_stack(columns).astype(float), y, **exposure)
        low, high = np.asarray(model.posterior_.interval(0.95))[1:].T
        some = slice(0, 1) if what == "strong" else slice(4, None)
    else:
        names = {"age": np.array(list("abcde"))[age], "region": np.char.mod("r%02d", region)}
        model.fit(pd.DataFrame(names), y, **exposure)
        table = model.summary(base={"age": "d", "region": "r00"})
        strong, weak = ["age=a"], [f"region=r{k:02d}" for k in range(1, 20)]
        rows = table.loc[strong if what == "strong" else weak]
        low, high = rows["low"].to_numpy(), rows["high"].to_numpy()
        some = slice(None)
    truth = AGES[:1] if what == "strong" else regions[1:] - regions[0]
    inside = (low[some] <= truth) & (truth <= high[some])
    return int(np.sum(inside)), len(truth)


# Model, rows, columns, strong ones, their size, correlation; and in how many data sets.
CELLS = [
    ("linear", 100, 20, 1, 3.0, 0.0, 200),
    ("linear", 100, 20, 1, 6.0, 0.0, 200),
    ("linear", 100, 20, 1, 12.0, 0.0, 200),
    ("linear", 100, 5, 1, 6.0, 0.0, 200),
    ("linear", 400, 50, 2, 6.0, 0.0, 100),
    ("linear", 1000, 100, 1, 6.0, 0.0, 100),
    ("linear", 200, 20, 1, 6.0, 0.8, 200),
    ("linear", 200, 20, 1, 6.0, 0.95, 200),
    ("linear", 400, 50, 1, 6.0, 0.95, 100),
    ("linear", 10_000, 20, 1, 6.0, 0.0, 100),
    ("linear", 100_000, 20, 1, 6.0, 0.0, 100),
    ("linear", 30, 20, 1, 6.0, 0.0, 200),
    ("linear", 200, 100, 1, 6.0, 0.0, 100),
    ("linear", 20, 50, 1, 6.0, 0.0, 100),
    ("linear", 30, 100, 1, 6.0, 0.0, 100),
    ("linear", 50, 200, 1, 12.0, 0.0, 40),
    ("logistic", 400, 20, 1, 6.0, 0.0, 100),
    ("logistic", 100_000, 20, 1, 6.0, 0.0, 40),
    ("Poisson", 400, 20, 1, 6.0, 0.0, 100),
    ("Poisson", 100_000, 20, 1, 6.0, 0.0, 40),
    ("negative binomial", 400, 20, 1, 6.0, 0.0, 40),
    ("robust", 400, 20, 1, 6.0, 0.0, 100),
    ("quantile", 400, 20, 1, 6.0, 0.0, 40),
]
# Model, dummies made by hand, rows, sd of the noise; and in how many data sets.
LEVELS = [
    ("linear", False, 2000, 1.0, 100),
    ("linear", False, 500, 1.0, 100),
    ("linear", True, 2000, 1.0, 100),
    ("Poisson", False, 10_000, 1.0, 40),
    ("Poisson", True, 10_000, 1.0, 40),
]


# Model, how 600 rows come, and in how many data sets.
WAYS = [
    ("linear", "batches", 100),
    ("linear", "rows", 100),
    ("linear", "Stabilized", 100),
    ("negative binomial", "Stabilized", 40),
]
# Models of many features, rows, columns, the size of the strong one; and in how many data sets.
WIDE = [
    (SparseLinearRegression, 400, 20, 6.0, 100),
    (SparseLinearRegression, 1000, 100, 6.0, 100),
    (SparseLogisticRegression, 400, 20, 6.0, 100),
    (SparseLogisticRegression, 1000, 100, 12.0, 40),
    (SparsePoissonRegression, 400, 20, 6.0, 100),
    (DiagonalLinearRegression, 400, 20, 6.0, 100),
    (DiagonalLogisticRegression, 1000, 100, 12.0, 40),
    (DiagonalPoissonRegression, 400, 20, 6.0, 100),
]


# Models whose noise is searched for, or whose dispersion is uncertain, hold less of the strong.
LOWEST = {"quantile": 0.78, "robust": 0.8, "negative binomial": 0.7}


def checks() -> list[Check]:
    """Strong ones and weak ones apart: an average over both would hide either."""
    found = []
    for kind, n, p, strong, size, correlation, replicates in CELLS:
        setting = f"{kind}: {strong} of {p} at {size:.0f} standard errors, n = {n:,}"
        setting += f", correlation {correlation}" if correlation else ""
        cell: dict[str, Any] = {"kind": kind, "n": n, "p": p, "strong": strong, "size": size}
        # At the edge of what can be seen, shrinking costs: the exact posterior holds .87.
        lowest = 0.74 if size == 3.0 else LOWEST.get(kind, 0.86)
        # Few rows take many strong ones for weak, as the exact posterior does.
        bounds = (0.4, 0.82) if n < p else (lowest, 0.9 if p == 100 else 0.92)
        simulate = partial(held, correlation=correlation, **cell)
        found += _check_kinds(setting, simulate, replicates, bounds)
    for kind, by_hand, n, noise, replicates in LEVELS:
        coding = "dummies without a base" if by_hand else "text"
        setting = f"{kind}: a level of 5 beside 20 levels, {coding}, n = {n:,}"
        simulate = partial(held_levels, kind=kind, by_hand=by_hand, n=n, noise=noise)
        found += _check_kinds(setting, simulate, replicates, (0.84, 0.9), share=2)
    for kind, way, replicates in WAYS:
        setting = f"{kind}, {way}: 1 of 20 at 6 standard errors, n = 600"
        simulate = partial(held, kind=kind, n=600, p=20, strong=1, size=6.0, way=way)
        found += _check_kinds(setting, simulate, replicates, (0.86, 0.92))
    for model, n, p, size, replicates in WIDE:
        setting = f"{model.__name__}: 1 of {p} at {size:.0f} standard errors, n = {n:,}"
        simulate = partial(held_wide, model=model, n=n, p=p, size=size)
        # Scales are found, not integrated over.
        found += _check_kinds(setting, simulate, replicates, (0.8, 0.92))
    simulate = partial(held, kind="linear", what="weak", n=100, p=20, strong=1, size=6.0, null=True)
    setting = "linear: 19 of none beside one at 6 standard errors, n = 100"
    found.append(Check(TOPICS["weak"], setting, 0.95, simulate, 50, 0.92, 1.0))
    return found


def _check_kinds(
    setting: str,
    simulate: Callable[..., tuple[int, int]],
    replicates: int,
    bounds: tuple[float, float],
    share: int = 4,
) -> list[Check]:
    """The strong and the weak, which are many in each of a share of the data sets."""
    return [
        Check(TOPICS[what], setting, 0.95, partial(simulate, what=what), some, bound, 1.0)
        for what, some, bound in zip(TOPICS, (replicates, replicates // share), bounds, strict=True)
    ]
