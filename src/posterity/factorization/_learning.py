"""Sweeps of a factorization machine over all its rows, which learn levels, prior and noise."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from posterity.aliases import Array
from posterity.factorization._bound import (
    compute_bound,
    compute_logistic_curvature,
    expect_logistic,
    sum_spreads,
)
from posterity.factorization._sweeps import (
    SideRows,
    compute_errors,
    compute_moments,
    sum_moments,
    sum_statistics,
    sum_variances,
    update_levels,
)
from posterity.factorization.posterior import FactorizationPosterior

# Sweeps by the slope of the likelihood of labels; all but the first learn the prior, too.
MATCHED_SWEEPS = 6
# How far the intercept of log odds may go in one sweep.
LONGEST_STEP = 1.0


def sort_rows(of: FactorizationPosterior, *, bound: bool = True) -> list[SideRows]:
    """The rows by side, as rows of numbers; of labels by their ``bound`` or their slope."""
    y, weights = of.y / of.unit, of.weights
    if of.labels:
        mean, variance = compute_moments(of.codes, of.values, of)
        if bound:
            curvature = compute_logistic_curvature(np.sqrt(mean**2 + variance))
            y = (of.y - 0.5) / curvature
        else:
            share, curvature = expect_logistic(mean, variance)
            y = mean + (of.y - share) / curvature
        weights = of.weights * curvature
    return [
        SideRows.of(side, of.codes, of.values, y, of.sizes, weights)
        for side in range(len(of.means))
    ]


def sweep(of: FactorizationPosterior, most: int, tolerance: float) -> None:
    """Update each side in turn until the bound rises by less than ``tolerance`` a row.

    The bound of labels makes posteriors too narrow, and then their prior. A few sweeps more
    take the slope of the likelihood, from wide priors on.
    """
    of.bounds = []
    sorted_rows: list[SideRows] = []
    for _ in range(most):
        if of.labels or not sorted_rows:
            sorted_rows = sort_rows(of)
            moments = [sum_moments(rows, of) for rows in sorted_rows]
        _sweep_once(of, sorted_rows, moments)
        bounds = of.bounds
        bounds.append(compute_bound(of))
        if len(bounds) > 1 and bounds[-1] - bounds[-2] < tolerance * len(of.y):
            break
    if of.labels:
        of.prior_precisions[:, 0] = np.minimum(of.prior_precisions[:, 0], 1.0)
        for number in range(min(MATCHED_SWEEPS, most + 2)):
            sorted_rows = sort_rows(of, bound=False)
            moments = [sum_moments(rows, of) for rows in sorted_rows]
            _sweep_once(of, sorted_rows, moments, matched=True, learns_prior=number > 0)
    for rows in sorted_rows:  # later rows add to sums of one and the same weights
        sum_statistics(rows, of, moments[rows.side])
    of.log_evidence = of.bounds[-1] - float(of.weights.sum() * np.log(of.unit))
    of.swept = len(of.y)
    of.drop_path()


def _sweep_once(
    of: FactorizationPosterior,
    sorted_rows: list[SideRows],
    moments: list[tuple[Array, Array]],
    *,
    matched: bool = False,
    learns_prior: bool = True,
) -> None:
    for rows in sorted_rows:
        if rows.side > 0:  # those of the first are as they were
            moments[rows.side] = sum_moments(rows, of)
        update_levels(rows, of, of.noise_precision, moments[rows.side])
        _reset_to_prior(of, rows)
        if learns_prior:
            _learn_prior(of, rows.side)
    for rows in sorted_rows[:-1]:
        moments[rows.side] = sum_moments(rows, of)
    _learn_offset_and_noise(of, sorted_rows, moments, matched)


def _reset_to_prior(of: FactorizationPosterior, rows: SideRows) -> None:
    """Set levels without rows to the prior of their side."""
    without = np.ones(len(of.means[rows.side]), dtype=bool)
    without[rows.levels] = False
    of.precisions[rows.side][without] = 0.0
    of.products[rows.side][without] = 0.0
    of.means[rows.side][without] = of.prior_means[rows.side]
    of.covariances[rows.side][without] = np.diag(1.0 / of.prior_precisions[rows.side])


def _learn_prior(of: FactorizationPosterior, side: int) -> None:
    """The best mean and precisions of a side's levels, under a weak prior of their own."""
    mean = of.means[side]
    if bool((of.values[:, side] == 1.0).all()):  # a shift that the intercept takes over
        shift = float(mean[:, 0].mean())
        mean[:, 0] -= shift
        of.offset += shift
    of.prior_means[side] = mean.sum(axis=0) / (len(mean) + 1)
    of.prior_means[side, 0] = 0.0
    of.prior_precisions[side] = (len(mean) + 1) / sum_spreads(of, side)


def _learn_offset_and_noise(
    of: FactorizationPosterior,
    sorted_rows: list[SideRows],
    moments: list[tuple[Array, Array]],
    matched: bool,
) -> None:
    last, count = sorted_rows[-1], float(of.weights.sum())
    errors = compute_errors(last, of)
    total = float(last.weights.sum())
    step = float(last.weights @ errors) / total
    if matched:  # with a row of half a label: one label alone has no mode
        share = float(expit(of.offset))
        slope = share * (1.0 - share)
        step = (total * step + 0.5 - share) / (total + slope)
        step = min(max(step, -LONGEST_STEP), LONGEST_STEP)
    of.offset += step
    of.offset_variance = 1.0 / (of.noise_precision * total)
    variance = sum_variances(sorted_rows, moments, of)
    of.residual = float(last.weights @ (errors - step) ** 2) + variance
    if not of.noise_is_known:
        of.noise_shape = 0.5 * count
        of.noise_rate = 0.5 * (of.residual + total * of.offset_variance)
