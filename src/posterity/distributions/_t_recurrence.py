"""Tails and densities of the Student-t distribution: by expansions, and by recurrence to them.

The expansions of ``_expansions`` need some 20 to 64 degrees of freedom. Fewer are led there in
steps of two, by products and sums alone, at a fraction of the time of the incomplete beta function
and of log gammas. All is written in ``spread = log(1 + z^2 / df)``.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from posterity.distributions._expansions import (
    LOG_RATIO,
    LOWEST_DF,
    REACH,
    TAIL,
    Polynomial,
    double_series,
    polynomial,
)
from posterity.distributions._rows import FloatArray

_ROOT_2_PI = math.sqrt(2.0 * math.pi)
_STIRLING_DF = 20.0
_STIRLING_STEPS = 10
# After so many steps the expansion is exact near the centre, and far out adds little: 6e-14 of the
# tail at the worst of 0.3 to 5000 degrees of freedom, down to 1e-290.
_TAIL_STEPS = 20


def find_spread(z: FloatArray, df: FloatArray) -> FloatArray:
    """log(1 + z^2 / df), also where the square overflows."""
    spread: FloatArray = np.log1p(z * z / df)
    if not spread.max() < math.inf:
        far = 2.0 * np.log(np.abs(z)) - np.log(df)
        spread = np.where(np.isinf(spread), far, spread)
    return spread


def density_at_zero(df: FloatArray) -> FloatArray:
    """Density at z = 0: Gamma((df+1)/2) / (Gamma(df/2) sqrt(df pi))."""
    exponent, factor = density_at_zero_parts(df)
    return np.asarray(np.exp(exponent) * factor)


def density_at_zero_parts(df: FloatArray) -> tuple[FloatArray, FloatArray | float]:
    """The same as exp(exponent) * factor, for an exponential that is due anyway."""
    if df.min() >= LOWEST_DF:
        return _stirling(df, LOG_RATIO[:4]), 1.0 / _ROOT_2_PI
    if df.min() >= _STIRLING_DF:
        return _stirling(df, LOG_RATIO), 1.0 / _ROOT_2_PI
    # Gamma(x + 1) = x Gamma(x), for x = df/2 and (df+1)/2.
    above, below = df * 1.0, df + 1.0
    for step in range(1, _STIRLING_STEPS):
        above *= df + 2.0 * step
        below *= df + (2.0 * step + 1.0)
    there = df + 2.0 * _STIRLING_STEPS
    return _stirling(there, LOG_RATIO), np.sqrt(there / df) * (above / below) / _ROOT_2_PI


def _stirling(df: FloatArray, terms: Polynomial) -> FloatArray:
    inverse = 1.0 / df
    return inverse * polynomial(terms, inverse * inverse)


def tail(spread: FloatArray, df: FloatArray) -> FloatArray:
    """P(Z > |z|) to full relative precision."""
    inside = (spread <= REACH) & (df >= LOWEST_DF)
    count = np.count_nonzero(inside)
    if count == inside.size:
        return expand_tail(spread, df)
    if 2 * count < inside.size:
        return shift_tail(spread, df, _TAIL_STEPS)
    spread, df = np.broadcast_arrays(spread, df)
    value = np.empty(spread.shape)
    value[inside] = expand_tail(spread[inside], df[inside])
    value[~inside] = shift_tail(spread[~inside], df[~inside], _TAIL_STEPS)
    return value


def approximate_tail(spread: FloatArray, df: FloatArray) -> FloatArray:
    """P(Z > |z|) to 1e-8 or so, absolutely."""
    lowest = df.min()
    if lowest < 8.0:
        return shift_tail(spread, df, 4)
    return expand_tail(spread, df, TAIL if lowest < 20.0 else TAIL[:2])


def expand_tail(
    spread: FloatArray, df: FloatArray, terms: tuple[Polynomial, ...] = TAIL
) -> FloatArray:
    """P(Z > |z|) by the expansion alone: Q(w) + phi(w) w sum_j s_j(w^2) / a^(2j)."""
    a = df - 0.5
    # Beyond this the tail is 0, and the polynomials would overflow.
    w2 = a * np.minimum(spread, 2000.0)
    w = np.sqrt(w2)
    series = double_series(terms, w2, 1.0 / (a * a))
    return np.asarray(ndtr(-w) + np.exp(-0.5 * w2) * w * series / _ROOT_2_PI)


def shift_tail(spread: FloatArray, df: FloatArray, steps: int) -> FloatArray:
    """P(Z > |z|) from the expansion at ``df + 2 steps`` degrees of freedom.

    Twice the tail is the incomplete beta function I_x(a, 1/2), a = df/2, x = exp(-spread), and
    (Abramowitz and Stegun 1964, 26.5.16)

        I_x(a, 1/2) = I_x(a + 1, 1/2) + x^a (1 - x)^(1/2) Gamma(a + 1/2) / (Gamma(1/2) Gamma(a+1)).

    Every term is the one before times x (a + 1/2) / (a + 1): summed by Horner's rule, all of them
    positive, so that small tails keep their digits.
    """
    a, x = 0.5 * df, np.exp(-spread)
    total = np.ones(np.broadcast_shapes(a.shape, x.shape))
    for step in range(steps - 1, 0, -1):
        total *= x * (1.0 - 0.5 / (a + step))
        total += 1.0
    # Gamma(a + 1/2) / (Gamma(1/2) Gamma(a + 1)) is the density at zero times 2 / sqrt(df).
    first = density_at_zero(df) / np.sqrt(df) * np.exp(-a * spread) * np.sqrt(-np.expm1(-spread))
    return first * total + expand_tail(spread, df + 2.0 * steps)
