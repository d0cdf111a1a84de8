"""What one row says for each of many runs, and what each run says of the noise.

Arrays are (k,), one entry a run: ``error`` and ``leverage`` h of the row before it was learned,
``freed`` n - d and ``residual`` s^2 of the run at that time.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from posterity.noise import LOG_2PI, KnownNoise, LearnedNoise

Array = NDArray[np.float64]


def added_evidence(
    noise: KnownNoise | LearnedNoise,
    weight: float,
    error: Array,
    leverage: Array,
    freed: Array,
    residual: Array,
) -> Array:
    """log p(y_1..n+1) - log p(y_1..n), (k,): for weight 1, the log predictive density of the row.

    A row of weight w adds w to the count, w e^2 / (1 + w h) to the residual sum of squares and
    log(1 + w h) to the log determinant. Flat predictions (nothing to go by yet) add 0. To be called
    where NumPy's warnings are silent.
    """
    spread = weight * leverage
    spread += 1.0
    gained = error * error
    gained *= weight
    gained /= spread
    flat = np.isinf(leverage)
    value = -0.5 * np.log(spread)
    if isinstance(noise, KnownNoise):
        precision = noise.known_precision
        value += 0.5 * (weight * (math.log(precision) - LOG_2PI) - precision * gained)
    else:
        shape = 0.5 * freed
        shape += noise.shape
        rate = 0.5 * residual
        rate += noise.rate
        shapes = np.stack([shape, shape + 0.5 * weight])
        log_gamma = gammaln(shapes)
        # shape log rate - shape_n log rate_n, without their difference's loss of digits
        value += log_gamma[1] - log_gamma[0] - 0.5 * weight * (LOG_2PI + np.log(rate))
        value -= shapes[1] * np.log1p(0.5 * gained / rate)
        flat |= shape <= 0.0
        perfect = rate == 0.0
        if perfect.any():  # a point mass
            value[perfect] = np.where(error[perfect] == 0.0, math.inf, -math.inf)
    if flat.any():
        value[flat] = 0.0
    return value


def noise_variance(noise: KnownNoise | LearnedNoise, freed: Array, residual: Array) -> Array:
    """rate_n / shape_n, (k,): 1 / the mean of the noise precision; infinite before there is one."""
    if isinstance(noise, KnownNoise):
        return np.full(len(freed), 1.0 / noise.known_precision)
    shape = 0.5 * freed + noise.shape
    rate = 0.5 * residual + noise.rate
    return np.divide(rate, shape, out=np.full(len(freed), math.inf), where=shape > 0.0)


def noise_is_proper(noise: KnownNoise | LearnedNoise) -> bool:
    """Whether the noise can be predicted before any data."""
    return isinstance(noise, KnownNoise) or (noise.shape > 0.0 and noise.rate > 0.0)
