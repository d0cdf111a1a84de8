"""The site of an observation by averages over what is known of its eta, with itself and all others.

Of all Gaussians the nearest to a posterior (in the Kullback-Leibler divergence from it) is the one
under which the likelihoods' slopes are balanced by the prior on average, and whose precision is
their average curvature (Opper and Archambeau 2009, "The variational Gaussian approximation
revisited"). Where the slope is target minus expectation, the expected targets of the rows learned
then add up to the targets that came, as they do under the posterior itself.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from posterity.aliases import Array
from posterity.kernel import average_densities
from posterity.likelihoods.observation import Observation
from posterity.likelihoods.site import Sites

# Variances of eta up to which so few nodes have some seven digits, and the nodes beyond them.
FEW_NODES, MOST_NODES = ((0.002, 3), (0.01, 4), (0.3, 10)), 32
# A precision, relative to its slope, where the average curvature vanishes.
LEAST_CURVATURE = 1e-8
# A larger one, as exponentials have on average where hardly anything is known, would overflow.
LARGEST_CURVATURE = 1e100
# Of what rows of a positive curvature tell, what is left at least where that of others is negative.
LEAST_SHARE = 0.2
# Of the information before, what is rounding.
ROUNDING = 1e-9


@cache
def make_quadrature_rule(n_nodes: int) -> tuple[Array, Array]:
    """Nodes and shares (k,) of averages over a standard normal: Gauss and Hermite's."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(n_nodes)
    return nodes, shares / shares.sum()


def averaged_sites(
    likelihood: Observation, y: Array, mean: Array, variance: Array, weights: Array
) -> Sites:
    """Return the sites that are part of eta ~ Normal(mean, variance).

    With g and h the average slope and curvature: precision h and target mean + g / h. In place of
    a log normaliser they have the average log density. Where h is negative, as of an outlier or of
    a zero that may have two reasons, all other rows tell so much less.

    Parameters
    ----------
    likelihood
        Of one observation, without a kink.
    y
        (n,) targets.
    mean, variance
        (n,) what is known of each eta, its own observation included.
    weights
        (n,) powers of the likelihood.

    Examples
    --------
    >>> from posterity.likelihoods import Poisson
    >>> one = np.ones(1)
    >>> sites = averaged_sites(Poisson(), one, np.array([-0.5]), one, one)
    >>> sites.precision.round(6), sites.target.round(6)
    (array([1.]), array([-0.5]))
    """
    value, slope, curvature = likelihood.average(y, mean, variance)
    curvature = np.minimum(curvature, LARGEST_CURVATURE)
    positive = np.maximum(curvature, LEAST_CURVATURE * np.abs(slope))
    if (curvature < 0.0).any():
        told, most = (weights @ (one * variance) for one in (curvature, positive))
        positive = positive * max(told / most, LEAST_SHARE)
    step = slope / np.maximum(positive, 1e-300)
    return Sites(weights * positive, mean + step, weights * value)


def integrate_derivatives(
    likelihood: Observation, y: Array, mean: Array, variance: Array
) -> tuple[Array, Array, Array]:
    """Averages (n,) of log density, slope and curvature, eta ~ Normal(mean, variance): quadrature.

    Examples
    --------
    >>> from posterity.likelihoods import Poisson
    >>> value, slope, curvature = integrate_derivatives(
    ...     Poisson(), np.zeros(1), np.zeros(1), np.ones(1)
    ... )
    >>> value.round(6), slope.round(6), curvature.round(6)
    (array([-1.648721]), array([-1.648721]), array([1.648721]))
    """
    widest = float(np.max(variance, initial=0.0))
    n_nodes = next((few for limit, few in FEW_NODES if widest <= limit), MOST_NODES)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return _average_at(likelihood, y, mean, np.sqrt(variance), *make_quadrature_rule(n_nodes))


def look(likelihood: Observation, y: Array, eta: Array) -> tuple[Array, Array, Array]:
    """Log density, slope and curvature (n,) at eta, with one pass over the rows."""
    return _average_at(likelihood, y, eta, np.zeros(len(eta)), np.zeros(1), np.ones(1))


def _average_at(
    likelihood: Observation, y: Array, mean: Array, sd: Array, nodes: Array, shares: Array
) -> tuple[Array, Array, Array]:
    """Sums of log densities, slopes and curvatures (n,), each by its share.

    The curvature is found by parts, so that it may be negative; not where eta is open, nor where
    that is rounding.
    """
    code, vague = likelihood.compiled, likelihood.vague_variance
    if code is not None and np.ndim(mean) == 1:
        at, middle, reach = (
            np.ravel(np.asarray(one, float)) for one in np.broadcast_arrays(y, mean, sd)
        )
        return average_densities(*code, at, middle, reach, nodes, shares, vague)
    eta = mean + sd * nodes[:, None]
    slope, curvature = likelihood.derivatives(y, eta)
    told, bend = shares @ curvature, -((shares * nodes) @ slope) / np.maximum(sd, 1e-300)
    sure = ((told - bend) * sd * sd > ROUNDING) & (sd * sd < vague)
    value = shares @ likelihood.log_density(y, eta)
    return value, shares @ slope, np.where(sure, bend, told)
