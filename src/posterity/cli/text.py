"""Text for a terminal: neither its control characters nor rich's markup is obeyed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from posterity.safety import escaped


def escape(text: str) -> str:
    """Escape text for rich's console."""
    from rich.markup import escape as without_markup

    return without_markup(escaped(text))


# What numbers need, however narrow a terminal is; and what a file has.
_SMALLEST_WIDTH, _FILE_WIDTH = 72, 1 << 16


def console() -> Any:
    """Standard output: as wide as the terminal, and without a width in a pipe or a file."""
    from rich.console import Console

    shown = Console(highlight=False, soft_wrap=True)
    shown.width = max(shown.width, _SMALLEST_WIDTH) if sys.stdout.isatty() else _FILE_WIDTH
    return shown


def table(first: str, *numbers: str, no_wrap: bool = True) -> Any:
    """A table of names, which fold where there is no room, and numbers, which are never cut.

    Without ``no_wrap`` the other columns are of words as well, which may need several lines.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column(first, overflow="fold")
    for heading in numbers:
        made.add_column(heading, justify="right", no_wrap=no_wrap)
    return made


def print_json(document: object) -> None:
    """Print a document, which has no number that JSON lacks, for other programs."""
    click.echo(json.dumps(document, allow_nan=False))


def print_notes(notes: Iterable[str], *, quiet: bool, page: Path | None = None) -> None:
    """Say on standard error what is to be known, and where the report is, if there is one."""
    if quiet:
        return
    for note in notes:
        click.echo(f"note: {escaped(note)}", err=True)
    if page is not None:
        click.echo(f"The report is in {page}", err=True)
