"""The levels of a column of pandas, Polars, Arrow or NumPy: those there are, and each row's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from posterity.aliases import Indices, Mask
from posterity.kernel.tables import kind_of, type_of
from posterity.linear.categories import MISSING, Missing, sort_levels
from posterity.linear.keys import is_missing, list_labels, read_keys


class Words(NamedTuple):
    """The words of n rows: ``places`` (n,) among all ``words``, which are levels in order."""

    places: Indices
    words: list[str]

    def present(self) -> list[str]:
        """The words that a row has, in order."""
        return [self.words[place] for place in np.unique(self.places)]


def is_category(column: Any) -> bool:
    """Return True if a column of a frame holds text, or is one of categories by its type."""
    kind = kind_of(type_of(column))
    if kind in ("text", "other") and hasattr(column, "iloc"):  # pandas has text among objects
        return any(isinstance(value, str) for value in column)
    return kind in ("text", "categories")


def read_words(column: object, name: str, missing: Missing) -> Words:
    """The words of a column: as its type lists them, or else those that it has, sorted.

    Raises
    ------
    ValueError
        If a value is missing, and that is no level, or values are of different types.
    """
    listed = read_listed(column)
    codes, labels = _read_values(column, name) if listed is None else listed
    gone = codes < 0
    if gone.any() and missing != "level":
        raise ValueError(
            f"column {name!r} is missing in row {int(np.argmax(gone))}: drop the row, fill the "
            f"value in, as by {MISSING!r}, or give missing='level' to the model"
        )
    words = [to_text(label) for label in labels]
    if len(set(words)) < len(words):
        raise ValueError(
            f"column {name!r} has levels of different types that read the same: convert them to "
            "text, or to numbers"
        )
    levels = words if listed is not None else sort_levels(words)
    if gone.any() and MISSING not in levels:
        levels = [*levels, MISSING]
    numbers = {level: number for number, level in enumerate(levels)}
    # The last is of what is missing.
    places = np.array([*map(numbers.__getitem__, words), numbers.get(MISSING, -1)], dtype=np.intp)
    return Words(places[codes], levels)


def to_text(label: object) -> str:
    """The name of a level; that of a whole number is the same in whatever type it comes.

    Examples
    --------
    >>> to_text(3.0), to_text(np.int64(3)), to_text("a")
    ('3', '3', 'a')
    """
    value = label.item() if isinstance(label, np.generic) else label
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def read_listed(column: Any) -> tuple[Indices, list[Any]] | None:
    """Places, -1 of what is missing, among the categories that the column's type has; if any."""
    kind = type_of(column)
    if hasattr(column, "cat") and hasattr(kind, "categories") and hasattr(column, "iloc"):
        return column.cat.codes.to_numpy().astype(np.intp), kind.categories.tolist()
    if str(kind).startswith("dictionary"):
        column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes.astype(np.intp), column.dictionary.to_pylist()
    if str(kind).startswith("Enum"):
        codes = column.to_physical().cast(int).fill_null(-1).to_numpy()
        return codes.astype(np.intp), kind.categories.to_list()
    return None


def _read_values(column: object, name: str) -> tuple[Indices, list[Any]]:
    """Places, -1 of what is missing, among the values that there are."""
    gone = find_missing(column)
    there = column if not gone.any() else take_values(column, ~gone)
    keys = read_keys([there], [f"column {name!r}"])
    if keys.kinds not in (("text",), ("numbers",)) and len(keys.labels):
        values = take_values(column, ~gone)
        row = next((i for i, value in enumerate(values) if not isinstance(value, str)), 0)
        raise ValueError(
            f"column {name!r} has values of different types, as {values[row]!r} beside "
            f"{values[0 if row else -1]!r}: convert them to text, or to numbers"
        )
    codes = np.full(len(gone), -1, dtype=np.intp)
    codes[~gone] = keys.numbers
    return codes, list_labels(keys.labels)


def find_missing(column: Any) -> Mask:
    """(n,) where a value of a column is missing."""
    for method in ("isna", "is_null"):
        if hasattr(column, method):
            return np.asarray(getattr(column, method)(), dtype=bool)
    if column.dtype.kind not in "Of":
        return np.zeros(len(column), dtype=bool)
    return np.array([is_missing(value) for value in column.tolist()], dtype=bool)


def take_values(column: object, some: Mask) -> list[Any]:
    """Values of Python's own types at ``some`` (n,) rows."""
    names = ("to_pylist", "to_list", "tolist")
    method = next(getattr(column, name) for name in names if hasattr(column, name))
    return [value for value, there in zip(method(), some, strict=True) if there]
