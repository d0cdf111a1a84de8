"""Student-t noise as rows of a Gaussian factor.

Student-t noise is normal noise whose precision differs from row to row: a row with error e is an
ordinary one of weight u = (df + 1) / (df + e^2 / s^2) (Lange, Little and Taylor 1989). Such weights
find the mode, but claim too much: their mean is 1, while a row informs by c = (df + 1) / (df + 3)
only (Fisher's information). So the row that stays has weight c u, and its target is moved away from
the fit, to fit + e / c: the same pull at the fit, with the right spread. That is for rows that come
one after another; those that are there at once are matched by their moments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from scipy.special import digamma, polygamma

from posterity.aliases import Array
from posterity.distributions import StudentT
from posterity.generalized._core import compute_t_core
from posterity.generalized._matched_noise import MatchedNoise
from posterity.generalized._matching import Sites, invert_trigamma
from posterity.generalized._working_noise import Rows
from posterity.likelihoods import noises

Number = TypeVar("Number", float, Array)
# Rounds in which weights with leverage converge.
WEIGHT_ROUNDS = 6
# Grid of h / (1 + h) on which sums of the noise and Normal(0, h) are tabulated.
PLACES = np.linspace(0.0, 1.0, 257)
# Smallest variance of log precisions.
LEAST_VARIANCE = 1e-6


@lru_cache(maxsize=64)
def _match_t(df: float, scale_df: float) -> tuple[Array, Array]:
    """The t nearest to s (t + Normal(0, h)): 1 / its df, and its scale over sqrt(1 + h).

    ``scale_df`` says how well the scale s around 1 is known. Given the gamma precision g of the t's
    mixture the sum is normal, of precision g / (s^2 (1 + g h)). That is taken as gamma, too: of the
    same mean and variance of the logarithm, which fit the tails as well as the middle.
    """
    mean, variance = _compute_log_precision(df)
    variance = variance + float(polygamma(1, 0.5 * scale_df))
    # A gamma of shape a has a logarithm of variance trigamma(a).
    half = invert_trigamma(np.maximum(variance, LEAST_VARIANCE))
    log_scale = 0.5 * (digamma(half) - np.log(half) - mean)
    return 0.5 / half, np.exp(log_scale)


@lru_cache(maxsize=64)
def _compute_log_precision(df: float) -> tuple[Array, Array]:
    """Mean and variance of log(g (1 + h) / (1 + g h)) at all places, g gamma with mean 1."""
    half = 0.5 * df
    reach = 40.0 / half + 9.0 / np.sqrt(half)
    log_g = np.linspace(-reach, min(reach, 5.0), int(401.0 + 4.0 * reach))
    mass = np.exp(half * (log_g - np.exp(log_g) + 1.0))
    mass /= mass.sum()
    # g / (1 + g h) times 1 + h.
    logs = log_g - np.log(1.0 - PLACES[:, None] + PLACES[:, None] * np.exp(log_g))
    mean = logs @ mass
    return mean, np.square(logs - mean[:, None]) @ mass


@dataclass(frozen=True)
class StudentTNoise(MatchedNoise):
    """Noise scale * t, with ``df`` degrees of freedom, in units of the target."""

    df: float = 4.0

    @property
    def information(self) -> float:
        """The Fisher information of one row about its mean, times scale^2: (df + 1) / (df + 3)."""
        return (self.df + 1.0) / (self.df + 3.0)

    @property
    def scale_information(self) -> float:
        """The Fisher information of a row on the logarithm of its scale: 2 df / (df + 3)."""
        return 2.0 * self.df / (self.df + 3.0)

    @property
    def core_ratio(self) -> float:
        """Standard deviation of the noise's core, over its scale."""
        return self.unit * compute_t_core(self.df)

    def approximate_sites(self, rows: Rows, fit: Array, scale: float) -> Sites:
        """Rows that stand for the likelihood around a fit, roughly."""
        error = rows.y - fit
        u = self._compute_weight(error, np.zeros(1), np.array([scale * self.unit]))
        weight = self.information * u / self.unit**2
        return Sites(scale, weight, fit + error / self.information)

    def sites(self, error: Number, leverage: Number, scale: Number) -> tuple[Number, Number]:
        """Weight of each row, relative to the noise, and how far its target moves.

        ``error`` is the target less its prediction. With weight u the row moves its own fit by
        u h e / (1 + u h): u is that of the error which is then left, and of the variance.
        """
        square = self.unit**2
        leverage = leverage / square
        u = self._compute_weight(error, leverage, scale * self.unit)
        left = error / (1.0 + u * leverage)
        return self.information * u / square, left * (1.0 / self.information - 1.0)

    site = sites

    def scale_term(self, error: float, leverage: float) -> float:
        """Return 0: the scale is estimated from the core."""
        return 0.0

    def log_density_one(self, error: float, leverage: float, scale: float, df: float) -> float:
        """Log predictive density of one row; 0 where nothing is known."""
        if not (leverage < math.inf and scale < math.inf):
            return 0.0
        scale, leverage = scale * self.unit, leverage / self.unit**2
        per_dfs, narrowing = _match_t(self.df, df)
        place = (1.0 - 1.0 / (1.0 + leverage)) * (len(PLACES) - 1)
        low = min(int(place), len(PLACES) - 2)
        share = place - low
        nu = 1.0 / float(per_dfs[low] + share * (per_dfs[low + 1] - per_dfs[low]))
        width = float(narrowing[low] + share * (narrowing[low + 1] - narrowing[low]))
        width *= scale * math.sqrt(1.0 + leverage)
        constant = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu)
        constant -= 0.5 * math.log(nu * math.pi) + math.log(width)
        off = error / width
        return constant - 0.5 * (nu + 1.0) * math.log1p(off * off / nu)

    def scale_terms(self, error: Array, leverage: Array) -> Array:
        """Return zeros: the scale is estimated from the core."""
        return np.zeros_like(error)

    def log_density(self, error: Array, leverage: Array, scale: Array, df: float) -> Array:
        """Log predictive density of each row; 0 where nothing is known."""
        return self.predictive(np.zeros_like(error), leverage, scale, df).logpdf(error)

    def predictive(
        self, mean: Array, leverage: Array, scale: float | Array, df: float | Array
    ) -> StudentT:
        """Distribution of a new observation: the noise, and what is not known of mean and scale.

        A t again, of more degrees of freedom where the mean is open, and of fewer where the scale
        is: so are sums and scales of t distributions nearly distributed.
        """
        scale, leverage = scale * self.unit, leverage / self.unit**2
        place = 1.0 - 1.0 / (1.0 + leverage)
        per_df, width = np.empty_like(place), np.sqrt(1.0 + leverage)
        certain = np.broadcast_to(df, place.shape)
        for one in np.unique(certain):
            some = certain == one
            per_dfs, narrowing = _match_t(self.df, float(one))
            per_df[some] = np.interp(place[some], PLACES, per_dfs)
            width[some] *= np.interp(place[some], PLACES, narrowing)
        return StudentT(1.0 / per_df, mean, scale * width)

    def with_scale(self, scale: float) -> noises.StudentT:
        """The likelihood of this scale."""
        return noises.StudentT(self.df, scale * self.unit)

    def _compute_weight(self, error: Number, leverage: Number, scale: Number) -> Number:
        df, off = self.df, error / scale
        far = off * off
        u = (df + 1.0) / (df + far / (1.0 + leverage))
        for _ in range(WEIGHT_ROUNDS):
            shrunk = 1.0 / (1.0 + u * leverage)
            u = (df + 1.0) / (df + far * shrunk * shrunk + leverage * shrunk)
        return u
