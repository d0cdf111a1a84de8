"""Long-run covariances of several series along a stream, in constant memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MOST_LAGS = 64


class LongRunLedger:
    """Sums of products of k series at lags 0 to `lags`, for covariances of means.

    Series are taken relative to their means over the first batch, and to each other's mean in each
    row: differences between series do not change, and products lose no digits to what all share.
    """

    def __init__(self, n_series: int, lags: int) -> None:
        self._lags = lags
        self._products = np.zeros((lags + 1, n_series, n_series))
        self._sum = np.zeros(n_series)
        self._first = np.empty((n_series, 0))  # the first and the last `lags` rows: edges of sums
        self._last = np.empty((n_series, 0))
        self._origin: FloatArray | None = None
        self.n_rows = 0

    def add(self, series: FloatArray) -> None:
        """Add the next rows (k, n)."""
        if series.shape[1] == 0:
            return
        series = series - series.mean(axis=0)
        if self._origin is None:
            self._origin = series.mean(axis=1)
        series = series - self._origin[:, None]
        known = np.concatenate([self._last, series], axis=1)
        n_last, n = self._last.shape[1], series.shape[1]
        for lag in range(self._lags + 1):
            start = max(lag - n_last, 0)
            if start >= n:
                break
            earlier = known[:, n_last + start - lag : n_last + n - lag]
            self._products[lag] += series[:, start:] @ earlier.T
        self._sum += series.sum(axis=1)
        if self._first.shape[1] < self._lags:
            self._first = np.concatenate([self._first, series], axis=1)[:, : self._lags]
        self._last = known[:, known.shape[1] - min(self._lags, known.shape[1]) :]
        self.n_rows += n

    def mean_difference(self, one: int, other: int) -> float:
        """Mean of series `one` less series `other`."""
        assert self._origin is not None
        mean = self._sum / self.n_rows + self._origin
        return float(mean[one] - mean[other])

    def compute_difference_variance(self, one: int, other: int, lags: int) -> float:
        """Variance of that mean, by Bartlett's weights (Newey and West 1987)."""
        n = self.n_rows
        contrast = np.zeros(len(self._sum))
        contrast[one], contrast[other] = 1.0, -1.0
        total, first, last = (contrast @ part for part in (self._sum, self._first, self._last))
        mean = total / n
        long_run = 0.0
        for lag in range(min(lags, n - 1) + 1):
            # sum (d_t - m)(d_{t-lag} - m) over t > lag: each factor misses rows at one edge.
            later = total - np.sum(first[:lag])
            earlier = total - np.sum(last[len(last) - lag :])
            product = contrast @ self._products[lag] @ contrast
            covariance = product - mean * (later + earlier) + (n - lag) * mean * mean
            weight = 1.0 if lag == 0 else 2.0 * (1.0 - lag / (lags + 1.0))
            long_run += weight * covariance
        return max(float(long_run), 0.0) / (n * n)


def choose_lags(n_rows: int) -> int:
    """Return the number of lags, 4 (n / 100)^(2/9) (Newey and West 1994, Rev. Econ. Stud. 61).

    Examples
    --------
    >>> choose_lags(100), choose_lags(1_000_000)
    (4, 30)
    """
    return min(int(4.0 * (n_rows / 100.0) ** (2.0 / 9.0)), MOST_LAGS)
