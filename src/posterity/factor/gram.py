"""Normal equations of weighted rows: cheap, and half of the digits; for directions, not answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs, dtrtrs

from posterity.factor.parallel import blas_threads, partitions, run_together

Array = NDArray[np.float64]

# Rows multiplied together: their scaled copy stays in the cache.
BLOCK = 1024
# Share of a column's square that those before it may leave: less, and too few digits are right.
DEPENDENT = 1e-8
# Condition of a scaled matrix of products up to which its triangle is right to 12 digits, and to 8.
CONDITION, ROUGH_CONDITION = 3e3, 3e7

# Root (p, p), moments (p, 1) and residual (1, 1) of a factor of rows.
Triangle = tuple[Array, Array, Array]


def gram(X: Array, weights: Array, *, intercept: bool) -> Array:
    """(p, p) sum of w x x' over the rows ``X`` (n, m), a 1 before each where there is an intercept.

    Large blocks use every core.

    Examples
    --------
    >>> gram(np.array([[1.0], [3.0]]), np.array([1.0, 0.5]), intercept=True)
    array([[1.5, 2.5],
           [2.5, 5.5]])
    """
    first = int(intercept)
    parts = partitions(len(X), X.shape[1] + 1)
    sums = [np.zeros((X.shape[1] + first, X.shape[1] + first)) for _ in parts]

    def add(total: Array, part: slice) -> None:
        for start in range(part.start, part.stop, BLOCK):
            rows = slice(start, min(start + BLOCK, part.stop))
            scaled = X[rows] * np.sqrt(weights[rows])[:, None]
            total[first:, first:] += scaled.T @ scaled
            if intercept:
                total[0, 0] += np.sum(weights[rows])
                total[0, 1:] += weights[rows] @ X[rows]

    with blas_threads(X.shape[1]):
        run_together(add, sums, parts)
    total = np.sum(sums, axis=0) if len(sums) > 1 else sums[0]
    if intercept:
        total[1:, 0] = total[0, 1:]
    return np.asarray(total)


def solve(matrix: Array, right: Array) -> Array | None:
    """The solution for a symmetric matrix (p, p); None where that is nearly singular.

    Examples
    --------
    >>> solve(np.array([[4.0, 0.0], [0.0, 1e-30]]), np.ones(2))
    array([2.5e-01, 1.0e+30])
    >>> solve(np.ones((2, 2)), np.ones(2)) is None
    True
    """
    scale, root = cholesky(matrix)
    if root is None:
        return None
    solution, _ = dpotrs(root, right / scale, lower=0)
    return np.asarray(solution / scale)


def cholesky(matrix: Array) -> tuple[Array, Array | None]:
    """Scales (p,) and the upper triangle (p, p) of the matrix in them, its columns' squares 1.

    The triangle is None where that is nearly singular.

    Examples
    --------
    >>> scale, root = cholesky(np.array([[4.0, 0.0], [0.0, 9.0]]))
    >>> root * scale
    array([[2., 0.],
           [0., 3.]])
    """
    diagonal = np.diagonal(matrix)
    if not (diagonal > 0.0).all() or not np.isfinite(matrix).all():
        return np.ones(len(matrix)), None
    scale = np.sqrt(diagonal)
    root, status = dpotrf(matrix / scale[:, None] / scale, lower=0)
    dependent = status or not np.square(np.diagonal(root)).min(initial=1.0) > DEPENDENT
    return scale, None if dependent else root


@dataclass(frozen=True)
class Products:
    """Of rows X (n, p), y (n, 1): squares X'X, moments X'y and the square y'y.

    Examples
    --------
    >>> one = Products(np.diag([2.0, 4.0]), np.array([[1.0], [1.0]]), 1.5)
    >>> root, moments, residual = (one + one).triangle()
    >>> root.diagonal(), moments[:, 0].round(3), residual.round(3)
    (array([2.        , 2.82842712]), array([1.   , 0.707]), array([[1.225]]))
    """

    squares: Array
    moments: Array
    square: float

    def __add__(self, other: Products) -> Products:
        """Of the rows of both."""
        squares, moments = self.squares + other.squares, self.moments + other.moments
        return Products(squares, moments, self.square + other.square)

    def triangle(self, condition: float = CONDITION) -> Triangle | None:
        """The rows' triangle; None where it would lose digits: beyond this condition."""
        scale, root = cholesky(self.squares)
        if root is None:
            return None
        norm = np.abs(self.squares / scale[:, None] / scale).sum(axis=0).max(initial=1.0)
        reciprocal, _ = dpocon(root, norm)
        if not reciprocal * condition >= 1.0:
            return None
        moments, _ = dtrtrs(root, self.moments / scale[:, None], trans=1)
        left = max(self.square - float(np.sum(np.square(moments))), 0.0)
        return root * scale, moments, np.array([[np.sqrt(left)]])
