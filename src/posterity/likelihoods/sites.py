"""The site of an observation, by Laplace's method or by matching moments."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.likelihoods.averages import make_quadrature_rule
from posterity.likelihoods.cavity import Cavity, as_rows
from posterity.likelihoods.modes import modes
from posterity.likelihoods.observation import Observation
from posterity.likelihoods.site import Sites

# Of what was known before: a site may not have less precision, or its target would be too far off
# for the site to move the mode where it belongs. The variance is right to as many digits.
LEAST_SHARE = 1e-8
# Largest distance of a site beyond the target, in errors.
FURTHEST = 10.0
LARGEST_CURVATURE = 1e9
# Distance of nodes' centre from the mode, in standard deviations, that changes no digit.
CENTRED = 1e-7


def laplace_sites(
    likelihood: Observation,
    y: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    weights: ArrayLike | None = None,
    close: float = 0.0,
) -> Sites:
    """Find sites by Laplace's method, at the mode of likelihood times Gaussian.

    Parameters
    ----------
    likelihood
        Of one observation.
    y
        (n,) targets.
    mean, variance
        (n,) what is believed of each eta before its observation. Where the variance is infinite,
        nothing is: eta ~ Normal(mean, 10^2) is then believed instead, and the site tells of both.
    weights
        (n,) powers of the likelihood, 1 by default.
    close
        How near the mode is to be, in standard deviations of the posterior; 0: to rounding.

    Returns
    -------
    Sites
        With the Gaussian each has its mode where the true posterior has it, and the same
        curvature there. An observation of weight 0 has precision 0.

    Notes
    -----
    With g and h the first and minus the second derivative of the log likelihood at the mode z,
    precision = h and target = z + g / h; log normaliser = log p(y | z) - (z - m)^2 / 2 v
    - log(1 + h v) / 2. Newton's method, each step kept between the ends of a bracket (bisection
    where it would leave it or is slow), so that it always converges for log-concave likelihoods.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.likelihoods import Bernoulli
    >>> sites = laplace_sites(Bernoulli(), [1.0], [0.0], [4.0])
    >>> sites.precision.round(4), sites.target.round(4)
    (array([0.1927]), array([2.3951]))
    """
    y, mean, variance, weights = as_rows(y, mean, variance, weights)
    if likelihood.kinked:  # no curvature to go by
        return moment_sites(likelihood, y, mean, variance, weights)
    cavity = Cavity.of(likelihood, y, mean, variance)
    mode = modes(likelihood, y, cavity.mean, cavity.variance, weights, close)
    slope, curvature = likelihood.derivatives(y, mode)
    with np.errstate(over="ignore", invalid="ignore"):
        pull = (mode - cavity.mean) / cavity.variance
        # At the mode both are the same; the slope of a huge weight has fewer digits.
        pull = np.where(cavity.variance > 0.0, pull, weights * slope)
        curvature = np.minimum(weights * curvature, 1e300)
        least = np.where(weights > 0.0, LEAST_SHARE / np.maximum(cavity.variance, 1e-300), 0.0)
        precision = np.maximum(curvature, np.minimum(least, 1e300))
        target = mode + pull / np.maximum(precision, 1e-300)
        log_normalizer = weights * likelihood.log_density(y, mode) - 0.5 * (
            (mode - cavity.mean) * pull + np.log1p(curvature * cavity.variance)
        )
    informative = (weights > 0.0) & (cavity.variance > 0.0)
    precision, target = np.where(informative, precision, 0.0), np.where(informative, target, mode)
    return cavity.with_log_normalizers(
        precision, target, np.where(weights > 0.0, log_normalizer, 0.0)
    )


def moment_sites(
    likelihood: Observation,
    y: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    weights: ArrayLike | None = None,
    n_nodes: int = 16,
) -> Sites:
    """Find sites that give the Gaussian the mean and variance of the true posterior of eta.

    This is assumed-density filtering (Opper 1998), and with sites that are revisited expectation
    propagation (Minka 2001).

    Parameters
    ----------
    likelihood
        Of one observation.
    y
        (n,) targets.
    mean, variance
        (n,) what is believed of each eta before its observation; as in :func:`laplace_sites`.
    weights
        (n,) powers of the likelihood, 1 by default.
    n_nodes
        Nodes of the Gauss-Hermite rule, which is centred at the mode and as wide as the curvature
        there says (Liu and Pierce 1994): few nodes do, however sharp the likelihood.

    Returns
    -------
    Sites
        Precision 1 / v' - 1 / v and target (m' / v' - m / v) / precision, of the moments m' and v'
        of the posterior. Where the variance would grow, which only a likelihood that is not
        log-concave can do, the precision is LEAST_SHARE / v and only the mean is matched; of noise
        the target is then no further than mean + FURTHEST (y - mean).

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.likelihoods import Bernoulli
    >>> sites = moment_sites(Bernoulli("probit"), [1.0], [0.0], [1.0])
    >>> np.exp(sites.log_normalizer).round(6)
    array([0.5])
    """
    y, mean, variance, weights = as_rows(y, mean, variance, weights)
    cavity = Cavity.of(likelihood, y, mean, variance)
    exact = getattr(likelihood, "moments", None)
    if exact is None:
        found = _integrate_moments(likelihood, y, cavity.mean, cavity.variance, weights, n_nodes)
    else:
        found = exact(y, cavity.mean, cavity.variance, weights)
    matched = _match_site(cavity.mean, cavity.variance, weights, *found)
    if likelihood.is_noise and not likelihood.kinked and exact is not None:
        matched = _near(y, cavity.mean, cavity.variance, found, matched)
    return cavity.with_log_normalizers(*matched)


def _match_site(
    mean: Array, variance: Array, weights: Array, log_normalizer: Array, moved: Array, ratio: Array
) -> tuple[Array, Array, Array]:
    """Return the site of these moments: mean + moved, ratio times the variance."""
    informative = (weights > 0.0) & (variance > 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # 1 / v' - 1 / v = (1 / ratio - 1) / v, and m + moved = m + gain (target - m), where
        # gain = precision v / (1 + precision v).
        share = np.clip((1.0 - ratio) / ratio, LEAST_SHARE, 1e300)
        precision = np.minimum(share / variance, 1e300)
        target = mean + moved * (1.0 + share) / share
    return (
        np.where(informative, precision, 0.0),
        np.where(informative, target, mean),
        np.where(weights > 0.0, log_normalizer, 0.0),
    )


def _near(
    y: Array,
    mean: Array,
    variance: Array,
    found: tuple[Array, Array, Array],
    predicted: tuple[Array, Array, Array],
) -> tuple[Array, Array, Array]:
    """Limit sites of noise that make the variance grow to so many errors beyond a target.

    Under another prior they would be believed there. The mean is matched all the same.
    """
    precision, target, log_normalizer = predicted
    off = y - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = found[1] / off
        far = (gain > 0.0) & (gain < 1.0) & (np.abs(target - mean) > FURTHEST * np.abs(off))
        far &= (precision > 0.0) & (found[2] >= 1.0)
        nearer = gain / (FURTHEST - gain) / variance
    return (
        np.where(far, nearer, precision),
        np.where(far, mean + FURTHEST * off, target),
        log_normalizer,
    )


def _integrate_moments(
    likelihood: Observation, y: Array, mean: Array, variance: Array, weights: Array, n_nodes: int
) -> tuple[Array, Array, Array]:
    """log Z, the mean's move, and the ratio of the variances, by adaptive Gauss-Hermite."""
    nodes, shares = (one[:, None] for one in make_quadrature_rule(n_nodes))
    mode = modes(likelihood, y, mean, variance, weights, CENTRED)
    curvature = likelihood.derivatives(y, mode)[1]
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        shrunk = 1.0 / (1.0 + variance * np.minimum(weights * curvature, 1e300))
        width = np.sqrt(variance * shrunk)
        eta = mode + width * nodes
        off = (eta - mean) / np.sqrt(np.maximum(variance, 1e-300))
        terms = weights * likelihood.log_density(y, eta) - 0.5 * off * off + 0.5 * nodes * nodes
        terms += np.log(shares)
        top = terms.max(axis=0)
        share = np.exp(terms - top)
        total = share.sum(axis=0)
        # In units of the width, so that no digits are lost if that is small.
        centre = (share * nodes).sum(axis=0) / total
        spread = (share * (nodes - centre) ** 2).sum(axis=0) / total
        log_normalizer = top + np.log(total) + 0.5 * np.log(shrunk)
        # Such a large log density has too few digits; the posterior is then nearly Gaussian.
        pull = (mode - mean) / np.maximum(variance, 1e-300)
        height = weights * likelihood.log_density(y, mode) - 0.5 * (mode - mean) * pull
        sharp = ~(np.abs(height) < LARGEST_CURVATURE)
    return (
        np.where(sharp, height + 0.5 * np.log(shrunk), log_normalizer),
        mode - mean + np.where(sharp, 0.0, width * centre),
        shrunk * np.where(sharp, 1.0, spread),
    )
