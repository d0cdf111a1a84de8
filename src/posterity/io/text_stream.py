"""The bytes of a text file as UTF-8, from its first line of use to its last."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posterity.io.arrow import pa
from posterity.io.text_format import TextFormat

# The start of a row of totals, behind empty fields.
_TOTAL = re.compile(
    r"""[\s"';,|]*((grand |sub)?total(e|s|en|t)?|sum(me|ma|a)?|somme|totaal|gesamt\w*|insgesamt"""
    r"|razem|итого|всего|合计|总计|合計)(?!\w)",
    re.IGNORECASE,
)
_BLANK = re.compile(rb"""[\s"';,|]*""")


def is_total(line: str) -> bool:
    """Return True if a line, or a value, begins as a row of totals does.

    Examples
    --------
    >>> is_total(";Summe;1.234"), is_total("Total 2024"), is_total("Totnes")
    (True, True, False)
    """
    return _TOTAL.match(line) is not None


@dataclass(frozen=True)
class Total:
    """Where rows of totals begin at the end of a file: the byte, the line, and its text."""

    start: int
    line: int
    text: str


class TextStream:
    """A text file, plain or gzipped, in any encoding, that can be read again and again."""

    def __init__(self, path: Path, text: TextFormat) -> None:
        self.path, self._text = path, text
        self.gzipped = path.name.lower().endswith(".gz")
        self.total = self._find_total() if text.drop_total else None

    def open(self) -> tuple[Any, Any]:
        """Return Arrow's file, which tells how much was read, and its bytes in UTF-8."""
        file = pa.OSFile(str(self.path))
        stream = pa.CompressedInputStream(file, "gzip") if self.gzipped else file
        if self._text.encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
            stream = pa.transcoding_input_stream(stream, self._text.encoding, "utf8")
        if self.total is not None:
            stream = pa.PythonFile(_Start(stream, self.total.start), mode="r")
        return file, stream

    def lines(self) -> Iterator[bytes]:
        """The lines, in UTF-8, with those that are skipped."""
        file, stream = self.open()
        with file, io.BufferedReader(stream) as buffered:
            while line := buffered.readline(1 << 24):
                yield line

    def row_name(self, row: int, *, before: int) -> str:
        """The line of a row; blank lines are no rows, and ``before`` lines come before the first.

        Of these, the lines that are skipped count though they are blank.
        """
        seen = -1
        for number, line in enumerate(self.lines(), start=1):
            seen += number <= self._text.skip_rows or bool(line.strip(b"\r\n"))
            if seen == row + before + self._text.skip_rows:
                return f"line {number}"
        return f"row {row + 1}"

    def _find_total(self) -> Total | None:
        """Find rows of totals, and blank ones, behind the last other row."""
        self.total = None
        start, found = 0, None
        for number, line in enumerate(self.lines(), start=1):
            text = line.decode("utf-8", "replace")
            if is_total(text):
                found = found or Total(start, number, text.strip())
            elif not _BLANK.fullmatch(line):
                found = None
            start += len(line)
        return found


class _Start:
    """The first bytes of a stream, as a file for Arrow."""

    closed = False

    def __init__(self, stream: Any, size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(data)
        return data

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True
        self._stream.close()
