"""Rows of a factor in other units of their noise, beside a prior that stays."""

from __future__ import annotations

import math

from posterity.factor import Factor
from posterity.posteriors.gaussian import LinearPosterior


def change_units(mean: LinearPosterior, spread: LinearPosterior, log_unit: float) -> None:
    """Have the rows' precisions, and what is known of them, in units exp(-log_unit) as large.

    Rows of the mean are scaled, their prior is not; squares of the spread are shifted in logs.
    """
    if log_unit != 0.0:
        rescale(mean.factor, mean.prior, math.exp(log_unit))
        shift(spread.factor, spread.prior, log_unit)


def rescale(factor: Factor, prior: Factor, weight: float) -> None:
    """Multiply what rows know, in place, but neither their count nor what the prior knows.

    Examples
    --------
    >>> import numpy as np
    >>> prior, factor = Factor(1), Factor(1)
    >>> prior.append(np.ones((1, 1)), np.zeros((1, 1)))
    >>> factor.append(np.ones((3, 1)), np.zeros((3, 1)))
    >>> rescale(factor, prior, 4.0)
    >>> float(factor.root[0, 0] ** 2), factor.count
    (9.0, 3.0)
    """
    count, seen = factor.count, factor.seen
    scaled = factor.copy()
    scaled.scale(weight)
    kept = prior.copy()
    kept.scale(abs(1.0 - weight))
    if kept.rank and weight > 1.0:
        scaled.take_out(kept)
    elif kept.rank:
        scaled.merge(kept)
    factor.set_triangle(scaled.triangle, count, seen)


def shift(factor: Factor, prior: Factor, by: float) -> None:
    """Add ``by`` to all targets, in place; the first column is the intercept's, of flat prior.

    Examples
    --------
    >>> import numpy as np
    >>> factor = Factor(1)
    >>> factor.append(np.ones((2, 1)), np.zeros((2, 1)))
    >>> shift(factor, Factor(1), 3.0)
    >>> factor.coefficients()
    array([[3.]])
    """
    triangle = factor.triangle.copy()
    p = factor.n_coefficients
    triangle[:p, p] += by * (triangle[:p, 0] - prior.triangle[:p, 0])
    if not math.isfinite(by):
        raise FloatingPointError(
            "the noise precisions of the models differ too much to merge: fit both models with "
            "targets in the same units"
        )
    factor.set_triangle(triangle, factor.count, factor.seen)
