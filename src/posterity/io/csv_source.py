"""CSV, plain or gzipped, through Arrow's streaming reader."""

from __future__ import annotations

import gzip
import re
from collections.abc import Generator, Sequence
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


class CsvSource:
    """A text table with column names in its first line; comma, semicolon, tab or bar between."""

    reads_ahead = True

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.path = path
        self._gzipped = path.name.lower().endswith(".gz")
        header = self._first_lines(2)
        if not header[0].strip():
            raise TableError(f"{path}: line 1 is blank; it must hold the column names")
        line = header[0].decode("utf-8", errors="replace")
        self._delimiter = next((mark for mark in ",;\t|" if mark in line), ",")
        n_columns = line.count(self._delimiter) + 1
        if n_columns > MOST_COLUMNS:
            raise TableError(
                f"{path} has about {n_columns:,} columns, and a CSV file may have "
                f"{MOST_COLUMNS:,}: do rows and columns have to change places?"
            )
        self._block = max(_BLOCK, 16 * max(map(len, header)))
        self._invalid_row: Any = None
        try:
            inferred = self._reader(None, None)[1].schema
        except pa.ArrowException as error:
            raise self._explained(error) from error
        except OSError as error:
            raise self._cut_gzip(error) from error
        # A whole number in the first block may be followed by 1.5: every number is a float64. A
        # column that is empty so far may yet turn out to hold numbers.
        self.schema = pa.schema([pa.field(f.name, _settled(f.type)) for f in inferred])

    def batches(self, columns: Sequence[str], rows: int) -> Batches:
        """Record batches, block by block."""
        import pyarrow as pa

        size = self.path.stat().st_size
        try:
            file, reader = self._reader(list(columns), self.schema)
            with file, reader:
                for batch in reader:
                    share = min(file.tell() / size, 1.0)
                    for start in range(0, batch.num_rows, rows):
                        yield batch.slice(start, rows), share
        except pa.ArrowException as error:
            raise self._explained(error) from error
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
            types = {f.name: text if pa.types.is_string(f.type) else f.type for f in schema}
        file = pa.OSFile(str(self.path))
        # One parsing thread is as fast as two here, and knows the row in which it fails.
        reader = pc.open_csv(
            pa.CompressedInputStream(file, "gzip") if self._gzipped else file,
            read_options=pc.ReadOptions(block_size=self._block, use_threads=False),
            parse_options=pc.ParseOptions(delimiter=self._delimiter, invalid_row_handler=keep),
            convert_options=pc.ConvertOptions(
                include_columns=columns, column_types=types, strings_can_be_null=True
            ),
        )
        return file, reader

    def _open(self) -> Any:
        return gzip.open(self.path, "rb") if self._gzipped else self.path.open("rb")

    def _first_lines(self, n: int) -> list[bytes]:
        try:
            with self._open() as file:
                return [file.readline(1 << 24) for _ in range(n)]
        except (EOFError, OSError) as error:
            raise self._cut_gzip(error) from error

    def _explained(self, error: BaseException) -> TableError:
        text = str(error)
        if self._invalid_row is not None:
            return self._ragged()
        if found := _CONVERSION.match(text):
            return self._not_a(*found.groups())
        if "cannot infer number of columns" in text:
            return TableError(f"{self.path} has column names but no rows")
        if "straddling object" in text:
            return TableError(
                f"{self.path} has a row longer than {self._block:,} bytes: is a quote left open?"
            )
        return TableError(f"{self.path} is not well-formed CSV: {text.splitlines()[0]}")

    def _ragged(self) -> TableError:
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
        """Whether the file ends in this text without a newline, as it does when it was cut."""
        if self._gzipped:
            return False
        wanted = text.encode()
        with self.path.open("rb") as file:
            file.seek(max(self.path.stat().st_size - len(wanted), 0))
            return file.read() == wanted

    def _not_a(self, column: str, number: str | None, kind: str, value: str) -> TableError:
        place = "" if number is None else f" in {self.row_name(int(number) - 2)}"
        name = self.schema.names[int(column)]
        wanted = {"double": "numbers", "bool": "true or false"}.get(kind, kind)
        return TableError(
            f"{self.path}: column {name!r} held {wanted} until {value!r}{place}; mend the file, or "
            f"leave the column out (drop=[{name!r}])"
        )

    def _cut_gzip(self, error: BaseException) -> TableError:
        return TableError(
            f"{self.path} is cut off or damaged: gzip cannot unpack it to its end ({error})"
        )


def _settled(inferred: Any) -> Any:
    import pyarrow as pa

    number = pa.types.is_integer(inferred) or pa.types.is_null(inferred)
    return pa.float64() if number else inferred
