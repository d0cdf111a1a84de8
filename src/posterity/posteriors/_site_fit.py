"""Learning many rows together: expectation propagation, from their mode.

What was known before is a factor, the prior of this batch; the rows become site rows in it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.likelihoods import Likelihood, Sites
from posterity.posteriors._site_mode import Fitted
from posterity.posteriors._site_rows import find_sites

Array = NDArray[np.float64]

MOST_SWEEPS = 500
# Largest change of a mean, in posterior standard deviations, and of a log standard deviation.
TOLERANCE = 1e-6
# An infinite change counts as the largest finite one.
LARGEST = float(np.finfo(np.float64).max)


def propagate_expectations(
    before: Factor,
    likelihood: Likelihood,
    rows: SiteRows,
    first: Sites,
    intercept: bool,
    settled: float = TOLERANCE,
) -> Fitted:
    """Run expectation propagation (Minka 2001), all sites of a sweep at once, from ``first``.

    A site's cavity is what all others say: in one dimension, precision 1 / v - tau. Where a sweep
    takes it further away than the last, the step is damped; not always do the sites settle.
    """
    precision, shift = first.precision, first.precision * first.target
    factor = _with_sites(before, rows, precision, shift, intercept)
    mean, variance = _eta(factor, rows, intercept)
    last, step, converged = math.inf, 1.0, False
    for _ in range(MOST_SWEEPS):
        cavity_mean, cavity = compute_cavity(mean, variance, precision, shift)
        sites = find_sites(likelihood, "moments", rows.y, cavity_mean, cavity, rows.weights)
        if converged:
            break
        precision = precision + step * (sites.precision - precision)
        shift = shift + step * (sites.precision * sites.target - shift)
        factor = _with_sites(before, rows, precision, shift, intercept)
        moved, spread = _eta(factor, rows, intercept)
        change = compute_change(mean, variance, moved, spread) / step
        mean, variance = moved, spread
        if change > last:
            step = max(0.7 * step, 0.05)
        last, converged = change, change < settled
    log_scale = float(np.sum(sites.log_scale(cavity_mean, cavity)))
    mean = factor.coefficients()[:, 0]
    return Fitted(sites, log_scale, mean, converged)


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
