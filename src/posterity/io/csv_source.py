"""CSV, plain or gzipped, through Arrow's streaming reader."""

from __future__ import annotations

import gzip
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posterity.io.errors import TableError

# Record batches, each with the share of the file read so far.
Batches = Generator[tuple[Any, float], None, None]

# Arrow's own block size. Column types, and the levels of categories, are decided on the first one.
_BLOCK = 1 << 20
# Arrow takes a fifth of a millisecond for each, before the first row.
MOST_COLUMNS = 50_000
_CONVERSION = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\S+): invalid value '(.*)'",
    re.DOTALL,
)


# A value of a text column that is in the way of numbers, kept with the field for messages.
EXAMPLE = b"example"


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """Format of numbers and dates in a text file.

    Attributes
    ----------
    decimal : str
        What is before the fraction of a number, a point or a comma.
    thousands : str
        What is between the thousands of a number, as in 1.234.567,8; "" for nothing.
    date_format : str
        How dates are written beside 2021-04-30, 2021-04-30 12:00 and 2021-04, in the letters of
        ``strftime``: "%m/%d/%y" for 04/30/21.

    Examples
    --------
    >>> TextFormat(decimal=",", thousands=".").number("1.234,5")
    1234.5
    """

    decimal: str = "."
    thousands: str = ""
    date_format: str = ""

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ValueError(f"decimal must be a point or a comma, got {self.decimal!r}")
        if self.thousands and (len(self.thousands) > 1 or self.thousands in "0123456789+-eE"):
            raise ValueError(f"thousands must be one character, as in '.', got {self.thousands!r}")
        if self.thousands == self.decimal:
            raise ValueError(
                f"thousands and decimal can't both be {self.decimal!r}: give different characters"
            )
        if self.date_format and "%" not in self.date_format:
            raise ValueError(
                f"date_format must contain day, month and year, as in '%d.%m.%Y'; got "
                f"{self.date_format!r}"
            )

    def parsers(self) -> list[Any]:
        """The formats by which Arrow reads times: that given first, then the international ones."""
        import pyarrow.csv as pc

        return [*filter(None, [self.date_format]), pc.ISO8601, "%Y-%m"]

    @property
    def grouped(self) -> re.Pattern[str]:
        """A number, whose thousands may be grouped."""
        mark, point = re.escape(self.thousands), re.escape(self.decimal)
        return re.compile(rf"\s*[-+]?(\d{{1,3}}({mark}\d{{3}})+|\d+)({point}\d+)?\s*")

    def number(self, word: str) -> float:
        """Parse a number; raises ``ValueError`` for other text."""
        if not self.grouped.fullmatch(word):
            raise ValueError(f"{word!r} is not a number")
        return float(word.replace(self.thousands, "").replace(self.decimal, "."))


