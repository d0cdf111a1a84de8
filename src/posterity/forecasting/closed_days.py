"""Finding the days on which a series is always 0: see :mod:`posterity.forecasting.closing`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Mask
from posterity.forecasting.closing import Closing
from posterity.forecasting.panel import Panel

Index = NDArray[np.int64]

# Fewest zeros at a place in a season, longest season, and fewest of a column: one that users give,
# or one of the calendar.
FEWEST_AT_PLACE, LONGEST, FEWEST_OF_COLUMN, FEWEST_OF_HOLIDAY = 4, 200, 3, 2
# Largest share of zeros on other days, and of days that are closed.
MOST_ZEROS, MOST_CLOSED = 0.02, 0.7


def find_closed(panel: Panel, periods: Sequence[float]) -> Closing:
    """What is closed in a panel: where all values are 0, and nearly none on other days is."""
    known = np.isfinite(panel.values)
    zero = known & (panel.values == 0.0)
    some = zero.any(axis=1) & ~(panel.values < 0.0).any(axis=1)
    nothing = np.zeros((len(panel), panel.columns.shape[2]), dtype=bool)
    if not some.any():
        return Closing((), (), nothing)
    whole = tuple(int(m) for m in periods if float(m).is_integer() and 1 < m <= LONGEST)
    index = panel.ends[:, None] + np.arange(1 - panel.length, 1)
    places = tuple(_find_places(known, zero, index, m) for m in whole)
    found = Closing(whole, places, nothing)
    rest = known & ~found.find(index, panel.columns)
    found = replace(found, columns=_find_columns(panel, rest, zero))
    closed = known & found.find(index, panel.columns)
    left = (zero & ~closed).sum(axis=1) / np.maximum((known & ~closed).sum(axis=1), 1)
    share = closed.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return found.only(some & (left <= MOST_ZEROS) & (share <= MOST_CLOSED))


def leave_out_closed(panel: Panel, periods: Sequence[float]) -> Panel:
    """The panel without the zeros of days that are closed, and what these are."""
    closing = find_closed(panel, periods)
    if not closing.any:
        return replace(panel, closing=closing)
    index = panel.ends[:, None] + np.arange(1 - panel.length, 1)
    closed = closing.find(index, panel.columns)
    return replace(panel, values=np.where(closed, np.nan, panel.values), closing=closing)


# ---- inner ---------------------------------------------------------------------------------------


def _find_places(known: Mask, zero: Mask, index: Index, m: int) -> Mask:
    """(S, m) at which places of a season all values are 0."""
    count, zeros = np.zeros((2, len(known), m), dtype=np.int64)
    series = np.broadcast_to(np.arange(len(known))[:, None], known.shape)
    np.add.at(count, (series, index % m), known)
    np.add.at(zeros, (series, index % m), zero)
    return np.asarray((count >= FEWEST_AT_PLACE) & (zeros == count))


def _find_columns(panel: Panel, rest: Mask, zero: Mask) -> Mask:
    """(S, c) columns of zeros and ones that are 1 only where values are 0, of the ``rest``."""
    ones, none = panel.columns == 1.0, np.nan_to_num(panel.columns) == 0.0
    binary = (ones | none).all(axis=1)
    count = (ones & rest[:, :, None]).sum(axis=1)
    zeros = (ones & (rest & zero)[:, :, None]).sum(axis=1)
    fewest = np.where(
        np.arange(panel.columns.shape[2]) < len(panel.names), FEWEST_OF_COLUMN, FEWEST_OF_HOLIDAY
    )
    return np.asarray(binary & (count >= fewest) & (zeros == count))
