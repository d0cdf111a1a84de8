"""Ratios of sums, such as revenue per session, as means of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from posterity.aliases import Array, Indices

# Rows of all arms together that each arm's sums begin with.
_START = 20.0


@dataclass(frozen=True)
class Linearized:
    r"""Rewards whose mean in arm :math:`a` is the ratio of sums :math:`R_a = E[Y] / E[D]`.

    A row of :math:`y` and :math:`d` is the reward
    :math:`\hat R_a + (y - \hat R_a d) / \hat D_a`, the delta method, with estimates from the rows
    before. Its mean is :math:`R_a + (\hat R_a - R_a)(1 - D_a / \hat D_a)`, in which one small error
    multiplies another. So whatever holds for means of rows holds for ratios of sums.

    Parameters
    ----------
    sums : (3, K)
        Of 1, :math:`y` and :math:`d` over the rows of each arm.

    Examples
    --------
    >>> arms, bought = np.array([0, 0, 1, 1]), np.array([2.0, 4.0, 1.0, 1.0])
    >>> ratios = Linearized.of(2).add(arms, bought, np.array([1.0, 2.0, 1.0, 1.0]))
    >>> ratios.convert(arms, bought, np.array([1.0, 2.0, 1.0, 1.0])).round(2).tolist()
    [1.92, 2.2, 1.1, 1.1]
    """

    sums: Array

    @classmethod
    def of(cls, n_arms: int) -> Self:
        """Before any row."""
        return cls(np.zeros((3, n_arms)))

    @property
    def is_known(self) -> bool:
        """True once each arm has a denominator above 0."""
        return bool((self.sums[2] > 0.0).all())

    def add(self, arms: Indices, rewards: Array, per: Array) -> Self:
        """With more rows."""
        count = self.sums.shape[1]
        more = [np.bincount(arms, values, count) for values in (np.ones(len(arms)), rewards, per)]
        return type(self)(self.sums + np.array(more))

    def convert(self, arms: Indices, rewards: Array, per: Array) -> Array:
        """(n,) rewards of rows of these arms, from the sums so far."""
        rows, above, below = self.sums + _START * self.sums.sum(axis=1, keepdims=True) / max(
            self.sums[0].sum(), 1.0
        )
        below = np.where(below > 0.0, below, rows)
        ratio, size = above / below, below / np.maximum(rows, 1.0)
        return np.asarray(ratio[arms] + (rewards - ratio[arms] * per) / size[arms])
