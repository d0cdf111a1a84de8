"""The first rows of a stream, kept until there are enough of them to be met near the truth.

A row that comes alone is met around what was known before it, once. The first ones are met around
the prior, where little says how steep the line is: labels that a line nearly separates then keep
it too flat, with intervals that are far too narrow. So the first rows are kept, and fitted together
again whenever half as many more have come, as if they had come at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from posterity.aliases import Array
from posterity.factor.rows import SiteRows
from posterity.noise import LOG_2PI
from posterity.posteriors._removal import explain_never_learned
from posterity.posteriors._site_rows import make_site_rows
from posterity.posteriors.gaussian import LinearPosterior

# Rows that are kept: at least this many, and this many a coefficient; none in models with more
# coefficients, as fitting these again would take long.
ROWS, ROWS_A_COEFFICIENT, MOST_COEFFICIENTS = 64, 4, 256
# More are kept while the mean variance of their linear predictors is above this, as with rare
# labels, where sixty rows say little; but never more rows, or more values, than these.
LARGEST_MEAN_VARIANCE, MOST_ROWS, MOST_VALUES = 0.3, 4096, 2**17
# Values of rows that are fitted together to be read, once more have come since they were last.
MOST_FITTED_TO_READ = 2000


@dataclass(frozen=True)
class StartRows:
    """Rows as they came: features (n, m), targets, weights > 0 and offsets (n,).

    They are fitted together again once there are ``due`` of them: those of a stream once directions
    that are still open are ``closed``, those of a fit as they were.
    """

    X: Array
    y: Array
    weights: Array
    offsets: Array
    due: int
    closed: bool = True

    def __getstate__(self) -> dict[str, object]:
        return {name: one for name, one in self.__dict__.items() if name != "_again"}

    @classmethod
    def of(cls, rows: SiteRows, *, closed: bool = True) -> StartRows:
        """The first rows, which were learned together."""
        some = rows[rows.weights > 0.0]
        return cls(some.X, some.y, some.weights, some.offsets, _make_room(len(some)), closed)

    def join(self, rows: SiteRows) -> StartRows:
        """Return these rows and more."""
        some = rows[rows.weights > 0.0]
        return replace(
            self,
            X=np.concatenate([self.X, some.X]),
            y=np.concatenate([self.y, some.y]),
            weights=np.concatenate([self.weights, some.weights]),
            offsets=np.concatenate([self.offsets, some.offsets]),
        )

    def with_row(self, x: Array, y: float, weight: float) -> StartRows:
        """Return these rows and another: features (m,), target and weight, without an offset."""
        nothing = np.zeros(1)
        return self.join(SiteRows(x[None], np.full(1, y), np.full(1, weight), nothing, nothing))

    def without(self, rows: SiteRows) -> StartRows:
        """Return these rows less others among them; raises ``ValueError`` if one is not."""
        kept, gone = (np.column_stack([one.X, one.y, one.offsets]) for one in (self, rows))
        weights = weigh_without(kept, self.weights, gone, rows.weights)
        left = replace(self, weights=weights).rows
        return replace(StartRows.of(left), due=self.due, closed=self.closed)

    def fitted(self) -> StartRows:
        """The same, once they were fitted together."""
        return replace(self, due=_make_room(len(self)))

    def count_missing(self) -> int:
        """Return the number of rows still to come before all are fitted together again."""
        return self.due - len(self)

    def is_enough(self, variance: Array, sure: float) -> bool:
        """Return True if rows whose linear predictors have these variances (n,) are enough."""
        n, p = self.X.shape
        full = n >= min(MOST_ROWS, MOST_VALUES // (p + 1))
        return n >= self.n_enough and (full or float(np.mean(variance)) <= sure)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_enough(self) -> int:
        """The smallest number of rows that are kept."""
        varied = np.count_nonzero(self.X.min(axis=0) < self.X.max(axis=0)) if len(self) else 0
        return _count_enough(int(varied))

    @property
    def rows(self) -> SiteRows:
        """All of the rows, as of one time."""
        return SiteRows(self.X, self.y, self.weights, np.zeros(len(self)), self.offsets)


def are_few(rows: SiteRows) -> bool:
    """Return True if fewer than the smallest number of rows that are kept."""
    if np.count_nonzero(rows.weights) >= _count_enough(rows.X.shape[1]):
        return False
    some = StartRows.of(rows)
    return len(some) < some.n_enough


def _count_enough(n_varied: int) -> int:
    return max(ROWS, ROWS_A_COEFFICIENT * (n_varied + 1))


class KeepsFirstRows(LinearPosterior):
    """A posterior that keeps the first rows of a stream as ``start`` in its ``statistics``."""

    inner: LinearPosterior
    statistics: Any
    keeps_start: bool
    # Mean variance of their linear predictors below which there are enough of them.
    sure: ClassVar[float] = LARGEST_MEAN_VARIANCE
    # True if rows that come together are fitted with those that are kept at once.
    joins_batches: ClassVar[bool] = False

    @property
    def keeps_first_rows(self) -> bool:
        """True if rows that come one after another are kept, to be fitted together again."""
        begins = self.n_observations == 0.0 or self.statistics.start is not None
        small = self.n_coefficients <= MOST_COEFFICIENTS
        return self.keeps_start and begins and small and not self.memory.forgets

    def copy_for_average(self) -> Self:
        """A copy to be one of many that are averaged; none keeps its first rows, to be quick."""
        return self.copy()._copy_with(keeps_start=False)

    # ---- learning ------------------------------------------------------------------------------

    def fit(self, X: Array, y: Array, *rest: Array | None) -> None:
        """Learn the first rows together; a posterior that forgets learns them in order.

        ``rest`` are weights, elapsed times and any offsets. Raises ``ValueError`` for targets that
        the likelihood does not know. Warns when a flat prior leaves it without a maximum.
        """
        self._learn(self._check_rows(X, y, *rest), fits=True)

    def append(self, X: Array, y: Array, *rest: Array | None) -> None:
        """Learn rows together, what was known before being their prior."""
        self._learn(self._check_rows(X, y, *rest), fits=False)

    def _check_rows(self, X: Array, y: Array, *rest: Array | None) -> SiteRows:
        self.check_targets(y)
        return make_site_rows(X, y, *rest)

    def _learn(self, rows: SiteRows, *, fits: bool) -> None:
        """Learn rows together, the first ones where it ``fits`` them; or in order."""
        if self.memory.forgets or (len(rows) == 1 and not fits):
            self._in_order(rows)
            return
        trial, starts = self.copy(), self.keeps_first_rows
        if not fits and starts and self.joins_batches and self.statistics.start is not None:
            trial._keep(rows, now=True)
        else:
            first = trial._together, trial._start_with
            learn, keep = first if fits else (trial._learn_at_once, trial._keep)
            learn(rows)
            if starts:
                keep(rows)
        self.copy_from(trial)

    def _in_order(self, rows: SiteRows) -> list[Any]:
        """Learn row after row, in stretches after which the first rows are fitted anew."""
        trial, first = self.copy(), 0
        learned: list[Any] = []
        while first < len(rows) or not learned:
            starts, left = trial.keeps_first_rows, trial._count_until_turn(len(rows))
            if starts:
                start = trial.statistics.start
                left = 1 if start is None else min(left, start.count_missing())
            last = first + count_rows_until(rows.weights[first:], left)
            learned.append(trial._learn_each(rows[first:last]))
            if starts:
                trial._keep(rows[first:last])
            if trial.is_settled:  # the stream goes on from rows that were fitted again
                trial.begin_turn()
            first = last
        self.copy_from(trial)
        return learned

    def _close(self, rows: SiteRows) -> None:
        """Give eta the prior Normal(0, 10^2) in undetermined directions, at a usual row first.

        At a row far from the others it would hold back slopes, too.
        """
        vague, spread = np.full(1, 0.01), rows.spread
        off = (rows.X - rows.X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        order = np.argsort(np.square(off).sum(axis=1).round(6), kind="stable")
        rows = rows[order[rows.weights[order] > 0.0]]
        open_ = np.flatnonzero(self.inner.leaves_open(rows.X))
        while len(open_):
            row = rows[open_[0] : open_[0] + 1]
            self.inner.append(row.X, -row.offsets[:, None], vague, np.zeros(1))
            # As in flat directions of a fit the density is 1, here where eta is 0.
            self.statistics.log_sites += 0.5 * 0.01 * LOG_2PI
            open_ = open_[self.inner.leaves_open(rows.X[open_])]

    def _start_with(self, rows: SiteRows) -> None:
        """Keep rows that were fitted, where they are few."""
        start = StartRows.of(rows, closed=False) if are_few(rows) else None
        self.statistics.start = start if start is not None and len(start) else None

    def _keep(self, rows: SiteRows, *, now: bool = False) -> None:
        """Keep rows; when it is due, or ``now``, fit all that are kept together again."""
        before, over = self.statistics.start, False
        start = StartRows.of(rows) if before is None else before.join(rows)
        due = start.count_missing() <= 0
        if due or now:
            self._fit_again(start)
        if due:
            start = start.fitted()
        if due or before is None:
            over = start.is_enough(self._compute_variance(start.X), self.sure)
        self.statistics.start = None if over or not len(start) else start

    def _merge_start(self, other: Self) -> bool:
        """Learn the rows of ``other`` if it keeps them, or know it and learn those of this one."""
        one, two = (self, other) if other.statistics.start is not None else (other, self)
        start = two.statistics.start
        if start is None:
            return False
        trial = one.copy()
        if trial.keeps_first_rows:
            trial._keep(start.rows, now=True)
        else:
            trial._learn_at_once(start.rows)
        both = self.statistics, other.statistics
        trial.statistics.log_predictive = sum(one.log_predictive for one in both)
        self.copy_from(trial)
        return True

    def _compute_variance(self, X: Array) -> Array:
        """Variance (n,) of the linear predictors at rows."""
        raise NotImplementedError

    def _count_until_turn(self, n: int) -> int:
        """Count the rows, of ``n``, to be learned before something else is learned anew."""
        return n

    def _learn_each(self, rows: SiteRows) -> Any:
        """Learn row after row, in place; returns what was believed of each before it."""
        raise NotImplementedError

    def _together(self, rows: SiteRows) -> None:
        """Learn rows together, in place."""
        raise NotImplementedError

    def _learn_at_once(self, rows: SiteRows) -> None:
        """The same, after rows before."""
        self._together(rows)

    def _fit_again(self, start: StartRows) -> None:
        """Know nothing but these rows, fitted together."""
        raise NotImplementedError


def weigh_without(
    kept: Array,
    weights: Array,
    gone: Array,
    gone_weights: Array,
) -> Array:
    """Weights (n,) of rows (n, c) less others among them; raises ``ValueError`` if one is not."""
    left = weights.copy()
    for i, row in enumerate(gone):
        same = (row == kept).all(axis=1)
        there = np.flatnonzero(same & (left >= (1.0 - 1e-12) * gone_weights[i]))
        if not len(there):
            raise ValueError(explain_never_learned(f"row {i}"))
        left[there[-1]] -= gone_weights[i]
    return np.where(left > 1e-12 * weights, left, 0.0)


def _make_room(n: int) -> int:
    return n + max(1, n // 2)


def count_rows_until(weights: Array, left: int) -> int:
    """Count the rows up to and including the ``left``-th of positive weight."""
    counted = np.cumsum(weights > 0.0)
    return min(int(np.searchsorted(counted, max(left, 1))) + 1, len(weights))
