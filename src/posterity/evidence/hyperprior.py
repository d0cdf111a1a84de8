"""The hyperprior of the ratio alpha / beta, on a grid of its logarithm."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import log_expit

from posterity.aliases import Array

# With g = signal variance / noise variance, g / c ~ Lomax(1/10): density (1 + g / c)^-1.1 up to a
# constant, the hyper-g prior of Liang et al. (2008). Above the corner c it is nearly flat in log g,
# and proper, as few rows need, whose evidence is flat there (every g explains n <= p rows equally
# well): heavier than the half-Cauchy, so that strong signals are shrunk less. Below, it is flat in
# g itself: what is weak is not said to be nothing because few rows can't show it. (Flat in log g
# there, too, it makes a spike at no signal of the posterior, and of coefficients of one and a half
# standard errors 95% intervals hold 67%.)
#
# The corner is where directions are weak: a signal of 2% of the noise in each, and never more in
# all than the noise. A larger one is safer for coefficients (of 50 rows), a smaller one for
# predictions of five rows; 1/100 to 1 were tried, with exponents 1/10 to 1 below the corner and
# 1/20 to 1/2 above.
EXPONENT = 0.1
WEAK_SIGNAL_A_DIRECTION = 0.02
# Signals beyond e^40 of the noise, or below e^-40, are the same in double precision.
LARGEST_LOG_SIGNAL = 40.0
LONGEST_STEP = 0.4


@lru_cache(maxsize=64)
def make_log_ratio_grid(n_directions: int) -> tuple[Array, Array]:
    """Nodes (g,) in log(ratio / signal) and the log of hyperprior times quadrature weight (g,).

    The ratio is alpha / beta: the nodes are -log g.

    The evidence is a bump of sd about sqrt(2 / r) in log ratio, r the number of directions: the
    step follows it, which leaves an error of exp(-2 pi^2 2 / r / step^2) (trapezoidal rule).

    Examples
    --------
    >>> nodes, log_weights = make_log_ratio_grid(5)
    >>> round(float(np.exp(log_weights).sum()), 12), float(nodes[0]), float(nodes[-1])
    (1.0, -40.0, 40.0)
    """
    step = min(LONGEST_STEP, 1.25 / np.sqrt(max(n_directions, 1)))
    nodes = np.linspace(
        -LARGEST_LOG_SIGNAL, LARGEST_LOG_SIGNAL, 2 * int(np.ceil(LARGEST_LOG_SIGNAL / step)) + 1
    )
    above = nodes + np.log(min(WEAK_SIGNAL_A_DIRECTION * max(n_directions, 1), 1.0))
    log_weights = EXPONENT * log_expit(above) + log_expit(-above)
    # Third-order ends (Gregory): the hyperprior has not quite vanished there.
    ends = np.log([3.0 / 8.0, 7.0 / 6.0, 23.0 / 24.0])
    log_weights[:3] += ends
    log_weights[-3:] += ends[::-1]
    log_weights -= np.log(np.exp(log_weights).sum())
    for array in (nodes, log_weights):
        array.setflags(write=False)
    return nodes, log_weights
