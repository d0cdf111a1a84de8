"""Forget all but the last rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from posterity.aliases import Array, Indices
from posterity.factor import OneStepPredictions, Rows
from posterity.factor.forgetting import slide
from posterity.forgetting.fading import Strategy
from posterity.kernel import RowPath, WindowPath
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.memory import KeptRows, Learned
from posterity.posteriors.mixed import MixedPosterior
from posterity.posteriors.refitted import RefittedWindow


@dataclass(frozen=True)
class Window(Strategy):
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

    keeps_prior: ClassVar[bool] = True
    has_fast_learn_one: ClassVar[bool] = True
    why_not_unlearn = "old rows leave it automatically; fit the rows you want"
    why_not_merge = "it is unknown which rows are the latest; fit all rows in one model"

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
            return super().begin(posterior)
        return MixedPosterior.of(RefittedWindow.before_data(posterior, self))

    def keep_rows(self, n_features: int) -> KeptRows:
        """Where rows are kept, of a posterior without data."""
        return KeptRows.none_of(n_features)

    def learn(self, data: Learned, rows: Rows) -> OneStepPredictions:
        """Learn rows in order in the factor of ``data`` as the window slides over them."""
        kept, n = data.stored_rows, len(rows)
        assert kept is not None
        start = len(kept.X)
        weights = np.ones(n) if rows.weights is None else rows.weights
        times = (kept.times[-1] if start else 0.0) + np.cumsum(rows.elapsed)
        weights, times = np.append(kept.weights, weights), np.append(kept.times, times)
        X = np.concatenate([kept.X, rows.X]) if start else rows.X  # X may bring the intercept's 1
        y = np.concatenate([kept.y, rows.y])
        leave = self.first_kept(times, weights, start)
        every = Rows(X, y, weights, intercept=rows.intercept)
        before = slide(data.factor, data.prior, every, start, leave)
        # Copies: a view would keep expired rows in memory. Times stay near 0.
        last = slice(int(leave[-1]), None)
        kept.X, kept.y = X[last].copy(), y[last].copy()
        kept.weights, kept.times = weights[last].copy(), times[last] - times[-1]
        kept.removed = 0
        return before

    def row_path(self, data: Learned, names: Sequence[str] | None) -> RowPath:
        """The path that learns single rows so, and keeps them."""
        how = data.prior.triangle, data.stored_rows, self.size or 0, self.duration or math.inf
        return data.factor.open_path(WindowPath, data.intercept, names, *how)

    def discounts_of_sums(self, elapsed: Array) -> Array:
        """(n,) what is left in the mean of sums over the rows after each time."""
        return np.exp(-elapsed / float(self.size or self.duration or math.inf))

    def memories(self, n_coefficients: int) -> tuple[tuple[float, int | None], ...]:
        """Return the memories of a forecaster's forms: no discount, and a window."""
        if self.size is None:
            raise ValueError("a forecaster's Window needs a size, in steps, not a duration")
        return ((1.0, int(self.size)),)

    def first_kept(self, times: Array, weights: Array, start: int) -> Indices:
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
