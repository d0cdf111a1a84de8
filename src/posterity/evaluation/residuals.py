"""Rows at even distances along a stream, with what was predicted of them and how far off it was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from posterity.aliases import Array, Mask

MOST_ROWS = 800
N_NEIGHBOURHOODS = 12


@dataclass(frozen=True, eq=False)
class Residuals:
    """Standardised residuals of some rows, to be drawn against the predicted mean.

    Attributes
    ----------
    row : (r,) int array
        Places among the rows predicted, from 0.
    predicted : (r,) array, units of y
        Predictive means.
    standardised : (r,) array
        Standard normal quantiles of F(y) (Dunn and Smyth 1996): in a calibrated model 95% lie
        between -1.96 and 1.96.
    """

    row: NDArray[np.int64]
    predicted: Array
    standardised: Array

    def running_mean(self) -> tuple[Array, Array]:
        """Means of both over neighbours by predicted mean: not flat where the function bends.

        Examples
        --------
        >>> rows = Residuals(np.arange(4), np.array([3.0, 1.0, 2.0, 4.0]), np.array([1.0, 0, 0, 1]))
        >>> rows.running_mean()[1].tolist()
        [0.0, 0.0, 1.0, 1.0]
        """
        order = np.argsort(self.predicted, kind="stable")
        parts = np.array_split(order, min(N_NEIGHBOURHOODS, len(order)))
        return (
            np.array([self.predicted[part].mean() for part in parts]),
            np.array([self.standardised[part].mean() for part in parts]),
        )


class ResidualLedger:
    """Every k-th row of a stream, k doubled whenever there would be too many.

    Which rows are kept does not depend on the batches in which they came.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most, self._stride, self._n_rows = most, 1, 0
        self._kept = np.empty((0, 3))

    def add(self, predicted: Array, u: Array, scored: Mask) -> None:
        """The next rows: predicted means, F(y), and whether the prediction had a width."""
        n, first = len(u), self._n_rows
        self._n_rows += n
        while self._n_rows > self._most * self._stride:
            self._stride *= 2
        self._kept = self._kept[self._kept[:, 0] % self._stride == 0]
        some = np.arange(-first % self._stride, n, self._stride)
        # Beyond what a double can tell from 0 and 1 a residual would be infinite.
        residual = ndtri(np.clip(u[some], 1e-300, 1.0 - 1e-16))
        residual = np.where(scored[some], residual, np.nan)
        rows = np.column_stack([first + some, predicted[some], residual])
        self._kept = np.concatenate([self._kept, rows])

    def result(self) -> Residuals:
        """Return the residuals of those kept rows that had a width."""
        row, predicted, residual = self._kept[np.isfinite(self._kept).all(axis=1)].T
        return Residuals(row.astype(np.int64), predicted, residual)
