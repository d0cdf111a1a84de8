"""A positive parameter of a likelihood that may be learned, as its log t."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Standard deviations beyond which a parameter is not looked for.
FARTHEST = 6.0
# Points of t at which its density before data is summed.
N_POINTS = 1001


class Parameter(NamedTuple):
    """The log density of t before data, between two ends.

    Where one value stands for all, it is the mean of exp(t), or that of exp(``power`` t): -1 where
    targets vary the less, the larger the parameter is, and 0 for exp of the mean of t.
    """

    name: str
    log_density: Callable[[Array], Array]
    ends: tuple[float, float]
    power: float = 1.0

    @property
    def as_log_normal(self) -> LogNormalParameter:
        """The same with a normal t of the same mean and standard deviation."""
        t = np.linspace(*self.ends, N_POINTS)
        shares = np.exp(self.log_density(t))
        mean = float(shares @ t / shares.sum())
        variance = float(shares @ np.square(t - mean) / shares.sum())
        return LogNormalParameter(self.name, mean, variance**0.5)


def average(t: Array, shares: Array, power: float) -> float:
    """The one value that stands for values of these logs (k,), of shares (k,) that sum to 1."""
    if power == 0.0:
        return math.exp(float(shares @ t))
    return float(float(shares @ np.exp(power * t)) ** (1.0 / power))


class LogNormalParameter(NamedTuple):
    """A parameter among several, whose t is Normal(mean, sd^2) before data.

    Several are learned together with the coefficients, on which they may depend.
    """

    name: str
    mean: float
    sd: float
    power: float = 1.0

    @property
    def ends(self) -> tuple[float, float]:
        """Where t may lie."""
        return self.mean - FARTHEST * self.sd, self.mean + FARTHEST * self.sd

    def log_density(self, t: Array) -> Array:
        """That of t before data."""
        off = (t - self.mean) / self.sd
        return -0.5 * (np.square(off) + np.log(2.0 * np.pi)) - np.log(self.sd)

    @property
    def as_log_normal(self) -> LogNormalParameter:
        """Itself."""
        return self
