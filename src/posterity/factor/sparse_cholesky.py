"""The Cholesky factor of a sparse matrix, and the entries of the inverse that it needs.

The factor is made front by front (:mod:`posterity.factor.sparse_pattern`): what is left of a front
when its columns are eliminated is added to its parent's. Small leaves, of which one-hot rows have
thousands, are eliminated together. The entries of the inverse are found from
the last front to the first (Takahashi, Fagan and Chen 1973), at about the cost of the factor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csc_array

from posterity.aliases import Array, Indices
from posterity.factor.sparse_pattern import Front, SparsityPattern


class SparseCholesky:
    """The factor ``L L' = A`` of a sparse positive definite matrix (p, p), given by its entries.

    Raises ``LinAlgError`` where the matrix is not positive definite: give a larger prior precision.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> from posterity.factor.sparse_pattern import find_sparsity_pattern
    >>> A = csc_array([[4.0, 0.0, 1.0], [0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    >>> pattern = find_sparsity_pattern(A)
    >>> factor = SparseCholesky(pattern.gather(A), pattern)
    >>> factor.solve(np.array([5.0, 2.0, 4.0])).round(12)
    array([1., 1., 1.])
    >>> factor.inverse_entries()[pattern.diagonal].round(4)
    array([0.2727, 0.5   , 0.3636])
    >>> round(float(np.exp(factor.log_determinant())), 9)
    22.0
    """

    def __init__(self, values: Array, pattern: SparsityPattern) -> None:
        self.pattern = pattern
        self._inverse: Array | None = None
        self._leaves: list[tuple[Array, Array]] = []  # of each group: the roots, the rest
        self._blocks: list[tuple[Array, Array]] = []  # of each other front: triangle, the rest
        all_left = []
        for group in pattern.leaves:
            roots, rest = _eliminate_leaves(values[group.entries])
            self._leaves.append((roots, rest))
            all_left.append(-rest[:, :, None] * rest[:, None, :])
        waiting: dict[int, list[tuple[Indices, Array]]] = {}
        for number, front in pattern.inner:
            dense = np.zeros((front.size, front.size))
            flat = dense.ravel()  # in the same place
            flat[pattern.targets[front.entries]] = values[front.entries]
            for group, left in zip(pattern.leaves, all_left, strict=True):
                if number in group.of_parents:
                    some = group.of_parents[number]
                    np.add.at(flat, group.targets[some].ravel(), left[some].ravel())
            for places, left in waiting.pop(number, ()):
                dense[places, places.T] += left
            triangle, rest, left = _eliminate(dense, front.width)
            self._blocks.append((triangle, rest))
            if front.parent >= 0:
                waiting.setdefault(front.parent, []).append((front.places, left))

    def log_determinant(self) -> float:
        """The log determinant of ``A``."""
        roots = [roots for roots, _ in self._leaves]
        roots += [triangle.diagonal() for triangle, _ in self._blocks]
        return 2.0 * float(np.sum(np.log(np.concatenate([np.ones(0), *roots]))))

    def whiten(self, right: Array) -> Array:
        """``L^-1 right``, in the factor's order, for ``right`` (p,) or (p, k)."""
        found = np.array(right[self.pattern.order], dtype=np.float64)
        for group, (roots, rest) in zip(self.pattern.leaves, self._leaves, strict=True):
            own = (found[group.columns].T / roots).T
            found[group.columns] = own
            some = np.flatnonzero(own.reshape(len(own), -1).any(axis=1))
            _subtract_products(found, group.rows[some], rest[some], own[some])
        for (_, front), (triangle, rest) in zip(self.pattern.inner, self._blocks, strict=True):
            own = found[front.first : front.last]
            if not own.any():
                continue
            own[:] = _divide(triangle, own)
            found[front.rows] -= rest @ own
        return found

    def solve(self, right: Array) -> Array:
        """``A^-1 right`` for ``right`` (p,) or (p, k)."""
        found = self.whiten(right)
        for (_, front), (triangle, rest) in self._backwards():
            own = found[front.first : front.last]
            own -= rest.T @ found[front.rows]
            own[:] = _divide(triangle, own, transposed=True)
        for group, (roots, rest) in zip(self.pattern.leaves, self._leaves, strict=True):
            taken = np.einsum("ki,ki...->k...", rest, found[group.rows])
            found[group.columns] = ((found[group.columns] - taken).T / roots).T
        solution = np.empty_like(found)
        solution[self.pattern.order] = found
        return solution

    def inverse_entries(self) -> Array:
        """(entries,) the entries of ``A^-1`` that the pattern names; found once."""
        if self._inverse is None:
            self._inverse = self._find_inverse()
        return self._inverse

    # ---- inner -----------------------------------------------------------------------------------

    def _find_inverse(self) -> Array:
        pattern = self.pattern
        entries = np.empty(len(pattern.keys))
        below = [np.zeros(group.targets.shape) for group in pattern.leaves]
        for number, front, inverse in self._invert():
            flat = inverse.ravel()
            entries[front.entries] = flat[pattern.targets[front.entries]]
            for group, among in zip(pattern.leaves, below, strict=True):
                if number in group.of_parents:
                    some = group.of_parents[number]
                    among[some] = flat[group.targets[some]]
        for group, (roots, rest), among in zip(pattern.leaves, self._leaves, below, strict=True):
            scaled = rest / roots[:, None]
            across = np.einsum("kij,kj->ki", among, scaled)
            entries[group.entries[:, 0]] = 1.0 / roots**2 + np.einsum("ki,ki->k", scaled, across)
            entries[group.entries[:, 1:]] = -across
        return entries

    def _backwards(self) -> Iterator[tuple[tuple[int, Front], tuple[Array, Array]]]:
        return zip(reversed(self.pattern.inner), reversed(self._blocks), strict=True)

    def _invert(self) -> Iterator[tuple[int, Front, Array]]:
        """The inverse's entries at each front's columns and rows, the last front first."""
        to_come = Counter(front.parent for _, front in self.pattern.inner)
        inverses: dict[int, Array] = {}
        for (number, front), (triangle, rest) in self._backwards():
            below = np.zeros((0, 0))
            if front.parent >= 0:
                below = inverses[front.parent][front.places, front.places.T]
                to_come[front.parent] -= 1
                if not to_come[front.parent]:
                    del inverses[front.parent]
            inverse = _invert_front(triangle, rest, below)
            if to_come[number]:
                inverses[number] = inverse
            yield number, front, inverse


def _eliminate_leaves(values: Array) -> tuple[Array, Array]:
    """Roots (k,) and the rest (k, m) of single columns (k, 1 + m)."""
    if not (values[:, 0] > 0.0).all():
        raise LinAlgError("the matrix is not positive definite: give a larger prior precision")
    roots = np.sqrt(values[:, 0])
    return roots, values[:, 1:] / roots[:, None]


def _eliminate(dense: Array, width: int) -> tuple[Array, Array, Array]:
    """Return the triangle of the first columns, the rows below it, and the others' remainder.

    The lower triangle counts.
    """
    if width == 1:
        pivot = dense[0, 0]
        if not pivot > 0.0:
            raise LinAlgError("the matrix is not positive definite: give a larger prior precision")
        root = np.sqrt(pivot)
        rest = dense[1:, :1] / root
        return np.full((1, 1), root), rest, dense[1:, 1:] - rest * rest.T
    triangle, failed = dpotrf(dense[:width, :width], lower=1, clean=1)
    if failed:
        raise LinAlgError("the matrix is not positive definite: give a larger prior precision")
    rest = dtrsm(1.0, triangle, dense[width:, :width], side=1, lower=1, trans_a=1)
    return triangle, rest, dense[width:, width:] - rest @ rest.T


def _subtract_products(found: Array, rows: Indices, rest: Array, own: Array) -> None:
    """Take ``rest`` (k, m) times ``own`` (k, ...) off these rows (k, m) of ``found``, in place."""
    if found.size == len(found):
        np.subtract.at(found.reshape(-1), rows, rest * own.reshape(-1, 1))
    else:  # without an array of all products
        starts = np.arange(len(rows) + 1) * rows.shape[1]
        parts = rest.ravel(), rows.ravel(), starts
        found -= csc_array(parts, shape=(len(found), len(rows))) @ own


def _divide(triangle: Array, right: Array, *, transposed: bool = False) -> Array:
    """``triangle^-1 right``, or of its transpose."""
    if len(triangle) == 1:
        return right / triangle[0, 0]
    two = right.reshape(len(right), -1)
    return dtrsm(1.0, triangle, two, lower=1, trans_a=int(transposed)).reshape(right.shape)


def _invert_front(triangle: Array, rest: Array, below: Array) -> Array:
    """The inverse at a front's columns and rows, given that at its rows."""
    width = len(triangle)
    inverse = np.empty((width + len(below),) * 2)
    own = inverse[:width, :width]
    if width == 1:
        own[0, 0] = 1.0 / triangle[0, 0] ** 2
        scaled = rest / triangle[0, 0]
    else:
        half, _ = dpotri(triangle, lower=1)  # zero above the diagonal, as the triangle is
        own[:] = half + half.T
        own[np.diag_indices(width)] *= 0.5
        scaled = dtrsm(1.0, triangle, rest, side=1, lower=1) if len(below) else rest
    if len(below):
        across = below @ scaled
        inverse[width:, width:] = below
        inverse[width:, :width] = -across
        inverse[:width, width:] = -across.T
        own += scaled.T @ across
    return inverse
