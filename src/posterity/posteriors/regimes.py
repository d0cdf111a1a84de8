"""Change points under any posterior: each regime is one of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from posterity.distributions import PoissonLogNormal, StudentT
from posterity.distributions.in_sequence import in_sequence
from posterity.distributions.mixing import mix_exactly
from posterity.posteriors._runs import Change, median_change, select_runs
from posterity.posteriors.changepoint import (
    MERGE_REFUSED,
    UNLEARN_REFUSED,
    ChangeStrategy,
    RunHistory,
)
from posterity.posteriors.ensemble import (
    HAS_VARIANCE,
    clip_log_densities,
    rank_predictions,
    update_probabilities,
)
from posterity.posteriors.mixed import MixedPosterior, as_arguments

Array = NDArray[np.float64]

# Each regime learns this many rows in one call; then negligible regimes are dropped.
BLOCK_ROWS = 16
# Targets whose mean and variance are good enough to replace a regime's flat prediction.
ENOUGH_ROWS = 3.0
# A prediction whose variance is this many times that of the targets is vague.
VAGUE_VARIANCE_RATIO = 100.0
LEAST_RATE = 1e-9


@dataclass(frozen=True)
class Targets:
    """Weight and mean of all targets so far, and their sum of squares around it."""

    count: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def with_row(self, y: float, weight: float) -> Targets:
        """Return the moments with one more target (Welford 1962)."""
        if weight == 0.0:
            return self
        count, off = self.count + weight, y - self.mean
        mean = self.mean + off * weight / count
        return Targets(count, mean, self.squares + weight * off * (y - mean))

    @property
    def have_variance(self) -> bool:
        """True if the variance of the targets is known."""
        return self.count > ENOUGH_ROWS and self.squares > 0.0

    @property
    def residual_df(self) -> float:
        """Degrees of freedom of the targets' variance."""
        return self.count - 1.0 if self.have_variance else ENOUGH_ROWS

    @property
    def variance(self) -> float:
        """Variance of another one."""
        return (
            self.squares / self.residual_df * (1.0 + 1.0 / self.count)
            if self.have_variance
            else np.inf
        )


def predict_from_targets(
    targets: Sequence[Targets], *, counts: bool
) -> StudentT | PoissonLogNormal:
    """Predict another target (n,) from the mean and the spread of those before it alone."""
    df, mean, variance = np.array([(one.residual_df, one.mean, one.variance) for one in targets]).T
    if not counts:
        return StudentT(df, mean, np.sqrt(variance))
    mean = np.maximum(mean, LEAST_RATE)
    log_variance = np.log1p(np.maximum(variance - mean, 0.0) / np.square(mean))
    vague = np.isinf(log_variance)
    return PoissonLogNormal(np.log(mean) - np.where(vague, 0.0, 0.5 * log_variance), log_variance)


@dataclass
class Regimes:
    """State: all runs that are still considered, oldest first, each with its posterior.

    The run i began at row ``first[i]``, has ``probability[i]`` and rows of weight ``learned[i]``;
    ``changes[i]`` is the change that it began with. ``last`` (1, m) is the last row. Members are
    never changed, but replaced.
    """

    members: tuple[Any, ...]
    first: NDArray[np.int64]
    probability: Array
    learned: Array
    changes: list[Change | None]
    last: Array
    targets: Targets = field(default_factory=Targets)
    row: int = 0
    seen: float = 0.0
    log_evidence: float = 0.0
    change_probability: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def before_data(cls, fresh: Any) -> Self:
        """Return one run, which began with the stream at the prior."""
        last = np.zeros((1, fresh.n_coefficients - int(fresh.intercept)))
        return cls((fresh.copy(),), np.zeros(1, np.int64), np.ones(1), np.zeros(1), [None], last)

    @property
    def size(self) -> int:
        """Number of runs."""
        return len(self.members)

    def copy(self) -> Regimes:
        """An independent copy."""
        return replace(self, changes=self.changes.copy())

    def begin(self, hazard: float) -> None:
        """Begin a new run at the next row, with probability ``hazard``."""
        earlier = median_change(self.probability, self.changes)
        self.first = np.append(self.first, self.row)
        self.learned = np.append(self.learned, 0.0)
        self.probability = np.append(self.probability * (1.0 - hazard), hazard)
        self.changes.append(Change(self.row, earlier))

    def learn(self, densities: Array, y: float, weight: float) -> None:
        """Weigh the runs by the log densities (k,) that they gave a row, times its weight."""
        with np.errstate(divide="ignore"):
            self.probability, added = update_probabilities(self.probability, densities)
        self.log_evidence += added
        self.learned = self.learned + weight
        self.targets = self.targets.with_row(y, weight)
        self.seen += weight
        self.row += 1

    def drop(self, smallest_probability: float, most: int) -> None:
        """Drop runs that have become negligible, or are too many."""
        kept = select_runs(self.probability, smallest_probability, most)
        if kept is None:
            return
        self.members = tuple(one for one, stays in zip(self.members, kept, strict=True) if stays)
        self.changes = [one for one, stays in zip(self.changes, kept, strict=True) if stays]
        self.first, self.learned = self.first[kept], self.learned[kept]
        self.probability = self.probability[kept] / self.probability[kept].sum()


