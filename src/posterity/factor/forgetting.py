"""Learning rows one after another with forgetting: discounts, random walks and windows.

Each function learns in place, returns what was predicted of each row before it, and raises
``FloatingPointError``, changing nothing, when the rows are not usable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from posterity import kernel
from posterity.aliases import Array, Indices
from posterity.factor.factor import Factor, OneStepPredictions
from posterity.factor.rows import Rows
from posterity.factor.usable import check_rows

RowPredictions = tuple[Array, Array, Array]

# With a smaller discount between two rows, old data leave no digit beside the prior.
SMALLEST_DISCOUNT = 1e-12
# Rows learned at once: sums of the logarithms of more discounts would lose digits.
BLOCK_ROWS = 1024


def learn_fading(
    factor: Factor, rows: Rows, discounts: Array, share: float = 1.0
) -> OneStepPredictions:
    """Discount everything before each row; the row's own weight is multiplied by ``share``."""
    weights = rows.weights
    if share != 1.0:
        weights = np.full(len(rows), share) if weights is None else share * weights
    scaled = replace(rows, weights=weights)
    return learn_in_order(kernel.learn_rows, factor, scaled, discounts, discounts, seen=rows.total)


def learn_stabilized(
    factor: Factor, prior: Factor, rows: Rows, discounts: Array
) -> OneStepPredictions:
    """Discount everything but the prior, which is in the factor, before each row."""
    discounts = np.maximum(discounts, SMALLEST_DISCOUNT)
    given = discounts, prior.triangle
    return learn_in_order(kernel.learn_stabilized, factor, rows, discounts, *given)


def absorb_stabilized(factor: Factor, prior: Factor, rows: Rows, discounts: Array) -> None:
    """Learn as :func:`learn_stabilized` does, all rows at once and without predictions."""
    check_rows(rows.X, rows.y, rows.weights)
    discounts = np.maximum(discounts, SMALLEST_DISCOUNT)
    triangle, p, q = factor.triangle.copy(), factor.n_coefficients, len(factor.triangle)
    targets = np.ascontiguousarray(prior.triangle[:, p:q])
    ones = factor.lacks_intercept_column(rows.X, rows.intercept)
    first = 0
    while first < len(rows):
        # If more faded at once, the old data would lose digits beside the new rows.
        age = -np.cumsum(np.log(discounts[first : first + BLOCK_ROWS]))
        size = max(int(np.searchsorted(age, -math.log(SMALLEST_DISCOUNT))), 1)
        part, faded = slice(first, first + size), float(age[size - 1])
        triangle *= math.exp(-0.5 * faded)
        if faded > 0.0 and prior.rank:
            refreshed = np.full(q, -math.expm1(-faded))
            kernel.append_block(
                triangle, factor.n_targets, prior.triangle[:, :p], targets, refreshed, False
            )
        weights = np.exp(age[:size] - faded)
        if rows.weights is not None:
            weights *= rows.weights[part]
        kernel.append_block(triangle, factor.n_targets, rows.X[part], rows.y[part], weights, ones)
        first += size
    factor.check_underflow(triangle, rows.X, rows.y, rows.weights)
    counts = kernel.fading_counts(factor.count, len(rows), rows.weights, discounts)
    factor.set_triangle(triangle, counts[-1], factor.seen + rows.total)


def slide(
    factor: Factor, prior: Factor, rows: Rows, start: int, leave: Indices
) -> OneStepPredictions:
    """Slide a window over rows start..n; the factor holds the prior and rows 0..start.

    Rows before leave[i] are out when row start + i is predicted, and rows before the last of
    ``leave`` (n - start + 1,) at the end.
    """
    check_rows(rows.X, rows.y, rows.weights)  # before: what fades or leaves would leave no trace
    triangle = factor.triangle.copy()
    before = kernel.slide(
        triangle,
        factor.n_targets,
        rows.X,
        rows.y,
        rows.weights,
        factor.lacks_intercept_column(rows.X, rows.intercept),
        start,
        leave,
        prior.triangle,
    )
    factor.check_underflow(triangle, rows.X, rows.y, rows.weights)
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    so_far = np.concatenate([[0.0], np.cumsum(weights)])
    counts = so_far[start:] - so_far[leave]
    new = float(np.sum(weights[start:]))
    factor.set_triangle(triangle, float(counts[-1]), factor.seen + new)
    return OneStepPredictions(*before, counts[:-1])


def learn_in_order(
    learn: Callable[..., RowPredictions],
    factor: Factor,
    rows: Rows,
    discounts: Array,
    *how: Any,
    seen: float | None = None,
    spent: int | None = None,
) -> OneStepPredictions:
    """Let a function of the kernel ``learn`` rows in order; the count is discounted before each.

    Rows that were needed to determine directions of a flat prior, as many as were ``spent`` already
    or None, tell nothing of the noise: their count does not fade with what is known of it.
    """
    check_rows(rows.X, rows.y, rows.weights)  # before: what fades or leaves would leave no trace
    triangle = factor.triangle.copy()
    ones = factor.lacks_intercept_column(rows.X, rows.intercept)
    before = learn(triangle, factor.n_targets, rows.X, rows.y, rows.weights, ones, *how)
    factor.check_underflow(triangle, rows.X, rows.y, rows.weights)
    if spent is None:
        counts = kernel.fading_counts(factor.count, len(rows), rows.weights, discounts)
    else:
        counts = _count_beyond_spent(factor.count, rows, discounts, spent, before[1])
    factor.set_triangle(triangle, counts[-1], factor.seen + (rows.total if seen is None else seen))
    return OneStepPredictions(*before, counts[:-1])


def _count_beyond_spent(
    count: float, rows: Rows, discounts: Array, spent: int, leverage: Array
) -> Array:
    """(n + 1,) sums of weights, of which those spent on flat directions do not fade."""
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    spends = np.isinf(leverage) & (weights > 0.0)
    beyond = kernel.fading_counts(count - spent, len(rows), weights - spends, discounts)
    return np.asarray(beyond + spent + np.concatenate([[0.0], np.cumsum(spends)]))
