"""Triangles without their empty half: row after row, each from its diagonal on."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from posterity import kernel
from posterity.aliases import Array, Indices


def packed(stack: Array) -> Array:
    """The upper halves (n, q (q + 1) / 2) of triangles (n, q, ld).

    Examples
    --------
    >>> triangles = np.zeros((1, 2, 8))
    >>> triangles[0, :2, :2] = [[1.0, 2.0], [0.0, 3.0]]
    >>> packed(triangles)
    array([[1., 2., 3.]])
    >>> bool((unpacked(packed(triangles), 2) == triangles).all())
    True
    """
    n, q, ld = stack.shape
    return np.take(stack.reshape(n, q * ld), places(q, ld), axis=1)


def unpacked(halves: Array, q: int) -> Array:
    """The triangles (n, q, ld) again."""
    ld = kernel.leading_dimension(q)
    stack = np.zeros((len(halves), q, ld))
    stack.reshape(len(halves), q * ld)[:, places(q, ld)] = halves
    return stack


def unpacked_rows(halves: Array, p: int) -> Array:
    """The first p rows (n, p, p + 1) of the triangles of p + 1 rows."""
    rows, first = np.zeros((len(halves), p, p + 1)), 0
    for row in range(p):  # each in one piece: with all places at once, memory is read all over
        last = first + p + 1 - row
        rows[:, row, row:] = halves[:, first:last]
        first = last
    return rows


@lru_cache(maxsize=64)
def places(q: int, ld: int) -> Indices:
    """Return the places of the upper triangle (q, q) in the memory of (q, ld), row by row."""
    rows, columns = np.triu_indices(q)
    return rows * ld + columns