@dataclass(frozen=True)
class RegimesPosterior(MixedPosterior):
    """Posterior of any kind with changepoints, as :class:`ChangepointPosterior`.

    Each run is a copy of ``fresh`` that learns the rows since its first. Where that knows nothing
    of a row yet (flat directions, noise of unknown size), what all targets so far were stands for
    what it predicts, a Student-t of their mean and spread: a run must not win because an improper
    prior's density is 1 everywhere. Until there are targets enough for that, no change is
    considered. Labels are never so unknown.
    """

    fresh: Any
    strategy: ChangeStrategy
    state: Regimes = field(repr=False)

    @classmethod
    def wrap(cls, fresh: Any, strategy: ChangeStrategy) -> Self:
        """Begin from a posterior that has not seen any rows."""
        make: Any = cls  # whose fields are not its parent's
        fresh = fresh.copy_for_average()
        posterior: Self = make(fresh, strategy, Regimes.before_data(fresh))
        return posterior

    def copy(self) -> Self:
        """An independent copy."""
        return replace(self, state=self.state.copy())

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.state.__dict__.update(other.state.copy().__dict__)

    # ---- learning ------------------------------------------------------------------------------

    def predict_then_learn(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> Any:
        """Learn row after row; returns the mixture predicted for each target before its row.

        Its components are the runs, and a new one for the case of a change right before the row.
        """
        rows: tuple[Any, ...] = (X, y, weights, elapsed, *as_arguments(offsets))
        try:
            return self._learn(*rows)
        except ValueError:
            self.fresh.copy().predict_then_learn(*rows)  # which names a bad row by its place here
            raise

    def _learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array, *offsets: Array
    ) -> Any:
        state = self.state.copy()
        predictions: list[Any] = []
        history = RunHistory(len(X), self.strategy.max_runs + 2 * BLOCK_ROWS, False)
        hazards = self.strategy.hazards(elapsed)
        g = np.ones(len(X)) if weights is None else weights
        first = 0
        while first < len(X) or not predictions:
            part = slice(first, min(first + BLOCK_ROWS - state.row % BLOCK_ROWS, len(X)))
            rows = X[part], y[part], g[part], elapsed[part]
            extra = (each[part] for each in offsets)
            predictions.append(
                self._learn_block(state, history, first, hazards[part], (*rows, *extra))
            )
            first = part.stop
        state.change_probability = history.change_probability(state)
        self.state.__dict__.update(state.__dict__)
        return in_sequence(predictions)

    def remove(self, X: Array, y: Array, weights: Array | None) -> NoReturn:
        """Refuse: which runs would have been dropped without a row is not known."""
        raise ValueError(UNLEARN_REFUSED)

    def merge(self, other: Self) -> NoReturn:
        """Refuse: changes lie between rows of one stream."""
        raise ValueError(MERGE_REFUSED)

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior and forget alike."""
        return (
            type(self) is type(other)
            and self.strategy == other.strategy
            and bool(self.fresh.has_same_prior(other.fresh))
        )

    def _learn_block(
        self, state: Regimes, history: RunHistory, place: int, hazards: Array, rows: tuple[Any, ...]
    ) -> Any:
        """Learn a few rows, the first of them at ``place`` in the call, in all runs at once."""
        X, y, weights, elapsed, *offsets = rows
        targets, starts = self._summarize_before_each_row(state, hazards, y[:, 0], weights)
        k, n = state.size, len(y)
        members = [*(one.copy() for one in state.members), *(self.fresh.copy() for _ in starts)]
        begins = [0] * k + starts
        predictions = []
        for member, begin in zip(members, begins, strict=True):
            # A run learns nothing before its first row, where rows have weight zero.
            counted = np.where(np.arange(n) < begin, 0.0, weights)
            predictions.append(member.predict_then_learn(X, y, counted, elapsed, *offsets))
        seen = RunPredictions.of(predictions, targets)
        densities = weights * seen.densities(y[:, 0])
        shares = np.zeros((n, len(members)))
        for i in range(n):
            hazard = float(hazards[i]) if i in starts else 0.0
            history.record_runs(place + i, state, hazard)
            if i in starts:
                state.begin(hazard)
            k = len(state.probability)
            shares[i, :k] = state.probability
            state.members = tuple(members[:k])
            state.learn(densities[:k, i], float(y[i, 0]), float(weights[i]))
        state.members = tuple(members)
        state.last = X[-1:].copy() if n else state.last
        if n and state.row % BLOCK_ROWS == 0:
            state.drop(self.strategy.smallest_probability, self.strategy.max_runs)
        return seen.mix(shares)

    def _summarize_before_each_row(
        self, state: Regimes, hazards: Array, y: Array, weights: Array
    ) -> tuple[list[Targets], list[int]]:
        """Return moments of the targets before each row, and rows at which a run may begin."""
        targets, seen, starts = [], state.seen, []
        now = state.targets
        for i in range(len(y)):
            targets.append(now)
            # Before the first row there is nothing to change.
            if (
                hazards[i] > 0.0
                and seen > 0.0
                and (now.have_variance or not self._lacks_prediction)
            ):
                starts.append(i)
            seen += float(weights[i])
            now = now.with_row(float(y[i]), float(weights[i]))
        return targets, starts

    @property
    def _lacks_prediction(self) -> bool:
        """True if a run that has just begun has an improper prediction."""
        predictive = self.fresh.predictive(np.zeros((1, self.fresh.n_features)))
        return bool(
            (rank_predictions(predictive) < HAS_VARIANCE).any()
            or not np.isfinite(_variance(predictive)).all()
        )

    # ---- reading -------------------------------------------------------------------------------

    @property
    def first(self) -> Any:
        """The posterior that a run begins as."""
        return self.fresh

    def _next(self) -> tuple[tuple[Any, ...], Array]:
        """The runs and the one to come, and their weights at the next row."""
        state = self.state
        hazard = float(self.strategy.hazards(np.ones(1))[0])
        if state.seen == 0.0 or (self._lacks_prediction and not state.targets.have_variance):
            return state.members, state.probability
        weights = np.append(state.probability * (1.0 - hazard), hazard)
        return (*state.members, self.fresh), weights

    def _proper(self, one: Any) -> bool:
        return bool(np.isfinite(one.joint(("",) * self.n_coefficients).std()).all())

    def ahead(self) -> tuple[Sequence[Any], Array]:
        """The runs, with their weights (k,) for the next row.

        Where the prior leaves a direction open only those that have learned more rows than there
        are coefficients, have something to say of the last and know how well they know their
        coefficients: those of others may be anything.
        """
        members, weights = self._next()
        state = self.state
        if not self._lacks_prediction and self._proper(self.fresh):
            return members, weights
        predictions = [one.predictive(state.last) for one in state.members]
        unknown = RunPredictions.of(predictions, [state.targets]).unknown[:, 0]
        enough = ~unknown & (state.learned > self.n_coefficients)
        enough &= [self._proper(one) for one in state.members]
        weights = np.where(enough if enough.any() else True, state.probability, 0.0)
        return state.members, weights / weights.sum()

    def predictive(self, X: Array, offsets: Array | None = None) -> Any:
        """Distribution of new observations at the rows of ``X``, each as the next row."""
        members, weights = self._next()
        predictions = [one.predictive(X, *as_arguments(offsets)) for one in members]
        seen = RunPredictions.of(predictions, [self.state.targets] * len(X))
        return seen.mix(np.broadcast_to(weights, (len(X), len(weights))))

    def predict_mean(self, X: Array) -> Array:
        """Mean of new observations, or of eta, at the rows of ``X``: that of the predictions."""
        members, weights = self._next()
        seen = RunPredictions.of(
            [one.predictive(X) for one in members], [self.state.targets] * len(X)
        )
        others = seen.others
        centre = others.loc if isinstance(others, StudentT) else others.log_mean
        means = np.stack([one.predict_mean(X) for one in members])
        return np.asarray(weights @ np.where(seen.unknown, centre, means))

    @property
    def run_starts(self) -> NDArray[np.int64]:
        """(k,) first row of each run, counted from the start of the stream."""
        return self.state.first.copy()

    @property
    def run_probabilities(self) -> Array:
        """(k,) probability that the last row belongs to each run."""
        return self.state.probability.copy()

    @property
    def change_probability(self) -> Array:
        """(n,) for the rows of the last call; see :class:`ChangepointPosterior`."""
        return self.state.change_probability.copy()

    @property
    def changes(self) -> NDArray[np.int64]:
        """Rows right before which the regression changed; see :class:`ChangepointPosterior`."""
        last = median_change(self.state.probability, self.state.changes)
        return np.array([] if last is None else last.rows(), dtype=np.int64)

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of the rows as they came (point masses left out)."""
        return self.state.log_evidence

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.state.seen

    @property
    def n_effective(self) -> float:
        """Expected weight of the rows of the present run."""
        return float(self.state.probability @ self.state.learned)


