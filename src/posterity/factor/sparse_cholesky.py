"""Cholesky factor of a sparse precision matrix, its solves, and the entries of the inverse.

Columns are put in an order of little fill (minimum degree, by SciPy's SuperLU), and columns with
nearly the same rows below them are kept together as one dense *front* (Liu 1992, "The multifrontal
method for sparse matrix solution: theory and practice", SIAM Review 34). The variances are those
entries of the inverse that the factor has, too, found from the last front to the first (Takahashi,
Fagan and Chen 1973), at about the cost of the factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csc_array, csr_array, eye_array, tril
from scipy.sparse.linalg import spilu

Array = NDArray[np.float64]
Numbers = NDArray[np.int32]

# A front takes one column more if that stores fewer zeros than this, or than this share.
FEW_ZEROS = 64
ZERO_SHARE = 0.1


class Front(NamedTuple):
    """Columns ``first`` up to ``last`` of the factor, and the rows they have below these."""

    first: int
    last: int
    rows: Numbers  # (m,) after the columns, sorted
    parent: int  # the front in which the first of the rows is a column, -1 of a root
    places: NDArray[np.intp]  # (m,) of the rows in the parent's columns and rows

    def within(self, columns: NDArray[Any]) -> NDArray[np.intp]:
        """Where these columns of the factor stand among the front's columns and rows."""
        width = self.last - self.first
        below = width + np.searchsorted(self.rows, columns)
        return np.where(columns < self.last, columns - self.first, below)


@dataclass(frozen=True)
class Pattern:
    """The order of the columns, and the fronts, of all matrices with one pattern of zeros."""

    order: Numbers  # (p,) column of the matrix at each place of the factor
    fronts: tuple[Front, ...]

    @property
    def n_numbers(self) -> int:
        """How many numbers a factor holds."""
        return sum(_size(f.last - f.first, len(f.rows)) for f in self.fronts)


def find_pattern(matrix: csc_array, check: Callable[[int], None] | None = None) -> Pattern:
    """Order the columns of a symmetric matrix (p, p) and find where its factor is not zero.

    ``check`` is told how many numbers the factor holds so far, and may raise.
    """
    order = _order_by_minimum_degree(matrix)
    parents, _ = _find_elimination_tree(_lower(matrix, order), None)
    order = order[_find_postorder(parents)]
    parents, rows = _find_elimination_tree(_lower(matrix, order), check)
    return Pattern(order, tuple(_merge_into_fronts(parents, rows)))


