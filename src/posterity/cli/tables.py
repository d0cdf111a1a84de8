"""Tables that may come on standard input."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click

from posterity.io import TableError

STANDARD_INPUT = "-"
_ENDINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\x1f\x8b": ".csv.gz"}


def called(file: str) -> str:
    """What messages call it."""
    return "standard input" if file == STANDARD_INPUT else file


def standard_input() -> BinaryIO:
    """Its bytes; raises ``ValueError`` where there is none."""
    if sys.stdin is None:
        raise ValueError("standard input is closed: give a file, or send it one")
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
            raise TableError(str(error).replace(path, "standard input")) from error
