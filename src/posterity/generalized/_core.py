"""The core of a noise: what it is without its outliers, taken as normal.

Its variance is (1 + gamma) sum w e^2 / sum w with w = exp(-gamma e^2 / (2 sigma^2)): exact for
normal noise, and gross outliers are in neither sum (Fujisawa and Eguchi 2008, the
gamma-divergence).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import stdtrit

from posterity.aliases import Array

# Large is safe, small is efficient.
GAMMA = 0.3
MOST_ROUNDS = 200
FURTHEST = 4.0
# Half of a symmetric distribution.
LEVELS = (np.arange(2_000) + 0.5) / 4_000.0


def compute_core_weights(square: Array, variance: Array | float) -> Array:
    """(n,) how much each squared error belongs to the core of this variance."""
    with np.errstate(over="ignore"):
        return np.exp(-0.5 * GAMMA * square / variance)


def compute_core_variance(square: Array, weights: Array, start: float, floor: float) -> float:
    """Variance of the core of squared errors (n,), from a first guess; at least ``floor``."""
    variance = max(start, floor)
    for _ in range(MOST_ROUNDS):
        once = _update_variance(square, weights, variance, floor)
        if abs(once / variance - 1.0) < 1e-13:
            return once
        twice = _update_variance(square, weights, once, floor)
        # Steps shrink by nearly the same ratio, which gives their sum (Aitken 1926).
        first, second = once - variance, twice - once
        shrinks = 0.0 < second / first < 1.0
        ahead = variance + first / (1.0 - second / first) if shrinks else twice
        # If steps hardly shrink, the sum is unreliable.
        variance = max(min(max(ahead, twice / FURTHEST), twice * FURTHEST), floor)
    return variance


def _update_variance(square: Array, weights: Array, variance: float, floor: float) -> float:
    w = weights * compute_core_weights(square, variance)
    total = float(w.sum())
    if total == 0.0:
        return variance * 100.0  # so small that every row is an outlier
    return max((1.0 + GAMMA) * float(np.dot(w, square)) / total, floor)


@lru_cache(maxsize=64)
def compute_t_core(df: float) -> float:
    """Standard deviation of the core of Student-t noise of scale 1."""
    return _compute_core(stdtrit(df, LEVELS))


@lru_cache(maxsize=1)
def compute_laplace_core() -> float:
    """Standard deviation of the core of Laplace noise of scale 1."""
    return _compute_core(np.log(2.0 * LEVELS))


def _compute_core(quantiles: Array) -> float:
    square = np.square(quantiles)
    return compute_core_variance(square, np.ones_like(square), 1.0, 1e-300) ** 0.5
