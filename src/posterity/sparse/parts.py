"""Reading rows with few active features into parts: one for each column."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array
from posterity.factor.usable import LARGEST
from posterity.kernel.tables import Table, find_table, kind_of, type_of
from posterity.kernel.values import read_float, read_floats
from posterity.linear.categories import MISSING, Missing
from posterity.linear.keys import Keys, is_missing, list_labels, read_keys
from posterity.linear.levels import find_missing, take_values, to_text

Levels = str | Sequence[str]  # "auto", "all", or names of columns


@dataclass(frozen=True)
class Part:
    """One column: its levels (``keys``) or numbers (``values``), or both, of some rows or all."""

    name: str
    rows: NDArray[np.int64] | None
    keys: Keys | None
    values: Array | None


def read_parts(
    X: Any,
    levels: Levels,
    missing: Missing = "error",
    is_category: Callable[[str], bool | None] = lambda name: None,
) -> tuple[int, list[Part]]:
    """Number of rows, and the columns of a frame, of mappings, of lists of tokens or of labels.

    With ``missing="level"`` missing values of categories are a level; of mappings where the name
    ``is_category``, or where that is not known and it has text, or None, in some row.

    Raises ``ValueError`` or ``TypeError`` that names the row and column of what can't be used.
    """
    table = find_table(X)
    if table is not None:
        return _parse_frame(table, levels, missing)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return len(X), [
            _parse_column(f"x{j}", X[:, j], levels, missing, numeric=X.dtype.kind in "biuf")
            for j in range(X.shape[1])
        ]
    rows = X if isinstance(X, list | tuple) else list(X)
    if rows and isinstance(rows[0], Mapping):
        return len(rows), _parse_mappings(rows, missing, is_category)
    return len(rows), _parse_tokens(rows)


# ---- frames --------------------------------------------------------------------------------------


def _parse_frame(table: Table, levels: Levels, missing: Missing) -> tuple[int, list[Part]]:
    columns = table.by_name()
    asked = [] if isinstance(levels, str) else list(levels)
    if strange := [name for name in asked if name not in columns]:
        raise ValueError(
            f"categorical_features names {strange[0]!r}, which X lacks: name some of "
            f"{', '.join(map(repr, columns))}"
        )
    parts = [
        _parse_column(name, column, levels, missing, numeric=kind_of(type_of(column)) == "numbers")
        for name, column in columns.items()
    ]
    return len(next(iter(columns.values()), ())), parts


def _parse_column(
    name: str, column: object, levels: Levels, missing: Missing, *, numeric: bool
) -> Part:
    if not numeric or levels == "all" or (not isinstance(levels, str) and name in levels):
        return Part(name, None, _read_levels(column, name, missing), None)
    values = read_floats(column, f"column {name!r}")
    return Part(name, None, None, check_values(values, name))


def _read_levels(column: object, name: str, missing: Missing) -> Keys:
    """The levels of rows; where a missing one is a level, all are text."""
    if missing == "error":
        try:
            return read_keys([column], [name])
        except ValueError as error:
            if "is missing" not in str(error):
                raise
            row = int(np.argmax(find_missing(column)))
            raise ValueError(
                f"column {name!r} is missing in row {row}: drop the row, fill the value in, as by "
                f"{MISSING!r}, or give missing='level' to the model"
            ) from error
    gone = find_missing(column)
    keys = read_keys([take_values(column, ~gone) if gone.any() else column], [name])
    labels = [to_text(label) for label in list_labels(keys.labels)]
    if gone.any() and MISSING not in labels:
        labels.append(MISSING)
    numbers = np.full(len(gone), labels.index(MISSING) if gone.any() else 0, dtype=np.int32)
    numbers[~gone] = keys.numbers
    return Keys(numbers, labels, ("text",))


def check_values(values: Array, name: str, rows: NDArray[np.int64] | None = None) -> Array:
    """The values; raises ``ValueError`` for one that is not finite, or too large to square."""
    bad = ~(np.abs(values) <= LARGEST)
    if bad.any():
        place = int(np.argmax(bad))
        row = place if rows is None else int(rows[place])
        where = f" of column {name!r}" if name else ""
        raise ValueError(
            f"X is {values[place]} in row {row}{where}: leave out unknown values (they are then "
            f"not active), or fill it in; beyond {LARGEST:g} use smaller units"
        )
    return values


# ---- mappings and tokens -------------------------------------------------------------------------


class _Collected:
    """Labels or numbers of one column, as they come."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.labels: list[str] = []
        self.values: list[float] = []

    def add(self, row: int, label: str, value: float) -> None:
        self.rows.append(row)
        self.labels.append(label)
        self.values.append(value)

    def part(self, name: str, *, levels: bool) -> Part:
        rows = np.array(self.rows, dtype=np.int64)
        values = check_values(np.array(self.values, dtype=np.float64), name, rows)
        keys = read_keys([self.labels], [name]) if levels else None
        return Part(name, rows, keys, values)


def _parse_mappings(
    rows: Sequence[Mapping[Any, Any]], missing: Missing, is_category: Callable[[str], bool | None]
) -> list[Part]:
    """Text is a level of its key; a number is its key's, or of "key=level" that level's."""
    collected: dict[tuple[str, bool], _Collected] = {}
    texts = _find_texts(rows) if missing == "level" else set()
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(
                f"row {i} is a {type(row).__name__}, but earlier rows are mappings: give a mapping"
            )
        for key, value in row.items():
            name, label = str(key), None
            if missing == "level" and is_missing(value):
                known = is_category(name)
                value = MISSING if known or (known is None and name in texts) else value
            if isinstance(value, str):
                label, value = value, 1.0
            elif not isinstance(value, numbers.Real):
                _refuse(value, i, name)
            elif "=" in name:
                name, label = name.split("=", 1)
            place = name, label is not None
            if place not in collected:
                collected[place] = _Collected()
            collected[place].add(i, label or "", _read_number(value, i, name))
    return [found.part(name, levels=levels) for (name, levels), found in collected.items()]


def _find_texts(rows: Sequence[Mapping[Any, Any]]) -> set[str]:
    """Names that have text, or nothing but what is missing without being a number."""
    return {
        str(key)
        for row in rows
        if isinstance(row, Mapping)
        for key, value in row.items()
        if value is None or isinstance(value, str)
    }


def _read_number(value: object, row: int, name: str) -> float:
    try:
        return read_float(value)
    except ValueError as error:
        raise ValueError(f"{name!r} can't be used in row {row}: {error}") from None


def _refuse(value: object, row: int, name: str) -> None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise ValueError(
            f"{name!r} is {value} in row {row}: leave the key out if its value is unknown, or give "
            "missing='level' to the model"
        )
    raise TypeError(
        f"{name!r} is a {type(value).__name__} in row {row}: give a number, or text for a level"
    )


def _parse_tokens(rows: Sequence[Any]) -> list[Part]:
    collected = _Collected()
    for i, row in enumerate(rows):
        if isinstance(row, str) or not isinstance(row, list | tuple | set | frozenset | np.ndarray):
            raise TypeError(
                f"row {i} is a {type(row).__name__}: give a list of tokens for each row, as in "
                "text.split(), a mapping of names to values, a data frame or a sparse matrix"
            )
        for token in row:
            if not isinstance(token, str):
                raise TypeError(
                    f"row {i} has a {type(token).__name__} among its tokens: tokens must be "
                    "text; give rows of numbers as an array or a sparse matrix"
                )
            collected.add(i, token, 1.0)
    return [collected.part("", levels=True)] if collected.rows else []
