"""Columns that vary, but by so little beside their values that they are taken as constant."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# Rows that are looked at first, and how little a column varies in them, beside its values, where
# all of its rows are looked at.
SAMPLE, NEARLY_CONSTANT = 64, 1e-10
PACKAGE = str(Path(__file__).parents[1])


def warn_of_columns_lost(model: BaseEstimator, X: Any) -> None:
    """Warn of columns of the first rows ``X`` (n, m) that vary and have no effect.

    A learned prior holds the coefficient of a column at its mean where the column varies by less
    than 1e-12 of its values: the posterior is that of a column that never varied.
    """
    some = np.asarray(X[:: max(1, len(X) // SAMPLE)], dtype=np.float64)
    if len(X) < 2 or not model._learns_features:
        return
    near = np.ptp(some, axis=0) <= NEARLY_CONSTANT * np.abs(some[0])
    if not (near & (some[0] != 0.0)).any():
        return
    columns = np.asarray(X)
    for j in np.flatnonzero(near & model._posterior.never_varied()):
        low, high = float(columns[:, j].min()), float(columns[:, j].max())
        if low < high:
            name = model._column_names(columns.shape[1])[j]
            warnings.warn(
                f"column {name!r} varies by only {high - low:.3g} around {low:.6g}, which is less "
                "than can be told from rounding: it is taken as constant, and has no effect. "
                f"Subtract a number near {low:.6g} from it before its values become floats, in "
                "whole numbers or as dates",
                stacklevel=find_level_of_user(),
            )


def find_level_of_user() -> int:
    """Return the stack level, as of who calls this, of the line that called the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
