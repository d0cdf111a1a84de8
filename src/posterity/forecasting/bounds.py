"""Bounds of forecasts: counts and amounts are never negative, and shares never above 1.

A forecast that ends at a bound is a normal censored there (Tobin 1958): what lies beyond counts as
being at the bound. Censoring a normal moves its mean. But the mean of a linear forecast is right
whatever the distribution of the values. So of series that are often at their bound the normal is
chosen whose *censored* mean and variance are those of the forecast.

That a series cannot pass 1, or 100, is found by two signs. One that could, with the errors that it
has had, would have passed it by now: let p_t be the probability of that at each row, given those
before, then the product of 1 - p_t falls below a with a probability of no more than a (Ville 1939).
And near the bound it moves less, so that errors of log odds are more alike than those of values or
of their logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from posterity.aliases import Array, Mask
from posterity.forecasting.calendar import format_time
from posterity.forecasting.gaps import carry_forward
from posterity.forecasting.outliers import compare_with_expected
from posterity.forecasting.panel import Panel

ROOT_2_PI = float(np.sqrt(2.0 * np.pi))
# A series is often at its bound if at least this share of its values is.
FREQUENT_SHARE = 0.05
# Means of forecasts, in standard deviations above the bound. Above the first the bound does not
# matter. Between the third and the second the censored mean is the second. At the third that is the
# mean of the forecast's own normal when it is censored, and below nothing is moved.
UNCENSORED_MEAN, SMALLEST_CENSORED_MEAN, LOWEST_MEAN = 5.0, 0.2, -0.4929
# The table by which the normals with given censored moments are found.
LOWEST, POINTS = -4.0, 4096
# Of normals that are censored on both sides: the least share of the width that a mean is from an
# end, how much wider they are made, and steps to find them.
LEAST_SHARE, LARGEST_FACTOR, MOVES = 0.02, 5.0, 30
ONE, FREE = np.array(1.0), np.array(np.inf)
# Where values may end above, shares and percentages, and how near to it some have to be.
TOPS, TOP_SHARE = (1.0, 100.0), 0.8
# Nats by which a free series is less probable not to have passed the top, and log odds are a better
# scale; and those of the first where the top itself is often reached, which log odds do not have.
PASSED, BETTER, PASSED_AT_TOP = 2.0, 8.0, 7.0
# Nats by which logarithms are a better scale of values that are multiplied by chance, and as what
# share of the largest value so far the smallest one says so.
CLEARLY_BETTER, SPAN = 16.0, 0.5
# The same where neither 0 nor the top was passed: for each of the two, and for both better scales.
PASSED_EACH, BETTER_THAN_EACH = 1.0, 5.0
# Log odds are those of values at least this share of the top away from it, and from 0; errors that
# count on one scale, in standard errors.
NEAREST, LARGEST_ERROR = 1e-3, 6.0


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower and upper bounds (2, ...), infinite where there is none, and the ``often`` reached."""

    values: Array
    often: Mask

    def before(self, columns: slice | int) -> Bounds:
        """Bounds (2, n S) before some columns: one after the other, of all series each."""
        values, often = self.values[:, :, columns], self.often[:, :, columns]
        return Bounds(
            np.moveaxis(values, 1, -1).reshape(2, -1), np.moveaxis(often, 1, -1).reshape(2, -1)
        )


def check_bounds(lower: Any, upper: Any, floor: Any = 0.0, capacity: Any = None) -> None:
    """Raise ``ValueError`` unless each is "auto", None or a finite number, in this order.

    With a ``capacity`` both have to be "auto", and it is a number above the ``floor``.
    """
    for side, beyond, bound in (("lower", "below", lower), ("upper", "above", upper)):
        if not (bound is None or _is_number(bound) or _is_auto(bound)):
            raise ValueError(
                f'{side}_bound is {bound!r}: give "auto", a finite number {beyond} which there are '
                "no values, or None"
            )
    if _is_number(lower) and _is_number(upper) and not lower < upper:
        raise ValueError(
            f"lower_bound is {lower!r} and upper_bound {upper!r}: the lower one must be below"
        )
    if not _is_number(floor) or (capacity is None and floor != 0.0):
        raise ValueError(
            f"floor is {floor!r}: give a finite number, and capacity, where values end above; "
            "without a capacity lower_bound is where they end below"
        )
    if capacity is None:
        return
    if not (_is_number(capacity) and floor < capacity):
        raise ValueError(
            f"capacity is {capacity!r}: give a finite number above all values and the floor, "
            f"{floor:g}"
        )
    if not (_is_auto(lower) and _is_auto(upper)):
        raise ValueError(
            f"lower_bound is {lower!r}, upper_bound {upper!r} and capacity {capacity!r}: with a "
            "capacity values end there and at the floor, so leave out both bounds"
        )


