"""Forget all but the last rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.refitted import RefittedPosterior
from posterity.posteriors.window import WindowPosterior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Window:
    """Use exactly the last rows, and none before them.

    Gaussian rows that leave are rotated out; where that would lose digits, as after a row of
    enormous leverage, and once a window's length anyway, the window is built anew from its rows,
    which it keeps. Under any other likelihood, and with noise that depends on the features, the
    rows in the window are fitted anew: for each row of ``predict_then_learn``, and once for every
    other call.

    Parameters
    ----------
    size
        Number of rows.
    duration
        Length of time, instead: rows older than this have left. Needs ``times=`` to mean anything
        else than rows.

    Examples
    --------
    >>> Window(size=500).size
    500
    """

    size: int | None = None
    duration: float | None = None

    def __post_init__(self) -> None:
        if (self.size is None) == (self.duration is None):
            raise ValueError(
                "Window needs either a size, in rows, or a duration: give one, as in "
                "Window(size=500)"
            )
        if self.size is not None and (self.size != int(self.size) or self.size < 1):
            raise ValueError(f"size is {self.size}: it must be a whole number of rows, at least 1")
        if self.duration is not None and not 0.0 < self.duration < math.inf:
            raise ValueError(f"duration is {self.duration}: it must be positive and finite")

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one without data."""
        if posterior.rows_leave_no_trace:
            return posterior.with_change(lambda data: WindowPosterior.wrap(data, self))
        return RefittedPosterior.wrap(posterior, self)

    def discounts_of_sums(self, elapsed: Array) -> Array:
        """(n,) what is left in the mean of sums over the rows after each time."""
        return np.exp(-elapsed / float(self.size or self.duration or math.inf))

    def memories(self, n_coefficients: int) -> tuple[tuple[float, int | None], ...]:
        """Return the memories of a forecaster's forms: no discount, and a window."""
        if self.size is None:
            raise ValueError("a forecaster's Window needs a size, in steps, not a duration")
        return ((1.0, int(self.size)),)

    def of_rows(self, share: float) -> Window:
        """The same where an observation has so many times as many rows."""
        return self if self.size is None else replace(self, size=round(share * self.size))

    def first_kept(self, times: Array, weights: Array, start: int) -> NDArray[np.intp]:
        """First row in the window at each of rows start..n, and after the last of them.

        ``times`` and ``weights`` (n,) are those of all rows, kept and new. A row is predicted from
        the rows before it that are at most ``size`` rows or ``duration`` old; rows of weight 0 do
        not count.
        """
        if self.size is not None:
            counted = weights > 0.0
            before = np.concatenate([[0], np.cumsum(counted)])[start:]
            places = np.append(np.flatnonzero(counted), len(weights))
            full = before > self.size
            return np.where(full, places[np.where(full, before - self.size, 0)], 0).astype(np.intp)
        assert self.duration is not None
        now = np.append(times[start:], times[-1])
        kept = np.searchsorted(times, now - self.duration, side="left")
        return np.minimum(kept, np.arange(start, len(times) + 1)).astype(np.intp)
