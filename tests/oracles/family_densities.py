"""Densities of families given eta and the logs t of their parameters, by SciPy or as sums.

Each takes targets (n,), eta (m, n) and each t (m, 1), which broadcast, and returns logs (m, n).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats
from scipy.special import expit, gammaln, log_expit, log_ndtr, xlogy

Array = NDArray[np.float64]


def gamma(y: Array, eta: Array, t: Array) -> Array:
    """Of the mean exp(eta) and the shape exp(t)."""
    k = np.exp(t)
    return k * (t - eta) + (k - 1.0) * np.log(y) - k * y * np.exp(-eta) - gammaln(k)


def inverse_gaussian(y: Array, eta: Array, t: Array) -> Array:
    """Of the dispersion exp(t)."""
    off = (y * np.exp(-eta) - 1.0) ** 2 / (y * np.exp(t))
    return -0.5 * (off + t + np.log(2.0 * np.pi * y**3))


def log_normal(y: Array, eta: Array, t: Array) -> Array:
    """Of the scale exp(t)."""
    return -0.5 * ((np.log(y) - eta) * np.exp(-t)) ** 2 - t - np.log(y) - 0.5 * np.log(2.0 * np.pi)


def weibull(y: Array, eta: Array, t: Array) -> Array:
    """Of the shape exp(t)."""
    e = np.exp(t) * (np.log(y) - eta)
    return t - np.log(y) + e - np.exp(e)


def censored_weibull(y: Array, eta: Array, t: Array) -> Array:
    """Of (n, 2) ends, where an infinite upper one says that y is at least the lower one."""
    low, seen = y[:, 0], np.isfinite(y[:, 1])
    e = np.exp(t) * (np.log(low) - eta)
    return np.where(seen, t - np.log(low) + e, 0.0) - np.exp(e)


def log_logistic(y: Array, eta: Array, t: Array) -> Array:
    """Of the shape exp(t)."""
    e = np.exp(t) * (np.log(y) - eta)
    return t - np.log(y) + e + 2.0 * log_expit(-e)


def tweedie(y: Array, eta: Array, t: Array) -> Array:
    """Of the power 1.5 and the dispersion exp(t): a Poisson number of exponential payments."""
    rate, scale = 2.0 * np.exp(0.5 * eta - t), 0.5 * np.exp(t + 0.5 * eta)
    # The sum over the number of payments is a Bessel function.
    some = np.where(y > 0.0, y, 1.0)
    root = 2.0 * np.sqrt(rate * some / scale)
    more = 0.5 * np.log(rate / (scale * some)) - y / scale + np.log(special.i1e(root)) + root
    return np.where(y > 0.0, more, 0.0) - rate


def beta(y: Array, eta: Array, t: Array) -> Array:
    """Of the precision exp(t)."""
    a, b = np.exp(t) * expit(eta), np.exp(t) * expit(-eta)
    return (a - 1.0) * np.log(y) + (b - 1.0) * np.log1p(-y) - special.betaln(a, b)


def beta_binomial(y: Array, eta: Array, t: Array) -> Array:
    """Of 8 trials and the precision exp(t)."""
    a, b = np.exp(t) * expit(eta), np.exp(t) * expit(-eta)
    choices = -np.log(9.0) - special.betaln(y + 1.0, 9.0 - y)
    return choices + special.betaln(y + a, 8.0 - y + b) - special.betaln(a, b)


def negative_binomial(y: Array, eta: Array, t: Array) -> Array:
    """Of the dispersion exp(t)."""
    return _count(y, np.exp(-t), np.exp(eta + t))


def linear_negative_binomial(y: Array, eta: Array, t: Array) -> Array:
    """Of the excess exp(t)."""
    return _count(y, np.exp(eta - t), np.exp(t))


def geometric(y: Array, eta: Array, *_: Array) -> Array:
    """Of the mean exp(eta)."""
    return y * eta - (y + 1.0) * np.logaddexp(0.0, eta)


def binomial(y: Array, eta: Array, *_: Array) -> Array:
    """Of 8 trials."""
    return y * eta - 8.0 * np.logaddexp(0.0, eta) - np.log(9.0) - special.betaln(y + 1.0, 9.0 - y)


def ordinal(log_below: Callable[[Array], Array]) -> Callable[..., Array]:
    """Of gaps exp(t) between cut points whose middle is 0."""

    def log_density(y: Array, eta: Array, *t: Array) -> Array:
        cuts = np.concatenate([np.zeros_like(t[0]), *np.exp(t)], axis=-1).cumsum(axis=-1)
        last = cuts.shape[-1] - 1
        cuts = cuts - 0.5 * (cuts[..., [last // 2]] + cuts[..., [(last + 1) // 2]])
        far = np.full_like(cuts[..., :1], np.inf)
        ends = np.concatenate([-far, cuts, far], axis=-1)
        level = y.astype(int)
        low, high = (np.take(ends, level + up, axis=-1) - eta for up in (0, 1))
        low, high = np.where(low > 0.0, -high, low), np.where(low > 0.0, -low, high)
        with np.errstate(invalid="ignore"):
            return log_below(high) + np.log1p(-np.exp(log_below(low) - log_below(high)))

    return log_density


def zero_inflated(counts: Callable[..., Array]) -> Callable[..., Array]:
    """Of the odds exp(t) of a 0, the last of t."""

    def log_density(y: Array, eta: Array, *t: Array) -> Array:
        own, odds = counts(y, eta, *t[:-1]), t[-1]
        return np.where(y == 0.0, np.logaddexp(own, odds), own) - np.logaddexp(0.0, odds)

    return log_density


def poisson(y: Array, eta: Array, *_: Array) -> Array:
    """Of the rate exp(eta)."""
    return y * eta - np.exp(eta) - gammaln(y + 1.0)


def hurdle_gamma(y: Array, eta: Array, t: Array, odds: Array) -> Array:
    """Of the shape exp(t) and the log odds of a 0."""
    some = np.where(y > 0.0, y, 1.0)
    return np.where(y > 0.0, gamma(some, eta, t) + log_expit(-odds), log_expit(odds))


def positive_poisson(y: Array, eta: Array, *_: Array) -> Array:
    """Of counts of 1 and more."""
    return poisson(y, eta) - np.log(-np.expm1(-np.exp(eta)))


def von_mises(y: Array, eta: Array, t: Array) -> Array:
    """Around 2 arctan(eta), of the concentration exp(t)."""
    k = np.exp(t)
    return k * (np.cos(y - 2.0 * np.arctan(eta)) - 1.0) - np.log(2.0 * np.pi * special.i0e(k))


def skew_normal(y: Array, eta: Array, *_: Array) -> Array:
    """Of the skew 4 and the scale 0.7, around the mean eta."""
    z = (y - eta) / 0.7 + 4.0 / np.sqrt(17.0) * np.sqrt(2.0 / np.pi)
    return -0.5 * z * z + log_ndtr(4.0 * z) - np.log(0.35 * np.sqrt(2.0 * np.pi))


def student_t(y: Array, eta: Array, *_: Array) -> Array:
    """Of 4 degrees of freedom and the scale 0.7."""
    return stats.t(4.0, scale=0.7).logpdf(y - eta)


def _count(y: Array, size: Array, odds: Array) -> Array:
    """Negative binomial of this size, the mean of which is size times odds."""
    constant = gammaln(y + size) - gammaln(size) - gammaln(y + 1.0)
    return constant + xlogy(y, odds) - (y + size) * np.log1p(odds)
