"""The penalty of a spline whose neighbouring pieces are not alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.preprocessing import SplineTransformer

from posterity.aliases import Array


@dataclass(frozen=True)
class Penalty:
    """Second divided differences of a spline's b coefficients, on a domain of [-1, 1].

    ``centres`` (b,) are where the B-splines lie (Greville): with these as coefficients the spline
    is the line x. ``differences`` (b - 2, b) is D, its rows times the root of their spacing, and
    ``sizes`` (b,) the same of the coefficients: so sums of squares are integrals over the domain.
    """

    centres: Array
    differences: Array
    sizes: Array

    @classmethod
    def of(cls, spline: SplineTransformer) -> Self:
        inner, degree = spline.bsplines_[0], spline.degree
        low, high = inner.t[degree], inner.t[-degree - 1]
        knots = (inner.t - (low / 2.0 + high / 2.0)) / (high / 2.0 - low / 2.0)
        b = len(knots) - degree - 1
        centres = np.array([knots[i + 1 : i + degree + 1].mean() for i in range(b)])
        gaps = np.diff(centres)
        between = np.diff(centres[:-1] + 0.5 * gaps)
        slopes = np.diff(np.eye(b), axis=0) / gaps[:, None]
        unit = gaps.mean()
        bends = np.diff(slopes, axis=0) / between[:, None]
        ends = np.concatenate([gaps[:1], between, gaps[-1:]])
        return cls(centres, np.sqrt(between / unit)[:, None] * bends, np.sqrt(ends / unit))

    def find_bends(self) -> Array:
        """(b, b - 2) coefficients of the singular vectors, from smooth to rough."""
        b = len(self.centres)
        if b < 3:
            return np.zeros((b, 0))
        turned = np.linalg.svd(self.differences / self.sizes)[2][b - 3 :: -1]
        return (turned / self.sizes).T

    def mix(self, bends: Array) -> Array:
        """(b, b - 1) coefficients of the line and the bends, 0 on average over the domain."""
        both = np.column_stack([self.centres, bends])
        return both - np.square(self.sizes) @ both / np.square(self.sizes).sum()
