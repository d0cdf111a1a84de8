"""The last rows only, under likelihoods whose rows do not leave without a trace.

The Gaussian row that stands for an observation was found from what was known when it came, so that
it remembers rows that have left the window since. So the rows themselves are kept, and after each
call those in the window are learned together anew: what is known depends on nothing else. That is
a fit of the rows in the window for every row that is predicted, and one for every other call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from posterity.aliases import Array, Indices
from posterity.distributions.in_sequence import in_sequence
from posterity.factor.rows import as_columns, as_targets
from posterity.likelihoods.censored import score_ends
from posterity.noise import Joint
from posterity.posteriors._reads import read_along
from posterity.posteriors.ensemble import clip_log_densities
from posterity.posteriors.hypotheses import Hypotheses
from posterity.posteriors.new_columns import NewColumns


@dataclass(frozen=True)
class WindowRows:
    """Rows, old to new: features (n, m), targets, weights, times and offsets to eta (n,)."""

    X: Array
    y: Array
    weights: Array
    times: Array
    offsets: Array

    def join(self, other: WindowRows) -> WindowRows:
        """Return these rows and then others."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        if not len(self.X):
            return other
        return WindowRows(*(np.concatenate(pair) for pair in pairs))

    def __getitem__(self, part: slice) -> WindowRows:
        return WindowRows(*(values[part].copy() for values in vars(self).values()))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What a posterior learns of them."""
        elapsed = np.diff(self.times, prepend=self.times[:1])
        rows = self.X, as_columns(self.y), self.weights, elapsed
        return (*rows, self.offsets) if self.offsets.any() else rows


@dataclass(kw_only=True)
class RefittedWindow(Hypotheses):
    """The rows in the window, what they say together, and sums over all rows that came.

    ``fresh`` has seen nothing and forgets nothing by itself; ``fitted`` is a copy of it that has
    learned the rows, and is never changed in place. ``n_observations`` sums the weights of all
    rows, ``log_evidence`` the log densities that they were given.
    """

    strategy: Any
    fresh: Any
    rows: WindowRows
    fitted: Any
    n_observations: float = 0.0
    log_evidence: float = 0.0

    memory = read_along("strategy")

    @classmethod
    def before_data(cls, fresh: Any, strategy: Any) -> Self:
        """Begin from a posterior that has not seen any rows."""
        nothing = WindowRows(np.empty((0, fresh.n_features)), *(np.empty(0) for _ in range(4)))
        return cls(strategy=strategy, fresh=fresh, rows=nothing, fitted=fresh.copy())

    def copy(self) -> Self:
        """An independent copy."""
        return replace(self)

    @property
    def common(self) -> Any:
        """What has seen nothing."""
        return self.fresh

    @property
    def n_effective(self) -> float:
        """The weight of the rows in the window."""
        return float(np.sum(self.rows.weights))

    # ---- learning ------------------------------------------------------------------------------

    def append(self, *rows: Any) -> None:
        """Learn rows, of which those are kept that stay in the window."""
        new = self._read(*rows)
        log_density = 0.0
        if len(new.y):
            passed = self._known_before(new)(0).copy()
            log_density = score(passed.predict_then_learn(*new.arguments), new)
        self._keep(new, log_density)

    def learn(self, *rows: Any) -> Any:
        """Learn row after row; returns the distribution of each target before its row."""
        new = self._read(*rows)
        known_before = self._known_before(new)
        predictions: list[Any] = []
        for i in range(max(len(new.y), 1)):
            one = new[i : i + 1]
            predictions.append(known_before(i).predictive(one.X, *one.arguments[4:]))
        predictive = in_sequence(predictions)
        self._keep(new, score(predictive, new))
        return predictive

    def _read(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array, *offsets: Array
    ) -> WindowRows:
        """Rows that are new; raises ``ValueError`` for targets that can't be learned."""
        self.fresh.check_targets(y)
        n, times = len(X), self.rows.times
        now = times[-1] if len(times) else 0.0
        g = np.ones(n) if weights is None else weights
        (added,) = offsets or (np.zeros(n),)
        return WindowRows(np.asarray(X), as_targets(y), g, now + np.cumsum(elapsed), added)

    def _known_before(self, new: WindowRows) -> Callable[[int], Any]:
        """Return what says what is known right before each of the new rows."""
        start, rows = len(self.rows.y), self.rows.join(new)
        first = self.strategy.first_kept(rows.times, rows.weights, start)

        def know(i: int) -> Any:
            as_they_are = i == 0 and int(first[0]) == 0
            return self.fitted if as_they_are else self._fit(rows[int(first[i]) : start + i])

        return know

    def _keep(self, new: WindowRows, log_density: float) -> None:
        """Know the rows that are in the window after the new ones, and what they say."""
        rows = self.rows.join(new)
        if not len(rows.y):
            return
        first = self.strategy.first_kept(rows.times, rows.weights, len(rows.y))
        kept = rows[int(first[-1]) :]
        self.rows = replace(kept, times=kept.times - rows.times[-1])  # which stay near 0
        self.fitted = self._fit(self.rows)
        self.n_observations += float(np.sum(new.weights))
        self.log_evidence += log_density

    def _fit(self, rows: WindowRows) -> Any:
        fitted = self.fresh.copy()
        if rows.weights.any():
            fitted.learn_together(*rows.arguments)
        return fitted

    def add_classes(self, n_classes: int) -> None:
        """Make room for so many classes in all: the rows are learned anew with these."""
        fresh = self.fresh.copy()
        fresh.add_classes(n_classes)
        self.__dict__.update(fresh=fresh, fitted=replace(self, fresh=fresh)._fit(self.rows))

    def reorder(self, order: Indices) -> None:
        """Put class ``order[i]`` into place i."""
        self.take_rows(self, lambda y: np.argsort(order)[y.astype(np.intp)].astype(float))

    def take_rows(self, other: Self, target: Callable[[Array], Array]) -> None:
        """Know the rows of another one, with other targets."""
        rows = replace(other.rows, y=target(other.rows.y))
        learned = replace(other, rows=rows, fitted=self._fit(rows), fresh=self.fresh)
        self.__dict__.update(learned.__dict__)

    def widen_from(self, other: Self, columns: NewColumns, widen: Any) -> None:
        """Know the rows of ``other``, which had other columns."""
        X = columns.spread(other.rows.X)
        self.take_rows(replace(other, rows=replace(other.rows, X=X)), lambda y: y)

    # ---- reading -------------------------------------------------------------------------------

    def ahead(self) -> tuple[Sequence[Any], Array]:
        """The posterior of the rows in the window, as the only member."""
        return (self.fitted,), np.ones(1)

    def joint(self, *names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        joint: Joint = self.fitted.joint(*names)
        return joint


def score(predictive: Any, rows: WindowRows) -> float:
    """Return the sum of the log densities of rows, times their weights."""
    of_ends = rows.y.ndim == 2
    densities = score_ends(predictive, *rows.y.T) if of_ends else predictive.logpdf(rows.y)
    return float(rows.weights @ clip_log_densities(densities))
