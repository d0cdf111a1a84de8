"""Columns of levels and of numbers, as numbers of levels and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from posterity.aliases import AnyArray, Array, Indices
from posterity.factor.usable import LARGEST
from posterity.grouped.index import KeyIndex
from posterity.kernel.tables import find_table
from posterity.kernel.values import read_floats
from posterity.linear.keys import read_keys

Codes = Indices


def read_columns(X: Any, names: Sequence[str] | None) -> tuple[list[Any], list[str] | None]:
    """The columns of a frame or of mappings, by ``names`` where these are known, or of an array."""
    table = find_table(X)
    if table is not None:
        own = table.by_name()
        wanted = list(own) if names is None else list(names)
        if missing := [name for name in wanted if name not in own]:
            raise ValueError(
                f"X lacks the column {missing[0]!r}, which the model has learned from: give "
                "all learned columns"
            )
        return [own[name] for name in wanted], wanted
    if hasattr(X, "tocsr"):
        raise TypeError("X is a sparse matrix: give a column of levels for each side instead")
    if hasattr(X, "__array__"):
        X = np.asarray(X)
    if not isinstance(X, np.ndarray):
        X = list(X)
        if len(X) and isinstance(X[0], Mapping):
            return _read_mappings(X, list(X[0]) if names is None else list(names))
        X = _make_table(X)
    if np.iscomplexobj(X):
        raise ValueError("Complex data not supported: give levels or real numbers")
    if X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}: expected (n, sides), a column of levels for each side. "
            "Reshape your data, as by X.reshape(1, -1) if this is one row"
        )
    if X.shape[1] == 0:
        raise ValueError(
            f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required: give a column "
            "of levels for each side"
        )
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(
            f"X contains NaN or infinity: {X[row, column]} in row {row} of column {column}; give a "
            "level or a number in each place"
        )
    return [X[:, column] for column in range(X.shape[1])], None


def _read_mappings(rows: list[Any], names: list[str]) -> tuple[list[Any], list[str]]:
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(
                f"row {i} of X is a {type(row).__name__}, but earlier rows are mappings: give "
                "mappings or sequences"
            )
        if missing := [name for name in names if name not in row]:
            raise ValueError(
                f"row {i} of X lacks the key {missing[0]!r}: give a value for each side"
            )
    return [_make_table([[row[name]] for row in rows])[:, 0] for name in names], names


def _make_table(rows: list[Any]) -> AnyArray:
    """Rows of plain Python as they are: NumPy would make text of numbers beside text."""
    table = np.array([list(row) for row in rows], dtype=object)
    return table.reshape(len(table), -1) if table.size == 0 else table


def find_numeric_columns(
    numeric: Sequence[Any] | None, names: list[str] | None, n: int
) -> list[int]:
    """The places of the columns that hold numbers, not levels."""
    places = []
    for one in numeric or ():
        if isinstance(one, str) and names is not None and one in names:
            places.append(names.index(one))
        elif isinstance(one, int | np.integer) and 0 <= one < n:
            places.append(int(one))
        else:
            raise ValueError(
                f"numeric names {one!r}, which is not a column of X: name columns of X"
            )
    return places


def read_numbers(column: object, name: str) -> Array:
    """(n,) numbers of a column; refused where they are not finite, or too large to square."""
    numbers = read_floats(column, name)
    bad = ~(np.abs(numbers) <= LARGEST)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{name} is {numbers[row]} in row {row}, which is not finite, or too large to learn: "
            "drop the row, or use larger units"
        )
    return numbers


def read_sides(
    columns: list[Any], labels: list[str], indexes: list[KeyIndex | None], *, new: bool
) -> tuple[Codes, Array]:
    """Levels and numbers of rows, (n, S) each: a column of numbers is one level's feature.

    Levels that are not known get a place if ``new``, or -1.
    """
    codes, values = [], []
    for column, label, index in zip(columns, labels, indexes, strict=True):
        if index is None:
            numbers = read_numbers(column, label)
            codes.append(np.zeros(len(numbers), dtype=np.intp))
            values.append(numbers)
        else:
            keys = read_keys([column], [label])
            codes.append(index.places(keys, new=new)[keys.numbers].astype(np.intp))
            values.append(np.ones(len(keys.numbers)))
    return np.stack(codes, axis=1), np.stack(values, axis=1)


def make_row(x: Any) -> list[Any]:
    """A row as a table of one."""
    return [x] if isinstance(x, Mapping) else [list(x)]
