"""Rows with few active features as matrices of SciPy, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from posterity.posteriors._sparse_rows import SparseRows

Array = NDArray[np.float64]
Numbers = NDArray[np.int32]
# Rows (n, p), and numbers (n, k) of each, as its target and its weight.
Numbered = tuple[csr_array, Array]


def to_matrix(rows: SparseRows, size: int) -> csr_array:
    """Rows (n, size), in memory of their own; ``ValueError`` where a feature is outside of them."""
    starts, features = rows.starts, rows.features
    lowest, highest = features.min(initial=0), features.max(initial=-1)
    if starts[0] != 0 or starts[-1] != len(features) or (np.diff(starts) < 0).any():
        raise ValueError("the rows of a sparse matrix do not begin and end where its features do")
    if lowest < 0 or highest >= size:  # SciPy would write where these say
        raise ValueError(
            f"a row has feature {highest if lowest >= 0 else lowest}, and the model has {size}"
        )
    values = np.ones(len(rows.features)) if rows.values is None else rows.values
    # SciPy sorts in place, numbers without their indices where it has to convert these.
    return csr_array((values, rows.features, rows.starts), (len(rows), size), copy=True)


def to_rows(matrix: csr_array) -> SparseRows:
    """The rows of a matrix."""
    matrix = csr_array(matrix)
    starts = matrix.indptr.astype(np.int64)
    return SparseRows(starts, matrix.indices.astype(np.int32), None, matrix.data)


def stack_rows(above: csr_array, below: csr_array) -> csr_array:
    """Rows behind rows, which may have features that the first have not."""
    starts = np.concatenate([above.indptr, above.indptr[-1] + below.indptr[1:]])
    indices = np.concatenate([above.indices, below.indices])
    shape = (above.shape[0] + below.shape[0], below.shape[1])
    return csr_array((np.concatenate([above.data, below.data]), indices, starts), shape)


def renumber(matrix: csr_array, rows: Numbers | None, columns: Numbers, size: int) -> csr_array:
    """The matrix with these numbers of its columns, and (None: as they are) of its rows."""
    found = matrix.tocoo()
    n = matrix.shape[0] if rows is None else size
    row = found.row if rows is None else rows[found.row]
    return csr_array((found.data, (row, columns[found.col])), (n, size))


def find_rows(among: Numbered, wanted: Numbered) -> list[int] | None:
    """The number of a row that is the same as each wanted one; None where one has none left."""
    places: dict[bytes, list[int]] = {}
    for number, key in enumerate(_make_keys(among)):
        places.setdefault(key, []).append(number)
    found = []
    for key in _make_keys(wanted):
        if not places.get(key):
            return None
        found.append(places[key].pop())
    return found


def _make_keys(rows: Numbered) -> list[bytes]:
    X, numbers = rows
    X.sort_indices()
    features, values, numbers = X.indices.astype(np.int64), X.data + 0.0, numbers + 0.0
    return [
        features[low:high].tobytes() + values[low:high].tobytes() + own.tobytes()
        for low, high, own in zip(X.indptr[:-1], X.indptr[1:], numbers, strict=True)
    ]


__all__ = ["find_rows", "renumber", "stack_rows", "to_matrix", "to_rows"]
