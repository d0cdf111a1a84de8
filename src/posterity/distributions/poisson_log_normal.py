"""Counts whose log rate is not quite known."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions import _poisson_lognormal as integrals
from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.normal import Normal
from posterity.distributions.row_distribution import RowDistribution

# At most so many counts are looked at in a score that is a sum over all of them.
MOST_COUNTS = 512
# Counts that are further out hold less probability than this.
BEYOND = 1e-9
LARGEST_RATE = 1e15
# Half of it is the log of mean / median: a mean beyond that is made of counts in tails far beyond
# any that were ever seen, and says nothing.
WIDEST = 40.0


class PoissonLogNormal(RowDistribution):
    """Poisson counts whose log rates are normal, one per row: predictions of how many.

    ``y | eta ~ Poisson(exp(eta))`` with ``eta ~ Normal(log_mean, log_variance)`` (Aitchison and Ho
    1989, "The multivariate Poisson-log normal distribution"). Its variance is
    ``mean + mean^2 (exp(log_variance) - 1)``: more than a Poisson's, for the rate is uncertain.

    Parameters
    ----------
    log_mean : array_like
        Mean of the log rate, (n,), exposure included.
    log_variance : array_like
        Variance of the log rate, (n,), >= 0. Infinite: nothing is known yet.

    Notes
    -----
    Where ``log_variance`` is beyond 40 the mean is 5e8 medians and more, which says that nothing is
    known yet: then it is infinite. Probabilities are integrals over the rate, worked out to about
    ten digits. ``pmf`` and ``logpmf`` are ``pdf`` and ``logpdf``; a ``y`` that is no count has
    probability 0.

    Examples
    --------
    >>> told = PoissonLogNormal([0.0, 3.0], [0.0, 0.1])
    >>> told.mean().round(3), told.var().round(3)
    (array([ 1.   , 21.115]), array([ 1.   , 68.007]))
    >>> told.pmf([0, 20]).round(4)
    array([0.3679, 0.0513])
    >>> low, high = told.interval(0.9)
    >>> low, high
    (array([ 0., 10.]), array([ 3., 36.]))
    """

    __slots__ = ("log_mean", "log_variance")

    def __init__(self, log_mean: ArrayLike, log_variance: ArrayLike) -> None:
        self.log_mean, self.log_variance = np.broadcast_arrays(
            as_floats(log_mean), as_floats(log_variance)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        return self.log_mean.shape

    def pmf(self, y: ArrayLike) -> FloatArray:
        """Probability of the count y, broadcast against the rows."""
        return self.pdf(y)

    def logpmf(self, y: ArrayLike) -> FloatArray:
        """Log probability of the count y, broadcast against the rows."""
        return self.logpdf(y)

    def rate(self) -> Normal:
        """Distribution of the log rate, without the counts' own spread."""
        return Normal(self.log_mean, np.sqrt(self.log_variance))

    def __repr__(self) -> str:
        return f"PoissonLogNormal(log_mean={self.log_mean}, log_variance={self.log_variance})"

    # ---- what families say of themselves ----

    def _rows(self, index: Any) -> Self:
        return type(self)(self.log_mean[index], self.log_variance[index])

    def _flat(self) -> Any:
        return np.isinf(self.log_variance).astype(np.float64)

    def _mean(self) -> FloatArray:
        half = np.where(self.log_variance <= WIDEST, 0.5 * self.log_variance, np.inf)
        with np.errstate(over="ignore"):
            return np.exp(self.log_mean + half)

    def _median(self) -> FloatArray:
        return self._ppf(as_floats(0.5))

    def _var(self) -> FloatArray:
        mean = self._mean()
        with np.errstate(over="ignore", invalid="ignore"):
            spread = np.square(mean) * np.expm1(self.log_variance)
        return mean + np.where(self.log_variance == 0.0, 0.0, spread)

    def _logpdf(self, y: FloatArray) -> FloatArray:
        shape, (target, mean, variance) = _aligned(y, self.log_mean, self.log_variance)
        flat = np.isinf(variance)
        count = (target >= 0.0) & (target == np.floor(target)) & np.isfinite(target)
        asked = count & ~flat
        result = np.where(flat, 0.0, -np.inf)
        result[asked] = integrals.log_mass(target[asked], mean[asked], variance[asked])
        result[np.isnan(target)] = np.nan
        return result.reshape(shape)[()]

    def _cdf(self, y: FloatArray) -> FloatArray:
        shape, (target, mean, variance) = _aligned(y, self.log_mean, self.log_variance)
        flat = np.isinf(variance)
        result = np.where(flat, 0.5, np.where(target < 0.0, 0.0, 1.0))
        asked = ~flat & (target >= 0.0) & np.isfinite(target)
        result[asked] = integrals.distribution_function(
            np.floor(target[asked]), mean[asked], variance[asked]
        )
        result[np.isnan(target)] = np.nan
        return result.reshape(shape)[()]

    def _sf(self, y: FloatArray) -> FloatArray:
        return 1.0 - self._cdf(y)

    def _ppf(self, q: FloatArray) -> FloatArray:
        shape, (level, mean, variance) = _aligned(q, self.log_mean, self.log_variance)
        flat = np.isinf(variance)
        result = np.where(level < 0.5, -np.inf, np.where(level > 0.5, np.inf, np.exp(mean)))
        asked = ~flat & (level > 0.0) & (level < 1.0)
        result[asked] = _quantile(level[asked], mean[asked], variance[asked])
        result[~flat & (level == 0.0)] = 0.0
        result[~((level >= 0.0) & (level <= 1.0))] = np.nan
        return result.reshape(shape)[()]

    def _interval(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._ppf(0.5 - 0.5 * levels), self._ppf(0.5 + 0.5 * levels)

    def _crps(self, y: FloatArray) -> FloatArray:
        shape, (target, mean, variance) = _aligned(y, self.log_mean, self.log_variance)
        result = np.empty(target.shape)
        for i in range(len(target)):
            result[i] = _crps_of_one(target[i], mean[i], variance[i])
        return result.reshape(shape)[()]

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        log_rate = self.log_mean + np.sqrt(self.log_variance) * rng.standard_normal(size)
        with np.errstate(over="ignore"):
            rate = np.exp(log_rate)
        # Beyond this the count differs from its rate by less than its last digit.
        return np.where(
            rate > LARGEST_RATE, rate, rng.poisson(np.minimum(rate, LARGEST_RATE))
        ).astype(np.float64)


def _aligned(*operands: FloatArray) -> tuple[tuple[int, ...], list[FloatArray]]:
    together = np.broadcast_arrays(*operands)
    return together[0].shape, [operand.reshape(-1) for operand in together]


def _quantile(level: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """The least count whose distribution function reaches ``level``, by bisection."""
    low = np.full(level.shape, -1.0)
    high = np.exp(np.minimum(mean + np.sqrt(variance), 600.0)) + 1.0
    high = np.floor(high)
    for _ in range(1100):
        short = integrals.distribution_function(high, mean, variance) < level
        if not short.any():
            break
        low = np.where(short, high, low)
        high = np.where(short, 2.0 * high + 1.0, high)
    while True:
        # Of floats beyond 2^53 neighbours are further apart than one.
        middle = np.floor(0.5 * low + 0.5 * high)
        open_ = (middle > low) & (middle < high)
        if not open_.any():
            return high
        reached = np.zeros(level.shape, dtype=np.bool_)
        reached[open_] = (
            integrals.distribution_function(middle[open_], mean[open_], variance[open_])
            >= level[open_]
        )
        high = np.where(open_ & reached, middle, high)
        low = np.where(open_ & ~reached, middle, low)


def _crps_of_one(y: float, mean: float, variance: float) -> float:
    """Sum over counts of (cdf - [count >= y])^2; where there are too many, by the trapezoidal rule.

    Infinite for a flat row. Beyond the outermost count on the grid the distribution function is 0
    or 1 to ``BEYOND``, and only the way from there to y counts.
    """
    if not np.isfinite(variance) or not np.isfinite(y):
        return np.inf
    ends = _quantile(np.array([BEYOND, 1.0 - BEYOND]), np.full(2, mean), np.full(2, variance))
    first, last = max(float(ends[0]) - 1.0, 0.0), float(ends[1]) + 1.0
    if last - first < MOST_COUNTS:
        grid = np.arange(first, last + 1.0)
        width = np.ones(len(grid))
    else:
        grid = np.unique(
            np.concatenate(
                [
                    np.linspace(first, last, MOST_COUNTS // 2),
                    np.expm1(np.linspace(np.log1p(first), np.log1p(last), MOST_COUNTS // 2)),
                    [min(max(y, first), last)],
                ]
            ).round()
        )
        width = np.gradient(grid)
    reached = integrals.distribution_function(
        grid, np.full(grid.shape, mean), np.full(grid.shape, variance)
    )
    away = max(first - y, 0.0) + max(y - last - 1.0, 0.0)
    return float(np.sum(width * np.square(reached - (grid >= y)))) + away
