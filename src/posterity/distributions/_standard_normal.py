"""The standard normal distribution: a family of location and scale, as functions of z."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf, ndtr, ndtri

from posterity.distributions._rows import FloatArray

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)


def variance() -> float:
    """Variance of z."""
    return 1.0


def logpdf(z: FloatArray) -> FloatArray:
    """Log density."""
    return -0.5 * z * z - _HALF_LOG_2PI


def pdf(z: FloatArray) -> FloatArray:
    """Density, which may underflow."""
    return np.exp(-0.5 * z * z) * (0.5 * _ROOT_2_OVER_PI)


def log_slope(z: FloatArray) -> FloatArray:
    """Slope of the log density."""
    return -z


def cdf(z: FloatArray) -> FloatArray:
    """Distribution function."""
    return np.asarray(ndtr(z))


approximate_cdf = cdf


def ppf(q: FloatArray) -> FloatArray:
    """Quantile."""
    return np.asarray(ndtri(q))


def absolute_error(z: FloatArray) -> FloatArray:
    """E|Z - z|."""
    error: FloatArray = z * erf(z * math.sqrt(0.5)) + np.exp(-0.5 * z * z) * _ROOT_2_OVER_PI
    return error


def crps(z: FloatArray) -> FloatArray:
    """Continuous ranked probability score (Gneiting and Raftery 2007, p. 367)."""
    return absolute_error(z) - math.sqrt(1.0 / math.pi)


def draw(rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    """Independent draws."""
    return rng.standard_normal(size)
