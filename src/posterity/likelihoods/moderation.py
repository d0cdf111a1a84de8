"""The logistic and the normal distribution function, averaged over a Gaussian."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr

from posterity.aliases import Array
from posterity.kernel import expected_labels

LARGEST_SERIES_VARIANCE = 1.0

# The logistic distribution function as a mixture of eight normal ones (Monahan and Stefanski
# 1992, k = 8): the largest error is 2.2e-9.
SHARES = np.array(
    [
        0.003246343272134,
        0.051517477033972,
        0.195077912673858,
        0.315569823632818,
        0.274149576158423,
        0.131076880695470,
        0.027912418727972,
        0.001449567805354,
    ]
)
SLOPES = np.array(
    [
        1.365340806296348,
        1.059523971016916,
        0.830791313765644,
        0.650732166639391,
        0.508135425366489,
        0.396313345166341,
        0.308904252267995,
        0.238212616409306,
    ]
)


def log_expected_logistic(mean: Array, variance: Array) -> Array:
    """log of the expectation of 1 / (1 + exp(-eta)), eta ~ Normal(mean, variance).

    Notes
    -----
    Averaged over a Gaussian, a normal distribution function of slope s becomes one of slope
    s / sqrt(1 + s^2 variance), so that the mixture stays a mixture whatever the variance. Far in
    the lower tail, where its error would show, sigmoid(eta) = exp(eta) sigmoid(-eta): the
    expectation is exp(mean + variance / 2) times that of sigmoid(-eta) with mean + variance.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(log_expected_logistic(np.array([0.0, 10.0, -50.0]), np.array([4.0, 100.0, 1.0])))
    array([5.00000000e-01, 8.37453382e-01, 3.17997090e-22])
    """
    mean, variance = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
    tail = mean + variance < 0.0
    with np.errstate(invalid="ignore"):
        moved = np.where(tail, -(mean + variance), mean)
        lead = np.where(tail, mean + 0.5 * variance, 0.0)
    total = np.zeros(mean.shape)
    for share, slope in zip(SHARES, SLOPES, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            place = moved / np.sqrt(slope**-2.0 + variance)
        total += share * ndtr(np.where(np.isinf(variance), 0.0, place))
    with np.errstate(divide="ignore", under="ignore"):
        # Far out all terms vanish but the widest.
        widest = log_ndtr(moved / np.sqrt(SLOPES[-1] ** -2.0 + variance))
        return np.where(total > 0.0, np.log(total), widest) + lead


def log_expected_normal(mean: Array, variance: Array) -> Array:
    """log of the expectation of the normal distribution function: exact.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(log_expected_normal(np.array([1.0]), np.array([3.0]))).round(6)
    array([0.691462])
    """
    return log_ndtr(mean / np.sqrt(1.0 + variance))


def log_odds_averaged(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Logs of the expectations of sigmoid(eta) and sigmoid(-eta), eta ~ Normal(mean, variance).

    Up to a variance of 1 by 16 nodes of Gauss-Hermite, which has ten digits there, also far out.

    Examples
    --------
    >>> import numpy as np
    >>> yes, no = log_odds_averaged(np.array([1.0, 1.0]), np.array([1.0, 9.0]))
    >>> np.exp(yes).round(6), np.exp(no).round(6)
    (array([0.696735, 0.613247]), array([0.303265, 0.386753]))
    """
    mean, variance = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
    shape, mean, variance = mean.shape, np.ravel(mean), np.ravel(variance)
    wide = variance > LARGEST_SERIES_VARIANCE
    if not wide.any():
        yes, no = expected_labels(mean, variance)
    else:
        yes, no = expected_labels(mean, np.minimum(variance, LARGEST_SERIES_VARIANCE))
        yes[wide] = log_expected_logistic(mean[wide], variance[wide])
        no[wide] = log_expected_logistic(-mean[wide], variance[wide])
    return yes.reshape(shape), no.reshape(shape)
