"""Likelihoods of lifetimes that end with the first of many chances to fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from posterity.aliases import Array
from posterity.likelihoods.frozen import freeze
from posterity.likelihoods.lifetimes import Lifetime, ShapedLifetime
from posterity.likelihoods.likelihood import (
    Kernel,
)
from posterity.likelihoods.positive import (
    as_scale,
    bounded_exp,
)


class SmallestOfMany:
    """Where e is the log of a standard exponential time: a smallest extreme value."""

    def of_error(self, e: Array) -> tuple[Array, Array, Array]:
        """Of e - exp(e)."""
        hazard = bounded_exp(e)
        return e - hazard, 1.0 - hazard, hazard

    def tails_of_error(self, e: Array) -> tuple[Array, Array]:
        """Log(1 - exp(-exp(e))) and -exp(e)."""
        hazard = bounded_exp(e)
        return np.log(-np.expm1(-hazard)), -hazard


@dataclass(frozen=True)
class ExponentialTime(SmallestOfMany, Lifetime):
    """A waiting time of the mean exp(eta), for what comes at a constant rate exp(-eta).

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = rng.exponential(np.exp(1.0 + 0.5 * X[:, 0]))
    >>> BayesianGeneralizedLinear(Exponential()).fit(X, y).coef_.round(1)
    array([0.5])
    """

    @property
    def scaled(self) -> float:
        """The shape: 1, of a constant hazard."""
        return 1.0

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(10, (1.0, 0.0, 0.0))

    def distribution(self, eta: Array) -> Any:
        """Exponential of the mean exp(eta)."""
        return freeze(stats.expon, scale=as_scale(eta))


# The name that users know; the other tells it from the memory Exponential in files.
Exponential = ExponentialTime


@dataclass(frozen=True)
class Weibull(SmallestOfMany, ShapedLifetime):
    """A lifetime of the scale exp(eta): its hazard grows (shape > 1) or falls with age.

    ``P(Y > y) = exp(-(y / exp(eta)) ** shape)``; the mean is exp(eta) Gamma(1 + 1 / shape).

    Parameters
    ----------
    shape : float, optional
        Positive; 1 is :class:`Exponential`. None: it is learned; log(shape) is Normal(0.5, 1.5^2)
        before data.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = np.exp(1.0 + 0.5 * X[:, 0]) * rng.weibull(2.0, size=400)
    >>> model = BayesianGeneralizedLinear(Weibull()).fit(X, y)
    >>> model.coef_.round(1), model.likelihood_parameters_["shape"].mean().round(0)
    (array([0.5]), np.float64(2.0))
    """

    shape: float | None = None

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(10, (self.shape, 0.0, 0.0))

    def distribution(self, eta: Array) -> Any:
        """Weibull of this shape and the scale exp(eta)."""
        return freeze(stats.weibull_min, self.known, scale=as_scale(eta))
