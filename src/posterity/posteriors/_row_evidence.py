"""The evidence that one row adds to each of many runs, and the noise of each run.

Arrays are (k,), one entry a run: ``error`` and ``leverage`` h of the row before it was learned,
``residual_df`` n - d and ``residual`` s^2 of the run at that time.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from posterity.noise import LOG_2PI, KnownNoise, LearnedNoise, Noise

Array = NDArray[np.float64]
LOG_PI = math.log(math.pi)


def compute_evidence_gain(
    noise: Noise,
    weight: float,
    error: Array,
    leverage: Array,
    residual_df: Array,
    residual: Array,
) -> Array:
    """log p(y_1..n+1) - log p(y_1..n), (k,): for weight 1, the log predictive density of the row.

    A row of weight w adds w to the count, w e^2 / (1 + w h) to the residual sum of squares and
    log(1 + w h) to the log determinant. Flat predictions (nothing to go by yet) add 0. To be called
    where NumPy's warnings are silent.
    """
    gained = error * error
    if weight == 1.0:
        spread = leverage + 1.0
    else:
        spread = weight * leverage + 1.0
        gained *= weight
    gained /= spread
    if isinstance(noise, KnownNoise):
        precision = noise.known_precision
        value = np.log(spread)
        value += precision * gained - weight * (math.log(precision) - LOG_2PI)
        value *= -0.5
    else:
        assert isinstance(noise, LearnedNoise)
        value = _integrate_noise(noise, weight, gained, spread, residual_df, residual)
    if len(value) == 1:
        _set_improper_limits(value, noise, error, leverage, residual_df, residual)
    return value


def _integrate_noise(
    noise: LearnedNoise,
    weight: float,
    gained: Array,
    spread: Array,
    residual_df: Array,
    residual: Array,
) -> Array:
    """The same, given what the residual sum of squares gains and spread 1 + w h; reuses gained."""
    shapes = np.empty((2, len(residual_df)))
    shape = np.multiply(residual_df, 0.5, out=shapes[0])
    shape += noise.shape
    np.add(shape, 0.5 * weight, out=shapes[1])
    twice_rate = residual + 2.0 * noise.rate
    gained /= twice_rate
    # shape log rate - shape_n log rate_n, without their difference's loss of digits
    value = np.log1p(gained, out=gained)
    value *= shapes[1]
    if weight == 1.0:
        halved = np.log(twice_rate * spread)
    else:
        halved = weight * np.log(twice_rate) + np.log(spread)
    halved += weight * LOG_PI
    halved *= 0.5
    value += halved
    log_gamma = gammaln(shapes)
    value += log_gamma[0]
    return np.subtract(log_gamma[1], value, out=value)


def _set_improper_limits(
    value: Array,
    noise: Noise,
    error: Array,
    leverage: Array,
    residual_df: Array,
    residual: Array,
) -> None:
    """Write out the limits for a run that is flat or a point mass; such a run is the only one."""
    flat = np.isinf(leverage)
    if isinstance(noise, LearnedNoise):
        perfect = residual + 2.0 * noise.rate == 0.0
        value[perfect] = np.where(error[perfect] == 0.0, math.inf, -math.inf)
        flat |= residual_df + 2.0 * noise.shape <= 0.0
    value[flat] = 0.0


def noise_variance(noise: Noise, probability: Array, residual_df: Array, residual: Array) -> float:
    """Known, or 1 / the mean of the precision over runs of these probabilities.

    Infinite or 0 before there is one. To be called where NumPy's warnings are silent.
    """
    if isinstance(noise, KnownNoise):
        return 1.0 / noise.known_precision
    assert isinstance(noise, LearnedNoise)
    count = residual_df + 2.0 * noise.shape
    if len(count) == 1 and count[0] <= 0.0:
        return math.inf
    count /= residual + 2.0 * noise.rate
    precision = float(count @ probability)
    return 1.0 / precision if precision > 0.0 else math.inf


def noise_is_proper(noise: Noise) -> bool:
    """Return True if the noise has a proper prior, so that it can be predicted before any data."""
    if isinstance(noise, LearnedNoise):
        return noise.shape > 0.0 and noise.rate > 0.0
    return True
