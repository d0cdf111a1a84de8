"""The asymmetric Laplace distribution, one per row."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.row_distribution import RowDistribution


class AsymmetricLaplace(RowDistribution):
    """Asymmetric Laplace distributions, one per row: working likelihoods of a quantile.

    Density q (1 - q) / scale * exp(-rho((y - loc) / scale)), rho(z) = z (q - [z < 0]) (Yu and
    Moyeed 2001). Probability q lies below ``loc``.

    Parameters
    ----------
    quantile : float
        q, in (0, 1); 0.5 is the Laplace distribution of scale 2 * scale.
    loc : array_like
        (n,) the quantiles, in units of the target.
    scale : array_like
        (n,) or one for all, > 0, in units of the target; infinite where nothing is known.

    Examples
    --------
    >>> prediction = AsymmetricLaplace(0.9, [0.0, 10.0], 1.0)
    >>> prediction.cdf([0.0, 10.0])
    array([0.9, 0.9])
    >>> prediction.ppf(0.9)
    array([ 0., 10.])
    >>> prediction.logpdf([0.0, 10.0]).round(4)
    array([-2.4079, -2.4079])
    """

    __slots__ = ("loc", "quantile", "scale")

    def __init__(self, quantile: float, loc: ArrayLike, scale: ArrayLike) -> None:
        self.quantile = quantile
        self.loc = as_floats(loc)
        self.scale = as_floats(scale)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows: (n,), or () for a single distribution."""
        return np.broadcast_shapes(self.loc.shape, self.scale.shape)

    def _rows(self, index: Any) -> Self:
        scale = self.scale if self.scale.ndim == 0 else self.scale[index]
        return type(self)(self.quantile, np.broadcast_to(self.loc, self.shape)[index], scale)

    def __repr__(self) -> str:
        with np.printoptions(precision=6, threshold=6, edgeitems=2):
            return (
                f"AsymmetricLaplace(quantile={self.quantile}, loc={self.loc}, scale={self.scale})"
            )

    def _flat(self) -> Any:
        return self.scale == math.inf

    def _mean(self) -> FloatArray:
        q = self.quantile
        unit = (1.0 - 2.0 * q) / (q * (1.0 - q))
        shift = unit * np.where(self._flat(), 0.0, self.scale)
        return np.array(np.broadcast_to(self.loc + shift, self.shape))

    def _median(self) -> FloatArray:
        return self._ppf(np.asarray(0.5))

    def _var(self) -> FloatArray:
        q = self.quantile
        unit = (1.0 - 2.0 * q + 2.0 * q * q) / (q * (1.0 - q)) ** 2
        return np.array(np.broadcast_to(unit * np.square(self.scale), self.shape))

    def _logpdf(self, y: FloatArray) -> FloatArray:
        q = self.quantile
        with np.errstate(all="ignore"):
            z = (y - self.loc) / self.scale
            value = math.log(q * (1.0 - q)) - np.log(self.scale) - z * (q - (z < 0.0))
        return np.where(self._flat() & ~np.isnan(y), 0.0, value)

    def _cdf(self, y: FloatArray) -> FloatArray:
        q = self.quantile
        with np.errstate(all="ignore"):
            z = (y - self.loc) / self.scale
            below = q * np.exp((1.0 - q) * np.minimum(z, 0.0))
            value = np.where(z < 0.0, below, 1.0 - (1.0 - q) * np.exp(-q * np.maximum(z, 0.0)))
        return np.where(self._flat() & ~np.isnan(y), 0.5, np.where(np.isnan(z), np.nan, value))

    def _sf(self, y: FloatArray) -> FloatArray:
        mirrored = type(self)(1.0 - self.quantile, -self.loc, self.scale)
        return mirrored._cdf(-y)

    def _ppf(self, p: FloatArray) -> FloatArray:
        q = self.quantile
        with np.errstate(all="ignore"):
            low = np.log(p / q) / (1.0 - q)
            high = -np.log((1.0 - p) / (1.0 - q)) / q
            value = self.loc + self.scale * np.where(p < q, low, high)
        ends = np.where(p == 0.5, self.loc, np.where(p < 0.5, -math.inf, math.inf))
        value = np.where(self._flat(), ends, value)
        return np.where((p >= 0.0) & (p <= 1.0), value, np.nan)

    def _interval(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        tail = 0.5 * (1.0 - levels)
        return self._ppf(tail), self._ppf(1.0 - tail)

    def _crps(self, y: FloatArray) -> FloatArray:
        """The integral of (F - [t >= y])^2, of two exponentials.

        At z >= 0: int F^2 below 0 + int_0^z F^2 + int_z (1 - F)^2, with 1 - F = (1 - q) exp(-q t);
        the other side is its mirror image.
        """
        with np.errstate(all="ignore"):
            z = (y - self.loc) / self.scale
            q = np.where(z < 0.0, 1.0 - self.quantile, self.quantile)
            z, p = np.abs(z), np.where(z < 0.0, self.quantile, 1.0 - self.quantile)
            decay = np.exp(-q * z)
            below = q * q / (2.0 * p)
            inside = z - 2.0 * p * (1.0 - decay) / q + p * p * (1.0 - decay**2) / (2.0 * q)
            beyond = p * p * decay**2 / (2.0 * q)
            value = self.scale * (below + inside + beyond)
        return np.where(self._flat() & ~np.isnan(y), math.inf, value)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        q = self.quantile
        draws: FloatArray = self.loc + self.scale * (
            rng.exponential(size=size) / q - rng.exponential(size=size) / (1.0 - q)
        )
        return draws
