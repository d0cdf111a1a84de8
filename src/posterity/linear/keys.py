"""The keys of rows, as numbers: read from columns of many kinds."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import AnyArray, Indices, Mask
from posterity.factor.grouped_rows import number_keys
from posterity.kernel.values import is_label

Numbers = NDArray[np.int32]
Labels = list[Any] | NDArray[np.int64]

# From here on not every whole number is a float: two keys may be one.
EXACT = 2.0**53
_EPOCH = datetime(1970, 1, 1)
_MICROSECONDS = "datetime64[us]"


@dataclass(frozen=True)
class Keys:
    """Keys of n rows: ``numbers`` (n,) of the ``labels``, in the order of their first rows.

    ``kinds`` says for each key column whether it holds numbers, text, dates or something else;
    a date's label is its number of microseconds since 1970. Whole numbers come as an array.
    """

    numbers: Numbers
    labels: Labels
    kinds: tuple[str, ...]

    def label(self, number: int) -> Any:
        """The key of this number, of Python's own types."""
        return list_labels(self.labels[number : number + 1])[0]


def read_keys(columns: Sequence[Any], names: Sequence[str]) -> Keys:
    """The keys of rows from one column or several, of NumPy, pandas, Polars, Arrow or plain Python.

    Raises ``ValueError`` for a missing key, naming the row, and ``TypeError`` for one that can't
    be hashed.
    """
    read = [_read_column(column, name) for column, name in zip(columns, names, strict=True)]
    if len(read) == 1:
        return read[0]
    numbers, together = read[0].numbers, len(read[0].labels)
    for column in read[1:]:
        _check_lengths(numbers, column.numbers)
        pairs = numbers.astype(np.int64) * len(column.labels) + column.numbers
        numbers, distinct = number_keys(pairs)
        together = len(distinct)
    rows = _find_first_rows(numbers, together)
    parts = [list_labels(select_labels(c.labels, c.numbers[rows])) for c in read]
    kinds = tuple(kind for column in read for kind in column.kinds)
    return Keys(numbers, list(zip(*parts, strict=True)), kinds)


def key_of(value: object, n_parts: int, name: str = "group") -> Keys:
    """The key of one row; a tuple where a key has several parts."""
    parts = list(value) if n_parts > 1 and isinstance(value, tuple | list) else [value]
    return read_keys([[part] for part in parts], [name] * len(parts))


def select_labels(labels: Labels, numbers: AnyArray) -> Labels:
    """The labels of these numbers."""
    if isinstance(labels, np.ndarray):
        return labels[numbers]
    return [labels[number] for number in numbers.tolist()]


def list_labels(labels: Labels) -> list[Any]:
    """Labels of Python's own types."""
    return labels if isinstance(labels, list) else labels.tolist()


# ---- inner ---------------------------------------------------------------------------------------


def _read_column(column: Any, name: str) -> Keys:
    module = type(column).__module__.partition(".")[0]
    if module == "pandas":
        return _from_pandas(column, name)
    if module == "pyarrow":
        return _from_arrow(column, name)
    if module == "polars":
        return _from_polars(column, name)
    if isinstance(column, np.ndarray):
        return _from_numpy(column, name)
    return _from_objects(list(column), name)


def _from_numpy(values: AnyArray, name: str) -> Keys:
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}: expected (n,), a key for each row")
    if isinstance(values, np.ma.MaskedArray):
        _refuse_missing(np.ma.getmaskarray(values), name)
    kind = values.dtype.kind
    if kind == "M":
        _refuse_missing(np.isnat(values), name)
        return _number_values(values.astype(_MICROSECONDS).view(np.int64), "dates")
    if kind == "f":
        _refuse_missing(np.isnan(values), name)
        _refuse_inexact(values, name)
        if (np.abs(values) < EXACT).all() and (values == np.trunc(values)).all():
            return _number_values(values.astype(np.int64), "numbers")
    elif kind in "bi" or (kind == "u" and values.max(initial=0) < 2**63):
        return _number_values(values.astype(np.int64, copy=False), "numbers")
    return _from_objects(values.tolist(), name)


def _number_values(values: NDArray[np.int64], kind: str) -> Keys:
    numbers, distinct = number_keys(np.ascontiguousarray(values))
    return Keys(numbers, distinct, (kind,))


def _from_pandas(column: Any, name: str) -> Keys:
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return _from_numpy(column.to_numpy(), name)
    codes, distinct = column.factorize()
    _refuse_missing(codes < 0, name)
    if getattr(distinct.dtype, "kind", "") == "M":  # with a time zone
        distinct = [stamp.to_pydatetime() for stamp in distinct]
    return _number_by_appearance(codes, list(distinct), name)


