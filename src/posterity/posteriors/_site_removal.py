"""Unlearning rows: each row's site, as part of the present posterior, is taken out.

A site is not kept, but what is known holds it: the Gaussian of the row's eta is cavity times site,
and the site is the one that the likelihood has in that cavity (the fixed point of expectation
propagation, Minka 2001). At a mode it is the likelihood's slope and curvature there, and of a fit
by averages these on average. So a row that
was learned last, and rows whose sites agree with each other as after a fit, leave exactly; others
leave with what they would say today.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from posterity.aliases import Array
from posterity.factor import Factor
from posterity.factor.factor import NotInFactorError
from posterity.factor.rows import SiteRows
from posterity.likelihoods import Sites
from posterity.likelihoods.averages import averaged_sites
from posterity.posteriors._joint_fit import SiteModel
from posterity.posteriors._removal import explain_never_learned
from posterity.posteriors._site_fit import compute_cavity
from posterity.posteriors._site_rows import find_sites
from posterity.posteriors.gaussian import LinearPosterior

MOST_ROUNDS = 200
TOLERANCE = 1e-12
# Relative errors of recomputed sites: of rows fitted together, and of rows learned one by one.
TOGETHER_TOLERANCE, STREAM_TOLERANCE = 1e-5, 1e-3
# Smallest share of eta's variance that a site leaves.
LEAST_LEFT = 1e-9


def compute_sites_within(
    model: SiteModel, rows: SiteRows, mean: Array, variance: Array
) -> tuple[Sites, Array]:
    """Sites that are part of eta ~ Normal(mean, variance) (n,), and the logs of their constants."""
    likelihood, y, weights = model.likelihood, rows.y, rows.weights
    if model.averages:
        sites = averaged_sites(likelihood, y, mean, variance, weights)
        squares = np.square(sites.target - mean) + variance
        return sites, sites.log_normalizer + 0.5 * sites.precision * squares
    if model.approximation == "laplace" and not likelihood.kinked:
        slope, curvature = likelihood.derivatives(y, mean)
        precision = np.maximum(weights * curvature, 1e-8 * weights * np.abs(slope))
        step = weights * slope / np.maximum(precision, 1e-300)
        logs = weights * likelihood.log_density(y, mean)
        return Sites(precision, mean + step, logs), logs + 0.5 * precision * step * step
    precision, shift = np.zeros(len(y)), np.zeros(len(y))
    share, last = 1.0, math.inf
    for _ in range(MOST_ROUNDS):
        centre, cavity = compute_cavity(mean, variance, precision, shift)
        sites = find_sites(likelihood, "moments", y, centre, cavity, weights)
        wanted = np.minimum(sites.precision, (1.0 - LEAST_LEFT) / variance)
        moved = float(np.max(np.abs(wanted - precision) * variance, initial=0.0))
        precision = precision + share * (wanted - precision)
        shift = shift + share * (wanted * sites.target - shift)
        if moved < TOLERANCE:
            break
        share, last = (max(0.7 * share, 0.05) if moved >= last else share), moved
    with np.errstate(divide="ignore", invalid="ignore"):
        target = np.where(precision > 0.0, shift / precision, mean)
    centre, cavity = compute_cavity(mean, variance, precision, shift)
    return Sites(precision, target, sites.log_normalizer), sites.log_scale(centre, cavity)


def remove_sites(
    data: Factor,
    node: LinearPosterior,
    model: SiteModel,
    rows: SiteRows,
    *,
    together: bool,
) -> tuple[Factor, Array, Array]:
    """Return the factor ``data`` without the rows, their sites' precisions and log constants.

    ``node`` is what is known with a prior. Rows that were fitted ``together`` have sites that
    agree, which are all found at once; others leave one after another, the last one first.
    """
    left, known, intercept = data.copy(), node.factor, node.intercept
    unknown = np.isinf(data.predict(rows.X, intercept=intercept)[1])
    if unknown.any():
        raise ValueError(explain_never_learned(f"row {int(np.argmax(unknown))}"))
    precision, logs = np.zeros(len(rows)), np.zeros(len(rows))
    last_first = range(len(rows) - 1, -1, -1)
    for part in [slice(None)] if together else [slice(i, i + 1) for i in last_first]:
        some = rows[part]
        mean, variance = known.predict(some.X, intercept=intercept)
        sites, logs[part] = compute_sites_within(model, some, mean[:, 0] + some.offsets, variance)
        precision[part] = sites.precision
        with suppress(NotInFactorError):  # rows that left before have taken all of its direction
            target = (sites.target - some.offsets)[:, None]
            gone = some.X, target, sites.precision
            exact = together and not model.averages  # averages are found to a few digits
            rounding = TOGETHER_TOLERANCE if exact else STREAM_TOLERANCE
            left.reduce(*gone, intercept=intercept, rounding=rounding, exact=together)
        known = node.prior.copy()
        known.merge(left)
    return left, precision, logs
