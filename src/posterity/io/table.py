"""A table on disk as a stream of (X, y)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from posterity.aliases import Array
from posterity.io._ahead import read_ahead
from posterity.io.arrow import pa
from posterity.io.columns import (
    Dates,
    Encoding,
    Learned,
    check_numbers,
    make_encoders,
    make_learned_encoders,
    require,
    select_columns,
)
from posterity.io.encoders import Encoder, LevelEncoder, PlacedEncoder, place_encoders
from posterity.io.errors import TableError, explain_empty
from posterity.io.folders import open_source
from posterity.io.lags import Lag, check_lags
from posterity.io.missing import (
    LEAVE_OUT,
    ColumnMeans,
    Missing,
    Place,
    Policy,
    describe_holes,
    make_policy,
    refuse_too_large,
    sum_is_usable,
)
from posterity.io.reading import BATCH_ROWS, MEMORY, ColumnsBeside, ReadSettings, Rows
from posterity.io.source import Source
from posterity.io.tables import open_tables
from posterity.io.targets import Target, TargetRows, make_target
from posterity.io.text_format import TextFormat
from posterity.kernel.values import is_word

# Arrow hands out whole blocks; levels are looked for in the first of at least so many rows.
FIRST_ROWS = 8192


class TableStream:
    """Batches of a table, read while earlier ones are used; see `open_table`.

    A batch is ``(X, y)``; with a column of weights ``(X, y, weight)``; with one of times ``(X, y,
    weight, time)``, and with offsets or exposures ``(X, y, weight, time, offset)``, where those
    before may be None. Each iteration starts at the first row. Counts below are those of the latest
    iteration.

    Attributes
    ----------
    feature_names : tuple of str
        Columns of X; a level of a category is ``column=level``.
    n_rows_read : int
        Rows of the file so far.
    n_skipped, n_filled : int
        Rows left out, and rows with a value filled in, by the policy for missing values.
    n_missing, n_left_out : Counter of str
        By column, its missing values; and those of them for which a row was left out.
    fraction : float
        Share of the file read so far, between 0 and 1.
    notes : tuple of str
        What of the table was left out, in words: columns without a name, rows of totals.
    """

    def __init__(
        self,
        source: Source,
        target: Target,
        encoders: tuple[PlacedEncoder, ...],
        reading: ReadSettings,
        *,
        growing: bool = False,
        since: float | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._encoders = encoders
        self._reading = reading
        self._growing = growing
        self._since = since
        ColumnsBeside(reading).check(source, target.columns)
        require(reading.keep, list(source.schema.names), "column to keep")
        self._restart()

    def _restart(self) -> None:
        self.n_rows_read, self.fraction = 0, 0.0
        self.n_missing: Counter[str] = Counter()
        self.n_left_out: Counter[str] = Counter()
        for one in self._encoders:
            one.encoder.begin()
        self._policy: Policy = make_policy(self._reading.missing, lambda: self.feature_names)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Columns of X; a level of a category is ``column=level``."""
        return tuple(name for name, _ in self._features())

    def _features(self) -> list[tuple[str, str]]:
        """Name and column of each feature, in order."""
        found = {
            place: (name, one.encoder.column)
            for one in self._encoders
            for place, name in zip(one.places, one.names, strict=True)
        }
        return [found[place] for place in range(len(found))]

    @property
    def n_skipped(self) -> int:
        """Rows left out because a value was missing."""
        return self._policy.n_skipped

    @property
    def n_filled(self) -> int:
        """Rows with a missing value filled in."""
        return self._policy.n_filled

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns of the table that the features are made from."""
        return tuple(dict.fromkeys(one.encoder.column for one in self._encoders if one.names))

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the table was left out: columns without a name, rows of totals."""
        return self._source.notes

    @property
    def n_before(self) -> int:
        """Number of first rows that serve only as the past of later rows, if there are lags."""
        return max((one.encoder.n_before for one in self._encoders), default=0)

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The known levels of each category, including those without a feature."""
        return {one.label: one.levels for one in self._categories}

    @property
    def whole_categories(self) -> dict[str, tuple[str, ...]]:
        """The levels of the features that are numbers of levels."""
        return {one.label: one.levels for one in self._categories if one.is_whole}

    @property
    def unseen_levels(self) -> dict[str, dict[str, int]]:
        """For each column, the values that were not among its levels, with counts."""
        return {one.label: dict(one.unseen) for one in self._categories if one.unseen}

    @property
    def _categories(self) -> list[LevelEncoder]:
        encoders = [one.encoder for one in self._encoders]
        return [one for one in encoders if isinstance(one, LevelEncoder)]

    def fill_with(self, means: ColumnMeans) -> None:
        """Fill missing values with these means, and update them from here on."""
        self._reading = replace(self._reading, missing=means)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for rows in self.batches():
            parts = rows[:5]
            yield parts[: 1 + max(i for i, part in enumerate(parts) if part is not None)]

    def batches(self) -> Iterator[Rows]:
        """The same with names for the parts of a batch."""
        self._restart()
        beside = ColumnsBeside(self._reading, self._since)
        used = [one.encoder.column for one in self._encoders]
        keep = list(self._reading.keep)
        columns = list(dict.fromkeys([*used, *self._target.columns, *beside.columns, *keep]))
        n_features, n_before = sum(len(one.places) for one in self._encoders), self.n_before
        at_once = self._reading.choose_batch_rows(len(columns), n_features, FIRST_ROWS)
        batches, size = self._source.batches(columns, at_once), self._reading.batch_rows
        for batch, fraction in read_ahead(batches) if self._source.reads_ahead else batches:
            X, numbers = self._numbers(batch)
            kept = batch.select(keep) if keep else None
            rows = Rows(X, numbers, *beside.read(batch, self._cell), kept)
            past = min(max(n_before - self.n_rows_read, 0), batch.num_rows)
            rows = self._usable(rows.select(slice(past, None)) if past else rows, past)
            rows = rows._replace(y=self._target.restore_targets(rows.y))
            self.n_rows_read += batch.num_rows
            self.fraction = fraction
            for start in range(0, len(rows.y), size):
                yield rows if len(rows.y) <= size else rows.select(slice(start, start + size))
        if self.n_rows_read == 0:
            raise explain_empty(self._source.path)

    def _usable(self, rows: Rows, past: int) -> Rows:
        """Rows without missing values, and none too large; ``past`` rows were before the first."""
        if self._policy.means is None and sum_is_usable(rows.X, rows.y):
            return rows

        def place(row: int, column: int) -> str:
            return self._place(row + past, column)

        refuse_too_large(rows.X, rows.y, place)
        holes = self._count_missing(rows)
        self._refuse_missing_levels(rows, place)
        try:
            kept = self._policy.apply(rows.X, rows.y, place)
        except TableError as error:
            if len(holes) > 1:
                error.add_note(
                    f"missing in the {len(rows.y):,} rows from there: {describe_holes(holes)}"
                )
            raise
        self.n_missing.update(holes)
        self.n_left_out.update(self._count_missing(rows))
        return rows if kept is None else rows.select(kept)

    def _refuse_missing_levels(self, rows: Rows, place: Place) -> None:
        """Raise where a level is missing, and means are filled in: numbers of levels have none."""
        for one in self._encoders:
            if self._policy.fills and one.encoder.is_whole:
                bad = np.flatnonzero(np.isnan(rows.X[:, one.places[0]]))
                if len(bad):
                    raise TableError(
                        f"{place(int(bad[0]), one.places[0])} is missing, and a category has no "
                        "mean",
                        [LEAVE_OUT, "or fit a model with missing='level'"],
                        before="; ",
                    )

    def _count_missing(self, rows: Rows) -> dict[str, int]:
        """Count the missing values in each column."""
        if sum_is_usable(rows.X, rows.y):
            return {}
        counts = np.isnan(rows.X).sum(axis=0)
        found = {column: int(counts[place]) for place, (_, column) in enumerate(self._features())}
        for name in self._target.columns:
            found[name] = max(int(np.isnan(rows.y).sum()), found.get(name, 0))
        return {column: count for column, count in found.items() if count}

    def _numbers(self, batch: pa.RecordBatch) -> tuple[Array, Array]:
        """Encode a record batch: X (n, p) C-contiguous, y (n,), with NaN where missing."""
        self._grow(batch)
        X = np.empty((batch.num_rows, sum(len(one.places) for one in self._encoders)))
        for one in self._encoders:
            one.fill(batch.column(one.encoder.column), X)
        y = self._target.numbers(batch, self.n_rows_read)
        return X, y

    def _grow(self, batch: pa.RecordBatch) -> None:
        grown: list[PlacedEncoder] = []
        n_features = sum(len(one.places) for one in self._encoders)
        for one in self._encoders:
            if not (self._growing or one.encoder.is_whole):
                grown.append(one)
                continue
            grown.append(one.grow(batch.column(one.encoder.column), n_features))
            n_features += len(grown[-1].places) - len(one.places)
            if one.names and self._policy.means is not None:
                for name in grown[-1].names[len(one.names) :]:
                    self._policy.means.join(name, one.names[0])
        self._encoders = tuple(grown)

    def _place(self, row: int, column: int) -> str:
        name = self._target.columns[0] if column < 0 else self._features()[column][1]
        return self._cell(row, name)

    def _cell(self, row: int, column: str) -> str:
        where = self._source.row_name(self.n_rows_read + row)
        return f"{self._source.path}: {where}, column {column!r}"


def open_table(
    table: object,
    target: str,
    *,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    time: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
    batch_rows: int = BATCH_ROWS,
    memory: int | str = MEMORY,
    missing: Missing = "error",
    labels: bool = False,
    drop_first: bool = True,
    whole: bool = False,
    dates: Dates = "error",
    levels: Mapping[str, Sequence[str]] | None = None,
    categories: Sequence[str] = (),
    lags: Sequence[int] = (),
    text: TextFormat | None = None,
) -> TableStream:
    r"""Open a table, on disk or of another library, as a stream of numbers.

    A file is never held whole, and read once. Column types are decided on its first megabyte
    (CSV) or taken from its schema. Numbers and booleans are used as they are; text columns are
    categories, one feature for each level, in alphabetical order. The levels are those of the
    *first batch* (the first megabyte of CSV, the first `batch_rows` rows or 8,192 otherwise): at
    most 256, and beyond 20 at most one for every two rows. A level that turns up later gets zeros
    in all of them and is counted in ``unseen_levels``.

    Parameters
    ----------
    table : path, data frame, Arrow table or reader, database cursor, or iterable of these
        Anything with the Arrow stream interface (pandas, Polars, PyArrow, DuckDB), a cursor that
        has run its query (ADBC, sqlite3 and others of PEP 249), or an iterator of tables with the
        same columns. A reader, cursor or iterator can be read only once. The ending of a path says
        what it is: .csv, .tsv, .txt, .jsonl, .ndjson (each also with .gz), .parquet, .pq, .arrow or
        .feather. A folder of such files, or a pattern as ``"rides-*.csv"``, is one table: its files
        in the order of their names, those that begin with . or _ left out. The first line of CSV
        holds the column names; the delimiter is comma, semicolon, tab or bar, whichever of these
        is most frequent in that line. A quoted field may not hold a line break. Each line of JSON
        lines is an object; a key that it lacks is a missing value. A column without a name is
        called "column 3" by its place; it is no feature, unless it is named in ``features``, where
        it is empty or numbers the rows, as the index of a data frame does. What was left out is
        said in ``notes`` of the stream.
    target : str
        Column to predict: numbers, with ``labels`` anything; ``"Surv(time, ended)"``: two ends.
    features : sequence of str, optional
        Columns to use, in this order. All but the target by default.
    drop : sequence of str
        Columns to leave out.
    weight : str, optional
        Column of the rows' weights: numbers from 0 up, none of them missing.
    time : str, optional
        Column of when each row came: numbers, which must not go back, or dates and times, which
        become days since 1970.
    offset, exposure : str, optional
        Columns of what is added to the log rate of a count, and of the time, area or people that
        it comes from, positive numbers; none of them missing. The log of an exposure is an offset,
        and offsets add up. Weights, times, offsets and exposures are no features, unless named in
        ``features``.
    batch_rows : int
        Batches have at most so many rows.
    memory : int or str
        Bytes, or an amount as "512MB" or "2GB", that the batches which are there at once may take:
        where rows are wide, fewer of them are read at a time. What Python and its libraries take,
        and the pages that Arrow unpacks, come on top.
    missing : {"error", "skip", "mean"}, mapping of feature to number, or ColumnMeans
        What a missing value does (an empty field, NA, null, NaN and the like): raise, leave the row
        out, or take the mean of the column over the rows *before* it; a :class:`ColumnMeans` goes
        on with that from table to table. A mapping says what each feature becomes, as in
        ``{"age": 31.2}``; then the order of rows, and of parts of a table, makes no difference.
        With these, rows are left out all the same where the target is missing, or nothing was seen
        yet to take a mean of.
    labels : bool
        Whether the target has labels, for a classifier: y (n,) then holds these.
    drop_first : bool
        Leave out the first level of each category: right when the model has an intercept.
    whole : bool
        Each category is one feature, the number of its level from 1 on, for models that take
        categories themselves; ``whole_categories`` of the stream are their levels, which later
        ones join.
    dates : {"error", "days", "calendar"}
        What becomes of columns of dates, times and durations: refused, for they have no one
        meaning as numbers; days since 1970 (UTC), since midnight, or of length; or hour, weekday
        and month, each a category ("when.hour=7"), those that differ in the first batch, and days
        as well where the dates there never go back.
    levels : mapping of column to levels, optional
        The levels of these columns, in the order of their features, wherever they first come.
        A column of numbers that is named here is one of categories.
    categories : sequence of str
        Columns of numbers, such as codes, that are categories all the same.
    lags : sequence of int
        The target so many rows before, each a feature ("load.lag24"). The first rows, as many as
        the largest lag, are only the past of those after them. Rows are those of the table,
        whether or not they are left out for a missing value.
    text : TextFormat, optional
        How a text file is written: its encoding and separator, lines before the column names,
        numbers, dates, and words for missing values.

    Returns
    -------
    TableStream
        Iterable of (X, y), X (n, p) C-contiguous float64 and y (n,) float64; with weights (X, y,
        weight), with times (X, y, weight or None, time), and with offsets or exposures (X, y,
        weight or None, time or None, offset).

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
    reading = ReadSettings(
        batch_rows=batch_rows,
        memory=memory,
        missing=missing,
        weight=weight,
        time=time,
        offset=offset,
        exposure=exposure,
    )
    if dates not in get_args(Dates):
        raise ValueError(f"dates is {dates!r}: it must be one of {', '.join(get_args(Dates))}")
    how = Encoding(
        drop_first=drop_first,
        whole=whole,
        dates=dates,
        levels=levels,
        categories=(*categories, *(levels or ())),
        holes=is_word(missing, "level"),
        lags=check_lags(lags),
    )
    goal = make_target(target, labels=labels)
    return open_first(open_any(table, text), goal, reading, (features, drop), how)


