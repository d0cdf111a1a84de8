"""Values so far from all before them that forecasts leave them out: a sensor's glitches, typos.

A value is one when nothing before it was like it, and it is known when it comes: rows that are
learned one by one and at once leave out the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.forecasting.gaps import carry_forward
from posterity.forecasting.panel import Panel

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Fewest values before an outlier, and values for each outlier that may be left out.
FEWEST_VALUES, VALUES_AN_OUTLIER = 20, 100
# Root mean squares of the steps before that the step to an outlier is beyond, and ranges of the
# values before that it is outside of.
LARGEST_STEPS, LARGEST_RANGES = 20.0, 1.0
# A series is checked value by value if one reaches this share of the limits.
CANDIDATE_SHARE = 0.99


def check_outliers(outliers: Any) -> None:
    """Raise ``ValueError`` unless ``outliers`` is "ignore" or "learn"."""
    if not (isinstance(outliers, str) and outliers in ("ignore", "learn")):
        raise ValueError(
            f'outliers is {outliers!r}: give "ignore" to leave out values that are far from all '
            'others, or "learn" to learn them'
        )


def leave_out_outliers(panel: Panel, outliers: str) -> Panel:
    """The same without the values that are ignored."""
    if outliers == "learn":
        return panel
    found = find_outliers(panel.values, panel.columns)
    if not found.any():
        return panel
    return replace(panel, values=np.where(found, np.nan, panel.values), left_out=found)


def find_outliers(values: Array, columns: Array | None = None) -> Mask:
    """(S, T) which of the values (S, T), NaN where nothing was observed, are outliers.

    Those whose step from the last value is more than 20 times the root mean square of the steps
    before, and that are further outside the range of the values before than that is wide; of large
    positive values also in logarithms. Of two in a row the second is none: the level has moved. At
    most one in a hundred is, and none where most values are as the one before, as in demand that is
    mostly 0. A value whose exogenous ``columns`` (S, T, m) are beyond those of the values before is
    none either: they may say why it is so far.

    Examples
    --------
    >>> y = np.sin(np.arange(60.0))
    >>> y[30], y[40:] = 1e6, y[40:] + 1000.0
    >>> np.flatnonzero(find_outliers(y[None])[0])
    array([30])
    """
    found = np.zeros(values.shape, dtype=bool)
    for number in np.flatnonzero(_may_have_outliers(values)):
        observed = np.flatnonzero(np.isfinite(values[number]))
        own = None if columns is None else columns[number, observed]
        found[number, observed] = find_outliers_one_by_one(values[number, observed], own)
    return found


def find_outliers_one_by_one(values: Array, columns: Array | None = None) -> list[bool]:
    """Flag the outliers among values (n,) of one series, with exogenous ``columns`` (n, m)."""
    explained = np.zeros(len(values), dtype=bool) if columns is None else _find_new(columns)
    found: list[bool] = []
    outliers, moved, last, squares = 0, 0, 0.0, 0.0
    low, high, least = np.inf, -np.inf, np.inf
    for value, new in zip(values.tolist(), explained.tolist(), strict=True):
        learned, after_outlier = len(found) - outliers, bool(found) and found[-1]
        step, width = (value - last if learned else 0.0), LARGEST_RANGES * (high - low)
        outlier = (
            learned >= FEWEST_VALUES
            and not (after_outlier or new)
            and VALUES_AN_OUTLIER * outliers < len(found)
            and 2 * moved > learned
            and step * step * (learned - 1) > LARGEST_STEPS * LARGEST_STEPS * squares > 0.0
            and not low - width <= value <= high + width
            and not (value > high > 0.0 and value / high <= (high / least) ** LARGEST_RANGES)
        )
        found.append(outlier)
        if outlier:
            outliers += 1
        else:
            low, high, last = min(low, value), max(high, value), value
            least = min(least, value) if value > 0.0 else least
            squares += step * step
            moved += step != 0.0
    return found


def _find_new(columns: Array) -> Mask:
    """(n,) whether a row (n, m) has a value beyond those of the rows before."""
    before = columns[:-1]
    above = columns[1:] > np.fmax.accumulate(before, axis=0)
    below = columns[1:] < np.fmin.accumulate(before, axis=0)
    return np.append(np.zeros(min(len(columns), 1), dtype=bool), (above | below).any(axis=1))


def _may_have_outliers(values: Array) -> Mask:
    """(S,) which series have a value far from those before it: the first is an outlier, if any."""
    if values.shape[1] <= FEWEST_VALUES:
        return np.zeros(len(values), dtype=bool)
    observed = np.isfinite(values)
    learned = np.cumsum(observed, axis=1)[:, :-1]
    with np.errstate(invalid="ignore", over="ignore"):
        squares = np.square(np.diff(carry_forward(values), axis=1))
        squares = np.where(np.isnan(squares), 0.0, squares)
        before = np.cumsum(squares, axis=1)[:, :-1]
        far = squares[:, 1:] * (learned[:, 1:] - 1) > CANDIDATE_SHARE * LARGEST_STEPS**2 * before
    return np.asarray((far & (learned[:, 1:] >= FEWEST_VALUES)).any(axis=1))


__all__ = ["check_outliers", "find_outliers", "find_outliers_one_by_one", "leave_out_outliers"]
