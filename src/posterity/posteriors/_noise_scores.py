"""The likelihood of the noise given one error, and predictions with uncertain noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from scipy.special import digamma, ndtri, polygamma

from posterity.aliases import Array, Mask
from posterity.distributions import Mixture, Normal, StudentT
from posterity.noise import Distribution, Predictive
from posterity.posteriors._nodes import concatenate_rows
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.generalized import GeneralizedPosterior

# Scores are clipped at this many standard deviations.
LARGEST_SCORE = 5.0
NEWTON_STEPS = 4


def compute_squared_scores(predictive: Predictive, y: Array) -> tuple[Array, Mask]:
    """Squares z^2 (n,) of the normal scores of ``y`` (n,), and where there are any (n,).

    z has the probability under the standard normal that y has under its prediction: where noise
    is as it was predicted, z^2 is chi squared with one degree of freedom exactly, however little
    was known of mean and scale.

    Examples
    --------
    >>> compute_squared_scores(Normal([0.0], [2.0]), np.array([3.0]))
    (array([2.25]), array([ True]))
    """
    known = ~predictive.is_flat() & (predictive.std() > 0.0)
    tail = np.minimum(predictive.cdf(y), predictive.sf(y))
    with np.errstate(divide="ignore"):
        z = np.minimum(np.abs(ndtri(tail)), LARGEST_SCORE)
    return np.where(known, z * z, 1.0), known


def in_own_units(predictive: Predictive, log_precision: Array, variance: Array) -> Predictive:
    """Predictions of targets from predictions of sqrt(precision) times the target.

    Parameters
    ----------
    predictive
        Predictions of the scaled targets, one a row.
    log_precision, variance
        (n,) the log precision they were scaled by, and the variance it is known with.

    Notes
    -----
    The log of the noise variance of a Student-t of df degrees of freedom has the variance
    trigamma(df / 2); the uncertain log precision adds its own, and the Student-t that is returned
    has the sum of both, and the same mean of the log.

    Examples
    --------
    >>> in_own_units(Normal([1.0], [1.0]), np.log([4.0]), np.zeros(1))
    Normal(loc=[0.5], scale=[0.5])
    """
    if isinstance(predictive, Mixture):
        components = [
            _rescale_one(cast(Distribution, one), log_precision, variance)
            for one in predictive.components
        ]
        return Mixture(components, predictive.weights)
    return _rescale_one(predictive, log_precision, variance)


def in_sequence(parts: Sequence[Predictive]) -> Predictive:
    """The rows of all parts, which are alike."""
    if len(parts) == 1:
        return parts[0]
    mixtures = [part for part in parts if isinstance(part, Mixture)]
    if not mixtures:
        return concatenate_rows(cast(Sequence[Distribution], parts))
    members = zip(*(part.components for part in mixtures), strict=True)
    components = [concatenate_rows(cast(Any, some)) for some in members]
    weights = [
        np.broadcast_to(part.weights, (*part.shape, len(part.components))) for part in mixtures
    ]
    return Mixture(components, np.concatenate(weights))


def learn_spread(
    spread: GeneralizedPosterior, X: Array, weights: Array, elapsed: Array, offsets: Array
) -> float:
    """Learn squared errors; returns the log of posterior over prior volume (Laplace).

    It is the evidence of the squares less their log likelihood at the mode. The spread's
    intercept is no parameter of its own, the mean's noise is: its volume is left out.
    """
    spread = replace(spread, approximation="laplace")
    first = spread.n_observations == 0.0
    before = 0.0 if first else spread.log_evidence
    halves = np.full((len(X), 1), 0.5)
    learn = spread.fit if first else spread.append
    learn(X, halves, weights, elapsed, offsets)
    eta = spread.predict_mean(X) + offsets
    likelihood = float(weights @ spread.likelihood.log_density(halves[:, 0], eta))
    volume = 0.0
    if first:
        volume = 0.5 * math.log(float(weights @ np.exp(eta)) / (2.0 * math.pi))
    return spread.log_evidence - before - likelihood + volume


def change_units(mean: LinearPosterior, spread: LinearPosterior, log_unit: float) -> None:
    """Have the rows' precisions, and what is known of them, in units exp(-log_unit) as large.

    Rows of the mean are scaled, their prior is not; squares of the spread, whose first column is
    the intercept's, are shifted in logs.
    """
    if not math.isfinite(log_unit):
        raise FloatingPointError(
            "the noise precisions of the models differ too much to merge: fit both models with "
            "targets in the same units"
        )
    rows = mean.without_prior().factor
    rows.set_triangle(math.exp(0.5 * log_unit) * rows.triangle, rows.count, rows.seen)
    mean.keep(rows, 0)
    spread.factor.moments[:, 0] += log_unit * spread.factor.root[:, 0]


def correct_errors(predictive: StudentT, y: Array, precision: float) -> tuple[Array, Array]:
    """Return squared errors of learned rows, e^2 / (1 - h) sigma^2, each of weight 1 - h."""
    if not np.isfinite(precision) or predictive.is_flat().any():
        return np.ones(len(y)), np.zeros(len(y))
    left = np.clip(2.0 - np.square(predictive.scale) * precision, 1e-9, 1.0)
    return np.square(y - predictive.loc) * precision / left, left


def _rescale_one(predictive: Distribution, log_precision: Array, variance: Array) -> Distribution:
    unit = np.exp(-0.5 * log_precision)
    loc, scale = predictive.loc * unit, predictive.scale * unit
    df = np.broadcast_to(getattr(predictive, "df", np.inf), loc.shape)
    if not (variance > 0.0).any():
        return Normal(loc, scale) if isinstance(predictive, Normal) else StudentT(df, loc, scale)
    widened = _widen_degrees_of_freedom(df, variance)
    return StudentT(widened, loc, scale * np.exp(0.5 * (_log_bias(df) - _log_bias(widened))))


def _widen_degrees_of_freedom(df: Array, variance: Array) -> Array:
    """Return degrees of freedom whose half has a trigamma larger by ``variance``."""
    half = 0.5 * np.asarray(df, dtype=np.float64)
    free = (half > 0.0) & (variance > 0.0)
    settled = np.isinf(half)
    goal = np.where(settled, 0.0, polygamma(1, np.where(free & ~settled, half, 1.0))) + variance
    goal = np.where(free, goal, 1.0)
    # trigamma(x) is between 1 / x + 1 / 2 x^2 and 1 / x + 1 / x^2; Newton for its reciprocal.
    x = (1.0 + np.sqrt(1.0 + 2.0 * goal)) / (2.0 * goal)
    for _ in range(NEWTON_STEPS):
        value = polygamma(1, x)
        x = np.maximum(x + value * (1.0 - value / goal) / polygamma(2, x), 1e-8)
    return np.where(free, np.minimum(2.0 * x, df), df)


def _log_bias(df: Array) -> Array:
    """Mean of the log of a variance of which the scaled inverse chi squared scale is 1."""
    half = np.where((df > 0.0) & np.isfinite(df), 0.5 * df, 1.0)
    return np.where((df > 0.0) & np.isfinite(df), np.log(half) - digamma(half), 0.0)
