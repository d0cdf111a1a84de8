"""Student-t noise as rows of a Gaussian factor.

Student-t noise is normal noise whose precision differs from row to row: a row with error e is an
ordinary one of weight u = (df + 1) / (df + e^2 / s^2) (Lange, Little and Taylor 1989). Such weights
find the mode, but claim too much: their mean is 1, while a row informs by c = (df + 1) / (df + 3)
only (Fisher's information). So the row that stays has weight c u, and its target is moved away from
the fit, to fit + e / c: the same pull at the fit, with the right spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from posterity.distributions import StudentT
from posterity.factor import Factor
from posterity.generalized._core import core_of_t, core_variance
from posterity.generalized._interior_point import least_check_loss
from posterity.generalized._working_noise import Mode, Rows, Start

Array = NDArray[np.float64]
# Least absolute deviations of so many rows are start enough.
START_ROWS = 10_000
MOST_ROUNDS = 500
MOST_SEARCHES = 20
# With fewer rows there are no errors to tell a core from.
ROWS_A_COEFFICIENT = 4
# Of what a weight says when leverage takes part: it settles in a few rounds.
WEIGHT_ROUNDS = 6


@dataclass(frozen=True)
class StudentTNoise:
    """Noise scale * t, with ``df`` degrees of freedom, in units of the target."""

    df: float = 4.0

    prior_unit = 1.0

    @property
    def information(self) -> float:
        """Of one row about its mean, times scale^2: (df + 1) / (df + 3)."""
        return (self.df + 1.0) / (self.df + 3.0)

    @property
    def core_ratio(self) -> float:
        """Standard deviation of the noise's core, over its scale."""
        return core_of_t(self.df)

    def sites(self, error: Array, leverage: Array, scale: Array) -> tuple[Array, Array]:
        """Weight of each row, relative to the noise, and how far its target moves.

        ``error`` is the target less its prediction. With weight u the row moves its own fit by
        u h e / (1 + u h): u is that of the error which is then left, and of the variance.
        """
        u = self._weight(error, leverage, scale)
        left = error / (1.0 + u * leverage)
        return self.information * u, left * (1.0 / self.information - 1.0)

    def spread(self, error: Array, leverage: Array) -> Array:
        """Nothing: the scale is read from the core."""
        return np.zeros_like(error)

    def log_density(self, error: Array, leverage: Array, scale: Array) -> Array:
        """Log predictive density of each row; 0 where nothing is known."""
        return StudentT(self.df, 0.0, scale * np.sqrt(1.0 + leverage)).logpdf(error)

    def predictive(self, mean: Array, leverage: Array, scale: float | Array) -> StudentT:
        """Distribution of a new observation: t of the noise, widened by what is not known."""
        return StudentT(self.df, mean, scale * np.sqrt(1.0 + leverage))

    def log_likelihood(self, error: Array, scale: float) -> Array:
        """Log density of each row around its mean."""
        df = self.df
        constant = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * np.log(np.pi * df)
        z = error / scale
        return constant - np.log(scale) - 0.5 * (df + 1.0) * np.log1p(z * z / df)

    def mode(self, rows: Rows, prior: Factor, known_scale: float | None, last: Start) -> Mode:
        """Most probable coefficients given the scale, by iteratively reweighted least squares.

        From least absolute deviations on, which outliers hardly move, to the stationary point
        nearest (Lange, Little and Taylor 1989). The scale is that of the core, since the most
        probable one grows with the outliers; of few rows for each coefficient it is that one.
        """
        fit, scale = last.fit, last.scale
        if fit is None:
            fit = self._least_absolute(rows, prior)
            scale = known_scale or max(1.4826 * rows.median(np.abs(rows.y - fit)), rows.floor)
        taken = float(rows.n_flat)
        for _ in range(MOST_SEARCHES):
            fit, scale, factor = self._search(rows, prior, known_scale, fit, scale, taken)
            if known_scale is not None or not self._has_core(rows, prior):
                break
            u = self._weight(rows.y - fit, np.zeros(1), scale)
            leverage = factor.predict(rows.X, intercept=rows.intercept)[1]
            before, taken = taken, float((rows.weights * u) @ leverage)
            if abs(taken - before) < 1e-9 * rows.total:
                break
        error = rows.y - fit
        u = self._weight(error, np.zeros(1), scale)
        target = fit + error / self.information
        return Mode(scale, fit, self.information * u, target, 0.0)

    def _search(
        self,
        rows: Rows,
        prior: Factor,
        known_scale: float | None,
        fit: Array,
        scale: float,
        taken: float,
    ) -> tuple[Array, float, Factor]:
        """Reweight until nothing moves; the fit has taken ``taken`` rows from the scale."""
        factor = prior
        for _ in range(MOST_ROUNDS):
            u = self._weight(rows.y - fit, np.zeros(1), scale)
            factor = prior.copy()
            rows.append_to(factor, rows.y, u)
            new_fit = rows.fitted(factor)
            new_scale = known_scale or self._scale(rows, prior, factor, new_fit, scale, taken)
            moved = float(np.abs(new_fit - fit).max()) / scale + abs(new_scale / scale - 1.0)
            fit, scale = new_fit, new_scale
            if moved < 1e-12:
                break
        return fit, scale, factor

    def _scale(
        self, rows: Rows, prior: Factor, factor: Factor, fit: Array, last: float, taken: float
    ) -> float:
        if not self._has_core(rows, prior):
            return max(float(np.sqrt(factor.residual()[0, 0] / rows.freed)), rows.floor)
        square, ratio = np.square(rows.y - fit), self.core_ratio
        lost = rows.total / (rows.total - taken)
        start = (ratio * last) ** 2 / lost
        return math.sqrt(lost * core_variance(square, rows.weights, start, rows.floor**2)) / ratio

    def _has_core(self, rows: Rows, prior: Factor) -> bool:
        return rows.total >= ROWS_A_COEFFICIENT * prior.n_coefficients

    def _least_absolute(self, rows: Rows, prior: Factor) -> Array:
        some = rows.some(START_ROWS)
        # A prior too weak to matter, so that few rows do.
        weak = prior.copy()
        size = float(np.mean(np.abs(rows.y - rows.median(rows.y))))
        weak.scale(1e-6 / max(size, rows.floor))
        return rows.at(least_check_loss(some, weak, 0.5))

    def _weight(self, error: Array, leverage: Array, scale: Array | float) -> Array:
        df = self.df
        far = np.square(error / scale)
        u = (df + 1.0) / (df + far / (1.0 + leverage))
        if not leverage.any():
            return u
        for _ in range(WEIGHT_ROUNDS):
            shrunk = 1.0 / (1.0 + u * leverage)
            # h / (1 + u h), also where h is infinite.
            left = (1.0 - shrunk) / u
            u = (df + 1.0) / (df + far * shrunk * shrunk + left)
        return u
