"""Which columns are used, and how each becomes numbers."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from posterity.io.errors import TableError

FloatArray = NDArray[np.float64]
MOST_LEVELS = 256
_FEW_LEVELS = 20


class Encoder(Protocol):
    """Turns one Arrow column into numbers; NaN where a value is missing."""

    @property
    def column(self) -> str:
        """Name of the file's column."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features it makes; there may be none."""
        ...

    def fill(self, values: Any, out: FloatArray) -> None:
        """Write an Arrow array (n,) into out (n, len(names))."""
        ...


@dataclass(frozen=True)
class Numbers:
    """A numeric or boolean column, as it is."""

    column: str

    @property
    def names(self) -> tuple[str, ...]:
        """The column's own name."""
        return (self.column,)

    def fill(self, values: Any, out: FloatArray) -> None:
        """Copy the numbers."""
        out[:, 0] = as_floats(values)


@dataclass(frozen=True)
class Categories:
    """A column of categories, one feature of zeros and ones for each level that is kept.

    A value that is none of the levels gets zeros everywhere (as the dropped first level does), and
    is counted in `unseen`.
    """

    column: str
    levels: tuple[str, ...]
    drop_first: bool
    unseen: Counter[str] = field(default_factory=Counter, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """``column=level`` for each level that is kept."""
        return tuple(f"{self.column}={level}" for level in self.levels[self.drop_first :])

    def fill(self, values: Any, out: FloatArray) -> None:
        """Write zeros and ones, and count what is none of the levels."""
        codes, levels = _codes(values)
        index = {level: i for i, level in enumerate(self.levels)}
        # One step more than there are levels: unknown; and the last: missing.
        unknown, missing = len(self.levels), len(self.levels) + 1
        place = np.array([index.get(level, unknown) for level in levels] + [missing])
        found = place[codes]
        rows = np.zeros((missing + 1, missing - 1))
        np.fill_diagonal(rows, 1.0)
        rows[missing] = np.nan
        out[:] = rows[:, self.drop_first :][found]
        if unknown in place:
            counts = np.bincount(codes, minlength=len(levels) + 1)
            for code in np.flatnonzero((place == unknown) & (counts > 0)):
                self.unseen[levels[code]] += int(counts[code])


def as_floats(values: Any) -> FloatArray:
    """An Arrow array of numbers or booleans as float64, without a copy where there can be none."""
    import pyarrow as pa

    if values.type != pa.float64():
        values = values.cast(pa.float64(), safe=False)
    return np.asarray(values.to_numpy(zero_copy_only=False))


def chosen_columns(
    schema: Any, target: str, features: Sequence[str] | None, drop: Sequence[str]
) -> list[str]:
    """Names of the feature columns, in the order asked for, or the file's.

    Raises
    ------
    TableError
        Names twice in the file, names that are not in it (with the nearest that are), a target
        among the features, or no feature left.
    """
    present = list(schema.names)
    twice = [name for name, count in Counter(present).items() if count > 1]
    if twice:
        raise TableError(f"the file has more than one column named {_list(twice)}: rename them")
    _require([target], present, "target")
    _require(features or [], present, "feature")
    _require(drop, present, "column to drop")
    if target in (features or []):
        raise TableError(f"the target {target!r} is among the features: leave it out of one")
    chosen = [
        name
        for name in (present if features is None else dict.fromkeys(features))
        if name != target and name not in drop
    ]
    if not chosen:
        raise TableError(f"no feature columns are left beside the target {target!r}")
    return chosen


def check_target(schema: Any, target: str) -> None:
    """Refuse a target that is not numbers."""
    import pyarrow as pa

    kind = schema.field(target).type
    if not _is_number(pa, kind):
        raise TableError(
            f"the target {target!r} holds {_described(pa, kind)}; it must hold numbers"
        )


def make_encoders(
    schema: Any, columns: Sequence[str], first: Any, drop_first: bool
) -> tuple[Encoder, ...]:
    """An encoder for each column: by its type, and for categories by the levels in `first`.

    `first` is the first record batch. Nothing later is looked at: the stream is read once.
    """
    import pyarrow as pa

    encoders: list[Encoder] = []
    for name in columns:
        kind = schema.field(name).type
        if _is_number(pa, kind):
            encoders.append(Numbers(name))
        elif _is_text(pa, kind):
            encoders.append(Categories(name, _levels(name, first.column(name)), drop_first))
        else:
            raise TableError(
                f"column {name!r} holds {_described(pa, kind)}, which have no one meaning as "
                f"numbers: leave it out (--drop {name}), or turn it into numbers first"
                + (", say days since a start, or month" if pa.types.is_temporal(kind) else "")
            )
    if not any(encoder.names for encoder in encoders):
        raise TableError(
            f"no feature is left: {_list(columns)} held only one level in the first batch"
        )
    return tuple(encoders)


def _levels(name: str, values: Any) -> tuple[str, ...]:
    codes, words = _codes(values)
    counts = np.bincount(codes, minlength=len(words) + 1)
    levels = sorted(word for word, count in zip(words, counts, strict=False) if count)
    numbers = sum(map(_reads_as_number, levels))
    if numbers * 2 > len(levels) > numbers:
        odd = next(level for level in levels if not _reads_as_number(level))
        raise TableError(
            f"column {name!r} is mostly numbers but also holds {odd!r}: mend it (missing is an "
            f"empty field or NA), or leave it out (--drop {name})"
        )
    all_different = len(levels) > _FEW_LEVELS and 2 * len(levels) > len(values)
    if all_different or len(levels) > MOST_LEVELS:
        raise TableError(
            f"column {name!r} has {len(levels):,} different values in the first {len(values):,} "
            f"rows, too many for categories: leave it out (--drop {name}), or turn it into numbers"
        )
    return tuple(levels)


def _codes(values: Any) -> tuple[NDArray[np.intp], list[str]]:
    """Place of each value among the words of its dictionary; missing is one past the last."""
    import pyarrow as pa

    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    words = values.dictionary.to_pylist()
    codes = values.indices.fill_null(len(words)) if values.null_count else values.indices
    place: NDArray[np.intp] = np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.intp)
    if None in words:
        nulls = [i for i, word in enumerate(words) if word is None]
        place = np.where(np.isin(place, nulls), len(words), place)
    return place, [str(word) for word in words]


