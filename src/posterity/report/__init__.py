"""Reports: one HTML page that opens from disk (charts need vl-convert-python, extra `report`).

Each function returns the page as text, about one megabyte: the library that draws its charts is in
it. Without vl-convert-python, each raises ``ModuleNotFoundError`` and says how to install it.
:class:`About` has the title, the target, the command and the problems of the data.
"""

from __future__ import annotations

from posterity.report.comparison import comparison_report
from posterity.report.forecast import forecast_report
from posterity.report.intervals import EstimateRow, intervals_report
from posterity.report.lifetimes import survival_report
from posterity.report.survey import ColumnSummaries
from posterity.report.validation import About, validation_report

__all__ = [
    "About",
    "ColumnSummaries",
    "EstimateRow",
    "comparison_report",
    "forecast_report",
    "intervals_report",
    "survival_report",
    "validation_report",
]
