"""Learning many rows together: sites that are averages over the posterior, from the rows' mode.

The posterior's mode expects more events than came, the more so the fewer they are: it balances the
likelihoods' slopes at one point, and not on average over what is not known. Here each site is what
the likelihood says on average over the posterior, until posterior and sites agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.likelihoods import Likelihood, Sites
from posterity.likelihoods.averages import averaged_sites
from posterity.posteriors._site_mode import Fitted, find_mode
from posterity.posteriors.gaussian import LinearPosterior
from posterity.priors import GaussianPrior

Array = NDArray[np.float64]

MOST_ROUNDS, MOST_PRIOR_ROUNDS, MOST_HALVINGS, LEAST_STEP = 200, 20, 20, 0.05
# Largest change after the last round, in posterior sds and shares of the precision; of a search, as
# the round before the last lets expect, which itself changes no more than the other.
TOLERANCE, LARGEST_CHANGE = 1e-3, 1e-1
# Relative rounding of the bound, and the least variance of a feature.
SLACK, TINY = 1e-12, 1e-290
# Information per coefficient, and sd of eta under the prior: below the first and above the second
# the rows do not identify the scale of coefficients.
LITTLE_INFORMATION, LARGEST_SPREAD = 2.0, 20.0
# Rare events may leave variances at the mode beyond all averages: above this, the search may start
# from a mode under another prior.
LARGEST_VARIANCE = 4.0
# Of eta in any row: below, the mode expects at most 1.5% too many events in it.
SMALL_VARIANCE = 0.03


@dataclass(frozen=True)
class Averages:
    """What is known with sites (n,), given by precision and precision times target.

    That is a factor, and mean and variance of each eta (n,). ``wanted`` are the averages over it,
    which are the sites themselves where the search ends.
    """

    X: Array
    prior: Factor
    precision: Array
    shift: Array
    factor: Factor
    mean: Array
    variance: Array
    wanted: Sites

    def move(self, step: float) -> tuple[Array, Array]:
        """Return the next sites: this share of the way to those wanted."""
        wanted = self.wanted
        return (
            self.precision + step * (wanted.precision - self.precision),
            self.shift + step * (wanted.precision * wanted.target - self.shift),
        )

    @cached_property
    def change(self) -> float:
        """By how much the sites wanted change what is known.

        The length of the mean's move, in standard deviations, and of the precision the share.
        """
        wanted = self.wanted
        pull = wanted.precision * (wanted.target - self.mean)
        pull -= self.shift - self.precision * self.mean
        slopes = pull @ self.X
        if len(slopes) < self.factor.n_coefficients:
            slopes = np.concatenate([[np.sum(pull)], slopes])
        moved = self._whiten(slopes)
        spread = np.abs(wanted.precision - self.precision) @ self.variance
        return max(float(np.linalg.norm(moved)), float(spread))

    @cached_property
    def bound(self) -> float:
        """The lower bound of the log evidence, but for a constant: where a round is good it rises.

        The average log density less the divergence (Kullback and Leibler's) from the prior.
        """
        w, root = self.factor.coefficients()[:, 0], self.prior.root
        spread = self._whiten(root.T)
        off = root @ w - self.prior.moments[:, 0]
        squares = float(off @ off) + float(np.sum(np.square(spread)))
        divergence = 0.5 * (squares + self.factor.log_determinant())
        return float(np.sum(self.wanted.log_normalizer)) - divergence

    def _whiten(self, values: Array) -> Array:
        """Return these (p, ...) in standard deviations; directions that are open are left out."""
        kept = self.factor.determined
        return solve_triangular(self.factor.root[np.ix_(kept, kept)], values[kept], trans="T")


def average_sites(
    inner: LinearPosterior, prior: Factor, likelihood: Likelihood, rows: SiteRows, mode: Fitted
) -> tuple[LinearPosterior, Fitted] | None:
    """A copy of ``inner`` that has learned averaged sites of the rows, and the sites.

    They are searched for under ``prior``, from those at the mode under it; where ``inner`` weighs
    several priors, then under all of these. None where all rows' eta are known so well that the
    mode is as good.
    """
    found = _search_under_prior(prior, likelihood, rows, inner.intercept, mode)
    if found is None:
        return None
    now, step = found
    trial, now = _learn(inner, rows, now, step)
    last, scales = 1.0, rows.X.std(axis=0)
    for _ in range(MOST_PRIOR_ROUNDS if inner.learns_prior else 0):
        mean, variance = trial.linear_moments(rows.X)
        eta = mean + rows.offsets
        wanted = averaged_sites(likelihood, rows.y, eta, variance, rows.weights)
        now = replace(now, mean=eta, variance=variance, wanted=wanted)
        if now.change < TOLERANCE:
            break
        step, last = (step if now.change < last else max(0.7 * step, LEAST_STEP)), now.change
        after, following = _learn(inner, rows, now, step)
        if leaves_scale_open(_get_middle_prior(after), following.precision, scales):
            break
        trial, now = after, following
    return trial, _finish(now, mode)


def _learn(
    inner: LinearPosterior, rows: SiteRows, now: Averages, step: float
) -> tuple[LinearPosterior, Averages]:
    """A copy of ``inner`` that has learned the sites after a step, and these."""
    precision, shift = now.move(step)
    trial = inner.copy()
    trial.append(rows.X, _compute_targets(precision, shift, rows), precision, rows.elapsed)
    return trial, replace(now, precision=precision, shift=shift)


def _get_middle_prior(posterior: LinearPosterior) -> Factor:
    parts = posterior.parts
    return parts[len(parts) // 2][1].prior


def leaves_scale_open(prior: Factor, precision: Array, scales: Array) -> bool:
    """Return True if sites of these precisions (n,) do not identify the prior's scale.

    As with separable labels: a larger scale then fits better without end, and leaves the rows
    without information. Features have these standard deviations (m,).
    """
    if np.sum(precision) >= LITTLE_INFORMATION * prior.n_coefficients:
        return False
    root = np.diagonal(prior.root)[-len(scales) :]
    with np.errstate(divide="ignore"):
        return bool(np.mean(np.square(scales / root)) > LARGEST_SPREAD**2)


def _search_under_prior(
    prior: Factor, likelihood: Likelihood, rows: SiteRows, intercept: bool, mode: Fitted
) -> tuple[Averages, float] | None:
    """Search for averaged sites under one prior; returns the last but one, and the step to them.

    None where the mode is as good.

    All sites move at once, which ascends the lower bound of the evidence (Khan and Lin 2017,
    "Conjugate-computation variational inference"), if need be with smaller steps.
    """

    def look(precision: Array, shift: Array) -> Averages:
        known = prior.copy()
        targets = _compute_targets(precision, shift, rows)
        known.append(rows.X, targets, precision, intercept=intercept)
        mean, variance = known.predict(rows.X, intercept=intercept)
        eta = mean[:, 0] + rows.offsets
        wanted = averaged_sites(likelihood, rows.y, eta, variance, rows.weights)
        return Averages(rows.X, prior, precision, shift, known, eta, variance, wanted)

    def look_at(sites: Sites) -> Averages:
        return look(sites.precision, sites.precision * sites.target)

    now, step, last = look_at(mode.sites), 1.0, 1.0
    if now.variance.max(initial=0.0) < SMALL_VARIANCE:
        return None
    if now.variance.max(initial=0.0) > LARGEST_VARIANCE:
        other = look_at(_find_moderate_mode(prior, likelihood, rows, intercept).sites)
        now = max(now, other, key=lambda one: one.bound)
    for _ in range(MOST_ROUNDS):
        change = now.change
        if change < LARGEST_CHANGE and change * min(change / last, 1.0) < TOLERANCE:
            break
        now, step = _ascend(look, now, min(2.0 * step, 1.0))
        last = change
    return now, step


def _ascend(
    look: Callable[[Array, Array], Averages], now: Averages, step: float
) -> tuple[Averages, float]:
    """The next round, and its step, shortened until it is nearer or the bound rises."""
    for _ in range(MOST_HALVINGS):
        after = look(*now.move(step))
        if after.change < now.change or after.bound >= now.bound - SLACK * (1.0 + abs(now.bound)):
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


def _compute_targets(precision: Array, shift: Array, rows: SiteRows) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(precision > 0.0, shift / precision - rows.offsets, 0.0)[:, None]


def _finish(now: Averages, fitted: Fitted) -> Fitted:
    with np.errstate(divide="ignore", invalid="ignore"):
        target = np.where(now.precision > 0.0, now.shift / now.precision, now.mean)
    sites = Sites(now.precision, target, now.wanted.log_normalizer)
    own = now.precision * (np.square(now.mean - target) + now.variance)
    log_scale = float(np.sum(now.wanted.log_normalizer + 0.5 * own))
    return replace(fitted, sites=sites, log_scale=log_scale, averaged=True)
