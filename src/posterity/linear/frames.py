"""The columns of data frames and of arrays of other numbers, where they lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from posterity.aliases import AnyArray, Array
from posterity.kernel.columns import Columns, is_readable
from posterity.kernel.tables import find_table, type_of


def columns_of(X: Any, *, arrays: bool) -> Array | Columns | None:
    """Return the columns of X (n, m), or None if some are no numbers or X is no known container.

    It is an array where columns lie equally far apart, as those of one block of memory do.

    Containers are data frames of pandas and Polars, tables of Arrow, and with ``arrays`` arrays of
    NumPy of other numbers than float64, too. Columns are copied where the container would not show
    them as they lie: those in several pieces, with missing values, which become NaN, and bits.

    Examples
    --------
    >>> columns_of(np.ones((2, 3), dtype=np.float32), arrays=True).shape
    (2, 3)
    >>> columns_of([[1.0, 2.0]], arrays=True) is None
    True
    """
    if len(getattr(X, "shape", ())) != 2 or not min(X.shape):
        return None
    if type(X) is np.ndarray:
        found: Iterable[Any] = X.T if arrays and X.dtype != np.float64 else ()
    else:
        table = find_table(X)
        found = () if table is None else map(_read_numbers, table.columns)
    columns = []
    for column in found:
        if column.dtype.kind not in "fiub":
            return None
        columns.append(column if is_readable(column) else column.astype(np.float64))
    return _together(columns) if columns else None


class _Block:
    """An array interface over columns at equal distances in memory, which it keeps alive."""

    def __init__(self, columns: list[AnyArray], distance: int) -> None:
        first = columns[0]
        self.columns = columns
        self.__array_interface__ = first.__array_interface__ | {
            "shape": (len(first), len(columns)),
            "strides": (first.strides[0], distance),
        }


def _together(columns: list[AnyArray]) -> Array | Columns:
    """The columns as an array, without a copy, if they lie so; otherwise as they are."""
    if all(column.dtype == np.float64 for column in columns):
        places = [column.__array_interface__["data"][0] for column in columns]
        distances, strides = set(np.diff(places).tolist()), {column.strides for column in columns}
        if len(distances | {0}) <= 2 and len(strides) == 1 and min(distances, default=8) > 0:
            return np.asarray(_Block(columns, distances.pop() if distances else 8))
    return Columns(tuple(columns))


def _read_numbers(column: Any) -> AnyArray:
    """A column of a frame or Arrow table as an array."""
    dtype = type_of(column)
    if isinstance(dtype, np.dtype) or getattr(dtype, "kind", "O") not in "fiub":
        return np.asarray(column)
    return np.asarray(column.to_numpy(np.float64, na_value=np.nan))  # of pandas; may be missing
