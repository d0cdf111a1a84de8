"""Probability integral transforms: is the whole distribution right, not only one level?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

N_BINS = 100
SKEWED = 2.2


@dataclass(frozen=True, eq=False)
class PIT:
    """Probability integral transform: counts of F(y) in bins of equal width.

    If the predictive distributions F are right, F(y) is uniform (Dawid 1984; Diebold, Gunther and
    Tay 1998, Int. Econ. Rev. 39, 863-883). A histogram like a U says that they are too narrow, one
    like a hill that they are too wide, a slope that they are biased.

    Attributes
    ----------
    counts : (100,) int array
        Rows whose F(y) lay in [k/100, (k + 1)/100); 1 is in the last bin.

    Examples
    --------
    >>> pit = PIT(np.full(100, 7))
    >>> pit.n_rows, pit.error < 1e-15
    (700, True)
    >>> pit.coverage([0.5, 0.95]).round(3)
    array([0.5 , 0.95])
    """

    counts: NDArray[np.int64]

    @property
    def n_rows(self) -> int:
        """Rows counted: those whose prediction was not flat."""
        return int(self.counts.sum())

    @property
    def levels(self) -> FloatArray:
        """Levels of central intervals that end on borders of bins: 0.02, 0.04, ..., 0.98."""
        return np.arange(1, N_BINS // 2) * 2.0 / N_BINS

    @property
    def error(self) -> float:
        """Mean over :attr:`levels` of the distance of coverage and level: 0 is calibrated."""
        return float(np.mean(np.abs(self.coverage(self.levels) - self.levels)))

    @property
    def distance(self) -> float:
        """Greatest distance of the shares of F(y) from uniform ones, at borders of bins.

        Kolmogorov's statistic, but for what lies within bins.
        """
        if not self.n_rows:
            return math.nan
        return float(np.max(np.abs(self._shares() - np.arange(N_BINS + 1) / N_BINS)))

    def histogram(self, bins: int = 20) -> FloatArray:
        """Density of F(y) in bins, (bins,): 1 everywhere if calibrated.

        Parameters
        ----------
        bins : int
            A divisor of 100.

        Raises
        ------
        ValueError
            If it is not one.
        """
        if bins < 1 or N_BINS % bins:
            raise ValueError(f"bins must divide {N_BINS}, as 10, 20 and 25 do; got {bins}")
        joined = self.counts.reshape(bins, -1).sum(axis=1)
        return np.asarray(joined * (bins / self.n_rows if self.n_rows else math.nan))

    def coverage(self, levels: ArrayLike) -> FloatArray:
        """Share of rows inside their central intervals, for levels of any shape.

        y is inside the interval of level L if F(y) lies within (1 - L)/2 and (1 + L)/2. Exact at
        :attr:`levels`, interpolated between them.
        """
        level = np.asarray(levels, dtype=np.float64)
        if not self.n_rows:
            return np.full(level.shape, math.nan)
        borders, shares = np.arange(N_BINS + 1) / N_BINS, self._shares()
        upper = np.interp((1.0 + level) / 2.0, borders, shares)
        return np.asarray(upper - np.interp((1.0 - level) / 2.0, borders, shares))

    @property
    def longer_tail(self) -> int:
        """Where noise is skewed, the side of its longer tail: 1 above, -1 below; 0 if it is not.

        More targets than by chance lie beyond the 94% interval on this side, but not in this half:
        their excess there and that in the other half are 4.4 standard deviations of chance.

        Examples
        --------
        >>> PIT(np.repeat([0, 2, 1, 5], [10, 40, 45, 5])).longer_tail
        1
        """
        halves, ends = N_BINS // 2, round(0.03 * N_BINS)
        beyond, half = (
            float(self.counts[-k:].sum() - self.counts[:k].sum())
            / math.sqrt(self.counts[-k:].sum() + self.counts[:k].sum() or 1)
            for k in (ends, halves)
        )
        side = 1 if beyond > 0.0 else -1
        lies_there = side * half > 1.0  # as of predictions that are too low or too high
        return 0 if lies_there or min(side * beyond, side * (beyond - half) / 2) < SKEWED else side

    def _shares(self) -> FloatArray:
        """Share of F(y) below each border of a bin, (101,)."""
        return np.concatenate([[0.0], np.cumsum(self.counts)]) / self.n_rows


def skewness_in_words(pit: PIT | None) -> list[str]:
    """A sentence where targets are more skewed than their predictive distributions; else none."""
    side = 0 if pit is None else pit.longer_tail
    if not side:
        return []
    where, other = ("above", "below") if side > 0 else ("below", "above")
    return [
        f"The noise is skewed: more targets than promised lie {where} their intervals, and fewer "
        f"{other} them. Learn log y, or a Gamma likelihood, if y is positive, or two quantiles."
    ]


def count_bins(u: FloatArray) -> NDArray[np.int64]:
    """Counts (100,) of values between 0 and 1."""
    place = np.minimum((u * N_BINS).astype(np.intp), N_BINS - 1)
    return np.bincount(place, minlength=N_BINS)


__all__ = ["PIT"]
