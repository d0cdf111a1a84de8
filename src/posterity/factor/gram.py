"""Normal equations of weighted rows: cheap, and half of the digits; for directions, not answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from posterity.factor.parallel import blas_threads, partitions, run_together

Array = NDArray[np.float64]

# Rows multiplied together: their scaled copy stays in the cache.
BLOCK = 1024
# Share of a column's square that those before it may leave: less, and too few digits are right.
DEPENDENT = 1e-8


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
    diagonal = np.diagonal(matrix)
    if not (diagonal > 0.0).all() or not np.isfinite(matrix).all():
        return None
    scale = 1.0 / np.sqrt(diagonal)
    root, status = dpotrf(scale[:, None] * matrix * scale, lower=0, clean=0)
    if status or not np.square(np.diagonal(root)).min(initial=1.0) > DEPENDENT:
        return None
    solution, _ = dpotrs(root, scale * right, lower=0)
    return np.asarray(scale * solution)
