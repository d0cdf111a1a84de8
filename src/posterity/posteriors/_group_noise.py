"""The noise of groups: of all together, or of each its own, which a new group's is like."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from posterity.distributions import StudentT
from posterity.evidence.groups import SharedPrior

Array = NDArray[np.float64]
Slots = NDArray[np.intp]

# Fewest degrees of freedom of a group without rows, whose noise differs from that of others.
FEWEST_DEGREES = 3.0


def take_groups(values: Array, slots: Slots) -> Array:
    """Those of the groups at ``slots``, of values the last of which is that of all other groups."""
    return np.asarray(values[np.where(slots < len(values) - 1, slots, -1)])


def predict_new_groups(
    prior: SharedPrior, precision: float, places: Slots, leverage: Array, noise: Array
) -> None:
    """Set the noise (2, n) of rows of new groups, at ``places``, and scale their leverages.

    The noise of such a group has the same 95% interval, but a variance. Its effects vary by the
    noise of all groups, of this ``precision``: the variances of both add up.
    """
    assert prior.own_noise is not None
    count, residual = prior.own_noise[-1]
    if 0.0 < count < FEWEST_DEGREES:
        wider = find_t_quantile(0.975, count) / find_t_quantile(0.975, FEWEST_DEGREES)
        count, residual = FEWEST_DEGREES, residual / count * wider**2 * FEWEST_DEGREES
    noise[:, places] = np.array([[count], [residual]])
    if prior.ratio is not None and count > 0.0:
        leverage[places] *= (count - 2.0) / (residual * precision)


def find_t_quantiles(level: float, df: Array) -> Array:
    """A quantile of Student's t distributions; infinite without degrees of freedom."""
    quantiles = np.full(len(df), np.inf)
    quantiles[df > 0.0] = StudentT(df[df > 0.0]).ppf(level)
    return quantiles


@lru_cache(maxsize=4096)
def find_t_quantile(level: float, df: float) -> float:
    """The same of one distribution."""
    return float(find_t_quantiles(level, np.array([df]))[0])


def cumulate(start: float, gains: Array, out: Array) -> None:
    """Return the cumulative sums before each gain."""
    out[0] = start
    out[1:] = gains[:-1]
    np.cumsum(out, out=out)


def cumulate_by_group(numbers: NDArray[np.int32], start: Array, gains: Array, out: Array) -> None:
    """Return the cumulative sums (2, n) before each gain, of each group from its ``start``."""
    order = np.argsort(numbers, kind="stable")
    sums = np.cumsum(gains[:, order], axis=1) - gains[:, order]
    firsts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    of_first = np.repeat(sums[:, firsts], np.diff(firsts, append=len(order)), axis=1)
    out[:, order] = sums - of_first + start[:, numbers[order]]


def sum_residuals(posteriors: Array) -> float:
    """Sum of the residuals of packed posteriors."""
    return float(np.sum(posteriors[:, -1] ** 2))