def check_capacity(panel: Panel, floor: float, capacity: float | None) -> None:
    """Raise ``ValueError``, naming the first, where a value is not between floor and capacity."""
    if capacity is None:
        return
    for outside, end in (
        (panel.values >= capacity, f"capacity is {capacity:g}"),
        (panel.values <= floor, f"floor is {floor:g}"),
    ):
        if outside.any():
            series, column = np.argwhere(outside)[0]
            step = panel.ends[series] - panel.length + 1 + column
            raise ValueError(
                f"{end}, and {panel.describe_series(panel.ids[series])} has the value "
                f"{panel.values[series, column]:g} at {format_time(panel.calendar.stamps(step))}: "
                "all values must be above the floor and below the capacity; change it, or give "
                "upper_bound, which values may reach"
            )


def get_top(upper: Any) -> float:
    """Where values end above, if it is given; infinity where it is not."""
    return float(upper) if _is_number(upper) else float(np.inf)


def find_ends(values: Array, lower: Any, upper: Any) -> tuple[float, float] | None:
    """Between which ends forms of values (S, T) have logarithms: given bounds, or above 0.

    None where no series is inside.
    """
    given = [(lower, upper)] if _is_number(lower) and _is_number(upper) else []
    least, most = np.nanmin(values, axis=1), np.nanmax(values, axis=1)
    for low, high in (*given, (0.0, np.inf)):
        if ((least > low) & (most < high)).any():
            return low, high
    return None


def find_bounds(
    values: Array,
    lower: float | str | None = "auto",
    upper: float | str | None = "auto",
    periods: Sequence[float] = (),
) -> Bounds:
    """Bounds (2, S, T + 1) known before each column of ``values`` (S, T), and after the last.

    "auto" below: 0 where no value so far is negative, and all are whole numbers or some are 0; or
    where a series that is free to pass 0 would have done so, and logarithms are a better scale; or
    where these are clearly better.
    Above: 1 or 100 where all values so far are from 0 to there, and a series that is free to pass
    it, with these seasonal ``periods``, would have done so; see :func:`_find_top`. No bound is
    infinite. A value beyond a bound that was given ends it for its series.
    """
    ends = np.empty((2, *values.shape))
    ends[1] = _find_top(values, periods) if _is_auto(upper) else np.inf if upper is None else upper
    ends[0] = (
        _find_bottom(values, periods) if _is_auto(lower) else -np.inf if lower is None else lower
    )
    if _is_auto(lower) and _is_auto(upper):  # what log odds are the scale of ends at 0, too
        ends[0] = np.where(np.isfinite(ends[1]), 0.0, ends[0])
    signs = np.array([1.0, -1.0])[:, None, None]
    with np.errstate(invalid="ignore"):
        over = signs * (values - ends)
    bounded = np.isfinite(ends) & np.logical_and.accumulate(~(over < 0.0), axis=2)
    often = np.cumsum(over <= 0.0, axis=2) > FREQUENT_SHARE * np.cumsum(np.isfinite(values), axis=1)
    none = np.broadcast_to(-np.inf * signs, (2, len(values), 1))
    return Bounds(
        np.concatenate([none, np.where(bounded, ends, -np.inf * signs)], axis=2),
        np.concatenate([np.zeros(none.shape, dtype=bool), bounded & often], axis=2),
    )


def choose_end(bounds: Array, mean: Array) -> tuple[Array, Array, Array]:
    """(S, h) which of the ``bounds`` (2, S) is nearer to a mean (S, h).

    Its sign, 1 of a lower and -1 of an upper one; the bound, 0 if infinite; how far the other is.
    """
    low, high = bounds[:, :, None]
    upper = high - mean < mean - low
    end = np.where(upper, high, low)
    sign = np.where(upper, -1.0, 1.0)
    return sign, np.where(np.isfinite(end), end, 0.0), np.broadcast_to(high - low, mean.shape)


