"""Probabilities with which a service picks each arm: computed again, they are the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from posterity.bandits import (
    Bandit,
    Greedy,
    InverseGap,
    Policy,
    RandomizedUpperConfidenceBound,
    ThompsonSampling,
    UpperConfidenceBound,
)
from posterity.service.messages import ExperimentSettings

Array = NDArray[np.float64]


def build_policy(settings: ExperimentSettings) -> Policy:
    """The policy that settings name."""
    floor = settings.floor
    if settings.policy == "thompson":
        return ThompsonSampling(floor=floor, width=0.5)
    kinds: dict[str, type[Policy]] = {
        "randomized upper confidence bound": RandomizedUpperConfidenceBound,
        "upper confidence bound": UpperConfidenceBound,
        "inverse gap": InverseGap,
        "greedy": Greedy,
    }
    return kinds[settings.policy](floor=floor)


def compute_propensities(
    bandit: Bandit, policy: Policy, X: Array, allowed: NDArray[np.bool_]
) -> tuple[Array, Array, Array]:
    """Probabilities, means and standard deviations (n, K); infinite where nothing is known.

    They hang on the beliefs alone, so a retry, or an audit, finds the same.
    """
    beliefs = bandit.beliefs(X, allowed=allowed)
    chances = policy.propensities(beliefs, np.random.default_rng(0))
    return chances, beliefs.mean, beliefs.std
