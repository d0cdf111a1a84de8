"""Columns of a frame that would turn into numbers by accident: dates, and categories of numbers."""

from __future__ import annotations

from typing import Any

from posterity.linear.frames import list_columns, type_of

_DATES = ("datetime", "date", "time", "duration", "period")
_CATEGORIES = ("categor", "enum", "dictionary")
_REMEDIES = {
    "dates or times": "take numbers from it first (hour, weekday, days since a day), or read the "
    'table by posterity.io.learn_stream(..., dates="calendar")',
    "categories": "learn it from the start, by a model with categorical_features='auto', or encode "
    "it, for example with sklearn.preprocessing.OneHotEncoder(sparse_output=False)",
}


def refuse_accidents(X: Any) -> None:
    """Raise ``TypeError`` for a column of dates (which would be nanoseconds) or categories.

    Examples
    --------
    >>> import numpy as np
    >>> refuse_accidents(np.array([["2024-02-29"]], dtype="datetime64[D]"))
    Traceback (most recent call last):
    ...
    TypeError: X contains dates or times (datetime64[D]), which are not numbers: take numbers from \
it first (hour, weekday, days since a day), or read the table by \
posterity.io.learn_stream(..., dates="calendar")
    """
    for name, kind in _list_types(X):
        lowered = str(kind).lower()
        dated = lowered.startswith(_DATES)
        if dated or lowered.startswith(_CATEGORIES):
            held = "dates or times" if dated else "categories"
            where = "X" if name is None else f"column {str(name)!r} of X"
            raise TypeError(
                f"{where} contains {held} ({kind}), which are not numbers: {_REMEDIES[held]}"
            )


def _list_types(X: Any) -> list[tuple[Any, Any]]:
    """Names and types of the columns of a frame or Arrow table; an array has one type."""
    if hasattr(X, "dtypes") and hasattr(X, "columns"):  # without a copy of each column
        return list(zip(X.columns, X.dtypes, strict=True))
    columns = list_columns(X)
    if columns is not None:
        return [(name, type_of(column)) for name, column in columns]
    return [(None, X.dtype)] if hasattr(X, "dtype") else []
