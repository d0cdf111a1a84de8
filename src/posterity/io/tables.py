"""Tables in memory, in databases and in the hands of other libraries, as Arrow record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from posterity.io.arrow import pa
from posterity.io.errors import TableError
from posterity.io.source import Batches, Source

# Rows that are asked of a database cursor at a time.
FETCHED_ROWS = 8192


class TableSource(Source):
    """A table that can be read again: ``read(columns)`` begins a stream of record batches.

    ``rows`` is how many there are, where that is known.
    """

    reads_ahead = False
    first_row = 0  # as positions in a frame are counted

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        read: Callable[[Sequence[str]], Iterable[pa.RecordBatch]],
        rows: int | None = None,
    ) -> None:
        self.path, self.schema = name, schema
        self._read, self._rows = read, rows

    def batches(self, columns: Sequence[str], rows: int) -> Batches:
        """Record batches of ``rows`` rows, but for the last."""
        done = 0
        for batch in rechunk(self._read(columns), columns, rows):
            done += batch.num_rows
            yield batch, min(done / self._rows, 1.0) if self._rows else 0.0


def describe_table(schema: pa.Schema) -> TableSource:
    """A table of which only the columns are known."""
    return TableSource("the table", schema, lambda columns: ())


class SinglePassSource(Source):
    """Record batches that come only once: a reader, a cursor, an iterator of tables.

    The first batch is looked at before any is used, and kept until the second is asked for.
    """

    reads_ahead = False
    first_row = 0  # as positions in a frame are counted
    reads_again = False

    def __init__(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.path, self.schema = name, schema
        self._coming = iter(batches)
        self._chunks: Iterator[pa.RecordBatch] | None = None
        self._first: pa.RecordBatch | None = None
        self._spent = False

    def batches(self, columns: Sequence[str], rows: int) -> Batches:
        """Record batches of ``rows`` rows, but for the last."""
        if self._spent:
            raise TableError(
                f"{self.path} can be read only once, and was read already: give a new one, or a "
                "table that can be read again"
            )
        if self._chunks is None:
            self._chunks = rechunk(self._coming, list(self.schema.names), rows)
            self._first = next(self._chunks, None)
        if self._first is not None:
            yield self._first.select(list(columns)), 0.0
        self._spent, self._first = True, None
        for batch in self._chunks:
            yield batch.select(list(columns)), 0.0


def rechunk(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], rows: int
) -> Iterator[pa.RecordBatch]:
    """The same rows in record batches of ``rows`` rows, the last of what is left."""
    waiting: list[pa.RecordBatch] = []
    n_waiting = 0
    for batch in batches:
        waiting.append(batch.select(list(columns)))
        n_waiting += batch.num_rows
        while n_waiting >= rows:
            whole = _join_parts(waiting)
            yield whole.slice(0, rows)
            rest = whole.slice(rows)
            waiting, n_waiting = [rest], rest.num_rows
    if n_waiting:
        yield _join_parts(waiting)


def _join_parts(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    filled = [batch for batch in batches if batch.num_rows]
    if len(filled) == 1:
        return filled[0]
    table = pa.Table.from_batches(filled).unify_dictionaries().combine_chunks()
    return table.to_batches()[0]


# ---- what there is -------------------------------------------------------------------------------


def open_tables(data: object) -> TableSource | SinglePassSource:
    """A source from whatever holds a table.

    Raises
    ------
    TableError
        For what is no table, an empty stream, and columns whose names are not text.
    """
    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "iloc"):
        return _convert_pandas(data)
    if hasattr(data, "collect"):  # a lazy frame of Polars
        data = data.collect(engine="streaming")
    if hasattr(data, "fetchmany"):
        return _read_cursor(data)
    if isinstance(data, pa.RecordBatchReader):
        return SinglePassSource("the reader", data.schema, data)
    if isinstance(data, pa.Table | pa.RecordBatch):
        table = pa.table(data) if isinstance(data, pa.RecordBatch) else data

        def read(columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
            return table.select(list(columns)).to_batches()

        return TableSource("the table", table.schema, read, table.num_rows)
    if hasattr(data, "__arrow_c_stream__"):
        return _read_stream(data, module)
    if isinstance(data, list | tuple | Iterator):
        return _open_many(data)
    raise TableError(
        f"a {type(data).__name__} is not a table: give a path, a data frame, an Arrow table or "
        "reader, a database cursor, or an iterable of tables; of dicts make a pandas.DataFrame"
    )


def _read_stream(data: Any, module: str) -> TableSource:
    """Read anything that starts an Arrow stream on request: Polars, DuckDB, narwhals."""

    def read(columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
        chosen = data.select(list(columns)) if module == "polars" else data
        return pa.RecordBatchReader.from_stream(chosen)

    kind = type(data).__name__
    head = data.head(0) if module == "polars" else data
    schema = pa.RecordBatchReader.from_stream(head).schema
    rows = len(data) if hasattr(data, "__len__") else None
    return TableSource(f"the {kind}", schema, read, rows)


def _convert_pandas(frame: Any) -> TableSource:
    odd = [name for name in frame.columns if not isinstance(name, str)]
    if odd:
        raise TableError(
            f"column {odd[0]!r} of the data frame has a name that is not text: rename it, as in "
            "frame.columns = frame.columns.astype(str)"
        )
    try:
        schema = pa.Schema.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError) as error:
        raise TableError(
            f"the data frame has a column of mixed types ({error}): convert it to numbers "
            "or to text"
        ) from error

    def read(columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
        chosen = pa.schema([schema.field(name) for name in columns])
        for start in range(0, len(frame), FETCHED_ROWS):
            part = frame[list(columns)].iloc[start : start + FETCHED_ROWS]
            # Not RecordBatch.from_pandas: text that was joined from frames comes in chunks.
            table = pa.Table.from_pandas(part, schema=chosen, preserve_index=False)
            yield from table.combine_chunks().to_batches()

    return TableSource("the data frame", schema, read, len(frame))


def _read_cursor(cursor: Any) -> SinglePassSource:
    """A cursor of Python's database interface (PEP 249) that has run its query."""
    if hasattr(cursor, "fetch_record_batch"):  # ADBC: Arrow all the way
        reader = cursor.fetch_record_batch()
        return SinglePassSource("the query", reader.schema, reader)
    if cursor.description is None:
        raise TableError("the cursor has no rows: execute a query that selects some first")
    names = [column[0] for column in cursor.description]
    rows = cursor.fetchmany(FETCHED_ROWS)
    # Types are those of the first rows; a number that is whole there may have a fraction later.
    kinds = [_choose_column_type(values) for values in _columns(rows, names)]
    schema = pa.schema(list(zip(names, kinds, strict=True)))

    def read() -> Iterator[pa.RecordBatch]:
        fetched, done = rows, 0
        while fetched:
            arrays = [
                _convert_batch(values, field, done)
                for values, field in zip(_columns(fetched, names), schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            done += len(fetched)
            fetched = cursor.fetchmany(FETCHED_ROWS)

    return SinglePassSource("the query", schema, read())


def _columns(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> list[list[Any]]:
    return [[row[i] for row in rows] for i in range(len(names))]


def _choose_column_type(values: list[Any]) -> pa.DataType:
    try:
        kind = pa.array(values).type
    except pa.ArrowException:
        return pa.string() if any(isinstance(value, str) for value in values) else pa.float64()
    numeric = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    return pa.float64() if numeric else kind


def _convert_batch(values: list[Any], field: pa.Field, first_row: int) -> pa.Array:
    try:
        if field.type == pa.float64():
            values = [None if value is None else float(value) for value in values]
        return pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(
            f"column {field.name!r} of the query holds {field.type} at first, and something else "
            f"after row {first_row}: {str(error).splitlines()[0]}; cast it in the query"
        ) from error


def _open_many(tables: Iterable[Any]) -> SinglePassSource:
    """An iterable of tables, frames or record batches, all with the same columns."""
    coming = iter(tables)
    first = next(coming, None)
    if first is None:
        raise TableError("the stream of tables is empty: give at least one table")
    schema = _convert_one(first).schema

    def read() -> Iterator[pa.RecordBatch]:
        for number, data in enumerate(chain([first], coming)):
            table = _convert_one(data)
            try:
                yield from table.select(schema.names).cast(schema).to_batches()
            except (KeyError, ValueError, pa.ArrowException) as error:
                wrong = str(error).splitlines()[0]
                raise TableError(
                    f"table {number} of the stream does not have the columns of the first "
                    f"({wrong}): give all tables the same columns"
                ) from error

    return SinglePassSource("the stream", schema, read())


def _convert_one(data: object) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    source = open_tables(data)
    return pa.Table.from_batches(
        [b for b, _ in source.batches(source.schema.names, FETCHED_ROWS)], schema=source.schema
    )
