"""Unlearning: each row's site, as it is part of what is known now, is taken out.

A site is not kept, but what is known holds it: the Gaussian of the row's eta is cavity times site,
and the site is the one that the likelihood has in that cavity (the fixed point of expectation
propagation, Minka 2001). At a mode it is the likelihood's slope and curvature there. So a row that
was learned last, and rows whose sites agree with each other as after a fit, leave exactly; others
leave with what they would say today.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor
from posterity.factor.factor import NotInFactorError
from posterity.likelihoods import Sites
from posterity.posteriors._joint_fit import SiteModel
from posterity.posteriors._site_fit import cavity_of
from posterity.posteriors._site_rows import SiteRows, find_sites
from posterity.posteriors.gaussian import LinearPosterior, never_learned

Array = NDArray[np.float64]

MOST_ROUNDS = 200
SETTLED = 1e-12
# Of the variance of eta: what a site leaves of it.
LEAST_LEFT = 1e-9
# Of all that rows say of a direction: a row that would say so many times as much was not learned.
# Up to there it only says more today than it did.
MOST_SAID = 1.5


def sites_within(
    model: SiteModel, rows: SiteRows, mean: Array, variance: Array
) -> tuple[Sites, Array]:
    """Sites that are part of eta ~ Normal(mean, variance) (n,), and the logs of their constants."""
    likelihood, y, weights = model.likelihood, rows.y, rows.weights
    if model.approximation == "laplace" and not likelihood.kinked:
        slope, curvature = likelihood.derivatives(y, mean)
        precision = np.maximum(weights * curvature, 1e-8 * weights * np.abs(slope))
        step = weights * slope / np.maximum(precision, 1e-300)
        logs = weights * likelihood.log_density(y, mean)
        return Sites(precision, mean + step, logs), logs + 0.5 * precision * step * step
    precision, shift = np.zeros(len(y)), np.zeros(len(y))
    step, last = 1.0, np.inf
    for _ in range(MOST_ROUNDS):
        centre, cavity = cavity_of(mean, variance, precision, shift)
        sites = find_sites(likelihood, "moments", y, centre, cavity, weights)
        wanted = np.minimum(sites.precision, (1.0 - LEAST_LEFT) / variance)
        moved = float(np.max(np.abs(wanted - precision) * variance, initial=0.0))
        precision = precision + step * (wanted - precision)
        shift = shift + step * (wanted * sites.target - shift)
        if moved < SETTLED:
            break
        step, last = (max(0.7 * step, 0.05) if moved >= last else step), moved
    with np.errstate(divide="ignore", invalid="ignore"):
        target = np.where(precision > 0.0, shift / precision, mean)
    centre, cavity = cavity_of(mean, variance, precision, shift)
    return Sites(precision, target, sites.log_normalizer), sites.log_scale(centre, cavity)


def taken_out(
    data: Factor,
    node: LinearPosterior,
    model: SiteModel,
    rows: SiteRows,
    *,
    together: bool,
) -> tuple[Factor, Array, Array]:
    """What is left of the rows' factor ``data``, the sites' precisions, and logs of constants.

    ``node`` is what is known with a prior. Rows that were fitted ``together`` have sites that
    agree, which are all found at once; others leave one after another, the last one first.
    """
    left, known = data.copy(), node.factor.copy()
    whole = known.predict(rows.X, intercept=node.intercept)
    sites, logs = sites_within(model, rows, whole[0][:, 0] + rows.offsets, whole[1])
    precision, target = sites.precision.copy(), sites.target - rows.offsets
    if together:
        try:
            left.remove(rows.X, target[:, None], precision, intercept=node.intercept)
            return left, precision, logs
        except NotInFactorError:
            left = data.copy()
    for i in reversed(range(len(rows))):
        row = rows[i : i + 1]
        if not together:
            mean, variance = known.predict(row.X, intercept=node.intercept)
            one, logs[i : i + 1] = sites_within(model, row, mean[:, 0] + row.offsets, variance)
            precision[i], target[i] = one.precision[0], one.target[0] - row.offsets[0]
        precision[i], target[i] = _within(left, row.X, precision[i], target[i], node.intercept, i)
        gone = row.X, target[i : i + 1, None], precision[i : i + 1]
        left.remove(*gone, intercept=node.intercept)
        if not together:
            known = node.prior.copy()
            known.merge(left)
    return left, precision, logs


def _within(
    data: Factor, x: Array, precision: float, target: float, intercept: bool, row: int
) -> tuple[float, float]:
    """The site, or all that the rows say of its direction where it would say more."""
    mean, leverage = data.predict(x, intercept=intercept)
    said = float(leverage[0])
    if not precision * said <= MOST_SAID:
        raise ValueError(never_learned(f"row {row}"))
    if precision * said < 1.0:
        return precision, target
    return 1.0 / said, float(mean[0, 0])
