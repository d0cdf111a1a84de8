"""Rows that come again, where the coefficients could meet all different rows exactly.

There the rows say nothing of the noise but by the prior, and each row that comes again, or weighs
more, would be a row met by no noise: the evidence has no bound as the noise goes to 0.
"""

from __future__ import annotations

import math

import numpy as np

from posterity.factor import Factor
from posterity.noise import Noise

# Sizes of directions of columns of size 1, and of residuals beside the target, that are rounding:
# smooth functions of few rows magnify it.
ROUNDING, ROUNDING_OF_TARGET = 1e-8, 1e-7
# Rows that came so many times were met exactly by a law, such as targets that are set by levels.
MOST_TIMES = 8.0


def count_once(data: Factor, noise: Noise, n_flat: int) -> Factor:
    """The data with as much weight as rows that differ have, if that is what the noise is told by.

    All rows weigh less alike, as the triangle does not tell which of them came again. It is the
    same factor where none came again; where rows leave residuals, or no direction open, as then
    there are as many that differ; and where the noise is known, or has a proper prior.

    Examples
    --------
    >>> from posterity.noise import LearnedNoise
    >>> X, y = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), np.ones((2, 1))
    >>> data = Factor(3)
    >>> data.append(X, y, weights=np.array([2.0, 2.0]))
    >>> count_once(data, LearnedNoise(), 0).root.diagonal().round(9).tolist()
    [1.0, 1.0, 0.0]
    """
    if noise.improper is None or data.count > MOST_TIMES * data.n_coefficients:
        return data
    left, known = np.abs(data.residual_root).max(), np.abs(data.moments[n_flat:])
    if left >= ROUNDING_OF_TARGET * known.max(initial=0.0):
        return data
    told = _count_directions(data, n_flat)
    open_ = told < data.n_coefficients - 0.5
    if not (open_ and told * (1.0 + 1e-6) < data.count <= MOST_TIMES * told):
        return data
    once = Factor(data.n_coefficients, data.n_targets)
    once.set_triangle(data.triangle * math.sqrt(told / data.count), told, data.seen)
    return once


def _count_directions(data: Factor, n_flat: int) -> float:
    """The rank, in which a direction that is nearly lost in rounding counts nearly nothing."""
    below = data.root[n_flat:, n_flat:]
    below = below[below.any(axis=1)]
    sizes = np.sqrt(np.square(below).sum(axis=0))
    squares = np.linalg.svd(below / np.where(sizes > 0.0, sizes, 1.0), compute_uv=False) ** 2
    flat = float(np.count_nonzero(data.determined[:n_flat]))
    return flat + float(np.sum(squares / (squares + ROUNDING**2)))
