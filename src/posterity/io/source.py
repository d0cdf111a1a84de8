"""What a table is to its readers: a schema, and record batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

from posterity.io.arrow import pa
from posterity.io.text_format import TextFormat
from posterity.io.unnamed import set_index_aside

# Record batches, each with the share of the file read so far.
Batches = Generator["tuple[pa.RecordBatch, float]", None, None]


class Source(ABC):
    """A table.

    Attributes
    ----------
    path : path or str
        What messages call it.
    schema : Arrow schema
        Decided when the table is opened.
    text : TextFormat
        How it is written, if it is a text file.
    reads_ahead : bool
        Whether batches may be read in a thread of their own.
    reads_again : bool
        Whether it can be read more than once.
    """

    path: Path | str
    schema: pa.Schema
    text = TextFormat()
    reads_ahead = True
    reads_again = True
    # Number of the first row in messages.
    first_row = 1

    @abstractmethod
    def batches(self, columns: Sequence[str], rows: int) -> Batches:
        """Record batches of these columns, each with the share of the file read so far."""

    def row_name(self, row: int) -> str:
        """Return the name of row `row` (the first is 0) for a message."""
        return f"row {row + self.first_row}"

    def texts(self, name: str) -> Iterator[pa.Array]:
        """Yield a column as it is written, in chunks; none where it is not written as text."""
        return iter(())

    @property
    def set_aside(self) -> Mapping[str, str]:
        """Columns that are no features unless asked for, with what is said of them."""
        return set_index_aside(self.schema.names)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out on the way in, in words."""
        return tuple(f"{name!r} {what}: left out" for name, what in self.set_aside.items())
