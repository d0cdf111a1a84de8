"""Moments of coefficients from the upper-triangular root R of their precision R'R."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from posterity.distributions._rows import FloatArray

# Rounding errors added up in an entry, for each coefficient, as rows come one by one.
ROUNDINGS = 64.0


class PrecisionRoot:
    """Upper-triangular R with unit-scale covariance (R'R)^-1; never changed.

    A row of zeros is a *free* coefficient, about which nothing is known. Given the free ones the
    others have the root R_BB (rows and columns that are not free) and follow them linearly:
    w_B = R_BB^-1 (z - R_BF w_F). A coefficient is *unbounded* if it is free or follows one that is.
    """

    def __init__(self, matrix: FloatArray) -> None:
        self.matrix = matrix

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """(p,) coefficients without any information."""
        free: NDArray[np.bool_] = np.diagonal(self.matrix) == 0.0
        return free

    @cached_property
    def rank(self) -> int:
        """The number of directions that are determined."""
        return int(np.count_nonzero(~self.free))

    @cached_property
    def log_det(self) -> float:
        """Log determinant of R, over the coefficients that are not free."""
        return float(np.log(np.abs(np.diagonal(self.matrix)[~self.free])).sum())

    @cached_property
    def inverse(self) -> FloatArray:
        """(p, p) R_BB^-1, with zeros in the rows and columns of the free coefficients."""
        from posterity.distributions.triangles import solve_triangle

        inverse = np.zeros(self.matrix.shape)
        bound = np.ix_(~self.free, ~self.free)
        if self.rank:
            inverse[bound] = solve_triangle(self.matrix[bound], np.eye(self.rank))
        return inverse

    @cached_property
    def following(self) -> FloatArray:
        """(p, f) by how much each coefficient moves with each of the f free ones."""
        free = self.free
        p = len(free)
        following = -self.inverse @ self.matrix[:, free]
        # Zero up to rounding is zero, or bounded coefficients could not be told from neighbours.
        # Rotations leave in each entry of R rounding of the size of its whole column.
        size = np.linalg.norm(self.matrix, axis=0)
        moved = size[free] + size @ np.abs(following)
        rounding = np.abs(self.inverse).sum(axis=1)[:, None] * moved
        following[np.abs(following) <= ROUNDINGS * p * np.finfo(float).eps * rounding] = 0.0
        following[free] = np.eye(p - self.rank)
        return following

    @cached_property
    def unbounded(self) -> NDArray[np.bool_]:
        """(p,) coefficients of infinite variance."""
        return np.asarray(self.following.any(axis=1))

    def scales(self) -> FloatArray:
        """(p,) square roots of the diagonal of (R'R)^-1; infinite where unbounded."""
        norms = np.sqrt(np.square(self.inverse).sum(axis=1))
        return np.where(self.unbounded, np.inf, norms)

    def scales_along(self, X: FloatArray) -> FloatArray:
        """(n,) square roots of x' (R'R)^-1 x; infinite where x has part in what is unbounded."""
        from posterity.distributions.triangles import solve_triangle

        if self.rank == len(self.free):
            steps = solve_triangle(self.matrix, X.T, transposed=True)
            return np.sqrt(np.square(steps).sum(axis=0))
        norms = np.sqrt(np.square(X @ self.inverse).sum(axis=1))
        size = np.abs(X) @ np.abs(self.following)
        moved = np.abs(X @ self.following) > ROUNDINGS * len(self.free) * np.finfo(float).eps * size
        return np.where(moved.any(axis=1), np.inf, norms)

    def covariance(self, factor: float) -> FloatArray:
        """(p, p) factor (R'R)^-1, as the limit of ever vaguer priors where R is singular.

        An infinite entry has the sign of its limit; entries that stay zero are zero, never NaN.
        """
        covariance = self.inverse @ self.inverse.T
        if np.isfinite(factor):
            covariance *= factor
        else:
            covariance = _infinite(covariance)
        if self.rank < len(self.free):
            spread = self.following @ self.following.T
            covariance = np.where(spread != 0.0, _infinite(spread), covariance)
        return covariance


def _infinite(values: FloatArray) -> FloatArray:
    return np.where(values == 0.0, 0.0, np.copysign(np.inf, values))