@dataclass(frozen=True)
class RunPredictions:
    """Predictions of n rows by k runs, and stand-ins where a run's prediction is flat."""

    predictions: list[Any]
    unknown: NDArray[np.bool_]
    others: Any

    @classmethod
    def of(cls, predictions: list[Any], targets: Sequence[Targets]) -> RunPredictions:
        """Predictions (k) of n rows, with the targets (n,) that came before each."""
        others = predict_from_targets(targets, counts=hasattr(predictions[0], "logpmf"))
        unknown = np.stack([_is_uninformative(one, others) for one in predictions])
        return cls(predictions, unknown & [each.have_variance for each in targets], others)

    def densities(self, y: Array) -> Array:
        """(k, n) log densities."""
        own = np.stack([clip_log_densities(one.logpdf(y)) for one in self.predictions])
        return np.where(self.unknown, clip_log_densities(self.others.logpdf(y)), own)

    def mix(self, weights: Array) -> Any:
        """The mixture by weights (n, k)."""
        if not self.unknown.any():
            return mix_exactly(self.predictions, weights)
        handed = np.where(self.unknown.T, weights, 0.0)
        columns = [weights - handed, handed.sum(axis=1, keepdims=True)]
        return mix_exactly([*self.predictions, self.others], np.hstack(columns))


def _variance(predictive: Any) -> Array:
    """Variances (n,); classes have none, and are never unknown."""
    return np.asarray(predictive.var()) if hasattr(predictive, "var") else np.zeros(len(predictive))


def _is_uninformative(predictive: Any, others: Any) -> NDArray[np.bool_]:
    """Return True where a prediction is vague: its variance is far beyond that of the targets.

    Or it is sure, of a noise of which it has seen nothing yet. Labels are never so unknown.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        variance = _variance(predictive)
        loose = ~(
            variance
            <= np.maximum(VAGUE_VARIANCE_RATIO * others.var(), 1.0 * hasattr(predictive, "logpmf"))
        )
    return loose | (rank_predictions(predictive) == 0)
