"""The lower bound of the evidence (Lim & Teh 2007; of labels Jaakkola & Jordan 2000)."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, expit, gammaln, log_expit

from posterity.aliases import Array
from posterity.factorization._sweeps import compute_moments
from posterity.factorization.posterior import FactorizationPosterior

# Weak prior of the precisions: Gamma(1, rate), which counts as a level more of variance 2 rate. Of
# weights, and of all factors together, for numbers, in units of their spread, and for log odds, of
# which few rows tell little. Without it sweeps drop factors that rows tell little of, as if their
# products were known to be 0.
RATES, RATES_OF_LOG_ODDS = (1e-3, 0.2), (0.5, 2.0)
# Of Gauss and Hermite, for normal log odds; and what a row's slope is at least.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
LEAST_SLOPE = 1e-9


def compute_bound(of: FactorizationPosterior) -> float:
    """The evidence's lower bound, of targets in their unit."""
    bound = _expect_labels(of) if of.labels else _expect_numbers(of)
    bound += 0.5 * (1.0 + np.log(2.0 * np.pi * of.offset_variance))
    return float(bound + sum(_compute_side(of, side) for side in range(len(of.means))))


def _make_rates(p: int, labels: bool) -> Array:
    """(p,) rates of the prior of the precisions of a side's weight and factors."""
    weight, factors = RATES_OF_LOG_ODDS if labels else RATES
    return np.append(weight, np.full(p - 1, factors / np.sqrt(max(p - 1, 1))))


def compute_logistic_curvature(size: Array) -> Array:
    """Curvature of the Gaussian bound of a logistic likelihood, which touches it at +-size."""
    safe = np.maximum(size, 1e-4)
    return np.where(size > 1e-4, 0.5 * np.tanh(0.5 * safe) / safe, 0.25)


def expect_logistic(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mean of a logistic function of normal log odds, and of its slope, by quadrature."""
    deviation = np.sqrt(variance)
    share, slope = np.zeros_like(mean), np.zeros_like(mean)
    for node, weight in zip(NODES, NODE_WEIGHTS, strict=True):
        each = expit(mean + node * deviation)
        share += weight * each
        slope += weight * each * (1.0 - each)
    return share, np.maximum(slope, LEAST_SLOPE)


def _expect_labels(of: FactorizationPosterior) -> float:
    mean, variance = compute_moments(of.codes, of.values, of)
    size = np.sqrt(mean**2 + variance)
    each = log_expit(size) - 0.5 * size + (of.y - 0.5) * mean
    return float(of.weights @ each)


def _expect_numbers(of: FactorizationPosterior) -> float:
    n, tau = float(of.weights.sum()), of.noise_precision
    residual = of.residual + n * of.offset_variance
    log_tau, bound = np.log(tau), 0.0
    if not of.noise_is_known:
        a, b = of.noise_shape, of.noise_rate
        log_tau = digamma(a) - np.log(b)
        bound += a - np.log(b) + gammaln(a) + (1.0 - a) * digamma(a) - log_tau
    return float(bound + 0.5 * n * (log_tau - np.log(2.0 * np.pi)) - 0.5 * tau * residual)


def _compute_side(of: FactorizationPosterior, side: int) -> float:
    """Return the terms of the bound from a side's levels: their prior and their entropy."""
    size, p = of.means[side].shape
    precision = of.prior_precisions[side]
    gain = (size + 1) * np.log(precision) - precision * sum_spreads(of, side)
    entropy = np.linalg.slogdet(of.covariances[side])[1].sum() + size * p
    return float(0.5 * (gain.sum() + entropy))


def sum_spreads(of: FactorizationPosterior, side: int) -> Array:
    """(p,) what precisions of a side's prior are weighed by: expected squares, and its own prior.

    Those of its levels are about their mean, and that of the mean is about 0.
    """
    mean, centre = of.means[side], of.prior_means[side]
    variances = np.diagonal(of.covariances[side], axis1=1, axis2=2)
    spread = ((mean - centre) ** 2 + variances).sum(axis=0) + centre**2
    return np.asarray(spread + 2.0 * _make_rates(len(centre), of.labels))
