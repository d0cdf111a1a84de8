"""The noise around the regression line: its precision known, or learned along the way.

Symbols: n the sum of weights, d the number of directions with a flat prior, s^2 the residual sum
of squares (prior penalty included), Lambda_0 and Lambda_n the information of prior and posterior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from posterity.aliases import Array
from posterity.distributions import (
    Mixture,
    MultivariateMixture,
    MultivariateNormal,
    MultivariateT,
    Normal,
    StudentT,
)

Distribution = Normal | StudentT
# What posteriors answer with: those that average predict mixtures.
Predictive = Distribution | Mixture
JointOfOne = MultivariateNormal | MultivariateT
Joint = JointOfOne | MultivariateMixture
LOG_2PI = math.log(2.0 * math.pi)


class Noise(Protocol):
    """The interface of a model's noise; ``residual_df`` is n - d, the rows left for the noise."""

    @property
    def prior_unit(self) -> float:
        """The factor from a precision in the user's units to one relative to the noise's."""

    @property
    def improper(self) -> tuple[float, float] | None:
        """Shape and rate of an improper prior; None for a proper one."""

    @property
    def unit(self) -> Noise:
        """The same for a posterior that is to predict in units of the noise."""

    @property
    def parameters(self) -> tuple[float, float, float]:
        """Known precision (0: learned), and the shape and rate of the prior of one that is not."""

    def precision(self, residual_df: float, residual: float) -> float:
        """The noise precision, in 1 / target units squared."""

    def predictive(
        self, mean: Array, leverage: Array, residual_df: ArrayLike, residual: ArrayLike
    ) -> Distribution:
        """Distribution of new observations at rows with these means and leverages.

        The arrays are taken over: what is computed replaces what they held.
        """

    def posterior(
        self, mean: Array, root: Array, residual_df: float, residual: float, names: tuple[str, ...]
    ) -> JointOfOne:
        """Joint distribution of the coefficients, with ``root`` R."""

    def log_evidence(self, residual_df: float, residual: float, log_determinants: float) -> float:
        """log p(y), given log |Lambda_0| - log |Lambda_n|."""


@dataclass(frozen=True)
class KnownNoise:
    """Noise of a known precision: predictions are normal (Bishop 2006, section 3.3).

    Examples
    --------
    >>> import numpy as np
    >>> KnownNoise(4.0).predictive(np.array([1.0]), np.array([3.0]), 10.0, 0.0).std()
    array([1.])
    """

    improper: ClassVar[None] = None  # the prior of known noise is proper

    known_precision: float

    def __post_init__(self) -> None:
        given: Any = self.known_precision
        if isinstance(given, str) or not 0.0 < given < math.inf:
            raise ValueError(
                f"noise_precision is {given!r}: it must be positive and finite, or None to learn it"
            )

    @property
    def prior_unit(self) -> float:
        """The prior is stated for the coefficients themselves (Bishop's alpha)."""
        return 1.0 / self.known_precision

    @property
    def unit(self) -> KnownNoise:
        """The noise's precision in units of its own: 1."""
        return KnownNoise(1.0)

    @property
    def parameters(self) -> tuple[float, float, float]:
        """The precision; no shape and rate."""
        return self.known_precision, 0.0, 0.0

    def precision(self, residual_df: float, residual: float) -> float:
        """The precision that was given."""
        return self.known_precision

    def predictive(
        self, mean: Array, leverage: Array, residual_df: ArrayLike, residual: ArrayLike
    ) -> Normal:
        """Normal(mean, (1 + h) / precision) (Bishop 2006, eq. 3.58-3.59)."""
        leverage += 1.0
        leverage /= self.known_precision
        return Normal(mean, np.sqrt(leverage, out=leverage))

    def posterior(
        self, mean: Array, root: Array, residual_df: float, residual: float, names: tuple[str, ...]
    ) -> MultivariateNormal:
        """Normal(mean, (precision R'R)^-1) (Bishop 2006, eq. 3.49)."""
        return MultivariateNormal(mean, root, self.known_precision**-0.5, names=names)

    def log_evidence(self, residual_df: float, residual: float, log_determinants: float) -> float:
        """Bishop 2006, eq. 3.86, with the density of a flat direction taken as 1:

        (n - d)/2 log(precision / 2 pi) + (log|Lambda_0| - log|Lambda_n|)/2 - precision s^2 / 2.
        """
        log_precision = math.log(self.known_precision)
        return 0.5 * (
            residual_df * (log_precision - LOG_2PI)
            + log_determinants
            - self.known_precision * residual
        )


