"""How users write times: their zone, and text, periods or dates; forecasts are written so, too."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from posterity.aliases import AnyArray

# Parts of a time that is written as text, the last ones optional, and the unit that each ends in.
TEXT = re.compile(
    r"(?P<year>\d{1,4})(?:(?P<dash>-?)Q(?P<quarter>[1-4])|-(?P<month>\d{1,2})"
    r"(?:-(?P<day>\d{1,2})(?:(?P<mark>[ T])(?P<hour>\d{1,2}):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d))?)?)?)?$"
)
PARTS = ("year", "month", "day", "hour", "minute", "second")
UNITS = {"year": "Y", "quarter": "M", "month": "M", "day": "D", "minute": "s", "second": "s"}
# What a form may be, by kind: it is filled in, so nothing else may stand in it.
NOTHING = re.compile("")
FORMS = {
    "period": re.compile(r"[A-Za-z0-9-]{1,20}"),
    "text": re.compile(
        r"(?:[-T :Q]|\{(?:year|quarter|month|day|hour|minute|second)(?::0\d{1,2}d)?\})+"
    ),
}
OFFSET = re.compile(r"(?:UTC)?(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)$")
# The parts that may lack a leading zero; other than the year they have two digits.
MONTHS_A_QUARTER = 3


@dataclass(frozen=True)
class Writing:
    """How times are written.

    ``zone`` is that of times which have one. ``form`` is a format with the names of ``PARTS``, or
    "date" or a frequency of pandas' periods, as ``kind`` says; "" of times that are written as
    datetime64 or as numbers.
    """

    zone: str = ""
    kind: str = ""
    form: str = ""

    @classmethod
    def of(cls, values: Any) -> Writing:
        """The writing of times as users give them."""
        zone = find_zone(values)
        if zone:
            return cls(zone)
        frequency = getattr(getattr(values, "dtype", None), "freq", None)
        if frequency is not None and hasattr(frequency, "freqstr"):
            return cls("", "period", str(values.dtype)[len("period[") : -1])
        some = np.asarray(values)
        if some.dtype.kind not in "OUT" or not some.size:
            return cls()
        if all(type(one) is date for one in some):
            return cls("", "date", "")
        parts = [TEXT.match(one) if isinstance(one, str) else None for one in some]
        matches = [one for one in parts if one is not None]
        if len(matches) < len(parts) or len({_shape(one) for one in matches}) > 1:
            return cls()
        return cls("", "text", _make_format(matches))

    @property
    def is_known(self) -> bool:
        """Whether it is one of those that :meth:`of` makes; ``ValueError`` for an unknown zone."""
        if self.zone:
            get_zone(self.zone)
        return FORMS.get(self.kind, NOTHING).fullmatch(self.form) is not None

    @property
    def unit(self) -> str:
        """The unit of datetime64 that says no more than the text does; "" where none is known."""
        names = re.findall(r"{(\w+)", self.form) if self.kind == "text" else []
        return UNITS[names[-1]] if names else ""

    def write(self, times: AnyArray) -> AnyArray:
        """Times (n,), datetime64, as users write them."""
        if self.kind == "period":
            pandas = import_module("pandas")
            return np.asarray(pandas.PeriodIndex(times.astype("datetime64[s]"), freq=self.form))
        if self.kind == "date":
            return times.astype("datetime64[D]").astype(object)
        if self.kind == "text":
            moments = times.astype("datetime64[s]").astype(object)
            return np.array([_format(self.form, one) for one in moments])
        return times


def find_zone(values: Any) -> str:
    """Return the name of the zone of times, "" where they have none."""
    kind = getattr(values, "dtype", None)
    found = getattr(values, "tz", None) or getattr(kind, "tz", None)
    found = found or getattr(kind, "time_zone", None)  # Polars
    found = found or getattr(getattr(values, "type", None), "tz", None)  # Arrow
    if found is None and getattr(kind, "kind", "O") == "O" and not hasattr(values, "type"):
        zones = {_name_zone(getattr(one, "tzinfo", None)) for one in values}
        return zones.pop() if len(zones) == 1 else ("UTC" if zones - {""} else "")
    return _name_zone(found)


def get_zone(name: str) -> tzinfo:
    """Return the zone of a name, or of an offset as in +01:00."""
    offset = OFFSET.match(name)
    if offset is None:
        try:
            return ZoneInfo(name)
        except KeyError:
            raise ValueError(
                f"there is no time zone {name!r} on this machine: pip install tzdata brings all"
            ) from None
    away = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"]))
    return timezone(-away if offset["sign"] == "-" else away)


def add_zone(times: AnyArray, zone: str, *, local: bool) -> AnyArray:
    """Times, datetime64 as clocks show them at their place (``local``) or in UTC, with a zone."""
    place = get_zone(zone)
    convert: Callable[[datetime], datetime] = (
        (lambda one: one.replace(tzinfo=place))
        if local
        else (lambda one: one.replace(tzinfo=UTC).astimezone(place))
    )
    found = np.empty(times.shape, dtype=object)
    moments = np.asarray(times).astype("datetime64[us]").astype(object)
    found[...] = np.vectorize(convert, otypes=[object])(moments) if times.size else moments
    return found


def read_text(values: AnyArray) -> AnyArray:
    """Text as datetime64, with years, months and days of any number of digits.

    Raises ``ValueError`` for text that is no time.
    """
    return np.array([_pad(str(one)) for one in values], dtype="datetime64[s]")


# ---- inner ---------------------------------------------------------------------------------------


def _name_zone(zone: Any) -> str:
    """The name of a zone, "" of None; one of pytz is another object in summer."""
    return str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone or "")


def _shape(match: re.Match[str]) -> tuple[Any, ...]:
    found = match.groupdict()
    return *(name for name in (*PARTS, "quarter") if found[name]), found["dash"], found["mark"]


def _make_format(matches: list[re.Match[str]]) -> str:
    """The format of text that has the same parts throughout."""
    found = matches[0].groupdict()

    def pad(name: str) -> str:
        texts = [match[name] for match in matches]
        width = max(map(len, texts))
        padded = width == min(map(len, texts)) or any(one.startswith("0") for one in texts)
        return f"{{{name}:0{width}d}}" if padded else f"{{{name}}}"

    form = pad("year")
    if found["quarter"]:
        return form + found["dash"] + "Q{quarter}"
    for name, mark in zip(PARTS[1:], ("-", "-", found["mark"], ":", ":"), strict=True):
        form += mark + pad(name) if found[name] else ""
    return form


def _format(form: str, moment: datetime) -> str:
    parts = {name: getattr(moment, name) for name in PARTS}
    return form.format(**parts, quarter=(moment.month - 1) // MONTHS_A_QUARTER + 1)


def _pad(text: str) -> str:
    match = TEXT.match(text)
    if match is None:
        return text
    found = match.groupdict()
    month = found["month"]
    if found["quarter"]:
        month = str(MONTHS_A_QUARTER * (int(found["quarter"]) - 1) + 1)
    date_of = [
        f"{int(found['year']):04}",
        *(f"{int(one):02}" for one in (month, found["day"]) if one),
    ]
    if not found["hour"]:
        return "-".join(date_of)
    clock = f"{int(found['hour']):02}:{found['minute']}:{found['second'] or '00'}"
    return "-".join(date_of) + "T" + clock
