"""Check of values before they are learned: finite, and small enough to work with."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import ddot

from posterity.aliases import Array

# Largest value of a row, times the root of its weight: products of two squares stay finite, and
# such are what learns a prior, or averages, multiplies.
LARGEST = 1e75
# Largest value of a triangle, which has any number of rows, and priors, in it: squares stay finite.
LARGEST_IN_TRIANGLE = 1e150
# Weights between which roots, squares and sums stay far from the ends of double precision.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100
NOT_USABLE = (
    "a value in the rows is not finite, or its square overflows: leave the row out, or use larger "
    "units"
)
# Values checked together: with more, BLAS starts threads, which costs more than it saves.
STRETCH = 8192


def check_usable(*arrays: Array, largest: float = LARGEST_IN_TRIANGLE) -> None:
    """Raise ``FloatingPointError`` unless all values are finite, and none is beyond ``largest``.

    Examples
    --------
    >>> check_usable(np.ones(3), np.array([[1e200]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FloatingPointError: a value in the rows is not finite, or its square overflows: ...
    """
    if not all(_are_within(array, largest) for array in arrays):
        raise FloatingPointError(NOT_USABLE)


def check_rows(X: Any, Y: Array, weights: Array | None = None, *, largest: float = LARGEST) -> None:
    """The same of rows (n, m) and (n,) or (n, k) to learn: of their values as they are weighted.

    Examples
    --------
    >>> check_rows(np.ones((1, 2)), np.array([1e70]), np.array([1e8]))
    >>> check_rows(np.ones((1, 2)), np.array([1e70]), np.array([1e20]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FloatingPointError: a value in the rows is not finite, or its square overflows: ...
    """
    arrays = np.asarray(X), Y
    if weights is None:
        check_usable(*arrays, largest=largest)
        return
    heaviest = max(float(weights.max(initial=0.0)), SMALLEST_WEIGHT)
    if all(_are_within(array, largest / np.sqrt(heaviest)) for array in arrays):
        return
    check_usable(*arrays)  # rows without weight must be numbers, too
    check_usable(*(scale_by_weights(array, weights) for array in arrays), largest=largest)


def check_learned(
    triangle: Array, X: Any, Y: Array, weights: Array | None, *, largest: float
) -> None:
    """The same, of rows and of the triangle that they were learned in.

    A column of a triangle is as long as all that was learned in it. So only where it is long are
    the rows looked at.
    """
    if not _are_within(triangle, largest):
        check_rows(X, Y, weights, largest=largest)
        check_usable(triangle)


def scale_by_weights(values: Array, weights: Array | None) -> Array:
    """``values`` (n,) or (n, k), each times the root of its row's weight (n,)."""
    if weights is None:
        return values
    return values * np.sqrt(weights).reshape(-1, *(1,) * (values.ndim - 1))


def _are_within(array: Array, largest: float) -> bool:
    flat = array.ravel(order="K")
    for start in range(0, flat.size, STRETCH):
        part = flat[start : start + STRETCH]
        # No value is larger than the root of the sum of squares: only if that is too large, or
        # NaN, are the values checked one by one. (BLAS itself does not warn of overflow.)
        if not ddot(part, part) <= largest**2 and not np.abs(part).max() <= largest:
            return False
    return True
