"""The nonzero pattern of a sparse symmetric matrix's factor, found once for all its values.

The columns stand in an order of minimum degree, and those whose rows are nearly the same form a
*front*: a dense matrix of these columns and of the rows they have below (Liu 1992, "The
multifrontal method for sparse matrix solution: theory and practice", SIAM Review 34).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array, tril
from scipy.sparse.linalg import spilu

from posterity.aliases import AnyArray, Array, Indices

Numbers = NDArray[np.int32]
# Columns of the factor, and the rows below them.
Block = tuple[Numbers, Numbers]

# A front takes another column if that stores fewer zeros than this, or than this share.
FEW_ZEROS = 256
ZERO_SHARE = 0.3
# A front of this many rows is merged into its parent if the cost of eliminating its columns there,
# their number times the parent's size squared, is less than this times the rows squared, which
# would be copied.
MANY_ROWS, COPYING = 64, 200
# Rows of a leaf that is eliminated together with others of its kind: whatever their number, and at
# most, where all these leaves have no more pairs of rows, of which each takes 16 bytes.
FEW_ROWS, MOST_ROWS, MOST_PAIRS = 16, 64, 2**24


class Front(NamedTuple):
    """Columns ``first`` up to ``last`` of the factor, and the rows they have below these."""

    first: int
    last: int
    rows: Numbers  # (m,) after the columns, sorted
    parent: int  # the front in which the first of the rows is a column, -1 of a root
    places: Indices  # (m, 1) of the rows in the parent's columns and rows
    entries: slice  # of the pattern's entries, those of the columns

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.last - self.first

    @property
    def size(self) -> int:
        """Number of columns and rows."""
        return self.last - self.first + len(self.rows)


class Leaves(NamedTuple):
    """Fronts of one column, with as many rows each, of which none is a parent; by their parents."""

    numbers: list[int]
    columns: Indices  # (k,)
    rows: Indices  # (k, m)
    entries: Indices  # (k, 1 + m) of the pattern's
    targets: Indices  # (k, m, m) places of the rows' pairs in the parent, written row by row
    of_parents: dict[int, slice]  # which leaves are a parent's


@dataclass(frozen=True)
class SparsityPattern:
    """The order of the columns, and the fronts, of all matrices with one pattern of zeros.

    Its entries are those of the matrix's lower triangle in the order of the factor, column by
    column.
    """

    order: Numbers  # (p,) column of the matrix at each place of the factor
    places: Numbers  # (p,) place of each column
    keys: NDArray[np.int64]  # (entries,) of each entry, its column p + its row, ascending
    targets: Indices  # (entries,) place of each in its front, a matrix written row by row
    fronts: tuple[Front, ...]

    @property
    def n_numbers(self) -> int:
        """The number of values in a factor."""
        return sum(_size(front.width, len(front.rows)) for front in self.fronts)

    @property
    def widest(self) -> int:
        """The number of columns of the largest front."""
        return max((front.size for front in self.fronts), default=0)

    def find_entries(self, rows: AnyArray, columns: AnyArray) -> Indices:
        """The numbers of entries, given by rows and columns of the matrix.

        Raises ``ValueError`` for an entry that is not of the pattern.
        """
        one, two = self.places[rows], self.places[columns]
        keys = np.minimum(one, two).astype(np.int64) * len(self.order) + np.maximum(one, two)
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        if not np.array_equal(self.keys[found], keys):
            raise ValueError("the matrix has entries that its pattern has not")
        return found

    @cached_property
    def leaves(self) -> list[Leaves]:
        """The fronts that are eliminated together, before all others."""
        parents = {front.parent for front in self.fronts}
        groups: dict[int, list[int]] = {}
        for number, front in enumerate(self.fronts):
            if front.width == 1 and len(front.rows) <= MOST_ROWS and number not in parents:
                groups.setdefault(len(front.rows), []).append(number)
        n_pairs = np.cumsum([len(groups[m]) * m * m for m in sorted(groups)])
        return [
            self._group(groups[m])
            for m, count in zip(sorted(groups), n_pairs, strict=True)
            if m <= FEW_ROWS or count <= MOST_PAIRS
        ]

    @cached_property
    def inner(self) -> list[tuple[int, Front]]:
        """Number and front of all others."""
        leaves = {number for group in self.leaves for number in group.numbers}
        return [one for one in enumerate(self.fronts) if one[0] not in leaves]

    def _group(self, numbers: list[int]) -> Leaves:
        numbers = sorted(numbers, key=lambda number: self.fronts[number].parent)
        fronts = [self.fronts[number] for number in numbers]
        parents = np.array([front.parent for front in fronts])
        sizes = np.array([self.fronts[parent].size if parent >= 0 else 0 for parent in parents])
        places = np.array([front.places for front in fronts])
        starts = np.flatnonzero(np.diff(parents, prepend=-2))
        ends = np.append(starts[1:], len(parents))
        first = np.array([front.entries.start for front in fronts])
        return Leaves(
            numbers,
            np.array([front.first for front in fronts]),
            np.array([front.rows for front in fronts], dtype=np.intp),
            first[:, None] + np.arange(1 + len(fronts[0].rows)),
            places * sizes[:, None, None] + places.transpose(0, 2, 1),
            {
                int(parents[start]): slice(start, end)
                for start, end in zip(starts, ends, strict=True)
            },
        )

    @cached_property
    def diagonal(self) -> Indices:
        """(p,) the numbers of the diagonal's entries."""
        columns = np.arange(len(self.order))
        return self.find_entries(columns, columns)

    def gather(self, matrix: csc_array) -> Array:
        """(entries,) values of a symmetric matrix (p, p) of this pattern."""
        lower = tril(matrix, format="coo")
        values = np.zeros(len(self.keys))
        values[self.find_entries(lower.row, lower.col)] = lower.data
        return values

    def pair(self, X: csr_array) -> csr_array:
        """(n, entries) so that its product with entries of Z is ``x' Z x`` of rows (n, p) of X.

        What meets in a row of X must be an entry.
        """
        lengths, n = np.diff(X.indptr), X.shape[0]
        rows, found, products = [np.zeros(0, dtype=np.intp)], [], []
        for length in np.unique(lengths[lengths > 0]):
            some = np.flatnonzero(lengths == length)
            one, two = np.triu_indices(int(length))
            at = X.indptr[some, None] + np.arange(length)
            first, second = at[:, one].ravel(), at[:, two].ravel()
            rows.append(np.repeat(some, len(one)))
            found.append(self.find_entries(X.indices[first], X.indices[second]))
            products.append(np.where(first == second, 1.0, 2.0) * X.data[first] * X.data[second])
        places = np.concatenate(rows), np.concatenate([rows[0], *found])
        values = np.concatenate([np.zeros(0), *products])
        return csr_array((values, places), (n, len(self.keys)))


