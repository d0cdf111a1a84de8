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

from posterity.aliases import Array
from posterity.distributions.triangles import solve_triangle
from posterity.factor import Factor
from posterity.factor.gram import CONDITION, bend_products, solve
from posterity.factor.rows import SiteRows
from posterity.factor.sites import summarize_sites
from posterity.kernel import Mixing, measure_round
from posterity.likelihoods import Likelihood, Sites
from posterity.likelihoods.averages import averaged_sites
from posterity.posteriors._site_mode import Fitted, compute_eta, find_mode
from posterity.posteriors.gaussian import LinearPosterior
from posterity.priors import GaussianPrior

MOST_ROUNDS, MOST_PRIOR_ROUNDS, MOST_HALVINGS, LEAST_STEP = 100, 20, 20, 0.05
# Largest change after the last round, in posterior sds and shares of the precision; of a search, as
# the round before the last lets expect, which itself changes no more than the other.
TOLERANCE, LARGEST_CHANGE = 3e-4, 1e-1
# Where priors move with the sites: changes from which on the last rounds tell the next one.
MIXED_CHANGE = 0.3
# Relative rounding of the bound, and the least variance of a feature.
SLACK, TINY = 1e-12, 1e-290
# Information per coefficient, and sd of eta under the prior: below the first and above the second
# the rows do not identify the scale of coefficients.
LITTLE_INFORMATION, LARGEST_SPREAD = 2.0, 20.0
# Rare events may leave variances at the mode beyond all averages: above this, the search may start
# from a mode under another prior.
LARGEST_VARIANCE = 4.0
# Largest variance of eta, relative to that at the mode where it is above 1, and largest move of its
# mean, in standard deviations at the mode, beyond which averages have run away: of a likelihood
# that is flat far out, as of angles and of inverse Gaussian amounts, they tell ever less there, and
# an open prior does not hold them. Labels that a line separates move up to ten by right.
RUNAWAY, FARTHEST = 1e4, 12.0
# Variance of eta in any row, of noise relative to it: below, one round from the mode is enough, and
# none where it would change what is known by no more than this.
SMALL_VARIANCE, SMALL_CHANGE = 0.03, 0.03
# Below this variance, sites follow the mean as Newton's steps do.
NEAR_VARIANCE = 0.3
# A number of rows beyond which floats have gaps.
MOST_ROWS = 2.0**53
# Passes over the rows at most, and the tolerances of the mean's last move in standard deviations
# and, of each coefficient, of the move that is left and of the precision's share.
MOST_PASSES, PASS_TOLERANCE, NEAR_MOVE, NEAR_SPREAD = 20, 1e-4, 3e-4, 1e-3


class Averages(NamedTuple):
    """What is known with ``sites`` (2, n), precisions and precisions times targets.

    That is a factor, and mean and variance of each eta (n,). ``wanted`` are the averages over it,
    and ``goal`` (2, n) their sites, which are the sites themselves where the search ends. The goal
    moves the mean by ``move`` standard deviations, and changes the precision by ``spread``, a share
    over all directions.
    """

    sites: Array
    factor: Factor
    mean: Array
    variance: Array
    wanted: Sites
    goal: Array
    move: float
    spread: float

    def step(self, share: float) -> Array:
        """Return the next sites: this share of the way to those wanted."""
        return self.sites + share * (self.goal - self.sites)

    def extrapolate(self, mixing: Mixing) -> Array:
        """Return the next sites, by what the last rounds tell."""
        return mixing.extrapolate(self.sites, self.goal, self.mean, self.variance)

    @property
    def change(self) -> float:
        """By how much the sites wanted change what is known: its mean or its precision."""
        return max(self.move, self.spread)

    def settles(self, last: float) -> bool:
        """Return True if the next round changes nothing, as its change and the ``last`` tell."""
        rate = min(self.change / min(last, LARGEST_CHANGE), 1.0)
        return self.change * rate < TOLERANCE

    def compute_bound(self, prior: Factor) -> float:
        """The lower bound of the log evidence, but for a constant: where a round is good it rises.

        The average log density less the divergence (Kullback and Leibler's) from the prior.
        """
        kept, root, w = self.factor.determined, self.factor.root, self.factor.coefficients()[:, 0]
        spread = solve_triangle(root[np.ix_(kept, kept)], prior.root.T[kept], transposed=True)
        off = prior.root @ w - prior.moments[:, 0]
        squares = float(off @ off) + float(np.sum(np.square(spread)))
        divergence = 0.5 * (squares + self.factor.log_determinant())
        return float(np.sum(self.wanted.log_normalizer)) - divergence

    def has_left(self, begun: Averages) -> bool:
        """Return True if these have run away from where they have ``begun``."""
        most_variance = RUNAWAY * max(float(begun.variance.max(initial=0.0)), 1.0)
        far = np.abs(self.mean - begun.mean) > FARTHEST * np.sqrt(begun.variance)
        return bool(far.any()) or float(self.variance.max(initial=0.0)) > most_variance


