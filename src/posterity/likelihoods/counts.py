"""Likelihoods of counts; eta is the log of the rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from scipy.special import betainc, expit, gammaln, ndtr, ndtri, pdtr, pdtrc

from posterity.aliases import Array
from posterity.distributions import NegativeBinomialLogNormal, PoissonLogNormal
from posterity.distributions.known_by_cdf import solved_quantile
from posterity.kernel import average_softplus, find_digammas
from posterity.likelihoods.frozen import freeze
from posterity.likelihoods.likelihood import (
    Kernel,
    Likelihood,
    ParametricLikelihood,
    keep_positive,
    named_row,
)
from posterity.likelihoods.parameter import Parameter
from posterity.likelihoods.positive import exp_up_to, log_both_tails, log_near_mean
from posterity.likelihoods.whole import look_up

# Beyond this exp overflows.
LARGEST_LOG = 700.0
# A negative binomial of a smaller size is 0; one of a larger size is normal to six digits, as a
# count of so large a rate is, where SciPy's functions have no digits, or end the process.
LEAST_SIZE, LARGEST_SIZE = 1e-100, 1e12
# Standard deviations from its mean beyond which no count is looked for.
FURTHEST = 40.0
# Beyond it not every whole number is a float.
MOST_COUNT = 2.0**53


def check_counts(y: Array) -> None:
    """Raise ``ValueError`` unless all are whole numbers from 0 to 2^53, naming the first row."""
    named_row(
        y,
        (y >= 0.0) & (y <= MOST_COUNT) & (y == np.floor(y)),
        "a count must be a whole number, 0 or more, and at most 2^53: of an average give the sum "
        "of its events, of a rate the rate times its exposure, with exposure= (offset= takes its "
        "log) where the model has it; for other amounts use another likelihood",
    )


def _rate(eta: Array) -> Array:
    return exp_up_to(LARGEST_LOG, eta)


class Counts(Likelihood):
    """Whole numbers whose rate is exp(eta)."""

    without_maximum: ClassVar[str] = "counts that are all 0, or so in some level"

    @property
    def ratio(self) -> str:
        """Eta is the log of the rate."""
        return "rate_ratio"

    def start(self, y: Array) -> Array:
        """Return starting values: the count's log rate, shrunk to the mean (as GLMs are fitted)."""
        return log_near_mean(y, 0.1)

    def mean(self, eta: Array) -> Array:
        """The rate exp(eta)."""
        return _rate(eta)

    def link_function(self, mean: Array) -> Array:
        """The log of the rate."""
        return np.asarray(np.log(mean))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are whole numbers from 0 up."""
        check_counts(y)


@dataclass(frozen=True)
class Poisson(Counts):
    """A count of the rate exp(eta); exposure enters as an offset of eta, log(exposure).

    Examples
    --------
    >>> import numpy as np
    >>> gradient, curvature = Poisson().derivatives(np.array([3.0]), np.log([2.0]))
    >>> gradient.round(9), curvature.round(9)
    (array([1.]), array([2.]))
    """

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(3)

    def log_density(self, y: Array, eta: Array) -> Array:
        """y eta - exp(eta) - log y!."""
        return y * eta - _rate(eta) - gammaln(np.asarray(y) + 1.0)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """y - exp(eta) and exp(eta)."""
        rate = _rate(eta)
        return y - rate, rate

    def average(self, y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Averages of log density, slope and curvature: the rate's is exp(mean + variance / 2)."""
        rate = _rate(mean + 0.5 * variance)
        return y * mean - rate - gammaln(y + 1.0), y - rate, rate

    def log_tails(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """By the incomplete gamma function."""
        rate = _rate(eta)
        return log_both_tails(y, pdtr(y, rate), pdtrc(y, rate))

    def distribution(self, eta: Array) -> Any:
        """Poisson of the rate exp(eta)."""
        return freeze(poisson, _rate(eta))

    def predictive(self, mean: Array, variance: Array) -> PoissonLogNormal:
        """Return predictions of counts whose log rate is uncertain."""
        return PoissonLogNormal(mean, variance)


def _log_density_of_dispersion(t: Array) -> Array:
    """Exponential in the root of the dispersion, with mean 1: it falls from Poisson on."""
    return 0.5 * t - np.exp(0.5 * t) - np.log(2.0)


class QuadraticVariance(Counts):
    """Counts whose variance is rate + dispersion rate^2 (NB2)."""

    @property
    def dispersion(self) -> Any:
        """The dispersion, None where it is learned."""
        raise NotImplementedError

    @property
    def known(self) -> Any:
        """The dispersion."""
        return self.dispersion

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(4, (self.dispersion, 0.0, 0.0))

    def log_density(self, y: Array, eta: Array) -> Array:
        """Return the log density; with r = 1 / dispersion and e = eta - log r it is

        log Gamma(y + r) - log Gamma(r) - log y! + y log sigmoid(e) + r log sigmoid(-e).
        """
        return _negative_binomial_logpmf(y, np.asarray(eta), self.known)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """y - (y + r) sigmoid(e), and (y + r) sigmoid(e) sigmoid(-e)."""
        excess = np.asarray(eta) + np.log(self.known)
        total, share, rest = y + 1.0 / self.known, expit(excess), expit(-excess)
        return y * rest - share / self.known, total * share * rest

    def average(self, y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Averages of log density, slope and curvature, of those of the logistic of e."""
        r = 1.0 / self.known
        excess = mean + np.log(self.known)
        value, slope, bend = average_softplus(excess, variance)
        return (
            _log_choices(y, r) + y * excess - (y + r) * value,
            y - (y + r) * slope,
            (y + r) * bend,
        )

    def log_tails(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """By the incomplete beta function."""
        excess, r, n = np.asarray(eta) + np.log(self.known), 1.0 / self.known, np.floor(y) + 1.0
        up_to, above = betainc(r, n, expit(-excess)), betainc(n, r, expit(excess))
        return log_both_tails(y, up_to, above)

    def distribution(self, eta: Array) -> Any:
        """Negative binomial of the rate exp(eta)."""
        return freeze(negative_binomial, 1.0 / self.known, 1.0 / (1.0 + self.known * _rate(eta)))

    def predictive(self, mean: Array, variance: Array) -> NegativeBinomialLogNormal:
        """Return predictions of counts whose log rate is uncertain."""
        return NegativeBinomialLogNormal(mean, variance, self.known)


@dataclass(frozen=True)
class NegativeBinomial(ParametricLikelihood, QuadraticVariance):
    """A count of the rate exp(eta) that varies more: variance = rate + dispersion rate^2 (NB2).

    Parameters
    ----------
    dispersion : float, optional
        Positive; towards 0 this becomes :class:`Poisson`. None: it is learned; its root is
        exponential with mean 1 before data.

    Examples
    --------
    >>> import numpy as np
    >>> NegativeBinomial(0.5).predictive(np.log([2.0]), np.zeros(1)).var()
    array([4.])
    """

    # "Penalising model component complexity", Simpson et al. 2017.
    parameter: ClassVar[Parameter] = Parameter(
        "dispersion", _log_density_of_dispersion, (np.log(1e-5), np.log(100.0))
    )

    dispersion: float | None = None


@dataclass(frozen=True)
class Geometric(QuadraticVariance):
    """A number of failures before the first success, of the mean exp(eta).

    It is :class:`NegativeBinomial` of the dispersion 1.

    Examples
    --------
    >>> import numpy as np
    >>> Geometric().predictive(np.log([2.0]), np.zeros(1)).pmf([0]).round(6)
    array([0.333333])
    """

    @property
    def dispersion(self) -> float:
        """It is 1."""
        return 1.0


@dataclass(frozen=True)
class LinearNegativeBinomial(ParametricLikelihood, Counts):
    """A count of the rate exp(eta) whose variance is proportional to it (NB1).

    variance = (1 + excess) rate, whatever the rate is: as of events that come in clusters.

    Parameters
    ----------
    excess : float, optional
        Positive; towards 0 this becomes :class:`Poisson`. None: it is learned; its root is
        exponential with mean 1 before data.

    Examples
    --------
    >>> import numpy as np
    >>> LinearNegativeBinomial(0.5).distribution(np.log([2.0])).var()
    array([3.])
    """

    parameter: ClassVar[Parameter] = Parameter(
        "excess", _log_density_of_dispersion, (np.log(1e-5), np.log(1e4))
    )

    excess: float | None = None

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(15, (self.excess, 0.0, 0.0))

    def log_density(self, y: Array, eta: Array) -> Array:
        """With r = rate / excess: log Gamma(y + r) - log Gamma(r) - log y! + ..."""
        r, more = _rate(eta) / self.known, np.log1p(self.known)
        constant = gammaln(y + r) - gammaln(r) - look_up(lambda count: gammaln(count + 1.0), y)
        return constant + y * (np.log(self.known) - more) - r * more

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """r (psi(y + r) - psi(r) - log(1 + excess)), and its curvature."""
        r = np.maximum(_rate(eta) / self.known, LEAST_SIZE)
        with_y, without = find_digammas(y + r), find_digammas(r)
        slope = r * (with_y[0] - without[0] - np.log1p(self.known))
        usual = r * r * np.maximum(without[1] - with_y[1], 0.0)
        return slope, keep_positive(usual - slope, usual)

    def distribution(self, eta: Array) -> Any:
        """Negative binomial of the mean exp(eta)."""
        size = np.maximum(_rate(eta) / self.known, LEAST_SIZE)
        return freeze(negative_binomial, size, 1.0 / (1.0 + self.known))


class PoissonOfAnyRate(type(stats.poisson)):  # type: ignore[misc]
    """SciPy's, with quantiles of large rates, too."""

    def _ppf(self, q: Array, rate: Array) -> Array:
        large = rate > LARGEST_SIZE
        normal = np.rint(rate + np.sqrt(rate) * ndtri(q))
        return np.where(large, normal, super()._ppf(q, np.where(large, 1.0, rate)))


poisson = PoissonOfAnyRate(name="poisson")


class SearchedNegativeBinomial(type(stats.nbinom)):  # type: ignore[misc]
    """SciPy's, whose quantiles are searched for: its own may never end, or end the process."""

    def _cdf(self, x: Array, n: Array, p: Array) -> Array:
        return self._or_normal(super()._cdf, 1.0, x, n, p)

    def _sf(self, x: Array, n: Array, p: Array) -> Array:
        return self._or_normal(super()._sf, -1.0, x, n, p)

    @staticmethod
    def _or_normal(of: Any, side: float, x: Array, n: Array, p: Array) -> Array:
        large = n > LARGEST_SIZE
        normal = ndtr(side * (x * p - n * (1.0 - p)) / np.sqrt(n * (1.0 - p)))
        return np.where(large, normal, of(np.where(large, 0.0, x), np.where(large, 1.0, n), p))

    def _ppf(self, q: Array, size: Array, share: Array) -> Array:
        with np.errstate(over="ignore"):
            mean = size * (1.0 - share) / share
            most = mean + FURTHEST * (np.sqrt(mean / share) + 1.0 / share)
            most = np.minimum(most, np.exp(LARGEST_LOG))
        most = np.floor(most)
        return solved_quantile(lambda y: self.cdf(y, size, share), q, 0.0 * most, most, 1.0)

    def _isf(self, q: Array, size: Array, share: Array) -> Array:
        return self._ppf(1.0 - q, size, share)


negative_binomial = SearchedNegativeBinomial(name="negative_binomial")


def _negative_binomial_logpmf(y: Array, eta: Array, dispersion: float) -> Array:
    r = 1.0 / dispersion
    excess = eta + np.log(dispersion)
    log_larger = -np.log1p(np.exp(-np.abs(excess)))  # of both shares
    log_share, log_rest = (log_larger + np.minimum(one, 0.0) for one in (excess, -excess))
    return _log_choices(y, r) + y * log_share + r * log_rest


def _log_choices(y: Array, r: Any) -> Array:
    """log Gamma(y + r) - log Gamma(r) - log y!."""

    def find(count: Array) -> Array:
        return np.asarray(gammaln(count + r) - gammaln(r) - gammaln(count + 1.0))

    return look_up(find, y) if np.ndim(r) == 0 else find(np.asarray(y))
