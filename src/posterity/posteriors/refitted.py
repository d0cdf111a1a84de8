"""A posterior of the last rows only, under likelihoods whose rows do not leave without a trace.

The Gaussian row that stands for an observation was found from what was known when it came, so that
it remembers rows that have left the window since. So the rows themselves are kept, and after each
call those in the window are learned together anew: what is known depends on nothing else. That is
a fit of the rows in the window for every row that is predicted, and one for every other call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions.in_sequence import in_sequence
from posterity.noise import Joint
from posterity.posteriors.ensemble import clip_log_densities
from posterity.posteriors.mixed import MixedPosterior, as_arguments

Array = NDArray[np.float64]


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
        return WindowRows(*(np.concatenate(pair) for pair in pairs))

    def __getitem__(self, part: slice) -> WindowRows:
        return WindowRows(*(values[part].copy() for values in vars(self).values()))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What a posterior learns of them."""
        elapsed = np.diff(self.times, prepend=self.times[:1])
        rows = self.X, self.y[:, None], self.weights, elapsed
        return (*rows, *as_arguments(self.offsets if self.offsets.any() else None))


@dataclass
class WindowState:
    """The rows in the window, what they say together, and sums over all rows that came.

    ``fresh`` has seen nothing, and ``fitted`` is a copy of it that has learned the rows. ``seen``
    sums the weights of all rows, ``log_predictive`` the log densities that they were given.
    """

    fresh: Any
    rows: WindowRows
    fitted: Any
    seen: float = 0.0
    log_predictive: float = 0.0


