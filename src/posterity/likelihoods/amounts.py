"""Likelihoods of amounts of the mean exp(eta) whose variance is dispersion times a power of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.special import gammainc, gammaln, log_ndtr, log_wright_bessel

from posterity.distributions.any_mixture import solved_quantile
from posterity.kernel.values import read_scalar
from posterity.likelihoods.likelihood import Kernel, ParametricLikelihood, keep_positive, named_row
from posterity.likelihoods.parameter import LogNormalParameter, Parameter
from posterity.likelihoods.positive import (
    LARGEST_LOG,
    as_scale,
    bounded_exp,
    check_positive,
    log_near_mean,
)

Array = NDArray[np.float64]

# Mean and standard deviation of the log of the dispersion before data, and its ends.
MEAN, SD, ENDS = 0.0, 3.0, (np.log(1e-8), np.log(1e8))
LEAST_POWER, MOST_POWER = 1.02, 1.99
# Mean and standard deviation of the log of the power before data.
POWER = 0.4, 0.15
# Below this an inverse Gaussian amount is 0; and between which its log is looked for.
LEAST_AMOUNT, LOWEST_LOG = 1e-300, -690.0
# With a smaller squared coefficient of variation the expansion has more digits than the series.
LEAST_SPREAD = 0.005
# A function of many values is a spline of so many knots in a unit of its log, if these are few.
KNOTS, FEWEST_KNOTS, LEAST_SHARE = 64, 8, 0.5
# With more payments on average their sum is nearly gamma; beyond so many standard deviations of
# their number there are none, nor is there a sum beyond so many of its own.
MOST_PAYMENTS, REACH, FURTHEST = 400.0, 9.0, 40.0


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
    def kernel_code(self) -> Kernel:
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


@dataclass(frozen=True)
class InverseGaussian(PowerOfMean):
    """A positive amount of the mean exp(eta) and the variance dispersion exp(3 eta).

    More skewed than :class:`Gamma`: the time in which a drifting walk first reaches a place.

    Parameters
    ----------
    dispersion : float, optional
        Positive, in 1 / units of the target. None: it is learned; log(dispersion) is
        Normal(0, 3^2) before data.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = rng.wald(np.exp(1.0 + 0.5 * X[:, 0]), 4.0)
    >>> model = BayesianGeneralizedLinear(InverseGaussian()).fit(X, y)
    >>> model.coef_.round(1), model.likelihood_parameters_["dispersion"].mean().round(1)
    (array([0.5]), np.float64(0.2))
    """

    dispersion: float | None = None

    @property
    def power(self) -> float:
        """It is 3."""
        return 3.0

    def log_base_density(self, y: Array) -> Array:
        """-(log(2 pi dispersion y^3) + 1 / (dispersion y)) / 2."""
        return -0.5 * (np.log(2.0 * np.pi * self.known) + 3.0 * np.log(y) + 1.0 / (self.known * y))

    def distribution(self, eta: Array) -> Any:
        """Inverse Gaussian of this dispersion and the mean exp(eta)."""
        return InverseGaussians(as_scale(eta), 1.0 / self.known)

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are positive and finite."""
        check_positive(y, "InverseGaussian")