def compute_censored_moments(over: Array, sd: Array, width: Array = FREE) -> tuple[Array, Array]:
    """Mean and mean square of min(max(x, 0), width), x ~ Normal(over, sd^2) (Tobin 1958)."""
    z = over / sd
    above, height = ndtr(z), sd * np.exp(-0.5 * z * z) / ROOT_2_PI
    mean = over * above + height
    square = (np.square(over) + np.square(sd)) * above + over * height
    if not np.isfinite(width).any():
        return mean, square
    # What is beyond the width, v = max(x - width, 0): x^2 - width^2 = v^2 + 2 width v.
    some = np.isfinite(width)
    far = np.where(some, width, 0.0)
    beyond, squared = compute_censored_moments(over - far, sd)
    return (
        np.where(some, mean - beyond, mean),
        np.where(some, square - squared - 2.0 * far * beyond, square),
    )


def compute_censored_lognormal_moments(mean: Array, sd: Array, top: Array) -> tuple[Array, Array]:
    """Mean and mean square of min(exp(x), top), x ~ Normal(mean, sd^2)."""
    log = np.log(top)
    z = (log - mean) / sd
    at_top = log_ndtr(-z)
    first = np.exp(mean + 0.5 * sd * sd + log_ndtr(z - sd)) + np.exp(log + at_top)
    second = np.exp(2.0 * (mean + sd * sd) + log_ndtr(z - 2.0 * sd)) + np.exp(2.0 * log + at_top)
    return first, second


def move_to_moments(z: Array) -> tuple[Array, Array]:
    """Mean and sd of the normals whose moments, censored at 0, are those of a forecast.

    ``z`` are means of forecasts with a standard deviation of 1.
    """
    share = np.clip((z - LOWEST_MEAN) / (SMALLEST_CENSORED_MEAN - LOWEST_MEAN), 0.0, 1.0)
    mean = np.maximum(z, SMALLEST_CENSORED_MEAN)
    variance = share + (1.0 - share) * (
        compute_censored_moments(np.array(LOWEST_MEAN), ONE)[1] - SMALLEST_CENSORED_MEAN**2
    )
    ratios, places = _make_table()
    found = np.interp(np.log(variance / np.square(mean)), ratios, places)
    sd = mean / compute_censored_moments(found, ONE)[0]
    moved = (z > LOWEST_MEAN) & (z < UNCENSORED_MEAN)
    return np.where(moved, found * sd, z), np.where(moved, sd, 1.0)


def move_between(z: Array, width: Array) -> tuple[Array, Array]:
    """The same of normals that are censored at 0 and at ``width``, both often.

    Step by step, as each mean moves the censored one, and each sd the censored one. These cannot
    be matched if they are those of no distribution between the two.
    """
    wanted = np.clip(z, LEAST_SHARE * width, (1.0 - LEAST_SHARE) * width)
    mean, sd = wanted, np.ones(z.shape)
    for _ in range(MOVES):
        first, square = compute_censored_moments(mean, sd, width)
        found = np.sqrt(np.maximum(square - np.square(first), LEAST_SHARE))
        mean = np.clip(mean + wanted - first, -width, 2.0 * width)
        sd = np.clip(sd / found, 1.0, LARGEST_FACTOR)
    return mean, sd


# ---- inner ---------------------------------------------------------------------------------------


def _is_auto(bound: Any) -> bool:
    return isinstance(bound, str) and bound == "auto"


def _is_number(bound: Any) -> bool:
    number = isinstance(bound, int | float | np.integer | np.floating)
    return bool(number and np.isfinite(bound))


def _is_whole(values: Array) -> Mask:
    """(S, T) whether all values so far are whole numbers."""
    whole = np.isnan(values) | (values == np.round(values))
    return np.asarray(np.logical_and.accumulate(whole, axis=1))


