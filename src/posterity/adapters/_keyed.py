"""Rows whose model wants the key of their group beside their features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from sklearn.base import BaseEstimator

from posterity.aliases import Array
from posterity.io.arrow import pa
from posterity.io.learning import describe_predictions, name_columns
from posterity.io.missing import Missing
from posterity.io.reading import ReadSettings
from posterity.io.table import open_rows

# A column of row numbers goes along with the rows, to tell which of them are left.
NUMBER = "number of the row in its partition"


def get_key_columns(model: BaseEstimator) -> tuple[str, ...]:
    """Key columns of a model of groups; none of any other. ``ValueError`` if it names none."""
    if not hasattr(model, "by"):
        return ()
    if not model.by:
        raise ValueError(
            f"{type(model).__name__} does not name the columns with the keys of its groups: "
            "give them, as in by='shop'"
        )
    return (model.by,) if isinstance(model.by, str) else tuple(model.by)


class Keys:
    """The keys of the rows that come by, until the rows are used.

    Examples
    --------
    >>> import pyarrow as pa
    >>> keys = Keys(["shop"])
    >>> batch = pa.record_batch({"shop": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})
    >>> coming = keys.number_rows([batch])
    >>> next(coming).column(NUMBER).to_pylist()
    [0.0, 1.0, 2.0]
    >>> keys.add_keys(pa.table({"x": [1.0, 3.0]}), np.array([0.0, 2.0])).to_pylist()
    [{'x': 1.0, 'shop': 'a'}, {'x': 3.0, 'shop': 'c'}]
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._waiting: list[pa.RecordBatch] = []
        self._first = self._next = 0

    def number_rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same record batches with the numbers of their rows."""
        for batch in batches:
            self._waiting.append(batch.select(self._names))
            numbers = np.arange(self._next, self._next + batch.num_rows, dtype=np.float64)
            self._next += batch.num_rows
            names = [*batch.schema.names, NUMBER]
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(numbers)], names=names)

    def add_keys(self, rows: pa.Table, numbers: Array | None) -> pa.Table:
        """A table of rows, (n,) numbers of them, with their keys; those before are let go."""
        assert numbers is not None  # `watched` gave each row its own
        waiting = pa.Table.from_batches(self._waiting)
        places = numbers.astype(np.intp) - self._first
        keys = waiting.take(pa.array(places))
        used = int(places[-1]) + 1
        self._waiting, self._first = waiting.slice(used).to_batches(), self._first + used
        for name in self._names:
            rows = rows.append_column(name, keys.column(name))
        return rows


def predictions_by_key(
    model: BaseEstimator,
    batch: pa.RecordBatch,
    missing: Missing,
    *,
    level: float | None,
    quantiles: Sequence[float],
) -> Iterator[pa.RecordBatch]:
    """Record batches of numbers of rows and predictions, as `posterity.io.predict_stream`."""
    keys, names = Keys(get_key_columns(model)), [str(name) for name in model.feature_names_in_]
    reading = ReadSettings(missing=missing, time=NUMBER)
    for rows in open_rows(keys.number_rows([batch]), names, reading).batches():
        distribution = model.predict_distribution(
            keys.add_keys(name_columns(rows.X, names), rows.time)
        )
        columns = describe_predictions(distribution, level, quantiles)
        yield pa.record_batch({"row": rows.y, **columns})


def prediction_names(level: float | None, quantiles: Sequence[float]) -> list[str]:
    """Columns of predictions, named as `posterity.io.predict_stream` does.

    Examples
    --------
    >>> prediction_names(0.9, (0.25,))
    ['mean', 'std', 'lower', 'upper', 'q0.25']
    """
    interval = [] if level is None else ["lower", "upper"]
    return ["mean", "std", *interval, *(f"q{quantile:g}" for quantile in quantiles)]
