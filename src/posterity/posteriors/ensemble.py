"""Several hypotheses, weighed by how well each has predicted.

This is the one recursion behind evidence nodes, averages of models and of memories, and change
points. With s_k the log densities that hypothesis k gave the rows so far, summed (and discounted
by the persistence for every row that came later), its weight for the next row is proportional to

    prior_k exp(persistence s_k):

Bayes' rule with a persistence of 1, the forgetting of Raftery, Karny and Ettler (2010, eq. 14)
below, except that what is forgotten is success and never the prior. A hypothesis that knows less
than others of a row waits: it counts for nothing there, and is scored as the worst of those that
do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array
from posterity.distributions import StudentT
from posterity.distributions.any_mixture import flat_rows
from posterity.distributions.location_scale import LocationScale

Ranks = NDArray[np.uint8]

# Log densities are clipped at this: a point mass must not decide for ever.
LARGEST_LOG_DENSITY = 1e4
# Ranks of a prediction: 0 if it is flat, then if it has a scale, then if it has a variance, too.
HAS_SCALE, HAS_VARIANCE = 1, 2


@dataclass(frozen=True)
class Ensemble:
    """Scores (k,) of k hypotheses, and the log density of all rows under their mixture.

    With ``by_evidence`` a score is a log evidence; otherwise it is the discounted sum of log
    predictive densities.

    Examples
    --------
    >>> start = Ensemble.of(np.log([0.5, 0.5]), persistence=1.0)
    >>> densities, ranks = np.log([[0.1, 0.3], [0.2, 0.2]]), np.full((2, 2), HAS_VARIANCE, np.uint8)
    >>> weights, predictive, after = start.update(densities, ranks)
    >>> weights
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    >>> np.exp(predictive).round(2), after.weights.round(2)
    (array([0.2, 0.2]), array([0.25, 0.75]))
    """

    log_prior: Array
    persistence: float
    by_evidence: bool
    scores: Array
    log_evidence: float = 0.0

    @classmethod
    def of(cls, log_prior: Array, persistence: float) -> Ensemble:
        """Return an ensemble whose hypotheses have predicted nothing yet."""
        return cls(log_prior, persistence, False, np.zeros(len(log_prior)))

    @property
    def weights(self) -> Array:
        """Weights (k,) for the next row, where all of them know as much."""
        return compute_probabilities(self.log_prior, self.persistence * self.scores)

    def given(self, evidences: Array) -> Ensemble:
        """The same hypotheses, of these log evidences (k,) now."""
        logs = (self.log_prior + evidences)[self.log_prior > -math.inf]
        return replace(self, scores=evidences, log_evidence=sum_logs(logs))

    def weights_at(self, ranks: Ranks, scores: Array | None = None) -> Array:
        """Weights (n, k) at rows of which they know as much as their ranks (n, k) say.

        ``scores`` (k,) or (n, k) stand for the present ones.
        """
        scores = self.persistence * self.scores if scores is None else scores
        return compute_probabilities(self.log_prior + self._mask_lower_ranks(ranks), scores)

    def update(
        self, densities: Array, ranks: Ranks, sample_weight: Array | None = None
    ) -> tuple[Array, Array, Ensemble]:
        """Learn how rows were predicted, of these log densities and ranks (n, k).

        Returns the weights (n, k) before each row, the mixture's log density of each (n,), and the
        ensemble after them. A row of weight zero is no row: it takes no time. Rows that nobody may
        judge are not judged.
        """
        waiting = self._mask_lower_ranks(ranks)
        densities = clip_log_densities(densities)
        worst = np.where(waiting == 0.0, densities, math.inf).min(axis=1, keepdims=True)
        densities = np.where(waiting == 0.0, densities, worst)
        unknown = (ranks == 0) | (self.log_prior == -math.inf)
        densities[unknown.all(axis=1)] = 0.0
        if sample_weight is not None:
            densities *= sample_weight[:, None]
        n = len(densities)
        counts = np.ones(n, bool) if sample_weight is None else sample_weight > 0.0
        # Only differences matter; the sums stay near 0.
        relative = densities - densities.max(axis=1, keepdims=True)
        sums = _discount_sums(self.scores, relative[counts], self.persistence)
        seen = np.cumsum(counts) - counts  # rows that count before each row
        weights = self.weights_at(ranks, self.persistence * sums[seen])
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights) + densities
        most = log_weights.max(axis=1)
        added = np.where(
            counts, most + np.log(np.exp(log_weights - most[:, None]).sum(axis=1)), 0.0
        )
        log_evidence = self.log_evidence + float(added.sum())
        return weights, added, replace(self, scores=sums[-1], log_evidence=log_evidence)

    def _mask_lower_ranks(self, ranks: Ranks) -> Array:
        """Zeros (n, k) where a hypothesis may count and -inf where it waits."""
        known = np.where(self.log_prior > -math.inf, ranks.astype(np.int16), -1)
        return np.where(known == known.max(axis=-1, keepdims=True), 0.0, -math.inf)


def compute_probabilities(log_prior: Array, scores: Array | float = 0.0) -> Array:
    """Posterior probabilities (..., k): proportional to exp(log_prior + scores).

    Hypotheses of infinite score share all of it as their priors say; if every score is -inf, so do
    all.

    Examples
    --------
    >>> compute_probabilities(np.log([0.5, 0.5]), np.array([0.0, np.log(3.0)]))
    array([0.25, 0.75])
    """
    scores = np.where(np.isnan(scores), -math.inf, scores)
    certain = (scores == math.inf) & (log_prior > -math.inf)
    if certain.any():
        decided = np.where(certain, 0.0, -math.inf)
        scores = np.where(certain.any(axis=-1, keepdims=True), decided, scores)
    logs = log_prior + scores
    most = logs.max(axis=-1, keepdims=True)
    hopeless = most == -math.inf
    if hopeless.any():
        logs = np.where(hopeless, log_prior, logs)
        most = logs.max(axis=-1, keepdims=True)
    weights = np.exp(logs - most)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def update_probabilities(probability: Array, densities: Array) -> tuple[Array, float]:
    """Bayes' rule for one row: the probabilities (k,) after it, and its log density.

    A point mass that was hit decides as :func:`shares` says, and has no density: 0 stands for it.
    To be called where NumPy's warnings are silent.
    """
    score = np.log(probability)
    score += densities
    best = float(score.max())
    if not math.isfinite(best):
        return compute_probabilities(np.log(probability), densities), 0.0
    score -= best
    likelihood = np.exp(score, out=score)
    total = float(likelihood.sum())
    return np.divide(likelihood, total, out=likelihood), best + math.log(total)


def sum_logs(logs: Array) -> float:
    """Log of the sum of exponentials (k,)."""
    most = float(logs.max())
    if not math.isfinite(most):
        return most
    return most + math.log(float(np.exp(logs - most).sum()))


def clip_log_densities(densities: Array) -> Array:
    """Log densities, clipped to the largest that may be reported."""
    if np.abs(densities).max(initial=0.0) <= LARGEST_LOG_DENSITY:  # NaN is not
        return densities
    return np.clip(
        np.nan_to_num(densities, nan=-LARGEST_LOG_DENSITY),
        -LARGEST_LOG_DENSITY,
        LARGEST_LOG_DENSITY,
    )


def rank_predictions(predictive: Any) -> Ranks:
    """Ranks (n,) of predictions: only the hypotheses of the highest rank are weighted.

    One whose memory is too short for the noise it has to learn has no variance, and an average
    with it would have none either; one that has seen no noise yet is sure of what it can't know.
    """
    if not isinstance(predictive, LocationScale):
        return np.where(flat_rows(predictive), 0, HAS_VARIANCE).astype(np.uint8)
    scale = predictive.scale
    least_df = (
        np.min(predictive.df, initial=math.inf) if isinstance(predictive, StudentT) else math.inf
    )
    ends = np.min(scale, initial=math.inf), np.max(scale, initial=0.0)
    if ends[0] > 0.0 and ends[1] < math.inf and least_df > 2.0:
        return np.full(predictive.shape, HAS_VARIANCE, dtype=np.uint8)
    knows = (scale > 0.0) & np.isfinite(scale)
    varies = knows & np.isfinite(predictive.std())
    return np.broadcast_to(
        knows * HAS_SCALE + varies * (HAS_VARIANCE - HAS_SCALE), predictive.shape
    ).astype(np.uint8)


@singledispatch
def predict_and_score_rows(
    member: Any, X: Array, y: Array, weights: Array | None, elapsed: Array, *offsets: Array
) -> tuple[Any, Array]:
    """A member's predictions of rows before it learned them, and log densities times weights.

    Members that find the densities in learning register their way.
    """
    predictive = member.predict_then_learn(X, y, weights, elapsed, *offsets)
    densities = clip_log_densities(predictive.logpdf(y[:, 0]))
    return predictive, densities if weights is None else weights * densities


@singledispatch
def predict_members(first: Any, members: Sequence[Any], X: Array, *offsets: Array) -> list[Any]:
    """Predictions of rows by members that are all of one kind, ``first`` among them.

    Kinds that predict all at once register their way.
    """
    return [one.predictive(X, *offsets) for one in members]


@singledispatch
def rank_next_row(member: Any) -> int:
    """Rank of a member's prediction of a row at the origin; see :func:`rank_predictions`."""
    nothing = np.zeros((1, member.n_coefficients - int(member.intercept)))
    return int(rank_predictions(member.predictive(nothing))[0])


def _discount_sums(start: Array, steps: Array, persistence: float) -> Array:
    """Sums (n + 1, k): the first is ``start``, each next one persistence times the last + step."""
    if persistence == 1.0:
        return np.cumsum(np.vstack([start, steps]), axis=0)
    from scipy.signal import lfilter  # here: it would triple the time of the import

    if len(steps) == 0:
        return start[None]
    sums, _ = lfilter([1.0], [1.0, -persistence], steps, axis=0, zi=persistence * start[None])
    return np.vstack([start, sums])
