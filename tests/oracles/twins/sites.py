"""Learning through sites again, slowly and plainly in NumPy: the oracle of ``learn_sites``.

The sites themselves have their twins in ``posterity.likelihoods``, which is given as ``find``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from twins.rows import _append_row, _predict_row, stack_rows

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
    before = np.empty((5, len(X)))
    p = len(triangle) - 1
    for i, row in enumerate(stack_rows(X, None, 1, intercept)):
        if discounts is not None:
            triangle *= np.sqrt(discounts[i])
            if prior is not None:
                for line in np.sqrt(1.0 - discounts[i]) * prior[:, : p + 1]:
                    _append_row(triangle, line.copy())
        mean, variance = _predict_row(triangle, row, p)
        offset = 0.0 if offsets is None else offsets[i]
        weight = 1.0 if weights is None else weights[i]
        precision, target, log_normalizer = find(y[i], mean[0] + offset, variance, weight)
        before[:, i] = mean[0] + offset, variance, log_normalizer, precision, target
        row[p] = target - offset
        _append_row(triangle, np.sqrt(precision) * row)
    return before[0], before[1], before[2], before[3], before[4]


def match_rows(
    find: Callable[[Array, Array, Array], tuple[Array, Array, Array]],
    y: Array,
    fit: Array,
    leverage: Array,
    weights: Array,
    weight: Array,
    target: Array,
    scale: float,
    bold: float,
) -> tuple[Array, Array, Array, float, float, float]:
    """As the kernel's; ``find`` are moments of errors, given relative variances and powers."""
    power, copies = np.minimum(weights, 1.0), np.maximum(weights, 1.0)
    own = power * weight
    variance = np.maximum(leverage / np.maximum(1.0 - leverage * own, 1e-6), 1e-14)
    mean = fit - variance * own * (target - fit)
    off = (y - mean) / scale
    log_mass, moved, ratio = find(off, variance, power)
    raw = (1.0 - ratio) / ratio
    share = np.maximum(raw, 1e-4)
    given = copies / variance * leverage
    kept = max(float(given @ raw) / float(given @ share), 0.2)
    pull = moved / variance
    slope = copies @ (-power + off * pull - variance * pull * pull - (ratio - 1.0))
    slope -= weights @ (weight * leverage)
    gain = 1.0 + own * variance
    each = log_mass - power * np.log(scale) + 0.5 * np.log(gain)
    each += 0.5 * own / gain * np.square((target - mean) / scale)
    evidence = copies @ each
    evidence -= 0.5 * weights @ (weight * np.square((target - fit) / scale))
    middle = mean + scale * moved
    full, there = kept * share / variance / power, middle + scale * moved / (share * kept)
    mixed = weight + bold * (full - weight)
    move = np.abs(middle - fit) / scale / np.sqrt(np.maximum(leverage, 1e-300))
    outputs = float(slope), float(evidence), float(move.max())
    square = np.square(off) / (1.0 + variance)
    return mixed, target + bold * full / mixed * (there - target), square, *outputs