@dataclass(frozen=True)
class LearnedNoise:
    """Noise whose precision is learned: Gamma(shape, rate) before any data.

    Jointly with the coefficients this is the normal-inverse-gamma family; predictions are
    Student-t with 2 shape_n degrees of freedom (Gelman et al. 2013, section 14.2). Shape and rate
    0, the default, is the scale-free prior p(sigma^2) = 1/sigma^2 (Jeffreys), which with flat
    coefficients gives ordinary least squares with n - p degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> LearnedNoise().predictive(np.array([1.0]), np.array([0.0]), 5.0, 20.0)
    StudentT(df=5, loc=[1.], scale=[2.])
    """

    # The prior is stated relative to the noise: Normal(m, sigma^2 / precision).
    prior_unit: ClassVar[float] = 1.0

    shape: float = 0.0
    rate: float = 0.0

    def __post_init__(self) -> None:
        if not (0.0 <= self.shape < math.inf and 0.0 <= self.rate < math.inf):
            raise ValueError(
                f"noise_prior is ({self.shape}, {self.rate}): shape and rate must be finite and "
                "not negative"
            )

    @property
    def improper(self) -> tuple[float, float] | None:
        """Shape and rate, where they are no proper prior."""
        return None if self.shape > 0.0 and self.rate > 0.0 else (self.shape, self.rate)

    @property
    def unit(self) -> UnitNoise:
        """The same as a unit, which is learned elsewhere."""
        return UnitNoise(self.shape, self.rate)

    @property
    def parameters(self) -> tuple[float, float, float]:
        """(0, shape, rate): no known precision."""
        return 0.0, self.shape, self.rate

    def precision(self, residual_df: float, residual: float) -> float:
        """Posterior mean of the precision, shape_n / rate_n; NaN before there is one."""
        shape, rate = self._compute_parameters(residual_df, residual)
        if shape <= 0.0:
            return math.nan
        return math.inf if rate == 0.0 else shape / rate

    def predictive(
        self, mean: Array, leverage: Array, residual_df: ArrayLike, residual: ArrayLike
    ) -> StudentT:
        """t with 2 shape_n degrees of freedom, scale^2 = (rate_n / shape_n)(1 + h)."""
        given: tuple[Any, Any] = residual_df, residual
        if isinstance(given[0], float) and isinstance(given[1], float):
            known, rate = given[0] + 2.0 * self.shape, given[1] + 2.0 * self.rate
            if known > 0.0 and rate > 0.0:  # nothing is 0 / 0, and no array is made of two numbers
                leverage += 1.0
                leverage *= rate
                leverage /= known
                return StudentT(known, mean, np.sqrt(leverage, out=leverage))
        # 2 shape_n; not proper yet: 0 degrees of freedom and infinite scale.
        df = np.asarray(residual_df)
        df += 2.0 * self.shape
        df = np.maximum(df, 0.0, out=df if df.ndim else None)
        variance = np.asarray(residual)
        variance += 2.0 * self.rate
        leverage += 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            leverage *= variance
            leverage /= df
            scale = np.sqrt(leverage, out=leverage)
        # 0 * inf, 0 / 0: without noise so far, an unknown direction is still unknown.
        scale[np.isnan(scale)] = math.inf
        return StudentT(df, mean, scale)

    def posterior(
        self, mean: Array, root: Array, residual_df: float, residual: float, names: tuple[str, ...]
    ) -> MultivariateT:
        """t with 2 shape_n degrees of freedom and scale^2 (R'R)^-1 rate_n / shape_n."""
        shape, rate = self._compute_parameters(residual_df, residual)
        scale = math.sqrt(rate / shape) if shape > 0.0 else math.inf
        return MultivariateT(2.0 * shape, mean, root, scale, names=names)

    def log_evidence(self, residual_df: float, residual: float, log_determinants: float) -> float:
        """Gelman et al. 2013, section 14.2, integrated; flat directions have density 1:

        -(n - d)/2 log 2 pi + (log|Lambda_0| - log|Lambda_n|)/2
        + shape log rate - shape_n log rate_n + log Gamma(shape_n) - log Gamma(shape).
        An improper prior leaves out its own constant; before the posterior is proper the value is
        0, the evidence of nothing.
        """
        shape, rate = self._compute_parameters(residual_df, residual)
        if shape <= 0.0:
            return 0.0
        value = 0.5 * (log_determinants - residual_df * LOG_2PI) + float(gammaln(shape))
        value += math.inf if rate == 0.0 else -shape * math.log(rate)
        if self.shape > 0.0 and self.rate > 0.0:
            value += self.shape * math.log(self.rate) - float(gammaln(self.shape))
        return value

    def _compute_parameters(self, residual_df: float, residual: float) -> tuple[float, float]:
        """shape_n = shape + (n - d)/2 and rate_n = rate + s^2/2."""
        return self.shape + 0.5 * residual_df, self.rate + 0.5 * residual


@dataclass(frozen=True)
class UnitNoise(LearnedNoise):
    """Noise that is learned elsewhere: all that is predicted is in units of its sd.

    The evidence of data is as for :class:`LearnedNoise`: that does not ask for a unit.

    Examples
    --------
    >>> import numpy as np
    >>> UnitNoise().predictive(np.array([1.0]), np.array([3.0]), 5.0, 20.0).std()
    array([2.])
    """

    def predictive(  # type: ignore[override]
        self, mean: Array, leverage: Array, residual_df: ArrayLike, residual: ArrayLike
    ) -> Normal:
        """Normal(mean, 1 + h)."""
        leverage += 1.0
        return Normal(mean, np.sqrt(leverage, out=leverage))

    def posterior(  # type: ignore[override]
        self, mean: Array, root: Array, residual_df: float, residual: float, names: tuple[str, ...]
    ) -> MultivariateNormal:
        """Normal(mean, (R'R)^-1)."""
        return MultivariateNormal(mean, root, 1.0, names=names)
