"""Sums over a count whose log rate is normal: eta ~ Normal(m, v), y | eta ~ a count of rate e^eta.

Counts vary by rate + a rate^2, of dispersion a: negative binomial, and Poisson where a = 0. All
integrals are over analytic functions with one bump, for which the trapezoidal rule is exact to
rounding once the nodes sit where the bump is (Trefethen and Weideman 2014, "The exponentially
convergent trapezoidal rule").
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc, gammaincc, gammaln, ndtr

from posterity.distributions._rows import FloatArray, rowwise

# Nodes u, where eta = mode + scale sinh(u): dense at the mode, reaching far into slow tails.
NODES = np.linspace(-4.6, 4.6, 121)
SINH, LOG_COSH = np.sinh(NODES), np.log(np.cosh(NODES))
STEP = NODES[1] - NODES[0]
# A count with more information on its log rate has no slower tails than a Gamma of that shape.
UNIFORM = np.linspace(-8.5, 8.5, 43)
UNIFORM_STEP = UNIFORM[1] - UNIFORM[0]
INFORMATIVE_COUNT = 32.0
UNIFORM_WEIGHTS = np.exp(-0.5 * UNIFORM * UNIFORM)
UNIFORM_WEIGHTS /= UNIFORM_WEIGHTS.sum()
# Nodes, log of d eta / du but for the scale, and the step of u.
SINH_NODES = SINH, LOG_COSH, float(STEP)
UNIFORM_NODES = UNIFORM, np.zeros(len(UNIFORM)), float(UNIFORM_STEP)
BLOCK_ROWS = 256
FARTHEST = 300.0


def log_mass(
    y: FloatArray, mean: FloatArray, variance: FloatArray, dispersion: FloatArray
) -> FloatArray:
    """Log probability (n,) of the counts ``y`` (n,), whole numbers >= 0.

    Examples
    --------
    >>> zero = np.zeros(1)
    >>> np.exp(log_mass(zero, zero, zero, zero)).round(4)
    array([0.3679])
    """
    return rowwise(_log_mass, y, mean, variance, dispersion, block_rows=BLOCK_ROWS)


def distribution_function(
    y: FloatArray, mean: FloatArray, variance: FloatArray, dispersion: FloatArray
) -> FloatArray:
    """P(count <= y), (n,); ``y`` (n,) whole numbers >= 0.

    Examples
    --------
    >>> zero = np.zeros(1)
    >>> distribution_function(zero, zero, zero, zero).round(4)
    array([0.3679])
    """
    return rowwise(_compute_cdf, y, mean, variance, dispersion, block_rows=BLOCK_ROWS)


def information(y: FloatArray, dispersion: FloatArray) -> FloatArray:
    """Return the information of a count on its log rate: 1 / (1 / y + dispersion)."""
    return y / (1.0 + dispersion * y)


def log_peak(y: FloatArray, dispersion: FloatArray) -> FloatArray:
    """Log probability of ``y`` where its rate is ``y``: Loader (2000), a saddle point; 0 at 0.

    With r = 1 / dispersion: log(r / (2 pi y (y + r))) / 2 + d(y + r) - d(r) - d(y), where d(n) is
    what Stirling's formula of log n! lacks.
    """
    some = np.maximum(y, 1e-300)
    beyond = some / (1.0 + dispersion * some)
    value = -0.5 * np.log(2.0 * math.pi * beyond * np.square(1.0 + dispersion * some))
    value -= _compute_stirling_error(some)
    r = 1.0 / np.maximum(dispersion, 1e-300)
    value += np.where(
        dispersion > 0.0, _compute_stirling_error(some + r) - _compute_stirling_error(r), 0.0
    )
    return np.where(y > 0.0, value, 0.0)


def _compute_stirling_error(n: FloatArray) -> FloatArray:
    square = 1.0 / np.square(np.maximum(n, 10.0))
    series = (1.0 - square * (1.0 / 30.0 - square * (1.0 / 105.0 - square / 140.0))) / (12.0 * n)
    small = n < 10.0
    if not small.any():
        return series
    few = np.where(small, n, 1.0)
    exact = gammaln(few + 1.0) - 0.5 * np.log(2.0 * math.pi * few) - few * np.log(few) + few
    return np.where(small, exact, series)


def relative(y: FloatArray, off: FloatArray, dispersion: FloatArray) -> FloatArray:
    """y off - (y + r) log(1 + q (e^off - 1)), q = y / (y + r): 0 at its top, where off = 0.

    The log of the density of y at the log rate log(y) + off, against that at log(y); for a
    Poisson y (off - e^off + 1). It is the same with y and r exchanged and ``off`` turned round: the
    smaller of the two comes in front, so that large counts lose no digits.
    """
    r = 1.0 / np.maximum(dispersion, 1e-300)
    turned = y > r
    less, more = np.minimum(y, r), np.maximum(y, r)
    off = np.where(turned, -off, off)
    near = np.minimum(off, FARTHEST)
    grown = np.expm1(near)
    value = less * (near - grown * _divide_log1p(grown * (less / (less + more))))
    # Beyond the farthest rate it is a straight line.
    return np.where(off > FARTHEST, value - (off - FARTHEST) * more, value)


def _divide_log1p(x: FloatArray) -> FloatArray:
    """log(1 + x) / x."""
    small = np.abs(x) < 1e-5
    divisor = np.where(small, 1.0, x)
    series = 1.0 - x * (0.5 - x / 3.0)
    if small.all():
        return series
    return np.where(small, series, np.log1p(np.maximum(x, -1.0)) / divisor)


def _log_mass(y: FloatArray, m: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    much = information(y, a) >= INFORMATIVE_COUNT
    result = np.empty(y.shape)
    for some, nodes in ((much, UNIFORM_NODES), (~much, SINH_NODES)):
        if some.any():
            result[some] = _log_mass_by(nodes, y[some], m[some], v[some], a[some])
    return result


def _log_mass_by(
    nodes: tuple[FloatArray, FloatArray, float],
    y: FloatArray,
    m: FloatArray,
    v: FloatArray,
    a: FloatArray,
) -> FloatArray:
    places, log_slopes, step = nodes
    # v = 0 is the limit of small variances, to rounding.
    v = np.maximum(v, 1e-14 / (1.0 + information(y, a)))
    mode = _find_mode(y, m, v, a)
    log_y = np.log(np.where(y > 0.0, y, 1.0))
    share = _share(mode, a)
    scale = 1.0 / np.sqrt(share * (1.0 + a * y) / (1.0 + a * np.exp(mode)) + 1.0 / v)
    # From the mode, which may be large beside the scale.
    step_to = scale[:, None] * places
    exponent = -0.5 * np.square((mode - m)[:, None] + step_to) / v[:, None] + log_slopes
    eta, off = mode[:, None] + step_to, (mode - log_y)[:, None] + step_to
    exponent += _log_density(y[:, None], eta, off, a[:, None])
    highest = exponent.max(axis=1)
    total = np.exp(exponent - highest[:, None]).sum(axis=1) * step
    whole = highest + np.log(total * scale) - 0.5 * np.log(2.0 * math.pi * v)
    return whole + log_peak(y, a)


def _share(eta: FloatArray, a: FloatArray) -> FloatArray:
    """e^eta / (1 + a e^eta), however large eta is."""
    return 1.0 / (np.exp(-np.maximum(eta, -700.0)) + a)


def _log_density(y: FloatArray, eta: FloatArray, off: FloatArray, a: FloatArray) -> FloatArray:
    """Log density of y at eta, but for :func:`log_peak`."""
    if (y > 0.0).all():
        return relative(y, off, a)
    rate = np.exp(np.minimum(eta, FARTHEST))
    none = -rate * _divide_log1p(a * rate)
    none -= np.where(eta > FARTHEST, (eta - FARTHEST) / np.maximum(a, 1e-300), 0.0)
    return np.where(y > 0.0, relative(y, off, a), none)


def _find_mode(y: FloatArray, m: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    """Solve (y - e^eta) / (1 + a e^eta) = (eta - m) / v by Newton's method inside a bracket."""
    own = np.log(np.maximum(y, 1e-3))
    # The left side lies between -1/a (or less) and y: the root is between m and its own log rate.
    low, high = np.minimum(m, own), np.maximum(m, own)
    low = np.where(y == 0.0, m - v * np.minimum(_share(m, a), 1e300), low)
    information_at = information(np.maximum(y, 0.5), a)
    eta = np.clip((m + v * information_at * own) / (1.0 + v * information_at), low, high)
    for _ in range(60):
        rate = np.exp(np.minimum(eta, FARTHEST))
        spread = 1.0 + a * rate
        slope = (y - rate) / spread - (eta - m) / v
        low, high = np.where(slope > 0.0, eta, low), np.where(slope > 0.0, high, eta)
        step = slope / (rate * (1.0 + a * y) / np.square(spread) + 1.0 / v)
        there = eta + step
        inside = (there >= low) & (there <= high)
        there = np.where(inside, there, 0.5 * (low + high))
        moved = np.abs(there - eta).max(initial=0.0)
        eta = there
        if moved < 1e-6:  # nodes near the mode are enough
            break
    return eta


