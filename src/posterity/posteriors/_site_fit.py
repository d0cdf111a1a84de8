"""Learning many rows together: Newton's method to the mode, or expectation propagation.

What was known before is a factor, the prior of this batch; the rows become site rows in it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.kernel import total_density, working_rows
from posterity.likelihoods import Bernoulli, Likelihood, Sites
from posterity.posteriors._site_rows import find_sites

Array = NDArray[np.float64]

MOST_STEPS = 100
MOST_REWEIGHTINGS = 1000  # heavy tails are climbed by weights: surely, but not as Newton does
MOST_SWEEPS = 500
HALVINGS = 60
# From here on the search for the mode begins with every SHARE-th row.
MANY_ROWS = 20_000
SHARE = 16
# Newton decrement squared, twice what the log posterior can still gain, in nats: the mode is then
# within 1e-6 posterior standard deviations of where the last step came from.
CLOSE = 1e-12
# Of the gradient: an observation's precision where its curvature vanishes. The step is damped a
# little there, and the mode, where gradients balance, stays.
LEAST_CURVATURE = 1e-8
# Largest change of a mean, in posterior standard deviations, and of a log standard deviation.
SETTLED = 1e-6
WANDERING = 0.1


@dataclass(frozen=True)
class Fitted:
    """The rows' sites, and the log of each one's constant summed."""

    sites: Sites
    log_scale: float
    coefficients: Array
    converged: bool


def mode(
    before: Factor, likelihood: Likelihood, rows: SiteRows, start: Array | None, intercept: bool
) -> Fitted:
    """Newton's method (iteratively reweighted least squares) with a line search.

    Maximises log p(y | w) - |R w - z|^2 / 2, with [R z] the factor ``before``. Each step is the
    least-squares solution of the site rows at the present eta, appended to it.
    """
    problem = _Problem(before, likelihood, rows, intercept)
    w = problem.first() if start is None else start
    if start is None and len(rows) >= MANY_ROWS:
        # A sixteenth of the rows, each for sixteen, finds the neighbourhood at little cost.
        few = rows.every(SHARE)
        w = _climbed(_Problem(before, likelihood, few, intercept), w)[0]
    w, eta, converged = _climbed(problem, w)
    sites, factor = problem.sites_at(eta)
    log_scale = problem.fit(eta) + problem.constant + problem.said
    if not converged:
        warnings.warn(
            "the mode was not reached: the likelihood has no maximum, as when a flat prior meets "
            "classes that a line separates, or counts that are all 0; use a proper prior",
            stacklevel=5,
        )
    return Fitted(sites, log_scale, factor.coefficients()[:, 0], converged)


def _climbed(problem: _Problem, w: Array) -> tuple[Array, Array, bool]:
    """The mode, its eta, and whether it was reached."""
    eta = problem.eta(w)
    value = problem.value(w, eta)
    usable: tuple[Array, Array] | None = None
    for _ in range(MOST_STEPS if not problem.likelihood.is_noise else MOST_REWEIGHTINGS):
        try:
            factor = problem.sites_at(eta)[1]
        except FloatingPointError:
            if usable is None:
                raise
            return *usable, False  # on the way to a maximum at infinity, and nearly there
        usable = w, eta
        wanted = factor.coefficients()[:, 0]
        decrement = float(np.sum(np.square(factor.root @ (wanted - w))))
        here = eta
        w, eta, value, moved = problem.search(w, wanted, eta, value, decrement)
        # What a sum of rounded terms can tell is the limit where there are very many. Towards a
        # maximum at infinity little is gained, but eta goes on by about 1 a step.
        settled = np.abs(eta - here).max(initial=0.0) < WANDERING
        if decrement <= max(problem.close, 1e-16 * abs(value)) and settled:
            return w, eta, True
        if not moved:
            break
    return w, eta, False


class _Problem:
    """The log posterior of the coefficients, and its site rows."""

    def __init__(
        self, before: Factor, likelihood: Likelihood, rows: SiteRows, intercept: bool
    ) -> None:
        self.before, self.likelihood, self.rows, self.intercept = (
            before,
            likelihood,
            rows,
            intercept,
        )
        self.known = likelihood.kernel_code
        # A gradient by differences is right to that many digits only.
        self.close = max(CLOSE, likelihood.closeness)
        self.said = 0.0  # sum of precision (eta - target)^2 / 2, of the last sites

    def eta(self, w: Array) -> Array:
        rows = self.rows
        if self.intercept:
            return rows.X @ w[1:] + (w[0] + rows.offsets)
        return rows.X @ w + rows.offsets

    def value(self, w: Array, eta: Array) -> float:
        off = self.before.root @ w - self.before.moments[:, 0]
        value = self.fit(eta) - 0.5 * float(off @ off)
        return value if math.isfinite(value) else -math.inf

    def fit(self, eta: Array) -> float:
        """Log likelihood, but for what depends on the targets alone."""
        rows = self.rows
        if self.known is not None:
            return total_density(*self.known, rows.y, eta, rows.weights)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(rows.weights @ self.likelihood.log_density(rows.y, eta))

    @property
    def constant(self) -> float:
        """What depends on the targets alone."""
        rows, nothing = self.rows, np.zeros(len(self.rows))
        if self.known is None or isinstance(self.likelihood, Bernoulli):
            return 0.0
        whole = float(rows.weights @ self.likelihood.log_density(rows.y, nothing))
        return whole - self.fit(nothing)

    def first(self) -> Array:
        """Least squares on the targets' own eta, where the likelihood names them."""
        start = getattr(self.likelihood, "start", None)
        nothing = self.before.coefficients()[:, 0]
        if start is None:
            return nothing
        w = self.sites_at(start(self.rows.y))[1].coefficients()[:, 0]
        return w if math.isfinite(self.value(w, self.eta(w))) else nothing

    def sites_at(self, eta: Array) -> tuple[Sites, Factor]:
        rows, factor = self.rows, self.before.copy()
        if self.known is not None:
            precision, target = np.empty(len(rows)), np.empty(len(rows))
            self.said = working_rows(
                *self.known, rows.y, eta, rows.offsets, rows.weights, precision, target
            )
        else:
            slope, curvature = self.likelihood.derivatives(rows.y, eta)
            floored = np.maximum(curvature, LEAST_CURVATURE * np.abs(slope))
            step = slope / np.maximum(floored, 1e-300)
            precision = rows.weights * np.minimum(floored, 1e200)
            target = eta + step - rows.offsets
            self.said = 0.5 * float(rows.weights @ (slope * step))
        factor.append(rows.X, target[:, None], precision, intercept=self.intercept)
        return Sites(precision, target + rows.offsets, precision), factor

    def search(
        self, w: Array, wanted: Array, eta: Array, value: float, decrement: float
    ) -> tuple[Array, Array, float, bool]:
        """The first of the steps 1, 1/2, 1/4, ... that gains what its length lets expect."""
        goal = self.eta(wanted)
        share = 1.0
        # Beside a sum over very many rows, this much is rounding.
        slack = 1e-13 * (abs(value) + 1.0) if math.isfinite(value) else 0.0
        for _ in range(HALVINGS):
            there = w + share * (wanted - w)
            eta_there = goal if share == 1.0 else eta + share * (goal - eta)
            reached = self.value(there, eta_there)
            if reached > -math.inf and reached >= value + 1e-4 * share * decrement - slack:
                return there, eta_there, reached, True
            share *= 0.5
        return w, eta, value, False


