"""Stretches of a stream in which predictions were worse than before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from posterity.aliases import Array, Mask
from posterity.evaluation.stretches import Stretches

# A smaller rise does not matter, however sure it is.
RATIO = 1.05
FEWEST_ROWS = 20
# Share of the stream that must come before a period, to tell what is usual.
SHARE_BEFORE = 0.1
# The spread is that of neighbouring groups, or of parts of the stream if that is larger: so many.
PARTS = 16
# In units of what the best of all places of a window of independent normal values reaches.
STRICTNESS = 1.55


@dataclass(frozen=True)
class DriftPeriod:
    """A range of rows whose predictions were worse than those before.

    Attributes
    ----------
    row_start, row_end : int
        Its first row, and the row after its last; the first of the stream is 0.
    mae : float
        Mean absolute error in it, in units of y.
    usual : float
        Mean absolute error in the rows before it, without earlier periods.
    """

    row_start: int
    row_end: int
    mae: float
    usual: float

    @property
    def ratio(self) -> float:
        """Ratio of the error to the usual one."""
        return self.mae / self.usual if self.usual > 0.0 else float("inf")


def drift_periods(along: Stretches) -> list[DriftPeriod]:
    """Find rows whose errors were larger than those before, beyond chance.

    Of all ranges of rows, that which stands out most is taken, then the next. A range stands out if
    its mean log error exceeds that of the rows before by 1.55 sqrt(2 log(e n / m)) standard errors,
    with m of n rows in it: shorter ranges have more places (Dumbgen and Spokoiny 2001, Ann. Stat.
    29, 124-152). The standard error allows for errors of neighbours that go together, as
    differences of neighbouring parts of the stream tell it (Allan's variance), and no single row
    makes a period.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _find_periods(*_group_neighbours(along))


def _find_periods(rows: Array, absolute: Array, size: Array) -> list[DriftPeriod]:
    if not np.any(size > 0.0):
        return []
    values = np.log(np.maximum(size, 1e-9 * size.max()))
    spread = _estimate_spread(values, rows)
    worse = np.zeros(len(rows), dtype=bool)
    while (window := _find_worst(values, absolute, rows, spread, worse)) is not None:
        worse[slice(*window)] = True
    ends = np.cumsum(rows)
    found = []
    for start, end in np.flatnonzero(np.diff(worse, prepend=False, append=False)).reshape(-1, 2):
        inside, before = slice(start, end), np.flatnonzero(~worse[:start])
        mae = absolute[inside].sum() / rows[inside].sum()
        usual = absolute[before].sum() / rows[before].sum()
        first = int(ends[start] - rows[start])
        found.append(DriftPeriod(first, int(ends[end - 1]), float(mae), float(usual)))
    return found


def _find_worst(
    values: Array,
    absolute: Array,
    rows: Array,
    spread: float,
    worse: Mask,
) -> tuple[int, int] | None:
    """Return the first group of the window that stands out most, and the one after its last."""

    def add_up(each: Array) -> Array:
        return np.concatenate([[0.0], np.cumsum(np.where(worse, 0.0, each))])

    n, total, error = add_up(rows), add_up(rows * values), add_up(absolute)
    known = np.concatenate([[0], np.cumsum(worse)])
    start, end = (n[:, None], n)  # windows (start, end) of groups
    before, inside = start, end - start
    rise = (total - total[:, None]) / inside - total[:, None] / before
    chance = spread * np.sqrt(1.0 / inside + 1.0 / before)
    score = rise / chance - STRICTNESS * np.sqrt(2.0 * np.log(np.e * rows.sum() / inside))
    ratio = (error - error[:, None]) / inside / (error[:, None] / before)
    enough = before >= max(FEWEST_ROWS, SHARE_BEFORE * rows.sum())
    fits = (inside > 0.0) & enough & (known[:, None] == known) & (rise > 0.0) & (ratio > RATIO)
    score = np.where(fits, score, -np.inf)
    best = int(np.argmax(score))
    if not score.flat[best] > 0.0:
        return None
    return best // len(n), best % len(n)


def _estimate_spread(values: Array, rows: Array) -> float:
    """Return the standard deviation of a row's value, as means over many rows have it."""
    n, total = np.insert(np.cumsum(rows), 0, 0.0), np.insert(np.cumsum(rows * values), 0, 0.0)
    found = 0.0
    largest = max(len(rows) // PARTS, 1)
    for size in (2 ** np.arange(largest.bit_length())).tolist():
        if len(rows) < 2 * size + 1:
            break
        first, second = n[size:-size] - n[: -2 * size], n[2 * size :] - n[size:-size]
        means = (total[size:-size] - total[: -2 * size]) / first
        change = (total[2 * size :] - total[size:-size]) / second - means
        squares = np.sort(np.square(change) / (1.0 / first + 1.0 / second))
        # Without the largest eighth: those that a step or a burst makes.
        kept = len(squares) - max(len(squares) // 8, 1)
        share = kept / len(squares)
        q = ndtri(0.5 + 0.5 * share)
        lost = 2.0 * q * np.exp(-0.5 * q * q) / np.sqrt(2.0 * np.pi)
        found = max(found, float(squares[:kept].mean() * share / (share - lost)))
    return float(np.sqrt(found))


def _group_neighbours(along: Stretches) -> tuple[Array, Array, Array]:
    """Rows, sum of absolute errors and size of errors of neighbours joined to 20 rows and more.

    The size is between the mean and the root mean square of the errors but the largest.
    """
    starts, gathered = [0], 0
    for k, n_rows in enumerate(along.n_rows.tolist()):
        if gathered >= FEWEST_ROWS:
            starts.append(k)
            gathered = 0
        gathered += n_rows
    rows = np.add.reduceat(along.n_rows, starts).astype(np.float64)
    absolute = np.add.reduceat(along.n_rows * along.mae, starts)
    squares = np.add.reduceat(along.n_rows * along.rmse**2, starts)
    largest = np.maximum.reduceat(along.max_error, starts)
    others = np.maximum(rows - 1.0, 1.0)
    mean = np.maximum(absolute - largest, 0.0) / others
    square = np.maximum(squares - largest**2, 0.0) / others
    return rows, absolute, np.nan_to_num(np.sqrt(mean) * square**0.25)