class SparseCholesky:
    """The factor ``L L' = A`` of a sparse positive definite matrix (p, p).

    Raises ``LinAlgError`` where the matrix is not positive definite.

    Examples
    --------
    >>> A = csc_array([[4.0, 0.0, 1.0], [0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    >>> factor = SparseCholesky(A, find_pattern(A))
    >>> factor.solve(np.array([5.0, 2.0, 4.0])).round(12)
    array([1., 1., 1.])
    >>> factor.inverse_diagonal().round(4)
    array([0.2727, 0.5   , 0.3636])
    """

    def __init__(self, matrix: csc_array, pattern: Pattern) -> None:
        self.pattern = pattern
        self._blocks: list[tuple[Array, Array]] = []  # of each front: its triangle, the rest
        lower = _lower(matrix, pattern.order)
        waiting: dict[int, list[tuple[Front, Array]]] = {}
        for number, front in enumerate(pattern.fronts):
            dense = _assemble_front(front, lower, waiting.pop(number, []))
            triangle, rest, left = _eliminate(dense, front.last - front.first)
            self._blocks.append((triangle, rest))
            if front.parent >= 0:
                waiting.setdefault(front.parent, []).append((front, left))

    @property
    def log_determinant(self) -> float:
        """log |A|."""
        return 2.0 * float(sum(np.log(np.diag(triangle)).sum() for triangle, _ in self._blocks))

    def whiten(self, right: Array) -> Array:
        """``L^-1 right``, in the factor's order, for ``right`` (p,) or (p, k)."""
        found = np.array(right[self.pattern.order], dtype=np.float64)
        for front, (triangle, rest) in zip(self.pattern.fronts, self._blocks, strict=True):
            own = found[front.first : front.last]
            if not own.any():
                continue
            own[:] = _solve_triangular(triangle, own)
            found[front.rows] -= rest @ own
        return found

    def solve(self, right: Array) -> Array:
        """``A^-1 right`` for ``right`` (p,) or (p, k)."""
        found = self.whiten(right)
        for front, (triangle, rest) in self._backwards():
            own = found[front.first : front.last]
            own -= rest.T @ found[front.rows]
            own[:] = _solve_triangular(triangle, own, transposed=True)
        solution = np.empty_like(found)
        solution[self.pattern.order] = found
        return solution

    def colour(self, noise: Array) -> Array:
        """``L'^-1 noise``: draws of covariance ``A^-1`` from standard normal ``noise`` (p, k)."""
        found = np.array(noise, dtype=np.float64)
        for front, (triangle, rest) in self._backwards():
            own = found[front.first : front.last]
            own -= rest.T @ found[front.rows]
            own[:] = _solve_triangular(triangle, own, transposed=True)
        draws = np.empty_like(found)
        draws[self.pattern.order] = found
        return draws

    def inverse_diagonal(self) -> Array:
        """(p,) the diagonal of ``A^-1``."""
        return self.variances(csr_array((0, len(self.pattern.order))))[0]

    def variances(self, X: csr_array) -> tuple[Array, Array]:
        """The diagonal of ``A^-1`` (p,), and ``x' A^-1 x`` of rows (n, p) that A is a sum of.

        What meets in a row of X must meet in A, too.
        """
        place = np.empty(len(self.pattern.order), dtype=np.int32)
        place[self.pattern.order] = np.arange(len(place))
        diagonal, forms = np.empty(len(place)), np.zeros(X.shape[0])
        rows = _rows_by_front(X, place, self.pattern)
        for number, front, inverse in self._inverses():
            width = front.last - front.first
            diagonal[self.pattern.order[front.first : front.last]] = np.diag(inverse)[:width]
            for some in rows.get(number, []):
                starts = X.indptr[some, None] + np.arange(X.indptr[some[0] + 1] - X.indptr[some[0]])
                at, values = front.within(place[X.indices[starts]]), X.data[starts]
                pairs = inverse[at[:, :, None], at[:, None, :]]
                forms[some] = np.einsum("ij,ijk,ik->i", values, pairs, values)
        return diagonal, forms

    # ---- inner -----------------------------------------------------------------------------------

    def _backwards(self) -> Iterator[tuple[Front, tuple[Array, Array]]]:
        return zip(reversed(self.pattern.fronts), reversed(self._blocks), strict=True)

    def _inverses(self) -> Iterator[tuple[int, Front, Array]]:
        """Number, front and the inverse's entries at its columns and rows, the last front first."""
        open_fronts: dict[int, tuple[int, Array]] = {}  # number: children to come, inverse
        children = np.zeros(len(self.pattern.fronts) + 1, dtype=int)
        np.add.at(children, [front.parent for front in self.pattern.fronts], 1)
        for number in reversed(range(len(self.pattern.fronts))):
            front, (triangle, rest) = self.pattern.fronts[number], self._blocks[number]
            below = np.zeros((0, 0))
            if front.parent >= 0:
                left, above = open_fronts.pop(front.parent)
                below = above[np.ix_(front.places, front.places)]
                if left > 1:
                    open_fronts[front.parent] = left - 1, above
            inverse = _invert_at_front(triangle, rest, below)
            if children[number]:
                open_fronts[number] = int(children[number]), inverse
            yield number, front, inverse


# ---- where the factor is not zero ----------------------------------------------------------------


