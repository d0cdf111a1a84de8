"""Rows of numbered features, as a diagonal posterior learns them: made of parts or of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from posterity.aliases import AnyArray, Array, Indices
from posterity.linear.matrices import check_matrix
from posterity.posteriors._centres import FULL_MATRIX, Centres
from posterity.posteriors._sparse_rows import SparseRows
from posterity.sparse.index import UNNAMED, FeatureIndex
from posterity.sparse.parts import Part

Numbers = NDArray[np.int32]
Pairs = Sequence[tuple[str, str]]


def describe_matrix(read: Any) -> tuple[int | None, bool]:
    """The width of a matrix, and whether its features are numbers, each a column of its own.

    Zeros and ones alone are levels, however many there are of either.
    """
    if not issparse(read):
        return None, False
    n, width = read.shape
    full = read.count_nonzero() > FULL_MATRIX * n * width
    return width, full and bool((read.data[read.data != 0.0] != 1.0).any())


def read_matrix(X: Any, *, own_columns: bool) -> SparseRows:
    """Rows of a sparse matrix (n, m), whose feature j is number j + 1, of column j + 2 or 1."""
    matrix = check_matrix(X)
    features = matrix.indices.astype(np.int32) + np.int32(1)
    columns = features + np.int32(UNNAMED) if own_columns else None
    rows = SparseRows(matrix.indptr.astype(np.int64), features, columns, matrix.data)
    return rows.drop_zeros()


def number_parts(n: int, parts: list[Part], index: FeatureIndex, *, new: bool) -> SparseRows:
    """Rows of columns; columns that are not known are left out, unless they are ``new``."""
    found = [_number_part(part, n, index, new) for part in parts]
    kept = [one for one in found if one is not None]
    whole = all(part.rows is None for part in parts) and index.hashed is None
    return (_stack_parts if whole else _sort_entries)(n, kept)


def add_pairs(
    rows: SparseRows, index: FeatureIndex, chosen: Pairs | None, centres: Centres | None
) -> SparseRows:
    """The rows, and the products of two active features: of all, or of ``chosen`` columns.

    New pairs are left out without ``centres``, to which those of numbers are added.
    """
    groups = _group_by_length(rows)
    found = [_make_pairs(rows, some, index, chosen, centres) for some in groups]
    columns = np.full(len(rows.features), UNNAMED) if rows.columns is None else rows.columns
    parts = [(rows.row_numbers, rows.features, columns, rows.values), *found]
    if index.hashed is None and len(groups) == 1 and len(groups[0][0]) == len(rows):
        length = groups[0][1]
        if len(found[0][0]) == len(rows) * length * (length - 1) // 2:
            return _interleave_parts(len(rows), parts)
    together = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(together[0], kind="stable")
    row, feature, column, value = (one[order] for one in together)
    return _compress(len(rows), row, feature, column, value, summed=index.hashed is not None)


# ---- inner ---------------------------------------------------------------------------------------


def _number_part(
    part: Part, n: int, index: FeatureIndex, new: bool
) -> tuple[NDArray[np.int64], Numbers, Numbers, Array] | None:
    """Rows, features, columns and values of a part."""
    column = index.column(part.name, new=new)
    if column < 0:
        return None
    rows = np.arange(n) if part.rows is None else part.rows
    signs: Any
    if part.keys is None:
        number, signs = index.number_of(column, new=new)
        features = np.full(len(rows), number, dtype=np.int32)
    else:
        found, levels_signs = index.levels_of(column, part.keys, new=new)
        features = found[part.keys.numbers]
        signs = 1.0 if levels_signs is None else levels_signs[part.keys.numbers]
    values = signs * (np.ones(len(rows)) if part.values is None else part.values)
    return rows, features, np.full(len(rows), column, dtype=np.int32), values


def _stack_parts(n: int, found: list[Any]) -> SparseRows:
    """Parts that all rows have: nothing to sort."""
    width = len(found)
    stacked: list[Any] = [
        np.stack([one[k] for one in found], axis=1).ravel() if found else np.zeros(0, kind)
        for k, kind in ((1, np.int32), (2, np.int32), (3, np.float64))
    ]
    return SparseRows(np.arange(n + 1) * width, *stacked).drop_zeros()


def _interleave_parts(n: int, parts: list[Any]) -> SparseRows:
    """Parts with as many entries in every row, in the order of rows: nothing to sort."""
    stacked: list[Any] = [
        np.hstack([one.reshape(n, -1) for one in column])
        for column in list(zip(*parts, strict=True))[1:]
    ]
    starts = np.arange(n + 1) * stacked[0].shape[1]
    features, columns, values = (one.ravel() for one in stacked)
    kept = features.astype(np.int32), columns.astype(np.int32), values.astype(np.float64)
    return SparseRows(starts, *kept).drop_zeros()


def _sort_entries(n: int, found: list[Any]) -> SparseRows:
    """Parts of some rows each: sorted by row and feature, so that no order matters."""
    if not found:
        return SparseRows(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), None, np.zeros(0))
    together = [np.concatenate(one) for one in zip(*found, strict=True)]
    return _compress(n, *together, summed=True)


def _compress(
    n: int, rows: Any, features: Any, columns: Any, values: Any, *, summed: bool
) -> SparseRows:
    """Entries, sorted by row; ``summed``: in any order, and features may be there twice."""
    if summed and len(rows):
        order = np.lexsort((columns, features, rows))
        rows, features, columns, values = (one[order] for one in (rows, features, columns, values))
        first = np.append(
            True, (np.diff(rows) != 0) | (np.diff(features) != 0) | (features[1:] < 0)
        )
        if not first.all():
            values = np.add.reduceat(values, np.flatnonzero(first))
            rows, features, columns = rows[first], features[first], columns[first]
    starts = np.searchsorted(rows, np.arange(n + 1)).astype(np.int64)
    found = SparseRows(
        starts, features.astype(np.int32), columns.astype(np.int32), values.astype(np.float64)
    )
    return found.drop_zeros()


def _group_by_length(rows: SparseRows) -> list[tuple[Indices, int]]:
    """Rows of two active features or more, by how many they have."""
    lengths = np.diff(rows.starts)
    return [
        (np.flatnonzero(lengths == length), int(length))
        for length in np.unique(lengths[lengths > 1])
    ]


def _make_pairs(
    rows: SparseRows,
    some: tuple[Indices, int],
    index: FeatureIndex,
    chosen: Pairs | None,
    centres: Centres | None,
) -> tuple[AnyArray, Numbers, Numbers, Array]:
    """Rows, features, columns and values of the pairs in rows of one length."""
    which, length = some
    new = centres is not None
    one, two = np.triu_indices(length, 1)
    places = rows.starts[which, None] + np.arange(length)
    ends = places[:, one].ravel(), places[:, two].ravel()
    row = np.repeat(which, len(one))
    columns = _ends(rows.columns, ends, UNNAMED)
    if chosen is not None:
        wanted = _codes([_pair_columns(index, pair, new) for pair in chosen])
        kept = np.isin(_codes(np.stack(columns, axis=1)), wanted)
        row, ends = row[kept], (ends[0][kept], ends[1][kept])
        columns = columns[0][kept], columns[1][kept]
    column = index.pair_columns_of(*columns, new=new)
    features = _ends(rows.features, ends, 0)
    feature = index.pairs_of(*features, new=new)
    if centres is not None:
        centres.add_products(feature, *features)
    value = rows.values[ends[0]] * rows.values[ends[1]]
    there = column >= 0
    return row[there], feature[there], column[there], value[there]


def _ends(numbers: Numbers | None, ends: Any, default: int) -> tuple[Numbers, Numbers]:
    """The lower and the higher of two numbers each."""
    if numbers is None:
        same = np.full(len(ends[0]), default, dtype=np.int32)
        return same, same
    one, two = numbers[ends[0]], numbers[ends[1]]
    return np.minimum(one, two), np.maximum(one, two)


def _pair_columns(index: FeatureIndex, pair: tuple[str, str], new: bool) -> tuple[int, int]:
    one, two = (index.column(name, new=new) for name in pair)
    return min(one, two), max(one, two)


def _codes(pairs: Any) -> NDArray[np.int64]:
    numbers = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    return numbers[:, 0] << 32 | numbers[:, 1]
