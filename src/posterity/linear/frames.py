"""The columns of data frames and of arrays of other numbers, where they lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.kernel.columns import Columns, is_readable

Array = NDArray[np.float64]


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
        found = (_read_numbers(column) for _, column in list_columns(X) or ())
    columns = []
    for column in found:
        if column is None or column.dtype.kind not in "fiub":
            return None
        columns.append(column if is_readable(column) else column.astype(np.float64))
    return _together(columns) if columns else None


def list_columns(X: Any) -> list[tuple[Any, Any]] | None:
    """Name and values of each column of a data frame or Arrow table; None of what is neither.

    Examples
    --------
    >>> import pandas as pd
    >>> [(name, column.tolist()) for name, column in list_columns(pd.DataFrame({"a": [1, 2]}))]
    [('a', [1, 2])]
    >>> list_columns([[1, 2]]) is None
    True
    """
    if hasattr(X, "itercolumns"):
        return list(zip(X.column_names, X.itercolumns(), strict=True))
    if hasattr(X, "get_columns"):
        return [(column.name, column) for column in X.get_columns()]
    return list(X.items()) if hasattr(X, "iloc") and hasattr(X, "columns") else None


def type_of(column: Any) -> Any:
    """The type of the values of a column, as its library has it."""
    return column.dtype if hasattr(column, "dtype") else column.type


def name_columns(X: Any) -> dict[str, Any]:
    """The columns of a frame or Arrow table that are read by name, and what it calls them.

    As in scikit-learn, names that are no text are none: such columns are called by their places,
    "0" and on.

    Raises
    ------
    TypeError
        If some names are text, and some are not.
    ValueError
        If two columns have one name.

    Examples
    --------
    >>> import pandas as pd
    >>> name_columns(pd.DataFrame({7: [1.0], 3: [2.0]}))
    {'0': 7, '1': 3}
    """
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    texts = [name for name in names if isinstance(name, str)]
    if texts and len(texts) < len(names):
        other = next(name for name in names if not isinstance(name, str))
        raise TypeError(
            f"X has the column {texts[0]!r} and the column {other!r}: name all columns by text, "
            "as by X.columns.astype(str), or none"
        )
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"X has two columns of the name {twice!r}: rename or drop one")
    return {name if texts else str(place): name for place, name in enumerate(names)}


class _Block:
    """An array interface over columns at equal distances in memory, which it keeps alive."""

    def __init__(self, columns: list[NDArray[Any]], distance: int) -> None:
        first = columns[0]
        self.columns = columns
        self.__array_interface__ = first.__array_interface__ | {
            "shape": (len(first), len(columns)),
            "strides": (first.strides[0], distance),
        }


def _together(columns: list[NDArray[Any]]) -> Array | Columns:
    """The columns as an array, without a copy, if they lie so; otherwise as they are."""
    if all(column.dtype == np.float64 for column in columns):
        places = [column.__array_interface__["data"][0] for column in columns]
        distances, strides = set(np.diff(places).tolist()), {column.strides for column in columns}
        if len(distances | {0}) <= 2 and len(strides) == 1 and min(distances, default=8) > 0:
            return np.asarray(_Block(columns, distances.pop() if distances else 8))
    return Columns(tuple(columns))


def _read_numbers(column: Any) -> NDArray[Any] | None:
    """A column of a frame or Arrow table as an array; None of pandas' own kinds but numbers."""
    dtype = type_of(column)
    if isinstance(dtype, np.dtype) or not hasattr(dtype, "kind"):
        return np.asarray(column)
    if dtype.kind not in "fiub":
        return None
    return np.asarray(column.to_numpy(np.float64, na_value=np.nan))  # which may be missing


__all__ = ["columns_of", "list_columns", "name_columns", "type_of"]
