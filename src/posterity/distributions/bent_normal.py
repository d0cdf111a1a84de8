"""Distributions given by their quantiles: a standard normal variable, bent."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.row_distribution import RowDistribution

# Standard normal numbers whose quantiles are known, and what each stands for in an average: the
# trapezoidal rule, whose error vanishes faster than any power.
STEP = 0.25
NODES = STEP * np.arange(-28, 29)
SHARES = np.exp(-0.5 * np.square(NODES)) / np.exp(-0.5 * np.square(NODES)).sum()
LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


class BentNormal(RowDistribution):
    """Distributions of increasing functions of a standard normal variable, one per row.

    Each function is given by its values at 57 points, the quantiles of the distribution, and is
    linear between them. A normal distribution is the straight line; a skewed one is bent.

    Parameters
    ----------
    points : (n, 57) array
        Quantiles at the levels ``scipy.stats.norm.cdf(NODES)``, from -7 to 7 in steps of 1/4.
    bent : (n,) bool array, optional
        Which rows are: the others are what they were before some were corrected.

    Examples
    --------
    >>> from posterity.distributions.bent_normal import NODES
    >>> gumbel = BentNormal(-np.log(-np.log(ndtr(NODES)))[None])
    >>> gumbel.mean().round(2), gumbel.ppf(0.975).round(2)
    (array([0.58]), array([3.68]))
    """

    __slots__ = ("bent", "points")

    def __init__(self, points: ArrayLike, bent: ArrayLike = True) -> None:
        self.points = as_floats(points)
        self.bent = np.broadcast_to(np.asarray(bent), self.points.shape[:-1])
        if self.points.ndim == 0 or self.points.shape[-1] != len(NODES):
            raise ValueError(f"points have shape {self.points.shape}; give (n, {len(NODES)})")

    def __repr__(self) -> str:
        return f"BentNormal({len(self)} rows)" if self.shape else "BentNormal()"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        return self.points.shape[:-1]

    # ---- what families say of themselves ----

    def _rows(self, index: Any) -> Self:
        return type(self)(self.points[index], self.bent[index])

    def _flat(self) -> Any:
        return np.isinf(self.points[..., 0]).astype(np.float64)

    def _mean(self) -> FloatArray:
        return np.where(self._flat(), self.points[..., len(NODES) // 2], self._average(self.points))

    def _var(self) -> FloatArray:
        spread = self._average(np.square(self.points - self._mean()[..., None]))
        return np.where(self._flat(), np.inf, spread)

    def _logpdf(self, y: FloatArray) -> FloatArray:
        place, share, slope = self._find(y)
        z = NODES[place] + STEP * share
        with np.errstate(divide="ignore"):
            return np.asarray(-0.5 * z * z - LOG_ROOT_2PI - np.log(slope / STEP))

    def _cdf(self, y: FloatArray) -> FloatArray:
        return np.asarray(ndtr(self._straighten(y)))

    def _sf(self, y: FloatArray) -> FloatArray:
        return np.asarray(ndtr(-self._straighten(y)))

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self.bend(ndtri(q))

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        return self.bend(rng.standard_normal(size))

    # ---- inner ----

    def bend(self, z: FloatArray) -> FloatArray:
        """Values of the functions at standard normal numbers, broadcast against the rows."""
        z = np.broadcast_to(z, np.broadcast_shapes(np.shape(z), self.shape))
        inside = np.clip(np.nan_to_num(z, nan=0.0), NODES[0], NODES[-1] - 1e-9)
        place = np.floor((inside - NODES[0]) / STEP).astype(np.intp)
        low, high = self._take(place), self._take(place + 1)
        with np.errstate(invalid="ignore"):  # where nothing is known, both are infinite
            bent = low + (high - low) * ((z - NODES[place]) / STEP)
        return np.where(np.isnan(bent), low, bent)

    def _straighten(self, y: FloatArray) -> FloatArray:
        place, share, _ = self._find(y)
        return np.asarray(NODES[place] + STEP * share)

    def _find(self, y: FloatArray) -> tuple[Any, FloatArray, FloatArray]:
        """The interval of points in which each y lies, its share of it, and the interval's length.

        The first and the last go on for ever.
        """
        y = np.broadcast_to(y, np.broadcast_shapes(np.shape(y), self.shape))
        place = np.sum(self.points[..., 1:-1] <= y[..., None], axis=-1)
        low, high = self._take(place), self._take(place + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return place, np.asarray((y - low) / (high - low)), np.asarray(high - low)

    def _take(self, place: Any) -> FloatArray:
        points = np.broadcast_to(self.points, (*place.shape, len(NODES)))
        return np.asarray(np.take_along_axis(points, place[..., None], axis=-1)[..., 0])

    def _average(self, values: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            return np.asarray(values @ SHARES)
