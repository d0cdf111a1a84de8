"""How probable it is that an arm is the best: from draws, or exactly where arms are independent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Probabilities of the quantiles of each arm where pieces of the integral end, and nodes of a piece:
# chances of normal arms are then right to 12 digits, of rugged mixtures to 5.
BELOW = np.array([1e-15, 1e-11, 1e-8, 1e-5, 1e-3, 0.02, 0.1, 0.25, 0.4])
ENDS = np.concatenate([BELOW, [0.5], 1.0 - BELOW[::-1]])
NODES, SHARES = np.polynomial.legendre.leggauss(8)
# Numbers held at a time.
BLOCK = 2_000_000


def shares_of_best(draws: Array, allowed: Mask) -> Array:
    """(n, K) how often each allowed arm has the largest of ``draws`` (M, n, K); ties are shared.

    Examples
    --------
    >>> draws = np.array([[[1.0, 2.0, 9.0]], [[3.0, 3.0, 9.0]]])
    >>> shares_of_best(draws, np.array([[True, True, False]]))
    array([[0.25, 0.75, 0.  ]])
    """
    shown = np.where(allowed, draws, -np.inf)
    best = shown == shown.max(axis=2, keepdims=True)
    best &= allowed
    return np.asarray(np.mean(best / best.sum(axis=2, keepdims=True), axis=0))


def chances_of_best(arms: Sequence[Any], allowed: Mask) -> Array:
    """(n, K) probabilities that each arm's reward is the largest, the arms being independent.

    The integral of f_a(x) times the product of F_b(x) over all other arms b (Jeunen 2025), by
    Gauss-Legendre rules between quantiles of all arms.
    The arms' probabilities sum to the integral of a derivative, 1: how near they are says how good
    the rule is; what is missing is shared in proportion.

    Parameters
    ----------
    arms : sequence of K distributions over n rows
        Normal, StudentT, or mixtures of them.
    allowed : (n, K) array of bool

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> arms = [Normal([0.0], [1.0]), Normal([1.0], [1.0])]
    >>> chances_of_best(arms, np.ones((1, 2), dtype=bool)).round(6)
    array([[0.23975, 0.76025]])
    """
    n, k = allowed.shape
    chances = np.empty((n, k))
    step = max(1, BLOCK // (k * len(ENDS) * k * len(NODES)))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        chances[rows] = _integrated([arm[rows] for arm in arms], allowed[rows])
    return chances


def _integrated(arms: Sequence[Any], allowed: Mask) -> Array:
    """The same for some rows."""
    places, shares = _nodes(arms, allowed)
    below = np.stack([arm.cdf(places) for arm in arms], axis=2)
    density = np.stack([arm.pdf(places) for arm in arms], axis=2)
    below = np.where(allowed, below, 1.0)
    chances = np.empty(allowed.shape)
    for arm in range(len(arms)):
        others = np.prod(np.delete(below, arm, axis=2), axis=2)
        chances[:, arm] = np.sum(shares * density[:, :, arm] * others, axis=0)
    chances[~allowed] = 0.0
    return chances / chances.sum(axis=1, keepdims=True)


def _nodes(arms: Sequence[Any], allowed: Mask) -> tuple[Array, Array]:
    """Places (J, n) and shares (J, n) of the rules of all pieces; hidden arms have none."""
    ends = np.concatenate(
        [np.where(allowed[:, k], arm.ppf(ENDS[:, None]), np.nan) for k, arm in enumerate(arms)]
    )
    ends = np.sort(ends, axis=0)
    ends = np.where(np.isnan(ends), np.nanmax(ends, axis=0), ends)
    half = 0.5 * np.diff(ends, axis=0)
    places = (ends[:-1] + half)[:, None] + half[:, None] * NODES[:, None]
    shares = half[:, None] * SHARES[:, None]
    return places.reshape(-1, len(allowed)), shares.reshape(-1, len(allowed))
