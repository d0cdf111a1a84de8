"""The likelihood of targets that would not be there beyond some limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from posterity.aliases import Array
from posterity.likelihoods.likelihood import Kernel, named_row
from posterity.likelihoods.wrapped import Wrapped

# Levels of the quantiles that stand for a truncated distribution, and their shares.
LEVELS, SHARES = (
    0.5 * (part + shift)
    for part, shift in zip(np.polynomial.legendre.leggauss(64), (1.0, 0.0), strict=True)
)


@dataclass(frozen=True)
class Truncated(Wrapped):
    """A target of which nobody would know if it were below ``low`` or above ``high``.

    Claims above a deductible, incomes of those who pay taxes, numbers of visits of those who came:
    density f(y) / (F(high) - F(low)) (Cohen 1991). Both limits may be targets themselves. (Where
    the target is known to exist but not how large it is, it is :class:`Censored`.)

    Parameters
    ----------
    likelihood : Likelihood
        With a ``distribution`` that has ``logcdf`` and ``logsf``. What it leaves open is learned.
    low, high : float
        Infinite where there is no limit.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> from posterity.likelihoods import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> y = 1.0 + x[:, 0] + rng.normal(size=2000)
    >>> seen = y > 1.0
    >>> model = BayesianGeneralizedLinear(Truncated(Gaussian(1.0), low=1.0))
    >>> model.fit(x[seen], y[seen]).coef_.round(1)
    array([0.9])
    """

    without_maximum: ClassVar[str] = "targets that all lie at one of the limits"

    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise ValueError(f"low is {self.low}, and high is {self.high}: low must be less")

    @property
    def kernel_code(self) -> Kernel | None:
        """Counts of those who came are those behind a hurdle that all have taken."""
        only_zeros = 0.0 < self.low <= 1.0 and self.high == np.inf
        return self._add_zeros((3, 4), 64, -np.inf) if only_zeros else None

    def log_density(self, y: Array, eta: Array) -> Array:
        """Log density less the log of the probability between the limits."""
        with np.errstate(all="ignore"):
            between = self._log_probability(np.asarray(self.low), np.asarray(self.high), eta)
            density = self.likelihood.log_density(y, eta) - between
            return np.where((y >= self.low) & (y <= self.high), density, -np.inf)

    def log_tails(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """Logs of the probabilities between the lower limit and y, and from there to the upper."""
        with np.errstate(all="ignore"):
            low, high = np.asarray(self.low), np.asarray(self.high)
            whole, y = self._log_probability(low, high, eta), np.clip(y, low, high)
            below = self._log_probability(low, y, eta)
            above = self._log_probability(np.nextafter(y, np.inf), high, eta)
            return below - whole, np.where(y < high, above - whole, -np.inf)

    def distribution(self, eta: Array) -> Any:
        """That of the likelihood, between the limits."""
        given = self.likelihood.distribution(eta)
        kind = CountsBetween if hasattr(given, "logpmf") else Between
        return kind(given, self.low, self.high)

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` for targets beyond the limits, or unknown to the likelihood."""
        within = (y >= self.low) & (y <= self.high)
        named_row(y, within, f"targets are truncated to {self.low:g} to {self.high:g}")
        self.likelihood.check_targets(y)


# Of a smaller share of a distribution that is left between the limits there are no digits.
LEAST_SHARE = 1e-13


class Between:
    """A distribution between two limits, as SciPy's are asked."""

    def __init__(self, given: Any, low: float, high: float) -> None:
        self.given, self.low, self.high = given, low, high
        self.below = given.cdf(np.nextafter(low, -np.inf))
        share = given.cdf(high) - self.below
        self.share = np.maximum(share, LEAST_SHARE)
        # All is then at the limit that is nearer to where it would be.
        self.lost, self.limit = share < LEAST_SHARE, np.where(self.below > 0.5, low, high)

    def cdf(self, y: Array) -> Array:
        """Probability of at most y."""
        below = np.clip((self.given.cdf(y) - self.below) / self.share, 0.0, 1.0)
        return np.where(self.lost, y >= self.limit, below)

    def ppf(self, q: Array) -> Array:
        """Quantile."""
        found = np.clip(self.given.ppf(self.below + q * self.share), self.low, self.high)
        return np.where(self.lost, self.limit, found)

    def sf(self, y: Array) -> Array:
        """Probability of more than y."""
        return 1.0 - self.cdf(y)

    def isf(self, q: Array) -> Array:
        """Quantile from above."""
        return self.ppf(1.0 - q)

    def mean(self) -> Array:
        """Mean, by quantiles."""
        return self._moment(1)

    def var(self) -> Array:
        """Variance, by quantiles."""
        return np.maximum(self._moment(2) - np.square(self._moment(1)), 0.0)

    def rvs(self, size: Any, random_state: np.random.Generator) -> Array:
        """Draws."""
        return self.ppf(random_state.random(size))

    def _moment(self, power: int) -> Array:
        return np.where(self.lost, self.limit**power, self._average(power))

    def _average(self, power: int) -> Array:
        ahead = (-1, *(1,) * np.ndim(self.share))
        return np.tensordot(SHARES, self.ppf(LEVELS.reshape(ahead)) ** power, axes=1)


class CountsBetween(Between):
    """The same of whole numbers."""

    def logpmf(self, y: Array) -> Array:
        """Log probability of y."""
        inside = (y >= self.low) & (y <= self.high)
        density = np.where(inside, self.given.logpmf(y) - np.log(self.share), -np.inf)
        return np.where(self.lost, np.where(y == self.limit, 0.0, -np.inf), density)

    def _average(self, power: int) -> Array:
        """By sums over the counts between the limits, or below the lower one."""
        first, last = max(self.low, 0.0), self.high
        moment = self.given.mean() if power == 1 else self.given.var() + self.given.mean() ** 2
        some = np.arange(first, last + 1.0) if np.isfinite(last) else np.arange(first)
        some = some.reshape(-1, *(1,) * np.ndim(self.share))
        part = np.sum(some**power * self.given.pmf(some), axis=0)
        return np.asarray((part if np.isfinite(last) else moment - part) / self.share)
