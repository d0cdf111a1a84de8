"""Asymmetric Laplace noise, the working likelihood of a quantile, as rows of a Gaussian factor.

log p(e) = log(q (1 - q) / b) - rho(e) / b, rho(e) = e (q - [e < 0]) (Yu and Moyeed 2001); for
q = 1/2 this is Laplace noise of scale 2 b. The likelihood has no curvature but at its kink, so a
row is matched by moments: given eta ~ N(m, v), the normalising constant Z(m) has a closed form, and
the row has the gradient and curvature of log Z (assumed-density filtering).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri, stdtrit

from posterity.aliases import Array
from posterity.factor import Factor
from posterity.generalized._interior_point import (
    GAP_TOLERANCE,
    ROUGH_GAP_TOLERANCE,
    check_loss,
    minimize_check_loss,
)
from posterity.generalized._working_noise import Mode, Rows, SearchStart, Spread, WorkingNoise
from posterity.generalized.asymmetric_laplace import AsymmetricLaplace
from posterity.likelihoods import Quantile

# A row far from the kink has a gradient but no curvature: it gets this share of the mean curvature.
LEAST_SHARE = 0.02
# A larger relative variance of eta counts as infinite.
OPEN = 1e6
# Smallest error, in units of the scale, where most rows are fitted exactly.
LEAST_SPREAD = 0.1
# A smaller error, in these units, may be that of a row that the line goes through.
FITTED = 1e-3
Z_95 = 1.959963984540054
LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
ROOT_HALF, FAR_TAIL = math.sqrt(0.5), -30.0


@dataclass(frozen=True)
class AsymmetricLaplaceNoise(WorkingNoise):
    """Noise of which quantile ``quantile`` is 0; its scale b is the mean check loss."""

    quantile: float = 0.5
    # The scale is estimated from the spread.
    core_ratio: ClassVar[float | None] = None

    @property
    def scale_of_normal(self) -> float:
        """The scale that normal noise of standard deviation 1 gives: the mean check loss."""
        return math.exp(-0.5 * float(ndtri(self.quantile)) ** 2 - LOG_ROOT_2PI)

    @property
    def scale_information(self) -> float:
        """The Fisher information of a row on the logarithm of its scale."""
        return 1.0

    @property
    def least_weight(self) -> float:
        """The least relative weight of a row."""
        return LEAST_SHARE * self.quantile * (1.0 - self.quantile)

    def sites(self, error: Array, leverage: Array, scale: Array) -> tuple[Array, Array]:
        """Weight of each row, relative to the noise, and how far its target moves."""
        q = self.quantile
        e, v = error / scale, np.clip(leverage, 1e-12, OPEN)
        log_z, above = self._compute_normaliser(e, v)
        kink = np.exp(-0.5 * e * e / v - 0.5 * np.log(v) - LOG_ROOT_2PI - log_z)
        gradient = q * above - (1.0 - q) * (1.0 - above)
        curvature = np.clip(kink - above * (1.0 - above), 0.0, 1.0 / v)
        # The least denominator: that of moments of the noise itself, which v can't exceed.
        precision = curvature / np.maximum(1.0 - v * curvature, 1e-9)
        variance = (1.0 - 2.0 * q + 2.0 * q * q) / (q * (1.0 - q)) ** 2
        mean = (1.0 - 2.0 * q) / (q * (1.0 - q))
        open_ = leverage >= OPEN
        weight = np.maximum(np.where(open_, 1.0 / variance, precision), self.least_weight)
        # Row (weight, m + delta) moves eta by v weight delta / (1 + v weight) = v gradient.
        delta = np.where(open_, e - mean, gradient * (1.0 + v * weight) / weight)
        return weight, delta * scale - error

    def site(self, error: float, leverage: float, scale: float) -> tuple[float, float]:
        """The same of one row."""
        q, e = self.quantile, error / scale
        v = min(max(leverage, 1e-12), OPEN)
        log_z, above = self._compute_normaliser_one(e, v)
        kink = math.exp(-0.5 * e * e / v - 0.5 * math.log(v) - LOG_ROOT_2PI - log_z)
        gradient = q * above - (1.0 - q) * (1.0 - above)
        curvature = min(max(kink - above * (1.0 - above), 0.0), 1.0 / v)
        weight = curvature / max(1.0 - v * curvature, 1e-9)
        if leverage >= OPEN:
            weight = (q * (1.0 - q)) ** 2 / (1.0 - 2.0 * q + 2.0 * q * q)
        weight = max(weight, self.least_weight)
        delta = gradient * (1.0 + v * weight) / weight
        if leverage >= OPEN:
            delta = e - (1.0 - 2.0 * q) / (q * (1.0 - q))
        return weight, delta * scale - error

    def scale_term(self, error: float, leverage: float) -> float:
        """Return the term of one row in the sum of check losses."""
        lost = error * (self.quantile - (error < 0.0))
        return lost / math.sqrt(1.0 + self.widening * leverage)

    def log_density_one(self, error: float, leverage: float, scale: float, df: float) -> float:
        """Log predictive density of one row; 0 where nothing is known."""
        if not (leverage < math.inf and scale < math.inf):
            return 0.0
        q = self.quantile
        log_z = self._compute_normaliser_one(error / scale, max(leverage, 1e-12))[0]
        return log_z + math.log(q * (1.0 - q)) - math.log(scale)

    def scale_terms(self, error: Array, leverage: Array) -> Array:
        """Return each row's term in the sum of check losses: b = sum rho(e) / (n - d)."""
        lost = check_loss(error, self.quantile) / self._compute_widening(leverage)
        return np.where(np.isinf(leverage), 0.0, lost)

    def log_density(self, error: Array, leverage: Array, scale: Array, df: float) -> Array:
        """Log predictive density of each row, integrated over eta; 0 where nothing is known."""
        q = self.quantile
        open_ = ~np.isfinite(leverage) | ~np.isfinite(scale)
        b = np.where(open_, 1.0, scale)
        v = np.where(open_, 1.0, np.maximum(leverage, 1e-12))
        log_z = self._compute_normaliser(error / b, v)[0]
        return np.where(open_, 0.0, log_z + np.log(q * (1.0 - q)) - np.log(b))

    def with_scale(self, scale: float) -> Quantile:
        """The likelihood of this scale."""
        return Quantile(self.quantile, scale)

    def predictive(
        self, mean: Array, leverage: Array, scale: float | Array, df: float | Array
    ) -> AsymmetricLaplace:
        """Distribution of a new observation, widened by what is not known of the quantile."""
        return AsymmetricLaplace(self.quantile, mean, scale * self._compute_widening(leverage))

    @property
    def widening(self) -> float:
        """The growth of a new row's squared scale with its leverage.

        E rho(e - x) = rho(e) + f(0) v / 2 for small v, and f(0) = q (1 - q) / b.
        """
        return self.quantile * (1.0 - self.quantile)

    def _compute_widening(self, leverage: Array) -> Array:
        """Return the factor on a row's loss that its leverage, the uncertainty of eta, makes."""
        return np.sqrt(1.0 + self.widening * leverage)

    def mode(self, rows: Rows, prior: Factor, known_scale: float | None, last: SearchStart) -> Mode:
        """Least check loss under the prior at the scale ``last``; with a flat one, quantreg's."""
        penalty = prior.copy()
        penalty.scale(1.0 / last.scale)
        precise = ROUGH_GAP_TOLERANCE if last.rough else GAP_TOLERANCE
        w = minimize_check_loss(rows, penalty, self.quantile, precise)
        fit = rows.compute_fitted(w)
        loss = float(rows.weights @ check_loss(rows.y - fit, self.quantile))
        scale = known_scale or max(_find_scale_mode(rows, prior, w, loss), rows.floor)
        weight = self._compute_curvature(rows, (rows.y - fit) / scale)
        target = fit + rows.compute_fitted(_compute_offset(rows, prior, weight, w))
        return Mode(scale, fit, weight, target, scale * rows.residual_df, rough=last.rough)

    def estimate_scale_uncertainty(
        self, rows: Rows, prior: Factor, known_scale: float | None, mode: Mode
    ) -> Spread | None:
        """Return None: the scale of a working likelihood is plugged in."""
        return None

    def _compute_curvature(self, rows: Rows, e: Array) -> Array:
        """Each row's share in the curvature of the expected loss, e in units of the scale.

        That is the density of the errors at 0 (Powell 1991), seen through a normal kernel as wide
        as Hall and Sheather's (1988) window of quantiles. How they lie around a tail's quantile the
        width of all of them does not say: so the mean density is that of the rows in the window
        (Siddiqui 1960), with what a few rows can know of it. Where the prior keeps all rows away
        from 0, they do not tell: it is then the likelihood's own, q (1 - q).
        """
        q, n = self.quantile, rows.total
        z = float(ndtri(q))
        height = math.exp(-z * z) / (2.0 * math.pi)
        reach = (
            n ** (-1.0 / 3.0)
            * Z_95 ** (2.0 / 3.0)
            * (1.5 * height / (2.0 * z * z + 1.0)) ** (1.0 / 3.0)
        )
        # Rows that the line goes through lie at 0 wherever they are: the window has some beyond.
        fitted = float(rows.weights[np.abs(e) < FITTED].sum())
        fitted = min(fitted, rows.X.shape[1] + rows.intercept)
        reach = max(reach, (fitted + 1.0) / n)
        low, high = max(q - reach, 0.5 / n), min(q + reach, 1.0 - 0.5 / n)
        if low >= high:
            return np.full(len(e), self.widening)
        ends = rows.quantiles(e, np.array([low, high]))
        gap = max(float(ends[1] - ends[0]), LEAST_SPREAD * (high - low))
        # The standard deviation of a uniform window that reaches so far on each side.
        width = gap / math.sqrt(12.0)
        kernel = np.exp(-0.5 * np.square(e / width) - LOG_ROOT_2PI) / width
        mean = float(rows.weights @ kernel) / n
        if mean == 0.0:
            return np.full(len(e), self.widening)
        # Half a window's gap comes from so few rows that it is known as a variance is.
        free = max(n * (high - low) - fitted, 1.0)
        certain = Z_95 / float(stdtrit(max(free - 1.0, 1.0), 0.975))
        density = (high - low) / gap * certain * max(1.0 - rows.n_flat / n, 0.1)
        return np.maximum(kernel * (density / mean), self.least_weight)

    def _compute_normaliser(self, e: Array, v: Array) -> tuple[Array, Array]:
        """log E exp(-rho(e - x)), x ~ N(0, v), and the share of it that comes from e > x."""
        q, root = self.quantile, np.sqrt(v)
        above = -q * e + 0.5 * q * q * v + log_ndtr((e - q * v) / root)
        p = 1.0 - q
        below = p * e + 0.5 * p * p * v + log_ndtr(-(e + p * v) / root)
        log_z = np.logaddexp(above, below)
        return log_z, np.exp(above - log_z)

    def _compute_normaliser_one(self, e: float, v: float) -> tuple[float, float]:
        q, root = self.quantile, math.sqrt(v)
        p = 1.0 - q
        above = -q * e + 0.5 * q * q * v + _compute_log_ndtr((e - q * v) / root)
        below = p * e + 0.5 * p * p * v + _compute_log_ndtr(-(e + p * v) / root)
        top = max(above, below)
        log_z = top + math.log(math.exp(above - top) + math.exp(below - top))
        return log_z, math.exp(above - log_z)


