"""A Gaussian times exp(below e) where e < 0 and exp(-above e) beyond: two truncated normals."""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, log_ndtr

from posterity.aliases import Array

ROOT_HALF = float(np.sqrt(0.5))
ROOT_2_OVER_PI = float(np.sqrt(2.0 / np.pi))
# From here on the series of a normal's tail is exact to eleven digits, without cancellation.
SERIES_START = 50.0


def kinked_moments(
    mean: Array, variance: Array, below: Array, above: Array
) -> tuple[Array, Array, Array]:
    """log of the integral, the mean's move, and the ratio of the variances, e ~ Normal(mean, v).

    The part below 0 is Normal(mean + below v, v) up to 0, times exp(below mean + below^2 v / 2),
    which is exp((z^2 - (mean / s)^2) / 2) with z = mean / s + below s; the one above likewise.

    Examples
    --------
    >>> log_mass, moved, ratio = kinked_moments(np.zeros(1), np.ones(1), np.ones(1), np.ones(1))
    >>> np.exp(log_mass).round(4), moved.round(4), ratio.round(4)
    (array([0.5232]), array([0.]), array([0.4749]))
    """
    scale = np.sqrt(np.maximum(variance, 1e-300))
    place = mean / scale
    low, high = place + below * scale, -place + above * scale
    log_low, log_high = _log_mass(low, place), _log_mass(high, place)
    log_total = np.logaddexp(log_low, log_high)
    share = np.exp(log_low - log_total)
    (mean_low, var_low), (mean_high, var_high) = _beyond(low), _beyond(high)
    centre = share * -mean_low + (1.0 - share) * mean_high
    ratio = share * var_low + (1.0 - share) * var_high
    ratio += share * (1.0 - share) * (mean_low + mean_high) ** 2
    return log_total, scale * (centre - place), ratio


def _log_mass(z: Array, place: Array) -> Array:
    """(z^2 - place^2) / 2 + log of the normal's tail beyond z."""
    with np.errstate(over="ignore", under="ignore"):
        near = np.log(0.5 * erfcx(ROOT_HALF * np.maximum(z, -5.0))) - 0.5 * place * place
        return np.where(z > -5.0, near, 0.5 * (z - place) * (z + place) + log_ndtr(-z))


def _beyond(z: Array) -> tuple[Array, Array]:
    """Mean above z, and variance, of the standard normal beyond z."""
    near = np.clip(z, -SERIES_START, SERIES_START)
    with np.errstate(over="ignore"):
        hazard = ROOT_2_OVER_PI / erfcx(ROOT_HALF * near)
    inverse = 1.0 / np.maximum(z, SERIES_START)
    square = inverse * inverse
    mean = inverse * (1.0 - square * (2.0 - square * (10.0 - 74.0 * square)))
    variance = square * (1.0 - square * (6.0 - square * (50.0 - 518.0 * square)))
    far = z > SERIES_START
    exact = hazard - np.where(z < -SERIES_START, z, near)
    return np.where(far, mean, exact), np.where(far, variance, 1.0 - hazard * (hazard - near))
