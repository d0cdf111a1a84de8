"""Estimates with intervals, as both verbs for decisions print and draw them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posterity.aliases import Document
from posterity.cli.estimates import print_lines
from posterity.cli.group import describe_command
from posterity.cli.pages import write_text
from posterity.cli.reading import Reading
from posterity.cli.tables import name_input
from posterity.cli.text import print_json, print_notes
from posterity.report import About, EstimateRow, intervals_report
from posterity.report.intervals import NamedTable


@dataclass(frozen=True, kw_only=True)
class IntervalSettings(Reading):
    """The options that both verbs have, one field each."""

    file: str
    arm: str
    reward: str
    propensities: str | None
    reward_range: tuple[float, float] | None
    level: float
    report: str | None
    as_json: bool
    quiet: bool
    command: str = field(default_factory=describe_command)


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
    over_time: Sequence[Document] = (),
    along: Sequence[Document] = (),
    unit: str = "",
    tables: Sequence[NamedTable] = (),
) -> None:
    """Print sentences and tables, or a JSON document, and draw the page if there is to be one."""
    file = name_input(settings.file)
    if settings.as_json:
        print_json(document)
    else:
        print_lines(f"{file}: {title}", remarks, header, [line.cells for line in lines])
        for name, head, rows in tables:
            print_lines(f"\n{name}", (), head, rows)
    if page is not None:
        about = About(
            title=f"{os.path.basename(file)}: {title}",
            target=settings.reward,
            command=settings.command,
            settings=[(name, value) for name, value in shown.items() if value],
        )
        text = intervals_report(about, remarks, header, lines, over_time, along, unit, tables)
        write_text(text, page)
    print_notes(notes, quiet=settings.quiet, page=page)
