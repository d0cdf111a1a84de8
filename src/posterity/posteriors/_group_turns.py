"""When the prior of a stream of groups is learned anew: at certain numbers of rows.

The schedule is the same for all models of so many coefficients, whoever learned the rows and how. A
row that has a direction that no row had before brings a turn of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from posterity import kernel
from posterity.factor import Factor

Array = NDArray[np.float64]

FIRST_LOOK, LONGEST_LOOK = 64, 65536


def turns_around(rows: int, p: int) -> tuple[int, int]:
    """The last turn at or before this number of rows (0: none yet), and the next one after it.

    A fourth, from 8 rows a coefficient on half more rows; from 1000 on as many again, and from
    100,000 on twice as many.

    Examples
    --------
    >>> [turns_around(rows, 2) for rows in (0, 1, 5, 20, 3000)]
    [(0, 1), (1, 2), (5, 6), (18, 27), (2042, 4084)]
    """
    last, turn = 0, 1
    while turn <= rows:
        if turn >= 1000:
            step = turn if turn < 100_000 else 2 * turn
        else:
            step = max(turn // (4 if turn < 8 * p else 2), 1)
        last, turn = turn, turn + step
    return last, turn


def span_of(rows: Array) -> Factor | None:
    """All directions of the groups' rows (g, p, p + 1); None if there are no others."""
    groups, p, _ = rows.shape
    span = Factor(p)
    stacked = rows.reshape(groups * p, p + 1)
    span.append(stacked[:, :p], np.zeros((groups * p, 1)))
    return None if span.rank == p else span


def find_new_directions(X: Array, span: Factor, *, intercept: bool) -> NDArray[np.bool_]:
    """(n,) which rows have a direction that is not in the span."""
    return np.isinf(kernel.predict_rows(span.triangle, 1, X, intercept)[1])


def opened(
    X: Array, span: Factor | None, weights: Array | None = None, *, intercept: bool
) -> tuple[int, Factor | None]:
    """Rows of ``X`` up to the first that has a direction that is new, it included; 0: none has.

    Also the directions with it. Rows of weight 0 do not count.
    """
    first, size = 0, FIRST_LOOK
    while span is not None and first < len(X):
        part = X[first : first + size]
        new = find_new_directions(part, span, intercept=intercept)
        if weights is not None:
            new &= weights[first : first + size] > 0.0
        if new.any():
            place = int(np.argmax(new))
            span = span.copy()
            row = np.ones((1, span.n_coefficients))
            row[:, int(intercept) :] = part[place]
            span.append(row, np.zeros((1, 1)))
            return first + place + 1, None if span.rank == span.n_coefficients else span
        first, size = first + size, min(2 * size, LONGEST_LOOK)
    return 0, span


def last_opening(X: Array, span: Factor | None, *, intercept: bool) -> tuple[int, Factor | None]:
    """Rows of ``X`` up to the last that has a direction that is new, and all directions then."""
    found = 0
    while span is not None:
        more, span = opened(X[found:], span, intercept=intercept)
        if more == 0:
            break
        found += more
    return found, span


__all__ = ["find_new_directions", "last_opening", "opened", "span_of", "turns_around"]
