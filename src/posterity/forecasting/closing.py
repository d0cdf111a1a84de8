"""Days on which a series is always 0, as a shop is on Sundays and on holidays.

They are known ahead: by their place in a season, or by a column that says what day it is. Forms do
not learn them, as if they were not observed, so that logarithms are a scale, and effects of other
days are multiplied. What is forecast there is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from posterity.forecasting.panel import Panel

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.int64]

# Fewest zeros at a place in a season, longest season, and fewest of a column: one that users give,
# or one of the calendar.
FEWEST_AT_PLACE, LONGEST, FEWEST_OF_COLUMN, FEWEST_OF_HOLIDAY = 4, 200, 3, 2
# Largest share of zeros on other days, and of days that are closed.
MOST_ZEROS, MOST_CLOSED = 0.02, 0.7


@dataclass(frozen=True, eq=False)
class Closing:
    """Places (S, m) of each season of ``periods`` that are closed, and columns (S, c)."""

    periods: tuple[int, ...]
    places: tuple[Mask, ...]
    columns: Mask

    @classmethod
    def none(cls, panel: Panel) -> Closing:
        """Nothing is closed."""
        return cls((), (), np.zeros((len(panel), panel.columns.shape[2]), dtype=bool))

    @classmethod
    def of(cls, panel: Panel, periods: Sequence[float]) -> Closing:
        """What is closed in a panel: where all values are 0, and nearly none on other days is."""
        known = np.isfinite(panel.values)
        zero = known & (panel.values == 0.0)
        some = zero.any(axis=1) & ~(panel.values < 0.0).any(axis=1)
        if not some.any():
            return cls.none(panel)
        whole = tuple(int(m) for m in periods if float(m).is_integer() and 1 < m <= LONGEST)
        index = panel.ends[:, None] + np.arange(1 - panel.length, 1)
        places = tuple(_find_places(known, zero, index, m) for m in whole)
        found = cls(whole, places, np.zeros((len(panel), panel.columns.shape[2]), dtype=bool))
        rest = known & ~found.find(index, panel.columns)
        found = replace(found, columns=_find_columns(panel, rest, zero))
        closed = known & found.find(index, panel.columns)
        left = (zero & ~closed).sum(axis=1) / np.maximum((known & ~closed).sum(axis=1), 1)
        share = closed.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        return found._only(some & (left <= MOST_ZEROS) & (share <= MOST_CLOSED))

    @property
    def any(self) -> bool:
        """Whether something is closed."""
        return bool(self.columns.any() or any(place.any() for place in self.places))

    def find(self, index: Index, columns: Array) -> Mask:
        """(S, n) which steps, by their numbers (S, n) and columns (S, n, c), are closed."""
        closed = np.einsum("snc,sc->sn", np.nan_to_num(columns) == 1.0, self.columns)
        for m, places in zip(self.periods, self.places, strict=True):
            closed = closed | np.take_along_axis(places, index % m, axis=1)
        return np.asarray(closed)

    def part(self, which: NDArray[np.intp]) -> Closing:
        """Return what is closed of some of the series."""
        return replace(
            self,
            places=tuple(place[which] for place in self.places),
            columns=self.columns[which],
        )

    def _only(self, some: Mask) -> Closing:
        return replace(
            self,
            places=tuple(place & some[:, None] for place in self.places),
            columns=self.columns & some[:, None],
        )


def leave_out_closed(panel: Panel, periods: Sequence[float]) -> Panel:
    """The panel without the zeros of days that are closed, and what these are."""
    closing = Closing.of(panel, periods)
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


__all__ = ["Closing", "leave_out_closed"]
