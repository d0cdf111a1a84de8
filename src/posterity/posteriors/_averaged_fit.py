"""Learning many rows together: sites that are averages over the posterior, from the rows' mode.

The posterior's mode expects more events than came, the more so the fewer they are: it balances the
likelihoods' slopes at one point, and not on average over what is not known. Here each site is what
the likelihood says on average over the posterior, until posterior and sites agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.likelihoods import Likelihood, Sites
from posterity.likelihoods.averages import averaged_sites
from posterity.posteriors._site_fit import compute_change
from posterity.posteriors._site_mode import Fitted, find_mode
from posterity.posteriors.gaussian import LinearPosterior
from posterity.priors import GaussianPrior

Array = NDArray[np.float64]

MOST_ROUNDS, MOST_HALVINGS = 200, 20
# Relative rounding of the bound, and the least variance of a feature.
SLACK, TINY = 1e-12, 1e-290
# Largest change of a mean, in posterior standard deviations, or of a log variance, in the last
# round; and in that before, where rounds come nearer that fast.
TOLERANCE = 1e-2
# Rare events may leave variances at the mode beyond all averages: above this, the search may start
# from a mode under another prior.
LARGEST_VARIANCE = 4.0


class Averages(NamedTuple):
    """Sites (n,) by precision and precision times target, what is known with them, what they say.

    ``bound`` is the lower bound of the log evidence, but for a constant: where a round is good it
    rises.
    """

    precision: Array
    shift: Array
    mean: Array
    variance: Array
    wanted: Sites
    bound: float


def average_under_prior(
    prior: Factor, likelihood: Likelihood, rows: SiteRows, intercept: bool, mode: Fitted
) -> Fitted:
    """Search for averaged sites of the rows, from those at their mode; as these if it fails.

    All sites move at once, which ascends the lower bound of the evidence (Khan and Lin 2017,
    "Conjugate-computation variational inference"), if need be with smaller steps.
    """

    def look(precision: Array, shift: Array) -> Averages:
        known = prior.copy()
        known.append(rows.X, _targets(precision, shift, rows), precision, intercept=intercept)
        mean, variance = known.predict(rows.X, intercept=intercept)
        eta = mean[:, 0] + rows.offsets
        wanted = averaged_sites(likelihood, rows.y, eta, variance, rows.weights)
        bound = float(np.sum(wanted.log_normalizer)) - _compute_divergence(prior, known)
        return Averages(precision, shift, eta, variance, wanted, bound)

    def look_at(sites: Sites) -> Averages:
        return look(sites.precision, sites.precision * sites.target)

    now, step = look_at(mode.sites), 1.0
    if now.variance.max(initial=0.0) > LARGEST_VARIANCE:
        other = look_at(_find_moderate_mode(prior, likelihood, rows, intercept).sites)
        now = max(now, other, key=lambda one: one.bound)
    for _ in range(MOST_ROUNDS):
        after, step = _ascend(look, now, step)
        change = compute_change(now.mean, now.variance, after.mean, after.variance) / step
        now, step = after, min(2.0 * step, 1.0)
        if change < TOLERANCE:
            break
    return _finish(now, mode)


def average_over_posterior(
    inner: LinearPosterior, likelihood: Likelihood, rows: SiteRows, fitted: Fitted
) -> tuple[LinearPosterior, Fitted]:
    """A copy of ``inner`` that has learned averaged sites under all priors that it weighs."""
    sites = fitted.sites
    precision, shift = sites.precision, sites.precision * sites.target
    moments, last, step = None, math.inf, 1.0
    for _ in range(MOST_ROUNDS):
        trial = inner.copy()
        trial.append(rows.X, _targets(precision, shift, rows), precision, rows.elapsed)
        mean, variance = trial.linear_moments(rows.X)
        mean = mean + rows.offsets
        wanted = averaged_sites(likelihood, rows.y, mean, variance, rows.weights)
        now = Averages(precision, shift, mean, variance, wanted, 0.0)
        if moments is not None:
            change = compute_change(*moments, mean, variance) / step
            if change < TOLERANCE:
                break
            if change > last:
                step = max(0.7 * step, 0.05)
            last = change
        moments = mean, variance
        precision, shift = _move(now, step)
    return trial, _finish(now, fitted)


def _ascend(
    look: Callable[[Array, Array], Averages], now: Averages, step: float
) -> tuple[Averages, float]:
    """The next round, and the length of its step, shortened until the bound rises."""
    for _ in range(MOST_HALVINGS):
        after = look(*_move(now, step))
        if after.bound >= now.bound - SLACK * (1.0 + abs(now.bound)):
            return after, step
        step *= 0.5
    return now, step


def _find_moderate_mode(
    prior: Factor, likelihood: Likelihood, rows: SiteRows, intercept: bool
) -> Fitted:
    """The mode under a prior, too, by which a feature's standard deviation changes eta by 1."""
    moderate = GaussianPrior(0.0, rows.X.var(axis=0) + TINY)
    some = moderate.factor(rows.X.shape[1], intercept=intercept).combine(prior)
    return find_mode(some, likelihood, rows, None, intercept)


def _move(now: Averages, step: float) -> tuple[Array, Array]:
    wanted = now.wanted
    return (
        now.precision + step * (wanted.precision - now.precision),
        now.shift + step * (wanted.precision * wanted.target - now.shift),
    )


def _targets(precision: Array, shift: Array, rows: SiteRows) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(precision > 0.0, shift / precision - rows.offsets, 0.0)[:, None]


def _finish(now: Averages, fitted: Fitted) -> Fitted:
    with np.errstate(divide="ignore", invalid="ignore"):
        target = np.where(now.precision > 0.0, now.shift / now.precision, now.mean)
    sites = Sites(now.precision, target, now.wanted.log_normalizer)
    # The constants' own part is of these sites, not of those wanted next.
    own = now.precision * (np.square(now.mean - target) + now.variance)
    log_scale = float(np.sum(now.wanted.log_normalizer + 0.5 * own))
    return replace(fitted, sites=sites, log_scale=log_scale, averaged=True)


def _compute_divergence(prior: Factor, known: Factor) -> float:
    """Kullback-Leibler divergence of what is known from the prior, but for a constant."""
    w = known.coefficients()[:, 0]
    spread = solve_triangular(known.root, prior.root.T, trans="T")
    off = prior.root @ w - prior.moments[:, 0]
    return 0.5 * (float(off @ off) + float(np.sum(np.square(spread))) + known.log_determinant())
