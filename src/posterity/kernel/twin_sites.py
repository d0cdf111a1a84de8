"""Learning through sites again, slowly and plainly in NumPy: the oracle of ``learn_sites``.

The sites themselves have their twins in ``posterity.likelihoods``, which is given as ``find``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from posterity.kernel.twin import _append_row, _predict_row, stacked_rows

Array = NDArray[np.float64]
# Precision, target and log normaliser, given target, mean, variance and weight.
Find = Callable[[float, float, float, float], tuple[float, float, float]]


def learn_sites(
    find: Find,
    triangle: Array,
    X: Array,
    y: Array,
    weights: Array | None,
    intercept: bool,
    offsets: Array | None = None,
    discounts: Array | None = None,
    prior: Array | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """As the kernel's; with a prior, that weighs exactly 1 before each row."""
    told = np.empty((5, len(X)))
    p = len(triangle) - 1
    for i, row in enumerate(stacked_rows(X, None, 1, intercept)):
        if discounts is not None:
            triangle *= np.sqrt(discounts[i])
            if prior is not None:
                for line in np.sqrt(1.0 - discounts[i]) * prior[:, : p + 1]:
                    _append_row(triangle, line.copy())
        mean, variance = _predict_row(triangle, row, p)
        offset = 0.0 if offsets is None else offsets[i]
        weight = 1.0 if weights is None else weights[i]
        precision, target, log_normalizer = find(y[i], mean[0] + offset, variance, weight)
        told[:, i] = mean[0] + offset, variance, log_normalizer, precision, target
        row[p] = target - offset
        _append_row(triangle, np.sqrt(precision) * row)
    return told[0], told[1], told[2], told[3], told[4]
