"""Columns without a name: empty ones, which spreadsheets write, and the index of a data frame."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from posterity.io.arrow import pa

_INDEX = re.compile(r"__index_level_\d+__")


def name_columns(names: Sequence[str]) -> list[str]:
    """Names, with "column 3" for the third where it has none.

    Examples
    --------
    >>> name_columns(["", "y"])
    ['column 1', 'y']
    """
    return [name if name.strip() else f"column {n}" for n, name in enumerate(names, start=1)]


def set_columns_aside(first: pa.RecordBatch, names: Sequence[str]) -> dict[str, str]:
    """Columns of the first batch that are no features unless asked for, with what they hold."""
    found = {}
    for given, name, values in zip(first.schema.names, names, first.columns, strict=True):
        if not given.strip():
            what = _describe_content(values)
            if what:
                found[name] = what
    return found


def set_index_aside(names: Sequence[str]) -> dict[str, str]:
    """The same for columns to which pandas wrote the index of a data frame."""
    return {name: "holds the index of a data frame" for name in names if _INDEX.fullmatch(name)}


def _describe_content(values: pa.Array) -> str:
    if values.null_count == len(values):
        return "has no name and no values"
    if not pa.types.is_integer(values.type) or values.null_count:
        return ""
    numbers = np.asarray(values)
    counts = len(np.unique(numbers)) == len(numbers) or np.mean(np.diff(numbers) == 1) > 0.5
    return "has no name and numbers the rows" if counts else ""
