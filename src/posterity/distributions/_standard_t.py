"""The standard Student-t distribution: a family of location and scale, as functions of z and df.

Exact special functions cost 50 to 500 ns each and a stream has other degrees of freedom on every
row. So few degrees of freedom (and far tails) use the incomplete beta function, many use
expansions that keep full double precision; every choice is made per block of rows.
Everything is written in ``spread = log(1 + z^2 / df)``, which never overflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betainc, betaincinv, erf, gammaln, ndtr, ndtri

from posterity.distributions._expansions import (
    LARGE_DF_EXPANSION,
    MODERATE_DF_EXPANSION,
    Expansion,
    double_series,
    polynomial,
)
from posterity.distributions._rows import FloatArray

_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
# Beyond this the t is the normal to the last bit; infinite degrees of freedom would give 0 * inf.
MOST_DF = 1e18


def variance(df: FloatArray) -> FloatArray:
    """Variance of z: infinite up to two degrees of freedom."""
    df = np.minimum(df, MOST_DF)
    return np.where(df > 2.0, df / (df - 2.0), math.inf)


def logpdf(z: FloatArray, df: FloatArray) -> FloatArray:
    """Log density."""
    df = np.minimum(df, MOST_DF)
    return log_constant(df) - 0.5 * (df + 1.0) * _spread(z, df)


def cdf(z: FloatArray, df: FloatArray) -> FloatArray:
    """Distribution function, its lower tail to full relative precision."""
    df = np.minimum(df, MOST_DF)
    spread = _spread(z, df)
    return _choose_expansion(_cdf_series, _cdf_exact, spread, df, z)


def ppf(q: FloatArray, df: FloatArray) -> FloatArray:
    """Quantile."""
    df = np.minimum(df, MOST_DF)
    u = np.asarray(ndtri(q))
    return _choose_expansion(_ppf_series, _ppf_exact, u * u / (df - 0.5), df, q, u)


def crps(z: FloatArray, df: FloatArray) -> FloatArray:
    """Continuous ranked probability score (Jordan, Krueger and Lerch 2019, appendix A).

    z (2F - 1) + 2 f (df + z^2) / (df - 1) - offset; infinite where the mean does not exist.
    """
    df = np.minimum(df, MOST_DF)
    spread = _spread(z, df)
    central = _choose_expansion(_central_series, _central_exact, spread, df, z)
    # f (df + z^2) = constant df exp(-(df - 1)/2 spread): no square of z, so no overflow.
    density = _crps_density(df) * np.exp(-0.5 * (df - 1.0) * spread)
    value = z * central + density - _crps_offset(df)
    return value if df.min() > 1.0 else np.where(df > 1.0, value, math.inf)


def draw(rng: np.random.Generator, size: tuple[int, ...], df: FloatArray) -> FloatArray:
    """Independent draws."""
    return rng.standard_t(np.minimum(df, MOST_DF), size)


def _spread(z: FloatArray, df: FloatArray) -> FloatArray:
    """log(1 + z^2 / df), also where the square overflows."""
    spread: FloatArray = np.log1p(z * z / df)
    if not spread.max() < math.inf:
        far = 2.0 * np.log(np.abs(z)) - np.log(df)
        spread = np.where(np.isinf(spread), far, spread)
    return spread


# ---- the choice between expansion and exact function -------------------------------------------


def _choose_expansion(
    series: Callable[..., FloatArray],
    exact: Callable[..., FloatArray],
    spread: FloatArray,
    df: FloatArray,
    *arguments: FloatArray,
) -> FloatArray:
    """One call of the shortest expansion that serves the whole block, or row by row."""
    lowest, furthest = df.min(), spread.max()
    for expansion in (LARGE_DF_EXPANSION, MODERATE_DF_EXPANSION):
        if lowest >= expansion.lowest_df and furthest <= expansion.reach:
            return series(expansion, spread, df, *arguments)
    spread, df, *rest = np.broadcast_arrays(np.atleast_1d(spread), df, *arguments)
    inside = (df >= MODERATE_DF_EXPANSION.lowest_df) & (spread <= MODERATE_DF_EXPANSION.reach)
    value = np.empty(df.shape)
    if inside.any():
        value[inside] = series(
            MODERATE_DF_EXPANSION, spread[inside], df[inside], *(r[inside] for r in rest)
        )
    outside = ~inside
    value[outside] = exact(spread[outside], df[outside], *(r[outside] for r in rest))
    return value


def _compute_df_constant(
    df: FloatArray,
    series: Callable[[Expansion, FloatArray], FloatArray],
    exact: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """A constant of the distribution, a function of df alone."""
    lowest = df.min()
    for expansion in (LARGE_DF_EXPANSION, MODERATE_DF_EXPANSION):
        if lowest >= expansion.lowest_df:
            return series(expansion, df)
    many = np.atleast_1d(df) >= MODERATE_DF_EXPANSION.lowest_df
    value = np.empty(many.shape)
    value[many] = series(MODERATE_DF_EXPANSION, np.atleast_1d(df)[many])
    value[~many] = exact(np.atleast_1d(df)[~many])
    return value


# ---- expansions (see _expansions) --------------------------------------------------------------


def _transform_to_normal(
    spread: FloatArray, df: FloatArray, z: FloatArray
) -> tuple[FloatArray, ...]:
    """w^2 and w with the sign of z: w is nearly standard normal."""
    w2 = (df - 0.5) * spread
    return w2, np.copysign(np.sqrt(w2), z)


def _compute_correction(
    expansion: Expansion, df: FloatArray, w2: FloatArray, w: FloatArray
) -> FloatArray:
    """2 (F(z) - Phi(w)) = -2 phi(w) w sum_j s_j(w^2) / a^(2j)."""
    a = df - 0.5
    series = double_series(expansion.tail, w2, 1.0 / (a * a))
    return -_ROOT_2_OVER_PI * np.exp(-0.5 * w2) * w * series


def _central_series(
    expansion: Expansion, spread: FloatArray, df: FloatArray, z: FloatArray
) -> FloatArray:
    w2, w = _transform_to_normal(spread, df, z)
    return np.asarray(erf(w * math.sqrt(0.5)) + _compute_correction(expansion, df, w2, w))


def _cdf_series(
    expansion: Expansion, spread: FloatArray, df: FloatArray, z: FloatArray
) -> FloatArray:
    w2, w = _transform_to_normal(spread, df, z)
    return np.asarray(ndtr(w) + 0.5 * _compute_correction(expansion, df, w2, w))


def _ppf_series(
    expansion: Expansion, _: FloatArray, df: FloatArray, q: FloatArray, u: FloatArray
) -> FloatArray:
    a = df - 0.5
    w = u + u * double_series(expansion.quantile, u * u, 1.0 / (a * a))
    return np.copysign(np.sqrt(df * np.expm1(w * w / a)), u)


def log_constant(df: FloatArray) -> FloatArray:
    """Log Gamma((df+1)/2) - log Gamma(df/2) - 1/2 log(df pi)."""

    def series(expansion: Expansion, df: FloatArray) -> FloatArray:
        inverse = 1.0 / df
        return inverse * polynomial(expansion.log_constant, inverse * inverse) - _HALF_LOG_2PI

    return _compute_df_constant(df, series, _log_constant_exact)


def _crps_density(df: FloatArray) -> FloatArray:
    """2 df / (df - 1) times the density at zero."""

    def series(expansion: Expansion, df: FloatArray) -> FloatArray:
        return _ROOT_2_OVER_PI * polynomial(expansion.crps_density, 1.0 / df)

    def exact(df: FloatArray) -> FloatArray:
        return np.asarray(2.0 * df / (df - 1.0) * np.exp(_log_constant_exact(df)))

    return _compute_df_constant(df, series, exact)


def _crps_offset(df: FloatArray) -> FloatArray:
    """2 sqrt(df) / (df - 1) B(1/2, df - 1/2) / B(1/2, df/2)^2."""
    return _compute_df_constant(df, _crps_offset_series, _crps_offset_exact)


def _crps_offset_series(expansion: Expansion, df: FloatArray) -> FloatArray:
    return math.sqrt(1.0 / math.pi) * polynomial(expansion.crps_offset, 1.0 / df)


# ---- exact special functions -------------------------------------------------------------------


def _log_constant_exact(df: FloatArray) -> FloatArray:
    ratio = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df)
    return np.asarray(ratio - 0.5 * np.log(df * math.pi))


def _crps_offset_exact(df: FloatArray) -> FloatArray:
    log_ratio = gammaln(df - 0.5) - gammaln(df) + 2.0 * _log_constant_exact(df)
    # B(1/2, x) = sqrt(pi) Gamma(x) / Gamma(x + 1/2)
    return np.asarray(2.0 * df**1.5 / (df - 1.0) * math.sqrt(math.pi) * np.exp(log_ratio))


def _tail_exact(spread: FloatArray, df: FloatArray) -> FloatArray:
    """P(Z > |z|): in the middle as a complement, further out directly, lest digits cancel."""
    tail = np.empty(spread.shape)
    far = df * spread > 1.0
    near = ~far
    tail[far] = 0.5 * betainc(0.5 * df[far], 0.5, np.exp(-spread[far]))
    tail[near] = 0.5 - 0.5 * betainc(0.5, 0.5 * df[near], -np.expm1(-spread[near]))
    return tail


def _cdf_exact(spread: FloatArray, df: FloatArray, z: FloatArray) -> FloatArray:
    tail = _tail_exact(spread, df)
    return np.where(z < 0.0, tail, 1.0 - tail)


def _central_exact(spread: FloatArray, df: FloatArray, z: FloatArray) -> FloatArray:
    central: FloatArray = np.copysign(betainc(0.5, 0.5 * df, -np.expm1(-spread)), z)
    return central


def _ppf_exact(spread: FloatArray, df: FloatArray, q: FloatArray, u: FloatArray) -> FloatArray:
    size = np.empty(q.shape)
    far = np.abs(q - 0.5) > 0.25
    near = ~far
    tail = np.minimum(q[far], 1.0 - q[far])
    y = betaincinv(0.5 * df[far], 0.5, 2.0 * tail)
    size[far] = np.sqrt(df[far] * (1.0 - y) / y)
    x = betaincinv(0.5, 0.5 * df[near], 2.0 * np.abs(q[near] - 0.5))
    size[near] = np.sqrt(df[near] * x / (1.0 - x))
    return np.copysign(size, u)
