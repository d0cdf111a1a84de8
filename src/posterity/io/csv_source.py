"""CSV, plain or gzipped, through Arrow's streaming reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from posterity.io.arrow import pa
from posterity.io.errors import Cure, TableError, explain_empty
from posterity.io.odd_values import (
    Cures,
    find_odd_values,
    suggest_date_format,
    suggest_number_format,
)
from posterity.io.source import Batches, Source
from posterity.io.text_format import TextFormat
from posterity.io.text_stream import TextStream
from posterity.io.unnamed import name_columns, set_columns_aside

# Arrow's own block size. Column types, and the levels of categories, are decided on the first one.
_BLOCK = 1 << 20
# Arrow takes a fifth of a millisecond for each, before the first row.
MOST_COLUMNS = 50_000
_CONVERSION = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\S+): invalid value '(.*)'",
    re.DOTALL,
)
_RAGGED = re.compile(
    r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)", re.DOTALL
)
_SHOWN = 60


class CsvSource(Source):
    """A text table with column names in its first line; comma, semicolon, tab or bar between."""

    path: Path

    def __init__(self, path: Path, text: TextFormat | None = None) -> None:
        self.path, self.text = path, text or TextFormat()
        self._names: list[str] | None = None
        self._grouped: set[str] = set()
        with self._explained():
            self._stream = TextStream(path, self.text)
            header = self._read_header()
            self._delimiter = self.text.separator or max(",;\t|", key=header.count)
            self._refuse_very_wide(header.count(self._delimiter) + 1)
            self._block = max(_BLOCK, 16 * len(header.encode()))
            first = self._first_batch(None)
            self._names = name_columns(first.schema.names)
            self._set_aside = set_columns_aside(first, self._names)
            first = first.rename_columns(self._names)
            if self.text.thousands:
                words = self._first_batch(first.schema)
                self._grouped = {
                    name for name in self._names if self._writes_grouped_numbers(words, name)
                }
        # A whole number in the first block may be followed by 1.5: every number is a float64. A
        # column that is empty so far may yet turn out to hold numbers.
        self.schema = pa.schema([self._choose_field(field) for field in first.schema])

    @property
    def set_aside(self) -> Mapping[str, str]:
        """Columns without a name that are empty, or number the rows."""
        return self._set_aside

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, with the row of totals."""
        total = self._stream.total
        if total is None:
            return super().notes
        return (*super().notes, f"line {total.line} was left out as a total: {total.text!r}")

    def batches(self, columns: Sequence[str], rows: int) -> Batches:
        """Record batches, block by block."""
        self._refuse_undecodable(columns)
        size, done = self.path.stat().st_size, 0
        with self._explained():
            file, reader = self._reader(list(columns), self.schema)
            with file, reader:
                for batch in reader:
                    share = min(file.tell() / size, 1.0)
                    numbers = self._remove_thousands_marks(batch, done)
                    done += batch.num_rows
                    for start in range(0, batch.num_rows, rows):
                        yield numbers.slice(start, rows), share

    def row_name(self, row: int) -> str:
        """The line of the file; blank lines, which are no rows, are counted as lines."""
        return self._stream.row_name(row, before=1)

    def _read_header(self) -> str:
        lines = (line for n, line in enumerate(self._stream.lines()) if n >= self.text.skip_rows)
        first = next(lines, b"")
        if not first.strip():
            number = self.text.skip_rows + 1
            raise TableError(f"{self.path}: line {number} is blank; it must hold the column names")
        try:
            return first.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._explain_encoding(self._find_bytes()) from error

    def _refuse_undecodable(self, columns: Sequence[str]) -> None:
        """Raise for columns that Arrow took for bytes, as they are not UTF-8."""
        for name in columns:
            if pa.types.is_binary(self.schema.field(name).type):
                raise self._explain_encoding(
                    f"column {name!r} holds bytes that are not UTF-8 text: {self._find_bytes()}"
                )

    def _find_bytes(self) -> str:
        """The first place that is not UTF-8."""
        for number, line in enumerate(self._stream.lines(), start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return f"line {number} is not UTF-8 (byte {error.start + 1} of the line)"
        return "a value is not UTF-8"

    def _refuse_very_wide(self, n_columns: int) -> None:
        if n_columns > MOST_COLUMNS:
            raise TableError(
                f"{self.path} has about {n_columns:,} columns, and a CSV file may have "
                f"{MOST_COLUMNS:,}: transpose the table if its rows are columns"
            )

    def _reader(self, columns: list[str] | None, schema: pa.Schema | None) -> tuple[Any, Any]:
        import pyarrow.csv as pc

        types = None
        if schema is not None:
            text = pa.dictionary(pa.int32(), pa.string())
            types = {
                f.name: text if pa.types.is_string(f.type) or f.name in self._grouped else f.type
                for f in schema
            }
        file, stream = self._stream.open()
        # Names that were given to nameless columns replace the line of names.
        named = {"column_names": self._names, "skip_rows_after_names": 1} if self._names else {}
        # One parsing thread is as fast as two here, and knows the row in which it fails.
        reader = pc.open_csv(
            stream,
            read_options=pc.ReadOptions(
                block_size=self._block, use_threads=False, skip_rows=self.text.skip_rows, **named
            ),
            parse_options=pc.ParseOptions(delimiter=self._delimiter),
            convert_options=pc.ConvertOptions(
                include_columns=columns,
                column_types=types,
                strings_can_be_null=True,
                null_values=[*pc.ConvertOptions().null_values, *self.text.na],
                decimal_point=self.text.decimal,
                timestamp_parsers=[*self.text.date_format, pc.ISO8601, "%Y-%m"],
            ),
        )
        return file, reader

    def _first_batch(self, texts: pa.Schema | None) -> pa.RecordBatch:
        """The first block; all numbers and text of the schema ``texts`` as text."""
        schema = texts and pa.schema(
            [
                pa.field(f.name, f.type if pa.types.is_temporal(f.type) else pa.string())
                for f in texts
            ]
        )
        file, reader = self._reader(None, schema)
        with file, reader:
            for batch in reader:
                return batch
        raise explain_empty(self.path)

    def _choose_field(self, field: pa.Field) -> pa.Field:
        if field.name in self._grouped:
            return pa.field(field.name, pa.float64())
        if pa.types.is_date(field.type) and self.text.date_format:
            # A date in the form that was given may yet follow: Arrow reads these as times.
            return pa.field(field.name, pa.timestamp("s"))
        return pa.field(field.name, choose_column_type(field.type))

    def _writes_grouped_numbers(self, words: pa.RecordBatch, name: str) -> bool:
        """Return True if a column of text holds numbers whose thousands may be grouped."""
        values = words.column(name)
        if not pa.types.is_dictionary(values.type):
            return False
        # Arrow's dictionary may hold words of blocks that it has read ahead.
        used = values.dictionary.take(values.indices.unique().drop_null())
        known = [word for word in used.to_pylist() if word]
        return bool(known) and all(self.text.grouped.fullmatch(word) for word in known)

    def _remove_thousands_marks(self, batch: pa.RecordBatch, done: int) -> pa.RecordBatch:
        """The batch, numbers whose thousands are grouped as numbers; it begins at row ``done``."""
        arrays = []
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            if name in self._grouped:
                values = self._convert_to_numbers(name, values, done)
            arrays.append(values)
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _convert_to_numbers(self, name: str, values: pa.Array, done: int) -> pa.Array:
        numbers: list[float | None] = []
        for code, word in enumerate(values.dictionary.to_pylist()):
            try:
                numbers.append(self.text.number(word) if word else None)
            except ValueError:
                row = values.indices.to_pylist().index(code)
                raise self._explain_change(name, "numbers", word, done + row) from None
        return pa.array(numbers, pa.float64()).take(values.indices)

    # ---- errors ----------------------------------------------------------------------------------

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn Arrow's errors into sentences."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise self._explain_encoding(f"the file is not {error.encoding}") from error
        except pa.ArrowException as error:
            raise self._explain_error(str(error)) from error
        except OSError as error:
            raise TableError(
                f"{self.path} is cut off or damaged: gzip cannot unpack it to its end ({error})"
                if self.path.suffix.lower() == ".gz"
                else f"{self.path} cannot be read: {error}"
            ) from error

    def _explain_encoding(self, problem: str) -> TableError:
        other = "latin-1" if self.text.encoding == "utf-8" else "utf-8"
        cures: Cures = [
            Cure("give its encoding, as in {}", {"encoding": other}),
            "save it as UTF-8",
        ]
        return TableError(f"{self.path}: {problem}", cures)

    def _explain_error(self, text: str) -> TableError:
        if found := _RAGGED.match(text):
            return self._explain_ragged_line(*found.groups())
        if found := _CONVERSION.match(text):
            column, number, kind, value = found.groups()
            row = None if number is None else self._row_index(number)
            name = self.schema.names[int(column)]
            return self._explain_change(name, kind, value, row)
        if "invalid UTF8" in text:
            return self._explain_encoding(self._find_bytes())
        if "cannot infer number of columns" in text:
            return explain_empty(self.path)
        if "straddling object" in text:
            return TableError(
                f"{self.path} has a row longer than {self._block:,} bytes: is a quote left open?"
            )
        return TableError(f"{self.path} is not well-formed CSV: {text.splitlines()[0]}")

    def _row_index(self, number: str) -> int:
        """Number of a row from 0; Arrow counts the line of names, and lines before it, from 1."""
        return int(number) - 2 - self.text.skip_rows

    def _explain_ragged_line(
        self, number: str | None, expected: str, actual: str, text: str
    ) -> TableError:
        place = "a row" if number is None else self.row_name(self._row_index(number))
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
        if int(actual) < int(expected) and self._ends_in(place):
            return TableError(
                f"{self.path} is cut off in the middle of a row: {place}, the last, has "
                f"{actual} of {expected} columns ({shown!r}); copy it again, or delete that line"
            )
        return TableError(
            f"{self.path}: {place} has {actual} columns where the first line names {expected} "
            f"({shown!r})"
        )

    def _ends_in(self, place: str) -> bool:
        """Return True if the file ends in this line without a newline, as when it was cut."""
        number, last = 0, b"\n"
        for number, last in enumerate(self._stream.lines(), start=1):  # noqa: B007
            pass
        return place == f"line {number}" and not last.endswith(b"\n")

    def _explain_change(self, name: str, kind: str, value: str, row: int | None) -> TableError:
        """The error for a value of another kind than those before it in its column."""
        is_number = kind in ("double", "numbers")
        usable: Callable[[str], bool] = self.text.reads_number
        suggest = suggest_number_format
        if kind.startswith(("timestamp", "date", "time")):
            usable, suggest = self.text.reads_date, suggest_date_format
        odd = find_odd_values(self.texts(name), usable)
        wanted = "numbers" if is_number else "true or false" if kind == "bool" else "dates or times"
        place = "" if row is None else f" in {self.row_name(row)}"
        cures = [] if odd is None or kind == "bool" else suggest(self.text, odd)
        many = "" if odd is None or kind == "bool" else f"{odd} hold no {wanted}: "
        return TableError(
            f"{self.path}: {many}column {name!r} held {wanted} until {value!r}{place}; correct the "
            "file",
            [Cure("leave the column out ({})", {"drop": [name]}), *cures],
            before=", or ",
        )

    def texts(self, name: str) -> Iterator[pa.Array]:
        """See :class:`Source`."""
        file, reader = self._reader([name], pa.schema([pa.field(name, pa.string())]))
        with file, reader:
            for batch in reader:
                yield batch.column(0)


def choose_column_type(inferred: pa.DataType) -> pa.DataType:
    """The type of a column that Arrow inferred from the first block: every number is a float64."""
    number = pa.types.is_integer(inferred) or pa.types.is_null(inferred)
    return pa.float64() if number else inferred
