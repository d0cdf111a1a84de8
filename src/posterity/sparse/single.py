"""One row whose features are all known: read without what many rows need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posterity.factor.usable import LARGEST
from posterity.posteriors._sparse_rows import Entry, Row
from posterity.sparse.index import FeatureIndex


def read_known_row(x: Any, index: FeatureIndex) -> Row | None:
    """The row ``x``, a mapping or a list of tokens, if nothing in it is new or needs words.

    Feature, column and value of each that is active, by feature.
    """
    if index.hashed is not None:
        return None
    found: dict[int, Entry] = {}
    entries = _entries(x)
    if entries is None:
        return None
    for name, label, value in entries:
        column = index.column(name, new=False)
        feature = index.known_feature(column, label)
        if feature < 0 or feature in found:
            return None
        if value != 0.0:
            found[feature] = feature, column, value
    return sorted(found.values())


def _entries(x: Any) -> list[tuple[str, str | None, float]] | None:
    """Column, level and value of each entry, None of what is for the general path."""
    if isinstance(x, Mapping):
        entries: list[tuple[str, str | None, float]] = []
        for key, value in x.items():
            if type(key) is not str:
                return None
            if type(value) is str:
                entries.append((key, value, 1.0))
            elif type(value) not in (float, int, bool) or not abs(value) <= LARGEST:
                return None
            elif "=" in key:
                name, label = key.split("=", 1)
                entries.append((name, label, float(value)))
            else:
                entries.append((key, None, float(value)))
        return entries
    if type(x) in (list, tuple) and all(type(token) is str for token in x):
        return [("", token, 1.0) for token in x]
    return None
