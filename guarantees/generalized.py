"""Labels, counts, waits and ratings by default settings: summaries, new rows, and groups."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import special

from guarantees.check import Check
from posterity import (
    BayesianGeneralizedLinear,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    GroupedRegression,
)
from posterity.likelihoods import Gamma, Ordinal

NEW = 40
MODELS: dict[str, Any] = {
    "labels": BayesianLogisticRegression,
    "counts": BayesianPoissonRegression,
    "counts, a level with few events": BayesianPoissonRegression,
    "counts with exposures": BayesianPoissonRegression,
    "waits (Gamma)": partial(BayesianGeneralizedLinear, Gamma()),
    "ratings (Ordinal, 4 levels)": partial(BayesianGeneralizedLinear, Ordinal(4)),
}


def _draw_table(
    rng: np.random.Generator, kind: str, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three levels beside a base and two numbers, their coefficients, and eta."""
    X = np.column_stack([rng.integers(4, size=n)[:, None] == [1, 2, 3], rng.normal(size=(n, 2))])
    truth = np.concatenate([0.7 * rng.normal(size=3), 0.4 * rng.normal(size=2)])
    if "few events" in kind:
        truth[0] = -4.0
    return X, truth, X @ truth + (-0.5 if kind == "labels" else 0.3)


def _draw_targets(rng: np.random.Generator, kind: str, eta: np.ndarray) -> np.ndarray:
    if kind == "labels":
        return (rng.random(eta.shape) < special.expit(eta)).astype(int)
    if kind.startswith("waits"):
        return rng.gamma(2.0, np.exp(eta) / 2.0)
    if kind.startswith("ratings"):
        return np.digitize(eta + rng.logistic(size=len(eta)), [-1.0, 0.5, 2.0]).astype(float)
    return rng.poisson(np.exp(eta)).astype(float)


def _draw(rng: np.random.Generator, kind: str, n: int) -> tuple[Any, ...]:
    X, truth, eta = _draw_table(rng, kind, n + NEW)
    exposure = rng.lognormal(0.0, 0.7, size=n + NEW) if "exposures" in kind else np.ones(n + NEW)
    y = _draw_targets(rng, kind, eta + np.log(exposure))
    how = [{"exposure": part} for part in (exposure[:n], exposure[n:])]
    return X, y, truth, how if "exposures" in kind else [{}, {}]


def coefficients(rng: np.random.Generator, *, kind: str, n: int) -> tuple[int, int]:
    """95% intervals of the summary."""
    X, y, truth, how = _draw(rng, kind, n)
    if kind == "labels" and len(set(y[:n])) < 2:
        return 0, 0
    table = MODELS[kind]().fit(X[:n], y[:n], **how[0]).summary()
    low, high = table[["low", "high"]].to_numpy()[1:6].T
    return int(np.sum((low <= truth) & (truth <= high))), 5


def new_rows(rng: np.random.Generator, *, kind: str, n: int) -> tuple[int, int]:
    """95% intervals of new targets, which are whole numbers, and hold a little more."""
    X, y, _, how = _draw(rng, kind, n)
    low, high = MODELS[kind]().fit(X[:n], y[:n], **how[0]).predict_interval(X[n:], **how[1]).T
    return int(np.sum((low <= y[n:]) & (y[n:] <= high))), NEW


def groups(rng: np.random.Generator, *, kind: str, table: tuple[int, int]) -> tuple[int, int]:
    """95% intervals of intercept and slope of each group."""
    key = np.repeat(np.arange(table[0]), table[1])
    each = rng.normal([0.5, 0.4], [0.6, 0.3], size=(table[0], 2))
    X = rng.normal(size=(len(key), 1))
    y = _draw_targets(rng, kind, each[key, 0] + each[key, 1] * X[:, 0])
    model = GroupedRegression(likelihood="bernoulli" if kind == "labels" else "poisson")
    found = model.fit(X, y, groups=key).summary()[["low", "high"]].to_numpy()
    held = (found[:, 0] <= each.ravel()) & (each.ravel() <= found[:, 1])
    return int(held.sum()), held.size


def checks() -> list[Check]:
    """Forty tables of each kind."""
    found = []
    for kind in MODELS:
        for n in (40, 200):
            common, setting = {"kind": kind, "n": n}, f"{kind}: {n} rows"
            topic = "Coefficients of labels, counts, waits and ratings: the summary"
            simulate = partial(coefficients, **common)
            found.append(Check(topic, setting, 0.95, simulate, 40, lowest=0.9, highest=0.99))
            if kind != "labels":
                topic = "New rows of counts, waits and ratings after a fit"
                simulate = partial(new_rows, **common)
                found.append(Check(topic, setting, 0.95, simulate, 40, lowest=0.93, highest=1.0))
    for kind in ("labels", "counts"):
        for table in ((12, 8), (30, 20)):
            setting = f"{kind}: {table[0]} groups of {table[1]} rows"
            simulate = partial(groups, kind=kind, table=table)
            topic = "Coefficients of groups of labels and counts"
            found.append(Check(topic, setting, 0.95, simulate, 20, lowest=0.92, highest=0.98))
    return found