def average_sites(
    inner: LinearPosterior,
    prior: Factor,
    likelihood: Likelihood,
    rows: SiteRows,
    mode: Fitted,
    most: int = MOST_PRIOR_ROUNDS,
) -> tuple[LinearPosterior, Fitted] | None:
    """A copy of ``inner`` that has learned averaged sites of the rows, and the sites.

    They are searched for under ``prior``, from those at the mode under it; where ``inner`` weighs
    several priors, then under all of these, in ``most`` rounds at most. None where the mode is as
    good.
    """

    def look(sites: Array) -> Averages:
        known = prior.copy()
        known.append(rows.X, _compute_targets(sites, rows), sites[0], intercept=inner.intercept)
        mean, variance = known.predict(rows.X, intercept=inner.intercept)
        return _average(likelihood, rows, sites, known, mean[:, 0], variance)

    now = look(_stack(mode.sites))
    # A row that weighs twice is two rows.
    of_one = now.sites[0] / np.maximum(rows.weights, 1.0) if likelihood.is_noise else 1.0
    sizes = now.variance * of_one
    if sizes.max(initial=0.0) < SMALL_VARIANCE:
        if now.change < SMALL_CHANGE and not mode.averaged:
            return None
        now = now._replace(sites=now.goal)
        return _learn(inner, rows, now.sites), _finish(now, mode)
    found = _search_under_prior(look, now, prior, likelihood, rows)
    if found is None:
        return None
    trial, found = _follow_prior(inner, likelihood, rows, found, now, most)
    return None if found.has_left(now) else (trial, _finish(found, mode))


def _follow_prior(
    inner: LinearPosterior,
    likelihood: Likelihood,
    rows: SiteRows,
    now: Averages,
    begun: Averages,
    most: int,
) -> tuple[LinearPosterior, Averages]:
    """Sites and the priors that they choose, in turns, from sites that agree under one prior."""
    trial = _learn(inner, rows, now.sites)
    mixing, step, last = Mixing(rows.weights), 1.0, 1.0
    agreed, middle = (trial, now), _get_middle(trial)
    for _ in range(most if inner.learns_prior else 0):
        mean, variance = trial.linear_moments(rows.X)
        now = _average(likelihood, rows, now.sites, middle.factor, mean, variance)
        if now.change < TOLERANCE or now.has_left(begun):
            break
        if now.change > RUNAWAY:  # as of counts that are all 0, under the priors that they choose
            trial, now = agreed
            break
        if now.change >= last:
            mixing.restart()
            step = max(0.7 * step, LEAST_STEP)
        goal = now.extrapolate(mixing) if now.change < MIXED_CHANGE else now.goal
        following = now._replace(sites=now.sites + step * (goal - now.sites))
        after, last = _learn(inner, rows, following.sites), now.change
        middle = _get_middle(after)
        if leaves_scale_open(middle.prior, following.sites[0], rows):
            break
        trial, now = after, following
    return trial, now


