"""What is believed of the ratio alpha / beta before any data, on a grid of its logarithm."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

Array = NDArray[np.float64]

# With r = signal variance / (signal + noise variance), the share of the target's variance that the
# features explain: r ~ Beta(1/10, 1/10). In the log of the ratio this is nearly flat over
# ten units on both sides of equal signal and noise, and proper at both ends, where the evidence
# of few rows is flat (every share explains n <= p rows equally well). Heavier ends than those of
# the half-Cauchy (which is Beta(1/2, 1/2)): strong signals are shrunk less, and no signal at all is
# believed sooner. Of the exponents 1/20 to 1 this one came closest to the nominal coverage over
# strong, equal and no signal, one to ten features and 3 to 30 rows.
EXPONENT = 0.1
# Signals beyond e^40 of the noise, or below e^-40, are the same in double precision.
REACH = 40.0
LONGEST_STEP = 0.4


@lru_cache(maxsize=64)
def log_ratio_grid(n_directions: int) -> tuple[Array, Array]:
    """Nodes (g,) in log(ratio / signal) and the log of hyperprior times quadrature weight (g,).

    The evidence is a bump of sd about sqrt(2 / r) in log ratio, r the number of directions: the
    step follows it, which leaves an error of exp(-2 pi^2 2 / r / step^2) (trapezoidal rule).

    Examples
    --------
    >>> nodes, log_weights = log_ratio_grid(5)
    >>> round(float(np.exp(log_weights).sum()), 12), float(nodes[0]), float(nodes[-1])
    (1.0, -40.0, 40.0)
    """
    step = min(LONGEST_STEP, 1.25 / np.sqrt(max(n_directions, 1)))
    nodes = np.linspace(-REACH, REACH, 2 * int(np.ceil(REACH / step)) + 1)
    log_weights = EXPONENT * (log_expit(nodes) + log_expit(-nodes))
    # Third-order ends (Gregory): the hyperprior has not quite vanished there.
    ends = np.log([3.0 / 8.0, 7.0 / 6.0, 23.0 / 24.0])
    log_weights[:3] += ends
    log_weights[-3:] += ends[::-1]
    log_weights -= np.log(np.exp(log_weights).sum())
    for array in (nodes, log_weights):
        array.setflags(write=False)
    return nodes, log_weights
