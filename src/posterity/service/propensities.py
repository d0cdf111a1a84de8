"""Probabilities with which a service picks each arm: computed again, they are the same."""

from __future__ import annotations

import numpy as np

from posterity.aliases import Array, Mask
from posterity.bandits import Bandit, Policy, ThompsonSampling
from posterity.bandits.naming import NAMES, find_policy
from posterity.service.errors import RefusedError
from posterity.service.inputs import list_names
from posterity.service.messages import ExperimentSettings


def build_policy(settings: ExperimentSettings) -> Policy:
    """The policy that settings name.

    Raises
    ------
    RefusedError
        422: there is none of that name.
    """
    kind = find_policy(settings.policy)
    if kind is None:
        message = f"there is no policy {settings.policy!r}: give {list_names(NAMES)}"
        raise RefusedError(422, message, "policy")
    if kind is ThompsonSampling:
        return ThompsonSampling(floor=settings.floor, width=0.5)
    return kind(floor=settings.floor)


def compute_propensities(
    bandit: Bandit, policy: Policy, X: Array, allowed: Mask
) -> tuple[Array, Array, Array]:
    """Probabilities, means and standard deviations (n, K); infinite where nothing is known.

    They hang on the beliefs alone, so a retry, or an audit, finds the same.
    """
    beliefs = bandit.beliefs(X, allowed=allowed)
    chances = policy.propensities(beliefs, np.random.default_rng(0))
    return chances, beliefs.mean, beliefs.std
