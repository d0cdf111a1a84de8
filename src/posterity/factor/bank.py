"""A bank of factors of one target, which learn the same rows one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterity import kernel
from posterity.aliases import Array, Mask
from posterity.factor.factor import Factor
from posterity.factor.usable import check_usable


class FactorBank:
    """Up to ``capacity`` triangles of ``n_coefficients`` and one target; the first ``size`` count.

    Examples
    --------
    >>> bank = FactorBank(n_coefficients=1, capacity=2)
    >>> bank.push(Factor(1).triangle)
    >>> error, leverage, residual = bank.learn(
    ...     np.array([[2.0]]), np.array([[6.0]]), None, intercept=False
    ... )
    >>> error, leverage
    (array([[6.]]), array([inf]))
    >>> bank.factors()[0].coefficients()
    array([[3.]])
    """

    __slots__ = ("_triangles", "size")

    def __init__(self, n_coefficients: int, capacity: int) -> None:
        q = n_coefficients + 1
        self._triangles = np.zeros((capacity, q, kernel.leading_dimension(q)))
        self.size = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"triangles": self._triangles, "size": self.size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._triangles = np.array(state["triangles"])
        self.size = state["size"]

    @property
    def n_coefficients(self) -> int:
        """p, intercept included."""
        return self._triangles.shape[1] - 1

    @property
    def triangles(self) -> Array:
        """(size, q, leading dimension), a view: each as ``Factor.triangle``."""
        return self._triangles[: self.size]

    @property
    def room(self) -> Array:
        """(capacity, q, leading dimension), a view: all triangles, including those not in use."""
        return self._triangles

    def residual(self) -> Array:
        """(size,) residual sums of squares."""
        root = self._triangles[: self.size, -1, self.n_coefficients]
        return root * root

    def copy(self) -> FactorBank:
        """An independent bank with the same content."""
        twin = FactorBank.__new__(FactorBank)
        twin._triangles, twin.size = np.empty_like(self._triangles), self.size
        twin._triangles[: self.size] = self.triangles
        return twin

    def push(self, triangle: Array) -> None:
        """Put a copy of ``triangle`` behind the others."""
        self._triangles[self.size] = triangle
        self.size += 1

    def keep(self, which: Mask) -> None:
        """Drop the triangles for which ``which`` (size,) is False; the rest stay in order."""
        left = self.triangles[which]
        self.size = len(left)
        self._triangles[: self.size] = left

    def learn(
        self, X: Array, Y: Array, weights: Array | None, *, intercept: bool
    ) -> tuple[Array, Array, Array]:
        """Learn one row, X (1, m), in each.

        Returns each one's prediction before it: error (size, 1), leverage (size,) and residual
        (size, 1).
        What comes of rows that are not finite shows in :meth:`check_usable`.
        """
        return kernel.learn_bank(self.triangles, 1, X, Y, weights, intercept)

    def check_usable(self) -> None:
        """Raise ``FloatingPointError`` when what was learned was not finite or too large."""
        check_usable(self.triangles)

    def factors(self) -> list[Factor]:
        """Return copies as factors, with counts of 0."""
        copies = []
        for triangle in self.triangles:
            factor = Factor(self.n_coefficients)
            factor.set_triangle(triangle, 0.0, 0.0)
            copies.append(factor)
        return copies


def combine_prior_with_data(prior: Factor, data: Array, weight: float) -> Array:
    """The triangle of a prior and of the rows in the triangle ``data``, these times ``weight``."""
    p = prior.n_coefficients
    triangle = prior.triangle.copy()
    rows = np.sqrt(weight) * data[:p, : p + 1]
    kernel.append_block(triangle, 1, rows[:, :p], np.ascontiguousarray(rows[:, p:]), None, False)
    return triangle
