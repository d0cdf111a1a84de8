"""Columns of a frame that would turn into numbers by accident: dates, and categories of numbers."""

from __future__ import annotations

from typing import Any

from posterity.kernel.tables import find_table, kind_of

_REMEDIES = {
    "dates": "take numbers from it first (in pandas column.dt.hour, column.dt.weekday and "
    "(column - column.min()).dt.days), or read the table by posterity.io.learn_stream(..., "
    'dates="calendar")',
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
it first (in pandas column.dt.hour, column.dt.weekday and (column - column.min()).dt.days), or \
read the table by posterity.io.learn_stream(..., dates="calendar")
    """
    table = find_table(X)
    types = [getattr(X, "dtype", None)] if table is None else table.types
    for place, type_ in enumerate(types):
        kind = kind_of(type_)
        if kind in _REMEDIES:
            held = "dates or times" if kind == "dates" else kind
            where = "X" if table is None else f"column {str(table.names[place])!r} of X"
            raise TypeError(
                f"{where} contains {held} ({type_}), which are not numbers: {_REMEDIES[kind]}"
            )
