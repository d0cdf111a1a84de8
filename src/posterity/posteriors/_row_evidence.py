"""The evidence that one more row adds to a Gaussian model."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from posterity.aliases import Array
from posterity.factor import OneStepPredictions
from posterity.noise import LOG_2PI, Noise


def sum_evidence_gains(
    noise: Noise, before: OneStepPredictions, weights: Array | None, n_flat: int
) -> float:
    """The log evidence that rows of these weights (n,) add, each predicted before it came.

    A point mass adds nothing: nothing is known of the noise yet, as before any rows.
    """
    weights = np.ones(len(before.error)) if weights is None else weights
    told = before.leverage, before.count - n_flat, before.residual[:, 0]
    gain = compute_evidence_gain(noise, weights, before.error[:, 0], *told)
    return float(np.sum(gain[(weights > 0.0) & np.isfinite(gain)]))


def compute_evidence_gain(
    noise: Noise, weights: Array, error: Array, leverage: Array, residual_df: Array, residual: Array
) -> Array:
    """log p(y_1..n+1) - log p(y_1..n), (n,): for weight 1, the log predictive density of each row.

    ``error`` and ``leverage`` h of each row before it was learned, ``residual_df`` n - d and
    ``residual`` s^2 at that time. A row of weight w adds w to the count, w e^2 / (1 + w h) to the
    residual sum of squares and log(1 + w h) to the log determinant. Flat predictions (nothing to go
    by yet) add 0, and a point mass an infinite density or none.
    """
    known, shape, rate = noise.parameters
    with np.errstate(all="ignore"):
        spread = 1.0 + weights * leverage
        gained = weights * np.square(error) / spread
        if known:
            gain = -0.5 * (np.log(spread) + known * gained - weights * (math.log(known) - LOG_2PI))
            return np.where(np.isinf(leverage), 0.0, gain)
        shape_n, twice_rate = shape + 0.5 * residual_df, residual + 2.0 * rate
        # shape log rate - shape_n log rate_n, without their difference's loss of digits
        gain = gammaln(shape_n + 0.5 * weights) - gammaln(shape_n)
        gain -= (shape_n + 0.5 * weights) * np.log1p(gained / twice_rate)
        gain -= 0.5 * (np.log(spread) + weights * np.log(math.pi * twice_rate))
        gain = np.where(twice_rate == 0.0, np.where(error == 0.0, math.inf, -math.inf), gain)
    return np.where(np.isinf(leverage) | (shape_n <= 0.0), 0.0, gain)