@dataclass(frozen=True)
class Tweedie(PowerOfMean):
    """An amount that may be 0: a Poisson number of payments, each of which is gamma.

    The mean is exp(eta) and the variance dispersion exp(power eta) (Jorgensen and de Souza 1994):
    claims of a year, rain of a day. The larger the power, the fewer and the larger payments are.

    Parameters
    ----------
    power : float or None, default 1.5
        Between 1 and 2. None: it is learned beside the dispersion; log(power) is
        Normal(0.4, 0.15^2) before data, within 1.02 and 1.99.
    dispersion : float, optional
        Positive. None: it is learned; log(dispersion) is Normal(0, 3^2) before data.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = Tweedie(1.5, 2.0).distribution(1.0 + 0.5 * X[:, 0]).rvs(random_state=rng)
    >>> model = BayesianGeneralizedLinear(Tweedie()).fit(X, y)
    >>> model.coef_.round(1), model.likelihood_parameters_["dispersion"].mean().round(0)
    (array([0.5]), np.float64(2.0))
    """

    power: Any = 1.5
    dispersion: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.power is None:
            return
        power = read_scalar(self.power, "power") if np.ndim(self.power) == 0 else self.power
        if not np.all((power >= LEAST_POWER) & (power <= MOST_POWER)):
            raise ValueError(
                f"power is {self.power}: it must lie between {LEAST_POWER} and {MOST_POWER}; for 1 "
                "use Poisson, for 2 Gamma"
            )

    @property
    def parameter(self) -> Parameter | None:  # type: ignore[override]
        """The dispersion; None where it is learned together with the power."""
        return PowerOfMean.parameter if self.power is not None else None

    @property
    def parameters(self) -> tuple[Parameter | LogNormalParameter, ...]:
        """Where the power is open, that, and the dispersion if it is."""
        if self.power is not None:
            return super().parameters
        one = () if self.dispersion is not None else (PowerOfMean.parameter.as_log_normal,)
        return (*one, LogNormalParameter("power", *POWER))

    @property
    def learns_parameter(self) -> bool:
        """True if the dispersion or the power is open."""
        return self.power is None or super().learns_parameter

    @property
    def kernel_code(self) -> Kernel | None:
        """None while the power is open, or each row has its own."""
        return super().kernel_code if np.isscalar(self.power) else None

    def with_parameter(self, value: Any) -> Self:
        """The same with this dispersion, or these values (d,) or (n, d) of what is open."""
        if self.power is not None:
            return super().with_parameter(value)
        dispersion = value[..., 0] if self.dispersion is None else self.dispersion
        power = np.clip(value[..., -1], LEAST_POWER, MOST_POWER)
        return replace(self, power=power, dispersion=dispersion)

    def _read_parameter(self) -> tuple[str, Any]:
        return "dispersion", self.dispersion

    def of_rows(self, rows: Any) -> Self:
        """The same with the parameters of these rows, where each row has its own."""
        known = super().of_rows(rows)
        return known if np.ndim(self.power) == 0 else replace(known, power=self.power[rows])

    def log_base_density(self, y: Array) -> Array:
        """The series of Dunn and Smyth (2005), Wright's function; of many payments its expansion.

        That is the saddle point's, with power (power - 3) / 24 dispersion y^(power - 2).
        """
        p, phi, seen = self.power, self.known, np.where(y > 0.0, y, 1.0)
        log, shape, spread = np.log(seen), (2.0 - p) / (p - 1.0), phi * seen ** (p - 2.0)
        rate = shape * (log - np.log(p - 1.0)) - np.log(2.0 - p) - (1.0 + shape) * np.log(phi)
        few = spread > LEAST_SPREAD
        series = _log_series(shape, np.where(few, rate, 0.0)) - log
        deviance = 1.0 / (spread * (1.0 - p) * (2.0 - p))
        far = p * (p - 3.0) / 24.0 * spread - deviance - 0.5 * (np.log(2.0 * np.pi * phi) + p * log)
        return np.where(y > 0.0, np.where(few, series, far), 0.0)

    def distribution(self, eta: Array) -> Any:
        """The sum of a Poisson number of payments, of the mean exp(eta)."""
        return SumOfPayments(self, np.asarray(eta))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are finite, and 0 or more."""
        named_row(y, (y >= 0.0) & (y < np.inf), "an amount under Tweedie must be 0 or more")


def _log_series(shape: Any, rate: Array) -> Array:
    """Log of Wright's Bessel function of exp(rate); of many values by a spline through some."""
    low, high = float(rate.min(initial=0.0)), float(rate.max(initial=0.0))
    n_knots = (high - low) * KNOTS
    if np.ndim(shape) == 0 and FEWEST_KNOTS < n_knots < LEAST_SHARE * rate.size:
        knots = np.linspace(low, high, int(n_knots))
        values = log_wright_bessel(shape, 0.0, np.exp(knots))
        if np.isfinite(values).all():
            return np.asarray(CubicSpline(knots, values)(rate))
    return np.asarray(log_wright_bessel(shape, 0.0, np.exp(rate)))


