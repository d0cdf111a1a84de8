"""Normal equations of weighted rows: fast; they lose half of the digits if ill conditioned.

For directions on the way to a mode half of the digits do. For answers the triangle of the products
is taken where its condition shows that it is right to 12 digits, and otherwise that of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs, dtrtrs

from posterity.aliases import Array
from posterity.factor.parallel import (
    FEW_COLUMNS,
    limit_blas_threads,
    run_in_parallel,
    run_together,
    split_rows,
)
from posterity.kernel import add_products
from posterity.kernel.columns import Columns

# Rows multiplied together, or values where that is more: their scaled copy stays in the cache.
BLOCK, BLOCK_VALUES = 1024, 2**16
# Parts of rows that cores add up: each has so many blocks at least.
MOST_PARTS, BLOCKS_A_PART = 32, 4
# Smallest share of a column's square that earlier columns may leave: less has too few digits.
DEPENDENT_SHARE = 1e-8
# Condition of a scaled matrix of products up to which its triangle is right to 12 digits, and to 8.
CONDITION, ROUGH_CONDITION = 3e3, 3e7
# Products are faster than panels of rows with more columns than the first, and with more rows a
# column than the second. With many more rows (the last), the first few of them (the third) decide
# whether to continue. As many, from all rows, also give the means.
MANY_COLUMNS, ROWS_A_COLUMN, FIRST_CHUNK, LONG_ROWS_A_COLUMN = 40, 2, 4, 16
# Range of squares of columns that keep their digits.
LEAST_SQUARE, MOST_SQUARE = 1e-250, 1e250

# Root (p, p), moments (p, 1) and residual (1, 1) of a factor of rows.
Triangle = tuple[Array, Array, Array]


def gram(X: Array, weights: Array, *, intercept: bool) -> Array:
    """(p, p) sum of w x x' over the rows ``X`` (n, m), a 1 before each where there is an intercept.

    Large blocks use every core, and their sums are the same on any number of them.

    Examples
    --------
    >>> gram(np.array([[1.0], [3.0]]), np.array([1.0, 0.5]), intercept=True)
    array([[1.5, 2.5],
           [2.5, 5.5]])
    """
    first, width = int(intercept), X.shape[1] + 1
    most = max(min(MOST_PARTS, len(X) // (BLOCKS_A_PART * BLOCK)), 1)
    parts = split_rows(len(X), width, most)
    sums = np.zeros((len(parts), X.shape[1] + first, X.shape[1] + first))

    def add(number: int) -> None:
        total, part = sums[number], parts[number]
        size = max(BLOCK, BLOCK_VALUES // max(X.shape[1], 1))
        for start in range(part.start, part.stop, size):
            rows = slice(start, min(start + size, part.stop))
            scaled = X[rows] * np.sqrt(weights[rows])[:, None]
            total[first:, first:] += scaled.T @ scaled
            total[:first, first:] += weights[rows] @ X[rows]
        total[:first, :first] = np.sum(weights[part])

    with limit_blas_threads(X.shape[1]):
        run_in_parallel(add, range(len(parts)), len(X) * width * width)
    total = sums.sum(axis=0)
    if intercept:
        total[1:, 0] = total[0, 1:]
    return np.asarray(total)


def bend_products(matrix: Array, step: Array, change: Array) -> Array:
    """The positive matrix near this one that turns ``step`` (p,) into ``change`` (p,).

    By which a slope changed over a step: Broyden, Fletcher, Goldfarb and Shanno's (1970). The same
    matrix where the slope did not fall.

    Examples
    --------
    >>> bend_products(np.eye(2), np.array([1.0, 0.0]), np.array([3.0, 0.0]))
    array([[3., 0.],
           [0., 1.]])
    """
    pulled = matrix @ step
    expected, found = float(step @ pulled), float(step @ change)
    if min(expected, found) <= 0.0:
        return matrix
    bent = matrix + np.outer(change, change / found)
    bent -= np.outer(pulled, pulled / expected)
    return bent


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
    """Return scales (p,) and the upper Cholesky factor (p, p) of the matrix in units of them.

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
    dependent = status or not np.square(np.diagonal(root)).min(initial=1.0) > DEPENDENT_SHARE
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

    @classmethod
    def of(cls, X: Array, y: Array, weights: Array, *, intercept: bool) -> Self:
        """The products of weighted rows, y (n,), a 1 before each where there is an intercept."""
        weighted = weights * y
        moments = weighted @ X
        if intercept:
            moments = np.concatenate([[np.sum(weighted)], moments])
        squares = gram(X, weights, intercept=intercept)
        return cls(squares, moments[:, None], float(weighted @ y))

    def __add__(self, other: Products) -> Products:
        """Return the products of the rows of both."""
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