@dataclass(frozen=True)
class RefittedPosterior(MixedPosterior):
    """A posterior that forgets nothing by itself, of the rows in a window; see the module."""

    strategy: Any
    state: WindowState = field(repr=False)

    @classmethod
    def wrap(cls, fresh: Any, strategy: Any) -> Self:
        """Begin from a posterior that has not seen any rows."""
        make: Any = cls  # whose fields are not its parent's
        nothing = WindowRows(np.empty((0, fresh.n_features)), *(np.empty(0) for _ in range(4)))
        posterior: Self = make(strategy, WindowState(fresh, nothing, fresh.copy()))
        return posterior

    def copy(self) -> Self:
        """An independent copy; what was fitted is never changed in place."""
        return replace(self, state=replace(self.state))

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.state.__dict__.update(other.state.__dict__)

    # ---- learning ------------------------------------------------------------------------------

    def append(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> None:
        """Learn rows, of which those are kept that stay in the window."""
        new = self._read(X, y, weights, elapsed, offsets)
        log_density = 0.0
        if len(new.y):
            passed = self._known_before(new)(0).copy()
            log_density = score(passed.predict_then_learn(*new.arguments), new)
        self._keep(new, log_density)

    fit = absorb = append

    def predict_then_learn(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> Any:
        """Learn row after row; returns the distribution of each target before its row."""
        new = self._read(X, y, weights, elapsed, offsets)
        known_before = self._known_before(new)
        predictions: list[Any] = []
        for i in range(max(len(new.y), 1)):
            one = new[i : i + 1]
            predictions.append(known_before(i).predictive(one.X, *one.arguments[4:]))
        predictive = in_sequence(predictions)
        self._keep(new, score(predictive, new))
        return predictive

    def _read(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array, offsets: Array | None
    ) -> WindowRows:
        """Rows that are new; raises ``ValueError`` for targets that can't be learned."""
        self.state.fresh.check_targets(y)
        n, times = len(X), self.state.rows.times
        now = times[-1] if len(times) else 0.0
        g = np.ones(n) if weights is None else weights
        added = np.zeros(n) if offsets is None else offsets
        return WindowRows(np.asarray(X), y[:, 0], g, now + np.cumsum(elapsed), added)

    def _known_before(self, new: WindowRows) -> Callable[[int], Any]:
        """Return what says what is known right before each of the new rows."""
        start, rows = len(self.state.rows.y), self.state.rows.join(new)
        first = self.strategy.first_kept(rows.times, rows.weights, start)

        def know(i: int) -> Any:
            as_they_are = i == 0 and int(first[0]) == 0
            return self.state.fitted if as_they_are else self._fit(rows[int(first[i]) : start + i])

        return know

    def _keep(self, new: WindowRows, log_density: float) -> None:
        """Know the rows that are in the window after the new ones, and what they say."""
        state, rows = self.state, self.state.rows.join(new)
        if not len(rows.y):
            return
        first = self.strategy.first_kept(rows.times, rows.weights, len(rows.y))
        kept = rows[int(first[-1]) :]
        kept = replace(kept, times=kept.times - rows.times[-1])  # which stay near 0
        fitted, seen = self._fit(kept), state.seen + float(np.sum(new.weights))
        log_predictive = state.log_predictive + log_density
        learned = replace(state, rows=kept, fitted=fitted, seen=seen, log_predictive=log_predictive)
        state.__dict__.update(learned.__dict__)

    def _fit(self, rows: WindowRows) -> Any:
        fitted = self.state.fresh.copy()
        if rows.weights.any():
            fitted.learn_together(*rows.arguments)
        return fitted

    def remove(self, X: Array, y: Array, weights: Array | None, *offsets: Array) -> None:
        """Refuse: rows leave a window by themselves."""
        self.strategy.check_unlearns()

    def merge(self, other: Self) -> None:
        """Refuse: two windows over different rows are no window."""
        self.strategy.check_merges()

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior and have the same window."""
        return (
            type(self) is type(other)
            and self.strategy == other.strategy
            and bool(self.state.fresh.has_same_prior(other.state.fresh))
        )

    def add_classes(self, n_classes: int) -> None:
        """Make room for so many classes in all: the rows are learned anew with these."""
        fresh = self.state.fresh.copy()
        fresh.add_classes(n_classes)
        self.state.fresh = fresh
        self.take_rows(self.state, lambda y: y)

    def reorder(self, order: NDArray[np.intp]) -> None:
        """Put class ``order[i]`` into place i."""
        self.take_rows(self.state, lambda y: np.argsort(order)[y.astype(np.intp)].astype(float))

    def take_rows(
        self, state: WindowState, target: Callable[[Array], Array], n_more: int = 0
    ) -> None:
        """Know the rows of another one, with other targets and so many features of 0 more."""
        X = np.concatenate([state.rows.X, np.zeros((len(state.rows.X), n_more))], axis=1)
        rows = replace(state.rows, X=X, y=target(state.rows.y))
        learned = replace(state, rows=rows, fitted=self._fit(rows), fresh=self.state.fresh)
        self.state.__dict__.update(learned.__dict__)

    # ---- reading -------------------------------------------------------------------------------

    @property
    def first(self) -> Any:
        """The posterior of the rows in the window."""
        return self.state.fitted

    def ahead(self) -> tuple[Sequence[Any], Array]:
        """The same, as the only member."""
        return (self.first,), np.ones(1)

    def average_of(self, read: Callable[[Any], ArrayLike]) -> Any:
        """Return ``read`` of the posterior of the rows in the window."""
        return read(self.first)

    mixture_of = average_of

    def linear_predictor(self, X: Array, offsets: Array | None = None) -> Any:
        """Distribution of eta at the rows of ``X``."""
        return self.first.linear_predictor(X, *as_arguments(offsets))

    def joint(self, *names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        joint: Joint = self.first.joint(*names)
        return joint

    def probability_interval(self, X: Array, level: float) -> Array:
        """(n, K, 2) ends of the central interval of the probability of each of many classes."""
        return np.asarray(self.first.probability_interval(X, level))

    @property
    def n_flat(self) -> int:
        """Number of directions whose prior is flat."""
        return int(self.state.fresh.n_flat)

    @property
    def improper(self) -> Any:
        """Flat directions, and the noise's shape and rate if improper; None if unknown."""
        return self.state.fresh.improper

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of the rows as they came."""
        return self.state.log_predictive

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.state.seen

    @property
    def n_effective(self) -> float:
        """The weight of the rows in the window."""
        return float(np.sum(self.state.rows.weights))


def score(predictive: Any, rows: WindowRows) -> float:
    """Return the sum of the log densities of rows, times their weights."""
    return float(rows.weights @ clip_log_densities(predictive.logpdf(rows.y)))
