"""Base of noises matched by moments: starting values and gross errors.

The posterior of heavy-tailed noise can have two modes: a wide noise that explains all rows, and a
narrow one that explains most of them. Both are climbed, and the evidence says which is right.

Rows hundreds of scales away are no noise of any such kind, but errors: the wrong unit, a value that
stands for "missing". A noise that explains them explains nothing else. So a third mode leaves them
out, says of each only that the logarithm of its size is anything, and is weighed with the others.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from posterity.aliases import Array, Mask
from posterity.factor import Factor
from posterity.generalized._interior_point import (
    GAP_TOLERANCE,
    ROUGH_GAP_TOLERANCE,
    minimize_check_loss,
)
from posterity.generalized._matching import (
    MOST_ROUNDS,
    ROUGH_TOLERANCE,
    TOLERANCE,
    Fit,
    Matcher,
    Sites,
    Solution,
)
from posterity.generalized._working_noise import Mode, Rows, SearchStart, Spread, WorkingNoise

# Rows from which starting values are found.
START_ROWS = 2_000
# Scales beyond which a row may be a gross error: Student-t noise of 4 degrees of freedom goes
# there once in 10^9 rows. The logarithm of its size is anything within such a range.
GROSS, LOG_RANGE = 300.0, 100.0
MOST_LOOKS = 4
# Rounds after which a learned prior is updated; and those of a rough search.
FEW_ROUNDS, SOME_ROUNDS = 3, 15
# With fewer rows the mode that is found depends on the start.
ROWS_A_COEFFICIENT = 10
# A second start has narrower noise, by this factor.
NARROWER = 0.5


class LocalMode(NamedTuple):
    """Log evidence, which rows are no gross errors, and what stands for them."""

    log_evidence: float
    inliers: Mask
    best: Sites


class MatchedNoise(WorkingNoise):
    """A noise that is matched; it says what the likelihood is, and where to begin."""

    @property
    def core_ratio(self) -> float:
        """Standard deviation of the noise's core, over its scale."""
        raise NotImplementedError

    @property
    def scale_of_normal(self) -> float:
        """The scale that normal noise of standard deviation 1 gives."""
        return 1.0 / self.core_ratio

    def approximate_sites(self, rows: Rows, fit: Array, scale: float) -> Sites:
        """Rows that stand for the likelihood around a fit, roughly."""
        raise NotImplementedError

    def mode(self, rows: Rows, prior: Factor, known_scale: float | None, last: SearchStart) -> Mode:
        """Means and scale of the posterior that matches the rows' moments."""
        settled, rounds = (ROUGH_TOLERANCE, SOME_ROUNDS) if last.rough else (TOLERANCE, MOST_ROUNDS)
        if last.nearly:
            settled = ROUGH_TOLERANCE
        if isinstance(last, Mode):
            inliers, rounds = last.weight > 0.0, FEW_ROUNDS
            start = Sites(last.scale, last.weight[inliers], last.target[inliers])
        else:
            inliers, start = self._begin(rows, prior, known_scale, last)
        matcher = self._make_matcher(rows.select(inliers), prior, last)
        known = known_scale is not None
        matched = matcher.search_mode(start, known=known, settled=settled, rounds=rounds)
        weight, target = np.zeros(len(rows.y)), np.zeros(len(rows.y))
        weight[inliers], target[inliers] = matched.weight, matched.target
        fit, leverage = matched.fit, matched.leverage
        if not inliers.all():
            factor = rows.stack_on_prior(prior, target, weight)
            both, leverage = factor.predict(rows.X, intercept=rows.intercept)
            fit = both[:, 0]
        spread = matched.scale * rows.residual_df
        return Mode(
            matched.scale,
            fit,
            weight,
            target,
            spread,
            leverage,
            matched.log_evidence,
            matched.settled,
            rough=last.rough,
            in_order=last.in_order,
        )

    def estimate_scale_uncertainty(
        self, rows: Rows, prior: Factor, known_scale: float | None, mode: Mode
    ) -> Spread | None:
        """Return the uncertainty of the scale at this mode."""
        inliers = mode.weight > 0.0
        matcher = self._make_matcher(rows.select(inliers), prior, mode)
        if mode.rough:
            if known_scale is not None or mode.in_order:
                return Spread(mode.scale, math.inf, 1.0, 0.0)
            return matcher.approximate_spread(mode)
        assert mode.leverage is not None
        weight, target = mode.weight[inliers], mode.target[inliers]
        if known_scale is not None or mode.in_order:
            return Spread(mode.scale, math.inf, 1.0, mode.log_evidence)
        factor = matcher.rows.stack_on_prior(prior, target, weight)
        solution = Solution(factor, mode.fit[inliers], mode.leverage[inliers])
        spread = matcher.spread(Fit(mode.scale, weight, target, solution, mode.log_evidence))
        gross = _compute_log_gross(np.abs(rows.y - mode.fit)[~inliers], rows.weights, inliers)
        return replace(spread, log_evidence=spread.log_evidence + gross)

    # ---- inner ---------------------------------------------------------------------------------

    def _make_matcher(self, rows: Rows, prior: Factor, last: SearchStart) -> Matcher:
        largest = float(np.abs(rows.y).max(initial=0.0)) + rows.floor
        core_ratio = self.core_ratio if last.in_order else None
        least, most = max(rows.floor, rows.rounding_sd / self.core_ratio), 10.0 * largest
        unit, information = self.with_scale(1.0), self.scale_information
        return Matcher(rows, prior, unit, information, least, most, core_ratio)

    def _begin(
        self, rows: Rows, prior: Factor, known: float | None, last: SearchStart
    ) -> tuple[Mask, Sites]:
        """Return which rows are no gross errors, and the best local mode to begin from."""
        some = rows.thin(START_ROWS)
        local_modes = self._find_local_modes(some, prior, known, last)
        inliers, best = max(local_modes, key=lambda local_mode: local_mode.log_evidence)[1:]
        if len(some.y) == len(rows.y):
            return inliers, best
        chosen = some.select(inliers)
        fit = rows.fitted(chosen.stack_on_prior(prior, best.target, best.weight))
        all_honest = np.ones(len(rows.y), dtype=bool)
        if not inliers.all():
            all_honest = np.abs(rows.y - fit) <= GROSS * best.scale
        return all_honest, self.approximate_sites(
            rows.select(all_honest), fit[all_honest], best.scale
        )

    def _find_local_modes(
        self, rows: Rows, prior: Factor, known: float | None, last: SearchStart
    ) -> list[LocalMode]:
        fit, starts = self._find_starts(rows, prior, known, last)
        gross: list[LocalMode] = []
        if known is None:
            # Many gross errors mislead least absolute deviations, but not the targets' median.
            for seen_from in (fit, np.full(len(rows.y), rows.median(rows.y))):
                gross += self._fit_without_outliers(rows, prior, seen_from, last)
        all_ = np.ones(len(rows.y), dtype=bool)
        if last.rough and len(starts) == 1 and not gross:
            return [LocalMode(0.0, all_, self.approximate_sites(rows, *starts[0]))]
        first = self._search_local_mode(rows, all_, prior, known, *starts[0], last)
        others = [
            self._search_local_mode(rows, all_, prior, known, *at, last, first) for at in starts[1:]
        ]
        return [LocalMode(one.log_evidence, all_, one) for one in (first, *others)] + gross

    def _find_starts(
        self, rows: Rows, prior: Factor, known: float | None, last: SearchStart
    ) -> tuple[Array, list[tuple[Array, float]]]:
        """A robust fit, and the fits and scales to start from."""
        if last.fit is not None:
            fit = last.fit[:: -(-len(last.fit) // len(rows.y))]
            narrow = self._estimate_narrow_scale(rows, fit)
            less = known is None and narrow < NARROWER * last.scale
            return fit, [(fit, last.scale), *([(fit, narrow)] if less else [])]
        fit = _fit_least_absolute(rows, prior, rows, last.rough)
        starts = [(fit, known or self._estimate_narrow_scale(rows, fit))]
        if not last.in_order:
            broad = rows.stack_on_prior(prior, rows.y, np.ones(len(rows.y)))
            wide = math.sqrt(float(broad.residual()[0, 0]) / rows.residual_df) / self.core_ratio
            starts.append((rows.fitted(broad), known or max(wide, rows.floor)))
        return fit, starts

    def _search_local_mode(
        self,
        rows: Rows,
        inliers: Mask,
        prior: Factor,
        known: float | None,
        fit: Array,
        scale: float,
        last: SearchStart,
        known_mode: Fit | None = None,
    ) -> Fit:
        some = rows.select(inliers)
        start = self.approximate_sites(some, fit[inliers], scale)
        matcher = self._make_matcher(some, prior, last)
        rounds = SOME_ROUNDS if last.rough else MOST_ROUNDS
        return matcher.search_mode(
            start,
            known=known is not None,
            settled=ROUGH_TOLERANCE,
            rounds=rounds,
            known_mode=known_mode,
        )

    def _fit_without_outliers(
        self, rows: Rows, prior: Factor, fit: Array, last: SearchStart
    ) -> list[LocalMode]:
        """Return the local mode without gross errors, from a fit; none where there are none."""
        scale = self._estimate_narrow_scale(rows, fit)
        inliers = np.zeros(len(rows.y), dtype=bool)
        for _ in range(MOST_LOOKS):
            before, inliers = inliers, np.abs(rows.y - fit) <= GROSS * scale
            few = float(rows.weights[inliers].sum()) <= max(0.5 * rows.total, prior.n_coefficients)
            if inliers.all() or few:
                return []
            if (inliers == before).all():
                break
            some = rows.select(inliers)
            fit = _fit_least_absolute(some, prior, rows, last.rough)
            scale = self._estimate_narrow_scale(some, fit[inliers])
        best = self._search_local_mode(rows, inliers, prior, None, fit, scale, last)
        gross = _compute_log_gross(np.abs(rows.y - fit)[~inliers], rows.weights, inliers)
        return [LocalMode(best.log_evidence + gross, inliers, best)]

    def _estimate_narrow_scale(self, rows: Rows, fit: Array) -> float:
        """Scale that the median error says."""
        return rows.estimate_size(rows.y - fit) / self.core_ratio


def _compute_log_gross(off: Array, weights: Array, inliers: Mask) -> float:
    """Log probability of errors so large, any share of the rows being as likely."""
    if inliers.all():
        return 0.0
    k, n = float(weights[~inliers].sum()), float(weights.sum())
    sizes = float(weights[~inliers] @ np.log(2.0 * LOG_RANGE * np.maximum(off, 1e-300)))
    return float(betaln(k + 1.0, n - k + 1.0)) - sizes


def _fit_least_absolute(rows: Rows, prior: Factor, at: Rows, rough: bool) -> Array:
    """Least absolute deviations of rows, fitted ``at`` others."""
    # A prior too weak to matter, so that few rows do.
    weak = prior.copy()
    size = float(np.mean(np.abs(rows.y - rows.median(rows.y))))
    weak.scale(1e-6 / max(size, rows.floor))
    few = len(rows.y) < ROWS_A_COEFFICIENT * len(prior.root)
    return at.compute_fitted(
        minimize_check_loss(
            rows, weak, 0.5, GAP_TOLERANCE if few and not rough else ROUGH_GAP_TOLERANCE
        )
    )
