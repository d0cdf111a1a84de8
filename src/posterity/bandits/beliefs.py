"""What is believed of the expected rewards of K arms, in n contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.bandits.chances import Mask, chances_of_best, shares_of_best

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Beliefs:
    """Expected rewards of arms that are believed in independently of each other.

    Parameters
    ----------
    arms
        A distribution over n rows for each of K arms.
    allowed
        (n, K) which arms may be chosen; at least one in each row.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> beliefs = Beliefs([Normal([0.0], [1.0]), Normal([1.0], [1.0])], np.ones((1, 2), dtype=bool))
    >>> beliefs.mean, beliefs.sample(5, np.random.default_rng(0)).shape
    (array([[0., 1.]]), (5, 1, 2))
    """

    arms: Sequence[Any]
    allowed: Mask

    @property
    def shape(self) -> tuple[int, int]:
        """Contexts and arms."""
        n, k = self.allowed.shape
        return n, k

    @cached_property
    def mean(self) -> Array:
        """(n, K) means."""
        return np.stack([arm.mean() for arm in self.arms], axis=1)

    @cached_property
    def std(self) -> Array:
        """(n, K) standard deviations."""
        return np.stack([arm.std() for arm in self.arms], axis=1)

    def chances(self) -> Array:
        """(n, K) probabilities of being the best, by quadrature."""
        return chances_of_best(self.arms, self.allowed)

    def of(self, rows: Mask) -> Beliefs:
        """Those of some contexts."""
        return Beliefs([arm[rows] for arm in self.arms], self.allowed[rows])

    def quantile(self, level: float) -> Array:
        """(n, K) quantiles."""
        return np.stack([arm.ppf(level) for arm in self.arms], axis=1)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """(size, n, K) joint draws."""
        n = len(self.allowed)
        return np.stack([arm.rvs((size, n), random_state=rng) for arm in self.arms], axis=2)


@dataclass(frozen=True)
class JointBeliefs:
    """Expected rewards of arms that share coefficients, as draws of all of them together.

    Parameters
    ----------
    draws
        (M, n, K) joint draws.
    mean
        (n, K) means.
    allowed
        (n, K) which arms may be chosen.
    """

    draws: Array
    mean: Array
    allowed: Mask

    @property
    def shape(self) -> tuple[int, int]:
        """Contexts and arms."""
        n, k = self.allowed.shape
        return n, k

    @cached_property
    def std(self) -> Array:
        """(n, K) standard deviations of the draws."""
        return np.asarray(np.std(self.draws, axis=0))

    def chances(self) -> Array:
        """(n, K) shares of the draws in which each arm is the best."""
        return shares_of_best(self.draws, self.allowed)

    def of(self, rows: Mask) -> JointBeliefs:
        """Those of some contexts."""
        return JointBeliefs(self.draws[:, rows], self.mean[rows], self.allowed[rows])

    def quantile(self, level: float) -> Array:
        """(n, K) quantiles of the draws."""
        return np.asarray(np.quantile(self.draws, level, axis=0))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """(size, n, K): the draws that there are, each as often as any other."""
        if size == len(self.draws):
            return self.draws
        return self.draws[rng.integers(len(self.draws), size=size)]
