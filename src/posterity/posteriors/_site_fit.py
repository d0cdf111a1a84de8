"""Learning many rows together: expectation propagation, from their mode.

What was known before is a factor, the prior of this batch; the rows become site rows in it.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from posterity.aliases import Array
from posterity.factor import Factor
from posterity.factor.gram import MANY_COLUMNS
from posterity.factor.parallel import split_rows
from posterity.factor.rows import SiteRows
from posterity.kernel import SiteSweeps
from posterity.likelihoods import Likelihood, Sites
from posterity.posteriors._site_mode import Fitted
from posterity.posteriors._site_rows import find_sites

MOST_SWEEPS = 500
# Largest change of a mean, in posterior standard deviations, and of a log standard deviation.
TOLERANCE = 1e-6
# An infinite change counts as the largest finite one.
LARGEST = float(np.finfo(np.float64).max)


class Sweeps(Protocol):
    """Sweeps over rows, each an array (4, n).

    That is the precision of each site, this times its target, and mean and variance of each eta
    under all sites.
    """

    def start(self, precision: Array, target: Array) -> Array:
        """Return what is known with these sites (n,)."""

    def advance(self, now: Array, step: float) -> tuple[Array, float]:
        """Return the next sweep, each site moved by the share ``step``, and its largest change."""


def propagate_expectations(
    before: Factor,
    likelihood: Likelihood,
    rows: SiteRows,
    first: Sites,
    intercept: bool,
    settled: float = TOLERANCE,
) -> Fitted:
    """Run expectation propagation (Minka 2001), all sites of a sweep at once, from ``first``.

    Where a sweep takes the sites further away than the last, the step is damped; not always do they
    settle.
    """
    sweeps = _prepare_sweeps(before, likelihood, rows, intercept)
    now, converged = run_sweeps(sweeps, first, settled)
    sites, log_scale = read_sites(now, likelihood, rows.y, rows.weights)
    factor = before.copy()
    factor.set_triangle(sweeps.triangle, before.count, before.seen)
    return Fitted(sites, log_scale, factor.coefficients()[:, 0], converged)


def run_sweeps(sweeps: Sweeps, first: Sites, settled: float = TOLERANCE) -> tuple[Array, bool]:
    """Run sweeps from ``first``; return the last one, and whether the sites settled."""
    now = sweeps.start(first.precision, first.target)
    last, step, converged = math.inf, 1.0, False
    for _ in range(MOST_SWEEPS - 1):
        now, change = sweeps.advance(now, step)
        change /= step
        if change > last:
            step = max(0.7 * step, 0.05)
        last, converged = change, change < settled
        if converged:
            break
    return now, converged


def read_sites(now: Array, likelihood: Likelihood, y: Array, weights: Array) -> tuple[Sites, float]:
    """The sites of the last sweep, and the sum of the logs of their constants."""
    precision, shift, mean, variance = now
    cavity_mean, cavity = compute_cavity(mean, variance, precision, shift)
    sites = find_sites(likelihood, "moments", y, cavity_mean, cavity, weights)
    return sites, float(np.sum(sites.log_scale(cavity_mean, cavity)))


def _prepare_sweeps(
    before: Factor, likelihood: Likelihood, rows: SiteRows, intercept: bool
) -> FactorSweeps:
    """Return the compiled sweeps where they know the likelihood and one core is enough."""
    few = len(split_rows(len(rows), rows.X.shape[1] + 1)) == 1
    code = likelihood.kernel_code
    if code is None or not few or not len(rows) or rows.X.shape[1] > MANY_COLUMNS:
        return PlainSweeps(before, likelihood, rows, intercept)
    ones = before.lacks_intercept_column(rows.X, intercept)
    given = rows.X, rows.y, rows.weights, rows.offsets
    return SiteSweeps(before.triangle, *code, *given, ones)


class FactorSweeps(Sweeps, Protocol):
    """Sweeps of one factor: ``triangle`` is what is known with the sites of the last one."""

    triangle: Array


class SweepsByMoments:
    """Sweeps of any likelihood, over targets (n,) with weights."""

    def __init__(self, likelihood: Likelihood, y: Array, weights: Array) -> None:
        self.likelihood, self.y, self.weights = likelihood, y, weights

    def start(self, precision: Array, target: Array) -> Array:
        """As in :class:`Sweeps`."""
        return self._predict(precision, precision * target)

    def advance(self, now: Array, step: float) -> tuple[Array, float]:
        """As in :class:`Sweeps`.

        A site's cavity is what all others say: in one dimension, precision 1 / v - tau.
        """
        precision, shift, mean, variance = now
        cavity = compute_cavity(mean, variance, precision, shift)
        sites = find_sites(self.likelihood, "moments", self.y, *cavity, self.weights)
        following = self._predict(
            precision + step * (sites.precision - precision),
            shift + step * (sites.precision * sites.target - shift),
        )
        return following, compute_change(mean, variance, *following[2:])

    def _predict(self, precision: Array, shift: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            target = np.where(precision > 0.0, shift / precision, 0.0)
        return np.array([precision, shift, *self.learn(precision, target)])

    def learn(self, precision: Array, target: Array) -> tuple[Array, Array]:
        """Return mean and variance (n,) of each eta with these sites (n,)."""
        raise NotImplementedError


class PlainSweeps(SweepsByMoments):
    """Sweeps of one factor, and of so many rows that all cores learn them."""

    def __init__(
        self, before: Factor, likelihood: Likelihood, rows: SiteRows, intercept: bool
    ) -> None:
        super().__init__(likelihood, rows.y, rows.weights)
        self.before, self.rows, self.intercept = before, rows, intercept
        self.triangle = before.triangle

    def learn(self, precision: Array, target: Array) -> tuple[Array, Array]:
        """As in :class:`SweepsByMoments`."""
        factor, rows = self.before.copy(), self.rows
        target = target - rows.offsets
        factor.append(rows.X, target[:, None], precision, intercept=self.intercept)
        self.triangle = factor.triangle
        mean, variance = factor.predict(rows.X, intercept=self.intercept)
        return mean[:, 0] + rows.offsets, variance


def compute_cavity(
    mean: Array, variance: Array, precision: Array, shift: Array
) -> tuple[Array, Array]:
    """Mean and variance of each eta without its own site, of this precision and shift."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        left = 1.0 - precision * variance
        open_ = left <= 1e-10
        left = np.where(open_, 1.0, left)
        cavity = np.where(open_, math.inf, variance / left)
        centre = np.where(open_, mean, (mean - variance * shift) / left)
    return centre, cavity


def compute_change(mean: Array, variance: Array, moved: Array, spread: Array) -> float:
    """Return the largest move of a mean, in standard deviations, or change of a log variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(moved - mean) / np.sqrt(spread)
        grown = np.abs(np.log(spread / variance))
    # fmax passes over what is no number: an eta known exactly, before and after.
    largest = max(np.fmax.reduce(off, initial=0.0), np.fmax.reduce(grown, initial=0.0))
    return float(min(largest, LARGEST))
