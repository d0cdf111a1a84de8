"""Propensities: what a log of a bandit that learns says of another policy is unbiased."""

from __future__ import annotations

from functools import partial

import numpy as np

from guarantees.check import Check
from posterity.bandits import Bandit, Greedy, InverseGap, Policy


def values_held(rng: np.random.Generator, *, policy: Policy, n: int = 60) -> tuple[int, int]:
    """Count if an interval by inverse propensities holds the uniform policy's value."""
    W, X = rng.normal(size=(3, 2)), rng.normal(size=(n, 2))
    bandit = Bandit(arms=[0, 1, 2], policy=policy, rng=rng)
    bandit.learn(np.eye(2)[[0, 1, 0, 1, 0, 1]], [0, 0, 1, 1, 2, 2], np.zeros(6))
    estimates = np.empty(n)
    for row, x in enumerate(X):
        decision = bandit.decide(x)
        reward = W[decision.arm] @ x + rng.normal()
        estimates[row] = reward / (3.0 * decision.propensity)
        bandit.learn_one(x, decision.arm, float(reward))
    off = estimates - X @ W.mean(axis=0)
    return int(abs(off.mean()) <= 1.96 * off.std() / np.sqrt(n)), 1


def checks() -> list[Check]:
    """Three arms, policies that explore by themselves and by their floor alone."""
    return [
        Check(
            "Values of the uniform policy from the propensities of a bandit that learns",
            f"three arms, 60 rounds, {name}",
            0.95,
            partial(values_held, policy=policy),
            replicates=100,
            lowest=0.86,
            highest=1.0,
        )
        for name, policy in (
            ("gaps to the best, floor 30%", InverseGap(floor=0.3)),
            ("greedy, floor 30%", Greedy(floor=0.3)),
        )
    ]
