"""Files as Arrow record batches: names of rows, and errors, by format."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from posterity.io.arrow import pa
from posterity.io.csv_source import CsvSource
from posterity.io.errors import Cure, TableError
from posterity.io.json_source import JsonLinesSource
from posterity.io.source import Batches, Source
from posterity.io.text_format import TextFormat

# Bytes that Arrow reads of a column at a time, and of all columns together.
_BUFFER, _BUFFERS = 1 << 18, 1 << 26


class ParquetSource(Source):
    """An Apache Parquet file, read row group by row group."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - 4, 0))
            if file.read() != b"PAR1":
                raise TableError(
                    f"{path} begins as Parquet but has no footer, and is probably truncated: "
                    "write or copy it again"
                )
        try:
            with pq.ParquetFile(path) as file:
                self.schema, self._n_rows = file.schema_arrow, file.metadata.num_rows
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                f"{path} cannot be read as Parquet ({_get_first_line(error)}): write it "
                "anew, or check its ending"
            ) from error

    def batches(self, columns: Sequence[str], rows: int) -> Batches:
        """Record batches, row group by row group."""
        import pyarrow.parquet as pq

        done = 0
        buffer = max(min(_BUFFER, _BUFFERS // max(len(columns), 1)), 1 << 14)
        try:
            # As it comes, Arrow reads whole row groups into memory; a buffer bounds that.
            with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=buffer) as file:
                for batch in file.iter_batches(rows, columns=list(columns)):
                    done += batch.num_rows
                    # Parquet gives the columns in the file's order, not in the order asked for.
                    yield batch.select(list(columns)), done / max(self._n_rows, 1)
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                f"{self.path} is damaged after row {done}: {_get_first_line(error)}"
            ) from error


class ArrowSource(Source):
    """An Arrow IPC (Feather) file, read record batch by record batch.

    It is not mapped into memory: a file that becomes shorter meanwhile would end the process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
                self.schema = reader.schema
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                f"{path} cannot be read as Arrow: {_get_first_line(error)}; it may be "
                "truncated, so write or copy it again"
            ) from error

    def batches(self, columns: Sequence[str], rows: int) -> Batches:
        """Slices of the file's own record batches."""
        places = [self.schema.get_field_index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=sorted(set(places)), use_threads=False)
        size = Path(self.path).stat().st_size
        try:
            with (
                pa.OSFile(str(self.path)) as file,
                pa.ipc.open_file(file, options=options) as reader,
            ):
                for i in range(reader.num_record_batches):
                    batch = reader.get_batch(i).select(list(columns))
                    # Arrow does not notice a buffer that the file's end cut short.
                    if Path(self.path).stat().st_size < size:
                        raise OSError("the file became shorter while it was read")
                    # An offset that points outside its buffer would crash whoever follows it.
                    batch.validate(full=True)
                    for start in range(0, batch.num_rows, rows):
                        yield batch.slice(start, rows), (i + 1) / reader.num_record_batches
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                f"{self.path} is damaged ({_get_first_line(error)}): write it anew"
            ) from error


_CSV_ENDINGS = (".csv", ".tsv", ".txt")
_JSON_ENDINGS = (".jsonl", ".ndjson")
_ENDINGS: dict[str, tuple[str, Callable[..., Source]]] = {
    **dict.fromkeys(_CSV_ENDINGS, ("CSV", CsvSource)),
    **{ending + ".gz": ("gzip", CsvSource) for ending in _CSV_ENDINGS},
    **dict.fromkeys(_JSON_ENDINGS, ("JSON lines", JsonLinesSource)),
    **{ending + ".gz": ("gzip", JsonLinesSource) for ending in _JSON_ENDINGS},
    **dict.fromkeys((".parquet", ".pq"), ("Parquet", ParquetSource)),
    **dict.fromkeys((".arrow", ".feather"), ("Arrow", ArrowSource)),
}
_MAGIC = {
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip or Excel",
    b"\x89HDF": "HDF5",
    b"{": "JSON lines",
}


def find_ending(file: Path) -> str | None:
    """The ending that says what a file is, if it has one of those."""
    endings = sorted(_ENDINGS, key=len, reverse=True)
    return next((ending for ending in endings if file.name.lower().endswith(ending)), None)


def open_file(path: str | os.PathLike[str], text: TextFormat | None = None) -> Source:
    """Open a table by its ending, once its first bytes agree with it.

    ``text`` says how numbers and dates are written, where it is a text file.

    Raises
    ------
    TableError
        Unknown ending, no such file, an empty file, or content that is not what the ending says.
    """
    file = Path(path)
    ending = find_ending(file)
    if ending is None:
        raise TableError(
            f"{file}: unknown ending; give a file that ends in one of {', '.join(sorted(_ENDINGS))}"
        )
    try:
        mode = file.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # it would wait for its writer for ever
            raise TableError(
                f"{file} is no file but a pipe or a device: give - and pipe the rows in, or write "
                "them to a file"
            )
        with file.open("rb") as opened:
            start = opened.read(4096)
    except FileNotFoundError:
        raise TableError(f"{file}: no such file; check the path") from None
    except OSError as error:
        raise TableError(f"{file} cannot be opened: {error.strerror}") from error
    if not start:
        raise TableError(f"{file} is empty: give a file with rows")
    promised, source = _ENDINGS[ending]
    found = next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)
    if found is None:
        encoding = "utf-8" if text is None else text.encoding
        found = "CSV" if "\0" not in start.decode(encoding, "ignore") else "binary"
    if found == "binary" and start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{file} is UTF-16", [Cure("give {}", {"encoding": "utf-16"})])
    if found != promised:
        raise TableError(
            f"{file} has the wrong ending: {ending} means {promised}, but the content is "
            f"{_add_article(found)}; rename it or convert it"
        )
    return CsvSource(file, text) if source is CsvSource else source(file)


def _add_article(found: str) -> str:
    return {"CSV": "text", "binary": "binary data", "zip or Excel": "a zip or Excel file"}.get(
        found, found
    )


def _get_first_line(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".")