class InverseGaussians:
    """Inverse Gaussian distributions of a mean and a rate, 1 over the dispersion, as SciPy's.

    SciPy's own quantiles end the process where the mean is very large.
    """

    def __init__(self, mean: Array, rate: Any) -> None:
        self.centre, self.rate = np.broadcast_arrays(mean, rate)

    def mean(self) -> Array:
        """The mean."""
        return self.centre

    def var(self) -> Array:
        """The variance: mean^3 / rate."""
        return np.asarray(self.centre**3 / self.rate)

    def logpdf(self, y: ArrayLike) -> Array:
        """Log density."""
        y = np.asarray(y, dtype=np.float64)
        off = np.square(y / self.centre - 1.0) * self.rate / y
        return np.asarray(0.5 * (np.log(self.rate / (2.0 * np.pi)) - 3.0 * np.log(y) - off))

    def logcdf(self, y: ArrayLike) -> Array:
        """Log probability of at most y (Shuster 1968)."""
        return np.logaddexp(*self._parts(y, 1.0))

    def logsf(self, y: ArrayLike) -> Array:
        """Log probability of more than y."""
        first, second = self._parts(y, -1.0)
        return np.asarray(first + np.log(-np.expm1(np.minimum(second - first, 0.0))))

    def cdf(self, y: ArrayLike) -> Array:
        """Probability of at most y."""
        return np.minimum(np.exp(self.logcdf(y)), 1.0)

    def ppf(self, q: ArrayLike) -> Array:
        """Quantiles, by bisection of their logs."""
        q = np.broadcast_to(q, np.broadcast_shapes(np.shape(q), self.centre.shape))
        ends = np.full(q.shape, LOWEST_LOG), np.full(q.shape, LARGEST_LOG)
        log = solved_quantile(lambda at: self.cdf(np.exp(at)), q, *ends)
        return np.where(q == 0.0, 0.0, np.where(q == 1.0, np.inf, np.exp(log)))

    def rvs(self, size: Any = None, random_state: Any = None) -> Array:
        """Draws."""
        return np.asarray(np.random.default_rng(random_state).wald(self.centre, self.rate, size))

    def _parts(self, y: ArrayLike, sign: float) -> tuple[Array, Array]:
        """Logs of the two normal probabilities, whose sum or difference is that of a side."""
        y = np.maximum(y, LEAST_AMOUNT)
        root, share = np.sqrt(self.rate / y), y / self.centre
        first = log_ndtr(sign * root * (share - 1.0))
        return first, 2.0 * self.rate / self.centre + log_ndtr(-root * (share + 1.0))


class SumOfPayments:
    """Distributions of a Poisson number of gamma payments, as SciPy's frozen ones."""

    def __init__(self, likelihood: Tweedie, eta: Array) -> None:
        p, phi = likelihood.power, likelihood.known
        self.likelihood, self.eta, mean = likelihood, eta, as_scale(eta)
        self.average, self.variance = np.broadcast_arrays(mean, phi * mean**p)
        self.rate = mean ** (2.0 - p) / (phi * (2.0 - p))
        self.shape, self.scale = (2.0 - p) / (p - 1.0), phi * (p - 1.0) * mean ** (p - 1.0)

    def logpdf(self, y: ArrayLike) -> Array:
        """Log density; of 0 the log of its probability."""
        return self.likelihood.log_density(np.asarray(y, dtype=np.float64), self.eta)

    def mean(self) -> Array:
        """The mean exp(eta)."""
        return self.average

    def var(self) -> Array:
        """The variance."""
        return self.variance

    def cdf(self, y: ArrayLike) -> Array:
        """Sum over the number of payments of its probability times that of a gamma sum."""
        y, rate, scale, mean, variance, shape = np.broadcast_arrays(
            y, self.rate, self.scale, self.average, self.variance, self.shape
        )
        below, many = np.exp(-rate), rate > MOST_PAYMENTS
        most = np.where(many, 0.0, rate + REACH * np.sqrt(rate) + 20.0)
        for number in range(1, int(np.max(most, initial=0.0)) + 1):
            some = (number <= most) & (y > 0.0) & (number > rate - REACH * np.sqrt(rate))
            share = np.exp(number * np.log(rate[some]) - rate[some] - gammaln(number + 1.0))
            below[some] += share * gammainc(number * shape[some], y[some] / scale[some])
        square = np.square(mean[many])
        below[many] = gammainc(
            square / variance[many], np.maximum(y[many], 0.0) * mean[many] / variance[many]
        )
        return np.where(y < 0.0, 0.0, np.minimum(below, 1.0))

    def ppf(self, q: ArrayLike) -> Array:
        """Quantiles, by bisection; 0 up to its probability."""
        q = np.broadcast_to(q, np.broadcast_shapes(np.shape(q), self.average.shape))
        most = np.broadcast_to(self.average + FURTHEST * np.sqrt(self.variance), q.shape)
        found = solved_quantile(self.cdf, q, np.zeros(q.shape), most)
        return np.where(q <= np.exp(-self.rate), 0.0, found)

    def rvs(self, size: Any = None, random_state: Any = None) -> Array:
        """Draws: a number of payments, and a gamma sum of them."""
        rng = np.random.default_rng(random_state)
        number = rng.poisson(self.rate, size)
        return np.asarray(rng.gamma(self.shape * number, self.scale))