def _compute_log_ndtr(x: float) -> float:
    """Log of the normal distribution function of one number."""
    if x < FAR_TAIL:  # where erfc vanishes
        return float(log_ndtr(x))
    return math.log(0.5 * math.erfc(-ROOT_HALF * x))


def _find_scale_mode(rows: Rows, prior: Factor, w: Array, loss: float) -> float:
    """The mode of b^-(n - d) exp(-loss / b - P / 2 b^2), P = |R0 w - z0|^2: a quadratic's root."""
    penalty = float(np.sum(np.square(prior.root @ w - prior.moments[:, 0])))
    return (loss + math.sqrt(loss**2 + 4.0 * rows.residual_df * penalty)) / (2.0 * rows.residual_df)


def _compute_offset(rows: Rows, prior: Factor, weight: Array, w: Array) -> Array:
    """Return the offset of the mode that balances the prior's pull on rows fitted there.

    The rows' information K and the prior's, Lambda: K delta = Lambda w - Lambda m0.
    """
    pull = np.where(rows.told, prior.root.T @ (prior.root @ w - prior.moments[:, 0]), 0.0)
    if not pull.any():
        return np.zeros_like(w)
    alone = Factor(len(w))
    rows.append_to(alone, rows.y, weight)
    half = np.linalg.lstsq(alone.root.T, pull)[0]
    return np.asarray(np.linalg.lstsq(alone.root, half)[0])