def learn_near_mode(inner: LinearPosterior, rows: SiteRows, of_sites: Factor) -> LinearPosterior:
    """A copy of ``inner`` that knows the rows by this factor of their sites."""
    trial = inner.copy()
    known = inner.without_prior().factor.combine(of_sites)
    trial.keep(known, -round(min(rows.total, MOST_ROWS)))
    return trial


def average_near_mode(
    inner: LinearPosterior,
    likelihood: Likelihood,
    rows: SiteRows,
    near: LinearPosterior,
    variance: Array,
) -> tuple[LinearPosterior, Fitted] | None:
    """The same as :func:`average_sites`, from what is known ``near`` the mode, in a few products.

    ``variance`` (n,) are those of each eta there. None where the mode is as good, or too far away.
    """
    if not SMALL_VARIANCE <= variance.max(initial=0.0) < NEAR_VARIANCE:
        return None
    for _ in range(MOST_PRIOR_ROUNDS):
        sites = _follow_mean(inner, likelihood, rows, near, variance)
        if sites is None:
            return None
        target = _compute_targets(sites, rows)[:, 0]
        of_sites = summarize_sites(rows.X, sites[0], target, inner.intercept, CONDITION)
        near = learn_near_mode(inner, rows, of_sites)
        (mean, variance), middle = near.linear_moments(rows.X), _get_middle(near)
        now = _average(likelihood, rows, sites, middle.factor, mean, variance)
        p = inner.n_coefficients
        if now.move < NEAR_MOVE * math.sqrt(p) and now.spread < NEAR_SPREAD * p:
            return near, _finish(now, Fitted(now.wanted, 0.0, near.coefficients(), converged=True))
    return None


def _follow_mean(
    inner: LinearPosterior,
    likelihood: Likelihood,
    rows: SiteRows,
    near: LinearPosterior,
    variance: Array,
) -> Array | None:
    """Sites (2, n) that agree with the mean that they lead to, under the priors of ``near``.

    By passes over the rows: the products of the sites ``near``, times their change on average, are
    bent by each step, and the variances are those there. None where the products are singular.
    """
    before, known = inner.without_prior().factor, near.without_prior().factor
    priors = [(share, *_multiply(one.prior)) for share, one in near.parts]
    matrix, w, last = _multiply(known)[0], near.coefficients(), None
    for _ in range(MOST_PASSES):
        eta = compute_eta(rows, w, inner.intercept)
        wanted = averaged_sites(likelihood, rows.y, eta, variance, rows.weights)
        pull = wanted.precision * (wanted.target - eta)
        slope = _add_up(rows.X, pull, known)
        slope += before.root.T @ (before.moments[:, 0] - before.root @ w)
        if last is None:
            grown = (before.count + float(np.sum(wanted.precision))) / known.count
            matrix, variance = grown * matrix, variance / grown
        else:
            matrix = bend_products(matrix, w - last[0], last[1] - slope)
        right = matrix @ w + slope
        found = np.zeros(len(w))
        for share, precision, shift in priors:
            one = solve(matrix + precision, right + shift)
            if one is None:
                return None
            found += share * one
        last, w = (w, slope), found
        step = w - last[0]
        if step @ matrix @ step < PASS_TOLERANCE**2:
            break
    return _stack(wanted)


def _learn(inner: LinearPosterior, rows: SiteRows, sites: Array) -> LinearPosterior:
    """A copy of ``inner`` that has learned the sites."""
    trial = inner.copy()
    trial.append_sites(rows.X, _compute_targets(sites, rows), sites[0], rows)
    return trial


def _average(
    likelihood: Likelihood,
    rows: SiteRows,
    sites: Array,
    factor: Factor,
    mean: Array,
    variance: Array,
) -> Averages:
    """The averages over what is known with these sites, mean and variance without offsets."""
    eta = mean + rows.offsets
    wanted = averaged_sites(likelihood, rows.y, eta, variance, rows.weights)
    goal = _stack(wanted)
    change = measure_round(factor.triangle, rows.X, sites, goal, eta, variance)
    return Averages(sites, factor, eta, variance, wanted, goal, *change)


def _multiply(factor: Factor) -> tuple[Array, Array]:
    """The products (p, p) of a factor's rows, and with their targets (p,)."""
    return factor.root.T @ factor.root, factor.root.T @ factor.moments[:, 0]


