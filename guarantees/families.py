"""Families of amounts, lifetimes, shares, counts and directions, fitted or row by row."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from guarantees.check import Check
from posterity import BayesianGeneralizedLinear
from posterity.likelihoods import (
    Beta,
    BetaBinomial,
    Binomial,
    Exponential,
    Gamma,
    Geometric,
    InverseGaussian,
    LinearNegativeBinomial,
    LogLogistic,
    LogNormal,
    NegativeBinomial,
    SkewNormal,
    StudentT,
    Tweedie,
    VonMises,
    Weibull,
)

NEW = 10
# The likelihood whose parameter is learned, and the one that draws.
FAMILIES: dict[str, tuple[Any, Any]] = {
    "Gamma": (Gamma(), Gamma(2.0)),
    "Weibull": (Weibull(), Weibull(2.0)),
    "Exponential": (Exponential(), Exponential()),
    "LogLogistic": (LogLogistic(), LogLogistic(2.0)),
    "LogNormal": (LogNormal(), LogNormal(0.7)),
    "InverseGaussian": (InverseGaussian(), InverseGaussian(0.3)),
    "Tweedie": (Tweedie(), Tweedie(1.5, 1.5)),
    "Beta": (Beta(), Beta(6.0)),
    "BetaBinomial": (BetaBinomial(8), BetaBinomial(8, 4.0)),
    "LinearNegativeBinomial": (LinearNegativeBinomial(), LinearNegativeBinomial(1.0)),
    "VonMises": (VonMises(), VonMises(4.0)),
    "NegativeBinomial": (NegativeBinomial(), NegativeBinomial(0.5)),
    "Binomial": (Binomial(8), Binomial(8)),
    "Geometric": (Geometric(), Geometric()),
    "SkewNormal": (SkewNormal(4.0, 0.7), SkewNormal(4.0, 0.7)),
    "StudentT": (StudentT(4.0, 0.7), StudentT(4.0, 0.7)),
}


def _draw_middling(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(n, 2)), np.array([0.5, -0.3])


def _draw_strong_and_weak(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(n, 10)), np.append(0.6, 0.04 * rng.normal(size=9))


def _draw_years(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    years = rng.uniform(2000.0, 2025.0, size=n)
    return np.column_stack([years, rng.normal(size=n)]), np.array([0.04, -0.3])


def _draw_year_of_five(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    years, effects = _draw_years(rng, n)
    others = 0.2 * rng.normal(size=3)
    return np.column_stack([years, rng.normal(size=(n, 3))]), np.append(effects, others)


def _draw_levels(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Dummies of a category; of the last level, 3% of the rows."""
    level = rng.choice(4, size=n, p=[0.5, 0.3, 0.17, 0.03])
    level[:4] = range(4)
    effects = 0.4 * rng.normal(size=4)
    return (level[:, None] == [1, 2, 3]).astype(float), effects[1:] - effects[0]


# How features and effects are drawn, and the effects that are asked for.
EFFECTS: dict[str, tuple[Any, slice]] = {
    "two middling effects": (_draw_middling, slice(0, 2)),
    "one strong effect of ten": (_draw_strong_and_weak, slice(0, 1)),
    "nine weak effects of ten": (_draw_strong_and_weak, slice(1, 10)),
    "an effect of the year": (_draw_years, slice(0, 1)),
    "an effect of the year, of five": (_draw_year_of_five, slice(0, 1)),
    "a level of few rows": (_draw_levels, slice(2, 3)),
}
MIDDLING = "two middling effects"
# What eta is on average where events are rare.
RARE = {
    "Tweedie": -1.0,
    "BetaBinomial": -2.5,
    "LinearNegativeBinomial": -1.5,
    "NegativeBinomial": -1.5,
    "Binomial": -3.0,
    "Geometric": -1.5,
}