def compute_reliable_triangle(
    X: Array,
    Y: Array,
    weights: Array | None,
    known: Array,
    *,
    intercept: bool,
    threads: int | None = None,
) -> Array | None:
    """The triangle (q, q) of rows and of what is ``known`` (q, q); None where digits would be lost.

    Or where it is not worth the while, for few rows or columns, or what is known is more than the
    precisions of columns other than the intercept. Columns are looked at as they differ from the
    means of some rows, if there is an intercept: only the triangle's first row depends on it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(2000, 50)), rng.normal(size=(2000, 1))
    >>> triangle = compute_reliable_triangle(X, Y, None, np.zeros((51, 51)), intercept=False)
    >>> np.allclose(triangle.T @ triangle, (rows := np.hstack([X, Y])).T @ rows)
    True
    >>> X[:, 0] = X[:, 1] + 1e-4 * X[:, 0]
    >>> compute_reliable_triangle(X, Y, None, np.zeros((51, 51)), intercept=False) is None
    True
    """
    n, q = len(X), len(known)
    precisions = np.square(np.diagonal(known))
    if q <= MANY_COLUMNS or n < ROWS_A_COLUMN * q or (intercept and precisions[0] > 0.0):
        return None
    if np.count_nonzero(known) > np.count_nonzero(precisions):
        return None
    with limit_blas_threads(min(q, FEW_COLUMNS)):
        look = FIRST_CHUNK * q if n >= LONG_ROWS_A_COLUMN * q else n
        every = slice(None, None, max(1, n // (FIRST_CHUNK * q)))
        means = _means(X[every], Y[every], intercept)
        total = np.zeros((q, q), order="F")
        total[np.diag_indices(q)] = precisions
        root: Array | None = total
        for part in (slice(0, look), slice(look, n)):
            if root is not None and part.start < part.stop:
                _add_products_of_parts(total, X, Y, weights, part, means, threads)
                root = _factor_if_reliable(total, q - Y.shape[1])
    if root is not None and intercept:
        root[0] += root[0, 0] * means
    return root


def _means(X: Array, Y: Array, intercept: bool) -> Array:
    """(q,) what is taken out of the columns of the 1, of X and of Y: of the 1 nothing."""
    if not intercept:
        return np.zeros(X.shape[1] + Y.shape[1])
    return np.concatenate([[0.0], np.asarray(X).mean(axis=0), Y.mean(axis=0)])


def _add_products_of_parts(
    total: Array,
    X: Array,
    Y: Array,
    weights: Array | None,
    whole: slice,
    means: Array,
    threads: int | None,
) -> None:
    """Add to ``total`` (q, q) the products of these rows, a part of them on each core."""
    cuts = split_rows(whole.stop - whole.start, len(total), threads)
    parts = [slice(whole.start + cut.start, whole.start + cut.stop) for cut in cuts]
    sums = [total, *(np.zeros_like(total) for _ in parts[1:])]
    run_together(
        lambda one, part: _add_products(one, X[part], Y[part], weights, part, means), sums, parts
    )
    for one in sums[1:]:
        total += one


def _add_products(
    total: Array, X: Array, Y: Array, weights: Array | None, part: slice, means: Array
) -> None:
    """Add to ``total`` (q, q), upper, the products of rows less their means, in its memory."""
    q, first = len(total), len(total) - X.shape[1] - Y.shape[1]
    by_rows = isinstance(X, np.ndarray) and X.strides[0] >= X.strides[1]
    room = np.empty((min(BLOCK, len(X)), q), order="C" if by_rows else "F")
    for start in range(0, len(X), BLOCK):
        some = slice(start, min(start + BLOCK, len(X)))
        rows = room[: some.stop - start]
        rows[:, :first] = 1.0
        _subtract(X[some], means[first:], rows[:, first : q - Y.shape[1]])
        np.subtract(Y[some], means[q - Y.shape[1] :], out=rows[:, q - Y.shape[1] :])
        if weights is not None:
            rows *= np.sqrt(weights[part][some])[:, None]
        add_products(total, rows)


def _subtract(X: Array | Columns, means: Array, out: Array) -> None:
    m = X.shape[1]
    if isinstance(X, np.ndarray):
        np.subtract(X, means[:m], out=out)
        return
    for place, column in enumerate(X.arrays):
        np.subtract(column, means[place], out=out[:, place])


def _factor_if_reliable(upper: Array, p: int) -> Array | None:
    """The root (q, q) of a matrix of which half is there.

    None where the condition of its first ``p`` columns, those of the coefficients, loses digits, or
    what they leave of the others' squares does.
    """
    squares = np.diagonal(upper)
    if not ((squares > LEAST_SQUARE) & (squares < MOST_SQUARE)).all():
        return None
    scale = np.sqrt(squares)
    scaled = upper / scale[:, None]
    scaled /= scale
    root, status = dpotrf(scaled, lower=0)
    if status or not (np.square(np.diagonal(root)[p:]) * CONDITION >= 1.0).all():
        return None
    sizes = np.abs(scaled[:p, :p], out=scaled[:p, :p])
    norm = (sizes.sum(axis=0) + sizes.sum(axis=1) - 1.0).max()
    reciprocal, _ = dpocon(root[:p, :p], norm)
    return np.multiply(root, scale, out=root) if reciprocal * CONDITION >= 1.0 else None
