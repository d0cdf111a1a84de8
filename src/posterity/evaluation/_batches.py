"""Every form in which a stream may be given, as batches of bounded size."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import AnyArray, Array, Indices
from posterity.kernel.tables import find_table, take_rows
from posterity.kernel.values import read_floats
from posterity.linear.offsets import RateOffsets


class Batch(NamedTuple):
    """Rows X (n, p), targets y (n,) or (n, 2), and weights, times, offsets (n,) or None."""

    X: Any
    y: Array
    sample_weight: Array | None = None
    times: Array | None = None
    offset: Array | None = None

    def select(self, rows: slice | Indices) -> Batch:
        """Return some of the rows."""
        parts = (None if part is None else part[rows] for part in self[1:])
        return Batch(take_rows(self.X, rows), *parts)  # type: ignore[arg-type]

    def keywords(self) -> dict[str, Any]:
        """Keyword arguments for a model's methods: times and offsets only where there are some."""
        beside = {"times": self.times, "offset": self.offset}
        some = {name: values for name, values in beside.items() if values is not None}
        return {"sample_weight": self.sample_weight, **some}


def read_numbers(y: Any, number: int) -> Array:
    """The targets of this batch, which must be numbers."""
    if _is_text(np.asarray(y)):
        raise TypeError(
            f"y in batch {number} holds text, and numbers are scored: use "
            "progressive_classification(model, X, y), or give the labels as 0 and 1"
        )
    return read_labels(np.asarray(y, dtype=np.float64), number)


def read_lifetimes(y: Any, number: int = 0) -> Array:
    """The targets of this batch, (n, 2): the lower and the upper end of each lifetime."""
    ends = read_floats(y, "y")
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise ValueError(
            f"y in batch {number} has shape {ends.shape}: lifetimes have a lower and an upper end, "
            "(n, 2)"
        )
    return ends


def read_labels_or_numbers(y: Any, number: int) -> AnyArray:
    """The targets of this batch: text as it is, and all else as numbers."""
    return read_labels(y, number) if _is_text(np.asarray(y)) else read_numbers(y, number)


def read_labels(y: Any, number: int) -> AnyArray:
    """The targets of this batch as they are, one a row."""
    targets = np.asarray(y)
    if targets.ndim != 1:
        raise ValueError(
            f"y in batch {number} must have one dimension, one target a row; its shape is "
            f"{targets.shape}; lifetimes with two ends are scored by progressive_survival(model, X,"
            " y), or by score_survival(model.predict_then_learn(X, y), y)"
        )
    return targets


def limit_batches(
    stream: object,
    y: Any,
    sample_weight: ArrayLike | None,
    batch_rows: int,
    added: RateOffsets | None = None,
    read: Callable[[Any, int], AnyArray] = read_numbers,
) -> Iterator[Batch]:
    """Batches of one to `batch_rows` rows, in the order of the stream."""
    for number, batch in enumerate(_slice_batches(stream, y, sample_weight, added)):
        checked = _check_batch(batch, number, read)
        n = len(checked.y)
        if 0 < n <= batch_rows:
            yield checked
            continue
        for start in range(0, n, batch_rows):
            yield checked.select(slice(start, start + batch_rows))


def join_batches(first: Batch | None, second: Batch) -> Batch:
    """Rows of both, one after the other, each with its weight."""
    if second.sample_weight is None:
        second = second._replace(sample_weight=np.ones(len(second.y)))
    if first is None:
        return second
    X = second.X
    if isinstance(X, np.ndarray):
        X = np.concatenate([first.X, X])
    else:
        # Both pandas and polars call it concat, and the frame's owner is imported already.
        X = sys.modules[type(X).__module__.partition(".")[0]].concat([first.X, X])
    parts = (
        None if own is None or other is None else np.concatenate([own, other])
        for own, other in zip(first[1:], second[1:], strict=True)
    )
    return Batch(X, *parts)  # type: ignore[arg-type]


def refuse_nothing(n_rows: int) -> None:
    """Raise ``ValueError`` for a stream that had no row."""
    if n_rows == 0:
        raise ValueError("the stream is empty: give at least one row")


def locate_rows(seen: int, n: int) -> str:
    """Where the next ``n`` rows are, for notes."""
    return f"in rows {seen} to {seen + n - 1} of the stream (the first is 0)"


@contextmanager
def note_refusals(note: str) -> Iterator[None]:
    """Add a note to what a model refuses."""
    try:
        yield
    except (ValueError, TypeError) as error:
        error.add_note(note)
        raise


def _slice_batches(
    stream: object, y: Any, sample_weight: ArrayLike | None, added: RateOffsets | None
) -> Iterable[Any]:
    if y is not None:
        return [(stream, y, sample_weight, None, None if added is None else added.read(len(y)))]
    if added is not None and any(part is not None for part in added):
        raise ValueError(
            "offset and exposure are for arrays X and y; give the offsets of a stream in its "
            "batches, as (X, y, None, None, log(exposure))"
        )
    if sample_weight is not None:
        raise ValueError(
            "sample_weight is for arrays X and y; give the weights of a stream in its batches, "
            "as (X, y, sample_weight)"
        )
    if isinstance(stream, tuple) and stream and not isinstance(stream[0], tuple):
        return [stream]
    if isinstance(stream, np.ndarray) or find_table(stream) is not None:
        raise ValueError(
            "y is missing: give progressive_validation(model, X, y), progressive_classification("
            "model, X, y) or compare(models, X, y), or an iterable of (X, y)"
        )
    if not isinstance(stream, Iterable):
        raise TypeError(
            "stream must be an array X (with y), a tuple (X, y), or an iterable of batches (X, y) "
            f"or (X, y, sample_weight); got {type(stream).__name__}"
        )
    return stream


def _is_text(targets: AnyArray) -> bool:
    return isinstance(next(iter(targets.flat), 0.0), str)


def _check_batch(batch: object, number: int, read: Callable[[Any, int], AnyArray]) -> Batch:
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3, 4, 5):
        raise ValueError(
            f"batch {number} must be (X, y), (X, y, sample_weight) or (X, y, sample_weight, times)"
            ", and may have the offsets of rows behind their times"
        )
    X = batch[0] if hasattr(batch[0], "shape") else np.asarray(batch[0])
    y = read(batch[1], number)
    beside = zip(("sample_weight", "times", "offset"), batch[2:], strict=False)
    if len(X.shape) != 2 and X.dtype != object:  # as rows of names are
        raise ValueError(
            f"X in batch {number} must have two dimensions, (rows, features); its shape is "
            f"{tuple(X.shape)}"
        )
    if X.shape[0] != len(y):
        raise ValueError(f"X in batch {number} has {X.shape[0]} rows, but y has {len(y)}")
    return Batch(X, y, *(_read(name, values, y, number) for name, values in beside))


def _read(name: str, values: object, y: Array, number: int) -> Array | None:
    """Numbers (n,), one for each row, or None."""
    if values is None:
        return None
    array = np.asarray(values, dtype=np.float64)
    if array.shape != y.shape[:1]:
        raise ValueError(
            f"{name} in batch {number} has shape {array.shape}, but y has {y.shape}: give "
            "one value for each row"
        )
    return array
