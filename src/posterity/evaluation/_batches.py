"""Every form in which a stream may be given, as batches of bounded size."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
WeightedBatch = tuple[Any, FloatArray, FloatArray]


class Batch(NamedTuple):
    """Rows X (n, p) and targets y (n,), and weights and times (n,) where the stream has them."""

    X: Any
    y: FloatArray
    sample_weight: FloatArray | None = None
    times: FloatArray | None = None

    def select(self, rows: slice) -> Batch:
        """Return some of the rows."""
        weight, times = self.sample_weight, self.times
        return Batch(
            take_rows(self.X, rows),
            self.y[rows],
            None if weight is None else weight[rows],
            None if times is None else times[rows],
        )

    def keywords(self) -> dict[str, Any]:
        """Return keyword arguments for a model's methods: ``times`` only where there are some."""
        timed = {} if self.times is None else {"times": self.times}
        return {"sample_weight": self.sample_weight, **timed}


def limit_batches(stream: Any, y: Any, sample_weight: Any, batch_rows: int) -> Iterator[Batch]:
    """Batches of at most `batch_rows` rows, in the order of the stream."""
    for number, batch in enumerate(_slice_batches(stream, y, sample_weight)):
        checked = _check_batch(batch, number)
        n = len(checked.y)
        if n <= batch_rows:
            yield checked
            continue
        for start in range(0, n, batch_rows):
            yield checked.select(slice(start, start + batch_rows))


def join_batches(first: WeightedBatch | None, second: Batch) -> WeightedBatch:
    """Rows of both, one after the other, each with its weight."""
    X, y, weight = second.X, second.y, second.sample_weight
    weight = np.ones(len(y)) if weight is None else weight
    if first is None:
        return X, y, weight
    if isinstance(X, np.ndarray):
        X = np.concatenate([first[0], X])
    else:
        # Both pandas and polars call it concat, and the frame's owner is imported already.
        X = sys.modules[type(X).__module__.partition(".")[0]].concat([first[0], X])
    return X, np.concatenate([first[1], y]), np.concatenate([first[2], weight])


def take_rows(X: Any, rows: slice | NDArray[np.intp]) -> Any:
    """Rows of an array or of a data frame, by position."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _slice_batches(stream: Any, y: Any, sample_weight: Any) -> Iterable[Any]:
    if y is not None:
        return [(stream, y, sample_weight)]
    if sample_weight is not None:
        raise ValueError(
            "sample_weight is for arrays X and y; give the weights of a stream in its batches, "
            "as (X, y, sample_weight)"
        )
    if isinstance(stream, tuple) and stream and not isinstance(stream[0], tuple):
        return [stream]
    if isinstance(stream, np.ndarray) or hasattr(stream, "columns"):
        raise ValueError(
            "y is missing: give progressive_validation(model, X, y) or compare(models, X, y), or "
            "an iterable of (X, y)"
        )
    if not isinstance(stream, Iterable):
        raise TypeError(
            "stream must be an array X (with y), a tuple (X, y), or an iterable of batches (X, y) "
            f"or (X, y, sample_weight); got {type(stream).__name__}"
        )
    return stream


def _check_batch(batch: Any, number: int) -> Batch:
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3, 4):
        raise ValueError(
            f"batch {number} must be (X, y), (X, y, sample_weight) or (X, y, sample_weight, times)"
        )
    X = batch[0] if hasattr(batch[0], "shape") else np.asarray(batch[0])
    y = np.asarray(batch[1], dtype=np.float64)
    weight, times = (*batch[2:], None, None)[:2]
    if y.ndim != 1:
        raise ValueError(
            f"y in batch {number} must have one dimension, one target a row; its shape is {y.shape}"
        )
    if len(X.shape) != 2:
        raise ValueError(
            f"X in batch {number} must have two dimensions, (rows, features); its shape is "
            f"{tuple(X.shape)}"
        )
    if X.shape[0] != len(y):
        raise ValueError(f"X in batch {number} has {X.shape[0]} rows, but y has {len(y)}")
    return Batch(X, y, _read("sample_weight", weight, y, number), _read("times", times, y, number))


def _read(name: str, values: Any, y: FloatArray, number: int) -> FloatArray | None:
    """Numbers (n,), one for each row, or None."""
    if values is None:
        return None
    array = np.asarray(values, dtype=np.float64)
    if array.shape != y.shape:
        raise ValueError(
            f"{name} in batch {number} has shape {array.shape}, but y has {y.shape}: give "
            "one value for each row"
        )
    return array
