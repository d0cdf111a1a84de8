"""Coefficients under the default prior: weak effects and strong ones, A/B tests, its own truths."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from guarantees.check import Check
from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)
from posterity.evidence.hyperprior import make_log_ratio_grid

Array = NDArray[np.float64]


def _linear(rng: np.random.Generator, eta: Array) -> Array:
    return eta + rng.normal(size=len(eta))


def _logistic(rng: np.random.Generator, eta: Array) -> Array:
    return (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)


def _poisson(rng: np.random.Generator, eta: Array) -> Array:
    return rng.poisson(np.exp(eta)).astype(float)


# An estimator, how its targets are drawn, and what an observation says of eta where eta is 0.
MODELS: dict[str, tuple[type, Callable[[np.random.Generator, Array], Array], float]] = {
    "linear": (BayesianLinearRegression, _linear, 1.0),
    "logistic": (BayesianLogisticRegression, _logistic, 0.25),
    "Poisson": (BayesianPoissonRegression, _poisson, 1.0),
}


def _held(model: BayesianLinearRegression, truth: Array, level: float) -> tuple[int, int]:
    low, high = model.posterior_.marginal(slice(1, None)).interval(level)
    return int(np.sum((low <= truth) & (truth <= high))), len(truth)


def effects(
    rng: np.random.Generator,
    *,
    kind: str,
    n: int,
    p: int,
    size: float,
    drawn: bool,
    **parameters: str,
) -> tuple[int, int]:
    """Coefficients of so many standard errors: exactly, with a random sign, or as their sd."""
    estimator, draw, information = MODELS[kind]
    X = rng.normal(size=(n, p))
    signs = rng.normal(size=p) if drawn else rng.choice([-1.0, 1.0], size=p)
    truth = size / np.sqrt(n * information) * signs
    return _held(estimator(**parameters).fit(X, draw(rng, X @ truth)), truth, 0.95)


def all_effects(
    rng: np.random.Generator, *, kind: str, n: int, p: int, drawn: bool, **parameters: str
) -> tuple[int, int]:
    """The same, averaged over effects from nothing to ten standard errors."""
    predictive = [
        effects(rng, kind=kind, n=n, p=p, size=size, drawn=drawn, **parameters)
        for size in (0.0, 0.5, 1.0, 1.5, 3.0, 10.0)
    ]
    return sum(held for held, _ in predictive), sum(of for _, of in predictive)


def ab_test(rng: np.random.Generator, *, kind: str, rates: tuple[float, float]) -> tuple[int, int]:
    """Two arms of 1,000 each: the log of the odds ratio, or of the ratio of rates."""
    estimator, draw, _ = MODELS[kind]
    logs = np.log(rates)
    if kind == "logistic":
        logs -= np.log1p(-np.array(rates))
    arm = np.repeat([0.0, 1.0], 1000)
    y = draw(rng, logs[0] + arm * (logs[1] - logs[0]))
    return _held(estimator().fit(arm[:, None], y), np.array([logs[1] - logs[0]]), 0.95)


def own_prior(rng: np.random.Generator, *, n: int, p: int, level: float) -> tuple[int, int]:
    """Truths from what the prior itself states: a ratio, then coefficients."""
    nodes, log_weights = make_log_ratio_grid(min(n - 1, p))
    X = rng.normal(size=(n, p))
    signal = np.exp(-rng.choice(nodes, p=np.exp(log_weights)))
    mean_squares = np.square(X - X.mean(axis=0)).mean(axis=0)
    truth = np.sqrt(signal / p / mean_squares) * rng.normal(size=p)
    y = 1.0 + X @ truth + rng.normal(size=n)
    return _held(BayesianLinearRegression().fit(X, y), truth, level)


def checks() -> list[Check]:
    """Each kind of model; the worst single effects are those of about 1.5 standard errors."""
    return [*_linear_checks(), *_own_checks(), *_other_checks()]


def _linear_checks() -> list[Check]:
    topic, found = "Coefficients of linear regression", []
    for n in (50, 1000):
        for p in (1, 3, 10, 30):
            for drawn, what in ((False, "effects of exactly"), (True, "effects with an sd of")):
                replicates = 200 if p < 10 else 50
                found.append(
                    Check(
                        topic,
                        f"p = {p}, n = {n:,}, {what} 0 to 10 standard errors",
                        0.95,
                        partial(all_effects, kind="linear", n=n, p=p, drawn=drawn),
                        replicates=replicates,
                        lowest=0.94,
                        highest=0.98,
                    )
                )
                found.append(
                    Check(
                        topic,
                        f"p = {p}, n = {n:,}, {what} 1.5",
                        0.95,
                        partial(effects, kind="linear", n=n, p=p, size=1.5, drawn=drawn),
                        replicates=3 * replicates,
                        lowest=0.9,
                        highest=0.98,
                    )
                )
    return found


def _own_checks() -> list[Check]:
    return [
        Check(
            "Coefficients drawn from the default prior itself",
            f"p = {p}, n = {n:,}",
            level,
            partial(own_prior, n=n, p=p, level=level),
            replicates=replicates,
            lowest=round(level - 0.015, 3),
            # Of five rows five nodes are a little few for the middle (forty hold .50 to .52).
            highest=round(level + (0.06 if n == 5 and level < 0.9 else 0.015), 3),
        )
        for n, p, replicates in (
            (5, 1, 1500),
            (50, 10, 400),
            (1000, 10, 300),
            (1000, 100, 20),
            (10_000, 1, 600),
            (10_000, 10, 100),
            (10_000, 100, 60),
        )
        for level in (0.5, 0.8, 0.95)
    ]


def _other_checks() -> list[Check]:
    found = [
        Check(
            f"A/B tests, {kind} regression",
            f"1,000 rows an arm, {rates[0]:.1%} against {rates[1]:.1%}",
            0.95,
            partial(ab_test, kind=kind, rates=rates),
            replicates=300,
            lowest=0.94,
            highest=0.99,
        )
        for kind in ("logistic", "Poisson")
        for rates in ((0.012, 0.018), (0.1, 0.12))
    ]
    found += [
        Check(
            f"Coefficients of {kind} regression",
            f"p = {p}, n = 1,000, effects of exactly 0 to 10 standard errors",
            0.95,
            partial(all_effects, kind=kind, n=1000, p=p, drawn=False),
            replicates=100 if p < 10 else 25,
            lowest=0.94,
            highest=0.985,
        )
        for kind in ("logistic", "Poisson")
        for p in (1, 3, 10, 30)
    ]
    # At the mode, where fit ends by default, strong effects of few rows are too small.
    found += [
        Check(
            "Coefficients of logistic regression",
            f"p = 10, n = 100, effects of exactly 0 to 10 standard errors, by {approximation}",
            0.95,
            partial(
                all_effects, kind="logistic", n=100, p=10, drawn=False, approximation=approximation
            ),
            replicates=40,
            lowest=lowest,
            highest=0.985,
        )
        for approximation, lowest in (("laplace", 0.85), ("moments", 0.93))
    ]
    return found
