"""What was decided: arms, and the probabilities that they were picked from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Decisions:
    """One row for each context.

    Attributes
    ----------
    arms : (n,) or (n, k) names
        The arm of each context; of a ranking the first k, best first.
    propensity : (n,)
        Probability that this arm, or this ranking, was picked.
    propensities : (n, K)
        Probabilities of all arms, in the order of ``Bandit.arms_``: what was picked from.
    expected : (n, K)
        Expected rewards of all arms.
    """

    arms: NDArray[Any]
    propensity: Array
    propensities: Array
    expected: Array

    def __len__(self) -> int:
        return len(self.arms)


def picked(propensities: Array, k: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], Array]:
    """Arms (n, k), without repetition, and the probability (n,) of this order.

    One after another, each in proportion to its probability among those that are left (Plackett
    1975).

    Examples
    --------
    >>> arms, propensity = picked(np.array([[0.0, 1.0]]), 1, np.random.default_rng(0))
    >>> arms.tolist(), propensity.tolist()
    ([[1]], [1.0])
    """
    n = len(propensities)
    rows, left = np.arange(n), propensities.copy()
    arms, chance = np.empty((n, k), dtype=np.intp), np.ones(n)
    for place in range(k):
        edges = np.cumsum(left, axis=1)
        total = edges[:, -1]
        # Never an arm of probability 0, whatever rounding does: the first edge beyond the draw.
        drawn = rng.random(n) * total
        arm = np.argmax(edges > drawn[:, None], axis=1)
        arms[:, place] = arm
        chance *= left[rows, arm] / total
        left[rows, arm] = 0.0
    return arms, chance