def _require(names: Sequence[str], present: list[str], role: str) -> None:
    for name in names:
        if name in present:
            continue
        folded = {other.casefold().strip(): other for other in present}
        near = difflib.get_close_matches(name.casefold().strip(), folded, n=3)
        hint = (
            f"did you mean {_list([folded[n] for n in near], 'or')}?"
            if near
            else f"its columns are {_list(present[:20])}{', ...' if len(present) > 20 else ''}"
        )
        if all(map(_reads_as_number, present)):
            hint += " (the first line must hold the column names)"
        raise TableError(f"{role} {name!r} is not a column of the file; {hint}")


def _is_number(pa: Any, kind: Any) -> bool:
    checks: list[Callable[[Any], bool]] = [
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
    ]
    # A column of nulls has no type yet: all of it is missing.
    return any(check(kind) for check in checks) or bool(pa.types.is_null(kind))


def _is_text(pa: Any, kind: Any) -> bool:
    # What a file calls a dictionary is a category, whatever its words are.
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_dictionary(kind)
    )


def _described(pa: Any, kind: Any) -> str:
    if pa.types.is_duration(kind):
        return f"durations ({kind})"
    if pa.types.is_temporal(kind):
        return f"dates or times ({kind})"
    if pa.types.is_binary(kind):
        return "bytes that are not UTF-8 text"
    return "text" if _is_text(pa, kind) else f"values of type {kind}"


def _reads_as_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _list(names: Sequence[str], last: str = "and") -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
