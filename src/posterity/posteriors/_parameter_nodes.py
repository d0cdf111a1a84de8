"""Several parameters and the coefficients of few rows: by fits at nodes of the parameters.

The quadratic that the rows' slopes tell is that of a Gaussian. Where odds of a zero, or a shape of
lifetimes that were cut off, hardly differ from another intercept, the posterior is skewed, and that
is too narrow. So the coefficients are fitted at nodes along each axis of what is known of the
parameters, which weigh as their evidence does (Rue, Martino and Chopin 2009, section 6.5), and the
Gaussian takes over mean, covariance and slopes of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posterity.aliases import Array
from posterity.likelihoods.averages import make_quadrature_rule
from posterity.noise import LOG_2PI
from posterity.posteriors.joint_parameters import JointParameters, Quadratic, move

# Gauss and Hermite's nodes: two on each side of the mean.
NODES, SHARES = make_quadrature_rule(5)
# Rounds, of which the first may find that it looked too near; and the least variance of a next one.
MOST_ROUNDS, LEAST_VARIANCE = 3, 0.1
# Changes of mean and variances, in standard deviations, that are none.
AGREED = 0.25


@dataclass(frozen=True)
class Fit:
    """The posterior given parameters, the mean of its coefficients, and log p(rows, t)."""

    posterior: Any
    mean: Array
    log_density: float


def fit_at_nodes(
    known: JointParameters, before: JointParameters, fit: Callable[[JointParameters], Any]
) -> Any:
    """The posterior with parameters and coefficients that nodes around those ``known`` tell.

    ``fit`` returns a posterior that has learned the rows given parameters, of which ``before`` was
    known before them.
    """

    def look(mean: Array) -> Fit:
        posterior = fit(replace(known, mean=mean))
        off = np.linalg.solve(np.linalg.cholesky(before.covariance), mean - before.mean)
        prior = -0.5 * (float(off @ off) + len(mean) * LOG_2PI)
        prior -= 0.5 * float(np.linalg.slogdet(before.covariance)[1])
        return Fit(posterior, posterior.inner.coefficients(), posterior.log_evidence + prior)

    centre = look(known.mean)
    for _ in range(MOST_ROUNDS):
        values, vectors = np.linalg.eigh(known.covariance)
        axes = (vectors * np.sqrt(values)).T
        at = [[look(known.mean + z * axis) if z else centre for z in NODES] for axis in axes]
        logs = np.array([[one.log_density for one in of_axis] for of_axis in at])
        shares = SHARES * np.exp(logs - centre.log_density + 0.5 * np.square(NODES))
        totals = shares.sum(axis=1)
        shares /= totals[:, None]
        moved = shares @ NODES
        variances = np.maximum(shares @ np.square(NODES) - moved**2, LEAST_VARIANCE)
        effects = np.array([[one.mean - centre.mean for one in of_axis] for of_axis in at])
        mean = centre.mean + np.einsum("jk,jkp->p", shares, effects)
        off = shares * (NODES - moved[:, None])
        slopes = np.einsum("jk,jkp->pj", off, effects) / variances
        log_integral = centre.log_density + 0.5 * float(np.sum(np.log(values) + LOG_2PI))
        log_integral += float(np.sum(np.log(totals)))
        known = replace(
            known,
            mean=known.mean + moved @ axes,
            covariance=(axes.T * variances) @ axes,
        )
        slopes = slopes @ np.linalg.inv(axes.T)
        centre = look(known.mean)
        if max(np.abs(moved).max(), np.abs(variances - 1.0).max()) < AGREED:
            break
    return _take_over(centre.posterior, known, mean, slopes, log_integral)


def _take_over(
    posterior: Any, known: JointParameters, mean: Array, slopes: Array, log_integral: float
) -> Any:
    """``posterior`` with coefficients of this mean, and slopes (p, d) in the parameters."""
    inner = posterior.inner
    root = inner.central().factor.root
    pulled = root.T @ (root @ slopes)
    cross, precision = -pulled, np.linalg.inv(known.covariance) + slopes.T @ pulled
    move(inner, root.T @ (root @ (mean - inner.coefficients())), lambda: inner)
    told = Quadratic(precision, cross, precision @ known.mean + cross.T @ mean)
    posterior.statistics.phi = replace(known, told=told)
    posterior.statistics.log_sites += log_integral - posterior.log_evidence
    return posterior
