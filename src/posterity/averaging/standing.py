"""How several models stand: their weights before each row, from how they did on the rows so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from posterity.posteriors.averaged import MOST_TELLING

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Standing:
    """Scores (k,) of k models, and the log density of all rows under their mixture.

    With ``by_evidence`` a score is the model's log evidence; otherwise it is the sum of its log
    predictive densities, discounted by ``persistence`` for every row that came later.
    """

    log_prior: Array
    persistence: float
    by_evidence: bool
    scores: Array
    log_evidence: float = 0.0

    @property
    def weights(self) -> Array:
        """Weights (k,) for the next row."""
        return shares(self.log_prior, self.persistence * self.scores)

    def given(self, evidences: Array) -> Standing:
        """The same models, of these log evidences (k,) now."""
        return replace(self, scores=evidences, log_evidence=_mixed(self.log_prior, evidences))


def shares(log_prior: Array, scores: Array) -> Array:
    """Posterior probabilities (..., k): proportional to exp(log_prior + scores).

    Models of infinite score share all of it as their priors say; if every score is -inf, so do all.
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


def _mixed(log_prior: Array, scores: Array) -> float:
    """Log of the sum of prior times exp(score)."""
    logs = (log_prior + scores)[log_prior > -math.inf]
    most = float(logs.max())
    if not math.isfinite(most):
        return most
    return most + math.log(float(np.exp(logs - most).sum()))


def allowed(flat: Flags, log_prior: Array) -> Array:
    """Zeros (n, k) where a model may count and -inf where not, to be added to log weights.

    A model whose prediction is flat (``flat``) would make the whole mixture so: it waits until it
    knows enough, unless none does.
    """
    counting = ~flat & (log_prior > -math.inf)
    counting |= ~counting.any(axis=-1, keepdims=True)
    return np.where(counting, 0.0, -math.inf)


def judged(
    standing: Standing, densities: Array, flat: Flags, sample_weight: Array | None
) -> tuple[Array, Standing]:
    """Weights (n, k) before each row by the predictions of the rows before it, and what follows.

    ``densities`` (n, k) are log predictive densities. The weights before row t are proportional to

        prior_k exp(sum over s < t of persistence^(t - s) w_s log p_k(y_s | rows before s)),

    the forgetting of Raftery, Karny and Ettler (2010, eq. 14), except that what is forgotten is
    success and never the prior. A row of weight zero is no row: it takes no time. A model that may
    not count at a row is scored as the worst of those that do; rows that nobody may judge are not.
    """
    log_prior, persistence = standing.log_prior, standing.persistence
    densities = np.clip(np.nan_to_num(densities, nan=-MOST_TELLING), -MOST_TELLING, MOST_TELLING)
    barred = allowed(flat, log_prior)
    worst = np.where(barred == 0.0, densities, math.inf).min(axis=1, keepdims=True)
    densities = np.where(barred == 0.0, densities, worst)
    densities[(flat | (log_prior == -math.inf)).all(axis=1)] = 0.0
    if sample_weight is not None:
        densities *= sample_weight[:, None]
    counts = np.ones(len(densities), bool) if sample_weight is None else sample_weight > 0.0
    # Only differences matter; the sums stay near 0.
    relative = densities - densities.max(axis=1, keepdims=True)
    sums = _discounted(standing.scores, relative[counts], persistence)
    seen = np.cumsum(counts) - counts  # rows that count before each row
    weights = shares(log_prior, persistence * sums[seen] + barred)
    with np.errstate(divide="ignore"):
        told = np.log(weights) + densities
    most = told.max(axis=1)
    added = np.where(counts, most + np.log(np.exp(told - most[:, None]).sum(axis=1)), 0.0)
    log_evidence = standing.log_evidence + float(added.sum())
    return weights, replace(standing, scores=sums[-1], log_evidence=log_evidence)


def _discounted(start: Array, steps: Array, persistence: float) -> Array:
    """Sums (n + 1, k): the first is ``start``, each next one persistence times the last + step."""
    if persistence == 1.0:
        return np.cumsum(np.vstack([start, steps]), axis=0)
    from scipy.signal import lfilter  # here: it would triple the time of the import

    if len(steps) == 0:
        return start[None]
    sums, _ = lfilter([1.0], [1.0, -persistence], steps, axis=0, zi=persistence * start[None])
    return np.vstack([start, sums])
