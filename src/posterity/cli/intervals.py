"""Estimates with intervals, as both verbs for decisions print and draw them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import click

from posterity.cli.estimates import print_lines
from posterity.cli.pages import check_page, write_text
from posterity.cli.tables import name_input
from posterity.cli.text import print_note
from posterity.report import About, EstimateRow, intervals_report


class IntervalSettings(Protocol):
    """The options that both verbs have."""

    @property
    def file(self) -> str: ...
    @property
    def reward(self) -> str: ...
    @property
    def report(self) -> str | None: ...
    @property
    def as_json(self) -> bool: ...
    @property
    def quiet(self) -> bool: ...
    @property
    def command(self) -> str: ...


def check_report_path(settings: IntervalSettings) -> Path | None:
    """Return the path of a report, checked before anything is read; None without one."""
    return None if settings.report is None else check_page(settings.report)


def report_intervals(
    settings: IntervalSettings,
    page: Path | None,
    *,
    title: str,
    remarks: Sequence[str],
    header: Sequence[str],
    lines: Sequence[EstimateRow],
    document: Mapping[str, Any],
    shown: Mapping[str, str],
    notes: Sequence[str] = (),
) -> None:
    """Print sentences and a table, or a JSON document, and draw the page if there is to be one."""
    file = name_input(settings.file)
    if settings.as_json:
        click.echo(json.dumps(document, allow_nan=False))
    else:
        print_lines(f"{file}: {title}", remarks, header, [line.cells for line in lines])
    for note in () if settings.quiet else notes:
        print_note(note)
    if page is None:
        return
    about = About(
        title=f"{os.path.basename(file)}: {title}",
        target=settings.reward,
        command=settings.command,
        settings=[(name, value) for name, value in shown.items() if value],
    )
    write_text(intervals_report(about, remarks, header, lines), page)
    if not settings.quiet:
        click.echo(f"The report is in {page}", err=True)


__all__ = ["check_report_path", "report_intervals"]
