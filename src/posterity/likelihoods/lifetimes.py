"""Likelihoods of lifetimes: features make time run faster or slower by a factor exp(eta)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, log_expit, log_ndtr

from posterity.likelihoods.classes import LOG_ROOT_2PI
from posterity.likelihoods.likelihood import (
    Kernel,
    Likelihood,
    ParametricLikelihood,
)
from posterity.likelihoods.parameter import Parameter
from posterity.likelihoods.positive import (
    as_scale,
    bounded_exp,
    check_positive,
    log_near_mean,
)

Array = NDArray[np.float64]

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
        return stats.expon(scale=as_scale(eta))


# In files, "Exponential" is a way to forget.
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
        return stats.weibull_min(self.known, scale=as_scale(eta))


@dataclass(frozen=True)
class LogLogistic(ShapedLifetime):
    """A lifetime of the median exp(eta), whose hazard may rise and then fall (shape > 1).

    ``P(Y > y) = 1 / (1 + (y / exp(eta)) ** shape)``: the log time is eta plus logistic noise, and
    all odds of living longer are multiplied by exp(shape * coefficient).

    Parameters
    ----------
    shape : float, optional
        Positive; without a mean up to 1. None: it is learned; log(shape) is Normal(0.5, 1.5^2)
        before data.

    Examples
    --------
    >>> LogLogistic(2.0).distribution(np.log([3.0])).median().round(6)
    array([3.])
    """

    shape: float | None = None

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(11, (self.shape, 0.0, 0.0))

    def of_error(self, e: Array) -> tuple[Array, Array, Array]:
        """Logistic: e + 2 log sigmoid(-e)."""
        above = expit(e)
        return e + 2.0 * log_expit(-e), 1.0 - 2.0 * above, 2.0 * above * expit(-e)

    def tails_of_error(self, e: Array) -> tuple[Array, Array]:
        """Log sigmoid(e) and log sigmoid(-e)."""
        return log_expit(e), log_expit(-e)

    def distribution(self, eta: Array) -> Any:
        """Log-logistic of this shape and the median exp(eta)."""
        return stats.fisk(self.known, scale=as_scale(eta))


@dataclass(frozen=True)
class LogNormal(ParametricLikelihood, Lifetime):
    """A positive amount whose log is eta plus normal noise; its median is exp(eta).

    Parameters
    ----------
    scale : float, optional
        Standard deviation of the log. None: it is learned; log(scale) is Normal(-0.5, 1.5^2)
        before data.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = rng.lognormal(1.0 + 0.5 * X[:, 0], 0.5)
    >>> model = BayesianGeneralizedLinear(LogNormal()).fit(X, y)
    >>> model.coef_.round(1), model.likelihood_parameters_["scale"].mean().round(1)
    (array([0.5]), np.float64(0.5))
    """

    parameter: ClassVar[Parameter] = Parameter(
        "scale", stats.norm(-MEAN, SD).logpdf, (-ENDS[1], -ENDS[0]), power=2.0, exponent=-2.0
    )

    scale: float | None = None

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(12, (self.scale, 0.0, 0.0))

    @property
    def scaled(self) -> Any:
        """1 over the standard deviation of the log."""
        return 1.0 / self.known

    def of_error(self, e: Array) -> tuple[Array, Array, Array]:
        """Standard normal."""
        return -0.5 * e * e - LOG_ROOT_2PI, -e, np.ones_like(e)

    def tails_of_error(self, e: Array) -> tuple[Array, Array]:
        """Of a standard normal."""
        return log_ndtr(e), log_ndtr(-e)

    def distribution(self, eta: Array) -> Any:
        """Log-normal around the median exp(eta)."""
        return stats.lognorm(self.known, scale=as_scale(eta))
