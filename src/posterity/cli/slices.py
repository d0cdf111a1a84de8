"""Slices of a table's columns: numbers by their quarters, categories by their levels."""

from __future__ import annotations

from collections.abc import Sequence

from posterity.evaluation import SlicedLevels, SlicedNumbers
from posterity.io import TableError, TableStream

QUARTERS = 4


def read_slices(
    table: TableStream, columns: Sequence[str]
) -> dict[str, SlicedNumbers | SlicedLevels]:
    """Return slices for `progressive_validation`, by the names of the columns.

    Raises
    ------
    TableError
        If a column is no feature of the table.
    """
    return {column: _slices(table, column) for column in columns}


def _slices(table: TableStream, column: str) -> SlicedNumbers | SlicedLevels:
    place = {name: k for k, name in enumerate(table.feature_names)}
    if column in place:
        return SlicedNumbers(place[column], QUARTERS)
    levels = table.levels.get(column)
    if levels is None:
        known = [name for name in place if "=" not in name] + list(table.levels)
        raise TableError(
            f"--slice {column!r} is not a feature: slice by {', '.join(known) or 'nothing here'}"
        )
    # Zeros everywhere: of a level that came later.
    places = tuple(place[f"{column}={level}"] for level in levels)
    return SlicedLevels(places, ("another", *levels))
