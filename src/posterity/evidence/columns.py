"""How large each feature is, read from the data's factor: what makes a prior scale-free."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor

Array = NDArray[np.float64]

# A centred column below this part of its size is what rounding left of a constant.
CONSTANT = 1e-12
# A pinned coefficient's precision, against the column's sum of squares. The leverage of a row of
# the feature's size is then below 1e-12, and the rounding in a constant's column (1e-24 of its
# sum of squares) moves the coefficient by 1e-36 of itself.
PINNED = 1e12
# The same where a feature was 0 in every row, so that there is no size to go by.
PINNED_AT_ZERO = 1e60
SMALLEST, LARGEST = 1e-300, 1e300


def mean_squares(data: Factor, *, intercept: bool) -> tuple[Array, NDArray[np.bool_]]:
    """Mean square of each feature, about its mean if there is an intercept, and which are pinned.

    Returns (m,) mean squares and (m,) booleans: True for a feature that has not varied, of which
    the data can say nothing.

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
    offset = 1 if intercept else 0
    squared = np.square(data.root[:, offset:])
    sums = squared[offset:].sum(axis=0)
    pinned = (sums <= CONSTANT**2 * squared.sum(axis=0)) | (sums < SMALLEST)
    return sums / data.count if data.count > 0.0 else sums, pinned


def prior_shapes(
    data: Factor, shapes: Array | None, *, intercept: bool
) -> tuple[Array, NDArray[np.bool_]]:
    """Shapes (L, m) to choose from, infinite where a feature is pinned, and which are (m,).

    They are those given, where a 0 says that a feature has no size yet, or else the mean squares.

    Examples
    --------
    >>> prior_shapes(Factor(2), np.array([[4.0, 0.0]]), intercept=False)
    (array([[ 4., inf]]), array([False,  True]))
    """
    if shapes is None:
        sizes, pinned = mean_squares(data, intercept=intercept)
        sizes = sizes[None]
    else:
        sizes = np.asarray(shapes, dtype=np.float64)
        pinned = np.logical_and.reduce(sizes <= 0.0, axis=0)
    return (np.where(pinned, np.inf, sizes) if pinned.any() else sizes), pinned


def pinning_precisions(data: Factor, *, intercept: bool) -> Array:
    """(m,) precisions that hold a coefficient at its prior mean, scale-free and finite.

    Examples
    --------
    >>> import numpy as np
    >>> data = Factor(3)
    >>> data.append(np.array([[3.0, 0.0], [4.0, 0.0]]), np.zeros((2, 1)), intercept=True)
    >>> pinning_precisions(data, intercept=True)
    array([2.5e+13, 1.0e+60])
    """
    sums = np.square(data.root[:, 1 if intercept else 0 :]).sum(axis=0)
    return np.where(sums < SMALLEST, PINNED_AT_ZERO, np.minimum(PINNED * sums, LARGEST))