def _draw(rng: np.random.Generator, known: Any, eta: np.ndarray) -> np.ndarray:
    if isinstance(known, NegativeBinomial):
        return rng.negative_binomial(2.0, 1.0 / (1.0 + 0.5 * np.exp(eta))).astype(float)
    y = np.asarray(known.distribution(eta).rvs(random_state=rng), dtype=float)
    return np.clip(y, 1e-9, 1.0 - 1e-9) if isinstance(known, Beta) else y


class Learned(NamedTuple):
    """A model of n rows, the effects of its features, and new rows."""

    model: BayesianGeneralizedLinear
    effects: np.ndarray
    X: np.ndarray
    y: np.ndarray


def _learn(
    rng: np.random.Generator,
    family: str,
    n: int,
    rows: bool,
    kind: str = MIDDLING,
    rare: bool = False,
) -> Learned:
    learned, known = FAMILIES[family]
    X, effects = EFFECTS[kind][0](rng, n + NEW)
    usual = 0.0 if expit(1.0) > known.mean(np.ones(1))[0] else 1.0
    y = _draw(rng, known, (RARE[family] if rare else usual) + (X - X.mean(axis=0)) @ effects)
    model = BayesianGeneralizedLinear(learned)
    if rows:
        for x, target in zip(X[:n], y[:n], strict=True):
            model.learn_one(x, target)
    else:
        model.fit(X[:n], y[:n])
    return Learned(model, effects, X[n:], y[n:])


def coefficients(
    rng: np.random.Generator, *, level: float, kind: str = MIDDLING, **table: Any
) -> tuple[int, int]:
    """Intervals of effects of a kind."""
    model, effects = _learn(rng, kind=kind, **table)[:2]
    asked = EFFECTS[kind][1]
    low, high = np.array(model.posterior_.interval(level))[1:].T
    held = ((low <= effects) & (high >= effects))[asked]
    return int(held.sum()), held.size


def parameters(rng: np.random.Generator, *, level: float, **table: Any) -> tuple[int, int]:
    """Intervals of the likelihood's parameter."""
    known, model = FAMILIES[table["family"]][1], _learn(rng, **table).model
    held = [
        bool(abs(told.cdf(getattr(known, name)) - 0.5) <= 0.5 * level)
        for name, told in model.likelihood_parameters_.items()
    ]
    return sum(held), len(held)


def new_rows(rng: np.random.Generator, *, level: float, **table: Any) -> tuple[int, int]:
    """Intervals of new targets; those of whole numbers hold more."""
    model, _, X, y = _learn(rng, **table)
    low, high = model.predict_interval(X, level).T
    return int(np.sum((low <= y) & (y <= high))), NEW


def checks() -> list[Check]:
    """Each family and size, fitted or learned row by row; and 200 rows of other effects."""
    found = []
    for family in FAMILIES:
        learns = FAMILIES[family][0].learns_parameter
        for n, rows in ((30, False), (30, True), (200, False), (1000, False)):
            table: dict[str, Any] = {"family": family, "n": n, "rows": rows}
            setting = f"{family}: {n:,} rows {'one by one' if rows else 'fitted'}"
            each = [("Coefficients of families", coefficients, 0.9, 0.8 if n == 30 else 0.85)]
            each += [("Coefficients of families", coefficients, 0.5, 0.4)] * (n == 200)
            each += [("Parameters of families", parameters, 0.9, 0.8)] * (learns and not rows)
            each += [("New rows of families", new_rows, 0.9, 0.85)] * (n < 1000)
            for topic, simulate, level, lowest in each:
                check = partial(simulate, **table, level=level)
                found.append(Check(topic, setting, level, check, 20 if rows else 40, lowest=lowest))
        table = {"family": family, "n": 200, "rows": False, "level": 0.9}
        more = [(kind, {"kind": kind}) for kind in EFFECTS if kind != MIDDLING]
        more += [(f"{MIDDLING}, rare events", {"rare": True})] * (family in RARE)
        for name, changes in more:
            check = partial(coefficients, **table, **changes)
            topic, setting = "Other effects of families, 200 rows", f"{family}: {name}"
            found.append(Check(topic, setting, 0.9, check, 40, lowest=0.8))
    return found
