"""JSON lines, plain or gzipped: one object a line, through Arrow's streaming reader."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from posterity.io.arrow import pa
from posterity.io.csv_source import choose_column_type
from posterity.io.errors import Cure, TableError
from posterity.io.source import Batches, Source

# Arrow's own block size. Columns and their types are decided on the first one.
_BLOCK = 1 << 20
_CHANGED = re.compile(r"Column\(/?(.*?)\) changed from (\w+) to (\w+) in row (\d+)", re.DOTALL)
_NAMES = {
    "null": "nothing",
    "boolean": "true or false",
    "number": "a number",
    "string": "text",
    "array": "an array",
    "object": "an object",
}
_PLACE = re.compile(r"JSON parse error: (.*) in row (\d+)", re.DOTALL)


class JsonLinesSource(Source):
    """A table in which each line is an object; a key that a line lacks is a missing value."""

    path: Path

    def __init__(self, path: Path) -> None:
        self.path = path
        self._gzipped = path.name.lower().endswith(".gz")
        try:
            first = self._read_first_batch()
        except pa.ArrowException as error:
            raise self._explain_error(error, 0) from error
        except (EOFError, OSError) as error:
            raise self._explain_gzip(error) from error
        # A whole number in the first block may be followed by 1.5: every number is a float64. A
        # column that is empty so far may yet turn out to hold numbers.
        self.schema = pa.schema(
            [
                _describe_field(field, column)
                for field, column in zip(first.schema, first.columns, strict=True)
            ]
        )

    def batches(self, columns: Sequence[str], rows: int) -> Batches:
        """Record batches, block by block."""
        size, done = self.path.stat().st_size, 0
        schema = pa.schema([self.schema.field(name) for name in columns])
        try:
            file, reader = self._open_reader(schema)
            with file, reader:
                for batch in reader:
                    # Text need not be UTF-8, and would fail where it is read.
                    batch.validate(full=True)
                    # The reader closes the file once it has seen its end.
                    share = 1.0 if file.closed else min(file.tell() / size, 1.0)
                    for start in range(0, batch.num_rows, rows):
                        yield batch.slice(start, rows), share
                    done += batch.num_rows
        except pa.ArrowException as error:
            raise self._explain_error(error, done) from error
        except (EOFError, OSError) as error:
            raise self._explain_gzip(error) from error

    def row_name(self, row: int) -> str:
        """The line of the file; blank lines, which are no rows, are counted as lines."""
        with gzip.open(self.path) if self._gzipped else self.path.open("rb") as file:
            seen = -1
            for number, line in enumerate(file, start=1):
                seen += bool(line.strip())
                if seen == row:
                    return f"line {number}"
        return f"row {row + 1}"

    def _open_reader(self, schema: pa.Schema | None) -> tuple[Any, Any]:
        import pyarrow.json as pj

        file = pa.OSFile(str(self.path))
        parse = pj.ParseOptions() if schema is None else pj.ParseOptions(schema, False, "ignore")
        reader = pj.open_json(
            pa.CompressedInputStream(file, "gzip") if self._gzipped else file,
            read_options=pj.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=parse,
        )
        return file, reader

    def _read_first_batch(self) -> pa.RecordBatch:
        file, reader = self._open_reader(None)
        with file, reader:
            for batch in reader:
                if batch.num_rows and batch.num_columns:
                    batch.validate(full=True)
                    return batch
        raise TableError(f"{self.path} has no rows: give a file with an object in each line")

    def _explain_error(self, error: BaseException, done: int) -> TableError:
        text = str(error).splitlines()[0]
        if found := _CHANGED.search(text):
            name, old, new, row = found.groups()
            place = self.row_name(done + int(row))
            if not name:
                return TableError(
                    f"{self.path}: {place} is not an object but {_NAMES[new]}: write each row as "
                    'a line like {"x": 1.5, "y": 2}'
                )
            return TableError(
                f"{self.path}: column {name!r} held {_NAMES[old]} until {place}, where it "
                f"holds {_NAMES[new]}",
                ["correct the file", Cure("leave the column out ({})", {"drop": [name]})],
                before="; ",
            )
        if found := _PLACE.search(text):
            problem, row = found.groups()
            return TableError(
                f"{self.path}: {self.row_name(done + int(row))} is not JSON, or cut off: {problem}"
            )
        if "straddling object" in text:
            return TableError(
                f"{self.path} has a row longer than {_BLOCK:,} bytes: is a quote or brace left "
                "open? Each row must be one line"
            )
        return TableError(f"{self.path} cannot be read as JSON lines: {text}")

    def _explain_gzip(self, error: BaseException) -> TableError:
        return TableError(
            f"{self.path} is cut off or damaged: gzip cannot unpack it to its end ({error})"
        )


def _describe_field(field: pa.Field, values: pa.Array) -> pa.Field:
    """The field of a column, whose text is a time if all of it can be read as one."""
    if pa.types.is_timestamp(field.type):
        # Fractions of a second may follow.
        return pa.field(field.name, pa.timestamp("us"))
    if not pa.types.is_string(field.type):
        return pa.field(field.name, choose_column_type(field.type))
    for time in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            values.cast(time)
        except pa.ArrowInvalid:
            continue
        return pa.field(field.name, time)
    return field
