"""Holidays of countries and own events, as columns that are known at any step.

Each holiday has an effect of its own. Beside these there are effects that all holidays share: of
any of them, of one at a weekend, of the day before, the day after, and of a working day between a
holiday and a weekend. So a holiday that came once is known by the others. Where a step is shorter
than a day the effect of any holiday goes along the hours; where it is longer, columns count days.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Mask
from posterity.forecasting.calendar import DAY, ONE_DAY, Calendar, Index, as_times
from posterity.forecasting.checks import ForecastWarning
from posterity.forecasting.clock import find_local_seconds
from posterity.forecasting.panel import Panel

Days = NDArray[np.datetime64]

# A holiday of no learned row, whose own effect is not known.
UNSEEN = "holiday not seen before"
ANY, AT_WEEKEND = "any holiday", "holiday at a weekend"
BEFORE, AFTER, BRIDGE = "day before a holiday", "day after a holiday", "bridge day"
# Harmonics of a day along which the effect of any holiday goes, where steps are shorter.
HOURS = 3
# Columns of a frame of events: their names are here, as others call them, and how far they reach.
NAMES = ("event", "holiday", "name")
WINDOWS = ("lower_window", "upper_window")
# Names of components that are no columns; the end of an event's name on days around it.
TREND, CLOSED, HOLIDAYS = "trend", "closed", "holidays"
WINDOW = re.compile(r" [+-]\d+$")
# Longest window of an event in days.
LONGEST_WINDOW = 60


@dataclass(frozen=True, eq=False)
class Events:
    """Columns of holidays of ``regions`` and of own events: ``own`` has their days by name.

    ``names`` are the columns that the learned rows can tell something of.
    """

    regions: tuple[str, ...]
    own: Mapping[str, Days]
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, holidays: Any, events: Any, panel: Panel) -> Events:
        """The columns for a panel; a name of no learned row is left out.

        Raises
        ------
        ValueError
            For a country that is not known, and rows that have no dates.
        """
        whole = cls(list_regions(holidays), read_events(events))
        if not (whole.regions or whole.own):
            return whole
        if panel.calendar.kind == "numbers":
            raise ValueError(
                "holidays and events need dates, and the rows have numbers: give times in the "
                "column 'ds', or in the index"
            )
        steps = np.unique(np.concatenate([panel.ends, panel.ends - panel.length + 1]))
        found = whole._count(panel.calendar, np.arange(steps.min(), steps.max() + 1))
        year = 12 // panel.calendar.step if panel.calendar.kind == "months" else 0
        names = tuple(name for name, one in found.items() if _varies(one, year))
        return replace(whole, names=(*names, UNSEEN) if whole.regions else names)

    @property
    def unknown(self) -> list[str]:
        """Own events of which no learned row is."""
        groups = {WINDOW.sub("", name) for name in self.names}
        return sorted({WINDOW.sub("", name) for name in self.own} - groups)

    def add_to(self, panel: Panel) -> Panel:
        """The panel with these columns after its own."""
        if not self.names:
            return panel
        index = panel.ends[:, None] + np.arange(1 - panel.length, 1)
        columns = self.build_columns(panel.calendar, index)
        return replace(panel, columns=np.concatenate([panel.columns, columns], axis=2))

    def build_columns(self, calendar: Calendar, index: Index) -> Array:
        """(..., e) columns of steps (...)."""
        if not self.names:
            return np.zeros((*index.shape, 0))
        steps, which = np.unique(index, return_inverse=True)
        found = self._count(calendar, steps)
        none = np.zeros(len(steps))
        table = np.column_stack([found.get(name, none) for name in self.names])
        return table[which].reshape(*index.shape, -1)

    def find_holidays(self, first: int) -> list[int]:
        """Columns of single holidays, from a place on, after that of one that was not seen."""
        shared = {ANY, AT_WEEKEND, BEFORE, AFTER, BRIDGE, UNSEEN}
        single = [
            place
            for place, name in enumerate(self.names, start=first)
            if name not in self.own and name not in shared and not name.startswith(f"{ANY}, ")
        ]
        return [first + self.names.index(UNSEEN), *single] if UNSEEN in self.names else []

    def find_occasions(self, first: int) -> dict[str, list[int]]:
        """Columns, from a place on, that are 1 on days of each name: a holiday is any one, too."""
        places = {name: place for place, name in enumerate(self.names, start=first)}
        single = {place: [places[ANY]] for place in self.find_holidays(first)[1:] if ANY in places}
        return {
            name: [place, *single.get(place, [])]
            for name, place in places.items()
            if name not in {ANY, AT_WEEKEND, UNSEEN} and not name.startswith(f"{ANY}, ")
        }

    def find_groups(self, first: int) -> dict[str, list[int]]:
        """Columns that are one component, from a place on: an event and its window, or holidays."""
        found: dict[str, list[int]] = {}
        for place, name in enumerate(self.names, start=first):
            own = name in self.own
            found.setdefault(WINDOW.sub("", name) if own else HOLIDAYS, []).append(place)
        return found

    def _count(self, calendar: Calendar, index: Index) -> dict[str, Array]:
        """(n,) days of each name within steps (n,); those of a season of the day are products."""
        first, stop = find_days(calendar, index)
        days, single = dict(self.own), bool((stop - first == ONE_DAY).all())
        for region in self.regions:
            for name, some in _list_holidays(region, *_find_years(first, stop), single).items():
                key = UNSEEN if self.names and name not in self.names else name
                days[key] = np.union1d(days[key], some) if key in days else some
        found = {
            name: (np.searchsorted(one, stop) - np.searchsorted(one, first)).astype(np.float64)
            for name, one in days.items()
        }
        if self.regions and calendar.kind == "seconds" and calendar.step < DAY:
            found |= _follow_hours(found[ANY], calendar, index)
        return found


def list_regions(holidays: Any) -> tuple[str, ...]:
    """Codes of regions as users give them: one, several or none."""
    one = isinstance(holidays, str) or not np.iterable(holidays)
    codes = () if holidays is None else (holidays,) if one else holidays
    if isinstance(codes, Mapping) or not all(isinstance(code, str) for code in codes):
        raise TypeError(
            f"holidays is {holidays!r}: give the code of a country, as in 'DE' or 'DE-BY', or "
            "several; own days go in events"
        )
    return tuple(codes)


def check_regions(regions: tuple[str, ...]) -> None:
    """Raise ``ValueError`` for a region that is not known."""
    for region in regions:
        _open_region(region)


def read_events(events: Any) -> dict[str, Days]:
    """Sorted days by name, of a mapping of names to dates, or a frame with a row for each.

    Raises
    ------
    ValueError
        For what are no dates, and a frame without the columns.
    """
    if events is None:
        return {}
    columns = list(events) if isinstance(events, Mapping) else getattr(events, "columns", None)
    if columns is None:
        raise TypeError(
            "events must be a mapping of names to dates, as {'sale': ['2026-11-27']}, or a frame "
            "with the columns 'ds' and 'event'"
        )
    called = next((name for name in NAMES if name in columns), None)
    if isinstance(events, Mapping) and not ("ds" in columns and called):
        return {str(name): _read_days(dates, name) for name, dates in events.items()}
    if "unique_id" in columns:
        raise ValueError(
            "events has the column 'unique_id', and events are those of all series: leave it out, "
            "or give events of some series as an exogenous column of zeros and ones"
        )
    if called is None or "ds" not in columns:
        raise ValueError(
            f"events has the columns {list(columns)}: it needs 'ds', with dates, and 'event', with "
            "names"
        )
    return _spread_windows(events, columns, called)


def check_events(events: Any) -> None:
    """Raise ``ValueError`` for events that can't be read, or are called as another component."""
    taken = {TREND, CLOSED, HOLIDAYS} & {WINDOW.sub("", name) for name in read_events(events)}
    if taken:
        raise ValueError(
            f"an event is called {taken.pop()!r}, as a component is: name it otherwise"
        )


