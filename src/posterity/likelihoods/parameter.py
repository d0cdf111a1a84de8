"""A positive parameter of a likelihood that may be learned, as its log t."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from posterity.aliases import Array
from posterity.distributions.gamma_power import gamma_power

# Standard deviations beyond which a parameter is not looked for.
FARTHEST = 6.0
# Points of t at which its density before data is summed.
N_POINTS = 1001
# Skewness of the log of a parameter, at most, and below which it is none.
MOST_SKEWED, LEAST_SKEWED = 0.5, 0.05


class Parameter(NamedTuple):
    """The log density of t before data, between two ends.

    Where one value stands for all, it is the mean of exp(t), or that of exp(``power`` t): -1 where
    targets vary the less, the larger the parameter is, and 0 for exp of the mean of t. By many rows
    exp(``exponent`` t) is nearly a gamma variable: a precision's is 1, that of a standard deviation
    -2.
    """

    name: str
    log_density: Callable[[Array], Array]
    ends: tuple[float, float]
    power: float = 1.0
    exponent: float = 1.0

    @property
    def as_log_normal(self) -> LogNormalParameter:
        """The same with a normal t of the same mean and standard deviation."""
        t = np.linspace(*self.ends, N_POINTS)
        shares = np.exp(self.log_density(t))
        mean = float(shares @ t / shares.sum())
        variance = float(shares @ np.square(t - mean) / shares.sum())
        sd = variance**0.5
        return LogNormalParameter(self.name, mean, sd, self.power, self.exponent, self)

    @property
    def stated(self) -> Parameter:
        """Itself."""
        return self

    def distribution(self, mean: float, sd: float) -> Any:
        """That of a parameter whose log has this mean and standard deviation after data."""
        return self.as_log_normal.distribution(mean, sd)


def average(t: Array, shares: Array, power: float) -> float:
    """The one value that stands for values of these logs (k,), of shares (k,) that sum to 1."""
    if power == 0.0:
        return math.exp(float(shares @ t))
    return float(float(shares @ np.exp(power * t)) ** (1.0 / power))


class LogNormalParameter(NamedTuple):
    """A parameter among several, whose t is Normal(mean, sd^2) before data.

    Several are learned together with the coefficients, on which they may depend. One whose t is not
    normal, ``exact``, is taken as normal while rows come.
    """

    name: str
    mean: float
    sd: float
    power: float = 1.0
    exponent: float = 1.0
    exact: Parameter | None = None

    @property
    def stated(self) -> Parameter | LogNormalParameter:
        """The parameter with the prior that it was given."""
        return self if self.exact is None else self.exact

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

    def distribution(self, mean: float, sd: float) -> Any:
        """That of a parameter whose log has this mean and standard deviation after data.

        A gamma variable to a power, whose log is as skewed as rows make it: the less they tell
        beside the prior, the less it is, and before data the log is normal.
        """
        skewed = self.exponent * sd * (1.0 - min(sd / self.sd, 1.0) ** 2)
        if abs(skewed) < LEAST_SKEWED:
            return stats.lognorm(sd, scale=math.exp(mean))
        most = math.copysign(min(abs(skewed), MOST_SKEWED), skewed)
        return gamma_power(sd, most, scale=math.exp(mean))
