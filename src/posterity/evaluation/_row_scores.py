"""Log density, CRPS, intervals and probability transform of every row, each worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from posterity import kernel
from posterity.aliases import Array, Mask
from posterity.distributions import Categorical, Normal, StudentT

# An interval may be narrower than the digits of its ends: a target as near as that is inside.
ROUNDING = 16.0 * float(np.finfo(np.float64).eps)


@dataclass
class RowScores:
    """Scores of n predictions.

    Attributes
    ----------
    error, log_score, crps : (n,) arrays
    covered, width : list of (n,) arrays, one for each level
    u : (n,) array or None
        F(y); None where the distribution can't say it, or is discrete: then it is not uniform.
    """

    error: Array
    log_score: Array
    crps: Array
    covered: list[Mask]
    width: list[Array]
    u: Array | None


def row_scores(distribution: Any, y: Array, levels: Sequence[float]) -> RowScores:
    """Score predictions of `y`: by the kernel if they are normal or Student-t."""
    if isinstance(distribution, Categorical):
        raise TypeError("the model predicts labels: use progressive_classification(model, X, y)")
    if type(distribution) not in (Normal, StudentT) or distribution.shape != y.shape:
        return _score_by_distribution(distribution, y, levels)
    with np.errstate(all="ignore"):
        return _score_by_kernel(distribution, y, levels)


def _score_by_distribution(distribution: Any, y: Array, levels: Sequence[float]) -> RowScores:
    """Score by the distribution itself; where its mean is infinite, its median predicts.

    Such a prediction is no proper one, whatever its interval: it has no width, and is left out. Of
    a count it is the 5% quantile: the median of a rate of which nothing is known may be e^9.
    """
    centre = distribution.mean()
    limits = [distribution.interval(level) for level in levels]
    proper = np.isfinite(centre)
    if not proper.all():
        low = 0.05 if hasattr(distribution, "logpmf") else 0.5
        centre = np.where(proper, centre, distribution.ppf(low))
        limits = [(low, np.where(proper, high, np.inf)) for low, high in limits]
    slack = ROUNDING * np.abs(y)
    is_continuous = hasattr(distribution, "cdf") and not hasattr(distribution, "logpmf")
    return RowScores(
        y - centre,
        distribution.logpdf(y),
        distribution.crps(y),
        [(low - slack <= y) & (y <= high + slack) for low, high in limits],
        [high - low for low, high in limits],
        np.asarray(distribution.cdf(y)) if is_continuous else None,
    )


def _score_by_kernel(distribution: Any, y: Array, levels: Sequence[float]) -> RowScores:
    df = np.atleast_1d(getattr(distribution, "df", np.inf)).astype(np.float64, copy=False)
    given = (np.atleast_1d(distribution.loc), np.atleast_1d(distribution.scale), df)
    loc, scale, df = (np.ascontiguousarray(values) for values in given)
    y = np.ascontiguousarray(y)
    log_score, crps, central = kernel.t_scores(y, loc, scale, df)
    log_score -= np.log(scale)
    error = y - loc
    size, slack = np.abs(error), ROUNDING * np.abs(y)
    halves = [
        kernel.t_half_widths(len(y), scale, df, -float(ndtri(0.5 * (1.0 - level))))
        for level in levels
    ]
    found = RowScores(
        error,
        log_score,
        crps,
        [size <= half + slack for half in halves],
        [2.0 * half for half in halves],
        0.5 + 0.5 * central,
    )
    # A finite sum has finite entries: one cheap look spares the search nearly always.
    if not np.isfinite(crps.sum() + sum(half.sum() for half in halves)):
        _fill_in(found, distribution, y, levels)
    return found


def _fill_in(found: RowScores, distribution: Any, y: Array, levels: Sequence[float]) -> None:
    """Rows that the kernel leaves out: few degrees of freedom, far tails, flat or certain."""
    left_out = np.isnan(found.crps)
    for width in found.width:
        left_out |= np.isnan(width)
    rows = np.flatnonzero(left_out)
    asked = _score_by_distribution(distribution[rows], y[rows], levels)
    found.error[rows] = asked.error
    found.log_score[rows], found.crps[rows] = asked.log_score, asked.crps
    for k in range(len(levels)):
        found.covered[k][rows], found.width[k][rows] = asked.covered[k], asked.width[k]
    if found.u is not None and asked.u is not None:
        found.u[rows] = asked.u
