"""The standard normal distribution: a family of location and scale, as functions of z."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf, ndtr, ndtri

from posterity.distributions._rows import FloatArray

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def variance() -> float:
    """Variance of z."""
    return 1.0


def logpdf(z: FloatArray) -> FloatArray:
    """Log density."""
    return -0.5 * z * z - _HALF_LOG_2PI


def cdf(z: FloatArray) -> FloatArray:
    """Distribution function."""
    return np.asarray(ndtr(z))


def ppf(q: FloatArray) -> FloatArray:
    """Quantile."""
    return np.asarray(ndtri(q))


def crps(z: FloatArray) -> FloatArray:
    """Continuous ranked probability score (Gneiting and Raftery 2007, p. 367)."""
    density = math.sqrt(2.0 / math.pi) * np.exp(-0.5 * z * z)
    value: FloatArray = z * erf(z * math.sqrt(0.5)) + density - math.sqrt(1.0 / math.pi)
    return value


def draw(rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    """Independent draws."""
    return rng.standard_normal(size)
