"""With what probability a service picks each arm: quick, and the same whenever worked out anew."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.bandits import (
    Bandit,
    Greedy,
    InverseGap,
    Policy,
    ThompsonSampling,
    UpperConfidenceBound,
)
from posterity.bandits.beliefs import Beliefs
from posterity.distributions import StudentT
from posterity.service.messages import ExperimentSettings

Array = NDArray[np.float64]

# Points at which arms are compared; half of them are the others with their signs turned.
POINTS = 128


def policy_of(settings: ExperimentSettings) -> Policy:
    """The policy that settings name."""
    floor = settings.floor
    if settings.policy == "thompson":
        return ThompsonSampling(floor=floor, width=0.5)
    kinds: dict[str, type[Policy]] = {
        "upper confidence bound": UpperConfidenceBound,
        "inverse gap": InverseGap,
        "greedy": Greedy,
    }
    return kinds[settings.policy](floor=floor)


def propensities_of(
    bandit: Bandit, policy: Policy, X: Array, allowed: NDArray[np.bool_]
) -> tuple[Array, Array, Array]:
    """Probabilities, means and standard deviations (n, K); infinite where nothing is known.

    Thompson sampling's exact integrals take a thousand times as long as learning a row. A service
    that must say how it picked can pick from anything near them: here from the shares of a fixed
    set of points in which each arm comes out best. They hang on the beliefs alone, so a retry, or
    an audit, finds the same; and as arms are picked from these very shares, they are exact.
    """
    beliefs = bandit.beliefs(X, allowed=allowed)
    mean, width = beliefs.mean, beliefs.std
    scales = None
    if isinstance(policy, ThompsonSampling) and isinstance(beliefs, Beliefs):
        scales = _scales(beliefs)
    if scales is None or beliefs.unknown.any():
        return policy.propensities(beliefs, np.random.default_rng(0)), mean, width
    df, scale = scales
    shares = shares_of_points(df, mean, policy.width * scale, allowed)  # type: ignore[attr-defined]
    uniform = allowed / allowed.sum(axis=1, keepdims=True)
    return (1.0 - policy.floor) * shares + policy.floor * uniform, mean, width


def _scales(beliefs: Beliefs) -> tuple[float, Array] | None:
    """Degrees of freedom and scales (n, K), where all arms are Student-t of the same degrees."""
    if not all(isinstance(arm, StudentT) for arm in beliefs.arms):
        return None
    degrees = np.unique([np.ravel(arm.df)[0] for arm in beliefs.arms])
    if len(degrees) > 1:
        return None
    return float(degrees[0]), np.stack([arm.scale for arm in beliefs.arms], axis=1)


def shares_of_points(df: float, mean: Array, scale: Array, allowed: NDArray[Any]) -> Array:
    """(n, K) shares of the points at which each of independent Student-t arms is the largest.

    Examples
    --------
    >>> told = shares_of_points(9.0, np.array([[0.0, 9.0]]), np.ones((1, 2)), np.ones((1, 2), bool))
    >>> told.tolist()
    [[0.0, 1.0]]
    """
    n, arms = mean.shape
    points = _points(arms, min(round(df, 0), 1e6))
    values = mean[:, None] + scale[:, None] * points
    values[np.broadcast_to(~allowed[:, None], values.shape)] = -np.inf
    best = values.argmax(axis=2) + arms * np.arange(n)[:, None]
    return np.bincount(best.ravel(), minlength=n * arms).reshape(n, arms) / POINTS


@lru_cache(maxsize=64)
def _points(arms: int, df: float) -> Array:
    """(POINTS, K) values of standard t: normal ones, and cubes for chi squared (Wilson 1931)."""
    rng = np.random.default_rng(20250101)
    half = rng.normal(size=(POINTS // 2, arms))
    small = 2.0 / (9.0 * max(df, 1.0))
    roots = 1.0 - small + rng.normal(size=half.shape) * np.sqrt(small)
    values = half / np.sqrt(np.maximum(roots, 0.1) ** 3)
    return np.concatenate([values, -values])