def propagate(
    before: Factor,
    likelihood: Likelihood,
    rows: SiteRows,
    first: Fitted,
    intercept: bool,
) -> Fitted:
    """Expectation propagation (Minka 2001), all sites of a sweep at once, begun at the mode.

    A site's cavity is what all others say: in one dimension, precision 1 / v - tau. Where a sweep
    takes it further away than the last, the step is damped.
    """
    precision, shift = first.sites.precision, first.sites.precision * first.sites.target
    factor = _with_sites(before, rows, precision, shift, intercept)
    mean, variance = _eta(factor, rows, intercept)
    sites, log_scale, last, step, converged = first.sites, first.log_scale, math.inf, 1.0, False
    for _ in range(MOST_SWEEPS):
        cavity_mean, cavity = cavity_of(mean, variance, precision, shift)
        sites = find_sites(likelihood, "moments", rows.y, cavity_mean, cavity, rows.weights)
        log_scale = float(np.sum(sites.log_scale(cavity_mean, cavity)))
        if converged:
            break
        precision = precision + step * (sites.precision - precision)
        shift = shift + step * (sites.precision * sites.target - shift)
        factor = _with_sites(before, rows, precision, shift, intercept)
        moved, spread = _eta(factor, rows, intercept)
        change = _change(mean, variance, moved, spread) / step
        mean, variance = moved, spread
        if change > last:
            step = max(0.7 * step, 0.05)
        last, converged = change, change < SETTLED
    if not converged:
        warnings.warn(
            "expectation propagation did not settle; approximation='laplace' always does",
            stacklevel=5,
        )
    return Fitted(sites, log_scale, factor.coefficients()[:, 0], converged)


def _with_sites(
    before: Factor, rows: SiteRows, precision: Array, shift: Array, intercept: bool
) -> Factor:
    factor = before.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        target = np.where(precision > 0.0, shift / precision, 0.0) - rows.offsets
    factor.append(rows.X, target[:, None], precision, intercept=intercept)
    return factor


def _eta(factor: Factor, rows: SiteRows, intercept: bool) -> tuple[Array, Array]:
    mean, variance = factor.predict(rows.X, intercept=intercept)
    return mean[:, 0] + rows.offsets, variance


def cavity_of(mean: Array, variance: Array, precision: Array, shift: Array) -> tuple[Array, Array]:
    """Mean and variance of each eta without its own site, of this precision and shift."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        left = 1.0 - precision * variance
        open_ = left <= 1e-10
        left = np.where(open_, 1.0, left)
        cavity = np.where(open_, math.inf, variance / left)
        centre = np.where(open_, mean, (mean - variance * shift) / left)
    return centre, cavity


def _change(mean: Array, variance: Array, moved: Array, spread: Array) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(moved - mean) / np.sqrt(spread)
        grown = np.abs(np.log(spread / variance))
    return float(max(np.nan_to_num(off).max(initial=0.0), np.nan_to_num(grown).max(initial=0.0)))
