"""Sites of rows with few active features: first at the mode, then matched in their moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from posterity.factor.sparse_cholesky import SparseCholesky
from posterity.likelihoods import Likelihood
from posterity.posteriors._site_fit import compute_cavity, compute_change
from posterity.posteriors._site_rows import find_sites

Array = NDArray[np.float64]
# Of the posterior, given the precisions (n,) of the rows' sites.
Factorize = Callable[[Array], SparseCholesky]

# What one more step of Newton's may gain in log density, and the most steps.
NEAR, MOST_NEWTON, MOST_HALVINGS = 1e-2, 60, 40
# How much of the way to its new site a row goes in one sweep: all rows move at once. Where sweeps
# do not settle it goes less far; only a little less where the prior moves, too.
FIRST_PACE, SLOWER, LEAST_PACE, LEAST_WITH_PRIOR = 0.8, 0.7, 0.05, 0.5


class SparseData(NamedTuple):
    """Rows (n, p), their targets (n,) and weights (n,) > 0."""

    X: csr_array
    y: Array
    weights: Array


class RowSites(NamedTuple):
    """Gaussian sites of rows (n,), and the posterior mean and variance (n,) of each eta."""

    precision: Array
    shift: Array
    mean: Array
    variance: Array
    change: float  # of the last sweep, in posterior standard deviations
    pace: float


def find_mode_sites(
    likelihood: Likelihood, data: SparseData, prior: Array, factorize: Factorize
) -> tuple[Array, Array]:
    """Precision and shift (n,) of each row by Laplace's method, near the mode.

    Newton's method, with steps halved until the density rises.
    """
    X, y, weights = data
    mean = np.zeros(X.shape[1])

    def density(mean: Array) -> float:
        each = likelihood.log_density(y, X @ mean)
        return float(weights @ each - 0.5 * prior @ np.square(mean))

    height = density(mean)
    for _ in range(MOST_NEWTON):
        slope, curvature = likelihood.derivatives(y, X @ mean)
        gradient = X.T @ (weights * slope) - prior * mean
        step = factorize(weights * curvature).solve(gradient)
        if gradient @ step < NEAR:
            break
        for _ in range(MOST_HALVINGS):
            higher = density(mean + step)
            if higher >= height:
                break
            step = 0.5 * step
        else:  # as high as rounding lets it be
            break
        mean, height = mean + step, higher
    return weights * curvature, weights * (curvature * (X @ mean) + slope)


def match_moments(likelihood: Likelihood, data: SparseData, sites: RowSites) -> tuple[Array, Array]:
    """Precision and shift (n,) after one sweep of expectation propagation (Minka 2001)."""
    centre, spread = compute_cavity(sites.mean, sites.variance, sites.precision, sites.shift)
    found = find_sites(likelihood, "moments", data.y, centre, spread, data.weights)
    shift = found.precision * found.target
    precision = sites.precision + sites.pace * (found.precision - sites.precision)
    return precision, sites.shift + sites.pace * (shift - sites.shift)


def make_sites(
    precision: Array,
    shift: Array,
    mean: Array,
    variance: Array,
    before: RowSites | None,
    *,
    same_prior: bool,
) -> RowSites:
    """Sites and the posterior that they give, with what has changed since ``before``."""
    if before is None:
        return RowSites(precision, shift, mean, variance, np.inf, FIRST_PACE)
    change = compute_change(before.mean, before.variance, mean, variance) / before.pace
    pace = before.pace
    if change > before.change:
        pace = max(SLOWER * pace, LEAST_PACE if same_prior else LEAST_WITH_PRIOR)
    return RowSites(precision, shift, mean, variance, change, pace)


__all__ = ["RowSites", "SparseData", "find_mode_sites", "make_sites", "match_moments"]
