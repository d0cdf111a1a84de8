"""Expectation propagation for noise of unknown scale, by matching moments of rows.

Each row's likelihood stands as a Gaussian row, of a weight and a target that give the posterior of
its own fit the right mean and variance, given all others (Minka 2001). At the fixed point the
derivative of the evidence by the log of the scale is that of the rows' own normalisers (Opper and
Winther 2005), so the scale climbs to its most probable value along with the rows. A few more
scales around it tell how well it is known (Rue, Martino and Chopin 2009), and how much wider that
makes everything else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, polygamma

from posterity.aliases import Array
from posterity.evidence.secant import SecantSteps
from posterity.factor import Factor
from posterity.generalized._core import compute_core_variance
from posterity.generalized._working_noise import Mode, Rows, Spread, solution
from posterity.kernel import match_rows
from posterity.likelihoods import Likelihood

MOST_ROUNDS = 200
# Tolerances of the fits' moves in their standard deviations: of a result, and of a rough search.
TOLERANCE, ROUGH_TOLERANCE = 1e-8, 1e-3
# Size of a step, at first and at least; it is 1 if there are this many rows for
# each coefficient, as a row then hardly affects its own fit.
FIRST_STEP_SIZE, SMALLEST_STEP_SIZE = 0.8, 0.02
# Steps grow again if a move is smaller than this share of the last one.
STEADY_RATIO = 0.7
ROWS_A_COEFFICIENT = 50
# The scale moves by no more than a factor of e in a round.
LONGEST_STEP = 1.0
# A step so short follows the chord of the last two (the secant method), and is so much longer at
# most; where a row has so many others for each coefficient, as fits otherwise follow more slowly.
CHORD_STEP, LARGEST_STEP_RATIO, CHORD_ROWS = 0.1, 4.0, 10
# Fits whose scales and means, in standard deviations, differ by less belong to the same mode.
SAME_SCALE, SAME_FIT = 0.03, 0.1
# Scales that are tried, so many standard deviations of its logarithm apart. Of many rows three do,
# where these are as far apart as a row's information tells.
STEP = 1.25
PLACES = STEP * np.arange(-2.0, 3.0)
MANY_ROWS, INFORMATION_RATIO = 5_000, 1.5


@dataclass(frozen=True)
class Sites:
    """Rows that stand for the likelihood: (n,) relative weights and targets, at a scale."""

    scale: float
    weight: Array
    target: Array


class Solution(NamedTuple):
    """Posterior given the sites, at any scale: factor, fit (n,) and its relative variances (n,)."""

    factor: Factor
    fit: Array
    leverage: Array


@dataclass(frozen=True)
class Fit(Sites):
    """The same where nothing moves any more: what they say, and log p(y, scale)."""

    solution: Solution
    log_evidence: float
    settled: bool = False

    @property
    def fit(self) -> Array:
        """(n,) fitted values."""
        return self.solution.fit

    @property
    def leverage(self) -> Array:
        """(n,) their relative variances."""
        return self.solution.leverage


class Round(NamedTuple):
    """The sites that follow, how far fits move and the log scale; and all of those of ``now``."""

    ahead: Sites
    move: float
    step: float
    now: Sites
    solution: Solution
    evidence: float


@dataclass(frozen=True)
class Matcher:
    """Rows, a prior relative to the noise, and the likelihood of scale 1 to be matched."""

    rows: Rows
    prior: Factor
    likelihood: Likelihood
    # Fisher information of a row on the logarithm of the scale.
    information: float
    # Limits of the scale.
    least: float
    most: float
    # Standard deviation of the noise's core over its scale, where the scale follows the core of
    # the errors instead of the evidence.
    core_ratio: float | None = None

    def search_mode(
        self,
        start: Sites,
        *,
        known: bool,
        settled: float = TOLERANCE,
        rounds: int = MOST_ROUNDS,
        known_mode: Fit | None = None,
        solution: Solution | None = None,
    ) -> Fit:
        """Match all rows again and again until nothing moves, the scale too unless it is known.

        It ends early where it comes near ``known_mode``. ``solution`` is that of the sites of
        ``start``, where it is known.
        """
        many = len(self.rows.y) > ROWS_A_COEFFICIENT * self.prior.n_coefficients
        most = 1.0 if many else FIRST_STEP_SIZE
        now, step_size, last, chord = start, most, math.inf, self._begin_chord(known=known)
        for _ in range(rounds):
            one, solution = self._update_sites(now, step_size, solution), None
            step, chord = chord.lengthen(one.step)
            scale = min(max(now.scale * math.exp(step), self.least), self.most)
            if one.move < settled and abs(math.log(scale / now.scale)) < settled:
                return self._make_fit(one, settled=True)
            if known_mode is not None and _close(one, known_mode):
                return self._make_fit(one)
            if one.move > 1.2 * last:
                step_size = max(0.7 * step_size, SMALLEST_STEP_SIZE)
            elif one.move < STEADY_RATIO * last:
                step_size = min(1.2 * step_size, most)
            last, now = one.move, replace(one.ahead, scale=scale)
        return self.log_predictive(now)

    def _begin_chord(self, *, known: bool) -> SecantSteps:
        """Return the secant steps that the scale takes."""
        many = len(self.rows.y) > CHORD_ROWS * self.prior.n_coefficients
        longest = LARGEST_STEP_RATIO if many else 1.0
        return SecantSteps(0.0 if known else LONGEST_STEP, CHORD_STEP, 1.0, longest)

    def approximate_spread(self, mode: Mode) -> Spread:
        """The same by a formula: as of an inverse gamma whose mode this is.

        A row tells its information, less what the fit takes.
        """
        assert mode.leverage is not None
        taken = float(self.rows.weights @ (mode.weight * mode.leverage)[mode.weight > 0.0])
        df = _compute_df(1.0 / (self.information * max(self.rows.total - taken, 1.0)))
        drawn = math.exp(0.5 * (math.log(0.5 * df) - float(digamma(0.5 * df))))
        return Spread(mode.scale * drawn, df, 1.0 / drawn, 0.0)

    def spread(self, best: Fit) -> Spread:
        """Return the uncertainty of the scale, from fits at a few others around the best."""
        sd = 1.0 / math.sqrt(self.information * self.rows.total)
        low, high = (self._at(best, off * sd) for off in (-STEP, STEP))
        bend = 2.0 * best.log_evidence - low.log_evidence - high.log_evidence
        fits, curvature_ratio = [low, best, high], bend / STEP**2
        if (
            self.rows.total <= MANY_ROWS
            or not 1.0 / INFORMATION_RATIO < curvature_ratio < INFORMATION_RATIO
        ):
            sd /= math.sqrt(max(curvature_ratio, 0.05))
            fits = [self._at(best, sd * place) if place else best for place in PLACES]
        evidence = np.array([one.log_evidence for one in fits])
        weight = np.exp(evidence - evidence.max())
        total = float(weight.sum())
        logs = np.log([one.scale for one in fits])
        mean = float(weight @ logs) / total
        variance = max(float(weight @ np.square(logs - mean)) / total, 1e-12)
        df = _compute_df(variance)
        # Variances of the fits, over those at the best scale.
        fitted = np.array([one.fit for one in fits])
        centre = weight @ fitted / total
        own = np.array([np.square(one.scale) * one.leverage for one in fits])
        wider = weight @ (own + np.square(fitted - centre)) / total
        ratio = float(np.mean(wider / np.maximum(own[len(fits) // 2], 1e-300)))
        scale = math.exp(mean)
        widened = math.sqrt(ratio * (1.0 - 2.0 / df) if df > 2.0 else 1.0) * best.scale / scale
        volume = evidence.max() + math.log(total * sd * STEP)
        return Spread(scale, df, widened, float(volume))

    # ---- inner ---------------------------------------------------------------------------------

    def _at(self, best: Fit, off: float) -> Fit:
        start = Sites(best.scale * math.exp(off), best.weight, best.target)
        return self.search_mode(start, known=True, settled=ROUGH_TOLERANCE, solution=best.solution)

    def _solve(self, now: Sites) -> Solution:
        factor = self.rows.stack_on_prior(self.prior, now.target, now.weight)
        fit, leverage = factor.predict(self.rows.X, intercept=self.rows.intercept)
        return Solution(factor, fit[:, 0], leverage)

    def _update_sites(
        self, now: Sites, step_size: float, solution: Solution | None = None
    ) -> Round:
        """The next sites, how far fits move in their standard deviations, and the log scale."""
        rows, prior, s = self.rows, self.prior, now.scale
        solution = solution or self._solve(now)
        factor, fit, leverage = solution
        known = self.likelihood.kernel_code
        assert known is not None  # of all noise here
        weight, target, square, slope, evidence, move = match_rows(
            *known, rows.y, fit, leverage, rows.weights, now.weight, now.target, s, step_size
        )
        if self.core_ratio is None:
            slope += self._compute_penalty(factor) / s**2 + prior.n_coefficients - prior.rank
            step = slope / (self.information * rows.total)
        else:
            step = self._compute_core_step(square, self.core_ratio)
        return Round(Sites(s, weight, target), move, step, now, solution, evidence)

    def _compute_core_step(self, square: Array, ratio: float) -> float:
        """Return the log step from the scale to that of the core of relative squared errors (n,).

        The errors are those of each row without itself, as of rows that come one after another.
        """
        variance = compute_core_variance(square, self.rows.weights, ratio**2, 1e-300)
        return 0.5 * math.log(variance) - math.log(ratio)

    def log_predictive(self, now: Sites) -> Fit:
        """Fits of these sites, and their evidence (Minka 2001): flat directions have density 1."""
        return self._make_fit(self._update_sites(now, 1.0))

    def _make_fit(self, one: Round, *, settled: bool = False) -> Fit:
        now, prior, s = one.now, self.prior, one.now.scale
        factor = one.solution.factor
        value = one.evidence - 0.5 * self._compute_penalty(factor) / s**2
        value += 0.5 * (prior.log_determinant() - factor.log_determinant())
        d = prior.n_coefficients - prior.rank
        value += 0.5 * d * math.log(2.0 * math.pi * s**2)
        return Fit(s, now.weight, now.target, one.solution, value, settled)

    def _compute_penalty(self, factor: Factor) -> float:
        off = self.prior.root @ solution(factor) - self.prior.moments[:, 0]
        return float(off @ off)


def _close(one: Round, other: Fit) -> bool:
    """Return True if two fits are on the way to the same place."""
    if abs(math.log(one.now.scale / other.scale)) > SAME_SCALE:
        return False
    off = np.square(one.solution.fit - other.fit) / np.maximum(other.leverage, 1e-300)
    return float(off.max(initial=0.0)) < (SAME_FIT * other.scale) ** 2


def _compute_df(variance: float) -> float:
    """Degrees of freedom d of an inverse gamma whose log scale has this variance.

    trigamma(d / 2) / 4 = variance.
    """
    return 2.0 * float(invert_trigamma(np.array([4.0 * variance]))[0])


def invert_trigamma(values: Array) -> Array:
    """(n,) where trigamma is this, by Newton's method."""
    at = 1.0 / values + 0.5
    for _ in range(50):
        step = (polygamma(1, at) - values) / polygamma(2, at)
        at = np.maximum(at - step, 0.2 * at)
        if (np.abs(step) < 1e-10 * at).all():
            break
    return at
