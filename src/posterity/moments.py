"""Sums of powers of values about the means of their groups, which merge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def compute_moments(values: Array, groups: NDArray[np.intp], count: int) -> Array:
    """(5, K) number, mean, and sums of powers 2 to 4 about it, of the values (n,) of each group.

    Examples
    --------
    >>> compute_moments(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), 2).tolist()
    [[2.0, 1.0], [2.0, 5.0], [2.0, 0.0], [0.0, 0.0], [2.0, 0.0]]
    """
    number = np.bincount(groups, minlength=count).astype(np.float64)
    mean = np.bincount(groups, values, count) / np.maximum(number, 1.0)
    off = values - mean[groups]
    square = off * off
    powers = (square, square * off, square * square)
    return np.array([number, mean, *(np.bincount(groups, each, count) for each in powers)])


def merge_moments(one: Array, other: Array) -> Array:
    """The moments of both together (Pebay 2008, eq. 2.1 and 2.7)."""
    n, m = one[0], other[0]
    total = np.maximum(n + m, 1.0)
    step = other[1] - one[1]
    second = one[2] + other[2] + step**2 * n * m / total
    third = one[3] + other[3] + step**3 * n * m * (n - m) / total**2
    third += 3.0 * step * (n * other[2] - m * one[2]) / total
    fourth = one[4] + other[4] + step**4 * n * m * (n**2 - n * m + m**2) / total**3
    fourth += 6.0 * step**2 * (n**2 * other[2] + m**2 * one[2]) / total**2
    fourth += 4.0 * step * (n * other[3] - m * one[3]) / total
    return np.array([n + m, one[1] + step * m / total, second, third, fourth])


def count_effective_errors(moments: Array) -> Array:
    """(K,) squared errors in effect, squared sum over the sum of squares (Kish 1965).

    Where few buy, and all pay alike, the number of buyers.

    Examples
    --------
    >>> values = np.append(np.zeros(997), np.ones(3))
    >>> count_effective_errors(compute_moments(values, np.zeros(1000, dtype=np.intp), 1)).round(1)
    array([3.])
    """
    squares, fourth = moments[2], moments[4]
    ratios = np.square(squares) / np.where(fourth > 0.0, fourth, 1.0)
    return np.asarray(np.where(fourth > 0.0, ratios, 0.0))
