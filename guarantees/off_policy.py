"""Intervals of a policy's value from a log, for one look, by kinds of rewards and propensities."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from guarantees.check import Check
from posterity.bandits import Bandit, ThompsonSampling
from posterity.off_policy import Log, evaluate

Array = NDArray[np.float64]
Index = NDArray[np.intp]
TOPIC = "Values of policies from a log of 2,000 rows, by"
WEIGHTED = ("ips", "snips", "dr")
MODELLED = ("dm", "switch_dr", "dr_shrinkage")


def _rates(rng: np.random.Generator, arms: Index, *, other: float, own: float) -> Array:
    return 1.0 * (rng.random(len(arms)) < np.where(arms == 1, own, other))


def _normal(rng: np.random.Generator, arms: Index) -> Array:
    return np.asarray(rng.normal(size=len(arms)))


def _log_normal(rng: np.random.Generator, arms: Index) -> Array:
    return np.asarray(np.exp(1.5 * rng.normal(size=len(arms)) - 1.125))


def _revenue(rng: np.random.Generator, arms: Index) -> Array:
    paid = 20.0 * np.exp(1.2 * rng.normal(size=len(arms)) - 0.72)
    return np.asarray(paid * (rng.random(len(arms)) < 0.05))


# Rewards, the arm's propensity, or none where the sign of the context makes it .98 or .02, and the
# mean of its rewards.
Kind = tuple[Callable[[np.random.Generator, Index], Array], float | None, float]
KINDS: dict[str, Kind] = {
    "rates of 10%, propensity .05": (partial(_rates, other=0.1, own=0.1), 0.05, 0.1),
    "rates of 10% and 20%, propensity .05": (partial(_rates, other=0.1, own=0.2), 0.05, 0.2),
    "rates of 1%, propensity .1": (partial(_rates, other=0.01, own=0.01), 0.1, 0.01),
    "rates of 1%, propensity .01": (partial(_rates, other=0.01, own=0.01), 0.01, 0.01),
    "normal, propensity .98 or .02 by context": (_normal, None, 0.0),
    "log-normal, sd of logs 1.5, propensity .1": (_log_normal, 0.1, 1.0),
    "5% pay, log-normal, sd of logs 1.2, propensity .1": (_revenue, 0.1, 1.0),
}


def values(rng: np.random.Generator, *, kind: str, methods: tuple[str, ...]) -> tuple[int, int]:
    """Count the methods whose interval holds the mean reward of one arm."""
    draw, p, truth = KINDS[kind]
    X = rng.normal(size=(2000, 1))
    own = np.where(X[:, 0] > 0.0, 0.98, 0.02) if p is None else np.full(2000, p)
    arms = (rng.random(2000) < own).astype(np.intp)
    every = np.column_stack([1.0 - own, own])
    log = Log.of(X, arms, draw(rng, arms), propensities=every, names=[0, 1])
    result = evaluate(log, {"one": 1}, methods, anytime=False)
    return sum(one.low <= truth <= one.high for one in result.estimates), len(methods)


def best_of_ten(rng: np.random.Generator) -> tuple[int, int]:
    """The same of the best of ten arms, from the log of a bandit that learns, and its own floor."""
    means = np.append(np.zeros(9), 0.5)
    bandit, parts = Bandit(arms=list(range(10)), policy=ThompsonSampling(), rng=rng), []
    X = rng.normal(size=(2000, 1))
    for some in np.split(X, 100):
        made = bandit.decide(some)
        rewards = means[made.arms.astype(int)] + rng.normal(size=len(some))
        parts.append((made.arms, rewards, made.propensities))
        bandit = bandit.learn(some, made.arms, rewards)
    arms, earned, every = (np.concatenate(part) for part in zip(*parts, strict=True))
    log = Log.of(X, arms, earned, propensities=every, names=range(10))
    result = evaluate(log, {"best": 9}, WEIGHTED, anytime=False)
    return sum(one.low <= 0.5 <= one.high for one in result.estimates), len(WEIGHTED)


def checks() -> list[Check]:
    """Each kind by methods that weigh rewards, and by those that trust a model."""
    made = [
        Check(
            f"{TOPIC} {', '.join(methods)}",
            kind,
            0.95,
            partial(values, kind=kind, methods=methods),
            replicates=200,
            lowest=0.92,
            highest=1.0 if "1%" in kind or "log-normal" in kind else 0.98,
        )
        for methods in (WEIGHTED, MODELLED)
        for kind in KINDS
    ]
    made.append(
        Check(
            f"{TOPIC} {', '.join(WEIGHTED)}",
            "the best of ten arms of a bandit that learns, floor 2%",
            0.95,
            best_of_ten,
            replicates=60,
            lowest=0.88,
        )
    )
    return made
