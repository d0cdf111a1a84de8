"""The report on estimates side by side: arms of an experiment, values of policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posterity.report import charts
from posterity.report.page import Page, table, tag
from posterity.report.validation import About, describe_command


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
    about: About, remarks: Sequence[str], header: Sequence[str], lines: Sequence[EstimateRow]
) -> str:
    """Make a self-contained HTML page about estimates with intervals.

    Parameters
    ----------
    about : About
        Title, target, command.
    remarks : sequence of str
        What they mean, in sentences.
    header : sequence of str
        Headings of the table.
    lines : sequence of EstimateRow

    Returns
    -------
    str
        HTML.

    Raises
    ------
    ModuleNotFoundError
        If vl-convert-python is not installed (the extra ``report``).

    Examples
    --------
    >>> lines = [EstimateRow("B", ("B", "0.1"), 0.1, 0.0, 0.2)]
    >>> page = intervals_report(About(title="Two"), ["B is better."], ("arm", "effect"), lines)
    >>> "<h1>Two</h1>" in page
    True
    """
    page = Page(about.title)
    page.parts.extend(tag("p", line) for line in remarks)
    numbers = table(header, [line.cells for line in lines])
    drawn = [
        {"name": line.name, "value": line.value, "low": line.low, "high": line.high}
        for line in lines
        if np.isfinite([line.value, line.low, line.high]).all()
    ]
    if drawn:
        axis = {"field": "name", "type": "nominal", "title": None, "sort": None}
        value = charts.quantity("value", about.unit)
        ends = charts.quantity("low", about.unit), charts.quantity("high")
        spec = charts.chart(
            "Estimates and their intervals",
            drawn,
            [
                charts.layer("rule", {"y": axis, "x": ends[0], "x2": ends[1]}),
                charts.layer("point", {"y": axis, "x": value}, filled=True, size=80),
            ],
            height=40 * len(drawn) + 40,
        )
        caption = "Each estimate and its interval."
        page.section("Side by side", page.chart(spec, caption, numbers))
    page.section("The numbers", numbers)
    describe_command(page, about)
    return page.html()


__all__ = ["EstimateRow", "intervals_report"]
