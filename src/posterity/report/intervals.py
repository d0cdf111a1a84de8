"""The report on estimates side by side: arms of an experiment, values of policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posterity.aliases import Document
from posterity.report import charts
from posterity.report.page import Html, Page, table, tag
from posterity.report.validation import About, describe_command

# A title, headings, and the cells of each row.
NamedTable = tuple[str, Sequence[str], Sequence[Sequence[str]]]
# Share of the rows from which on intervals are drawn whole.
_LATE = 0.05


@dataclass(frozen=True)
class EstimateRow:
    """One estimate: its name, the cells of its row in the table, and its interval.

    Attributes
    ----------
    name : str
    cells : sequence of str
    value, low, high : float
        Nan or infinite where there is none.
    """

    name: str
    cells: Sequence[str]
    value: float
    low: float
    high: float


def intervals_report(
    about: About,
    remarks: Sequence[str],
    header: Sequence[str],
    lines: Sequence[EstimateRow],
    over_time: Sequence[Document] = (),
    along: Sequence[Document] = (),
    unit: str = "",
    tables: Sequence[NamedTable] = (),
) -> str:
    """Make a self-contained HTML page about estimates with intervals.

    Parameters
    ----------
    about : About
    remarks : sequence of str
        What they mean, in sentences.
    header : sequence of str
        Headings of the table.
    lines : sequence of EstimateRow
    over_time : rows of "rows", "name", "value", "low" and "high", optional
        How the estimates, which are effects, came to be.
    along : rows of "rows", "name", "propensity", "value", "low" and "high", optional
        What each arm of a log earned in parts of it, and how probable it was.
    unit : str
        Of the estimates; default that of the target.
    tables : sequence of (title, headings, rows), optional
        More numbers.

    Examples
    --------
    >>> lines = [EstimateRow("B", ("B", "0.1"), 0.1, 0.0, 0.2)]
    >>> page = intervals_report(About(title="Two"), ["B is better."], ("arm", "effect"), lines)
    >>> "<h1>Two</h1>" in page
    True
    """
    page, unit = Page(about.title), unit or about.unit
    page.parts.extend(tag("p", line) for line in remarks)
    numbers = table(header, [line.cells for line in lines])
    drawn = [
        {"name": line.name, "value": line.value, "low": line.low, "high": line.high}
        for line in lines
        if np.isfinite([line.value, line.low, line.high]).all()
    ]
    if drawn:
        axis = {"field": "name", "type": "nominal", "title": None, "sort": None}
        near = {"zero": not along}  # what policies earn is not compared with 0
        value = charts.quantity("value", unit, scale=near)
        low = charts.quantity("low", unit, axis={"tickCount": 6}, scale=near)
        ends = low, charts.quantity("high", scale=near)
        spec = charts.chart(
            "Estimates and their intervals",
            drawn,
            [
                charts.layer("rule", {"y": axis, "x": ends[0], "x2": ends[1]}),
                charts.layer("point", {"y": axis, "x": value}, filled=True, size=80),
                *([_draw_zero("x")] if over_time else []),
            ],
            height=40 * len(drawn) + 40,
        )
        caption = "Each estimate and its interval."
        page.section("Side by side", page.chart(spec, caption, numbers))
    if over_time:
        page.section("As rows came", _draw_course(page, unit, list(over_time), numbers))
    if along:
        _draw_arms(page, unit, along)
    page.section("The numbers", numbers)
    for title, head, rows in tables:
        page.section(title, table(head, rows))
    describe_command(page, about)
    return page.html()


def _draw_arms(page: Page, unit: str, along: Sequence[Document]) -> None:
    """Probabilities and rewards of arms in parts of a log, where they are known."""
    several = list(dict.fromkeys(str(value["name"]) for value in along))
    x = charts.rows_seen(along[-1]["rows"], "rows")
    for title, unit_shown, fields in (
        ("How probable each arm was", "probability", ("propensity",)),
        ("What each arm earned", unit, ("value", "low", "high")),
    ):
        known = [
            {"rows": row["rows"], "name": row["name"]}
            | {field: row[field] if np.isfinite(row[field]) else None for field in fields}
            for row in along
            if np.isfinite(row[fields[0]])
        ]
        if not known:
            continue
        shown = {field: (field, ".4~g") for field in fields}
        tooltips = charts.tooltip(rows=("decisions", ",.0f"), name=("arm", ""), **shown)
        y = charts.quantity(fields[0], unit_shown)
        curves = charts.curves("name", several, x, y, tooltips, opacity=0.15)
        spec = charts.chart(title, known, curves if len(fields) > 1 else curves[1:])
        cells = [
            [
                f"{row['rows']:,}",
                row["name"],
                *("" if row[f] is None else f"{row[f]:.4g}" for f in fields),
            ]
            for row in known
        ]
        caption = "Means in parts of the log, up to this decision, and the intervals of rewards."
        page.section(title, page.chart(spec, caption, table(("decisions", "arm", *fields), cells)))


def _draw_course(page: Page, unit: str, values: charts.Rows, numbers: Html) -> Html:
    several = list(dict.fromkeys(str(value["name"]) for value in values))
    last = max(value["rows"] for value in values)
    x = charts.rows_seen(last, "rows")
    # Where it happens: the first intervals are many times as wide.
    late = [value for value in values if value["rows"] >= _LATE * last]
    ends = [min(value["low"] for value in late), max(value["high"] for value in late)]
    tooltips = charts.tooltip(
        rows=("rows", ",.0f"), name=("", ""), value=("estimate", ".4~g"),
        low=("from", ".4~g"), high=("to", ".4~g"),
    )  # fmt: skip
    y = charts.quantity("value", unit, scale={"domain": ends})
    layers = [*charts.curves("name", several, x, y, tooltips, opacity=0.15), _draw_zero("y")]
    caption = "Each estimate and its interval, from the first look to the last."
    return page.chart(charts.chart("Estimates as rows came", values, layers), caption, numbers)


def _draw_zero(axis: str) -> charts.Spec:
    return charts.layer("rule", {axis: {"datum": 0}}, color="#777", strokeDash=[2, 2])
