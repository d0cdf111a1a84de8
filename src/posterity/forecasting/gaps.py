"""Values that were not observed, bridged by earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posterity.aliases import Array, Indices

# Fewest pairs of values a lag apart that give their typical distance.
FEWEST_PAIRS = 3


def carry_forward(values: Array) -> Array:
    """(S, T) each NaN replaced by the last value before it.

    Examples
    --------
    >>> carry_forward(np.array([[np.nan, 1.0, np.nan, 3.0]]))
    array([[nan,  1.,  1.,  3.]])
    """
    known = np.isfinite(values)
    if known.all():
        return values
    places = np.where(known, np.arange(values.shape[1]), 0)
    return np.take_along_axis(values, np.maximum.accumulate(places, axis=1), axis=1)


def find_nearest_lags(values: Array, periods: Sequence[int]) -> Indices:
    """(S,) how far back the nearest of values (S, T) are, 1 or a period, where some are missing."""
    best = np.ones(len(values), dtype=np.intp)
    gaps = np.isnan(values[:, 1:]) & np.isfinite(carry_forward(values)[:, :-1])
    some = np.flatnonzero(gaps.any(axis=1))
    if not len(some) or not periods:
        return best
    lags = np.array([1, *periods])
    off = np.full((len(lags), len(some)), np.inf)
    for row, lag in zip(off, lags, strict=True):
        apart = np.abs(values[some, lag:] - values[some, :-lag])
        count = np.isfinite(apart).sum(axis=1)
        total = np.nansum(apart, axis=1)
        row[count >= FEWEST_PAIRS] = total[count >= FEWEST_PAIRS] / count[count >= FEWEST_PAIRS]
    best[some] = lags[off.argmin(axis=0)]
    return best


def bridge_gaps(values: Array, back: Indices) -> Array:
    """(S, T) each NaN replaced by the value ``back`` (S,) steps before, or else the last one.

    Examples
    --------
    >>> bridge_gaps(np.array([[5.0, 1.0, 5.0, np.nan, np.nan]]), np.array([2]))
    array([[5., 1., 5., 1., 5.]])
    """
    filled = carry_forward(values)
    for series in np.flatnonzero(back > 1):
        row, lag = filled[series], back[series]
        for column in np.flatnonzero(np.isnan(values[series])):
            if column >= lag and np.isfinite(row[column - lag]):
                row[column] = row[column - lag]
    return filled
