"""Sparse matrices of SciPy: looked at, and as dense rows where they have few columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from posterity.aliases import Array
from posterity.factor.usable import LARGEST
from posterity.safety import check_memory

# Most columns with which a dense model's triangle is small.
MOST_COLUMNS = 2_000
# Values of a part that is made dense: 32 MB.
BLOCK = 4_000_000


def check_matrix(X: Any) -> Any:
    """Return sparse ``X`` (n, m), by rows, duplicate entries summed; ``X`` is not changed.

    Raises ``ValueError`` for an index out of its range, and naming row and column of a value that
    is not finite or too large to square.
    """
    if getattr(X, "format", "") in ("csr", "csc"):
        minor, major = X.shape[:: -1 if X.format == "csr" else 1]
        if len(X.indices) and (X.indices.min() < 0 or X.indices.max() >= minor):
            bad = int(X.indices[np.argmax((X.indices < 0) | (X.indices >= minor))])
            raise ValueError(
                f"X has an entry with index {bad}: they must lie between 0 and {minor - 1}, as X "
                f"has {minor} {'columns' if X.format == 'csr' else 'rows'}"
            )
        if len(X.indptr) != major + 1:
            raise ValueError(f"X has {len(X.indptr)} starts for {major} rows or columns")
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers")
    matrix = sparse.csr_array(X, dtype=np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    bad = ~(np.abs(matrix.data) <= LARGEST)
    if bad.any():
        place = int(np.argmax(bad))
        row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
        value, column = matrix.data[place], matrix.indices[place]
        if np.isfinite(value):
            raise ValueError(
                f"X is {value:g} in row {row}, column {column}: beyond {LARGEST:g} products "
                "overflow; use smaller units"
            )
        kind = "NaN" if np.isnan(value) else "infinity"
        raise ValueError(
            f"Input X contains {kind} in row {row}, column {column} (the first of "
            f"{int(bad.sum())}): drop such rows, or leave the entries out (they are then 0)"
        )
    return matrix


def dense_rows(X: Any) -> Array:
    """The rows of a sparse matrix that a dense model can learn.

    Raises ``ValueError`` where it has too many columns, or rows for this machine's memory, too.
    """
    check_width(X)
    check_memory(
        8.0 * X.shape[0] * X.shape[1],
        f"a sparse X of {X.shape[0]:,} x {X.shape[1]:,} with its zeros",
        "learn it in parts, by partial_fit",
    )
    return np.asarray(check_matrix(X).toarray())


def check_width(X: Any) -> None:
    """Raise ``ValueError`` where a sparse matrix has more columns than a dense model takes."""
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"X is sparse and has {X.shape[1]:,} columns; this model has a full covariance, and "
            f"takes sparse rows of up to {MOST_COLUMNS:,}: for more use a diagonal model from "
            "posterity.sparse, such as DiagonalLogisticRegression"
        )


def find_block_starts(X: Any) -> list[int]:
    """Return where to cut the rows of a sparse matrix so that each part is small when dense."""
    rows = max(1, BLOCK // max(1, X.shape[1]))
    return list(range(0, X.shape[0], rows))
