"""Which columns are used, and how each becomes numbers."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from posterity.io.conversions import as_days, as_floats, text_codes
from posterity.io.errors import TableError

FloatArray = NDArray[np.float64]
Dates = Literal["error", "days"]
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
        codes, levels = text_codes(values)
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


@dataclass(frozen=True)
class Days:
    """A column of dates, times or durations, in days: since 1970 (UTC), since midnight, or long."""

    column: str

    @property
    def names(self) -> tuple[str, ...]:
        """The column's own name."""
        return (self.column,)

    def fill(self, values: Any, out: FloatArray) -> None:
        """Write days and their fractions."""
        out[:, 0] = as_days(values)


@dataclass(frozen=True)
class Placed:
    """An encoder, with the places of its features among those of a row."""

    encoder: Encoder
    places: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its features."""
        return self.encoder.names

    def fill(self, values: Any, out: FloatArray) -> None:
        """Write into those of the columns of the rows ``out`` (n, m) that are its own."""
        if not self.places:
            return
        first, last = self.places[0], self.places[-1]
        if self.places == tuple(range(first, last + 1)):
            self.encoder.fill(values, out[:, first : last + 1])
            return
        block = np.empty((len(values), len(self.places)))
        self.encoder.fill(values, block)
        out[:, self.places] = block

    def grown(self, values: Any, n_features: int) -> Placed:
        """With a feature at the end for each level in ``values`` that has not come so far."""
        if not isinstance(self.encoder, Categories):
            return self
        codes, words = text_codes(values)
        counts = np.bincount(codes, minlength=len(words) + 1)
        there = {word for word, count in zip(words, counts, strict=False) if count}
        new = sorted(there.difference(self.encoder.levels))
        if not new:
            return self
        places = (*self.places, *range(n_features, n_features + len(new)))
        return Placed(replace(self.encoder, levels=(*self.encoder.levels, *new)), places)


def placed(encoders: Sequence[Encoder]) -> tuple[Placed, ...]:
    """Encoders whose features stand side by side."""
    made, first = [], 0
    for encoder in encoders:
        last = first + len(encoder.names)
        made.append(Placed(encoder, tuple(range(first, last))))
        first = last
    return tuple(made)


def chosen_columns(
    schema: Any,
    target: str,
    features: Sequence[str] | None,
    drop: Sequence[str],
    beside: Collection[str] = (),
) -> list[str]:
    """Names of the feature columns, in the order asked for, or the file's.

    Those ``beside`` the features, of weights and times, are among them only where asked for.

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
    require([target], present, "target")
    require(features or [], present, "feature")
    require(drop, present, "column to drop")
    if target in (features or []):
        raise TableError(f"the target {target!r} is among the features: leave it out of one")
    chosen = [
        name
        for name in (
            [name for name in present if name not in beside]
            if features is None
            else dict.fromkeys(features)
        )
        if name != target and name not in drop
    ]
    if not chosen:
        raise TableError(f"no feature columns are left beside the target {target!r}")
    return chosen


def check_numbers(schema: Any, column: str, role: str) -> None:
    """Refuse a target, or whatever the role of the column is, that is not numbers."""
    import pyarrow as pa

    kind = schema.field(column).type
    if not _is_number(pa, kind):
        raise TableError(
            f"the {role} {column!r} holds {_described(pa, kind)}; it must hold numbers"
        )


