"""The noise of groups: of all together, or of each its own, which a new group's is like."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Indices, Mask
from posterity.distributions import StudentT
from posterity.evidence.groups import SharedPrior
from posterity.factor.grouped import GroupBank, have_equal_targets

Slots = Indices

# Arms are chosen first until two of their rewards differ, but so often at most: before that nothing
# is known of an arm's own noise.
MOST_EQUAL_REWARDS = 5.0
# Fewest degrees of freedom of a group without rows, whose noise differs from that of others.
FEWEST_DEGREES = 3.0


def take_groups(values: Array, slots: Slots) -> Array:
    """Those of the groups at ``slots``, of values the last of which is that of all other groups."""
    return np.asarray(values[np.where(slots < len(values) - 1, slots, -1)])


def lack_rewards(bank: GroupBank) -> Mask:
    """(G,) groups of whose own noise nothing is known: they come first."""
    equal = have_equal_targets(bank.rows()[:, :, -1], bank.residuals())
    return np.asarray(equal & (bank.seen < MOST_EQUAL_REWARDS))


def compute_own_noise(bank: GroupBank, prior: SharedPrior, slots: Slots) -> Array:
    """(2, g) counts and residuals of the noise of the groups at ``slots``, -1: unknown ones."""
    assert prior.own_noise is not None
    noise = take_groups(prior.own_noise, slots).T
    known = (slots >= 0) & (slots < bank.size)
    noise[0, known] += bank.count[slots[known]]
    noise[1, known] += bank.posteriors(prior.priors, slots[known])[:, -1] ** 2
    return noise


def floor_faded(discount: float, prior: SharedPrior, noise: Array) -> None:
    """Of groups whose rows fade, let counts (2, n) be no lower than that of a new group."""
    if discount < 1.0 and prior.own_noise is not None:
        np.maximum(noise[0], prior.own_noise[-1, 0], out=noise[0])


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
