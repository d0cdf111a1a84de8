"""The likelihood of sums of payments, of which there may be none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.special import gammainc, log_wright_bessel

from posterity.aliases import Array
from posterity.distributions.known_by_cdf import solved_quantile
from posterity.kernel.values import read_scalar
from posterity.likelihoods.amounts import PowerOfMean
from posterity.likelihoods.likelihood import Kernel, named_row
from posterity.likelihoods.parameter import LogNormalParameter, Parameter
from posterity.likelihoods.positive import (
    as_scale,
)

LEAST_POWER, MOST_POWER = 1.02, 1.99
# Mean and standard deviation of the log of the power before data.
POWER = 0.4, 0.15
# With a smaller squared coefficient of variation the expansion has more digits than the series.
LEAST_SPREAD = 0.005
# A function of many values is a spline of so many knots in a unit of its log, if these are few.
KNOTS, FEWEST_KNOTS, LEAST_SHARE = 64, 8, 0.5
# With more payments on average their sum is nearly gamma; beyond so many standard deviations of
# their number, and a few, there are none, nor is there a sum beyond so many of its own.
MOST_PAYMENTS, REACH, MORE, FURTHEST = 400.0, 7.5, 8.0, 40.0


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
        square = np.square(mean[many])
        below[many] = gammainc(
            square / variance[many], np.maximum(y[many], 0.0) * mean[many] / variance[many]
        )
        some = np.flatnonzero((y > 0.0) & ~many)
        rate, shape, size = rate.ravel()[some], shape.ravel()[some], (y / scale).ravel()[some]
        sums = below.ravel()[some]
        weight, spread = sums + 0.0, REACH * np.sqrt(rate)
        first, last = rate - spread, rate + spread + MORE
        for number in range(1, int(np.max(last, initial=0.0)) + 1):
            weight *= rate / number
            asked = np.flatnonzero((number > first) & (number <= last))
            sums[asked] += weight[asked] * gammainc(number * shape[asked], size[asked])
        np.put(below, some, sums)
        return np.where(y < 0.0, 0.0, np.minimum(below, 1.0))

    def sf(self, y: ArrayLike) -> Array:
        """Probability of more than y."""
        y = np.asarray(y)
        return np.where(y == 0.0, -np.expm1(-self.rate), 1.0 - self.cdf(y))

    def logcdf(self, y: ArrayLike) -> Array:
        """Log of the probability of at most y."""
        return np.log(self.cdf(y))

    def logsf(self, y: ArrayLike) -> Array:
        """Log of the probability of more."""
        return np.log(self.sf(y))

    def isf(self, q: ArrayLike) -> Array:
        """Quantiles from above."""
        return self.ppf(1.0 - np.asarray(q))

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
