"""Reports: one HTML page that opens from disk (charts need vl-convert-python, extra `report`)."""

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
