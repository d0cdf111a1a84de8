"""Expectation propagation for noise of an unknown scale: what rows say, matched by moments.

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

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

from posterity.factor import Factor
from posterity.generalized._core import core_variance
from posterity.generalized._working_noise import Mode, Rows, Spread, solution
from posterity.kernel import find_moments
from posterity.likelihoods import Likelihood

Array = NDArray[np.float64]

MOST_ROUNDS = 200
# How little fits move in their standard deviations, when it is the answer, and when it is not.
SETTLED, ROUGH = 1e-8, 1e-3
# How much of each step is made, at first and at least; all of it where a row has so many others for
# each coefficient, as it hardly answers itself then.
BOLD, TIMID = 0.8, 0.02
ROWS_A_COEFFICIENT = 50
# The scale moves by no more than a factor of e in a round.
LONGEST_STEP = 1.0
# Of what was known of a row's fit without it: a row adds no less, and at least this of it is left.
LEAST_SHARE, LEAST_LEFT = 1e-4, 1e-6
# At least this share of the information stays when rows that take some away are spread.
LEAST_KEPT = 0.2
# Scales that are tried, so many standard deviations of its logarithm apart. Of many rows three do,
# where these are as far apart as a row's information tells.
STEP = 1.25
PLACES = STEP * np.arange(-2.0, 3.0)
MANY_ROWS, AS_TOLD = 5_000, 1.5


@dataclass(frozen=True)
class Sites:
    """Rows that stand for the likelihood: (n,) relative weights and targets, at a scale."""

    scale: float
    weight: Array
    target: Array


@dataclass(frozen=True)
class Fit(Sites):
    """The same where nothing moves any more: fit (n,), its relative variances, log p(y, scale)."""

    fit: Array
    leverage: Array
    log_evidence: float


@dataclass(frozen=True)
class Matcher:
    """Rows, a prior relative to the noise, and the likelihood of scale 1 to be matched."""

    rows: Rows
    prior: Factor
    likelihood: Likelihood
    # What a row tells of the logarithm of the scale.
    information: float
    # Scales it stays between.
    least: float
    most: float
    # Standard deviation of the noise's core over its scale, where the scale follows the core of
    # the errors instead of the evidence.
    core_ratio: float | None = None

    def climb(
        self, start: Sites, *, known: bool, settled: float = SETTLED, rounds: int = MOST_ROUNDS
    ) -> Fit:
        """Match all rows again and again until nothing moves, the scale too unless it is known."""
        many = len(self.rows.y) > ROWS_A_COEFFICIENT * self.prior.n_coefficients
        now, bold, last = start, 1.0 if many else BOLD, math.inf
        for _ in range(rounds):
            ahead, move, step = self._round(now, bold)
            step = 0.0 if known else min(max(step, -LONGEST_STEP), LONGEST_STEP)
            scale = min(max(now.scale * math.exp(step), self.least), self.most)
            if move < settled and abs(math.log(scale / now.scale)) < settled:
                break
            bold = max(0.7 * bold, TIMID) if move > 1.2 * last else bold
            last, now = move, replace(ahead, scale=scale)
        return self.told(now)

    def rough_spread(self, mode: Mode) -> Spread:
        """The same by a formula: as of an inverse gamma whose mode this is.

        A row tells its information, less what the fit takes.
        """
        assert mode.leverage is not None
        taken = float(self.rows.weights @ (mode.weight * mode.leverage)[mode.weight > 0.0])
        df = _df_of(1.0 / (self.information * max(self.rows.total - taken, 1.0)))
        drawn = math.exp(0.5 * (math.log(0.5 * df) - float(digamma(0.5 * df))))
        return Spread(mode.scale * drawn, df, 1.0 / drawn, 0.0)

    def spread(self, best: Fit) -> Spread:
        """How well the scale is known, from fits at a few others around the best."""
        sd = 1.0 / math.sqrt(self.information * self.rows.total)
        low, high = (self._at(best, off * sd) for off in (-STEP, STEP))
        bend = 2.0 * best.log_evidence - low.log_evidence - high.log_evidence
        fits, as_told = [low, best, high], bend / STEP**2
        if self.rows.total <= MANY_ROWS or not 1.0 / AS_TOLD < as_told < AS_TOLD:
            sd /= math.sqrt(max(as_told, 0.05))
            fits = [self._at(best, sd * place) if place else best for place in PLACES]
        evidence = np.array([one.log_evidence for one in fits])
        weight = np.exp(evidence - evidence.max())
        total = float(weight.sum())
        logs = np.log([one.scale for one in fits])
        mean = float(weight @ logs) / total
        variance = max(float(weight @ np.square(logs - mean)) / total, 1e-12)
        df = _df_of(variance)
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
        return self.climb(start, known=True, settled=ROUGH)

    def _round(self, now: Sites, bold: float) -> tuple[Sites, float, float]:
        """The next sites, how far fits move in their standard deviations, and the log scale."""
        rows, s = self.rows, now.scale
        power = np.minimum(rows.weights, 1.0)
        copies = np.maximum(rows.weights, 1.0)
        factor, fit, leverage = self._learned(now)
        mean, variance = _cavity(now, power, fit, leverage)
        off = (rows.y - mean) / s
        _, moved, ratio = self._moments(off, variance, power)
        raw = (1.0 - ratio) / ratio
        share = np.maximum(raw, LEAST_SHARE)
        weight = share / variance / power
        # A row of two minds takes information away, which no row of a factor can: all others do.
        kept = float(copies * power @ (raw / variance / power * leverage))
        kept = max(kept / float(copies * power @ (weight * leverage)), LEAST_KEPT)
        middle = mean + s * moved
        target = middle + s * moved / (share * kept)
        weight = weight * kept
        if self.core_ratio is None:
            pull = moved / variance
            slope = copies @ (-power + off * pull - variance * pull * pull - (ratio - 1.0))
            slope += self._penalty(factor) / s**2 + self.prior.n_coefficients - self.prior.rank
            slope -= rows.weights @ (now.weight * leverage)
            step = float(slope) / (self.information * rows.total)
        else:
            step = self._step_to_core(np.square(off) / (1.0 + variance), self.core_ratio)
        move = np.abs(middle - fit) / s / np.sqrt(np.maximum(leverage, 1e-300))
        mixed = now.weight + bold * (weight - now.weight)
        target = now.target + bold * weight / mixed * (target - now.target)
        return Sites(s, mixed, target), float(move.max()), step

    def _step_to_core(self, square: Array, ratio: float) -> float:
        """From the scale to that of the core of errors (n,), squared and relative, in logarithms.

        The errors are those of each row without itself, as of rows that come one after another.
        """
        variance = core_variance(square, self.rows.weights, ratio**2, 1e-300)
        return 0.5 * math.log(variance) - math.log(ratio)

    def told(self, now: Sites) -> Fit:
        """Fits of these sites, and their evidence (Minka 2001): flat directions have density 1."""
        rows, prior, s = self.rows, self.prior, now.scale
        power = np.minimum(rows.weights, 1.0)
        factor, fit, leverage = self._learned(now)
        mean, variance = _cavity(now, power, fit, leverage)
        off = (rows.y - mean) / s
        log_z, _, _ = self._moments(off, variance, power)
        own = power * now.weight
        gain = 1.0 + own * variance
        each = log_z - power * math.log(s) + 0.5 * np.log(gain)
        each += 0.5 * own / gain * np.square((now.target - mean) / s)
        value = float(np.maximum(rows.weights, 1.0) @ each)
        value -= 0.5 * float(rows.weights @ (now.weight * np.square((now.target - fit) / s)))
        value -= 0.5 * self._penalty(factor) / s**2
        value += 0.5 * (prior.log_determinant() - factor.log_determinant())
        d = prior.n_coefficients - prior.rank
        value += 0.5 * d * math.log(2.0 * math.pi * s**2)
        return Fit(s, now.weight, now.target, fit, leverage, value)

    def _moments(self, off: Array, variance: Array, power: Array) -> tuple[Array, Array, Array]:
        """log Z, the mean's move, and the ratio of the variances, of rows off their means."""
        known = self.likelihood.kernel_code
        assert known is not None  # of all noise here
        return find_moments(*known, off, np.zeros(len(off)), variance, power)

    def _learned(self, now: Sites) -> tuple[Factor, Array, Array]:
        factor = self.rows.under(self.prior, now.target, now.weight)
        fit, leverage = factor.predict(self.rows.X, intercept=self.rows.intercept)
        return factor, fit[:, 0], leverage

    def _penalty(self, factor: Factor) -> float:
        off = self.prior.root @ solution(factor) - self.prior.moments[:, 0]
        return float(off @ off)


def _cavity(now: Sites, power: Array, fit: Array, leverage: Array) -> tuple[Array, Array]:
    """Mean and relative variance of each fit without its own row, or one copy of it."""
    own = power * now.weight
    variance = leverage / np.maximum(1.0 - leverage * own, LEAST_LEFT)
    variance = np.maximum(variance, 1e-14)
    return fit - variance * own * (now.target - fit), variance


def _df_of(variance: float) -> float:
    """Degrees of freedom d of an inverse gamma whose log scale has this variance.

    trigamma(d / 2) / 4 = variance.
    """
    return 2.0 * float(trigamma_inverse(np.array([4.0 * variance]))[0])


def trigamma_inverse(values: Array) -> Array:
    """(n,) where trigamma is this, by Newton's method."""
    at = 1.0 / values + 0.5
    for _ in range(50):
        step = (polygamma(1, at) - values) / polygamma(2, at)
        at = np.maximum(at - step, 0.2 * at)
        if (np.abs(step) < 1e-10 * at).all():
            break
    return at
