"""Which series of a panel are like the others: what all series share is learned from these.

A series that was discontinued, has just begun, never changes or is in other units says nothing of
the others. It is found by a few numbers of each series that need no model, as those of which are
too far from the median over series, in median absolute deviations (Rousseeuw and Croux 1993). So it
has no influence on the others, however odd it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Indices, Mask
from posterity.forecasting.gaps import carry_forward

# Spreads from the median beyond which a series is not typical, and spreads that are taken at least,
# of each number below: these are as large as chance makes them in series of some twenty values.
FARTHEST = 6.0
LEAST_SPREADS = np.array([0.25, 1.0, 0.05, 0.25, 0.075, 0.25, 0.1])
# The standard deviation of a normal in median absolute deviations.
NORMAL = 1.4826
# Smallest share of the squared steps that the step before leaves unexplained.
LEAST_LEFT = 1e-24


def find_typical(values: Array, left_out: NDArray[np.int8] | None = None) -> Mask:
    """(S,) which series (S, T), NaN where nothing was observed, are like most of them.

    ``left_out`` (S, T) are values that were observed and are ignored. Where no series ever moved,
    all series are typical.

    Examples
    --------
    >>> series = np.random.default_rng(0).normal(50.0, 5.0, size=(9, 40))
    >>> series[4, 12:] = 0.0
    >>> np.flatnonzero(~find_typical(series))
    array([4])
    """
    outliers = np.zeros(len(values)) if left_out is None else (left_out > 0).sum(axis=1)
    numbers = np.column_stack([describe(values), np.log1p(outliers)])
    known = np.isfinite(numbers).all(axis=1)
    if not known.any():
        return np.ones(len(values), dtype=bool)
    off = np.abs(numbers - np.median(numbers[known], axis=0))
    spreads = np.maximum(NORMAL * np.median(off[known], axis=0), LEAST_SPREADS)
    return known & (np.where(known[:, None], off, np.inf) <= FARTHEST * spreads).all(axis=1)


def describe(values: Array) -> Array:
    """(S, 6) numbers of each series; NaN of series that have no steps, or none that are not 0.

    How many values it has, the root mean square of its steps, the share of steps that are 0, the
    share of values that are distinct, how much larger the root mean square of steps is than their
    mean size, and what is left of them when each is predicted by the one before. All but the share
    of steps are in logarithms.
    """
    known = np.isfinite(values)
    count = known.sum(axis=1)
    if values.shape[1] < 2:
        return np.full((len(values), 6), np.nan)
    filled = carry_forward(values)
    largest = np.nan_to_num(np.abs(filled)).max(axis=1, keepdims=True)
    steps = np.diff(filled / np.where(largest > 0.0, largest, 1.0), axis=1)
    there = known[:, 1:] & np.isfinite(steps)
    steps = np.where(there, steps, 0.0)
    size = np.abs(steps).max(axis=1, keepdims=True)
    steps /= np.where(size > 0.0, size, 1.0)
    n = np.maximum(there.sum(axis=1), 1)
    squares = np.square(steps)
    after, before = steps[:, 1:], steps[:, :-1]
    explained = np.square((after * before).sum(axis=1)) / np.maximum(
        np.square(before).sum(axis=1), LEAST_LEFT
    )
    total = np.maximum(np.square(after).sum(axis=1), LEAST_LEFT)
    root = np.sqrt(squares.sum(axis=1) / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers = np.column_stack(
            [
                np.log(count),
                np.log(root) + np.log(size[:, 0]) + np.log(largest[:, 0]),
                (there & (steps == 0.0)).sum(axis=1) / n,
                np.log(_count_distinct(values) / count),
                np.log(root / (np.abs(steps).sum(axis=1) / n)),
                0.5 * np.log(np.maximum(1.0 - explained / total, LEAST_LEFT)),
            ]
        )
    return np.where((size > 0.0) & (count > 2)[:, None], numbers, np.nan)


def _count_distinct(values: Array) -> Indices:
    """(S,) how many values each row of (S, T) has that are not NaN and differ from each other."""
    ordered = np.sort(values, axis=1)  # NaN come last
    new = np.isfinite(ordered[:, 1:]) & (ordered[:, 1:] != ordered[:, :-1])
    return np.asarray(new.sum(axis=1) + np.isfinite(ordered[:, 0]))
