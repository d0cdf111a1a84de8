"""Runs of any posterior: each regime is one of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.distributions import PoissonLogNormal, StudentT
from posterity.distributions.in_sequence import in_sequence
from posterity.distributions.location_scale import LocationScale
from posterity.posteriors.ensemble import (
    HAS_VARIANCE,
    LARGEST_LOG_DENSITY,
    clip_log_densities,
    rank_predictions,
    update_probabilities,
)
from posterity.posteriors.new_columns import NewColumns
from posterity.posteriors.runs import (
    JUDGING_ROWS,
    OUTLIER_PROBABILITY,
    OUTLIER_SCALE,
    Change,
    ChangeStrategy,
    RunHistory,
    Runs,
    select_runs,
)

# Each regime learns this many rows in one call; then negligible regimes are dropped.
BLOCK_ROWS = 16
# Targets whose mean and variance are good enough to replace a regime's flat prediction.
ENOUGH_ROWS = 3.0
# A prediction whose variance is this many times that of the targets is vague.
VAGUE_VARIANCE_RATIO = 100.0
LEAST_RATE = 1e-9

NO_WAITING = (
    "times= is refused under Changepoint where a new regime begins without any knowledge of some "
    "coefficient or of the noise: use a proper prior (prior_precision and fit_intercept=False), or "
    'linear regression with a prior given in numbers or "auto"; or leave times out'
)


@dataclass(frozen=True)
class Targets:
    """Weight and mean (n,) of all targets so far, and their sum of squares around it."""

    count: Array
    mean: Array
    squares: Array

    def before_rows(self, y: Array, weights: Array) -> Targets:
        """The moments (n + 1,) before each of n targets and after the last (Welford 1962).

        To be asked of moments (1,).
        """
        moments = np.array([self.count, self.mean, self.squares])[:, :1].repeat(len(y) + 1, axis=1)
        for i, weight in enumerate(weights):
            count, mean, squares = moments[:, i]
            step = (y[i] - mean) * weight / (count + weight) if weight else 0.0
            more = weight * (y[i] - mean) * (y[i] - mean - step) if weight else 0.0
            moments[:, i + 1] = count + weight, mean + step, squares + more
        return Targets(*moments)

    def __getitem__(self, rows: slice | Indices) -> Targets:
        return Targets(self.count[rows], self.mean[rows], self.squares[rows])

    @property
    def have_variance(self) -> Mask:
        """True (n,) where the variance of the targets is known."""
        return (self.count > ENOUGH_ROWS) & (self.squares > 0.0)

    def predict(self, *, counts: bool) -> StudentT | PoissonLogNormal:
        """Predict another target (n,) from the mean and the spread of those before it alone."""
        known, mean = self.have_variance, self.mean
        df = np.where(known, self.count - 1.0, ENOUGH_ROWS)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.where(known, self.squares / df * (1.0 + 1.0 / self.count), np.inf)
        if not counts:
            return StudentT(df, mean, np.sqrt(variance))
        mean = np.maximum(mean, LEAST_RATE)
        log_variance = np.log1p(np.maximum(variance - mean, 0.0) / np.square(mean))
        vague = np.isinf(log_variance)
        off = np.where(vague, 0.0, 0.5 * log_variance)
        return PoissonLogNormal(np.log(mean) - off, log_variance)


@dataclass(kw_only=True)
class Regimes(Runs):
    """Runs each of which is a copy of ``fresh`` that has learned the rows since its first.

    Where that knows nothing of a row yet (flat directions, noise of unknown size), what all
    ``targets`` so far were stands for what it predicts, a Student-t of their mean and spread: a run
    must not win because an improper prior's density is 1 everywhere. Until there are targets enough
    for that, no change is considered. Labels are never so unknown. ``last`` (1, m) is the last row.
    Members are never changed, but replaced.
    """

    members: tuple[Any, ...]
    last: Array
    targets: Targets = field(default_factory=lambda: Targets(*np.zeros((3, 1))))

    @classmethod
    def before_data(cls, fresh: Any, strategy: ChangeStrategy) -> Self:
        """Return one run, which began with the stream at the prior."""
        fresh = fresh.copy_for_average()
        return cls(
            fresh=fresh,
            strategy=strategy,
            first=np.zeros(1, np.int64),
            probability=np.ones(1),
            learned=np.zeros(1),
            members=(fresh.copy(),),
            last=np.zeros((1, fresh.n_features)),
        )

    def widen_from(self, other: Self, columns: NewColumns, widen: Any) -> None:
        """Know what ``other`` does, of other columns, in each run."""
        known, members = other.copy(), [self.fresh.copy() for _ in other.members]
        for mine, its in zip(members, known.members, strict=True):
            widen(mine, its, columns)
        last = columns.spread(known.last)
        own = {"fresh": self.fresh, "members": tuple(members), "last": last}
        self.__dict__.update(known.__dict__ | own)

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, X: Array, y: Array, weights: Array | None, *others: Array) -> Any:
        """Learn row after row; returns the mixture predicted for each target before its row.

        Its components are the runs, and a new one for the case of a change right before the row.
        """
        rows = X, y, np.ones(len(X)) if weights is None else weights, *others
        try:
            return self._learn(rows)
        except ValueError:
            self.fresh.copy().predict_then_learn(*rows)  # which names a bad row by its place here
            raise

    def _learn(self, rows: tuple[Array, ...]) -> Any:
        n = len(rows[0])
        predictions: list[Any] = []
        history = RunHistory(n, self.strategy.max_runs + 2 * BLOCK_ROWS)
        first = 0
        while first < n or not predictions:
            part = slice(first, min(first + BLOCK_ROWS - self.row % BLOCK_ROWS, n))
            predictions.append(self._learn_block(history, first, tuple(one[part] for one in rows)))
            first = part.stop
        self.found = history.find_changes(self)
        return in_sequence(predictions)

    def _learn_block(self, history: RunHistory, place: int, rows: tuple[Array, ...]) -> Any:
        """Learn a few rows, the first of them at ``place`` in the call, in all runs at once."""
        X, y, weights, elapsed, *_ = rows
        n, moments = len(X), self.targets.before_rows(y[:, 0], weights)
        hazards = self._hazards(elapsed, weights, moments)
        starts = np.flatnonzero(hazards).tolist()
        before = [*zip(self.members, self.learned, strict=True), *[(self.fresh, 0.0)] * len(starts)]
        # A run learns nothing before its first row, where rows have weight zero.
        counted = (np.where(np.arange(n) < i, 0.0, weights) for i in [0] * self.size + starts)
        runs = zip(before, counted, strict=True)
        each = [_learn_run(*run, (X, y, counts, *rows[3:])) for run, counts in runs]
        learned, predictions, gains = zip(*each, strict=True)
        seen, gain = RunPredictions.of(list(predictions), moments[:-1]), np.stack(gains)
        densities = weights * seen.densities(y[:, 0])
        shares = np.zeros((n, len(learned)))
        for i in range(n):
            history.record(place + i, self, hazards[i])
            if hazards[i]:
                self._begin(hazards[i])
            shares[i, : self.size] = self.probability
            plain, outlier = densities[: self.size, i], gain[: self.size, i]
            with np.errstate(divide="ignore"):
                after, added = update_probabilities(self.probability, plain)
                if outlier.any():
                    after, _ = update_probabilities(self.probability, plain + outlier)
            self.probability = after
            self.log_evidence += added
            self.learned = self.learned + np.where(outlier > 0.0, 0.0, weights[i])
            self.seen += float(weights[i])
            self.row += 1
        self.members, self.targets = tuple(learned), moments[-1:]
        self.last = X[-1:].copy() if n else self.last
        if n and self.row % BLOCK_ROWS == 0:
            self._drop()
        return self.mix(*seen.weigh(shares))

    def _hazards(self, elapsed: Array, weights: Array, moments: Targets) -> Array:
        """(n,) probability of a change right before each row; 0 where it is not considered."""
        # Before the first row there is nothing to change.
        asked = self.seen + np.cumsum(weights) - weights > 0.0
        known = moments[:-1].have_variance
        if not known[asked].all() and self._lacks_prediction:
            asked &= known
        return np.where(asked, self.strategy.hazards(elapsed), 0.0)

    def _begin(self, hazard: float) -> None:
        """Begin a new run at the next row, with probability ``hazard``."""
        self.changes = [*self.changes, Change(self.row, self.last_change)]
        self.first = np.append(self.first, self.row)
        self.learned = np.append(self.learned, 0.0)
        self.probability = np.append(self.probability * (1.0 - hazard), hazard)

    def _drop(self) -> None:
        """Drop runs that have become negligible, or are too many."""
        rules = self.strategy.smallest_probability, self.strategy.max_runs
        kept = select_runs(self.probability, *rules)
        if kept is None:
            return
        self.members = tuple(one for one, stays in zip(self.members, kept, strict=True) if stays)
        self.changes = [one for one, stays in zip(self.changes, kept, strict=True) if stays]
        self.first, self.learned = self.first[kept], self.learned[kept]
        self.probability = self.probability[kept] / self.probability[kept].sum()

    @property
    def _lacks_prediction(self) -> bool:
        """True if a run that has just begun has an improper prediction."""
        predictive = self.fresh.predictive(np.zeros((1, self.fresh.n_features)))
        return bool(
            (rank_predictions(predictive) < HAS_VARIANCE).any()
            or not np.isfinite(_variance(predictive)).all()
        )

    @property
    def _begins_proper(self) -> bool:
        """True if a run that has just begun has something to say of all coefficients and rows."""
        return not self._lacks_prediction and _is_proper(self.fresh)

    # ---- reading -------------------------------------------------------------------------------

    def wait(self, elapsed: float) -> None:
        """Let so much time pass after the last row: reads must count the run to come, too."""
        if not self._begins_proper:
            raise ValueError(NO_WAITING)
        super().wait(elapsed)

    def _next(self) -> tuple[tuple[Any, ...], Array]:
        """The runs and the one to come, and their weights at the next row."""
        known = self.targets.have_variance.all() or not self._lacks_prediction
        if self.seen == 0.0 or not known:
            return self.members, self.probability
        hazard = self.next_hazard
        return (*self.members, self.fresh), np.append(self.probability * (1.0 - hazard), hazard)

    def ahead(self) -> tuple[Sequence[Any], Array]:
        """The runs, with their weights (k,) for the next row.

        Where the prior leaves a direction open only those that have learned more rows than there
        are coefficients, have something to say of the last and know how well they know their
        coefficients: those of others may be anything.
        """
        if self._begins_proper:
            return self._next()
        unknown = self._predict(self.members, self.last).unknown[:, 0]
        enough = ~unknown & (self.learned > self.fresh.n_coefficients)
        enough &= [_is_proper(one) for one in self.members]
        weights = np.where(enough if enough.any() else True, self.probability, 0.0)
        return self.members, weights / weights.sum()

    def predict(self, X: Array, *offsets: Array) -> tuple[list[Any], Array]:
        """Predictions of the rows of ``X``, each as the next row, and weights (n, k)."""
        members, weights = self._next()
        seen = self._predict(members, X, *offsets)
        return seen.weigh(np.broadcast_to(weights, (len(X), len(weights))))

    def _predict(self, members: Sequence[Any], X: Array, *offsets: Array) -> RunPredictions:
        targets = self.targets[np.zeros(len(X), dtype=np.intp)]
        return RunPredictions.of([one.predictive(X, *offsets) for one in members], targets)

    def predict_mean(self, X: Array) -> Array:
        """Mean of new observations, or of eta, at the rows of ``X``: that of the predictions."""
        members, weights = self._next()
        seen = self._predict(members, X)
        others = seen.others
        centre = others.loc if isinstance(others, StudentT) else others.log_mean
        means = np.stack([one.predict_mean(X) for one in members])
        return np.asarray(weights @ np.where(seen.unknown, centre, means))


def _learn_run(member: Any, count: float, rows: tuple[Array, ...]) -> tuple[Any, Any, Array]:
    """A copy of a run that has learned rows, its predictions, and gains (n,) of outliers.

    By so much is a row more probable as an outlier, log; the run does not learn it. Each is found
    once those before it are left out.
    """
    X, y, weights, *others = rows
    outlier = np.zeros(len(X), dtype=bool)
    while True:
        counted = np.where(outlier, 0.0, weights)
        learned = member.copy()
        predictive = learned.predict_then_learn(X, y, counted, *others)
        judges = count + np.cumsum(counted) - counted >= JUDGING_ROWS
        gain = np.where(judges, _find_outliers(predictive, y[:, 0], weights), 0.0)
        found = np.flatnonzero(gain > 0.0)
        later = found[found > np.flatnonzero(outlier).max(initial=-1)]
        if not len(later):
            return learned, predictive, np.where(outlier, gain, 0.0)
        outlier[later[0]] = True


def _find_outliers(predictive: Any, y: Array, weights: Array) -> Array:
    """By how much rows are more probable as outliers, log, or 0: only where there is a noise.

    One still further off has noise of the size of its error: else a gross one would be a change.
    """
    if not isinstance(predictive, LocationScale):
        return np.zeros(len(y))
    error = y - predictive.loc
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(error) / predictive.scale, OUTLIER_SCALE)
        near = predictive.loc + error / scale
        gain = predictive.logpdf(near) - np.log(scale) - predictive.logpdf(y)
    usable = np.isfinite(predictive.scale) & (predictive.scale > 0.0) & (weights > 0.0)
    gain = np.where(usable, weights * gain + math.log(OUTLIER_PROBABILITY), 0.0)
    return np.asarray(np.nan_to_num(np.maximum(gain, 0.0), posinf=LARGEST_LOG_DENSITY))


@dataclass(frozen=True)
class RunPredictions:
    """Predictions of n rows by k runs, and stand-ins where a run's prediction is flat."""

    predictions: list[Any]
    unknown: Mask
    others: Any

    @classmethod
    def of(cls, predictions: list[Any], targets: Targets) -> RunPredictions:
        """Predictions (k) of n rows, with the targets (n,) that came before each."""
        others = targets.predict(counts=hasattr(predictions[0], "logpmf"))
        unknown = np.stack([_is_uninformative(one, others) for one in predictions])
        return cls(predictions, unknown & targets.have_variance, others)

    def densities(self, y: Array) -> Array:
        """(k, n) log densities."""
        own = np.stack([clip_log_densities(one.logpdf(y)) for one in self.predictions])
        return np.where(self.unknown, clip_log_densities(self.others.logpdf(y)), own)

    def weigh(self, weights: Array) -> tuple[list[Any], Array]:
        """What there is to mix by weights (n, k), and its weights."""
        if not self.unknown.any():
            return self.predictions, weights
        handed = np.where(self.unknown.T, weights, 0.0)
        columns = [weights - handed, handed.sum(axis=1, keepdims=True)]
        return [*self.predictions, self.others], np.hstack(columns)


def _is_proper(one: Any) -> bool:
    return bool(np.isfinite(one.joint(("",) * one.n_coefficients).std()).all())


def _variance(predictive: Any) -> Array:
    """Variances (n,); classes have none, and are never unknown."""
    return np.asarray(predictive.var()) if hasattr(predictive, "var") else np.zeros(len(predictive))


def _is_uninformative(predictive: Any, others: Any) -> Mask:
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
