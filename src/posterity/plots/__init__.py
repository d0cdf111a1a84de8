"""Figures of posteriors and predictions (needs Matplotlib).

Each function draws on the axes that ``ax`` gives, or on new ones, and returns them. Those with
several panels return a figure that pyplot does not know: save it with its ``savefig``. Without
Matplotlib, each raises ``ModuleNotFoundError`` and says how to install it.
"""

from __future__ import annotations

from posterity.plots.along_time import (
    plot_coverage_along_time,
    plot_error_along_time,
    plot_validation,
)
from posterity.plots.calibration import plot_calibration, plot_coverage_by_slice, plot_pit
from posterity.plots.checks import plot_changepoints, plot_coefficients_along_time, plot_residuals
from posterity.plots.differences import plot_differences
from posterity.plots.effects import plot_groups, plot_partial_effect
from posterity.plots.explanation import plot_explanation
from posterity.plots.forecast_checks import plot_autocorrelation, plot_coverage_by_step, plot_forms
from posterity.plots.forecasts import plot_components, plot_forecast
from posterity.plots.intervals import plot_intervals
from posterity.plots.models import plot_evidence
from posterity.plots.posterior import plot_coefficients, plot_posterior_density
from posterity.plots.predictions import plot_predictions, plot_sampled_lines

__all__ = [
    "plot_autocorrelation",
    "plot_calibration",
    "plot_changepoints",
    "plot_coefficients",
    "plot_coefficients_along_time",
    "plot_components",
    "plot_coverage_along_time",
    "plot_coverage_by_slice",
    "plot_coverage_by_step",
    "plot_differences",
    "plot_error_along_time",
    "plot_evidence",
    "plot_explanation",
    "plot_forecast",
    "plot_forms",
    "plot_groups",
    "plot_intervals",
    "plot_partial_effect",
    "plot_pit",
    "plot_posterior_density",
    "plot_predictions",
    "plot_residuals",
    "plot_sampled_lines",
    "plot_validation",
]
