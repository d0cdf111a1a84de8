"""Columns of data frames, of whatever library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from posterity.aliases import AnyArray, Array
from posterity.forecasting.levels import find_level, mark_level, name_levels
from posterity.forecasting.panel import convert_to_values

# What to do with a column of text.
CATEGORY_ADVICE = (
    "leave the column out, or give a column of 0 and 1 for each of its values, as "
    "pandas.get_dummies does"
)


def columns_of(data: Any) -> list[Any] | None:
    """Names of the columns of a data frame (pandas, Polars, Arrow), None of anything else.

    They are as they are in the frame: text, whole numbers, or tuples where there are two levels.
    """
    names = getattr(data, "column_names", None)  # Arrow
    if names is None and not isinstance(data, Mapping):
        names = getattr(data, "columns", None)
    return None if names is None else list(names)


def get_column(frame: Any, name: Any) -> Any:
    """A column as it is, but for those of pandas that only an index can say all of."""
    column = frame[name]
    # Those of pandas with a zone, and periods, as an index has them.
    own = column.dtype if hasattr(column, "dtype") else None
    special = getattr(own, "tz", None) is not None or getattr(own, "freq", None) is not None
    return import_module("pandas").Index(column) if special else column


def read_column(frame: Any, name: Any) -> AnyArray:
    """A column (n,)."""
    return np.asarray(frame[name])


def name_exogenous(frame: Any, names: Sequence[Any], known: Sequence[Any]) -> tuple[Any, ...]:
    """Names of the exogenous columns; of one of text, those of its levels."""
    each = (name_levels(read_column(frame, name), name, known) for name in names)
    return tuple(one for some in each for one in some)


def read_exogenous(frame: Any, name: Any, where: str = "") -> Array:
    """An exogenous column (n,), or that of a level.

    Raises
    ------
    ValueError
        If a value is missing, infinite or no number, naming the row.
    """
    coded = find_level(name, columns_of(frame) or ())
    if coded is not None:
        return mark_level(read_column(frame, coded[0]), coded[1], coded[0])
    column = f"exogenous column {name!r}{where}"
    values = convert_to_values(read_column(frame, name), column, CATEGORY_ADVICE)
    missing = np.flatnonzero(np.isnan(values))
    if len(missing):
        raise ValueError(f"{column} is missing at row {missing[0]} (from 0): only y may be")
    return values
