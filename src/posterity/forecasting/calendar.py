"""Times as numbers of steps: the distance of rows, and the periods of such a step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from functools import reduce
from importlib import import_module
from math import gcd
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import AnyArray
from posterity.forecasting.writing import Writing, add_zone, read_text

Index = NDArray[np.int64]
Kind = Literal["numbers", "seconds", "months", "business days"]

DAY = 86_400
# Days of a mean year, and working days in a week.
YEAR, WORKING_DAYS = 365.2425, 5
# Shortest month in days, that of February.
MONTH = 28
ONE_DAY = np.timedelta64(1, "D")
# The first and the last working day of a month, with holidays, lie this many days from its ends.
NEAR_END = 5
# Periods of a series by the seconds, or months, of its step.
PERIODS_BY_MONTHS = {1: (12,), 3: (4,)}
# Units that seconds are written in, the longest that divides them.
UNITS = (("weeks", 7 * DAY), ("days", DAY), ("hours", 3600), ("minutes", 60), ("seconds", 1))
# Most distances that are used to find the step.
MOST_DISTANCES = 100_000


@dataclass(frozen=True)
class Calendar:
    """Times are ``step`` apart, in units of ``kind``; ``phase`` is the number of any one of them.

    Users write them as ``writing`` says. Of months the times are on a ``day`` or at the
    ``month_end``, and where they are ``business`` on the first or the last working day.

    Examples
    --------
    >>> times = np.array(["2024-01-31", "2024-02-29", "2024-03-31"], dtype="datetime64[D]")
    >>> calendar = Calendar.of(times, np.diff(as_numbers(times, "months")))
    >>> calendar.kind, calendar.step, calendar.periods
    ('months', 1, (12,))
    >>> calendar.times(calendar.index(times) + 3)
    array(['2024-04-30', '2024-05-31', '2024-06-30'], dtype='datetime64[D]')
    """

    kind: Kind
    step: int
    phase: int
    month_end: bool = False
    day: int = 0
    dtype: str = "int64"
    business_days: bool = False
    writing: Writing | None = None

    @classmethod
    def of(cls, times: AnyArray, distances: Index | None = None) -> Calendar:
        """The calendar of times (n,); ``distances`` are those between neighbours of one series."""
        if times.dtype.kind in "iu":
            return cls("numbers", _find_step(distances), int(times[0]) if len(times) else 0)
        days = times.astype("datetime64[D]")
        dtype = str(times.dtype)
        if distances is not None and _is_monthly(times, days):
            numbers = as_numbers(times, "months")
            since, left = _count_days_to_ends(days)
            step, at_end = _find_step(distances), bool((left <= NEAR_END).all())
            business = not (np.unique(since).size == 1 or not left.any())
            day = 0 if business else int(since.max())
            month_end = at_end if business else not left.any()
            return cls("months", step, int(numbers[0]), month_end, day, dtype, business)
        kind: Kind = "seconds"
        if _is_business(times, days):
            kind = "business days"
        numbers = as_numbers(times, kind)
        return cls(kind, _find_step(distances), int(numbers[0]) if len(numbers) else 0, dtype=dtype)

    def index(self, times: AnyArray) -> Index:
        """Number of steps (n,) since the phase.

        Raises ``ValueError`` for a time between steps, and dates where numbers are known.
        """
        if (times.dtype.kind == "M") != (self.kind != "numbers"):
            given, known = ("dates", "whole numbers")[:: 1 if times.dtype.kind == "M" else -1]
            raise ValueError(
                f"times are {given}, but those of the learned rows are {known}: give {known}"
            )
        numbers = as_numbers(times, self.kind) - self.phase
        index, rest = np.divmod(numbers, self.step)
        between = np.flatnonzero(rest)
        if len(between):
            raise ValueError(
                f"time {format_time(times[between[0]])} does not fit: times are {self.distance} "
                "apart, and it lies between two of them; bring the series to a regular grid, "
                "leaving out what was not observed"
            )
        return np.asarray(index)

    def times(self, index: Index) -> AnyArray:
        """Times of steps, as numbers or datetime64: in UTC where they have a zone and no days."""
        numbers = index * self.step + self.phase
        if self.kind == "numbers":
            return np.asarray(numbers)
        if self.kind == "seconds":
            return np.asarray(numbers.astype("datetime64[s]").astype(self.dtype))
        if self.kind == "business days":
            days = np.busday_offset(np.datetime64("1970-01-01"), numbers, roll="forward")
            return np.asarray(days.astype(self.dtype))
        months = numbers.astype("datetime64[M]")
        last = _find_last_day(months)
        same = months.astype("datetime64[D]") + np.timedelta64(self.day, "D")
        days = last if self.month_end else np.minimum(same, last)
        if self.business_days:
            days = np.busday_offset(days, 0, roll="backward" if self.month_end else "forward")
        return np.asarray(days.astype(self.dtype))

    def as_written(self, writing: Writing) -> Calendar:
        """The same of times that users write so."""
        unit = writing.unit
        dtype = f"datetime64[{unit}]" if unit and self.kind != "numbers" else self.dtype
        return replace(self, writing=writing, dtype=dtype)

    def stamps(self, index: Index) -> AnyArray:
        """Times of steps as moments: datetime64, or with a zone, where users gave one."""
        times = self.times(index)
        if self.writing is None or not self.writing.zone:
            return times
        return add_zone(times, self.writing.zone, local=self.has_whole_days)

    def write(self, stamps: AnyArray) -> AnyArray:
        """Moments (n,) as users write them: text, dates, periods."""
        return stamps if self.writing is None else self.writing.write(stamps)

    @property
    def has_whole_days(self) -> bool:
        """Whether a step is some days."""
        return self.kind != "numbers" and (self.kind != "seconds" or self.step % DAY == 0)

    @property
    def distance(self) -> str:
        """A step in words."""
        count, unit = self.step, "units" if self.kind == "numbers" else str(self.kind)
        if self.kind == "seconds":
            unit, size = next((name, size) for name, size in UNITS if count % size == 0)
            count //= size
        return f"{count} {unit if count > 1 else unit.removesuffix('s')}"

    @property
    def periods(self) -> tuple[int, ...] | None:
        """The seasonal periods of such a step; None where it suggests none."""
        if self.kind == "numbers":
            return None
        if self.kind == "months":
            return PERIODS_BY_MONTHS.get(self.step, ())
        if self.kind == "business days":
            return (5,)
        if self.step == DAY:
            return (7,)
        if self.step == 7 * DAY:
            return (52,)
        if self.step < DAY and DAY % self.step == 0:
            return (DAY // self.step, 7 * DAY // self.step)
        return ()

    @property
    def year(self) -> float | None:
        """Steps in a mean year; None where it is not longer than other periods."""
        if self.kind == "business days":
            return YEAR * WORKING_DAYS / 7 / self.step
        if self.kind == "seconds" and self.step <= 7 * DAY:
            return YEAR * DAY / self.step
        return None


def as_numbers(times: AnyArray, kind: Kind) -> Index:
    """Times (n,) in whole units of a kind, since 1970 or zero."""
    if kind == "numbers":
        return np.asarray(times, dtype=np.int64)
    if kind == "months":
        return np.asarray(times.astype("datetime64[M]").astype(np.int64))
    if kind == "business days":
        days = times.astype("datetime64[D]")
        return np.asarray(np.busday_count(np.datetime64("1970-01-01"), days))
    return np.asarray(times.astype("datetime64[s]").astype(np.int64))


def as_times(values: Any, calendar: Calendar | None = None) -> AnyArray:
    """Convert times as users give them to int64 or datetime64; strings are read as dates.

    Times with a zone are those of their place where steps are whole days, as those of the
    ``calendar`` are or, without one, all times are at the same time of day. Others are taken in
    UTC, where no hour comes twice.
    """
    local, universal = _read_zoned(values)
    times = local
    if universal is not None and not _has_whole_days(local, calendar):
        times = universal
    if times.dtype.kind in "OUST":
        try:
            text = all(isinstance(one, str) for one in times)
            times = read_text(times) if text else times.astype("datetime64[s]")
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"times such as {str(times.flat[0])!r} can't be read: give datetime64, ISO dates "
                "as in '2024-01-31', or whole numbers"
            ) from error
    if times.dtype.kind == "f" and np.isfinite(times).all() and (times == np.round(times)).all():
        times = times.astype(np.int64)
    if times.dtype.kind not in "iuM":
        raise ValueError(
            f"times have the type {times.dtype}: they must be datetime64 or whole numbers"
        )
    if times.dtype.kind == "M" and np.isnat(times).any():
        missing = int(np.flatnonzero(np.isnat(times))[0])
        raise ValueError(f"the time of row {missing} (from 0) is missing")
    return times


def format_time(time: Any) -> str:
    """A time in words: days without their hour.

    Examples
    --------
    >>> format_time(np.datetime64("2024-01-31T00:00:00.000"))
    '2024-01-31'
    >>> format_time(np.datetime64("2024-01-31T08:30:00"))
    '2024-01-31T08:30:00'
    """
    text = str(time)
    if getattr(time, "dtype", np.dtype(object)).kind == "M" and "T" in text:
        text = text.split(".")[0] if set(text.partition(".")[2]) <= {"0"} else text
        text = text.removesuffix("T00:00:00")
    return text


# ---- inner ---------------------------------------------------------------------------------------


def _read_zoned(values: Any) -> tuple[AnyArray, AnyArray | None]:
    """Times (n,) as clocks show them at their place, and in UTC where they have a zone."""
    periods = getattr(getattr(values, "dtype", None), "freq", None) is not None
    if periods and hasattr(values, "to_timestamp"):  # they stand for their first moments
        return values.to_timestamp().to_numpy(), None
    if getattr(values, "tz", None) is not None:  # a pandas index
        return values.tz_localize(None).to_numpy(), values.tz_convert("UTC").tz_localize(
            None
        ).to_numpy()
    if getattr(getattr(values, "dtype", None), "time_zone", None) is not None:  # Polars
        return values.dt.replace_time_zone(None).to_numpy(), values.to_numpy()
    if getattr(getattr(values, "type", None), "tz", None) is not None:  # Arrow
        return np.asarray(import_module("pyarrow.compute").local_timestamp(values)), np.asarray(
            values
        )
    times = np.asarray(values)
    if times.dtype.kind != "O" or not any(getattr(time, "tzinfo", None) for time in times):
        return times, None
    local = np.array([time.replace(tzinfo=None) for time in times], dtype="datetime64[us]")
    away = [time.astimezone(UTC).replace(tzinfo=None) for time in times]
    return local, np.array(away, dtype="datetime64[us]")


def _has_whole_days(local: AnyArray, calendar: Calendar | None) -> bool:
    if calendar is None:
        clock = local - local.astype("datetime64[D]")
        return len(local) > 1 and bool((clock == clock[0]).all())
    return calendar.has_whole_days


def _find_step(distances: Index | None) -> int:
    """The step that all distances are multiples of."""
    if distances is None or not len(distances):
        return 1
    return reduce(gcd, (int(one) for one in np.unique(distances[:MOST_DISTANCES]))) or 1


def _is_monthly(times: AnyArray, days: AnyArray) -> bool:
    """Return True for one time a month, always at the same day of it or at one of its ends.

    Working days count as its ends if they are near.
    """
    if (times != days).any():
        return False
    distinct = np.unique(days)
    if len(distinct) < 2:
        return False
    apart = int(np.diff(distinct).min().astype(np.int64))
    since, left = _count_days_to_ends(distinct)
    if np.unique(since).size == 1 or not left.any():
        return apart >= MONTH
    if len(distinct) < 3 or apart < MONTH - NEAR_END or not np.is_busday(distinct).all():
        return False
    return bool((since <= NEAR_END).all() or (left <= NEAR_END).all())


def _count_days_to_ends(days: AnyArray) -> tuple[Index, Index]:
    """Days (n,) since the first of their month, and until its last."""
    months = days.astype("datetime64[M]")
    since = (days - months.astype("datetime64[D]")).astype(np.int64)
    return since, (_find_last_day(months) - days).astype(np.int64)


def _find_last_day(months: AnyArray) -> AnyArray:
    """The last day of each month."""
    return (months + np.timedelta64(1, "M")).astype("datetime64[D]") - ONE_DAY


def _is_business(times: AnyArray, days: AnyArray) -> bool:
    """Return True if most working days have a row, and no day of a weekend has."""
    if (times != days).any() or len(times) < 10:
        return False
    distinct = np.unique(days)
    if not np.is_busday(distinct).all():
        return False
    return len(distinct) > 0.5 * float(np.busday_count(distinct[0], distinct[-1] + ONE_DAY))
