"""Columns that add up to the intercept, found in the triangle of the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Two sums of products are equal but for rounding.
RELATIVE_ROUNDING = 1e-9


def find_sums_to_one(root: Array) -> list[NDArray[np.intp]]:
    """Sets of neighbouring columns of zeros and ones of which each row has one 1.

    ``root`` (p, p) is the triangle of rows whose first column is the intercept's. Zeros and ones
    are their own squares, and no two columns of a set have a product.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0, 1.0, 0.0], [1.0, 0.5, 0.0, 1.0], [1.0, 4.0, 1.0, 0.0]])
    >>> find_sums_to_one(rows)
    [array([2, 3])]
    """
    products = root.T @ root
    sums, squares = products[0], np.diag(products)
    total = squares[0]
    binary = np.abs(sums - squares) <= RELATIVE_ROUNDING * np.abs(squares)
    binary &= (squares > 0.0) & (squares < total)
    sets, first = [], 1
    while first < len(sums):
        last, whole = first, 0.0
        while last < len(sums) and binary[last] and whole < (1.0 - RELATIVE_ROUNDING) * total:
            together = np.abs(products[first:last, last]).max(initial=0.0)
            if together > RELATIVE_ROUNDING * total:
                break
            whole += squares[last]
            last += 1
        if last > first and abs(whole - total) <= RELATIVE_ROUNDING * total:
            sets.append(np.arange(first, last))
            first = last
        else:
            first += 1
    return sets


__all__ = ["find_sums_to_one"]
