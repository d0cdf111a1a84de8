"""Exogenous columns of text: each level is a column of zeros and ones, as in "promotion=big"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.forecasting.panel import sort_names

Array = NDArray[np.float64]
# Text with more levels, of which most rows have one of their own, is no category.
FEW_LEVELS = 20


def name_levels(values: NDArray[Any], name: Any, known: Sequence[Any]) -> tuple[Any, ...]:
    """Names of the columns that an exogenous column is: its own, or those of its levels.

    ``known`` are the columns that were learned before, if there are any.

    Raises
    ------
    ValueError
        If a level is not among those that are known.
    """
    texts = values.dtype.kind in "OUT" and all(isinstance(value, str) for value in values)
    levels = sort_names(set(values.tolist())) if texts and len(values) else ()
    if not levels or (len(levels) > FEW_LEVELS and 2 * len(levels) > len(values)):
        return (name,)
    coded = tuple(f"{name}={level}" for level in levels)
    before = tuple(one for one in known if str(one).startswith(f"{name}="))
    new = next((level for level, one in zip(levels, coded, strict=True) if one not in before), None)
    if known and new is not None:
        raise ValueError(
            f"exogenous column {name!r} has the level {new!r}, which was not learned: fit the "
            f"forecaster again, with all rows; it has learned {list(known)}"
        )
    return before or coded


def find_level(name: Any, columns: Sequence[Any]) -> tuple[Any, str] | None:
    """The column and the level that a name means; None where it is that of a column."""
    if name in columns or not isinstance(name, str):
        return None
    stems = (name[:place] for place, mark in enumerate(name) if mark == "=")
    stem = next((stem for stem in stems if stem in columns), None)
    return None if stem is None else (stem, name[len(stem) + 1 :])


def mark_level(values: NDArray[Any], level: str, column: str, known: Sequence[Any]) -> Array:
    """Ones (n,) where a column has this level, else zeros.

    Raises
    ------
    ValueError
        Where a value is missing or a level that was not learned, naming the row.
    """
    levels = [str(one).partition("=")[2] for one in known if str(one).startswith(f"{column}=")]
    strange = np.array([value not in levels for value in values.tolist()], dtype=bool)
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"exogenous column {column!r} is {values[row]!r} at row {row} (from 0), which is none "
            f"of its levels: give one of {', '.join(map(repr, levels))}"
        )
    return (values == level).astype(np.float64)


def expand_row(x: Mapping[Any, Any], names: Sequence[Any]) -> dict[Any, Any]:
    """One row with a number for each level of what is text.

    Raises
    ------
    ValueError
        For a level that was not learned.
    """
    row: dict[Any, Any] = {}
    for name, value in x.items():
        levels = [str(one) for one in names if str(one).startswith(f"{name}=")]
        if not (levels and isinstance(value, str)):
            row[name] = value
            continue
        if f"{name}={value}" not in levels:
            listed = ", ".join(repr(one.partition("=")[2]) for one in levels)
            raise ValueError(f"{name!r} is {value!r}, which is none of its levels: give {listed}")
        row |= {one: float(one == f"{name}={value}") for one in levels}
    return row


__all__ = ["expand_row", "find_level", "mark_level", "name_levels"]
