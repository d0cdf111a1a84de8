"""Dummies of a category among the columns, found in the triangle of the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterity.aliases import Array, Indices, Mask

# Two sums of products are equal but for rounding.
RELATIVE_ROUNDING = 1e-9


class Dummies(NamedTuple):
    """Indices ``columns`` (k,) of neighbours of zeros and ones, of which no row has two 1.

    ``is_whole`` if each row has a 1 in one of them, so that they add up to the intercept.
    """

    columns: Indices
    is_whole: bool


def find_dummies(root: Array) -> list[Dummies]:
    """Find sets of two columns or more in the triangle (p, p) of rows with an intercept.

    Zeros and ones are their own squares, and no two columns of a set have a product. Columns of
    zeros, as of levels that no row has, may stand between.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0, 1.0, 0.0], [1.0, 0.5, 0.0, 1.0], [1.0, 4.0, 1.0, 0.0]])
    >>> find_dummies(rows)
    [Dummies(columns=array([2, 3]), is_whole=True)]
    """
    sums, squares = root[:, 0] @ root, np.square(root).sum(axis=0)
    is_binary = np.abs(sums - squares) <= RELATIVE_ROUNDING * squares
    is_binary &= (squares > 0.0) & (squares < squares[0])
    is_binary[0] = False
    columns = np.flatnonzero(is_binary)
    if len(columns) < 2:
        return []
    shares, part = squares[columns] / squares[0], root[:, columns]
    meet = np.abs(part.T @ part) > RELATIVE_ROUNDING * squares[0]
    others = np.cumsum((squares > 0.0) & ~is_binary)[columns]
    stops = (*(np.flatnonzero(np.diff(others)) + 1).tolist(), len(columns))
    found, start = [], 0
    for stop in stops:
        while start < stop:
            end = _extend(start, stop, shares, meet)
            if end - start > 1:
                whole = bool(shares[start:end].sum() > 1.0 - RELATIVE_ROUNDING)
                found.append(Dummies(columns[start:end], whole))
            start = end
    return found


def find_sums_to_one(root: Array) -> list[Indices]:
    """Sets of columns of zeros and ones of which each row has one 1.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0, 1.0, 0.0], [1.0, 0.5, 0.0, 1.0], [1.0, 4.0, 1.0, 0.0]])
    >>> find_sums_to_one(rows)
    [array([2, 3])]
    """
    return [each.columns for each in find_dummies(root) if each.is_whole]


def _extend(start: int, stop: int, shares: Array, meet: Mask) -> int:
    """Where the set ends that begins here: full, at ``stop``, or at a column that meets one."""
    filled, end = 0.0, start
    while end < stop and filled <= 1.0 - RELATIVE_ROUNDING:
        met = np.flatnonzero(meet[start:end, end])
        if met.size:  # a flag before a category: whoever is not met may belong to what comes
            rest = start + int(met[-1]) + 1
            after = _extend(rest, stop, shares, meet) if rest < end else rest
            is_whole = shares[rest:after].sum() > 1.0 - RELATIVE_ROUNDING
            return rest if is_whole else end
        filled += float(shares[end])
        end += 1
    return end
