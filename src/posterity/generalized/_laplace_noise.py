"""Laplace noise as a true likelihood, unlike the working likelihood of a quantile."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import polygamma

from posterity.aliases import Array
from posterity.generalized._asymmetric_laplace_noise import AsymmetricLaplaceNoise
from posterity.generalized._core import compute_laplace_core
from posterity.generalized._matched_noise import GROSS, MatchedNoise
from posterity.generalized._matching import Sites
from posterity.generalized._working_noise import Rows
from posterity.generalized.asymmetric_laplace import AsymmetricLaplace

# Smallest error: a row that is fitted exactly would have infinite weight.
LEAST_ERROR = 0.3


@dataclass(frozen=True)
class DoubleExponentialNoise(MatchedNoise, AsymmetricLaplaceNoise):
    """Laplace noise; its scale here is the mean check loss at the median, half the usual one."""

    @property
    def widening(self) -> float:
        """The growth of a new row's squared scale with its leverage: 95% intervals then hold."""
        return 0.1

    @property
    def core_ratio(self) -> float:  # type: ignore[override]
        """Standard deviation of its core, over its scale."""
        return 2.0 * compute_laplace_core()

    def sites(self, error: Array, leverage: Array, scale: Array) -> tuple[Array, Array]:
        """Weight of each row, relative to the noise, and how far its target moves.

        Gross errors weigh nothing, as in a fit: of many the bounded pulls would add up.
        """
        weight, shift = super().sites(error, leverage, scale)
        gross = np.abs(error) > GROSS * scale * np.sqrt(1.0 + leverage)
        return np.where(gross, 0.0, weight), shift

    def site(self, error: float, leverage: float, scale: float) -> tuple[float, float]:
        """The same of one row."""
        weight, shift = super().site(error, leverage, scale)
        gross = abs(error) > GROSS * scale * math.sqrt(1.0 + leverage)
        return 0.0 if gross else weight, shift

    def predictive(
        self, mean: Array, leverage: Array, scale: float | Array, df: float | Array
    ) -> AsymmetricLaplace:
        """Distribution of a new observation, widened by what is not known of mean and scale.

        Where the logarithm of the scale has variance v, the tail beyond z scales is
        exp(-z) (1 + v (z^2 - z) / 2): 95% reach about v further.
        """
        wider = np.exp(0.25 * polygamma(1, 0.5 * np.asarray(df)))
        return super().predictive(mean, leverage, scale * wider, df)

    def approximate_sites(self, rows: Rows, fit: Array, scale: float) -> Sites:
        """Rows that stand for the likelihood around a fit, roughly."""
        error = rows.y - fit
        # The weight that has the same pull at the fit; as much information as they have in all.
        weight = 0.25 / np.maximum(np.abs(error / scale), LEAST_ERROR)
        return Sites(scale, weight, fit + 0.5 * scale * np.sign(error) / weight)
