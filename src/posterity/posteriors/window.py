"""A posterior of the last rows only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Before, Rows
from posterity.factor.forgetting import slide
from posterity.noise import Distribution
from posterity.posteriors.gaussian import LinearPosterior

Array = NDArray[np.float64]


class Keeping(Protocol):
    """Which rows a window keeps: posterity.forgetting.Window."""

    def first_kept(self, times: Array, weights: Array, start: int) -> NDArray[np.intp]:
        """First row in the window at each of rows start..n, and after the last of them."""


@dataclass
class KeptRows:
    """The rows in the window, old to new, and when they came."""

    X: Array
    y: Array
    weights: Array
    times: Array


@dataclass(frozen=True)
class WindowPosterior(LinearPosterior):
    """A posterior that has seen the prior and the rows in its window, which it keeps."""

    strategy: Keeping
    kept: KeptRows = field(repr=False)

    forgets: ClassVar[bool] = True
    learns_lean: ClassVar[bool] = False

    @classmethod
    def around(cls, posterior: LinearPosterior, strategy: Keeping) -> Self:
        """Take over what a posterior that has seen nothing believes."""
        n_features = posterior.n_coefficients - int(posterior.intercept)
        nothing = KeptRows(np.empty((0, n_features)), np.empty((0, 1)), np.empty(0), np.empty(0))
        return cls(
            posterior.belief,
            posterior.noise,
            posterior.intercept,
            posterior.prior,
            posterior.factor,
            strategy,
            nothing,
        )

    def copy(self) -> Self:
        """The same knowledge, to go its own way."""
        return replace(self, factor=self.factor.copy(), kept=replace(self.kept))

    def become(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        super().become(other)
        self.kept.__dict__.update(other.kept.__dict__)

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        self._slide(X, y, weights, elapsed)

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Distribution:
        """Learn row after row; returns the distribution of each target before its row."""
        return self._told(self._slide(X, y, weights, elapsed), y)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Refuse: rows leave a window by themselves."""
        raise ValueError(
            "can't unlearn rows under Window: rows leave it by themselves; fit the rows you want"
        )

    def merge(self, other: Self) -> None:
        """Refuse: two windows over different rows are no window."""
        raise ValueError(
            "can't merge models under Window: which of the rows are the last is not known"
        )

    def _slide(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> Before:
        kept = self.kept
        start = len(kept.X)
        now = kept.times[-1] if start else 0.0
        new = np.ones(len(X)) if weights is None else weights
        weights = np.concatenate([kept.weights, new])
        times = np.concatenate([kept.times, now + np.cumsum(elapsed)])
        rows = Rows(
            np.concatenate([kept.X, X]) if start else X,  # X may bring the intercept's column
            np.concatenate([kept.y, y]),
            weights,
            intercept=self.intercept,
        )
        leave = self.strategy.first_kept(times, weights, start)
        before = slide(self.factor, self.prior, rows, start, leave)
        # Copies: what has left must not stay in memory behind a view. Times stay near 0.
        last = slice(int(leave[-1]), None)
        kept.X, kept.y = rows.X[last].copy(), rows.y[last].copy()
        kept.weights, kept.times = weights[last].copy(), times[last] - times[-1]
        return before
