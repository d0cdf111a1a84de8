"""Predictions of counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
LOG_WEIGHTS = np.log(WEIGHTS / WEIGHTS.sum())


@dataclass(frozen=True)
class CountFamily:
    """Counts given their rates: functions of (count, rate), and variance = rate + excess rate^2."""

    logpmf: Callable[[Array, Array], Array]
    cdf: Callable[[Array, Array], Array]
    draw: Callable[[np.random.Generator, Array], Array]
    excess: float


@dataclass(frozen=True, eq=False)
class Counts:
    """A count in each row, whose log rate is eta ~ Normal(eta_mean, eta_variance).

    Probabilities are Gauss-Hermite averages over eta; mean and variance are exact.

    Parameters
    ----------
    family
        Counts given their rates.
    eta_mean, eta_variance
        (n,) of the log rates.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.likelihoods import NegativeBinomial
    >>> counts = NegativeBinomial(0.1).predictive(np.log([2.0]), np.array([0.25]))
    >>> counts.mean().round(4), counts.pmf([0]).round(4), counts.interval(0.9)
    (array([2.2663]), array([0.1857]), (array([0.]), array([6.])))
    """

    family: CountFamily
    eta_mean: Array
    eta_variance: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        return self.eta_mean.shape

    def __len__(self) -> int:
        return len(self.eta_mean)

    def __getitem__(self, index: Any) -> Counts:
        return Counts(self.family, self.eta_mean[index], self.eta_variance[index])

    @property
    def rates(self) -> Array:
        """(nodes, n) rates of the average."""
        with np.errstate(over="ignore"):
            eta = self.eta_mean + NODES[:, None] * np.sqrt(self.eta_variance)
            return np.exp(np.minimum(eta, 700.0))

    def mean(self) -> Array:
        """Expected count, e^(m + v / 2)."""
        with np.errstate(over="ignore"):
            return np.exp(self.eta_mean + 0.5 * self.eta_variance)

    def var(self) -> Array:
        """Variance: of the rates, and of the counts around them."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = self.mean()
            spread = np.expm1(self.eta_variance)
            return mean + mean * mean * (spread + self.family.excess * (1.0 + spread))

    def std(self) -> Array:
        """Standard deviation."""
        return np.sqrt(self.var())

    def logpmf(self, y: ArrayLike) -> Array:
        """Log probability of counts; -inf for what is no count."""
        y = np.asarray(y, dtype=np.float64)
        count = (y >= 0.0) & (y == np.floor(y)) & np.isfinite(y)
        terms = self.family.logpmf(np.where(count, y, 0.0), self.rates)
        value = logsumexp(terms + LOG_WEIGHTS[:, None], axis=0)
        return np.where(count, value, -math.inf)

    # What is not told apart between counts and densities when models are compared.
    logpdf = logpmf

    def pmf(self, y: ArrayLike) -> Array:
        """Probability of counts."""
        return np.exp(self.logpmf(y))

    def cdf(self, y: ArrayLike) -> Array:
        """Probability of at most ``y``."""
        y = np.floor(np.asarray(y, dtype=np.float64))
        terms = self.family.cdf(np.maximum(y, 0.0), self.rates)
        return np.where(y < 0.0, 0.0, np.tensordot(np.exp(LOG_WEIGHTS), terms, axes=1))

    def ppf(self, q: ArrayLike) -> Array:
        """Least count whose cdf is at least q: by bisection; NaN where q is not in [0, 1]."""
        q = np.broadcast_to(np.asarray(q, dtype=np.float64), self.shape)
        low, high = np.full(self.shape, -1.0), np.ones(self.shape)
        wanted = np.where((q >= 0.0) & (q < 1.0), q, 0.0)
        while (short := (self.cdf(high) < wanted) & (high < 1e300)).any():
            low, high = np.where(short, high, low), np.where(short, 4.0 * high, high)
        for _ in range(200):
            middle = np.floor(0.5 * (low + high))
            if not ((middle > low) & (middle < high)).any():
                break
            enough = self.cdf(middle) >= wanted
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        value = np.where(q == 1.0, math.inf, np.where(wanted <= 0.0, 0.0, high))
        return np.where((q >= 0.0) & (q <= 1.0), value, math.nan)

    def interval(self, level: float) -> tuple[Array, Array]:
        """Central interval of the count."""
        return self.ppf(0.5 - 0.5 * level), self.ppf(0.5 + 0.5 * level)

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Array:
        """Independent draws; ``size`` ends in the shape of the rows."""
        rng = np.random.default_rng(random_state)
        eta = rng.normal(self.eta_mean, np.sqrt(self.eta_variance), size)
        return self.family.draw(rng, np.exp(eta)).astype(np.float64)
