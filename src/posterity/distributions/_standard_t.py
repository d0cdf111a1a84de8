"""The standard Student-t distribution: a family of location and scale, as functions of z and df.

Exact special functions cost 50 to 500 ns each and a stream has other degrees of freedom on every
row. So many degrees of freedom use expansions that keep full double precision, and few are led to
them by recurrence; quantiles of few are SciPy's.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv, ndtri

from posterity.distributions._expansions import LOWEST_DF, QUANTILE, REACH, double_series
from posterity.distributions._rows import FloatArray
from posterity.distributions._t_recurrence import (
    approximate_tail,
    density_at_zero,
    density_at_zero_parts,
    find_spread,
    tail,
)

# Beyond this the t is the normal to the last bit; infinite degrees of freedom would give 0 * inf.
MOST_DF = 1e18


def variance(df: FloatArray) -> FloatArray:
    """Variance of z: infinite up to two degrees of freedom."""
    df = np.minimum(df, MOST_DF)
    return np.where(df > 2.0, df / (df - 2.0), math.inf)


def log_constant(df: FloatArray) -> FloatArray:
    """Log Gamma((df+1)/2) - log Gamma(df/2) - 1/2 log(df pi)."""
    exponent, factor = density_at_zero_parts(df)
    return exponent + np.log(factor)


def logpdf(z: FloatArray, df: FloatArray) -> FloatArray:
    """Log density."""
    df = np.minimum(df, MOST_DF)
    return log_constant(df) - 0.5 * (df + 1.0) * find_spread(z, df)


def pdf(z: FloatArray, df: FloatArray) -> FloatArray:
    """Density, which may underflow."""
    df = np.minimum(df, MOST_DF)
    exponent, factor = density_at_zero_parts(df)
    return np.exp(exponent - 0.5 * (df + 1.0) * find_spread(z, df)) * factor


def log_slope(z: FloatArray, df: FloatArray) -> FloatArray:
    """Slope of the log density."""
    return -(df + 1.0) * z / (df + z * z)


def cdf(z: FloatArray, df: FloatArray) -> FloatArray:
    """Distribution function, its lower tail to full relative precision."""
    df = np.minimum(df, MOST_DF)
    return _turn(z, tail(find_spread(z, df), df))


def approximate_cdf(z: FloatArray, df: FloatArray) -> FloatArray:
    """The same to 1e-8 or so."""
    return _turn(z, approximate_tail(find_spread(z, df), df))


def _turn(z: FloatArray, beyond: FloatArray) -> FloatArray:
    return np.where(z < 0.0, beyond, 1.0 - beyond)


def ppf(q: FloatArray, df: FloatArray) -> FloatArray:
    """Quantile."""
    df = np.minimum(df, MOST_DF)
    u = np.asarray(ndtri(q))
    inside = (df >= LOWEST_DF) & (u * u / (df - 0.5) <= REACH)
    if inside.all():
        return _expand_ppf(u, df)
    inside, df, q, u = np.broadcast_arrays(np.atleast_1d(inside), df, q, u)
    value, outside = np.empty(inside.shape), ~inside
    value[inside] = _expand_ppf(u[inside], df[inside])
    value[outside] = np.copysign(_exact_size(q[outside], df[outside]), u[outside])
    return value


def absolute_error(z: FloatArray, df: FloatArray) -> FloatArray:
    """E|Z - z| = z (2F - 1) + 2 f (df + z^2) / (df - 1); infinite where the mean does not exist."""
    df = np.minimum(df, MOST_DF)
    spread = find_spread(z, df)
    central = np.abs(z) * (1.0 - 2.0 * tail(spread, df))
    # f (df + z^2) = constant df exp(-(df - 1)/2 spread): no square of z, so no overflow.
    front = 2.0 * df / (df - 1.0) * density_at_zero(df)
    mean = central + front * np.exp(-0.5 * (df - 1.0) * spread)
    return np.where(df > 1.0, mean, math.inf)


def crps(z: FloatArray, df: FloatArray) -> FloatArray:
    """Continuous ranked probability score (Jordan, Krueger and Lerch 2019, appendix A).

    E|Z - z| - E|Z - Z'| / 2, the latter 2 sqrt(df) / (df - 1) B(1/2, df - 1/2) / B(1/2, df/2)^2.
    """
    df = np.minimum(df, MOST_DF)
    # B(1/2, v/2) = 1 / (f(0) sqrt(v)) with v degrees of freedom.
    ratio = np.square(density_at_zero(df)) / density_at_zero(2.0 * df - 1.0)
    half = 2.0 * df**1.5 / (df - 1.0) / np.sqrt(2.0 * df - 1.0) * ratio
    return np.where(df > 1.0, absolute_error(z, df) - half, math.inf)


def draw(rng: np.random.Generator, size: tuple[int, ...], df: FloatArray) -> FloatArray:
    """Independent draws."""
    return rng.standard_t(np.minimum(df, MOST_DF), size)


def _expand_ppf(u: FloatArray, df: FloatArray) -> FloatArray:
    """Quantiles from those of the normal (see ``_expansions``)."""
    a = df - 0.5
    w = u + u * double_series(QUANTILE, u * u, 1.0 / (a * a))
    return np.copysign(np.sqrt(df * np.expm1(w * w / a)), u)


def _exact_size(q: FloatArray, df: FloatArray) -> FloatArray:
    """The size of quantiles: from the tail, or from the middle where its digits would cancel."""
    size = np.empty(q.shape)
    far = np.abs(q - 0.5) > 0.25
    near = ~far
    y = betaincinv(0.5 * df[far], 0.5, 2.0 * np.minimum(q[far], 1.0 - q[far]))
    size[far] = np.sqrt(df[far] * (1.0 - y) / y)
    x = betaincinv(0.5, 0.5 * df[near], 2.0 * np.abs(q[near] - 0.5))
    size[near] = np.sqrt(df[near] * x / (1.0 - x))
    return size