def _order_by_minimum_degree(matrix: csc_array) -> Numbers:
    """The order of minimum degree; SuperLU finds it before it factors, here next to nothing."""
    near = matrix.astype(np.float64).tocsc()
    near.data = np.full(len(near.data), 1e-30)
    near = (near + eye_array(matrix.shape[0], format="csc")).tocsc()
    found = spilu(
        near,
        drop_tol=1.0,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(found.perm_c).astype(np.int32)


def _lower(matrix: csc_array, order: Numbers) -> csc_array:
    lower = csc_array(tril(matrix[order][:, order], format="csc"))
    lower.sort_indices()
    return lower


def _find_elimination_tree(
    lower: csc_array, check: Callable[[int], None] | None
) -> tuple[NDArray[np.intp], list[Numbers]]:
    """Parent of each column in the elimination tree, and its rows below the diagonal."""
    p = lower.shape[0]
    parents = np.full(p, -1)
    waiting: list[list[Numbers]] = [[] for _ in range(p)]
    found: list[Numbers] = []
    total = 0
    for j in range(p):
        own = lower.indices[lower.indptr[j] : lower.indptr[j + 1]]
        rows = own[own > j]
        if waiting[j]:
            rows = np.unique(np.concatenate([rows, *waiting[j]]))
            waiting[j] = []
        found.append(rows.astype(np.int32))
        total += len(rows) + 1
        if len(rows):
            parents[j] = rows[0]
            waiting[rows[0]].append(rows[1:])
        if check is not None:
            check(total)
        if len(rows) == p - j - 1:  # the rest is dense
            parents[j : p - 1] = np.arange(j + 1, p)
            tail = np.arange(p, dtype=np.int32)
            found.extend(tail[k + 1 :] for k in range(j + 1, p))
            break
    if check is not None:
        check(sum(map(len, found)) + p)
    return parents, found


def _find_postorder(parents: NDArray[np.intp]) -> NDArray[np.intp]:
    """The columns in an order in which each tree's branches stand together, before its root."""
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for column, parent in enumerate(parents.tolist()):
        children[parent].append(column)
    order, stack = [], list(children[-1])
    while stack:
        column = stack.pop()
        order.append(column)
        stack.extend(children[column])
    return np.array(order[::-1])


def _merge_into_fronts(parents: NDArray[np.intp], rows: list[Numbers]) -> Iterator[Front]:
    """Columns whose rows are nearly the same, together; then where each stands in its parent."""
    lasts: list[int] = []
    first, exact = 0, 0
    for j in range(len(parents)):
        exact += len(rows[j]) + 1
        if j + 1 < len(parents) and parents[j] == j + 1:
            together = _size(j + 2 - first, len(rows[j + 1]))
            zeros = together - exact - len(rows[j + 1]) - 1
            if zeros <= max(FEW_ZEROS, ZERO_SHARE * together):
                continue
        lasts.append(j + 1)
        first, exact = j + 1, 0
    firsts = [0, *lasts[:-1]]
    front_of = np.repeat(np.arange(len(lasts)), np.diff([0, *lasts]))
    for first, last in zip(firsts, lasts, strict=True):
        below = rows[last - 1]
        parent = int(front_of[below[0]]) if len(below) else -1
        start, end = (firsts[parent], lasts[parent]) if parent >= 0 else (0, 0)
        over = rows[end - 1] if parent >= 0 else below
        own = below < end
        places = np.where(own, below - start, end - start + np.searchsorted(over, below))
        yield Front(first, last, below, parent, places)


def _size(width: int, below: int) -> int:
    return width * (width + 1) // 2 + width * below


def _rows_by_front(
    X: csr_array, place: Numbers, pattern: Pattern
) -> dict[int, list[NDArray[np.intp]]]:
    """Rows (n, p) by the front of the first of their columns, and by how many they have."""
    lengths = np.diff(X.indptr)
    filled = np.flatnonzero(lengths)
    if not len(filled):
        return {}
    lowest = np.minimum.reduceat(place[X.indices], X.indptr[filled])
    lasts = np.array([front.last for front in pattern.fronts])
    fronts = np.searchsorted(lasts, lowest, side="right")
    order = np.lexsort((lengths[filled], fronts))
    keys = np.stack([fronts, lengths[filled]])[:, order]
    cuts = np.flatnonzero(np.diff(keys, axis=1).any(axis=0)) + 1
    found: dict[int, list[NDArray[np.intp]]] = {}
    for some in np.split(order, cuts):
        found.setdefault(int(fronts[some[0]]), []).append(filled[some])
    return found


# ---- one front -----------------------------------------------------------------------------------


def _assemble_front(front: Front, lower: csc_array, children: list[tuple[Front, Array]]) -> Array:
    """A front (m, m), of which the lower triangle counts, less what was eliminated."""
    width = front.last - front.first
    dense = np.zeros((width + len(front.rows),) * 2)
    some = slice(lower.indptr[front.first], lower.indptr[front.last])
    rows = lower.indices[some]
    counts = np.diff(lower.indptr[front.first : front.last + 1])
    dense[front.within(rows), np.repeat(np.arange(width), counts)] = lower.data[some]
    for child, left in children:
        dense[np.ix_(child.places, child.places)] += left
    return dense


def _eliminate(dense: Array, width: int) -> tuple[Array, Array, Array]:
    """Triangle of the first columns, the rows below it, and what is left of the others."""
    if width == 1:
        pivot = dense[0, 0]
        if not pivot > 0.0:
            raise LinAlgError("the matrix is not positive definite")
        root = np.sqrt(pivot)
        rest = dense[1:, :1] / root
        return np.array([[root]]), rest, dense[1:, 1:] - rest * rest.T
    triangle, failed = dpotrf(dense[:width, :width], lower=1, clean=1)
    if failed:
        raise LinAlgError("the matrix is not positive definite")
    rest = dtrsm(1.0, triangle, dense[width:, :width], side=1, lower=1, trans_a=1)
    return triangle, rest, dense[width:, width:] - rest @ rest.T


def _solve_triangular(triangle: Array, right: Array, *, transposed: bool = False) -> Array:
    """``triangle^-1 right``, or of its transpose."""
    if len(triangle) == 1:
        return right / triangle[0, 0]
    two = right.reshape(len(right), -1)
    return dtrsm(1.0, triangle, two, lower=1, trans_a=int(transposed)).reshape(right.shape)


def _invert_at_front(triangle: Array, rest: Array, below: Array) -> Array:
    """The inverse at a front's columns and rows, given that at its rows."""
    width = len(triangle)
    inverse = np.empty((width + len(below),) * 2)
    own, _ = dpotri(triangle, lower=1)
    own = np.tril(own) + np.tril(own, -1).T
    if len(below):
        scaled = dtrsm(1.0, triangle, rest, side=1, lower=1)
        across = below @ scaled
        inverse[width:, width:] = below
        inverse[width:, :width] = -across
        inverse[:width, width:] = -across.T
        own = own + scaled.T @ across
    inverse[:width, :width] = own
    return inverse


__all__ = ["Pattern", "SparseCholesky", "find_pattern"]
