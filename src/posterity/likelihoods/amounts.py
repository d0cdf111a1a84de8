"""Likelihoods of amounts of the mean exp(eta) whose variance is dispersion times a power of it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from posterity.aliases import Array
from posterity.likelihoods.likelihood import Kernel, ParametricLikelihood, keep_positive
from posterity.likelihoods.parameter import Parameter
from posterity.likelihoods.positive import (
    LARGEST_LOG,
    bounded_exp,
    log_near_mean,
)

# Mean and standard deviation of the log of the dispersion before data, and its ends.
MEAN, SD, ENDS = 0.0, 3.0, (np.log(1e-8), np.log(1e8))


class PowerOfMean(ParametricLikelihood):
    """An exponential dispersion model (Jorgensen 1987): variance = dispersion mean^power."""

    parameter: ClassVar[Parameter] = Parameter(
        "dispersion", stats.norm(MEAN, SD).logpdf, ENDS, power=0.0, exponent=-1.0
    )

    @property
    def power(self) -> Any:
        """The power of the mean."""
        raise NotImplementedError

    @property
    def kernel_code(self) -> Kernel | None:
        """The kernel has it built in."""
        return Kernel(9, (self._read_parameter()[1], self.power, 0.0))

    @property
    def ratio(self) -> str:
        """Eta is the log of the mean."""
        return "mean_ratio"

    def log_density(self, y: Array, eta: Array) -> Array:
        """(y mean^(1 - power) / (1 - power) - mean^(2 - power) / (2 - power)) / dispersion + .."""
        return self._sum(y, *self._raise(y, eta, 0.0))

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """(y - mean) mean^(1 - power) / dispersion, and its curvature.

        Of a power above 2 that may be negative: it is then a share of the expected one,
        mean^(2 - power) / dispersion.
        """
        return self._differentiate(*self._raise(y, eta, 0.0))

    def average(self, y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """The same with averages of powers of the mean."""
        powers = self._raise(y, mean, variance)
        of_target, of_mean = powers
        return self._sum(y, *powers), of_target - of_mean, self._bend(*powers)

    def start(self, y: Array) -> Array:
        """Return starting values: the log of the target, shrunk to that of the mean."""
        return log_near_mean(y, 1e-300)

    def mean(self, eta: Array) -> Array:
        """The mean exp(eta)."""
        return bounded_exp(eta)

    def link_function(self, mean: Array) -> Array:
        """The log of the mean."""
        return np.asarray(np.log(mean))

    def log_base_density(self, y: Array) -> Array:
        """The part of the log density without eta."""
        raise NotImplementedError

    def _raise(self, y: Array, mean: Array, variance: ArrayLike) -> tuple[Array, Array]:
        """Averages of y exp(eta)^(1 - power) and exp(eta)^(2 - power), over the dispersion."""
        # Where the larger power ends, so does the other: else their difference would turn.
        least, powers = -LARGEST_LOG / (self.power - 1.0), (1.0 - self.power, 2.0 - self.power)
        first, second = (
            bounded_exp(k * np.maximum(mean + 0.5 * k * np.asarray(variance), least)) / self.known
            for k in powers
        )
        return y * first, second

    def _sum(self, y: Array, of_target: Array, of_mean: Array) -> Array:
        value = of_target / (1.0 - self.power) - of_mean / (2.0 - self.power)
        return value + self.log_base_density(y)

    def _differentiate(self, of_target: Array, of_mean: Array) -> tuple[Array, Array]:
        return of_target - of_mean, keep_positive(self._bend(of_target, of_mean), of_mean)

    def _bend(self, of_target: Array, of_mean: Array) -> Array:
        return (self.power - 1.0) * of_target + (2.0 - self.power) * of_mean
