"""Exogenous columns of text: each level is a column of zeros and ones, as in "promotion=big"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from posterity.aliases import AnyArray, Array
from posterity.forecasting.names import sort_names

# Text with more levels, of which most rows have one of their own, is no category.
FEW_LEVELS = 20


def name_levels(values: AnyArray, name: Any, known: Sequence[Any]) -> tuple[Any, ...]:
    """Names of the columns that an exogenous column is: its own, or those of its levels.

    ``known`` are the columns that were learned before, if there are any.
    """
    # A value that is no text among texts, as a missing one, is refused where levels are marked.
    texts = [value for value in values.tolist() if isinstance(value, str)]
    levels = set(texts) if 2 * len(texts) > len(values) else set()
    if not levels or (len(levels) > FEW_LEVELS and 2 * len(levels) > len(values)):
        return (name,)
    return sort_names({*_select_levels(known, name), *(f"{name}={level}" for level in levels)})


def find_level(name: Any, columns: Sequence[Any]) -> tuple[Any, str] | None:
    """The column and the level that a name means; None where it is that of a column."""
    if name in columns or not isinstance(name, str):
        return None
    stems = (name[:place] for place, mark in enumerate(name) if mark == "=")
    stem = next((stem for stem in stems if stem in columns), None)
    return None if stem is None else (stem, name[len(stem) + 1 :])


def mark_level(values: AnyArray, level: str, column: str) -> Array:
    """Ones (n,) where a column has this level, else zeros.

    Raises
    ------
    ValueError
        Where a value is missing, or no text, naming the row.
    """
    for row, value in enumerate(values.tolist()):
        if not isinstance(value, str):
            raise ValueError(
                f"exogenous column {column!r} is {value!r} at row {row} (from 0), which is no "
                "text, and so none of its levels: correct it"
            )
    return (values == level).astype(np.float64)


def expand_row(x: Mapping[Any, Any], names: Sequence[Any]) -> dict[Any, Any]:
    """One row with a number for each level of what is text: those of ``names``, and a new one."""
    row: dict[Any, Any] = {}
    for name, value in x.items():
        levels = _select_levels(names, name)
        if levels and isinstance(value, str):
            row |= {one: float(one == f"{name}={value}") for one in (*levels, f"{name}={value}")}
        else:
            row[name] = value
    return row


# ---- inner ---------------------------------------------------------------------------------------


def _select_levels(names: Sequence[Any], column: Any) -> tuple[Any, ...]:
    """Names of the levels of a column."""
    return tuple(one for one in names if str(one).startswith(f"{column}="))