def _from_arrow(column: Any, name: str) -> Keys:
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    _refuse_missing(np.asarray(column.is_null(nan_is_null=True)), name)
    if not hasattr(column, "dictionary"):
        kind = str(column.type)
        if kind.startswith(("int", "uint", "float", "double", "date", "timestamp")):
            return _from_numpy(column.to_numpy(zero_copy_only=False), name)
        column = column.dictionary_encode()
    codes = column.indices.to_numpy(zero_copy_only=False)
    return _number_by_appearance(codes, column.dictionary.to_pylist(), name)


def _from_polars(column: Any, name: str) -> Keys:
    _refuse_missing(column.is_null().to_numpy(), name)
    if column.dtype.is_numeric() or column.dtype.is_temporal():
        return _from_numpy(column.to_numpy(), name)
    if str(column.dtype) == "String":
        column = column.cast(sys.modules["polars"].Categorical)
    if str(column.dtype).startswith(("Categorical", "Enum")):
        codes = column.to_physical().to_numpy()
        numbers, distinct = number_keys(codes.astype(np.int64))
        labels = column.gather(_find_first_rows(numbers, len(distinct))).to_list()
        return _number_by_appearance(numbers, labels, name)
    return _from_objects(column.to_list(), name)


def _from_objects(values: list[Any], name: str) -> Keys:
    places: dict[Hashable, int] = {}
    numbers = np.empty(len(values), dtype=np.int32)
    try:
        numbers[:] = [places.setdefault(value, len(places)) for value in values]
        usable = all(map(is_label, places))
    except TypeError:  # of a list, say, which has no hash
        usable = False
    if not usable:
        row = next(i for i, value in enumerate(values) if not is_label(value))
        raise TypeError(
            f"the key in row {row} of {name} is a {type(values[row]).__name__}: keys must be such "
            "as numbers, text, dates and tuples of these"
        )
    missing = [number for label, number in places.items() if is_missing(label)]
    if missing:
        _refuse_missing(np.isin(numbers, missing), name)
    return _number_by_appearance(numbers, list(places), name)


def _number_by_appearance(codes: AnyArray, labels: list[Any], name: str) -> Keys:
    """Number codes by first appearance; labels as they are kept."""
    numbers, distinct = number_keys(codes.astype(np.int64))
    labels = [labels[code] for code in distinct.tolist()]
    labels = [_to_python_scalar(label) for label in labels]
    kind = _get_kind(labels)
    if any(type(label) is float for label in labels):
        floats = [label if type(label) is float else 0.0 for label in labels]
        _refuse_inexact(np.array(floats)[numbers], name)
    if kind == "dates":
        stamps = np.array([_to_microseconds(label) for label in labels], dtype=np.int64)
        again, distinct = number_keys(stamps)  # two time zones may mean one moment
        return Keys(again[numbers], distinct, (kind,))
    return Keys(numbers, labels, (kind,))


def _to_python_scalar(label: object) -> Any:
    """Python's own value for a scalar of NumPy's."""
    if isinstance(label, np.datetime64):
        return label.astype(_MICROSECONDS).item()
    return label.item() if isinstance(label, np.generic) else label


def _get_kind(labels: Iterable[Any]) -> str:
    kinds = {
        "text"
        if isinstance(label, str)
        else "numbers"
        if isinstance(label, bool | int | float)
        else "dates"
        if isinstance(label, date)
        else "other"
        for label in labels
    }
    return kinds.pop() if len(kinds) == 1 else "other"


def _to_microseconds(day: date) -> int:
    """Microseconds since 1970, in UTC where there is a time zone."""
    moment = day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _find_first_rows(numbers: Numbers, count: int) -> Indices:
    """(count,) the first row of each number."""
    first = np.empty(count, dtype=np.intp)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return first


def is_missing(label: object) -> bool:
    """Return True for a key, or a part of one, that is not known."""
    if isinstance(label, tuple):
        return any(map(is_missing, label))
    if isinstance(label, float):
        return math.isnan(label)
    if isinstance(label, np.datetime64):
        return bool(np.isnat(label))
    return label is None or type(label).__name__ in ("NaTType", "NAType")


def _refuse_missing(missing: Mask, name: str) -> None:
    if missing.any():
        raise ValueError(
            f"the key in row {int(np.argmax(missing))} of {name} is missing: drop the row, or give "
            "it a key of its own"
        )


def _refuse_inexact(values: NDArray[np.floating[Any]], name: str) -> None:
    bad = np.isfinite(values) & (np.abs(values) >= EXACT)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"the key in row {row} of {name} is {values[row]:.0f} as a float, which may stand for "
            "several whole numbers: give keys beyond 2^53 as whole numbers or text"
        )


def _check_lengths(one: Numbers, other: Numbers) -> None:
    if len(one) != len(other):
        raise ValueError(
            f"the key columns have {len(one)} and {len(other)} rows: give columns of the same "
            "length"
        )
