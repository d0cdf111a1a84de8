"""Correlations between the shocks of several series at one time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Indices, Mask
from posterity.forecasting.ensemble import FormLevels, Learner
from posterity.forecasting.panel import Panel
from posterity.forecasting.rows import compute_residuals

# Most residuals of each series, the last ones, that correlations are computed from.
MOST_RESIDUALS = 500
# Correlations are 0 with residuals at fewer times.
FEWEST_TIMES = 4


@dataclass(frozen=True, eq=False)
class ShockCorrelation:
    """Correlations between the shocks of S series at one time: ``loadings @ loadings.T``, 1 each.

    Series of different ``ends`` (S,) are independent: their steps are of different times.
    ``loadings`` (S, r) are those of common shocks; what is left of each series is its own.
    """

    loadings: Array
    ends: NDArray[np.int64]

    @classmethod
    def none(cls, count: int) -> ShockCorrelation:
        """Independent series."""
        return cls(np.zeros((count, 0)), np.zeros(count, dtype=np.int64))

    @classmethod
    def of(
        cls,
        residuals: Array,
        ends: NDArray[np.int64],
        typical: Mask | slice = slice(None),
    ) -> ShockCorrelation:
        """Return correlations of residuals (S, n) at the same times; NaN where there is none.

        Sample correlations are shrunk towards 0 by as much as their own errors ask for (Schafer and
        Strimmer 2005), which is found from ``typical`` (S,) series. A pair that shares few times is
        shrunk by that alone.
        """
        known = np.isfinite(residuals)
        residuals = residuals[:, known.sum(axis=0) > 1]
        known = np.isfinite(residuals)
        count = np.maximum(known.sum(axis=1, keepdims=True), 1)
        mean = np.where(known, residuals, 0.0).sum(axis=1, keepdims=True) / count
        off = np.where(known, residuals - mean, 0.0)
        length = np.linalg.norm(off, axis=1, keepdims=True)
        unit = np.divide(off, length, out=np.zeros_like(off), where=length > 0.0)
        n = unit.shape[1]
        if n < FEWEST_TIMES or len(unit) < 2:
            return cls.none(len(unit))
        root = np.asarray(np.linalg.qr(unit.T, mode="r")).T
        return cls(np.sqrt(1.0 - _choose_shrinkage(unit[typical])) * root, np.asarray(ends))

    def select(self, which: Indices) -> ShockCorrelation:
        """The same of some of the series."""
        return ShockCorrelation(self.loadings[which], self.ends[which])

    def correlation(self) -> Array:
        """(S, S) correlations."""
        same = self.ends[:, None] == self.ends
        matrix = np.where(same, self.loadings @ self.loadings.T, 0.0)
        np.fill_diagonal(matrix, 1.0)
        return matrix

    def draw(self, rng: np.random.Generator, size: int, h: int) -> Array:
        """Standard normal shocks (size, S, h), correlated over the series at each step."""
        own = rng.standard_normal((size, len(self.loadings), h))
        if not self.loadings.any():
            return own
        left = np.maximum(1.0 - np.square(self.loadings).sum(axis=1), 0.0)
        own *= np.sqrt(left)[:, None]
        for end in np.unique(self.ends):
            some = np.flatnonzero(self.ends == end)
            common = rng.standard_normal((size, self.loadings.shape[1], h))
            own[:, some] += self.loadings[some] @ common
        return own


def find_correlation(
    learners: Sequence[Learner], levels: FormLevels, shares: Array, panel: Panel
) -> ShockCorrelation:
    """Return correlations of series by the residuals of the best form in ``shares`` (S, F)."""
    if len(shares) < 2:
        return ShockCorrelation.none(len(shares))
    best = shares.argmax(axis=1)
    first = max(panel.length - MOST_RESIDUALS, 0)
    residuals = np.full((len(shares), panel.length - first), np.nan)
    for number in np.unique(best):
        learner, which = learners[number], np.flatnonzero(best == number)
        own, form = levels[learner.form], learner.form
        coefficients = learner.coefficients(own, which)
        residuals[which] = compute_residuals(own, form, coefficients, which, first)
    return ShockCorrelation.of(residuals, panel.ends, panel.typical)


# ---- inner ---------------------------------------------------------------------------------------


def _choose_shrinkage(unit: Array) -> float:
    """Return the shrinkage of correlations of rows (S, n) of length 1: variance over square."""
    n = unit.shape[1]
    squares = np.square(unit)
    lengths = squares.sum(axis=1)
    gram = unit.T @ unit if n < len(unit) else unit @ unit.T
    sizes = float(np.square(gram).sum() - np.square(lengths).sum())
    products = float(np.square(squares.sum(axis=0)).sum() - np.square(squares).sum())
    variance = n / (n - 1.0) * (products - sizes / n)
    return float(np.clip(variance / sizes, 0.0, 1.0)) if sizes > 0.0 else 1.0
