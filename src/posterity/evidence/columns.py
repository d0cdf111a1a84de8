"""Scales of the features, read from the data's factor, which make a prior scale-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from posterity.aliases import Array, Mask
from posterity.factor import Factor

# A centred column smaller than this, relative to the column, is a constant but for rounding.
CONSTANT = 1e-12
# A pinned coefficient's precision, against the column's sum of squares. The leverage of a row of
# the feature's size is then below 1e-12, and the rounding in a constant's column (1e-24 of its
# sum of squares) moves the coefficient by 1e-36 of itself.
PINNING_PRECISION = 1e12
# The same where a feature was 0 in every row, so that it has no scale.
PINNING_PRECISION_AT_ZERO = 1e60
SMALLEST, LARGEST = 1e-300, 1e300


class FeatureScales(NamedTuple):
    """Mean square (m,) of each feature, about its mean if there is an intercept; which are pinned.

    ``pinned`` (m,) is True for a feature that has not varied, of which the data can say nothing.
    ``shares`` (m,) is what the rows' own mean squares are of ``squares``, where those are larger.
    """

    squares: Array
    pinned: Mask
    shares: Array | None = None

    @classmethod
    def of(cls, sums: Array, whole: Array, count: float) -> Self:
        """From sums of squares (m,) of ``count`` rows, about the mean and about zero."""
        pinned = (sums <= CONSTANT**2 * whole) | (sums < SMALLEST)
        return cls(sums / count if count > 0.0 else sums, pinned)


def mean_squares(data: Factor, *, intercept: int) -> FeatureScales:
    """The scales of the features of the rows in a factor.

    Examples
    --------
    >>> import numpy as np
    >>> data = Factor(3)
    >>> data.append(np.array([[0.0, 5.0], [2.0, 5.0]]), np.zeros((2, 1)), intercept=True)
    >>> mean_squares(data, intercept=True)[0].round(12).tolist()
    [1.0, 0.0]
    >>> mean_squares(data, intercept=True)[1]
    array([False,  True])
    """
    offset = int(intercept)
    squared = np.square(data.root[:, offset:])
    sums = squared[offset:].sum(axis=0)
    whole = sums + squared[:offset].sum(axis=0) if offset else sums
    return FeatureScales.of(sums, whole, data.count)


def read_rows(data: Factor, matrix: Array, mean: Array, *, intercept: int) -> tuple[Array, Array]:
    """Rows of ``matrix``, and of the target about the prior mean, but for those that are empty.

    Examples
    --------
    >>> data = Factor(2)
    >>> data.append(np.array([[3.0, 4.0]]), np.array([[10.0]]))
    >>> [abs(one).round(9).tolist() for one in read_rows(data, data.root, np.ones(2), intercept=0)]
    [[[3.0, 4.0]], [3.0]]
    """
    offset = int(intercept)
    target = data.moments[offset:, 0] - data.root[offset:, offset:] @ mean
    if data.determined[offset:].all():
        return matrix, target
    filled = matrix.any(axis=1) | (target != 0.0)  # few rows: most of the triangle is empty
    return matrix[filled], target[filled]


def is_constant(data: Factor, target: Array) -> bool:
    """Return True if nothing but rounding is left of the target about its mean.

    Examples
    --------
    >>> data = Factor(1)
    >>> data.append(np.array([[1.0]]), np.array([[2.0]]))
    >>> is_constant(data, np.zeros(1)), is_constant(data, data.moments[:, 0])
    (True, False)
    """
    residual = float(data.residual_root[0, 0]) ** 2
    size = float(np.square(data.moments).sum()) + residual
    return float(target @ target) + residual <= CONSTANT**2 * size


def compute_prior_shapes(
    data: Factor, shapes: Array | None, scales: FeatureScales | None, *, intercept: int
) -> tuple[Array, Mask]:
    """Shapes (L, m) to choose from, infinite where a feature is pinned, and which are (m,).

    They are those given, or else the mean squares: of ``scales``, or else of the factor.

    Examples
    --------
    >>> scales = FeatureScales(np.array([4.0, 0.0]), np.array([False, True]))
    >>> compute_prior_shapes(Factor(2), None, scales, intercept=False)
    (array([[ 4., inf]]), array([False,  True]))
    """
    if shapes is not None:
        return np.asarray(shapes, dtype=np.float64), np.zeros(np.shape(shapes)[1], dtype=bool)
    sizes, pinned = (scales or mean_squares(data, intercept=intercept))[:2]
    return (np.where(pinned, np.inf, sizes) if pinned.any() else sizes)[None], pinned


def compute_pinning_precisions(data: Factor, *, intercept: int) -> Array:
    """(m,) precisions that hold a coefficient at its prior mean: relative to its scale, and finite.

    Examples
    --------
    >>> import numpy as np
    >>> data = Factor(3)
    >>> data.append(np.array([[3.0, 0.0], [4.0, 0.0]]), np.zeros((2, 1)), intercept=True)
    >>> compute_pinning_precisions(data, intercept=True)
    array([2.5e+13, 1.0e+60])
    """
    sums = np.square(data.root[:, int(intercept) :]).sum(axis=0)
    return np.where(
        sums < SMALLEST, PINNING_PRECISION_AT_ZERO, np.minimum(PINNING_PRECISION * sums, LARGEST)
    )


def compute_precisions(
    ratios: Array, shapes: Array, pinned: Mask, data: Factor, *, intercept: int
) -> Array:
    """(k, m) precisions of k ratios (k,) and shapes (k, m) or (1, m); pinned columns are held.

    Examples
    --------
    >>> import numpy as np
    >>> data, held = Factor(2), np.array([False, True])
    >>> data.append(np.array([[3.0, 2.0], [4.0, 2.0]]), np.zeros((2, 1)))
    >>> compute_precisions(np.array([0.5]), np.array([[4.0, np.inf]]), held, data, intercept=0)
    array([[2.e+00, 8.e+12]])
    """
    precisions = np.minimum(ratios[:, None] * shapes, LARGEST)
    if pinned.any():
        precisions[:, pinned] = compute_pinning_precisions(data, intercept=intercept)[pinned]
    return precisions


@dataclass
class RunningScales:
    """Scales of the features over all rows that ever came, including forgotten ones.

    A prior that followed the rows of late would lose hold of a feature that has gone quiet: its
    scale would shrink to nothing, and what is believed of its coefficient grow without bound.

    Examples
    --------
    >>> scales = RunningScales.before_data(1)
    >>> scales.learn(np.array([[1.0], [3.0]]), None)
    >>> scales.read(intercept=True).squares, scales.read(intercept=False).squares
    (array([1.]), array([5.]))
    """

    count: float
    mean: Array
    squares: Array

    @classmethod
    def before_data(cls, n_features: int) -> RunningScales:
        """Return the scales of no rows."""
        return cls(0.0, np.zeros(n_features), np.zeros(n_features))

    def copy(self) -> RunningScales:
        """An independent copy."""
        return RunningScales(self.count, self.mean.copy(), self.squares.copy())

    def learn(self, X: Array, weights: Array | None) -> None:
        """Take in rows ``X`` (n, m), by the update of Chan, Golub and LeVeque (1983, eq. 2.1)."""
        count = float(len(X)) if weights is None else float(np.sum(weights))
        if count == 0.0:
            return
        weights = np.ones(len(X)) if weights is None else weights
        mean = weights @ X / count
        off = X - mean
        squares = weights @ np.square(off, out=off)
        RunningScales.merge(self, RunningScales(count, mean, squares))

    def merge(self, other: RunningScales) -> None:
        """Merge another one into this one."""
        total, step = self.count + other.count, other.mean - self.mean
        if total > 0.0:
            share = other.count / total
            self.squares = self.squares + other.squares + np.square(step) * (self.count * share)
            self.mean = self.mean + step * share
            self.count = total

    def read(self, *, intercept: bool) -> FeatureScales:
        """Return the scales, as :func:`mean_squares`."""
        whole = self.squares + self.count * np.square(self.mean)
        sums = self.squares if intercept else whole
        return FeatureScales.of(sums, whole, self.count)