def find_sparsity_pattern(
    matrix: csc_array, check: Callable[[int], None] = lambda count: None
) -> SparsityPattern:
    """Order the columns of a symmetric matrix (p, p) and find where its factor is not zero.

    ``check`` gets the count of numbers in the factor so far, and may raise.
    """
    stored = csc_array((np.ones(len(matrix.data)), matrix.indices, matrix.indptr), matrix.shape)
    matrix = stored + eye_array(matrix.shape[0], format="csc")  # the diagonal belongs to it
    order = _order_with_little_fill(matrix)
    parents, _ = _find_rows(_lower(matrix, order), check)
    order = order[_order_children_first(parents)]
    parents, rows = _find_rows(_lower(matrix, order), check)
    blocks = _merge_with_parents(_find_chains(parents, rows))
    permutation = np.concatenate([order[:0], *(columns for columns, _ in blocks)])
    places = np.empty(len(order), dtype=np.int32)
    places[permutation] = np.arange(len(order))
    sizes = [len(columns) for columns, _ in blocks]
    below = [np.sort(places[rows]) for _, rows in blocks]
    order = order[permutation]
    places[order] = np.arange(len(order))
    lower = _lower(matrix, order)
    columns = np.repeat(np.arange(len(order)), np.diff(lower.indptr))
    keys = columns.astype(np.int64) * len(order) + lower.indices
    fronts = tuple(_make_fronts(sizes, below, lower.indptr))
    return SparsityPattern(order, places, keys, _find_targets(fronts, lower, columns), fronts)


