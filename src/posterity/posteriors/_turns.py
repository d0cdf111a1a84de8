"""The schedule by which a stream's prior is chosen anew: at certain numbers of rows.

The schedule is the same for every model of so many coefficients, of features that have varied: a
turn after the first row, then each time a third more rows have come, from 8 rows a coefficient on
each time a half more. A feature that was constant until now, and varies, brings a turn of its own
right after its row.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Indices, Mask
from posterity.evidence import RunningScales
from posterity.evidence.columns import mean_squares
from posterity.factor import Factor

ConstantFeatures = tuple[Indices, Array]

# Choosing a prior costs about 30 p^3: with forgetting, this many rows lie between two choices in
# the long run.
LONGEST_STRETCH = 4096
ROWS_A_COEFFICIENT = 64
# A value of a constant feature differs from it if it is further away, relative to it, than this.
RELATIVE_TOLERANCE = 1e-9
FIRST_CHUNK = 64


def find_turns_around(rows: int, p: int, *, forgets: bool) -> tuple[int, int]:
    """The last turn at or before this number of rows (0: none yet), and the next one after it.

    Examples
    --------
    >>> [find_turns_around(rows, 2, forgets=False) for rows in (0, 1, 5, 20)]
    [(0, 1), (1, 2), (5, 6), (17, 25)]
    """
    longest = max(LONGEST_STRETCH, ROWS_A_COEFFICIENT * p) if forgets else math.inf
    last, turn = 0, 1
    while turn <= rows:
        step = max(turn // (3 if turn < 8 * p else 2), min(p // 16, turn), 1)
        if step >= longest:  # what forgets stays as young as this
            turn += (rows - turn) // int(longest) * int(longest)
            return turn, turn + int(longest)
        last, turn = turn, turn + step
    return last, turn


def find_constant_features(
    data: Factor, scales: RunningScales | None, *, intercept: bool
) -> ConstantFeatures:
    """Features that have not varied, and their values: the mean, or 0 without an intercept.

    Before the first row there is no value yet that an intercept could stand for.
    """
    root = data.root
    if intercept and root[0, 0] == 0.0:
        return np.empty(0, dtype=np.intp), np.empty(0)
    if scales is not None:
        pinned, constants = scales.read(intercept=intercept).pinned, scales.mean
        constants = constants if intercept else np.zeros(len(constants))
    else:
        pinned = mean_squares(data, intercept=intercept).pinned
        constants = root[0, 1:] / root[0, 0] if intercept else np.zeros(len(pinned))
    features = np.flatnonzero(pinned)
    return features, constants[features]


def have_moved(X: Array, constants: Array) -> Mask:
    """(n, k) True where the features ``X`` (n, k) differ from the constants they were."""
    with np.errstate(invalid="ignore"):  # what is infinite is refused where it is learned
        return np.abs(X - constants) > RELATIVE_TOLERANCE * np.abs(constants)


def find_last_first_variation(
    X: Array, weights: Array | None, still: ConstantFeatures
) -> tuple[int, int]:
    """Rows until the last of the features that waited varies for the first time; 0: none does.

    And how many of the features still wait after all rows.
    """
    features, constants = still
    first, size, found = 0, FIRST_CHUNK, 0
    while first < len(X) and len(features):
        part = slice(first, first + size)
        moves = have_moved(X[part][:, features], constants)
        if weights is not None:
            moves &= weights[part, None] > 0.0
        began = moves.any(axis=0)
        if began.any():
            found = max(found, first + int(np.argmax(moves, axis=0)[began].max()) + 1)
            features, constants = features[~began], constants[~began]
        first, size = first + size, 2 * size
    return found, len(features)


def count_rows(weights: Array | None, n: int) -> int:
    """Count the rows, of ``n``, that have positive weight."""
    return n if weights is None else int(np.count_nonzero(weights))


def count_rows_until(n: int, weights: Array | None, count: int) -> int:
    """Count the first rows, of ``n``, in which ``count`` weigh something; n if fewer do."""
    if weights is None:
        return min(count, n)
    counted = np.cumsum(weights > 0.0)
    return min(int(np.searchsorted(counted, count)) + 1, n)


def find_last_turn(
    X: Array,
    weights: Array | None,
    clock: NDArray[np.int64],
    p: int,
    still: ConstantFeatures | None,
) -> int:
    """Rows of a batch until the schedule has its last turn in it; 0: none.

    ``clock[0]`` rows were there before, ``p`` is how many coefficients there are. Without ``still``
    nothing was learned yet, and the first row tells what is constant.
    """
    before, counted = int(clock[0]), count_rows(weights, len(X))
    if not counted:
        return 0
    if still is None:
        first = 0 if weights is None else int(np.argmax(weights > 0.0))
        still = np.arange(X.shape[1]), X[first]
    varied, waiting = find_last_first_variation(X, weights, still)
    last, _ = find_turns_around(before + counted, p - waiting, forgets=False)
    scheduled = count_rows_until(len(X), weights, last - before) if last > before else 0
    return max(scheduled, varied)
