"""Unlearning under heavy tails: each row's site, as part of the present posterior, is found again.

What is known of a row's mean is cavity times site, and the site is the one that the row has in that
cavity (the fixed point of expectation propagation, Minka 2001). So rows of a fit, whose sites
agree, and the row that was learned last leave exactly, but for the scale; others leave with what
they would say today. While all rows are kept the others are fitted anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from posterity.aliases import Array
from posterity.factor.factor import NotInFactorError
from posterity.generalized._matched_noise import GROSS
from posterity.generalized._noise_tally import NoiseSums
from posterity.generalized._start import StoredRows
from posterity.generalized._working_noise import WorkingNoise
from posterity.kernel import find_moments
from posterity.posteriors import LinearPosterior
from posterity.posteriors._removal import explain_never_learned
from posterity.posteriors._site_removal import (
    LEAST_LEFT,
    MOST_ROUNDS,
    STREAM_TOLERANCE,
    TOGETHER_TOLERANCE,
    TOLERANCE,
)

# Weight and target less the prediction (n,) of rows with these errors and leverages (n,), and what
# they say of the logarithm of the scale: its slope.
Site = Callable[[Array, Array], tuple[Array, Array, Array]]

LEAST_SHARE = 1e-4


def make_matched_site(noise: WorkingNoise, scale: float, weights: Array) -> Site:
    """Sites of rows that were fitted together, by their moments."""
    code = noise.with_scale(1.0).kernel_code
    assert code is not None  # of all noise here

    def site(error: Array, leverage: Array) -> tuple[Array, Array, Array]:
        off = error / scale
        _, moved, ratio = find_moments(*code, off, np.zeros(len(off)), leverage, weights)
        share = np.maximum((1.0 - ratio) / ratio, LEAST_SHARE)
        inliers = np.abs(off) <= GROSS
        slope = off * moved / leverage - moved * moved / leverage - (ratio - 1.0) - weights
        weight = np.where(inliers, share / leverage / weights, 0.0)
        return weight, scale * moved * (1.0 + share) / share, np.where(inliers, slope, 0.0)

    return site


def in_order(noise: WorkingNoise, scale: float) -> Site:
    """Sites of rows that came one after another."""

    def site(error: Array, leverage: Array) -> tuple[Array, Array, Array]:
        weight, shift = noise.sites(error, leverage, np.full(len(error), scale))
        return weight, error + shift, np.zeros(len(error))

    return site


def take_out(
    inner: LinearPosterior, tally: NoiseSums, rows: StoredRows, site: Site, *, together: bool
) -> tuple[NoiseSums, float]:
    """Unlearn rows from ``inner``, in place; return the noise's sums without them.

    And the slope of what the others say of the logarithm of the scale, where all were fitted.
    """
    slope = 0.0
    last_first = range(len(rows.y) - 1, -1, -1)
    for part in [slice(None)] if together else [slice(i, i + 1) for i in last_first]:
        X, y, g = rows.X[part], rows.y[part], rows.weights[part]
        mean, leverage = inner.central().factor.predict(X, intercept=inner.intercept)
        if not np.isfinite(leverage).all():
            raise ValueError(explain_never_learned(f"row {int(np.argmax(~np.isfinite(leverage)))}"))
        weight, target, error, before, slope_of_row = _make_site_rows(
            site, y, mean[:, 0], leverage, g
        )
        left = inner.without_prior().factor
        with suppress(NotInFactorError):  # rows that left before have taken all of its direction
            gone = X, target[:, None], weight * g
            rounding = TOGETHER_TOLERANCE if together else STREAM_TOLERANCE
            left.reduce(*gone, intercept=inner.intercept, rounding=rounding, exact=together)
        inner.keep(left, round(float(np.sum(g))))
        tally = tally.without(error, before, g)
        slope -= float(np.sum(slope_of_row - g * weight * leverage))
    return tally, slope


def _make_site_rows(
    site: Site, y: Array, mean: Array, leverage: Array, g: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Weights and targets of sites that are part of what is known; errors and leverages before.

    And what they say of the scale.
    """
    weight, pull = np.zeros(len(y)), np.zeros(len(y))
    share, last = 1.0, math.inf
    for _ in range(MOST_ROUNDS):
        before = leverage / np.maximum(1.0 - leverage * g * weight, LEAST_LEFT)
        centre = mean - before * g * pull
        wanted, ahead, slope_of_row = site(y - centre, before)
        wanted = np.minimum(wanted, (1.0 - LEAST_LEFT) / (leverage * g))
        moved = float(np.max(np.abs(wanted - weight) * leverage * g, initial=0.0))
        weight = weight + share * (wanted - weight)
        pull = pull + share * (wanted * (centre + ahead - mean) - pull)
        if moved < TOLERANCE:
            break
        share, last = (max(0.7 * share, 0.05) if moved >= last else share), moved
    with np.errstate(divide="ignore", invalid="ignore"):
        target = np.where(weight > 0.0, mean + pull / weight, mean)
    return weight, target, y - centre, before, slope_of_row