class CsvSource:
    """A text table with column names in its first line; comma, semicolon, tab or bar between."""

    reads_ahead = True

    def __init__(self, path: Path, text: TextFormat | None = None) -> None:
        import pyarrow as pa

        self.path, self._text = path, text or TextFormat()
        self._gzipped = path.name.lower().endswith(".gz")
        header = self._first_lines(2)
        if not header[0].strip():
            raise TableError(f"{path}: line 1 is blank; it must hold the column names")
        try:
            line = header[0].decode("utf-8")
        except UnicodeDecodeError as error:
            raise TableError(
                f"{path}: line 1 is not UTF-8 (byte {error.start + 1} of the line): save the file "
                "as UTF-8"
            ) from error
        self._delimiter = next((mark for mark in ",;\t|" if mark in line), ",")
        n_columns = line.count(self._delimiter) + 1
        if n_columns > MOST_COLUMNS:
            raise TableError(
                f"{path} has about {n_columns:,} columns, and a CSV file may have "
                f"{MOST_COLUMNS:,}: transpose the table if its rows are columns"
            )
        self._block = max(_BLOCK, 16 * max(map(len, header)))
        self._invalid_row: Any = None
        self._grouped: set[str] = set()
        try:
            first = self._first_batch(None)
            if self._text.thousands:
                words = self._first_batch(first.schema)
                self._grouped = {
                    name for name in words.schema.names if self._writes_grouped_numbers(words, name)
                }
        except pa.ArrowException as error:
            raise self._explain_error(error) from error
        except OSError as error:
            raise self._cut_gzip(error) from error
        # A whole number in the first block may be followed by 1.5: every number is a float64. A
        # column that is empty so far may yet turn out to hold numbers.
        self.schema = pa.schema(
            [self._infer_field(first, place) for place in range(first.num_columns)]
        )

    def batches(self, columns: Sequence[str], rows: int) -> Batches:
        """Record batches, block by block."""
        import pyarrow as pa

        size, done = self.path.stat().st_size, 0
        try:
            file, reader = self._reader(list(columns), self.schema)
            with file, reader:
                for batch in reader:
                    share = min(file.tell() / size, 1.0)
                    numbers = self._remove_thousands_marks(batch, done)
                    done += batch.num_rows
                    for start in range(0, batch.num_rows, rows):
                        yield numbers.slice(start, rows), share
        except pa.ArrowException as error:
            raise self._explain_error(error) from error
        except OSError as error:
            raise self._cut_gzip(error) from error

    def row_name(self, row: int) -> str:
        """The line of the file; blank lines, which are no rows, are counted as lines."""
        with self._open() as file:
            seen = -1
            for number, line in enumerate(file, start=1):
                seen += bool(line.strip(b"\r\n"))
                if seen == row + 1:
                    return f"line {number}"
        return f"row {row + 1}"

    def _reader(self, columns: list[str] | None, schema: Any) -> tuple[Any, Any]:
        import pyarrow as pa
        import pyarrow.csv as pc

        def keep(row: Any) -> str:
            self._invalid_row = row
            return "error"

        types = None
        if schema is not None:
            text = pa.dictionary(pa.int32(), pa.string())
            types = {
                f.name: text if pa.types.is_string(f.type) or f.name in self._grouped else f.type
                for f in schema
            }
        file = pa.OSFile(str(self.path))
        # One parsing thread is as fast as two here, and knows the row in which it fails.
        reader = pc.open_csv(
            pa.CompressedInputStream(file, "gzip") if self._gzipped else file,
            read_options=pc.ReadOptions(block_size=self._block, use_threads=False),
            parse_options=pc.ParseOptions(delimiter=self._delimiter, invalid_row_handler=keep),
            convert_options=pc.ConvertOptions(
                include_columns=columns,
                column_types=types,
                strings_can_be_null=True,
                decimal_point=self._text.decimal,
                timestamp_parsers=self._text.parsers(),
            ),
        )
        return file, reader

    def _first_batch(self, texts: Any) -> Any:
        """The first block; all numbers and text of the schema ``texts`` as text."""
        import pyarrow as pa

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
        raise TableError(f"{self.path} has column names but no rows: give a table with rows")

    def _infer_field(self, first: Any, place: int) -> Any:
        """Name and type of a column, with a value that is no number where it is text."""
        import pyarrow as pa

        field, values = first.schema.field(place), first.column(place)
        if field.name in self._grouped:
            return pa.field(field.name, pa.float64())
        if not pa.types.is_string(field.type):
            return pa.field(field.name, choose_column_type(field.type))
        return describe_text(field, values)

    def _writes_grouped_numbers(self, words: Any, name: str) -> bool:
        """Return True if a column of text holds numbers whose thousands may be grouped."""
        import pyarrow as pa

        values = words.column(name)
        if not pa.types.is_dictionary(values.type):
            return False
        # Arrow's dictionary may hold words of blocks that it has read ahead.
        used = values.dictionary.take(values.indices.unique().drop_null())
        known = [word for word in used.to_pylist() if word]
        return bool(known) and all(self._text.grouped.fullmatch(word) for word in known)

    def _remove_thousands_marks(self, batch: Any, done: int) -> Any:
        """The batch, numbers whose thousands are grouped as numbers; it begins at row ``done``."""
        import pyarrow as pa

        arrays = []
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            if name in self._grouped:
                values = self._convert_to_numbers(pa, name, values, done)
            arrays.append(values)
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _convert_to_numbers(self, pa: Any, name: str, values: Any, done: int) -> Any:
        numbers: list[float | None] = []
        for code, word in enumerate(values.dictionary.to_pylist()):
            try:
                numbers.append(self._text.number(word) if word else None)
            except ValueError:
                row = values.indices.to_pylist().index(code)
                raise TableError(
                    f"{self.path}: column {name!r} held numbers until {word!r} in "
                    f"{self.row_name(done + row)}; correct the file, or leave the column out "
                    f"(drop=[{name!r}])"
                ) from None
        return pa.array(numbers, pa.float64()).take(values.indices)

    def _open(self) -> Any:
        return gzip.open(self.path, "rb") if self._gzipped else self.path.open("rb")

    def _first_lines(self, n: int) -> list[bytes]:
        try:
            with self._open() as file:
                return [file.readline(1 << 24) for _ in range(n)]
        except (EOFError, OSError) as error:
            raise self._cut_gzip(error) from error

    def _explain_error(self, error: BaseException) -> TableError:
        text = str(error)
        if self._invalid_row is not None:
            return self._explain_ragged_line()
        if found := _CONVERSION.match(text):
            return self._explain_wrong_type(*found.groups())
        if "cannot infer number of columns" in text:
            return TableError(f"{self.path} has column names but no rows: give a table with rows")
        if "straddling object" in text:
            return TableError(
                f"{self.path} has a row longer than {self._block:,} bytes: is a quote left open?"
            )
        return TableError(f"{self.path} is not well-formed CSV: {text.splitlines()[0]}")

    def _explain_ragged_line(self) -> TableError:
        row = self._invalid_row
        place = "a row" if row.number is None else self.row_name(row.number - 2)
        text = row.text if len(row.text) <= 60 else row.text[:57] + "..."
        if self._ends_with(row.text):
            return TableError(
                f"{self.path} is cut off in the middle of a row: {place}, the last, has "
                f"{row.actual_columns} of {row.expected_columns} columns ({text!r}); copy it "
                "again, or delete that line"
            )
        return TableError(
            f"{self.path}: {place} has {row.actual_columns} columns where the first line names "
            f"{row.expected_columns} ({text!r})"
        )

    def _ends_with(self, text: str) -> bool:
        """Return True if the file ends in this text without a newline, as when it was cut."""
        if self._gzipped:
            return False
        wanted = text.encode()
        with self.path.open("rb") as file:
            file.seek(max(self.path.stat().st_size - len(wanted), 0))
            return file.read() == wanted

    def _explain_wrong_type(
        self, column: str, number: str | None, kind: str, value: str
    ) -> TableError:
        place = "" if number is None else f" in {self.row_name(int(number) - 2)}"
        name = self.schema.names[int(column)]
        wanted = {"double": "numbers", "bool": "true or false"}.get(kind, kind)
        return TableError(
            f"{self.path}: column {name!r} held {wanted} until {value!r}{place}; correct the "
            f"file, or leave the column out (drop=[{name!r}])"
        )

    def _cut_gzip(self, error: BaseException) -> TableError:
        return TableError(
            f"{self.path} is cut off or damaged: gzip cannot unpack it to its end ({error})"
        )


def describe_text(field: Any, values: Any) -> Any:
    """The field of a column of text, with a value that is in the way of numbers."""
    words = values.drop_null()[:1000].to_pylist()
    odd = next((word for word in words if not _can_read(word)), "")
    return field.with_metadata({EXAMPLE: odd.encode()})


def choose_column_type(inferred: Any) -> Any:
    """The type of a column that Arrow inferred from the first block: every number is a float64."""
    import pyarrow as pa

    number = pa.types.is_integer(inferred) or pa.types.is_null(inferred)
    return pa.float64() if number else inferred


def _can_read(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
