"""The schedule by which the prior of a stream of groups is learned anew: at numbers of rows.

The schedule is the same for all rows of so many directions, whoever learned them and how. A row in
a new direction causes an update of its own.
"""

from __future__ import annotations

import numpy as np

from posterity import kernel
from posterity.aliases import Array, Mask
from posterity.factor import Factor
from posterity.factor.grouped import GroupBank
from posterity.factor.grouped_rows import GroupedRows

FIRST_CHUNK, LONGEST_CHUNK = 64, 65536


def find_updates_around(rows: int, p: int) -> tuple[int, int]:
    """The last update at or before this number of rows (0: none yet), and the next one after it.

    A fourth, from 8 rows a coefficient on half more rows; from 1000 on as many again, and from
    100,000 on twice as many.

    Examples
    --------
    >>> [find_updates_around(rows, 2) for rows in (0, 1, 5, 20, 3000)]
    [(0, 1), (1, 2), (5, 6), (18, 27), (2042, 4084)]
    """
    last, update = 0, 1
    while update <= rows:
        if update >= 1000:
            step = update if update < 100_000 else 2 * update
        else:
            step = max(update // (4 if update < 8 * p else 2), 1)
        last, update = update, update + step
    return last, update


def compute_row_space(bank: GroupBank) -> Factor | None:
    """A factor that spans the rows of all groups; None if they span all directions."""
    p = bank.n_coefficients
    span, first, size = Factor(p), 0, FIRST_CHUNK // max(p, 1) + 1
    while first < bank.size and span.rank < p:
        part = bank.rows(slice(first, first + size))[:, :, :p].reshape(-1, p)
        span.append(np.ascontiguousarray(part), np.zeros((len(part), 1)))
        first, size = first + size, 2 * size
    return None if span.rank == p else span


def find_outside_rows(X: Array, span: Factor, *, intercept: bool) -> Mask:
    """(n,) flags of the rows that are not linear combinations of the rows in the span."""
    return np.isinf(kernel.predict_rows(span.triangle, 1, X, intercept)[1])


def find_new_direction(
    X: Array, span: Factor | None, weights: Array | None = None, *, intercept: bool
) -> tuple[int, Factor | None]:
    """Number of rows of ``X`` up to and including the first in a new direction; 0 if none is.

    Also the directions with it. Rows of weight 0 do not count.
    """
    first, size = 0, FIRST_CHUNK
    while span is not None and first < len(X):
        part = X[first : first + size]
        new = find_outside_rows(part, span, intercept=intercept)
        if weights is not None:
            new &= weights[first : first + size] > 0.0
        if new.any():
            place = int(np.argmax(new))
            span = span.copy()
            row = np.ones((1, span.n_coefficients))
            row[:, int(intercept) :] = part[place]
            span.append(row, np.zeros((1, 1)))
            return first + place + 1, None if span.rank == span.n_coefficients else span
        first, size = first + size, min(2 * size, LONGEST_CHUNK)
    return 0, span


def find_last_new_direction(
    X: Array, span: Factor | None, *, intercept: bool
) -> tuple[int, Factor | None]:
    """Number of rows of ``X`` up to the last in a new direction, and the span after it."""
    found = 0
    while span is not None:
        more, span = find_new_direction(X[found:], span, intercept=intercept)
        if more == 0:
            break
        found += more
    return found, span


def find_stretch(
    rows: GroupedRows, first: int, left: int, span: Factor | None
) -> tuple[int, bool, Factor | None]:
    """The end of the stretch of rows from ``first``: the next update, so many rows later.

    Also whether that is because its last row has a direction that is new, which all groups are to
    know right after; and the directions with it.
    """
    if rows.weights is None:
        stop = min(first + left, len(rows))
    else:
        counted = np.cumsum(rows.weights[first:] > 0.0)
        stop = min(first + int(np.searchsorted(counted, left)) + 1, len(rows))
    weights = None if rows.weights is None else rows.weights[first:stop]
    place, span = find_new_direction(rows.X[first:stop], span, weights, intercept=rows.intercept)
    return (stop, False, span) if place == 0 else (first + place, True, span)


__all__ = [
    "compute_row_space",
    "find_last_new_direction",
    "find_outside_rows",
    "find_stretch",
    "find_updates_around",
]
