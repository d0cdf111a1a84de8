"""Counts whose log rate is normally distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions import _count_integrals as integrals
from posterity.distributions import _count_table as table
from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.any_mixture import AnyCounts, AskedTogether
from posterity.distributions.normal import Normal
from posterity.distributions.row_distribution import CountDistribution

LARGEST_RATE = 1e15
# Half of it is the log of mean / median: a mean of 150 medians is made of counts in tails far
# beyond any that were ever observed, and is not a useful number, unless it is less than a count.
LARGEST_LOG_SD = 10.0


def is_vague(log_mean: Any, log_variance: Any) -> Any:
    """Return True where a mean of this logarithm is no useful number.

    Examples
    --------
    >>> is_vague(1.0, 11.0), is_vague(-1.0, 11.0), is_vague(1.0, 9.0)
    (True, False, False)
    """
    return (log_variance > LARGEST_LOG_SD) & (log_mean > 0.0)


def compute_mean(log_mean: FloatArray, log_variance: FloatArray) -> FloatArray:
    """Mean of rates whose logarithms are normal; infinite where it is no useful number.

    Examples
    --------
    >>> float(compute_mean(np.array(-0.5), np.array(1.0)))
    1.0
    """
    log_mean = log_mean + 0.5 * log_variance
    with np.errstate(over="ignore"):
        return np.where(is_vague(log_mean, log_variance), np.inf, np.exp(log_mean))


class LogNormalCounts(CountDistribution):
    """Base class of distributions of counts whose log rates are normal, one per row.

    Their variance given the rate is ``rate + dispersion * rate^2``.
    """

    __slots__ = ("dispersion", "log_mean", "log_variance")

    log_mean: FloatArray
    log_variance: FloatArray
    dispersion: FloatArray

    def _set(self, *operands: ArrayLike) -> None:
        self.log_mean, self.log_variance, self.dispersion = np.broadcast_arrays(
            *(as_floats(operand) for operand in operands)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        return self.log_mean.shape

    @staticmethod
    def stack(components: Sequence[LogNormalCounts]) -> LogNormalCounts:
        """Components (K) of the same n rows as one of (n, K)."""
        rates = [[one.log_mean, one.log_variance, one.dispersion] for one in components]
        # Counts without dispersion are like those with one of 0.
        most_general = max(components, key=lambda one: bool(one.dispersion.any()))
        return most_general.like(*np.stack(rates, axis=-1))

    def rate(self) -> Normal:
        """Distribution of the log rate, without the counts' own spread."""
        return Normal(self.log_mean, np.sqrt(self.log_variance))

    def like(self, log_mean: FloatArray, log_variance: FloatArray, dispersion: FloatArray) -> Self:
        """Return counts of the same kind with other log rates."""
        raise NotImplementedError

    # ---- what families say of themselves ----

    def _rows(self, index: Any) -> Self:
        return self.like(self.log_mean[index], self.log_variance[index], self.dispersion[index])

    def _flat(self) -> Any:
        return np.isinf(self.log_variance).astype(np.float64)

    def _mean(self) -> FloatArray:
        return compute_mean(self.log_mean, self.log_variance)

    def _var(self) -> FloatArray:
        mean = self._mean()
        with np.errstate(over="ignore", invalid="ignore"):
            between = np.expm1(self.log_variance)
            excess = between + self.dispersion * (1.0 + between)
            excess = np.where(np.isinf(between), np.inf, excess)
            return mean + np.where((excess == 0.0) | (mean == 0.0), 0.0, np.square(mean) * excess)

    def _logpdf(self, y: FloatArray) -> FloatArray:
        shape, (target, *rows) = self._with(y)
        flat = np.isinf(rows[1])
        count = (target >= 0.0) & (target == np.floor(target)) & np.isfinite(target)
        asked = count & ~flat
        result = np.where(flat, 0.0, -np.inf)
        result[asked] = integrals.log_mass(target[asked], *(row[asked] for row in rows))
        result[np.isnan(target)] = np.nan
        return result.reshape(shape)[()]

    def _cdf(self, y: FloatArray) -> FloatArray:
        shape, (target, *rows) = self._with(y)
        flat = np.isinf(rows[1])
        result = np.where(flat, 0.5, np.where(target < 0.0, 0.0, 1.0))
        asked = ~flat & (target >= 0.0) & np.isfinite(target)
        result[asked] = integrals.distribution_function(
            np.floor(target[asked]), *(row[asked] for row in rows)
        )
        result[np.isnan(target)] = np.nan
        return result.reshape(shape)[()]

    def _ppf(self, q: FloatArray) -> FloatArray:
        shape, (level, *rows) = self._with(q)
        flat = np.isinf(rows[1])
        with np.errstate(over="ignore"):
            rates = np.exp(rows[0])
        result = np.where(level < 0.5, -np.inf, np.where(level > 0.5, np.inf, rates))
        asked = ~flat & (level > 0.0) & (level < 1.0)
        result[asked] = table.quantile(level[asked], table.Rows(*(row[asked] for row in rows)))
        result[~flat & (level == 0.0)] = 0.0
        result[~((level >= 0.0) & (level <= 1.0))] = np.nan
        return result.reshape(shape)[()]

    def _crps(self, y: FloatArray) -> FloatArray:
        shape, (target, *rows) = self._with(y)
        result = np.full(target.shape, np.inf)
        asked = np.isfinite(target) & (rows[1] <= LARGEST_LOG_SD)
        some = table.Rows(*(row[asked] for row in rows))
        counts = np.maximum(target[asked], 0.0)
        below = np.floor(counts)
        scores = table.crps(below, some)
        if not np.array_equal(below, counts):  # the score is linear between counts
            scores += (counts - below) * (table.crps(below + 1.0, some) - scores)
        result[asked] = scores + np.maximum(-target[asked], 0.0)
        return result.reshape(shape)[()]

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        log_rate = self.log_mean + np.sqrt(self.log_variance) * rng.standard_normal(size)
        with np.errstate(over="ignore"):
            rate = np.exp(log_rate)
        if self.dispersion.any():
            shape = 1.0 / np.maximum(self.dispersion, 1e-300)
            some = rng.gamma(np.broadcast_to(np.minimum(shape, 1e300), size))
            rate = np.where(self.dispersion > 0.0, rate * (some / shape), rate)
        # Beyond this the count differs from its rate by less than its last digit.
        return np.where(
            rate > LARGEST_RATE, rate, rng.poisson(np.minimum(rate, LARGEST_RATE))
        ).astype(np.float64)

    def _with(self, values: FloatArray) -> tuple[tuple[int, ...], list[FloatArray]]:
        """Broadcast ``values`` against the rows: return the shape, and the flat operands (k,)."""
        together = np.broadcast_arrays(values, self.log_mean, self.log_variance, self.dispersion)
        return together[0].shape, [operand.reshape(-1) for operand in together]


class MixedLogNormalCounts(AskedTogether, AnyCounts):
    """Mixtures of these, one per row.

    Examples
    --------
    >>> from posterity.distributions import PoissonLogNormal
    >>> quiet, busy = PoissonLogNormal([0.0], [0.1]), PoissonLogNormal([3.0], [0.1])
    >>> MixedLogNormalCounts([quiet, busy], [0.5, 0.5]).interval(0.9)
    (array([0.]), array([32.]))
    """

    __slots__ = ()
