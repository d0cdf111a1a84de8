"""Weights of the forms and the width of their mixture, by their scores in past windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtr

from posterity.aliases import Array, Mask
from posterity.forecasting.shared import MOST_SERIES
from posterity.forecasting.trials import FEW_SERIES, TrialScores

# Weights are CRPS to minus one of these powers; it grows with the number of windows.
POWERS, USUAL_WINDOWS = (3.0, 6.0, 12.0, 24.0), 3
# Share of the scores of sums over steps in that of a form.
TOTALS = 0.25
# Fewest steps in all windows of a series by which a form may lose its weight.
STRICT_STEPS = 20
# Standard errors by which a larger power has to gain.
SURE = 2.0
# Forms in logarithms are left out if their sd at the horizon is larger than this.
WIDEST_LOG = 1.0
# Grid of factors of the width, and the prior sd of their logarithm.
FACTORS, SPREAD = np.geomspace(0.5, 1.6, 48), 0.35
# Smallest share of the variance within forms.
LEAST_LEFT = 0.3
# Log scores are alike by rounding within this.
ROUNDING = 1e-12
LEVELS = np.array([0.5, 0.8, 0.95])


@dataclass(frozen=True, eq=False)
class CommonScores:
    """Scores that all series share: of each form, ``usual`` (F,), and what they decide.

    ``usual`` are log CRPS relative to the best form; ``factor`` is of all forms' spreads, ``power``
    of the weights, which are ``strict`` where there are few series, and many steps.
    """

    usual: Array
    factor: float
    power: float
    strict: bool

    @classmethod
    def of(cls, tried: TrialScores, usable: Mask, typical: Mask) -> CommonScores:
        """Return the scores of the forecasts of the windows of ``typical`` (S,) series."""
        tried, usable = tried.of_series(typical), usable[:, typical]
        usual = _average_scores(_compute_scores(tried, usable))
        _, n_series, windows, steps = tried.crps.shape
        strict = n_series <= FEW_SERIES and windows * steps >= STRICT_STEPS
        # Of very many series some say the rest.
        some = slice(None, None, -(-tried.crps.shape[1] // MOST_SERIES))
        tried, usable = tried.of_series(some), usable[:, some]
        others = compare_without_each(tried, usable, strict=strict)
        power = choose_power(tried, others)
        return cls(usual, compute_width_factor(tried, others, power), power, strict)

    def weigh(self, tried: TrialScores, usable: Mask) -> Array:
        """(S, F) weights of forms ``usable`` (F, S) for a series; 0 where none is.

        A form that could not be tried on a series is taken for as good, relative to the best, as it
        is usual: for the other series on average.
        """
        return Comparison.of(tried, usable, self.usual, strict=self.strict).weigh(self.power)


@dataclass(frozen=True, eq=False)
class Comparison:
    """How forms did in W windows: their log CRPS ``behind`` that of the best (F, S), and ``odds``.

    What is not usable is infinitely far behind. ``odds`` (F, S) are those that the values
    themselves give a form; of ``strict`` comparisons times the root of the p-value of being as
    good as the best form.
    """

    behind: Array
    odds: Array
    n_windows: int

    @classmethod
    def of(
        cls,
        tried: TrialScores,
        usable: Mask,
        usual: Array | None = None,
        *,
        strict: bool = False,
    ) -> Comparison:
        """Compare forms that are ``usable`` (F, S), by their scores or else by ``usual`` ones."""
        score = _compute_scores(tried, usable)
        usual = _average_scores(score) if usual is None else usual
        score = np.where(np.isnan(score), usual[:, None], score)
        score = np.where(usable, score, np.inf)
        best = score.min(axis=0)
        score -= np.where(np.isfinite(best), best, 0.0)
        odds = np.ones(score.shape) if tried.log_odds is None else np.exp(tried.log_odds)
        if strict:
            odds *= np.sqrt(_compute_p_values(tried, usable))
        return cls(score, odds, tried.n_windows)

    def weigh(self, power: float) -> Array:
        """(S, F) weights: CRPS^-a over three windows, CRPS^-(a sqrt(W / 3)) over W, if more."""
        power = power * np.sqrt(max(self.n_windows / USUAL_WINDOWS, 1.0))
        each = np.exp(-power * self.behind) * self.odds
        total = each.sum(axis=0)
        return np.asarray((each / np.where(total > 0.0, total, 1.0)).T)


def compare_without_each(
    tried: TrialScores, usable: Mask, *, strict: bool = False
) -> list[Comparison]:
    """For each window how forms did in the others."""
    windows = range(tried.n_windows)
    return [Comparison.of(tried.without(each), usable, strict=strict) for each in windows]


def choose_power(tried: TrialScores, others: Sequence[Comparison]) -> float:
    """The power of the weights whose mixtures had the smallest errors in the windows.

    In each window the forms are weighed by the ``others``. If forms differ by luck, a small power
    averages over them; if some are better, a large one leaves the others out. It has to gain more
    than chance.
    """
    if len(others) < 2:
        return POWERS[0]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, _ = tried.in_values()
    n_series = tried.crps.shape[1]
    scale = _average(tried.crps.swapaxes(0, 1).reshape(n_series, -1))[:, None, None]  # of a series
    errors = []
    for power in POWERS:
        share, seen = _share_by_others(tried, others, power)
        sums = np.where(share > 0.0, share * mean, 0.0).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.abs(tried.outcomes - np.where(seen, sums, np.nan)) / scale
        errors.append(_average(error.swapaxes(0, 1).reshape(len(others), -1)))
    best = 0
    for place in range(1, len(POWERS)):
        gain = errors[best] - errors[place]
        gain = gain[np.isfinite(gain)]
        if len(gain) > 1 and gain.mean() > SURE * gain.std(ddof=1) / np.sqrt(len(gain)):
            best = place
    return POWERS[best]


def compute_width_factor(tried: TrialScores, others: Sequence[Comparison], power: float) -> float:
    """The factor of all forms' spreads at which their mixture holds what it says it does.

    A mixture of forms that are each calibrated is too wide (Gneiting and Ranjan 2013), and the
    more so the more they differ. The factor is that whose intervals of 50, 80 and 95% held nearest
    to that in the windows, all series together; it starts from where widths and errors agree
    (:func:`_sharpen`), and few windows move it little.
    In each window the forms are weighed by the ``others``.
    """
    if not others:
        return 1.0
    share, seen = _share_by_others(tried, others, power)
    if not seen.any():
        return 1.0
    # Series of one time are shaken together: so many windows are worth their root.
    count = tried.n_windows * np.sqrt(np.count_nonzero(seen.any(axis=(1, 2))))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(share > 0.0, tried.standardize_outcomes(), 0.0)
    begin = _sharpen(tried, share)
    lost = []
    for factor in FACTORS:
        rank = (share * ndtr(z / factor)).sum(axis=0)[seen]
        held = (np.abs(2.0 * rank - 1.0)[:, None] <= LEVELS).mean(axis=0)
        missed = float(np.mean(np.square(held - LEVELS) / (LEVELS * (1.0 - LEVELS))))
        lost.append(count * missed + np.square(np.log(factor / begin) / SPREAD))
    return float(FACTORS[int(np.argmin(lost))])


def _share_by_others(
    tried: TrialScores, others: Sequence[Comparison], power: float
) -> tuple[Array, Mask]:
    """(F, S, W, h) shares of forms in what is known of each window, and where there are any."""
    share = np.array([one.weigh(power) for one in others]).transpose(2, 1, 0)[:, :, :, None]
    share = np.where(np.isfinite(tried.crps), share, 0.0)
    total = share.sum(axis=0)
    return share / np.where(total > 0.0, total, 1.0), total > 0.0


def _sharpen(tried: TrialScores, share: Array) -> float:
    """The factor at which the mixture is as wide as its errors, where each form is.

    The square error of a weighted mean is the mean square error of its parts, less the variance
    between them (Krogh and Vedelsby 1995), by which the mixture is wider. So of what is within
    the forms, twice that has to be taken off. Logarithms are taken for values by their slope.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean, sd = tried.in_values()
        mean, sd = np.where(share > 0.0, mean, 0.0), np.where(share > 0.0, sd, 0.0)
        centre = (share * mean).sum(axis=0)
        within = (share * np.square(sd)).sum(axis=(0, 2, 3))
        between = (share * np.square(mean - centre)).sum(axis=(0, 2, 3))
    ratio = between / np.where(within > 0.0, within, 1.0)
    ratio = ratio[np.isfinite(ratio) & (within > 0.0)]
    left = 1.0 - 2.0 * float(np.median(ratio)) if len(ratio) else 1.0
    return float(np.sqrt(np.clip(left, LEAST_LEFT, 1.0)))


