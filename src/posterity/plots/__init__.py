"""Figures that say what a model knows (needs Matplotlib)."""

from __future__ import annotations

from posterity.plots.along_time import (
    plot_coverage_along_time,
    plot_error_along_time,
    plot_validation,
)

__all__ = ["plot_coverage_along_time", "plot_error_along_time", "plot_validation"]