def open_first(
    source: Source,
    goal: Target,
    reading: ReadSettings,
    columns: tuple[Sequence[str] | None, Sequence[str]],
    how: Encoding,
    *,
    growing: bool = False,
) -> TableStream:
    """A table whose first batch says what its features are; `columns` are to use, and to drop."""
    target = goal.columns[0]
    chosen = select_columns(source, goal.columns, *columns, reading.other_columns, how.lags)
    goal.check(source)
    if how.lags:
        check_numbers(source, target, "target of lags")
    lags = [Lag(target, rows) for rows in how.lags]
    encoders = (*(_choose_encoders(source, chosen, reading, how) if chosen else ()), *lags)
    return TableStream(source, goal, place_encoders(encoders), reading, growing=growing)


def open_rows(
    table: object,
    names: Sequence[str],
    reading: ReadSettings,
    *,
    target: Target | None = None,
    growing: bool = False,
    since: float | None = None,
    text: TextFormat | None = None,
    known: Learned | None = None,
) -> TableStream:
    """Open a table as rows of the features that a model has learned, by their names.

    Without a target, y are the numbers of the rows; ``since`` is the time of the last row that the
    model has learned; ``known`` are the features that it takes as categories. Raises
    :class:`TableError` as :func:`open_table`.
    """
    goal = target or TargetRows()
    source = open_any(table, text)
    goal.check(source)
    encoders = make_learned_encoders(source, names, known or Learned())
    return TableStream(source, goal, encoders, reading, growing=growing, since=since)


def open_any(table: object, text: TextFormat | None = None) -> Source:
    """A source, of a path or of anything that holds a table."""
    if isinstance(table, Source):
        return table
    if isinstance(table, str | os.PathLike):
        return open_source(table, text)
    if text is not None:
        raise ValueError(f"text= is for text files, and this is a {type(table).__name__}")
    return open_tables(table)


def _choose_encoders(
    source: Source, columns: Sequence[str], reading: ReadSettings, how: Encoding
) -> tuple[Encoder, ...]:
    """Encoders as the first batch has them be."""
    at_once = reading.choose_batch_rows(len(columns), len(columns), FIRST_ROWS)
    # A reader that is left open might still be at work when the process ends.
    with closing(source.batches(columns, at_once)) as peek:
        first = next(peek, None)
    if first is None:
        raise explain_empty(source.path)
    return make_encoders(source, columns, first[0], how)