def _find_bottom(values: Array, periods: Sequence[float]) -> Array:
    """(S, T) 0 where counts, or amounts that are sometimes 0 or near it, end."""
    touched = np.logical_or.accumulate(values == 0.0, axis=1)
    bottoms = np.where(_is_whole(values) | touched, 0.0, -np.inf)
    least = np.fmin.accumulate(values, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(least > 0.0, least / np.fmax.accumulate(values, axis=1), np.inf)
    some = np.flatnonzero(((share <= SPAN) & np.isinf(bottoms)).any(axis=1))
    if len(some):
        x = carry_forward(values[some])
        log = np.log(np.where(x > 0.0, x, 1.0))
        passed, losses = _weigh_scales(values[some], [(x, 0.0), (log, log)], [0.0], periods)
        better, near = losses[0] - losses[1], share[some] <= 1.0 - TOP_SHARE
        found = (passed[0] > PASSED) & (better > BETTER) & near
        found |= (better > CLEARLY_BETTER) & (share[some] <= SPAN)
        bottoms[some] = np.where(np.logical_or.accumulate(found, axis=1), 0.0, bottoms[some])
    return bottoms


def _find_top(values: Array, periods: Sequence[float]) -> Array:
    """(S, T) where shares and percentages end above: 1 or 100, as far as is known by then.

    Both signs count (see above) as long as no value is at the top: data may have been divided by
    their largest one. Where more than a twentieth of the values are, the first is enough. Around a
    half both ends say it, each less. Series of 0 and 1 have none: there may be a count of 2.
    """
    tops = np.full(values.shape, np.inf)
    with np.errstate(invalid="ignore"):
        least = np.fmin.accumulate(values, axis=1)
        most = np.fmax.accumulate(values, axis=1)
    for top in TOPS:
        inside = (least >= 0.0) & (most <= top) & ~(_is_whole(values) & (top == 1.0))
        some = np.flatnonzero((inside & (most >= 0.5 * top)).any(axis=1))
        if not len(some):
            continue
        y = values[some]
        at_top: Array = np.cumsum(y == top, axis=1) / np.maximum(
            np.cumsum(np.isfinite(y), axis=1), 1
        )
        passed, losses = _weigh_odds(y, top, periods)
        plain, odds = np.minimum(losses[0], losses[1]), np.minimum(losses[2], losses[3])
        near = most[some] >= TOP_SHARE * top
        found = near & (passed[1] > PASSED) & (plain - odds > BETTER)
        best = np.minimum(plain, losses[2]) - losses[3]
        found |= (passed > PASSED_EACH).all(axis=0) & (best > BETTER_THAN_EACH)
        found &= at_top == 0.0
        found |= near & (passed[1] > PASSED_AT_TOP) & (at_top > FREQUENT_SHARE)
        tops[some] = np.where(
            np.logical_or.accumulate(found & inside[some], axis=1), top, tops[some]
        )
    return tops


def _weigh_odds(values: Array, top: float, periods: Sequence[float]) -> tuple[Array, list[Array]]:
    """(2, S, T) nats against values that are free to pass 0 and ``top``, and losses of scales.

    Of values, their logarithms, those of what is left to the top, and log odds.
    """
    x = carry_forward(values)
    below = np.log(np.maximum(x, NEAREST * top))
    above = np.log(np.maximum(top - x, NEAREST * top))
    scales = [
        (x, 0.0),
        (below, below),
        (above, above),
        (below - above, below + above - np.log(top)),
    ]
    return _weigh_scales(values, scales, (0.0, top), periods)


def _weigh_scales(
    values: Array,
    scales: Sequence[tuple[Array, Array | float]],
    ends: Sequence[float],
    periods: Sequence[float],
) -> tuple[Array, list[Array]]:
    """(E, S, T) nats so far against values that are free to pass ends, 0 from above or a top.

    And losses of each scale. Scales come with the logarithms of the slopes of values by them, the
    values themselves first.
    """
    losses: list[Array] = []
    missed: list[Array] = []
    known = np.isfinite(values)
    for scale, slope in scales:
        error, sd = compare_with_expected(scale, known, periods)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.minimum(np.abs(error) / sd, LARGEST_ERROR)
            if not losses:
                inside = (end - (scale - error) if end else scale - error for end in ends)
                missed = [-log_ndtr(one / sd) for one in inside]
            losses.append(np.log(sd) + 0.5 * np.square(size) + slope)
    sums = [np.cumsum(np.where(np.isfinite(one), one, 0.0), axis=1) for one in (*missed, *losses)]
    return np.array(sums[: len(ends)]), sums[len(ends) :]


@lru_cache(maxsize=1)
def _make_table() -> tuple[Array, Array]:
    """Increasing logs of variance over squared mean of censored normals, and their means."""
    places = np.linspace(UNCENSORED_MEAN + 1.0, LOWEST, POINTS)
    mean, square = compute_censored_moments(places, ONE)
    return np.log(square / np.square(mean) - 1.0), places