def _get_middle(posterior: LinearPosterior) -> LinearPosterior:
    parts = posterior.parts
    return parts[len(parts) // 2][1]


def leaves_scale_open(prior: Factor, precision: Array, rows: SiteRows) -> bool:
    """Return True if sites of these precisions (n,) do not identify the prior's scale.

    As with separable labels: a larger scale then fits better without end, and leaves the rows
    without information.
    """
    if np.sum(precision) >= LITTLE_INFORMATION * prior.n_coefficients:
        return False
    root = np.diagonal(prior.root)[-len(rows.spread) :]
    with np.errstate(divide="ignore"):
        return bool(np.mean(np.square(rows.spread / root)) > LARGEST_SPREAD**2)


def _search_under_prior(
    look: Callable[[Array], Averages],
    now: Averages,
    prior: Factor,
    likelihood: Likelihood,
    rows: SiteRows,
) -> Averages | None:
    """Search for averaged sites under one prior; None where there are none.

    All sites move at once, which ascends the lower bound of the evidence (Khan and Lin 2017,
    "Conjugate-computation variational inference"), if need be with smaller steps.
    """
    last, mixing, begun = math.inf, Mixing(rows.weights), now
    if now.variance.max(initial=0.0) > LARGEST_VARIANCE:
        other = look(_stack(_find_moderate_mode(prior, likelihood, rows).sites))
        now = max(now, other, key=lambda one: one.compute_bound(prior))
    for _ in range(MOST_ROUNDS):
        if now.has_left(begun):
            break
        if now.settles(last):
            return now._replace(sites=now.extrapolate(mixing))
        last, before = now.change, now
        now = _ascend(look, now, prior, mixing)
        if now is before:  # nor would it move in another round
            break
    return None


def _ascend(
    look: Callable[[Array], Averages], now: Averages, prior: Factor, mixing: Mixing
) -> Averages:
    """The next round, its step shortened until it is nearer or the bound rises."""
    sites, step = now.extrapolate(mixing), 1.0
    for _ in range(MOST_HALVINGS):
        after = look(sites)
        if after.change < now.change:
            return after
        bound = now.compute_bound(prior)
        if after.compute_bound(prior) >= bound - SLACK * (1.0 + abs(bound)):
            return after
        mixing.restart()
        step *= 0.5
        sites = now.step(step)
    return now


def _find_moderate_mode(prior: Factor, likelihood: Likelihood, rows: SiteRows) -> Fitted:
    """The mode under a prior, too, by which a feature's standard deviation changes eta by 1."""
    intercept = prior.n_coefficients > rows.X.shape[1]
    moderate = GaussianPrior(0.0, rows.X.var(axis=0) + TINY)
    some = moderate.factor(rows.X.shape[1], intercept=intercept).combine(prior)
    return find_mode(some, likelihood, rows, None, intercept)


def _stack(sites: Sites) -> Array:
    return np.array([sites.precision, sites.precision * sites.target])


def _add_up(X: Array, values: Array, factor: Factor) -> Array:
    """The sum of the rows, each times its value, with a 1 before each where the factor has one."""
    total = values @ X
    if len(total) < factor.n_coefficients:
        return np.concatenate([[np.sum(values)], total])
    return np.asarray(total)


def _compute_targets(sites: Array, rows: SiteRows) -> Array:
    precision, shift = sites
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(precision > 0.0, shift / precision - rows.offsets, 0.0)[:, None]


def _finish(now: Averages, fitted: Fitted) -> Fitted:
    precision, shift = now.sites
    with np.errstate(divide="ignore", invalid="ignore"):
        target = np.where(precision > 0.0, shift / precision, now.mean)
    own = precision * (np.square(now.mean - target) + now.variance)
    log_scale = float(np.sum(now.wanted.log_normalizer + 0.5 * own))
    sites = Sites(precision, target, now.wanted.log_normalizer)
    return replace(fitted, sites=sites, log_scale=log_scale, averaged=True)
