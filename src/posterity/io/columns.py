"""Choice of the columns used, and their conversion to numbers."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from posterity.io.arrow import pa
from posterity.io.calendar import PARTS, find_calendar_part, find_calendar_parts, is_increasing
from posterity.io.conversions import MISSING, encode_text, is_number, is_text
from posterity.io.encoders import Categories, Encoder, LevelNumbers, Numbers, PlacedEncoder
from posterity.io.errors import Cure, TableError
from posterity.io.lags import find_lag
from posterity.io.source import Source
from posterity.io.text_columns import explain_text, refuse_numbers_and_dates
from posterity.linear.categories import sort_levels

Dates = Literal["error", "days", "calendar"]
MOST_LEVELS = 256
_FEW_LEVELS = 20


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """Rules that turn columns into features; fields as the parameters of :func:`open_table`.

    With ``holes`` a missing value of a category is a level of its own. `categories` are columns of
    numbers that are categories all the same. With ``whole`` a category is one feature, the number
    of its level, as for models that take categories themselves.
    """

    drop_first: bool = True
    dates: Dates = "error"
    levels: Mapping[str, Sequence[str]] | None = None
    categories: Collection[str] = ()
    holes: bool = False
    whole: bool = False
    lags: tuple[int, ...] = ()

    def encode_levels(self, column: str, levels: Sequence[str], part: str = "") -> Encoder:
        """An encoder of a category, or of a `part` of a column of dates."""
        if self.whole:
            return LevelNumbers(column, tuple(levels), part, grows=True, holes=self.holes)
        return Categories(column, tuple(levels), part, drop_first=self.drop_first)


def select_columns(
    source: Source,
    targets: Sequence[str],
    features: Sequence[str] | None,
    drop: Sequence[str],
    not_features: Collection[str] = (),
    lags: Collection[int] = (),
) -> list[str]:
    """Names of the feature columns, in the order asked for, or the file's.

    Columns ``not_features``, of weights and times, and those that the source sets aside, are among
    them only where asked for. There may be none only with ``lags``.

    Raises
    ------
    TableError
        Names twice in the file, names that are not in it (with the nearest that are), a target
        among the features, or no feature left.
    """
    present = list(source.schema.names)
    twice = [name for name, count in Counter(present).items() if count > 1]
    if twice:
        raise TableError(f"the file has more than one column named {_list(twice)}: rename them")
    require(targets, present, "target")
    require(features or [], present, "feature")
    require(drop, present, "column to drop")
    for target in targets:
        if target in (features or []):
            raise TableError(
                f"the target {target!r} is also a feature: leave it out of the features"
            )
    chosen = [
        name
        for name in (
            [name for name in present if name not in {*not_features, *source.set_aside}]
            if features is None
            else dict.fromkeys(features)
        )
        if name not in targets and name not in drop
    ]
    if not chosen and not lags:
        raise TableError(
            f"no feature columns are left besides the target {_list(targets)}: give a table with "
            "more columns"
        )
    return chosen


def check_numbers(source: Source, column: str, role: str) -> None:
    """Refuse a target, or whatever the role of the column is, that is not numbers."""
    kind = source.schema.field(column).type
    if is_number(kind):
        return
    subject = f"column {column!r}" if role == "column" else f"the {role} {column!r}"
    if is_text(kind):
        raise explain_text(source, column, subject, _WAYS.get(role, ()))
    raise TableError(f"{subject} holds {_describe_column(kind)}; it must contain numbers")


# What labels are predicted by.
_LABELS = Cure(
    "to predict labels, say {}",
    {"model": "logistic"},
    elsewhere="to predict labels, take a classifier (BayesianLogisticRegression)",
)
_ENDS = "make it 1 where the time ended, and 0 where it goes on"
# What text that should be numbers may be meant as, by the role of its column.
_WAYS: dict[str, list[Cure | str]] = {"target": [_LABELS], "end": [_ENDS]}


def make_encoders(
    source: Source, columns: Sequence[str], first: pa.RecordBatch | None, how: Encoding
) -> tuple[Encoder, ...]:
    """An encoder for each column: by its type, and for categories by the levels in `first`.

    `first` is the first record batch. Nothing later is looked at: the stream is read once. Where
    ``how.levels`` names a column, its levels are those. Dates may have several encoders.
    """
    require(tuple(how.categories), list(source.schema.names), "category")
    encoders: list[Encoder] = []
    for name in columns:
        kind = source.schema.field(name).type
        if is_text(kind) or (name in how.categories and is_number(kind)):
            encoders.append(_find_categories(source, name, first, how))
        elif is_number(kind):
            encoders.append(Numbers(name))
        elif how.dates != "error" and pa.types.is_temporal(kind):
            encoders += _convert_dates(name, kind, first, how)
        else:
            raise _refuse_type(name, kind)
    if not (how.lags or any(encoder.names for encoder in encoders)):
        raise TableError(
            f"no feature is left: {_list(columns)} had only one level in the first batch: give "
            "a larger first batch, or name the levels"
        )
    return tuple(encoders)


def _find_categories(source: Source, name: str, first: pa.RecordBatch, how: Encoding) -> Encoder:
    given = (how.levels or {}).get(name)
    if given is not None:
        return how.encode_levels(name, list(map(str, given)))
    values = first.column(name)
    levels = _levels(source, name, values, categories=how.categories)
    holes = (MISSING,) if how.holes and has_missing(values) and MISSING not in levels else ()
    return how.encode_levels(name, [*(sort_levels(levels) if how.whole else levels), *holes])


def _convert_dates(
    name: str, kind: pa.DataType, first: pa.RecordBatch, how: Encoding
) -> list[Encoder]:
    """Return encoders of days, or of the parts of the calendar that vary; both if time runs on."""
    if how.dates == "days":
        return [Numbers(name)]
    values = first.column(name)
    parts = find_calendar_parts(kind, values)
    made = [how.encode_levels(name, PARTS[part][0], part) for part in parts]
    return made if parts and not is_increasing(values) else [*made, Numbers(name)]


def _refuse_type(name: str, kind: pa.DataType) -> TableError:
    ways: list[Cure | str] = ["turn it into numbers first"]
    if pa.types.is_temporal(kind):
        ways = [
            Cure("take hour, weekday and month from it ({})", {"dates": "calendar"}),
            Cure("count days ({})", {"dates": "days"}),
        ]
    return TableError(
        f"column {name!r} holds {_describe_column(kind)}, which can't be used as numbers directly",
        [*ways, Cure("leave it out ({})", {"drop": [name]})],
    )


@dataclass(frozen=True)
class Learned:
    """The ``levels`` of the features that a model takes as categories, which may ``grow``.

    With ``holes`` a missing value is a level.
    """

    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    grow: bool = False
    holes: bool = False


def make_learned_encoders(
    source: Source, names: Sequence[str], known: Learned
) -> tuple[PlacedEncoder, ...]:
    """Encoders for the features of a model, found by their names, as "size" or "zone=b".

    What is ``known`` are those that the model itself takes as categories.

    Raises
    ------
    TableError
        Where no column makes a feature, or one of another type than it was learned from.
    """
    schema = source.schema
    present = set(schema.names)
    levels: dict[str, list[tuple[int, str]]] = {}
    made: list[PlacedEncoder] = []
    for place, name in enumerate(names):
        label = _get_label(name, present)
        if name in known.levels:
            numbers = LevelNumbers(
                *_find_part(schema, name, known.levels[name]), grows=known.grow, holes=known.holes
            )
            made.append(PlacedEncoder(numbers, (place,)))
        elif label is not None:
            levels.setdefault(label, []).append((place, name[len(label) + 1 :]))
        else:
            made.append(PlacedEncoder(_get_learned_column(source, name), (place,)))
    for label, found in levels.items():
        parts = _find_part(schema, label, tuple(word for _, word in found))
        words = Categories(*parts, drop_first=False)
        made.append(PlacedEncoder(words, tuple(place for place, _ in found)))
    return tuple(made)


def _get_label(feature: str, present: Collection[str]) -> str | None:
    """Return the part of a feature's name before =: a column, or a part of a date; else None."""
    if feature in present:
        return None
    stems = [feature[:i] for i, mark in enumerate(feature) if mark == "="]
    dated = [stem for stem in stems if (find_calendar_part(stem) or ("",))[0] in present]
    return next((stem for stem in [*stems, *dated] if stem in present or stem in dated), None)


