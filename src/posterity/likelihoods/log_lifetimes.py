"""Likelihoods of lifetimes whose logs are logistic or normal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from scipy.special import expit, log_expit, log_ndtr

from posterity.aliases import Array
from posterity.likelihoods.classes import LOG_ROOT_2PI
from posterity.likelihoods.frozen import freeze
from posterity.likelihoods.lifetimes import ENDS, MEAN, SD, Lifetime, ShapedLifetime
from posterity.likelihoods.likelihood import (
    Kernel,
    ParametricLikelihood,
)
from posterity.likelihoods.parameter import Parameter
from posterity.likelihoods.positive import (
    as_scale,
)


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
        return freeze(log_logistic, self.known, scale=as_scale(eta))


class HeavyLogLogistic(type(stats.fisk)):  # type: ignore[misc]
    """SciPy's, whose mean and variance are infinite where SciPy says that they are no numbers."""

    def _stats(self, shape: Array) -> tuple[Array, Array, Array, Array]:
        mean, variance, *others = super()._stats(shape)
        with_mean, with_variance = shape > 1.0, shape > 2.0
        return np.where(with_mean, mean, np.inf), np.where(with_variance, variance, np.inf), *others


log_logistic = HeavyLogLogistic(a=0.0, name="log_logistic")


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
        return freeze(stats.lognorm, self.known, scale=as_scale(eta))