def make_encoders(
    schema: Any,
    columns: Sequence[str],
    first: Any,
    drop_first: bool,
    dates: Dates = "error",
    levels: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Encoder, ...]:
    """An encoder for each column: by its type, and for categories by the levels in `first`.

    `first` is the first record batch. Nothing later is looked at: the stream is read once. Where
    `levels` names a column, its levels are those.
    """
    import pyarrow as pa

    encoders: list[Encoder] = []
    for name in columns:
        kind = schema.field(name).type
        if _is_number(pa, kind):
            encoders.append(Numbers(name))
        elif _is_text(pa, kind):
            given = (levels or {}).get(name)
            found = _levels(name, first.column(name)) if given is None else tuple(map(str, given))
            encoders.append(Categories(name, found, drop_first))
        elif dates == "days" and pa.types.is_temporal(kind):
            encoders.append(Days(name))
        else:
            raise TableError(
                f"column {name!r} holds {_described(pa, kind)}, which have no one meaning as "
                f"numbers: leave it out (drop=[{name!r}]), "
                + ('count days (dates="days"), ' if pa.types.is_temporal(kind) else "")
                + "or turn it into numbers first"
                + (", say the month" if pa.types.is_temporal(kind) else "")
            )
    if not any(encoder.names for encoder in encoders):
        raise TableError(
            f"no feature is left: {_list(columns)} held only one level in the first batch"
        )
    return tuple(encoders)


def encoders_for(schema: Any, names: Sequence[str]) -> tuple[Placed, ...]:
    """Encoders that make the features of a model, by their names: "size", or "zone=b" of "zone".

    Raises
    ------
    TableError
        Where no column makes a feature, or one of another type than it was learned from.
    """
    import pyarrow as pa

    present = set(schema.names)
    levels: dict[str, list[tuple[int, str]]] = {}
    made: list[Placed] = []
    for place, name in enumerate(names):
        column = _column_of(name, present)
        if column is None:
            require([name], list(schema.names), "feature")
        elif column != name:
            levels.setdefault(column, []).append((place, name[len(column) + 1 :]))
        else:
            kind = schema.field(name).type
            if not (_is_number(pa, kind) or pa.types.is_temporal(kind)):
                raise TableError(
                    f"column {name!r} holds {_described(pa, kind)}, and was numbers when it was "
                    "learned"
                )
            encoder: Encoder = Days(name) if pa.types.is_temporal(kind) else Numbers(name)
            made.append(Placed(encoder, (place,)))
    for column, found in levels.items():
        words = Categories(column, tuple(word for _, word in found), drop_first=False)
        made.append(Placed(words, tuple(place for place, _ in found)))
    return tuple(made)


def _column_of(feature: str, present: Collection[str]) -> str | None:
    """The column that a feature comes from: its name, or what is before an = in it."""
    if feature in present:
        return feature
    stems = [feature[:i] for i, mark in enumerate(feature) if mark == "="]
    return next((stem for stem in stems if stem in present), None)


def _levels(name: str, values: Any) -> tuple[str, ...]:
    codes, words = text_codes(values)
    counts = np.bincount(codes, minlength=len(words) + 1)
    levels = sorted(word for word, count in zip(words, counts, strict=False) if count)
    numbers = sum(map(_reads_as_number, levels))
    if numbers * 2 > len(levels) > numbers:
        odd = next(level for level in levels if not _reads_as_number(level))
        raise TableError(
            f"column {name!r} is mostly numbers but also holds {odd!r}: mend it (missing is an "
            f"empty field or NA), or leave it out (drop=[{name!r}])"
        )
    all_different = len(levels) > _FEW_LEVELS and 2 * len(levels) > len(values)
    if all_different or len(levels) > MOST_LEVELS:
        raise TableError(
            f"column {name!r} has {len(levels):,} different values in the first {len(values):,} "
            f"rows, too many for categories: leave it out (drop=[{name!r}]), or turn it into "
            "numbers"
        )
    return tuple(levels)


def require(names: Sequence[str], present: list[str], role: str) -> None:
    """Refuse names that are not there, with the nearest that are."""
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


def kind_of(type_: Any) -> str:
    """What a column holds, in words: numbers and text are each one kind."""
    import pyarrow as pa

    return "numbers" if _is_number(pa, type_) else _described(pa, type_)


def _reads_as_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _list(names: Sequence[str], last: str = "and") -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
