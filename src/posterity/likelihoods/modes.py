"""The mode of a likelihood times a Gaussian, in one dimension."""

from __future__ import annotations

import numpy as np

from posterity.aliases import Array
from posterity.likelihoods.observation import Observation

MOST_STEPS = 400
# Of so many rows, the share that is searched for apart.
MANY, FEW = 1000, 0.25
# Beyond this no mode is looked for; and wider brackets are halved on a scale like that of logs.
FARTHEST, WIDE = 1e200, 100.0


def modes(
    likelihood: Observation,
    y: Array,
    mean: Array,
    variance: Array,
    weights: Array,
    close: float = 0.0,
) -> Array:
    """(n,) where weight log p(y | eta) - (eta - mean)^2 / 2 variance is largest.

    To rounding, or to a share ``close`` of the posterior's standard deviation.
    """
    own = getattr(likelihood, "modes", None)
    if own is not None:
        return np.asarray(own(y, mean, variance, weights), dtype=np.float64)

    def slope_at(eta: Array) -> tuple[Array, Array]:
        slope, curvature = likelihood.derivatives(y, eta)
        with np.errstate(over="ignore", invalid="ignore"):
            return eta - mean - variance * weights * slope, 1.0 + variance * weights * curvature

    closeness = likelihood.closeness
    least = 1e-300 if closeness < 1e-12 else 1.0  # differences have no relative precision near 0
    place = mean.copy()
    value, rise = slope_at(place)
    below, above = np.full(len(place), -np.inf), np.full(len(place), np.inf)
    low, high = _find_ends(place, value, below, above)
    done = value == 0.0
    for _ in range(MOST_STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            newton = place - value / rise
        inside = (newton > low) & (newton < high)
        moved = newton if inside.all() else np.where(inside, newton, _find_middle(low, high))
        previous, place = value, np.where(done, place, moved)
        value, rise = slope_at(place)
        low, high = _find_ends(place, value, below, above)
        # What rounding of the place, or of its distance from the mean, leaves open.
        with np.errstate(over="ignore", invalid="ignore"):
            steep = np.maximum(rise, 1.0)
            width = np.sqrt(variance / steep)
            size = np.maximum(np.maximum(np.abs(place), np.abs(mean) / steep), width)
            near = closeness * np.maximum(size, least) + close * width
            done |= (np.abs(value) / steep <= 4.0 * near) | (high - low <= 4.0 * near)
        # If a Newton step gains little, as on the flank of exp, the next one bisects the bracket.
        slow = (np.abs(value) > 0.25 * np.abs(previous)) & ~done
        if slow.any():
            middle = np.where(slow, _find_middle(low, high), place)
            tried = slope_at(middle)
            place = np.where(slow, middle, place)
            value, rise = np.where(slow, tried[0], value), np.where(slow, tried[1], rise)
            low, high = _find_ends(place, value, below, above)
        left = np.flatnonzero(~done)
        if len(left) == 0:
            break
        if len(y) > MANY and len(left) <= FEW * len(y):  # those that take long, by themselves
            rest = likelihood.of_rows(left), y[left], mean[left], variance[left], weights[left]
            place[left] = modes(*rest, close)
            break
    return place


def _find_ends(place: Array, value: Array, below: Array, above: Array) -> tuple[Array, Array]:
    """Ends (n,) of brackets, after values at places; ``below`` and ``above`` keep these places.

    Of a log-concave likelihood the function rises at least as fast as eta, so that its zero lies
    within -value of the place. Of others it may lie farther: an end where no value was found moves
    with the place.
    """
    np.copyto(below, place, where=value < 0.0)
    np.copyto(above, place, where=value > 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        end = np.clip(place - value, -FARTHEST, FARTHEST)
    return np.where(below > -np.inf, below, end), np.where(above < np.inf, above, end)


def _find_middle(low: Array, high: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.sinh(0.5 * (np.arcsinh(low) + np.arcsinh(high)))
        return np.where(high - low > WIDE, wide, 0.5 * (low + high))