def _order_with_little_fill(matrix: csc_array) -> Numbers:
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


def _find_rows(lower: csc_array, check: Callable[[int], None]) -> tuple[Indices, list[Numbers]]:
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
        check(total)
        if len(rows) == p - j - 1:  # the rest is dense
            parents[j : p - 1] = np.arange(j + 1, p)
            tail = np.arange(p, dtype=np.int32)
            found.extend(tail[k + 1 :] for k in range(j + 1, p))
            break
    check(sum(map(len, found)) + p)
    return parents, found


def _order_children_first(parents: Indices) -> Indices:
    """The columns in an order in which each tree's branches stand together, before its root."""
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for column, parent in enumerate(parents.tolist()):
        children[parent].append(column)
    order, stack = [], list(children[-1])
    while stack:
        column = stack.pop()
        order.append(column)
        stack.extend(children[column])
    return np.array(order[::-1], dtype=np.intp)


def _find_chains(parents: Indices, rows: list[Numbers]) -> list[Block]:
    """Columns that follow each other, whose rows are nearly the same."""
    blocks = []
    first, exact = 0, 0
    for j in range(len(parents)):
        exact += len(rows[j]) + 1
        if j + 1 < len(parents) and parents[j] == j + 1:
            together = _size(j + 2 - first, len(rows[j + 1]))
            zeros = together - exact - len(rows[j + 1]) - 1
            if zeros <= max(FEW_ZEROS, ZERO_SHARE * together):
                continue
        blocks.append((np.arange(first, j + 1, dtype=np.int32), rows[j]))
        first, exact = j + 1, 0
    return blocks


def _merge_with_parents(blocks: list[Block]) -> list[Block]:
    """The blocks, of which those with many rows and few columns have become their parents'."""
    block_of = np.repeat(np.arange(len(blocks)), [len(columns) for columns, _ in blocks])
    merged = list(blocks)
    for number, (columns, rows) in enumerate(blocks):
        own = merged[number][0]
        if len(rows) < MANY_ROWS:
            continue
        parent = int(block_of[rows[0]])
        others, below = merged[parent]
        if len(own) * (len(others) + len(below)) ** 2 < COPYING * len(rows) ** 2:
            merged[parent] = np.concatenate([own, others]), below
            merged[number] = columns[:0], rows[:0]
    return [block for block in merged if len(block[0])]


def _make_fronts(sizes: list[int], below: list[Numbers], starts: Numbers) -> Iterator[Front]:
    """The fronts, of so many columns, and where the rows below stand in their parents."""
    lasts = np.cumsum(sizes)
    firsts = lasts - sizes
    front_of = np.repeat(np.arange(len(sizes)), sizes)
    for first, last, rows in zip(firsts.tolist(), lasts.tolist(), below, strict=True):
        parent = int(front_of[rows[0]]) if len(rows) else -1
        places = np.zeros(0, dtype=np.intp)
        if parent >= 0:
            start, end = firsts[parent], lasts[parent]
            under = end - start + np.searchsorted(below[parent], rows)
            places = np.where(rows < end, rows - start, under)
        entries = slice(int(starts[first]), int(starts[last]))
        yield Front(first, last, rows, parent, places[:, None], entries)


def _find_targets(fronts: tuple[Front, ...], lower: csc_array, columns: Indices) -> Indices:
    """Return the place of each entry of the lower triangle in its front, written row by row."""
    targets = np.empty(len(lower.indices), dtype=np.intp)
    for front in fronts:
        rows = lower.indices[front.entries]
        below = front.width + np.searchsorted(front.rows, rows)
        within = np.where(rows < front.last, rows - front.first, below)
        targets[front.entries] = within * front.size + columns[front.entries] - front.first
    return targets


def _size(width: int, below: int) -> int:
    return width * (width + 1) // 2 + width * below