def _compute_scores(tried: TrialScores, usable: Mask) -> Array:
    """(F, S) log CRPS, of steps and of totals, relative to the best form; NaN where none is."""
    score = np.where(usable, _join_scores(_average(tried.crps), _average(tried.totals)), np.nan)
    best = np.where(np.isnan(score), np.inf, score).min(axis=0, initial=np.inf)
    return np.asarray(score - np.where(np.isfinite(best), best, 0.0))


def _compute_p_values(tried: TrialScores, usable: Mask) -> Array:
    """(F, S) p-values of being as good as the best form on average, by Student's t over windows."""
    shape = (-1, tried.crps.shape[1] * tried.n_windows, tried.crps.shape[3])
    steps, totals = (
        _average(some.reshape(shape)).reshape(tried.crps.shape[:3])
        for some in (tried.crps, tried.totals)
    )
    score = np.where(usable[:, :, None], _join_scores(steps, totals), np.nan)
    mean = _average(score)
    best = np.where(np.isnan(mean), np.inf, mean).argmin(axis=0)
    behind = score - np.take_along_axis(score, best[None, :, None], axis=0)
    behind[np.abs(behind) < ROUNDING] = 0.0
    count, mean = np.isfinite(behind).sum(axis=2), _average(behind)
    squares = np.nansum(np.square(behind - mean[:, :, None]), axis=2)
    rest = np.maximum(count - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / np.sqrt(squares / rest / count)
    t = np.where(np.isfinite(t), np.maximum(t, 0.0), 0.0)
    return np.where(count > 1, 2.0 * stdtr(rest, -t), 1.0)


def _join_scores(steps: Array, totals: Array) -> Array:
    """Log scores of the CRPS of steps and of totals, where there are these."""
    steps, totals = (np.log(np.maximum(some, 1e-300)) for some in (steps, totals))
    return (1.0 - TOTALS) * steps + TOTALS * np.where(np.isnan(totals), steps, totals)


def _average_scores(score: Array) -> Array:
    usual = _average(np.clip(score, 0.0, 3.0))
    return np.where(np.isnan(usual), 0.0, usual)


def _average(values: Array) -> Array:
    """(F, ...) means over all axes but the first two, or the second; NaN where there is none."""
    axes = tuple(range(2, values.ndim)) or (1,)
    known = np.isfinite(values)
    count = known.sum(axis=axes)
    total = np.where(known, values, 0.0).sum(axis=axes)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
