"""A posterior of the last rows only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor, OneStepPredictions, Rows
from posterity.factor.forgetting import slide, window_path
from posterity.kernel import RowPath
from posterity.noise import Distribution
from posterity.posteriors.gaussian import LinearPosterior

Array = NDArray[np.float64]


class WindowStrategy(Protocol):
    """Limits of the rows that a window keeps: posterity.forgetting.Window.

    So many as ``size``, or those no older than ``duration``.
    """

    @property
    def size(self) -> int | None:
        """Number of rows."""

    @property
    def duration(self) -> float | None:
        """Length of time."""

    def first_kept(self, times: Array, weights: Array, start: int) -> NDArray[np.intp]:
        """First row in the window at each of rows start..n, and after the last of them."""

    def discounts_of_sums(self, elapsed: Array) -> Array:
        """(n,) mean share left of sums over the rows after each time."""

    def of_rows(self, share: float) -> WindowStrategy:
        """The same where an observation has so many times as many rows."""


@dataclass
class KeptRows:
    """The rows in the window, old to new, and when they came.

    ``removed`` counts those that single rows have pushed out since the factor was last built from
    the rows: a copy builds it anew at the same row, and agrees to the last bit.
    """

    X: Array
    y: Array
    weights: Array
    times: Array
    removed: int = 0


@dataclass(frozen=True)
class WindowPosterior(LinearPosterior):
    """A posterior that has seen the prior and the rows in its window, which it keeps."""

    strategy: WindowStrategy
    stored_rows: KeptRows = field(repr=False)

    forgets: ClassVar[bool] = True

    @property
    def has_fast_learn_one(self) -> bool:  # type: ignore[override]
        """True if there is one target, and rows are kept without the intercept's 1."""
        return self.factor.n_targets == 1 and self.stored_rows.X.shape[1] == self.n_features

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The compiled path, which keeps the rows that it learns."""
        if not self.has_fast_learn_one:
            return super().row_path(names)
        size, duration = self.strategy.size, self.strategy.duration
        kept = self.prior, self.stored_rows
        return window_path(self.factor, *kept, size, duration, self.intercept, names)

    @classmethod
    def wrap(cls, posterior: LinearPosterior, strategy: WindowStrategy) -> Self:
        """Begin from a posterior that has not seen any rows."""
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

    def copy_with_factor(self, factor: Factor, **changes: object) -> Self:
        """An independent copy but for its factor, which is this one, and for ``changes``."""
        return self._copy_with(factor=factor, stored_rows=replace(self.stored_rows), **changes)

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        super().copy_from(other)
        self.stored_rows.__dict__.update(other.stored_rows.__dict__)

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        self.learn_each(X, y, weights, elapsed)

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Distribution:
        """Learn row after row; returns the distribution of each target before its row."""
        return self._predict_by(self.learn_each(X, y, weights, elapsed), y)

    def pass_time(self, X: Array, elapsed: float) -> None:
        """Let time pass before an observation, of rows ``X`` that are not learned."""
        self.append(X[:1], np.zeros((1, 1)), np.zeros(1), np.array([elapsed]))

    def discounts(self, elapsed: Array) -> Array | None:
        """None: a row in the window counts in full, and no longer after it."""
        return None

    def discounts_of_sums(self, elapsed: Array) -> Array:
        """Return the mean share left of sums over the rows after each time (n,)."""
        return self.strategy.discounts_of_sums(elapsed)

    def repeat_for(self, count: int) -> Self:
        """The same, for observations of so many rows; nothing was seen yet."""
        return replace(self, strategy=self.strategy.of_rows(count))

    def with_pseudo_row(self, x: Array, target: float, precision: float, count: int) -> Self:
        """The same that knows a row (1, p) of all observations, of ``count`` rows each, so far.

        Each gets a row more, with its share of it, which leaves with it.
        """
        there = self.stored_rows.weights > 0.0
        n, p, grown = int(there.sum()) // count, x.shape[1], count / (count + 1.0)
        strategy = self.strategy.of_rows(1.0 / grown)
        if not n:
            return replace(super().with_pseudo_row(x, target, precision, count), strategy=strategy)
        weights = np.repeat(
            grown * self.stored_rows.weights[there].reshape(n, count)[:, :1], count + 1, 1
        )
        share = np.sqrt(precision / n / weights[:, :1])
        rows = np.empty((n, count + 1, p + 1))
        old = np.hstack([self.stored_rows.X[there], self.stored_rows.y[there]])
        rows[:, :count] = old.reshape(n, count, -1) / np.sqrt(grown)
        rows[:, count] = share * np.append(x[0], target)
        rows = rows.reshape(-1, p + 1)
        times = self.stored_rows.times[there].reshape(n, count)
        kept = KeptRows(
            rows[:, :p].copy(),
            rows[:, p:].copy(),
            weights.ravel(),
            np.column_stack([times, times[:, -1]]).ravel(),
        )
        factor = super().with_pseudo_row(x, target, precision, count).factor
        return replace(self, factor=factor, stored_rows=kept, strategy=strategy)

    def transform_features(self, matrix: Array) -> Self:
        """The same data under a flat prior, whose rows x, with any 1, are x @ ``matrix`` now."""
        X = self.stored_rows.X
        if self.intercept:
            X = np.column_stack([np.ones(len(X)), X])
        return (
            super()
            .transform_features(matrix)
            ._copy_with(stored_rows=replace(self.stored_rows, X=X @ matrix))
        )

    def with_counts(self, effective: float, seen: float) -> Self:
        """The same, whose observations count for so much, now and as they came."""
        there = self.stored_rows.weights > 0.0
        each = effective / max(int(there.sum()), 1)
        size = np.sqrt(self.stored_rows.weights[there] / each)[:, None]
        kept = KeptRows(
            size * self.stored_rows.X[there],
            size * self.stored_rows.y[there],
            np.full(len(size), each),
            self.stored_rows.times[there],
        )
        return super().with_counts(effective, seen)._copy_with(stored_rows=kept)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Refuse: rows leave a window by themselves."""
        refuse_unlearning()

    def merge(self, other: Self) -> None:
        """Refuse: two windows over different rows are no window."""
        self.check_mergeable()

    def check_mergeable(self) -> None:
        """Refuse: two windows over different rows are no window."""
        refuse_merging()

    def for_targets(self, count: int) -> Self:
        """Return a posterior before data of ``count`` targets, each with this one's prior."""
        many = super().for_targets(count)
        nothing = replace(self.stored_rows, y=np.empty((0, count)))
        return self._copy_with(prior=many.prior, factor=many.factor, stored_rows=nothing)

    def of_target(self, target: int | Sequence[int]) -> Self:
        """The posterior of one target alone."""
        one = super().of_target(target)
        some = [target] if isinstance(target, int) else list(target)
        kept = replace(self.stored_rows, y=np.ascontiguousarray(self.stored_rows.y[:, some]))
        return self._copy_with(prior=one.prior, factor=one.factor, stored_rows=kept)

    def learn_each(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> OneStepPredictions:
        """Learn row after row as the window slides; returns what was known of each before it."""
        kept = self.stored_rows
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
        # Copies: a view would keep expired rows in memory. Times stay near 0.
        last = slice(int(leave[-1]), None)
        kept.X, kept.y = rows.X[last].copy(), rows.y[last].copy()
        kept.weights, kept.times = weights[last].copy(), times[last] - times[-1]
        kept.removed = 0
        return before


def refuse_unlearning() -> NoReturn:
    """Raise ``ValueError``: rows leave a window by themselves."""
    raise ValueError(
        "can't unlearn rows under Window: old rows leave it automatically; fit the rows you want"
    )


def refuse_merging() -> NoReturn:
    """Raise ``ValueError``: two windows over different rows are no window."""
    raise ValueError(
        "can't merge models under Window: it is unknown which rows are the latest; fit all rows "
        "in one model"
    )
