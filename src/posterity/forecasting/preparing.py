"""How the panel that users give becomes the one that forms learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.forecasting.censoring import raise_censored
from posterity.forecasting.clock import find_places, follow_clock
from posterity.forecasting.closed_days import leave_out_closed
from posterity.forecasting.holidays import Events
from posterity.forecasting.outliers import leave_out_outliers
from posterity.forecasting.panel import Panel
from posterity.forecasting.periods import find_periods

# Fewest years in which a year's season is looked for.
YEARS = 2


@dataclass(frozen=True, eq=False)
class Preparation:
    """Columns of ``events``, rows by the clock, and values that are left out as ``outliers``.

    These are far from what the seasons of ``periods`` let expect. Values that the column
    ``censored`` marks are the least that there was; all end at the ``top``, if there is one.
    """

    events: Events
    outliers: str
    periods: tuple[float, ...]
    censored: Any = None
    top: float = np.inf

    def apply(self, panel: Panel) -> Panel:
        """The panel as forms learn it: rows by the clock, where times have a zone."""
        return self.leave_out(follow_clock(self.events.add_to(panel)))

    def leave_out(self, panel: Panel) -> Panel:
        """The same without the values that are ignored, and those of days that are closed."""
        panel = raise_censored(panel, self.censored, self.periods, self.top)
        panel = leave_out_closed(panel, self.periods)
        return leave_out_outliers(panel, self.outliers, self.periods)

    def mark_left_out(self, panel: Panel) -> NDArray[np.int8]:
        """(S, T) which values of a panel are left out: see :class:`Panel`."""
        left_out = self.apply(panel).left_out
        if left_out is None:
            return np.zeros(panel.values.shape, dtype=np.int8)
        places = find_places(panel) - panel.length
        return np.where(
            np.isfinite(panel.values), np.take_along_axis(left_out, places, axis=1), 0
        ).astype(np.int8)


def choose_periods(seasonality: float | Sequence[float] | None, panel: Panel) -> tuple[float, ...]:
    """Seasonal periods: those that are given, or that the times or the values suggest."""
    if seasonality is not None:
        given = (float(period) for period in np.atleast_1d(seasonality))
        return tuple(int(period) if period.is_integer() else period for period in given)
    by_times, year = panel.calendar.periods, panel.calendar.year
    if by_times is None:
        return find_periods(panel)
    if year is None or np.median(panel.observed) < YEARS * year:
        return by_times
    return (*by_times, year)
