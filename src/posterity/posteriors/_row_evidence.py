"""What one row says for each of many runs, and what each run says of the noise.

Arrays are (k,), one entry a run: ``error`` and ``leverage`` h of the row before it was learned,
``freed`` n - d and ``residual`` s^2 of the run at that time.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from posterity.noise import LOG_2PI, KnownNoise, LearnedNoise, Noise

Array = NDArray[np.float64]


def added_evidence(
    noise: Noise,
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
    value = -0.5 * np.log(spread)
    if isinstance(noise, KnownNoise):
        precision = noise.known_precision
        value += 0.5 * (weight * (math.log(precision) - LOG_2PI) - precision * gained)
    else:
        assert isinstance(noise, LearnedNoise)
        shapes = np.empty((2, len(freed)))
        shape = np.multiply(freed, 0.5, out=shapes[0])
        shape += noise.shape
        np.add(shape, 0.5 * weight, out=shapes[1])
        rate = 0.5 * residual
        rate += noise.rate
        log_gamma = gammaln(shapes)
        # shape log rate - shape_n log rate_n, without their difference's loss of digits
        value += log_gamma[1] - log_gamma[0] - 0.5 * weight * (LOG_2PI + np.log(rate))
        gained *= 0.5
        gained /= rate
        value -= shapes[1] * np.log1p(gained)
    if len(value) == 1:
        _settle_improper(value, noise, error, leverage, freed, residual)
    return value


def _settle_improper(
    value: Array,
    noise: Noise,
    error: Array,
    leverage: Array,
    freed: Array,
    residual: Array,
) -> None:
    """Write out the limits for a run that is flat or a point mass; such a run is the only one."""
    flat = np.isinf(leverage)
    if isinstance(noise, LearnedNoise):
        perfect = residual + 2.0 * noise.rate == 0.0
        value[perfect] = np.where(error[perfect] == 0.0, math.inf, -math.inf)
        flat |= freed + 2.0 * noise.shape <= 0.0
    value[flat] = 0.0


def noise_variance(noise: Noise, probability: Array, freed: Array, residual: Array) -> float:
    """Known, or 1 / the mean of the precision over runs of these probabilities.

    Infinite or 0 before there is one. To be called where NumPy's warnings are silent.
    """
    if isinstance(noise, KnownNoise):
        return 1.0 / noise.known_precision
    assert isinstance(noise, LearnedNoise)
    precision = np.maximum(freed + 2.0 * noise.shape, 0.0)
    precision /= residual + 2.0 * noise.rate
    return float(1.0 / (precision @ probability))


def noise_is_proper(noise: Noise) -> bool:
    """Whether the noise can be predicted before any data."""
    if isinstance(noise, LearnedNoise):
        return noise.shape > 0.0 and noise.rate > 0.0
    return True
