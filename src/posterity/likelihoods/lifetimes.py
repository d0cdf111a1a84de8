"""Likelihoods of lifetimes: features make time run faster or slower by a factor exp(eta)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import stats

from posterity.aliases import Array
from posterity.likelihoods.likelihood import (
    Likelihood,
    ParametricLikelihood,
)
from posterity.likelihoods.parameter import Parameter
from posterity.likelihoods.positive import (
    check_positive,
    log_near_mean,
)

# Mean and standard deviation of the log of the shape before data, and its ends.
MEAN, SD, ENDS = 0.5, 1.5, (np.log(1e-2), np.log(1e4))


class Lifetime(Likelihood):
    """A positive time y = exp(eta + e / shape), where e has a distribution of its own.

    These are accelerated failure time models (Kalbfleisch and Prentice 2002, section 2.3):
    exp(coefficient) is the ratio of two times, of their means as of their quantiles.
    """

    @property
    def scaled(self) -> Any:
        """The shape: 1 over the scale of e."""
        raise NotImplementedError

    @property
    def ratio(self) -> str:
        """Eta is the log of a time."""
        return "time_ratio"

    def of_error(self, e: Array) -> tuple[Array, Array, Array]:
        """Log density of e, its slope, and minus its second derivative."""
        raise NotImplementedError

    def log_density(self, y: Array, eta: Array) -> Array:
        """The log density of e = shape (log y - eta), and log shape - log y."""
        log = np.log(y)
        density = self.of_error(self.scaled * (log - eta))[0]
        return np.asarray(density + np.log(self.scaled) - log)

    def tails_of_error(self, e: Array) -> tuple[Array, Array]:
        """Logs of the probabilities of at most e, and of more."""
        raise NotImplementedError

    def log_tails(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """Those of e = shape (log y - eta)."""
        return self.tails_of_error(self.scaled * (np.log(np.maximum(y, 0.0)) - eta))

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """-shape times the slope of the log density of e, and shape^2 times its curvature."""
        _, slope, curvature = self.of_error(self.scaled * (np.log(y) - eta))
        return -self.scaled * slope, self.scaled**2 * curvature

    def start(self, y: Array) -> Array:
        """Return starting values: the log of the target, shrunk to that of the mean."""
        return log_near_mean(y)

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are positive and finite."""
        check_positive(y, type(self).__name__.removesuffix("Time"))


class ShapedLifetime(ParametricLikelihood, Lifetime):
    """The same with a shape that may be learned."""

    parameter: ClassVar[Parameter] = Parameter(
        "shape", stats.norm(MEAN, SD).logpdf, ENDS, power=-1.0
    )

    @property
    def scaled(self) -> Any:
        """The shape: 1 over the scale of e."""
        return self.known