def _compute_cdf(y: FloatArray, m: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
    """The probability of at most y is that of a larger random rate u: a step, smoothed twice.

    P(count <= y | eta) = P(eta < u), where u is log(y + 1) + off, and ``off`` has the log density
    :func:`relative` of y + 1. Averaged over eta where that is narrower, else over u.
    """
    information_at = information(y + 1.0, a)
    by_rate = v * information_at <= 1.0
    result = np.empty(y.shape)
    if by_rate.any():
        some = by_rate
        eta = m[some, None] + np.sqrt(v[some])[:, None] * UNIFORM
        rate = np.exp(np.minimum(eta, 700.0))
        result[some] = _cdf_at_known_rate(y[some, None], rate, a[some, None]) @ UNIFORM_WEIGHTS
    if not by_rate.all():
        other = ~by_rate
        shape, mean, deviation = y[other, None] + 1.0, m[other, None], np.sqrt(v[other, None])
        off = SINH / np.sqrt(information_at[other, None])
        weights = np.exp(relative(shape, off, a[other, None]) + LOG_COSH)
        steps = ndtr((np.log(shape) + off - mean) / deviation)
        result[other] = (weights * steps).sum(axis=1) / weights.sum(axis=1)
    return np.minimum(result, 1.0)


def _cdf_at_known_rate(y: FloatArray, rate: FloatArray, a: FloatArray) -> FloatArray:
    """P(count <= y) at known rates."""
    # A dispersion this small changes no digit of a probability.
    poisson = np.broadcast_to(a * (1.0 + rate) < 1e-12, rate.shape)
    if poisson.all():
        return gammaincc(y + 1.0, rate)
    cdf = betainc(1.0 / np.maximum(a, 1e-300), y + 1.0, 1.0 / (1.0 + a * rate))
    return np.where(poisson, gammaincc(y + 1.0, rate), cdf) if poisson.any() else cdf


__all__ = ["distribution_function", "information", "log_mass", "log_peak", "relative"]
