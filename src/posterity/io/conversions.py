"""Conversion of Arrow arrays to NumPy arrays of numbers, or of codes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from posterity.aliases import Array, Indices
from posterity.io.arrow import pa

# The level of what is missing, where that is a level.
MISSING = "missing"
NUMBER_WITH_UNIT = re.compile(r"[-+]?[$€£¥] ?[-+]?\d[\d.,]*|[-+]?\d[\d.,]* ?[%$€£¥]")


def is_number(kind: pa.DataType) -> bool:
    """Return True for an Arrow type of numbers or booleans."""
    checks: list[Callable[[pa.DataType], bool]] = [
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
    ]
    # A column of nulls has no type yet: all of it is missing.
    return any(check(kind) for check in checks) or bool(pa.types.is_null(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return True for an Arrow type of text; a dictionary is a category, whatever its words are."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_dictionary(kind)
    )


def as_days(values: pa.Array) -> Array:
    """An Arrow array of dates, times or durations as days, with fractions."""
    kind = values.type
    if pa.types.is_date(kind):
        return as_floats(values.cast(pa.date32()).cast(pa.int32()))
    if pa.types.is_time(kind):
        values = values.cast(pa.time64("ns"))
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[values.type.unit]
    return as_floats(values.cast(pa.int64())) / (86400.0 * per_second)


def as_floats(values: pa.Array) -> Array:
    """An Arrow array of numbers or booleans as float64, without a copy where there can be none."""
    if values.type != pa.float64():
        values = values.cast(pa.float64(), safe=False)
    return np.asarray(values.to_numpy(zero_copy_only=False))


def as_numbers(values: pa.Array) -> Array:
    """An Arrow array as numbers: of dates, times and durations days."""
    return as_days(values) if pa.types.is_temporal(values.type) else as_floats(values)


def get_codes(values: pa.Array) -> tuple[Indices, list[Any]]:
    """Place of each value among the words of its dictionary; missing is one past the last."""
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    words = values.dictionary.to_pylist()
    codes = values.indices.fill_null(len(words)) if values.null_count else values.indices
    place: Indices = np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.intp)
    nulls = [i for i, word in enumerate(words) if word is None or word != word]
    if nulls:
        place = np.where(np.isin(place, nulls), len(words), place)
    return place, words


def encode_text(values: pa.Array) -> tuple[Indices, list[str]]:
    """The same, with words as text; of whole numbers, too, in whatever type they come."""
    place, words = get_codes(values)
    return place, [_convert_to_text(word) for word in words]


def _convert_to_text(word: Any) -> str:
    whole = isinstance(word, float) and word.is_integer()
    return str(int(word)) if whole else str(word)
