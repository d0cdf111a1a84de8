"""By how much the level of a series has moved at its steps: what came before is brought to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Indices
from posterity.forecasting.panel import STEP

# Values in the level before a step without seasons, seasons that say what a place is, and values
# after the step that say how far it went: the more of them, at most, the longer a season is.
LEVEL, SEASONS, AFTER = 5, 3, 8
# Most steps of a series whose levels last.
MOST_STEPS = 2
# Variance of a median of normals over that of their mean.
MEDIAN = 0.5 * np.pi


@dataclass(frozen=True, eq=False)
class Moves:
    """What levels (S, T) have ``moved`` by: how much higher they were than they are now.

    The last step of a series was at column ``last`` (S,), and the standard error of how far it
    went is ``error`` (S,); -1 and 0 of series without one.
    """

    moved: Array
    last: Indices
    error: Array

    @classmethod
    def of(
        cls,
        values: Array,
        left_out: NDArray[np.int8] | None,
        known: int,
        periods: Sequence[int] = (),
    ) -> Moves:
        """Measure the steps in the first ``known`` columns of values (S, T), on any scale.

        Each is the median by which values after it are off from the level and the season before it.
        A series that has moved more often, as up and down every night, has no level that lasts.
        """
        n = len(values)
        found = cls(np.zeros(values.shape), np.full(n, -1, dtype=np.intp), np.zeros(n))
        if left_out is None:
            return found
        count = (left_out[:, :known] >= STEP).sum(axis=1)
        for series in np.flatnonzero((count > 0) & (count <= MOST_STEPS)):
            own = values[series, :known].copy()
            places = np.flatnonzero(left_out[series, :known] >= STEP)
            back = left_out[series, places] - STEP
            steps = places - back
            for place, step, stop in zip(places, steps, [*steps[1:], known], strict=True):
                change, error = _measure(own[:stop], step, periods)
                own[:step] += change
                found.moved[series, : step + (step == place)] -= change
                found.last[series], found.error[series] = place, error
        return found

    def find_at(self, steps: Indices) -> Array:
        """(n, S, h) what levels have moved by at these steps (n, h); 0 beyond the end."""
        known = steps < self.moved.shape[1]
        some = self.moved[:, np.where(known, steps, 0)].swapaxes(0, 1)
        return np.where(known[:, None], some, 0.0)

    def find_errors(self, columns: Indices) -> Array:
        """(n S,) standard errors of the level at each of these columns: of steps before it."""
        return np.where(self.last < columns[:, None], self.error, 0.0).reshape(-1)


# ---- inner ---------------------------------------------------------------------------------------


def _measure(values: Array, step: int, periods: Sequence[int]) -> tuple[float, float]:
    """By how much the level of values (T,) has changed at a step, and the standard error of that.

    From the last of the shortest season, or the last values, less what the longest season that was
    seen twice has there. 0 where nothing is known yet.
    """
    m = min(periods, default=1)
    later = step + 1 + np.flatnonzero(np.isfinite(values[step + 1 :]))[: max(m, AFTER)]
    width = m if 1 < m <= step else LEVEL
    season = max((period for period in periods if 2 * period <= step), default=width)
    starts = range(step - season, max(step - SEASONS * season, 0) - 1, -season)
    cycles = np.array([values[start : start + season] for start in starts])
    if not len(later) or not cycles.size or not np.isfinite(cycles[0, -width:]).any():
        return 0.0, 0.0
    known = np.isfinite(cycles)
    levels = np.nansum(cycles, axis=1) / np.maximum(known.sum(axis=1), 1)
    off = np.where(known, cycles - levels[:, None], 0.0)
    place = off.sum(axis=0) / np.maximum(known.sum(axis=0), 1) * (width == m)
    level = np.nanmean((cycles[0] - place)[-width:])
    changes = values[later] - level - place[(later - step) % season]
    before = (off - place)[known]
    variance = np.square(before).sum() / max(before.size - season * (width == m) - 1, 1)
    after = changes.var(ddof=1) if len(later) >= SEASONS else variance
    error = np.sqrt(MEDIAN * after / len(later) + variance / width)
    return float(np.median(changes)), float(error)
