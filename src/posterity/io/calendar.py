"""Dates and times as hour, weekday and month: categories with fixed levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

from posterity.aliases import Indices
from posterity.io.arrow import pa
from posterity.io.conversions import as_days

Codes = tuple[Indices, list[str]]
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Part -> its words; Arrow's function counts them from the number that stands beside.
PARTS: dict[str, tuple[tuple[str, ...], str, int]] = {
    "hour": (tuple(map(str, range(24))), "hour", 0),
    "weekday": (WEEKDAYS, "day_of_week", 0),
    "month": (MONTHS, "month", 1),
}


def part_codes(values: pa.Array, part: str) -> Codes:
    """Place of each date or time among the words of a part; missing is one past the last.

    Time stamps with a zone count in that zone, those without as they are written.

    Examples
    --------
    >>> import datetime, pyarrow as pa
    >>> codes, words = part_codes(pa.array([datetime.date(2024, 2, 29), None]), "month")
    >>> codes, words[codes[0]]
    (array([ 1, 12]), 'Feb')
    """
    import pyarrow.compute as pc

    words, function, first = PARTS[part]
    counted = getattr(pc, function)(values).cast(pa.int64())
    codes = counted.fill_null(len(words) + first).to_numpy(zero_copy_only=False) - first
    return codes.astype(np.intp), list(words)


def name_parts(moment: date) -> dict[str, Any]:
    """The same of one date or time, each part after a dot, and behind "" its days since 1970.

    Examples
    --------
    >>> name_parts(date(2024, 2, 29))
    {'': 19782.0, '.weekday': 'Thu', '.month': 'Feb'}
    """
    days = float(moment.toordinal() - date(1970, 1, 1).toordinal())
    hour = {}
    if isinstance(moment, datetime):
        since_midnight = moment - datetime.combine(moment, time(), moment.tzinfo)
        days += (since_midnight - (moment.utcoffset() or timedelta())) / timedelta(days=1)
        hour = {".hour": str(moment.hour)}
    weekday, month = WEEKDAYS[moment.weekday()], MONTHS[moment.month - 1]
    return {"": days, **hour, ".weekday": weekday, ".month": month}


def find_calendar_parts(kind: pa.DataType, values: pa.Array) -> tuple[str, ...]:
    """Parts that a column of this Arrow type has, and that differ among these values of it."""
    import pyarrow.compute as pc

    having = {"hour": pa.types.is_timestamp(kind) or pa.types.is_time(kind)}
    dated = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    having |= {"weekday": dated, "month": dated}
    # Of months, whose dates are all their first days, weekdays mean nothing.
    having["weekday"] = dated and _count_values(pc.day(values)) != 1
    return tuple(part for part, has in having.items() if has and _varies(values, part))


def is_increasing(values: pa.Array) -> bool:
    """Return True if dates never decrease and are not all equal: then they are a time."""
    days = as_days(values)
    days = days[~np.isnan(days)]
    return len(days) > 1 and bool((np.diff(days) >= 0.0).all() and days[-1] > days[0])


def find_calendar_part(label: str) -> tuple[str, str] | None:
    """Column and part of ``when.hour``; None where it ends in no part.

    Examples
    --------
    >>> find_calendar_part("when.hour"), find_calendar_part("when.minute")
    (('when', 'hour'), None)
    """
    column, _, part = label.rpartition(".")
    return (column, part) if column and part in PARTS else None


_DATE = re.compile(r"(\d{1,4})([/.-])(\d{1,2})\2(\d{2,4})\b(.*)", re.DOTALL)


def looks_like_date(word: str) -> bool:
    """Return True for three numbers as in 04/30/21."""
    return _DATE.fullmatch(word.strip()) is not None


def find_date_format(words: Sequence[str], known: Sequence[str] = ()) -> str:
    """Return the format of dates like 04/30/21, "%m/%d/%y"; "" if not all words are such.

    Where marks between numbers differ, it is the format of the first word, and of those like it.

    A guess from whichever number is above 12; where none is, the day stands first, but after /. It
    stands where the first of the ``known`` formats has it.
    """
    found = [_DATE.fullmatch(word.strip()) for word in words]
    dates = [one.groups() for one in found if one]
    if not dates or len(dates) < len(words):
        return ""
    mark, (first, _, _, last, clock) = dates[0][1], dates[0]
    dates = [date for date in dates if date[1] == mark]
    years = f"%{'Y' if len(last) == 4 else 'y'}"
    if len(first) == 4:
        order = ("%Y", "%m", "%d")
    else:
        largest = [max(int(date[place]) for date in dates) for place in (0, 2)]
        usual = "%m" in known[0].partition("%d")[0] if known else mark == "/"
        month_first = largest[1] > 12 or (largest[0] <= 12 and usual)
        order = ("%m", "%d", years) if month_first else ("%d", "%m", years)
    colons = clock.count(":")
    return mark.join(order) + ("", " %H:%M", " %H:%M:%S")[min(colons, 2)]


def _varies(values: pa.Array, part: str) -> bool:
    codes, words = part_codes(values, part)
    return len(np.unique(codes[codes < len(words)])) > 1


def _count_values(values: pa.Array) -> int:
    return len(values.drop_null().unique())
