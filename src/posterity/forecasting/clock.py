"""Steps that follow the clocks of a zone, so that a day's season stays at its hours.

Times with a zone are steps in UTC, where each hour comes once. Where clocks change, the hour of the
day moves by a step. So forms learn rows that are counted by the clock, from the last row back: the
hour that comes twice in autumn is one row, the mean of both, and the one that is left out in spring
was not observed. Forecasts of steps that come are read off by the clock in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np

from posterity.aliases import Array
from posterity.forecasting.calendar import DAY, Calendar, Index
from posterity.forecasting.panel import Panel
from posterity.forecasting.writing import get_zone


def follow_clock(panel: Panel) -> Panel:
    """The rows of a panel by the clock; what has no zone, or steps of days, stays as it is."""
    if not _has_clock(panel.calendar):
        return panel
    places = find_places(panel)
    if (places == np.arange(panel.length)).all():
        return panel
    first, length = int(places.min()), panel.length - int(places.min())
    values = np.dstack([panel.values, panel.columns])
    total = np.zeros((len(panel), length, values.shape[2]))
    count = np.zeros(total.shape)
    series = np.arange(len(panel))[:, None]
    known = np.isfinite(values)
    np.add.at(total, (series, places - first), np.where(known, values, 0.0))
    np.add.at(count, (series, places - first), known)
    both = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0.0)
    return replace(panel, values=np.ascontiguousarray(both[:, :, 0]), columns=both[:, :, 1:])


def find_places(panel: Panel) -> Index:
    """(S, T) columns of rows by the clock: the last row of each series is in the last one of all.

    The first may be below 0.
    """
    places = np.broadcast_to(np.arange(panel.length), panel.values.shape)
    if not _has_clock(panel.calendar):
        return places
    return places + _count_moves(panel.calendar, panel.ends, np.arange(1 - panel.length, 1))


def count_steps(panel: Panel, h: int) -> Index:
    """(S, h) how many steps by the clock each of the next steps is away, at least 1."""
    steps = np.arange(1, h + 1)
    if not _has_clock(panel.calendar):
        return np.broadcast_to(steps, (len(panel), h))
    return np.maximum(steps + _count_moves(panel.calendar, panel.ends, steps), 1)


def find_local_seconds(calendar: Calendar, index: Index) -> Index:
    """(n,) seconds since 1970 of steps, by the clocks of their place."""
    seconds = index * calendar.step + calendar.phase
    if not _has_clock(calendar):
        return seconds
    assert calendar.writing is not None
    return seconds + _find_offsets(calendar.writing.zone, seconds)


def place_by_clock(future: Array, steps: Index) -> Array:
    """(S, h', m) values of the next steps by the clock, from those (S, h, m) of the next steps.

    A step that is left out by the clock is as the one before.
    """
    if future.shape[2] == 0:
        return np.zeros((len(future), max(int(steps.max()), future.shape[1]), 0))
    wanted = np.arange(1, max(int(steps.max()), future.shape[1]) + 1)
    which = np.array([np.searchsorted(own, wanted, side="right") - 1 for own in steps])
    return np.take_along_axis(future, np.maximum(which, 0)[:, :, None], axis=1)


# ---- inner ---------------------------------------------------------------------------------------


def _has_clock(calendar: Calendar) -> bool:
    zone = calendar.writing is not None and calendar.writing.zone
    return bool(zone) and calendar.kind == "seconds" and not calendar.has_whole_days


def _count_moves(calendar: Calendar, ends: Index, steps: Index) -> Index:
    """(S, n) steps by which the clock is ahead of that at ``ends`` (S,), so many steps away.

    0 where clocks do not change by whole steps.
    """
    assert calendar.writing is not None
    distinct, which = np.unique(ends, return_inverse=True)
    moves = np.zeros((len(distinct), len(steps)), dtype=np.int64)
    for row, end in zip(moves, distinct, strict=True):
        seconds = (end + np.append(0, steps)) * calendar.step + calendar.phase
        offsets = _find_offsets(calendar.writing.zone, seconds)
        ahead, rest = np.divmod(offsets[1:] - offsets[0], calendar.step)
        if not rest.any():
            row[:] = ahead
    return moves[which]


def _find_offsets(zone: str, seconds: Index) -> Index:
    """(n,) seconds that clocks are ahead of UTC, at seconds since 1970."""
    days, which = np.unique(seconds // DAY, return_inverse=True)
    begin, stop = (
        np.array([_find_offset(zone, int(day) * DAY) for day in some]) for some in (days, days + 1)
    )
    found = begin[which]
    for row in np.flatnonzero((begin != stop)[which]):
        found[row] = _find_offset(zone, int(seconds[row]))
    return found


@lru_cache(maxsize=100_000)
def _find_offset(zone: str, second: int) -> int:
    moment = datetime.fromtimestamp(second, tz=UTC).astimezone(get_zone(zone))
    away = moment.utcoffset()
    return 0 if away is None else int(away.total_seconds())
