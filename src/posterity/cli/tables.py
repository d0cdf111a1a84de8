"""Tables that may come on standard input."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

import click

from posterity.cli.group import describe_command
from posterity.cli.reading import Reading
from posterity.io import TableError, TableStream, open_table
from posterity.io.columns import Dates
from posterity.io.reading import ROLES, take

STANDARD_INPUT = "-"


@dataclass(frozen=True, kw_only=True)
class TableSettings(Reading):
    """Options of verbs that make features of a table, one field each."""

    file: str
    target: str
    features: tuple[str, ...] | None
    drop: tuple[str, ...]
    weight: str | None
    time: str | None = None
    offset: str | None = None
    exposure: str | None = None
    batch_rows: int
    memory: str
    missing: Literal["error", "skip", "mean", "level"]
    dates: Dates
    lags: tuple[int, ...]
    categories: tuple[str, ...]
    category_levels: dict[str, tuple[str, ...]]
    noise_precision: float | None
    quiet: bool

    def open(self, path: str, **others: Any) -> TableStream:
        """The table at the path, where FILE was put; ``others`` go to `open_table` as they are."""
        names = "features", "drop", *ROLES, "batch_rows", "memory", "missing"
        asked = take(self, *names, "dates", "categories", "lags", "text")
        return open_table(path, self.target, **{**asked, "levels": self.category_levels, **others})


@dataclass(frozen=True, kw_only=True)
class ScoreSettings(TableSettings):
    """Options of verbs that score predictions, one field each."""

    levels: tuple[float, ...]
    delay: int
    period: int | None
    slices: tuple[str, ...]
    report: str | None
    as_json: bool
    command: str = field(default_factory=describe_command)


_ENDINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\x1f\x8b": ".csv.gz", b"{": ".jsonl"}


def name_input(file: str) -> str:
    """Return the input's name for messages."""
    return "standard input" if file == STANDARD_INPUT else file


def standard_input() -> BinaryIO:
    """Return the bytes of the standard input; raises ``ValueError`` where there is none."""
    if sys.stdin is None:
        raise ValueError("standard input is closed: give a file, or pipe one in")
    return sys.stdin.buffer


@contextmanager
def table_path(file: str) -> Iterator[str]:
    """Path of a table; standard input is first put on disk, for its columns are looked at twice.

    Errors then speak of standard input.
    """
    if file != STANDARD_INPUT:
        yield file
        return
    stream = standard_input()
    if stream.isatty():
        click.echo("reading CSV from standard input, until Ctrl-D", err=True)
    with tempfile.TemporaryDirectory(prefix="posterity-") as folder:
        start = stream.read(6)
        kinds = (kind for magic, kind in _ENDINGS.items() if start.startswith(magic))
        path = os.path.join(folder, "table" + next(kinds, ".csv"))
        with open(path, "wb") as spooled:
            spooled.write(start)
            shutil.copyfileobj(stream, spooled, 1 << 20)
        try:
            yield path
        except TableError as error:
            raise error.rename(path, "standard input") from error
