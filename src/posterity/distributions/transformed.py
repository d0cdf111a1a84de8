"""Distributions of increasing functions of a variable, one per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from posterity.distributions._rows import FloatArray
from posterity.distributions.row_distribution import RowDistribution

# Standard normal nodes of the trapezoidal rule, whose error vanishes faster than any power.
NODES = np.linspace(-7.0, 7.0, 57)
NODE_SHARES = np.exp(-0.5 * np.square(NODES)) / np.exp(-0.5 * np.square(NODES)).sum()
# Relative step for the slope of the function by a finite difference.
STEP = 1e-5


class Transformed(RowDistribution):
    """Distributions of ``forward(x)``, where x has the distribution ``base``, one per row.

    Probabilities and quantiles are those of ``base``. Mean and variance are sums over 57 of its
    quantiles, chosen as for a normal distribution; the CRPS is an integral over quantiles.

    Parameters
    ----------
    base : distribution over n rows
        Of Normal, StudentT and their mixtures.
    forward, backward : callable
        A rising function of arrays, and its inverse; both broadcast.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> rate = Transformed(Normal([0.0, 1.0], [0.0, 0.5]), np.exp, np.log)
    >>> rate.mean().round(4), rate.interval(0.9)[1].round(4)
    (array([1.    , 3.0802]), array([1.    , 6.1869]))
    """

    __slots__ = ("backward", "base", "forward")

    def __init__(
        self,
        base: RowDistribution,
        forward: Callable[[FloatArray], FloatArray],
        backward: Callable[[FloatArray], FloatArray],
    ) -> None:
        self.base, self.forward, self.backward = base, forward, backward

    def __repr__(self) -> str:
        return f"Transformed({self.base!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        return self.base.shape

    # ---- what families say of themselves ----

    def _rows(self, index: Any) -> Self:
        return type(self)(self.base[index], self.forward, self.backward)

    def _flat(self) -> Any:
        return self.base.is_flat().astype(np.float64)

    def _mean(self) -> FloatArray:
        return np.tensordot(NODE_SHARES, self._compute_quantiles(), 1)

    def _median(self) -> FloatArray:
        return self._has_reached(self.base.median())

    def _var(self) -> FloatArray:
        values = self._compute_quantiles()
        with np.errstate(over="ignore", invalid="ignore"):
            off = values - np.tensordot(NODE_SHARES, values, 1)
            spread = np.tensordot(NODE_SHARES, np.square(off), 1)
        return np.where(np.isfinite(spread), spread, np.inf)

    def _logpdf(self, y: FloatArray) -> FloatArray:
        x = self._invert(y)
        with np.errstate(all="ignore"):
            step = STEP * np.maximum(1.0, np.abs(x))
            slope = (self._has_reached(x + step) - self._has_reached(x - step)) / (2.0 * step)
            log: FloatArray = self.base.logpdf(x) - np.log(slope)
        # Where the function is constant to the last digit, values have no density.
        return np.where(np.isfinite(x) & (slope > 0.0), log, -np.inf)

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self.base.cdf(self._invert(y))

    def _sf(self, y: FloatArray) -> FloatArray:
        return self.base.sf(self._invert(y))

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self._has_reached(self.base.ppf(q))

    def _interval(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = self.base.interval(levels)
        return self._has_reached(low), self._has_reached(high)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        return self._has_reached(self.base.rvs(size, random_state=rng))

    # ---- inner ----

    def _compute_quantiles(self) -> FloatArray:
        levels = NODES.reshape(-1, *(1,) * len(self.shape))
        return self._has_reached(self.base.ppf(ndtr(levels)))

    def _has_reached(self, x: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.forward(x))

    def _invert(self, y: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            x = np.asarray(self.backward(y))
        outside = np.isnan(x) & ~np.isnan(y)  # of all values: below them, or above
        if not outside.any():
            return x
        above = y > self._has_reached(np.zeros(()))
        return np.where(outside, np.where(above, np.inf, -np.inf), x)
