"""A linear model whose noise depends on x: one posterior for the mean, one for the log variance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NoReturn, Self, cast

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array
from posterity.distributions import StudentT
from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.likelihoods import LogPrecision
from posterity.noise import Predictive
from posterity.posteriors._noise_scores import (
    change_units,
    compute_squared_scores,
    correct_errors,
    in_own_units,
    in_sequence,
    learn_spread,
)
from posterity.posteriors._reads import read_along
from posterity.posteriors._site_rows import make_site_rows
from posterity.posteriors._site_start import KeepsFirstRows, StartRows
from posterity.posteriors._site_statistics import SiteStatistics
from posterity.posteriors.gaussian import ONE_TARGET, LinearPosterior
from posterity.posteriors.generalized import GeneralizedPosterior

# Mean and noise of rows that come together are fitted in turns: most rounds, and the tolerance.
MOST_ROUNDS = 30
TOLERANCE = 1e-3
# A stream's log variance is updated each time the rows have grown by one in this many.
GROWTH_DIVISOR = 16
LONGEST_STRETCH = 64
# Limits of log precisions: this far below the average row's, and this multiple of the log of the
# rows above it. A row with too high a precision would dominate the noise's estimate.
LARGEST_LOG_DROP, LOG_RISE_A_LOG_ROW = 20.0, 0.5
# The first rows of a stream are kept until the mean variance of their log precisions is below this.
LARGEST_MEAN_VARIANCE = 0.02


@dataclass
class NoiseStatistics:
    """State beside the two posteriors.

    ``centre`` (m,) is the mean of the features over the rows that the mean's factor holds, and
    ``level`` that of the log precisions they were weighed with. ``rule`` is what rows of a stream
    are weighed by: the spread as it was when the clock's second number was set, and the centre and
    level at that time, ``at`` and ``at_level``; ``clock`` counts rows. ``log_predictive`` sums the
    log densities. ``start`` are the first rows of a stream, kept to be fitted together again.
    """

    centre: Array
    rule: GeneralizedPosterior
    at: Array
    clock: NDArray[np.int64]
    level: float = 0.0
    at_level: float = 0.0
    log_predictive: float = 0.0
    start: StartRows | None = None

    @classmethod
    def before_data(cls, spread: GeneralizedPosterior, n_features: int) -> Self:
        """Return the statistics of no rows."""
        return cls(
            np.zeros(n_features), spread.copy(), np.zeros(n_features), np.zeros(2, dtype=np.int64)
        )

    def move(self, centre: Array, level: Array | float, count: float, held: float) -> None:
        """Let the means know of rows of this weight in all that is held; below 0 they have left."""
        share = min(count / max(held, 1e-300), 1.0)
        self.centre = self.centre + (centre - self.centre) * share
        self.level += (float(level) - self.level) * share

    def copy(self) -> NoiseStatistics:
        """An independent copy."""
        return replace(self, centre=self.centre.copy(), clock=self.clock.copy())

    def copy_from(self, other: NoiseStatistics) -> None:
        """Take over all of another one."""
        self.__dict__.update(other.copy().__dict__)


@dataclass(frozen=True)
class HeteroscedasticPosterior(KeepsFirstRows):
    """Posterior where the log of the noise variance is linear in the features, as the mean is.

    ``y = x.w + e``, ``e ~ Normal(0, sigma^2 exp(-(x - c).g))``, c the mean of the features.
    ``mean`` is any posterior with a learned noise (that of sigma). It learns rows in units of their
    own noise: [1, x] and y times exp((x - c).g / 2). ``spread`` is a posterior of g under
    :class:`posterity.likelihoods.LogPrecision`, which learns the squares of the normal scores of
    errors, each in units of sigma. Its prior is learned, so that noise that does not depend on x is
    found to be constant; at g = 0 this is the ordinary model.

    Rows of a stream are predicted with the g of the rows before them; what is open of g makes
    their Student-t predictions wider (:func:`in_own_units`). Rows that come together are weighed
    by a g that they were asked for too: the mean and the log variance are fitted in turns, with
    errors corrected for leverage (Smyth and Verbyla 1999: restricted maximum likelihood). The
    first rows of a stream, whose weights would otherwise be those of a g of which little was
    known, are kept, and fitted together again whenever half as many more have come.
    """

    mean: LinearPosterior
    spread: GeneralizedPosterior
    statistics: NoiseStatistics = field(repr=False)
    keeps_start: bool = True

    has_fast_learn_one: ClassVar[bool] = False
    has_fast_predict_one: ClassVar[bool] = False
    is_one_factor: ClassVar[bool] = False

    rows_leave_no_trace: ClassVar[bool] = False
    sure: ClassVar[float] = LARGEST_MEAN_VARIANCE

    log_evidence = read_along("statistics.log_predictive")
    # What is known of the mean, given the log variance's coefficients.
    n_observations = read_along("mean.n_observations")
    n_effective = read_along("mean.n_effective")
    coefficients = read_along("mean.coefficients")
    joint = read_along("mean.joint")
    predict_mean = read_along("mean.predict_mean")
    prior_precision = read_along("mean.prior_precision")
    never_varied = read_along("mean.never_varied")
    unseen_effects = read_along("mean.unseen_effects")
    memory: ClassVar[Any] = read_along("mean.memory")  # type: ignore[misc]

    @classmethod
    def wrap(cls, mean: LinearPosterior, spread: GeneralizedPosterior) -> Self:
        """Take over what two posteriors believe that have seen nothing."""
        statistics = NoiseStatistics.before_data(spread, mean.n_coefficients - int(mean.intercept))
        return cls(
            mean.belief,
            mean.noise,
            mean.intercept,
            mean.prior,
            mean.factor,
            mean,
            spread,
            statistics,
        )

    def for_targets(self, count: int) -> LinearPosterior:
        """Refuse: rows are in units of the noise of one target."""
        raise ValueError(ONE_TARGET.format("noise='linear'"))

    def wait(self, elapsed: float) -> None:
        """Let so much time pass after the last row."""
        self.mean.wait(elapsed)
        self.spread.wait(elapsed)

    def copy(self) -> Self:
        """An independent copy."""
        mean = self.mean.copy()
        return self._copy_with(
            factor=mean.factor,
            mean=mean,
            spread=self.spread.copy(),
            statistics=self.statistics.copy(),
        )

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.mean.copy_from(other.mean)
        self.spread.copy_from(other.spread)
        self.statistics.copy_from(other.statistics)

    # ---- learning ------------------------------------------------------------------------------

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Predictive:
        """Learn row after row; returns the distribution of each target before its row."""
        return in_sequence(self._in_order(self._check_rows(X, y, weights, elapsed)))

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows: each leaves with the weight that it would have today.

        Exact for rows of a fit, but for what the others would weigh without them.
        """
        self.memory.check_removal()
        trial, rows, start = self.copy(), make_site_rows(X, y, weights), self.statistics.start
        if not rows.weights.any():
            return
        if abs(self.n_observations - rows.total) <= 1e-12 * rows.total:
            trial._remove_all()
        else:
            if start is None:
                trial._remove_rows(rows)
            else:
                trial._fit_again(start.without(rows))
            predictions = trial.copy().predict_then_learn(X, y, weights, rows.elapsed)
            trial.statistics.log_predictive -= float(rows.weights @ predictions.logpdf(rows.y))
        self.copy_from(trial)

    def merge(self, other: Self) -> None:
        """Learn the rows of ``other`` where it keeps them, else as it weighed them.

        Each prior counts once.
        """
        self.memory.check_merging()
        if self._merge_start(other):
            return
        trial, theirs = self.copy(), other.copy()
        log_unit = trial._log_unit_of(theirs)
        if log_unit != 0.0:
            change_units(theirs.mean, theirs.spread.inner, log_unit)
        theirs.statistics.level += log_unit
        trial.mean.merge(theirs.mean)
        trial.spread.merge(theirs.spread)
        mine, its = trial.statistics, theirs.statistics
        mine.log_predictive += its.log_predictive
        mine.clock[0] += its.clock[0]
        mine.move(its.centre, its.level, other.n_effective, trial.mean.n_held)
        trial._update_weights()
        self.copy_from(trial)

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior, so that they can be merged."""
        return (
            type(self) is type(other)
            and self.mean.has_same_prior(other.mean)
            and self.spread.has_same_prior(other.spread)
        )

    # ---- reading -------------------------------------------------------------------------------

    def predictive(self, X: Array) -> Predictive:
        """Distribution of new observations at the rows of ``X``."""
        log_precision, variance = self._compute_relative_precision(X)
        return in_own_units(
            self.mean.predictive(self._scale_rows(X, log_precision)), log_precision, variance
        )

    def noise_coefficients(self) -> Array:
        """Mean of [intercept, coefficients] of the log variance of the noise."""
        slopes = -self.statistics.rule.coefficients()[1:]
        level = -math.log(self.mean.noise_precision)
        statistics = self.statistics
        return np.concatenate([[level - statistics.at_level - slopes @ statistics.at], slopes])

    @property
    def noise_precision(self) -> NoReturn:
        """Raises: there is not one noise precision for all rows."""
        raise AttributeError(
            "with noise='linear' each row has a noise precision of its own: use "
            "noise_intercept_ and noise_coef_, which give the log of its variance, or "
            "predict_distribution(X).std()"
        )

    # ---- inner ---------------------------------------------------------------------------------

    def _count_until_turn(self, n: int) -> int:
        learned, due = self.statistics.clock
        return int(due - learned)

    def _fit_again(self, start: StartRows) -> None:
        """Learn the first rows together, as if there were no others, and keep them."""
        log_predictive = self.statistics.log_predictive
        self._remove_all()
        self._learn_at_once(start.rows)
        self.statistics.log_predictive, self.statistics.start = log_predictive, start

    def _remove_all(self) -> None:
        """Return to the prior."""
        learned = int(self.statistics.clock[0])
        self.mean.keep(Factor(self.mean.n_coefficients), learned)
        self.spread.keep(Factor(self.spread.n_coefficients), learned)
        self.spread.statistics.copy_from(SiteStatistics())
        self.statistics.copy_from(
            NoiseStatistics.before_data(self.spread, len(self.statistics.centre))
        )

    def _compute_relative_precision(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) of the log precision at rows, relative to the average row's."""
        statistics = self.statistics
        if statistics.rule.n_observations == 0.0:
            return np.zeros(len(X)), np.zeros(len(X))
        rows = np.ascontiguousarray(np.vstack([statistics.at, X]))
        all_means, variance = statistics.rule.inner.linear_moments(rows)
        mean = all_means[1:] - all_means[0]
        open_ = ~np.isfinite(variance[1:])
        added = np.maximum(np.where(open_, 0.0, variance[1:]) - variance[0], 0.0)
        mean = np.where(open_, 0.0, mean) + statistics.at_level
        highest = statistics.level + LOG_RISE_A_LOG_ROW * math.log1p(statistics.clock[0])
        return np.clip(mean, -LARGEST_LOG_DROP, highest), added

    def _scale_rows(self, X: Array, log_precision: Array) -> Array:
        """The rows in units of their noise, the intercept's column in front."""
        unit = np.exp(0.5 * log_precision)[:, None]
        return np.hstack([unit, unit * X]) if self.intercept else unit * X

    def _learn_each(self, rows: SiteRows) -> Predictive:
        """Learn a stretch of rows, whose log precisions are those of the rule."""
        log_precision, variance = self._compute_relative_precision(rows.X)
        target = np.exp(0.5 * log_precision) * rows.y
        scaled = self._scale_rows(rows.X, log_precision), target[:, None], rows.weights
        predictive = self.mean.predict_then_learn(*scaled, rows.elapsed)
        squares, known = compute_squared_scores(predictive, target)
        offsets = LogPrecision().offsets(squares) - log_precision
        halves = np.full((len(rows), 1), 0.5)
        self.spread.predict_then_learn(rows.X, halves, known * rows.weights, rows.elapsed, offsets)
        self.statistics.clock[0] += int(np.count_nonzero(rows.weights))
        self._move(rows, log_precision)
        if self.statistics.clock[0] >= self.statistics.clock[1]:
            self._update_weights()
        in_units = in_own_units(predictive, log_precision, variance)
        self.statistics.log_predictive += float(rows.weights @ in_units.logpdf(rows.y))
        return in_units

    def _compute_variance(self, X: Array) -> Array:
        return self._compute_relative_precision(X)[1]

    def _together(self, rows: SiteRows) -> None:
        """Learn the mean's posterior and the spread's, each given the other."""
        before, X = self.copy(), rows.X
        log_precision = before._compute_relative_precision(X)[0]
        # Units are those of the rows that are there, or else of the average row.
        new = self.n_effective == 0.0 and bool(rows.weights.any())
        anchor = np.average(X, axis=0, weights=rows.weights) if new else before.statistics.centre
        self.statistics.clock[0] += int(np.count_nonzero(rows.weights))
        of_spread = 0.0
        for _ in range(MOST_ROUNDS):
            self.mean.copy_from(before.mean)
            self.spread.copy_from(before.spread)
            target = np.exp(0.5 * log_precision) * rows.y
            scaled = self._scale_rows(X, log_precision)
            self.mean.append(scaled, target[:, None], rows.weights, rows.elapsed)
            predictive = cast(StudentT, self.mean.predictive(scaled))
            squares, counted = correct_errors(predictive, target, self.mean.noise_precision)
            counted = counted * rows.weights
            if not counted.any():
                break
            offsets = LogPrecision().offsets(squares) - log_precision
            of_spread = learn_spread(self.spread, X, counted, rows.elapsed, offsets)
            self.statistics.rule = self.spread
            self.statistics.at, self.statistics.at_level = anchor, before.statistics.level
            moved, log_precision = log_precision, self._compute_relative_precision(X)[0]
            if np.abs(log_precision - moved).max() < TOLERANCE:
                break
        self._move(rows, log_precision)
        self._update_weights()
        # Of the targets given the log precisions, in their own units; and what those are open to.
        gained = self.mean.log_evidence - before.mean.log_evidence + of_spread
        self.statistics.log_predictive += gained + 0.5 * float(rows.weights @ log_precision)

    def _move(self, rows: SiteRows, log_precision: Array, sign: float = 1.0) -> None:
        """Let the means know of rows that came, weighed with these log precisions; or left: -1."""
        weights = rows.weights
        if weights.any():
            centre, level = (np.average(one, 0, weights) for one in (rows.X, log_precision))
            self.statistics.move(centre, level, sign * rows.total, self.mean.n_held)

    def _remove_rows(self, rows: SiteRows) -> None:
        """Unlearn some of the rows from the mean, the spread, and the means of features."""
        X, weights = rows.X, rows.weights
        log_precision = self._compute_relative_precision(X)[0]
        target = np.exp(0.5 * log_precision) * rows.y
        scaled = self._scale_rows(X, log_precision)
        predictive = cast(StudentT, self.mean.predictive(scaled))
        self.mean.remove(scaled, target[:, None], weights)
        squares, counted = correct_errors(predictive, target, self.mean.noise_precision)
        counted = counted * weights
        if counted.any():
            counted *= min(1.0, self.spread.n_observations / float(np.sum(counted)))
            offsets = LogPrecision().offsets(squares) - log_precision
            self.spread.remove(X, np.full((len(X), 1), 0.5), counted, offsets)
        self._move(rows, log_precision, -1.0)
        self.statistics.clock[0] -= int(np.count_nonzero(weights))
        self._update_weights()

    def _log_unit_of(self, other: HeteroscedasticPosterior) -> float:
        """Log of what one in ``other``'s units of precision is in these.

        At its centre its rows have its level of log precision; here they have this one's, and what
        the log precision rises by from centre to centre.
        """
        mine, its = self.statistics, other.statistics
        if self.n_effective == 0.0 or other.n_effective == 0.0:
            return 0.0
        share = other.n_effective / (self.n_effective + other.n_effective)
        slopes = (1.0 - share) * self.spread.coefficients() + share * other.spread.coefficients()
        return float(mine.level - its.level + slopes[1:] @ (its.centre - mine.centre))

    def _update_weights(self) -> None:
        """Weigh rows from now on by the log variance as it is known now."""
        statistics = self.statistics
        statistics.rule, statistics.at = self.spread.copy(), statistics.centre
        statistics.at_level = statistics.level
        rows = int(statistics.clock[0])
        some = min(rows // GROWTH_DIVISOR, LONGEST_STRETCH if self.memory.forgets else rows)
        statistics.clock[1] = rows + max(some, 1)
