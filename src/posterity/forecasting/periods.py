"""Seasonal periods of series without times, found from their autocorrelations."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from posterity.aliases import Array
from posterity.forecasting.gaps import carry_forward
from posterity.forecasting.panel import Panel

# Most series that are used, the longest ones; and the longest period.
MOST_SERIES, LONGEST = 200, 400
# Fewest cycles of a period in a series, and the smallest autocorrelation at it.
FEWEST_CYCLES, SMALLEST_AUTOCORRELATION = 3, 0.2
# Probability of a peak of noise; variance of autocorrelations of its differences, times the length.
LEVEL, DIFFERENCES = 0.25, 1.5
# The period is the shortest lag with at least this share of the largest correlation.
PEAK_SHARE = 0.8
# A longer period must have a correlation larger by this than the shorter one.
CORRELATION_GAIN = 0.05


def find_periods(panel: Panel) -> tuple[int, ...]:
    """Find no period, one, or two of which the second is a multiple of the first.

    Lags at which the autocorrelation of differences, averaged over series, has a peak that is not
    small, and significant, at 95% by itself and such that noise has one at any of the lags in 25%
    of cases at most (Bonferroni). The variance at one lag is (1 + 2 (1/2)^2) / n of differences of
    noise, whose first autocorrelation is -1/2 (Bartlett 1946).

    Examples
    --------
    >>> t = np.arange(120.0)
    >>> find_periods(Panel.of_arrays({"a": np.sin(2 * np.pi * t / 12) + 0.01 * t}))
    (12,)
    >>> find_periods(Panel.of_arrays({"a": np.cumsum(np.random.default_rng(0).normal(size=120))}))
    ()
    """
    correlations = compute_autocorrelations(panel)
    if len(correlations) < 3:
        return ()
    peaks = np.zeros(len(correlations), dtype=bool)
    peaks[2:-1] = (correlations[2:-1] > correlations[1:-2]) & (
        correlations[2:-1] >= correlations[3:]
    )
    length = float(np.median(panel.observed))
    many = min(len(panel), MOST_SERIES) * length
    at_any = -ndtri(LEVEL / len(correlations)) * np.sqrt(DIFFERENCES / many)
    peaks &= correlations > max(SMALLEST_AUTOCORRELATION, 1.96 / np.sqrt(length), at_any)
    if not peaks.any():
        return ()
    period = int(
        np.flatnonzero(peaks & (correlations >= PEAK_SHARE * correlations[peaks].max()))[0]
    )
    multiples = np.arange(2 * period, len(correlations), period)
    multiples = multiples[peaks[multiples]] if len(multiples) else multiples
    if not len(multiples):
        return (period,)
    longer = int(multiples[np.argmax(correlations[multiples])])
    if correlations[longer] < correlations[period] + CORRELATION_GAIN:
        return (period,)
    return (period, longer)


def compute_autocorrelations(panel: Panel) -> Array:
    """Compute autocorrelations of differences, at lags 0, 1, ..., averaged over the longest series.

    What exogenous columns explain, by least squares, is taken off: sales on every tenth day do not
    make a season of ten.
    """
    observed = panel.observed
    some = np.argsort(-observed, kind="stable")[:MOST_SERIES]
    lags = min(int(np.median(observed[some])) // FEWEST_CYCLES, LONGEST) + 2
    total, count = np.zeros(max(lags, 0)), 0
    for values, columns in zip(carry_forward(panel.values[some]), panel.columns[some], strict=True):
        known = np.isfinite(values)
        steps = np.diff(values[known])
        steps = steps - steps.mean() if len(steps) else steps
        if columns.shape[1] and len(steps) > columns.shape[1]:
            explained = np.diff(np.nan_to_num(columns[known]), axis=0)
            steps = steps - explained @ np.linalg.lstsq(explained, steps, rcond=None)[0]
        size = 2 * len(steps)
        power = float(steps @ steps)
        if len(steps) < lags or power <= 0.0:
            continue
        spectrum = np.square(np.abs(np.fft.rfft(steps, size)))
        total += np.fft.irfft(spectrum, size)[:lags] / power
        count += 1
    return total[: lags - 1] / count if count else np.zeros(0)
