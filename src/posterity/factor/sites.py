"""Learning observations by their sites: Gaussian rows that approximate a likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from posterity import kernel
from posterity.aliases import Array
from posterity.factor.factor import Factor
from posterity.factor.gram import Products
from posterity.factor.rows import SiteRows
from posterity.factor.usable import check_rows

# Values in rows from which their products take less time than their rotations.
MANY_VALUES = 2**16


class SiteCode(NamedTuple):
    """A likelihood that the kernel knows, and the approximation of its sites."""

    code: int
    parameters: tuple[float, ...]
    moments: bool


@dataclass(frozen=True)
class OneStepSites:
    """Mean and variance (n,) of eta before each row, offset included, and the row's site (n,)."""

    mean: Array
    variance: Array
    log_normalizer: Array
    precision: Array
    target: Array


def summarize_sites(
    X: Array, precision: Array, target: Array, intercept: bool, condition: float
) -> Factor:
    """A factor of site rows; of many by products, unless their condition is beyond this one.

    Examples
    --------
    >>> one = summarize_sites(np.ones((2, 1)), np.ones(2), np.array([1.0, 2.0]), False, 1e3)
    >>> one.coefficients(), one.count
    (array([[1.5]]), 2.0)
    """
    if X.size >= MANY_VALUES:
        triangle = Products.of(X, target, precision, intercept=intercept).triangle(condition)
        if triangle is not None:
            return Factor.of(triangle, float(np.sum(precision)))
    factor = Factor(X.shape[1] + int(intercept))
    factor.append(X, target[:, None], precision, intercept=intercept)
    return factor


def learn_sites(
    factor: Factor, site: SiteCode, rows: SiteRows, discounts: Array | None = None, **fading: Any
) -> OneStepSites:
    """Learn rows in order in ``factor``, whose noise has precision 1.

    All before row i is first discounted by discounts[i]; with ``prior``, which is in the factor,
    everything but that. Other keywords are those of ``kernel.learn_sites``.
    Raises ``FloatingPointError``, changing nothing, when rows are not usable.

    Examples
    --------
    >>> factor = Factor(1)
    >>> factor.append(np.ones((1, 1)), np.zeros((1, 1)))
    >>> rows = SiteRows(np.ones((1, 1)), np.ones(1), np.ones(1), np.zeros(1), np.zeros(1))
    >>> logit = SiteCode(1, (0.0, 0.0, 0.0), False)
    >>> learn_sites(factor, logit, rows).variance, factor.coefficients().round(4)
    (array([1.]), array([[0.4011]]))
    """
    check_rows(rows.X, rows.y)  # before: what fades within the call would leave no trace
    triangle = factor.triangle.copy()
    outputs = kernel.learn_sites(
        triangle,
        site.code,
        site.parameters,
        site.moments,
        rows.X,
        rows.y,
        rows.weights,
        rows.intercept,
        rows.offsets,
        discounts,
        **fading,
    )
    before = OneStepSites(*outputs)
    precision = before.precision
    total = float(np.sum(precision))
    if discounts is None:
        count = factor.count + total
    else:
        count = kernel.fading_counts(factor.count, len(rows.X), precision, discounts)[-1]
    factor.set_triangle(triangle, count, factor.seen + total)
    return before
