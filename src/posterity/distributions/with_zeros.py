"""Distributions with another probability of 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.distributions.known_by_cdf import solved_quantile

Array = NDArray[np.float64]

# Beyond so many standard deviations, and lengths of an exponential tail, there are no counts.
FURTHEST, LARGEST = 40.0, 1e305


class WithZeros:
    """A distribution with another probability of 0, and all else times ``factor``."""

    def __init__(self, given: Any, zero: Array, factor: Array) -> None:
        self.given, self.zero, self.factor = given, zero, factor

    def logpdf(self, y: Array) -> Array:
        """Log density; of 0 the log of its probability."""
        return np.where(y == 0.0, np.log(self.zero), self._log_other(self.given.logpdf(y)))

    def cdf(self, y: Array) -> Array:
        """Probability of at most y."""
        return np.where(np.asarray(y) < 0.0, 0.0, 1.0 - self.factor * self.given.sf(y))

    def ppf(self, q: Array) -> Array:
        """Quantile."""
        above = self.given.isf(np.minimum((1.0 - q) / self.factor, 1.0))
        return np.where(q <= self.zero, np.where(q < 0.0, np.nan, 0.0), above)

    def mean(self) -> Array:
        """Mean."""
        return np.asarray(self.factor * self.given.mean())

    def var(self) -> Array:
        """Variance."""
        square = self.factor * (self.given.var() + np.square(self.given.mean()))
        return np.asarray(square - np.square(self.mean()))

    def rvs(self, size: Any, random_state: np.random.Generator) -> Array:
        """Draws."""
        return self.ppf(random_state.random(size))

    def _log_other(self, log_density: Array) -> Array:
        return np.asarray(np.log(self.factor) + log_density)


class CountsWithZeros(WithZeros):
    """The same of whole numbers."""

    def logpmf(self, y: Array) -> Array:
        """Log probability."""
        return np.where(y == 0.0, np.log(self.zero), self._log_other(self.given.logpmf(y)))

    def ppf(self, q: Array) -> Array:
        """Quantile: what is above 0 may be too rare for that of the given distribution."""
        mean, var = self.given.mean(), self.given.var()
        q, most = np.broadcast_arrays(q, mean + FURTHEST * (1.0 + np.sqrt(var) + var / mean))
        most = np.floor(np.nan_to_num(most, nan=LARGEST, posinf=LARGEST))
        return solved_quantile(self.cdf, q, np.zeros(q.shape), most, 1.0)
