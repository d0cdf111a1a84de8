"""Families of amounts, lifetimes, shares, counts and directions, fitted or row by row."""

from __future__ import annotations

from functools import partial
from typing import Any

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

NEW, TRUTH = 10, np.array([0.5, -0.3])
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


def _draw(rng: np.random.Generator, known: Any, eta: np.ndarray) -> np.ndarray:
    if isinstance(known, NegativeBinomial):
        return rng.negative_binomial(2.0, 1.0 / (1.0 + 0.5 * np.exp(eta))).astype(float)
    y = np.asarray(known.distribution(eta).rvs(random_state=rng), dtype=float)
    return np.clip(y, 1e-9, 1.0 - 1e-9) if isinstance(known, Beta) else y


def _learn(
    rng: np.random.Generator, family: str, n: int, rows: bool
) -> tuple[BayesianGeneralizedLinear, np.ndarray, np.ndarray]:
    """A model of n rows, and new rows."""
    learned, known = FAMILIES[family]
    X = rng.normal(size=(n + NEW, 2))
    shift = 0.0 if expit(1.0) > known.mean(np.ones(1))[0] else 1.0
    y = _draw(rng, known, shift + X @ TRUTH)
    model = BayesianGeneralizedLinear(learned)
    if rows:
        for x, target in zip(X[:n], y[:n], strict=True):
            model.learn_one(x, target)
    else:
        model.fit(X[:n], y[:n])
    return model, X[n:], y[n:]


def coefficients(
    rng: np.random.Generator, *, family: str, n: int, rows: bool, level: float
) -> tuple[int, int]:
    """Intervals of two effects."""
    model = _learn(rng, family, n, rows)[0]
    low, high = np.array(model.posterior_.interval(level))[1:].T
    return int(np.sum((low <= TRUTH) & (high >= TRUTH))), 2


def parameters(
    rng: np.random.Generator, *, family: str, n: int, rows: bool, level: float
) -> tuple[int, int]:
    """Intervals of the likelihood's parameter."""
    known, model = FAMILIES[family][1], _learn(rng, family, n, rows)[0]
    held = [
        bool(abs(told.cdf(getattr(known, name)) - 0.5) <= 0.5 * level)
        for name, told in model.likelihood_parameters_.items()
    ]
    return sum(held), len(held)


def new_rows(
    rng: np.random.Generator, *, family: str, n: int, rows: bool, level: float
) -> tuple[int, int]:
    """Intervals of new targets; those of whole numbers hold more."""
    model, X, y = _learn(rng, family, n, rows)
    low, high = model.predict_interval(X, level).T
    return int(np.sum((low <= y) & (y <= high))), NEW


def checks() -> list[Check]:
    """Forty tables of each family and size, fitted, and ten learned row by row."""
    found = []
    for family in FAMILIES:
        learns = FAMILIES[family][0].learns_parameter
        for n, rows in ((30, False), (30, True), (200, False), (1000, False)):
            common: dict[str, Any] = {"family": family, "n": n, "rows": rows}
            setting = f"{family}: {n:,} rows {'one by one' if rows else 'fitted'}"
            few = n == 30
            each = [("Coefficients of families", coefficients, 0.9, 0.75 if few else 0.85)]
            each += [("Coefficients of families", coefficients, 0.5, 0.4)] * (n == 200)
            each += [("Parameters of families", parameters, 0.9, 0.8)] * (learns and not rows)
            each += [("New rows of families", new_rows, 0.9, 0.85)] * (n < 1000)
            for topic, simulate, level, lowest in each:
                check = partial(simulate, **common, level=level)
                replicates = 10 if rows else 40
                found.append(Check(topic, setting, level, check, replicates, lowest=lowest))
    return found