def _get_learned_column(source: Source, name: str) -> Encoder:
    """The column of this name, in numbers, or what it was so many rows before."""
    schema = source.schema
    lag = None if name in schema.names else find_lag(name, schema.names)
    if lag is not None:
        check_numbers(source, lag.column, "column")
        return lag
    require([name], list(schema.names), "feature")
    kind = schema.field(name).type
    if is_number(kind) or pa.types.is_temporal(kind):
        return Numbers(name)
    if is_text(kind):
        raise explain_text(source, name, f"column {name!r}", was="numbers or dates")
    raise TableError(
        f"column {name!r} holds {_describe_column(kind)}, and was numbers or dates when it was "
        "learned"
    )


def _find_part(
    schema: pa.Schema, label: str, levels: tuple[str, ...]
) -> tuple[str, tuple[str, ...], str]:
    """The column of a category, its levels, and the part of its dates, if it is one."""
    dated = None if label in schema.names else find_calendar_part(label)
    column, part = dated or (label, "")
    require([column], list(schema.names), "feature")
    kind = schema.field(column).type
    if part and not pa.types.is_temporal(kind):
        raise TableError(
            f"column {column!r} holds {_describe_column(kind)}, "
            "and was dates when it was learned: give dates"
        )
    return column, levels, part


def has_missing(values: pa.Array) -> bool:
    """Return True if a value of an Arrow array is missing."""
    codes, words = encode_text(values)
    return bool((codes == len(words)).any())


def _levels(
    source: Source, name: str, values: pa.Array, *, categories: Collection[str]
) -> tuple[str, ...]:
    codes, words = encode_text(values)
    counts = np.bincount(codes, minlength=len(words) + 1)
    levels = sorted(word for word, count in zip(words, counts, strict=False) if count)
    if name in categories:
        levels.sort(key=_as_number)
    else:
        refuse_numbers_and_dates(source, name, levels)
    all_different = len(levels) > _FEW_LEVELS and 2 * len(levels) > len(values)
    if all_different or len(levels) > MOST_LEVELS:
        raise TableError(
            f"column {name!r} has {len(levels):,} different values in the first {len(values):,} "
            "rows, too many for categories",
            [Cure("leave it out ({})", {"drop": [name]}), "turn it into numbers"],
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


def _describe_column(kind: pa.DataType) -> str:
    if pa.types.is_duration(kind):
        return f"durations ({kind})"
    if pa.types.is_temporal(kind):
        return f"dates or times ({kind})"
    if pa.types.is_binary(kind):
        return "bytes that are not UTF-8 text"
    return "text" if is_text(kind) else f"values of type {kind}"


def describe_type(type_: pa.DataType) -> str:
    """Describe the type of a column in words: numbers and text are each one kind."""
    return "numbers" if is_number(type_) else _describe_column(type_)


def _as_number(word: str) -> tuple[float, str]:
    return (float(word) if _reads_as_number(word) else np.inf), word


def _reads_as_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _list(names: Sequence[str], last: str = "and") -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
