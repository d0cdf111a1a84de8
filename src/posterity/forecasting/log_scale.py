"""The scale of forms in logarithms, which values between a floor and a capacity have as well.

With v = y - floor and w = capacity - floor,

    z = log(v) - log(1 - v / w) :

the logarithm of v where w is infinite, and else its log odds, plus log w. Growth that saturates at
the capacity (Verhulst 1838) is a line in z.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from posterity.aliases import Array

# Limits of the mean and sd of a value's logarithm: beyond them the mean overflows.
LARGEST_LOG, LARGEST_SD = 600.0, 6.0
# Nodes of integrals over a normal, and on either side of an outcome; sds to where these go.
HERMITE, LEGENDRE, TAIL = 24, 16, 5.0


@dataclass(frozen=True)
class LogScale:
    """Logarithms of values above ``floor``, which end at ``floor + width``: see above."""

    floor: float = 0.0
    width: float = np.inf

    def find(self, y: Array) -> Array:
        """z of values; infinite at the ends and beyond."""
        v = y - self.floor
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(np.maximum(v, 0.0)) - np.log1p(-np.fmin(v / self.width, 1.0))

    def values(self, z: Array) -> Array:
        """Values at z."""
        odds = np.exp(np.minimum(z, LARGEST_LOG))
        return self.floor + odds / (1.0 + odds / self.width)

    def slopes(self, y: Array) -> Array:
        """By how much values y change with z."""
        v = y - self.floor
        return np.asarray(v * (1.0 - v / self.width))

    def changes(self, z: Array, by: Array) -> Array:
        """By how much values at z change where z does ``by`` so much."""
        v, ratio = self.values(z) - self.floor, np.expm1(by)
        share = v / self.width
        return v * ratio * (1.0 - share) / (1.0 + share * ratio)

    def means(self, mean: Array, sd: Array) -> Array:
        """Means of values whose z ~ Normal(mean, sd^2)."""
        if np.isfinite(self.width):
            return self._integrate(mean, sd, 1)
        variance = np.square(np.minimum(sd, LARGEST_SD))
        return self.floor + np.exp(np.minimum(mean + 0.5 * variance, LARGEST_LOG))

    def variances(self, mean: Array, sd: Array) -> Array:
        """Variances of these values."""
        each = self.means(mean, sd)
        if np.isfinite(self.width):
            return np.maximum(self._integrate(mean, sd, 2) - np.square(each), 0.0)
        with np.errstate(over="ignore"):
            return np.square(each - self.floor) * np.expm1(np.square(np.minimum(sd, LARGEST_SD)))

    def crps(self, mean: Array, sd: Array, y: Array) -> Array:
        """CRPS of outcomes y of these values: the integral of (F(x) - [x >= y])^2.

        Of logarithms in closed form (Baran and Lerch 2015), of log odds by Gauss-Legendre on either
        side of the outcome. NaN where the outcome is none of the scale.
        """
        sd, at = np.clip(sd, 1e-12, LARGEST_SD), self.find(y)
        at = np.where(np.isfinite(at), at, np.nan)
        if not np.isfinite(self.width):
            z, v = (at - mean) / sd, y - self.floor
            centre = self.means(mean, sd) - self.floor
            shape = ndtr(z - sd) + ndtr(sd / np.sqrt(2.0)) - 1.0
            return np.asarray(v * (2.0 * ndtr(z) - 1.0) - 2.0 * centre * shape)
        low, high = mean - TAIL * sd, mean + TAIL * sd
        middle = np.clip(at, low, high)
        total = np.abs(y - self.values(middle))  # beyond the tails the integrand is 1
        nodes, weights = np.polynomial.legendre.leggauss(LEGENDRE)
        for end, sign in ((low, 1.0), (high, -1.0)):
            half = 0.5 * (middle - end)
            z = end[..., None] + half[..., None] * (1.0 + nodes)
            tail = ndtr(sign * (z - mean[..., None]) / sd[..., None])
            total += np.abs(half) * (np.square(tail) * self.slopes(self.values(z)) @ weights)
        return total

    def _integrate(self, mean: Array, sd: Array, power: int) -> Array:
        total = np.zeros(np.broadcast_shapes(np.shape(mean), np.shape(sd)))
        for node, weight in zip(*_make_hermite(), strict=True):
            total += weight * self.values(mean + node * sd) ** power
        return total


LOGARITHMS = LogScale()


@lru_cache(maxsize=1)
def _make_hermite() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(HERMITE)
    return nodes, weights / weights.sum()
