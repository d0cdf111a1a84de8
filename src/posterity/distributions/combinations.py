"""The joint distribution of weighted sums of coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posterity.distributions._rows import FloatArray
from posterity.distributions.joint_distribution import Index, JointDistribution
from posterity.distributions.row_distribution import RowDistribution


class Combinations(JointDistribution):
    """Joint distribution of ``weights @ w``, k sums of the p coefficients ``w`` of ``joint``.

    There may be more sums than coefficients, so there is no density.

    Examples
    --------
    >>> from posterity.distributions import MultivariateNormal
    >>> joint = MultivariateNormal([1.0, 2.0], [[2.0, 0.0], [0.0, 1.0]], names=["a", "b"])
    >>> Combinations(joint, [[-1.0, 1.0]], ["b - a"]).std().round(4)
    array([1.118])
    """

    def __init__(self, joint: Any, weights: Any, names: Sequence[str]) -> None:
        self.joint = joint
        self.weights = np.asarray(weights, dtype=np.float64)
        self.names = tuple(names)

    @property
    def mean(self) -> FloatArray:
        """(k,) means."""
        return self.weights @ self.joint.mean

    def marginal(self, index: Index | str = slice(None)) -> RowDistribution:
        """Distributions of one or some sums, each by itself."""
        place = self._resolve_index(index)
        rows = self.weights[place]
        return self.joint.project(rows) if rows.ndim > 1 else self.joint.project(rows[None])[0]

    def _describe_rest(self) -> str:
        return f"of {self.joint._size()} coefficients"

    def _project(self, X: FloatArray, shift: FloatArray) -> RowDistribution:
        return self.joint.project(X @ self.weights, shift)

    def _size(self) -> int:
        return len(self.weights)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        return np.asarray(self.joint.rvs(size, rng=rng) @ self.weights.T)


__all__ = ["Combinations"]
