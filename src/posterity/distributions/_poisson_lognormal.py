"""Sums over a Poisson count whose log rate is normal: eta ~ Normal(m, v), y | eta ~ Poisson(e^eta).

Both integrals are over an analytic, log-concave function, for which the trapezoidal rule is exact
to rounding once the nodes sit where the function does (Trefethen and Weideman 2014, "The
exponentially convergent trapezoidal rule").
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, gammaln, ndtr, wrightomega

FloatArray = NDArray[np.float64]

# Nodes u, where eta = mode + scale sinh(u): dense at the mode, reaching far into slow tails.
NODES = np.linspace(-4.6, 4.6, 121)
STEP = NODES[1] - NODES[0]
UNIFORM = np.linspace(-9.0, 9.0, 97)
BLOCK_ROWS = 4096


def log_mass(y: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Log probability (n,) of the counts ``y`` (n,), whole numbers >= 0.

    Examples
    --------
    >>> zero = np.zeros(1)
    >>> np.exp(log_mass(zero, zero, zero)).round(4)
    array([0.3679])
    """
    return _by_blocks(_log_mass, y, mean, variance)


def distribution_function(y: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """P(count <= y), (n,); ``y`` (n,) whole numbers >= 0.

    Examples
    --------
    >>> zero = np.zeros(1)
    >>> distribution_function(zero, zero, zero).round(4)
    array([0.3679])
    """
    return _by_blocks(_distribution_function, y, mean, variance)


def _by_blocks(formula: Callable[..., FloatArray], *operands: FloatArray) -> FloatArray:
    result = np.empty(operands[0].shape)
    for start in range(0, len(result), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        with np.errstate(all="ignore"):
            result[rows] = formula(*(operand[rows] for operand in operands))
    return result


def _log_mass(y: FloatArray, m: FloatArray, v: FloatArray) -> FloatArray:
    # v = 0 is the limit of small variances, to rounding.
    v = np.maximum(v, 1e-14 / (1.0 + y))
    mode = _mode(y, m, v)
    scale = 1.0 / np.sqrt(np.exp(mode) + 1.0 / v)
    eta = mode[:, None] + scale[:, None] * np.sinh(NODES)
    exponent = -0.5 * np.square(eta - m[:, None]) / v[:, None]
    exponent += _log_poisson(y[:, None], eta) + np.log(np.cosh(NODES))
    highest = exponent.max(axis=1)
    total = np.exp(exponent - highest[:, None]).sum(axis=1) * STEP
    return highest + np.log(total * scale) - 0.5 * np.log(2.0 * math.pi * v)


def _log_poisson(y: FloatArray, eta: FloatArray) -> FloatArray:
    """Log Poisson mass without the cancellation of large terms: Loader (2000), saddle point."""
    largest = np.maximum(y, 1.0)
    d = eta - np.log(largest)
    # y eta - e^eta - log y! = -y (e^d - 1 - d) + [y log y - y - log y!]
    gap = np.where(np.abs(d) < 1e-3, d * d * (0.5 + d * (1.0 / 6.0 + d / 24.0)), np.expm1(d) - d)
    stirling = np.where(
        y > 50.0,
        -0.5 * np.log(2.0 * math.pi * largest)
        - 1.0 / (12.0 * largest)
        + 1.0 / (360.0 * largest**3),
        largest * np.log(largest) - largest - gammaln(largest + 1.0),
    )
    return np.where(y == 0.0, -np.exp(eta), stirling - largest * gap)


def _mode(y: FloatArray, m: FloatArray, v: FloatArray) -> FloatArray:
    """Where y - e^eta = (eta - m) / v: eta = m + v y - W, by Wright's omega function, polished."""
    start = np.where(
        v * y > 1e3,
        np.log(np.maximum(y, 1.0)),
        m + v * y - wrightomega(m + v * y + np.log(v)).real,
    )
    eta = np.maximum(start, m - 700.0 * v)
    for _ in range(6):
        rate = np.exp(np.minimum(eta, 700.0))
        eta = eta + np.clip((y - rate - (eta - m) / v) / (rate + 1.0 / v), -1.0, 1.0)
    return eta


def _distribution_function(y: FloatArray, m: FloatArray, v: FloatArray) -> FloatArray:
    """P(Poisson(e^eta) <= y) = P(Gamma(y + 1) > e^eta): a smoothed step, whichever is narrower.

    Either the average over eta of the Gamma's upper tail, or the average over the logarithm u of
    the Gamma of P(eta < u).
    """
    by_rate = v <= 1.0 / (y + 1.0)
    result = np.empty(y.shape)
    if by_rate.any():
        eta = m[by_rate, None] + np.sqrt(v[by_rate])[:, None] * UNIFORM
        weights = np.exp(-0.5 * UNIFORM * UNIFORM)
        tails = gammaincc(y[by_rate, None] + 1.0, np.exp(np.minimum(eta, 700.0)))
        result[by_rate] = tails @ (weights / weights.sum())
    if not by_rate.all():
        other = ~by_rate
        shape, mean, deviation = y[other, None] + 1.0, m[other, None], np.sqrt(v[other, None])
        d = np.sinh(NODES) / np.sqrt(shape)
        exponent = shape * np.where(
            np.abs(d) < 1e-3, -d * d * (0.5 + d * (1.0 / 6.0 + d / 24.0)), d - np.expm1(d)
        )
        weights = np.exp(exponent) * np.cosh(NODES)
        u = np.log(shape) + d
        result[other] = (weights * ndtr((u - mean) / deviation)).sum(axis=1) / weights.sum(axis=1)
    return np.minimum(result, 1.0)


__all__ = ["distribution_function", "log_mass"]
