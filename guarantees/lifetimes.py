"""Lifetimes that were cut off, and counts with more zeros: coefficients, fitted and by rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from guarantees.check import Check
from posterity import BayesianGeneralizedLinear
from posterity.likelihoods import (
    Censored,
    Likelihood,
    LogNormal,
    NegativeBinomial,
    Poisson,
    Weibull,
    ZeroInflated,
)

TRUTH = np.array([1.0, 0.5, -0.3])  # intercept first
# Lifetimes are cut off by exponential times of these means.
END = {0.3: 7.0, 0.7: 1.6}


def lifetimes(
    rng: np.random.Generator, *, likelihood: Likelihood, way: str, n: int, cut: float
) -> tuple[int, int]:
    """90% intervals of the intercept and two slopes, of Weibull or log-normal lifetimes."""
    X = rng.normal(size=(n, 2))
    scale = np.exp(TRUTH[0] + X @ TRUTH[1:])
    shaped = isinstance(likelihood, Weibull)
    life = scale * (rng.weibull(1.5, n) if shaped else rng.lognormal(0.0, 0.7, n))
    end = rng.exponential(END[cut], n)
    seen = np.minimum(life, end)
    y = np.column_stack([seen, np.where(life < end, seen, np.inf)])
    return _count_held(Censored(likelihood), way, X, y)


def rentals(rng: np.random.Generator, *, wait: float, n: int) -> tuple[int, int]:
    """The same of lifetimes learned one by one, each ``wait`` after it began, as known then."""
    X = np.column_stack([rng.integers(0, 2, n), rng.uniform(1.0, 8.0, n)])
    truth = np.array([3.7, -0.6, -0.1])
    life = np.exp(truth[0] + X @ truth[1:]) * rng.weibull(1.8, n)
    end = np.minimum(rng.uniform(6.0, 36.0, n), wait)
    seen = np.minimum(life, end)
    y = np.column_stack([seen, np.where(life < end, seen, np.inf)])
    return _count_held(Censored(Weibull()), "rows", X, y, truth)


def zeros(rng: np.random.Generator, *, likelihood: Likelihood, way: str, n: int) -> tuple[int, int]:
    """The same of counts, of which 30% are 0 for a reason of their own."""
    X = rng.normal(size=(n, 2))
    rate = np.exp(TRUTH[0] + X @ TRUTH[1:])
    if isinstance(likelihood, NegativeBinomial):
        rate = rate * rng.gamma(2.0, 0.5, n)
    y = rng.poisson(rate) * (rng.random(n) < 0.7)
    return _count_held(ZeroInflated(likelihood), way, X, y.astype(float))


def _count_held(
    likelihood: Likelihood, way: str, X: np.ndarray, y: np.ndarray, truth: np.ndarray = TRUTH
) -> tuple[int, int]:
    model = BayesianGeneralizedLinear(likelihood)
    if way == "rows":
        model.predict_then_learn(X, y)
    else:
        model.fit(X, y)
    low, high = np.array(model.posterior_.interval(0.9)).T
    return int(np.sum((low <= truth) & (high >= truth))), len(truth)


def checks() -> list[Check]:
    """Few rows and many, of which 30% or 70% were cut off, and counts with zeros."""
    found = []
    for name, likelihood in (("Weibull", Weibull()), ("log-normal", LogNormal())):
        for n, cut in ((30, 0.3), (30, 0.7), (300, 0.3), (300, 0.7), (1000, 0.7)):
            simulate = partial(lifetimes, likelihood=likelihood, way="fit", n=n, cut=cut)
            setting = f"{name}, {n:,} rows, {cut:.0%} cut off"
            found.append(_check("Coefficients of censored lifetimes", setting, simulate, n))
    for name, counts in (("Poisson", Poisson()), ("negative binomial", NegativeBinomial())):
        for n in (30, 300, 1000):
            simulate = partial(zeros, likelihood=counts, way="fit", n=n)
            found.append(
                _check("Coefficients of counts with zeros", f"{name}, {n:,} rows", simulate, n)
            )
    simulate = partial(rentals, wait=12.0, n=400)
    found.append(_check("Lifetimes learned as they come", "12 months after", simulate, 400))
    return found


def _check(topic: str, setting: str, simulate: partial[tuple[int, int]], n: int) -> Check:
    return Check(topic, setting, 0.9, simulate, 40, lowest=0.7 if n == 30 else 0.85, highest=1.0)
