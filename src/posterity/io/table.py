"""A table on disk as a stream of (X, y)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.io._ahead import read_ahead
from posterity.io.columns import (
    Categories,
    Encoder,
    as_floats,
    check_target,
    chosen_columns,
    make_encoders,
)
from posterity.io.errors import TableError
from posterity.io.missing import Missing, Policy, make_policy, refuse_infinite
from posterity.io.sources import Source, open_source

FloatArray = NDArray[np.float64]
# Arrow hands out whole blocks; levels are looked for in the first of at least so many rows.
_FIRST_ROWS = 8192


class TableStream:
    """Batches ``(X, y)`` of a table, read while earlier ones are used; see `open_table`.

    Each iteration starts at the first row. Counts below are those of the latest iteration.

    Attributes
    ----------
    feature_names : tuple of str
        Columns of X; a level of a category is ``column=level``.
    n_rows_read : int
        Rows of the file so far.
    n_skipped, n_filled : int
        Rows left out, and rows with a value filled in, by the policy for missing values.
    fraction : float
        Share of the file read so far, between 0 and 1.
    """

    def __init__(
        self,
        source: Source,
        target: str,
        encoders: tuple[Encoder, ...],
        batch_rows: int,
        missing: Missing,
    ) -> None:
        self._source = source
        self._target = target
        self._encoders = encoders
        self._batch_rows = batch_rows
        self._missing: Missing = missing
        self.feature_names = tuple(name for encoder in encoders for name in encoder.names)
        # Which column of the file each feature comes from, for messages.
        self._origin = [encoder.column for encoder in encoders for _ in encoder.names]
        self._restart()

    def _restart(self) -> Policy:
        self.n_rows_read, self.fraction = 0, 0.0
        for encoder in self._encoders:
            if isinstance(encoder, Categories):
                encoder.unseen.clear()
        self._policy = make_policy(self._missing)
        return self._policy

    @property
    def n_skipped(self) -> int:
        """Rows left out because a value was missing."""
        return self._policy.n_skipped

    @property
    def n_filled(self) -> int:
        """Rows with a missing value filled in."""
        return self._policy.n_filled

    @property
    def unseen_levels(self) -> dict[str, dict[str, int]]:
        """For each column, the values that were not among its levels, and how often they came."""
        return {
            encoder.column: dict(encoder.unseen)
            for encoder in self._encoders
            if isinstance(encoder, Categories) and encoder.unseen
        }

    def __iter__(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        policy = self._restart()
        columns = [encoder.column for encoder in self._encoders] + [self._target]
        for batch, fraction in read_ahead(
            self._source.batches(columns, max(self._batch_rows, _FIRST_ROWS))
        ):
            X, y = policy.apply(*self._numbers(batch), self._place)
            self.n_rows_read += batch.num_rows
            self.fraction = fraction
            for start in range(0, len(y), self._batch_rows):
                rows = slice(start, start + self._batch_rows)
                yield X[rows], y[rows]
        if self.n_rows_read == 0:
            raise TableError(f"{self._source.path} has column names but no rows")

    def _numbers(self, batch: Any) -> tuple[FloatArray, FloatArray]:
        """Encode a record batch: X (n, p) C-contiguous, y (n,), with NaN where missing."""
        X = np.empty((batch.num_rows, len(self.feature_names)))
        first = 0
        for i, encoder in enumerate(self._encoders):
            last = first + len(encoder.names)
            encoder.fill(batch.column(i), X[:, first:last])
            first = last
        y = np.array(as_floats(batch.column(len(self._encoders))))  # Arrow's own is read-only
        refuse_infinite(X, y, self._place)
        return X, y

    def _place(self, row: int, column: int) -> str:
        name = self._target if column < 0 else self._origin[column]
        return (
            f"{self._source.path}: {self._source.row_name(self.n_rows_read + row)}, column {name!r}"
        )


def open_table(
    path: str | os.PathLike[str],
    target: str,
    *,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    batch_rows: int = 65536,
    missing: Missing = "error",
    drop_first: bool = True,
) -> TableStream:
    r"""Open a CSV (also gzipped), Parquet or Arrow file as a stream of numbers.

    The file is never held whole, and read once. Column types are decided on its first megabyte
    (CSV) or taken from its schema. Numbers and booleans are used as they are; text columns are
    categories, one feature for each level, in alphabetical order. The levels are those of the
    *first batch* (the first megabyte of CSV, the first `batch_rows` rows or 8,192 otherwise): at
    most 256, and beyond 20 at most one for every two rows. A level that turns up later gets zeros
    in all of them and is counted in ``unseen_levels``.

    Parameters
    ----------
    path : path
        Its ending says what it is: .csv, .tsv, .txt (each also with .gz), .parquet, .pq, .arrow,
        .feather. The first line of a text file holds the column names; the delimiter is comma,
        semicolon, tab or bar, whichever of these comes first in this list and is in that line.
        A quoted field may not hold a line break.
    target : str
        Column to predict; numbers or booleans.
    features : sequence of str, optional
        Columns to use, in this order. All but the target by default.
    drop : sequence of str
        Columns to leave out.
    batch_rows : int
        Batches have at most so many rows.
    missing : {"error", "skip", "mean"}
        What a missing value does (an empty field, NA, null, NaN and the like): raise, leave the row
        out, or take the mean of the column over the rows *before* it. With "mean", rows are left
        out all the same where the target is missing, or nothing was seen yet to take a mean of.
    drop_first : bool
        Leave out the first level of each category: right when the model has an intercept.

    Returns
    -------
    TableStream
        Iterable of X (n, p) C-contiguous float64 and y (n,) float64.

    Raises
    ------
    TableError
        A `ValueError` that names the file, the line and the column, and says what to do: when
        opened, for a file that is missing, empty, or not what its ending says, and for columns that
        are not there or cannot be numbers; while reading, for missing or infinite values, text
        among numbers, and a file that is cut off.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "rides.csv"
    >>> _ = path.write_text("distance,rain,zone,fare\n1.5,true,a,7\n2.5,false,b,10\n")
    >>> stream = open_table(path, target="fare")
    >>> stream.feature_names
    ('distance', 'rain', 'zone=b')
    >>> for X, y in stream:
    ...     print(X.tolist(), y.tolist())
    [[1.5, 1.0, 0.0], [2.5, 0.0, 1.0]] [7.0, 10.0]
    >>> folder.cleanup()
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be at least 1, got {batch_rows}")
    make_policy(missing)
    source = open_source(path)
    columns = chosen_columns(source.schema, target, features, drop)
    check_target(source.schema, target)
    peek = source.batches(columns, max(batch_rows, _FIRST_ROWS))
    first = next(peek, None)
    if first is None:
        raise TableError(f"{source.path} has column names but no rows")
    encoders = make_encoders(source.schema, columns, first[0], drop_first)
    peek.close()
    return TableStream(source, target, encoders, batch_rows, missing)