def write_events(events: Any) -> dict[str, list[str]] | None:
    """Events as plain values, as files have them."""
    if events is None:
        return None
    return {
        name: np.datetime_as_string(days).tolist() for name, days in read_events(events).items()
    }


def find_days(calendar: Calendar, index: Index) -> tuple[Days, Days]:
    """First days (n,) of steps, and those after their last.

    Steps of a week that are named by a Saturday or Sunday end there, others begin at their day.
    """
    if calendar.kind == "months":
        months = calendar.times(index).astype("datetime64[M]")
        first = months - (calendar.step - 1) if calendar.month_end else months
        return first.astype("datetime64[D]"), (first + calendar.step).astype("datetime64[D]")
    if calendar.kind == "business days":
        days = calendar.times(index).astype("datetime64[D]")
        after = calendar.times(index + 1).astype("datetime64[D]")
        return days, np.where(calendar.step == 1, days + ONE_DAY, after)
    seconds = find_local_seconds(calendar, index)
    days = (seconds // DAY).astype("datetime64[D]")
    length = max(calendar.step // DAY, 1)
    if length == 7:
        days = days - 6 * (_count_weekday(days) >= 5)
    return days, np.asarray(days + length, dtype="datetime64[D]")


# ---- inner ---------------------------------------------------------------------------------------


def _count_weekday(days: Days) -> Index:
    """(n,) days since Monday."""
    return np.asarray((days.astype(np.int64) + 3) % 7)


def _find_years(first: Days, stop: Days) -> tuple[int, int]:
    """Years of steps and of the days around them."""
    ends = np.array([first.min() - ONE_DAY, stop.max() + ONE_DAY])
    early, late = (ends.astype("datetime64[Y]").astype(np.int64) + 1970).tolist()
    return early, late


def _varies(counts: Array, year: int) -> bool:
    """Return whether a column says more than a level, and a year of so many steps."""
    if year and len(counts) > year:
        return bool((counts[year:] != counts[:-year]).any())
    return bool((counts != counts[0]).any())


def _follow_hours(counts: Array, calendar: Calendar, index: Index) -> dict[str, Array]:
    """Any holiday along the hours of its day."""
    angle = 2.0 * np.pi / DAY * (find_local_seconds(calendar, index) % DAY)
    return {
        f"{ANY}, {name} {k}": counts * wave(k * angle)
        for k in range(1, HOURS + 1)
        for name, wave in (("cosine", np.cos), ("sine", np.sin))
    }


@lru_cache(maxsize=64)
def _list_holidays(region: str, first: int, last: int, daily: bool) -> dict[str, Days]:
    """Days of each holiday in some years, and of what all share; one of another day is as that."""
    calendar = _open_region(region)
    if last > calendar.end_year:
        raise ValueError(
            f"the holidays of {region} are known up to {calendar.end_year}, and {last} was asked "
            "for: forecast fewer steps"
        )
    if first < calendar.start_year:
        warnings.warn(
            f"the holidays of {region} are known from {calendar.start_year} on, and the rows begin "
            f"in {first}: before, there are none",
            ForecastWarning,
            stacklevel=2,
        )
    found: dict[str, list[Any]] = {}
    for year in range(first, last + 1):
        for day, text in _open_region(region, year).items():
            for name in text.split("; "):
                found.setdefault(name.removesuffix(" (observed)"), []).append(day)
    days = {name: _sort(some) for name, some in found.items()}
    every = _sort([day for some in days.values() for day in some])
    weekend = np.isin(_count_weekday(every), list(calendar.weekend))
    if not daily:
        return days | {ANY: every[~weekend]}
    return days | {ANY: every, AT_WEEKEND: every[weekend]} | _list_neighbours(every, calendar)


def _list_neighbours(every: Days, calendar: Any) -> dict[str, Days]:
    """Days around holidays that are none."""
    before, after = (np.setdiff1d(every + way, every) for way in (-ONE_DAY, ONE_DAY))
    weekend = list(calendar.weekend)

    def is_free(days: Days) -> Mask:
        return np.isin(_count_weekday(days), weekend) | np.isin(days, every)

    around = np.union1d(before, after)
    bridge = around[~is_free(around) & is_free(around - ONE_DAY) & is_free(around + ONE_DAY)]
    return {BEFORE: before, AFTER: after, BRIDGE: bridge}


def _open_region(region: str, years: Any = ()) -> Any:
    """The calendar of a country, of a part of it, or of a stock exchange."""
    try:
        package = import_module("holidays")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"holidays={region!r} needs the package holidays: pip install 'posterity[holidays]', "
            "or give the days as events"
        ) from error
    named = getattr(package, region.title().replace(" ", ""), None)
    region = getattr(named, "country", None) or region.upper().replace("_", "-")
    country, _, part = region.partition("-")
    known = {**package.list_supported_countries(), **package.list_supported_financial()}
    if country not in known:
        codes = [code for code in known if len(code) == len(country)]
        near = difflib.get_close_matches(country.upper(), codes, n=5, cutoff=0.5)
        raise ValueError(
            f"holidays is {region!r}, and there is no such country: give its two letters, as in "
            f"{', '.join(map(repr, near or ['DE', 'FR', 'GB', 'US', 'IN']))}"
        )
    if part and part not in known[country]:
        raise ValueError(
            f"holidays is {region!r}, and {country} has no part {part!r}: give one of "
            f"{', '.join(known[country]) or 'none, as it has no parts'}"
        )
    opened = getattr(package, country)
    return opened(subdiv=part or None, years=years)


def _sort(days: Iterable[Any]) -> Days:
    return np.unique(np.array(list(days), dtype="datetime64[D]"))


def _read_days(dates: Any, name: Any) -> Days:
    given = [dates] if isinstance(dates, str) or not np.ndim(dates) else dates
    try:
        times = as_times(np.asarray(given))
    except ValueError as error:
        raise ValueError(f"event {name!r}: {error}") from error
    if times.dtype.kind != "M":
        raise ValueError(f"event {name!r} has {given!r}: give dates, as in '2026-11-27'")
    return _sort(times)


def _spread_windows(frame: Any, columns: Sequence[Any], called: str) -> dict[str, Days]:
    """Days by name of a frame's rows; those before and after have names of their own."""
    names = np.asarray(frame[called])
    days = as_times(frame["ds"]).astype("datetime64[D]")
    low, high = (
        np.nan_to_num(np.asarray(frame[name], dtype=np.float64)) if name in columns
        else np.zeros(len(days))
        for name in WINDOWS
    )  # fmt: skip
    if low.max(initial=0) > 0 or high.min(initial=0) < 0:
        raise ValueError(
            "lower_window counts days before an event and is 0 or less, upper_window 0 or more"
        )
    if max(-low.min(initial=0), high.max(initial=0)) > LONGEST_WINDOW:
        raise ValueError(f"a window of an event is at most {LONGEST_WINDOW} days: give fewer")
    found: dict[str, list[Any]] = {}
    for name, day, before, after in zip(names, days, low, high, strict=True):
        for offset in range(int(before), int(after) + 1):
            key = f"{name} {offset:+d}" if offset else str(name)
            found.setdefault(key, []).append(day + offset)
    return {name: _sort(some) for name, some in found.items()}
