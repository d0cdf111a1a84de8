"""Estimates with their intervals, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posterity.cli import text
from posterity.cli.text import escape

_WIDTH = 120


def format_number(value: float) -> str:
    """Four digits; "open" for the end of an interval that has none.

    Examples
    --------
    >>> format_number(0.123456), format_number(float("inf")), format_number(float("nan"))
    ('0.1235', 'open', 'none')
    """
    if np.isnan(value):
        return "none"
    return f"{value:.4g}" if np.isfinite(value) else "open"


def print_lines(
    title: str, remarks: Sequence[str], header: Sequence[str], lines: Sequence[Sequence[str]]
) -> None:
    """Print sentences and a table on standard output."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, _WIDTH)  # numbers that are cut off are none
    console.print(f"[bold]{escape(title)}[/bold]")
    for line in remarks:
        console.print(escape(line))
    filled = [number for number in range(len(header)) if any(cells[number] for cells in lines)]
    table = text.table(*(header[number] for number in filled), no_wrap=False)
    for cells in lines:
        table.add_row(*(escape(cells[number]) for number in filled))
    console.print()
    console.print(table)
