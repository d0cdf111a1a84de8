"""The prior of the covariance D of coefficients over groups.

In coordinates in which the mean of x x' is I, D is near ``t`` I. The scale ``t`` is learned, under
a weak prior that keeps it off zero and below the variance ``s`` of y (Chung, Gelman, Rabe-Hesketh,
Liu and Dorie 2015): t^(1/2) exp(-p t / 2s). Around it D is Wishart with ``strength`` degrees of
freedom nu, as if so many groups had been seen whose covariance is t I,

    -2 log p(D | t) = nu (tr D / t - log |D / t| - p) + const,

in a measure that no unit matters to. Without it p (p + 1) / 2 numbers are learned from groups of
which each may have fewer rows than coefficients: then the best D explains the noise, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posterity.aliases import Array, Indices

# Rows and columns of the lower triangle's entries.
Lower = tuple[Indices, Indices]


@dataclass(frozen=True)
class CovariancePrior:
    """The prior of D = L L' relative to the noise.

    Parameters
    ----------
    strength
        How many groups it is worth, at least 1.
    largest
        The variance of y in units of the noise's.
    """

    strength: float
    largest: float

    def penalty(self, root: Array) -> float:
        """-2 log density at the root L, with the best scale."""
        p, trace, t = len(root), float(np.sum(root**2)), self._compute_scale(root)
        log_determinant = 2.0 * float(np.linalg.slogdet(root)[1])
        shape = trace / t + p * np.log(t) - log_determinant - p
        return float(self.strength * shape - np.log(t) + p * t / self.largest)

    def slope(self, root: Array) -> Array:
        """(p, p) slope of the penalty along the symmetric A of L (I + A) L'."""
        slope = root.T @ root / self._compute_scale(root) - np.eye(len(root))
        return np.asarray(self.strength * slope)

    def curvature(self, root: Array, lower: Lower) -> Array:
        """Return the curvature of the penalty in K's entries, D = L K K' L', near a multiple of I.

        (e, e) for e entries: that of the shape, and of the scale, of which it knows little.
        """
        p, (i, j) = len(root), lower
        turn = root.T @ root
        trace = float(np.trace(turn))
        along = 2.0 * turn[i, j] / trace  # how an entry changes the logarithm of the trace
        scale = p * self._compute_scale(root) / self.largest - self.strength * p
        return np.diag(self.curvature_of_shape(lower)) + scale * np.outer(along, along)

    def curvature_of_shape(self, lower: Lower) -> Array:
        """(e,) the same curvature where the scale is known, entry by entry."""
        return self.strength * np.where(lower[0] == lower[1], 4.0, 2.0)

    def _compute_scale(self, root: Array) -> float:
        """The best t: the root of p t^2 / s + (nu p - 1) t - nu tr D."""
        p, nu = len(root), self.strength
        square, linear = p / self.largest, nu * p - 1.0
        constant: Any = nu * np.sum(root**2)
        return float(2.0 * constant / (linear + np.sqrt(linear**2 + 4.0 * square * constant)))


__all__ = ["CovariancePrior", "Lower"]
