"""Rows with columns of several kinds: numbers, categories, dates, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import msgspec
import numpy as np

from posterity.factor.usable import LARGEST
from posterity.io.arrow import pa
from posterity.io.calendar import PARTS, name_parts
from posterity.io.missing import ColumnMeans
from posterity.linear.categories import MISSING
from posterity.linear.levels import to_text
from posterity.model.formula import read_formula
from posterity.service.errors import RefusedError
from posterity.service.inputs import list_names
from posterity.service.messages import PredictorSettings
from posterity.service.rows import Added, Rows, name_kinds, refuse_level

_decode = msgspec.json.Decoder().decode
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Kind:
    """A kind of column: what it must be, and the columns that a model learns, by their endings."""

    expected: str
    read: Callable[[Any], Mapping[str, Any]]  # raises ValueError or TypeError
    example: Any
    parts: tuple[str, ...] = ("",)


def _read_number(value: Any) -> Mapping[str, float]:
    if isinstance(value, str) or not abs(value) <= LARGEST:
        raise ValueError
    return {"": float(value) if abs(value) >= 1.0 / LARGEST else 0.0}


def _read_boolean(value: Any) -> Mapping[str, bool]:
    if not isinstance(value, bool):
        raise TypeError
    return {"": value}


def _read_time(value: Any) -> Mapping[str, Any]:
    return name_parts(datetime.fromisoformat(value))


def _read_date(value: Any) -> Mapping[str, Any]:
    return name_parts(date.fromisoformat(value))


_PARTS = (".weekday", ".month")
KINDS = {
    "number": Kind(f"a number within {LARGEST:g} of 0", _read_number, 1.0),
    "boolean": Kind("true or false", _read_boolean, True),
    "category": Kind("text or a number", lambda value: {"": to_text(value)}, "a"),
    "date": Kind("a date such as 2026-01-31", _read_date, "2026-01-31", _PARTS),
    "time": Kind(
        "a time such as 2026-01-31T13:00", _read_time, "2026-01-31T13:00", (".hour", *_PARTS)
    ),
}
# Words of the parts of dates, all of which have a coefficient from the start.
_WORDS = {f".{part}": words for part, (words, _, _) in PARTS.items()}
# Kinds of which a mean makes sense where a value is missing.
_MEANS = ("number", "boolean")


def find_kind(value: Any) -> str:
    """The kind of a column by its first value.

    Examples
    --------
    >>> [find_kind(one) for one in (1.0, True, "Mon", "2026-01-31", "2026-01-31T13:00")]
    ['number', 'boolean', 'category', 'date', 'time']
    """
    if isinstance(value, bool):
        return "boolean"
    if not isinstance(value, str):
        return "number"
    for kind in ("date", "time") if _DATE.match(value) else ():
        try:
            KINDS[kind].read(value)
        except ValueError:
            continue
        return kind
    return "category"


def list_parts(name: str, kind: Any) -> list[str]:
    """The columns that a model learns of one, by its kind or its levels.

    Examples
    --------
    >>> list_parts("day", "date"), list_parts("shop", ["a", "b"])
    (['day.weekday', 'day.month'], ['shop'])
    """
    return [name + part for part in KINDS[_name_kind(kind)].parts]


def list_levels(kinds: Mapping[str, Any]) -> dict[str, list[str]]:
    """Columns whose levels are known beforehand: those that are listed, and parts of dates.

    Examples
    --------
    >>> list(list_levels({"size": "number", "shop": ["a", "b"], "day": "date"}))
    ['shop', 'day.weekday', 'day.month']
    """
    levels: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        if isinstance(kind, list):
            levels[name] = kind
            continue
        parts = filter(None, KINDS[kind].parts)
        levels |= {name + part: [*_WORDS[part]] for part in parts}
    return levels


class TableRows(Rows):
    """Rows of columns by their names; each column has a kind, or a list of its levels.

    The log keeps the values as they were sent, as JSON, and the numbers that were filled in.

    Parameters
    ----------
    settings : PredictorSettings
        Where it names no features, the first row that is learned does.
    notes : mapping
        What ``notes`` was, in a snapshot or in a model file.
    columns : sequence of str
        What the model of a file has learned; empty: all that the kinds make.
    """

    def __init__(
        self, settings: PredictorSettings, notes: Mapping[str, Any], columns: Sequence[str] = ()
    ) -> None:
        super().__init__(settings)
        self._kinds = name_kinds(settings) or dict(notes.get("kinds", {}))
        self._means = ColumnMeans.of(notes.get("means") or {})
        self._columns = [*columns, *self.roles.values()] if columns else []

    @property
    def notes(self) -> dict[str, Any]:
        """The kinds of columns, and the means of numbers."""
        return {"kinds": self._kinds, "means": self._means.get_sums()}

    @property
    def kinds(self) -> dict[str, Any]:
        """The kinds, given or learned; none before the first row where they are learned."""
        return self._kinds

    def find_kinds(self, x: bytes) -> dict[str, Any]:
        """The kinds, or those that a first row has."""
        return self._kinds or _find_kinds(_decode(x)[0])

    # ---- reading ---------------------------------------------------------------------------------

    def read(self, x: Any) -> bytes:
        """The values as they were sent, and numbers for those that are missing."""
        kinds = self._kinds or _find_kinds(x)
        row = self._order_values(x, kinds)
        filled = {}
        for name, value in row.items():
            if value is None:
                filled[name] = self._fill(name, kinds[name])
            else:
                self._check(name, kinds[name], value)
        return msgspec.json.encode([row, filled])

    def _order_values(self, x: Any, kinds: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(x, list):
            if len(x) != len(kinds):
                message = f"expected {len(kinds)} values, got {len(x)}: give {list_names(kinds)}"
                raise RefusedError(422, message, "x")
            return dict(zip(kinds, x, strict=True))
        unknown = next((name for name in x if name not in kinds), None)
        if unknown is not None:
            message = f"unknown feature {unknown!r}: give {list_names(kinds)}"
            raise RefusedError(422, message, f"x.{unknown}")
        return {name: x.get(name) for name in kinds}

    def _fill(self, name: str, kind: Any) -> Any:
        """What stands for a value that is missing."""
        if self.settings.missing != "fill" or name in self.roles.values():
            message = (
                f"feature {name!r} is missing: send a value, or create the predictor with "
                '"missing": "fill"'
            )
            raise RefusedError(422, message, f"x.{name}")
        if kind not in _MEANS:
            return MISSING
        known = self._means.fixed.get(name)
        if known is None:
            message = f"feature {name!r} is missing, and no row before has it: send a value"
            raise RefusedError(422, message, f"x.{name}")
        return known

    def _check(self, name: str, kind: Any, value: Any) -> None:
        kind = _name_kind(kind)
        try:
            read = KINDS[kind].read(value)
        except (ValueError, TypeError) as error:
            message = f"{name!r} is {_describe(value)}: it must be {KINDS[kind].expected}"
            raise RefusedError(422, message, f"x.{name}") from error
        if name in self.roles.values():
            self.check_exposure(name, read[""])

    def check_known(self, x: bytes) -> None:
        """Refuse a level that the settings do not name."""
        row, _ = _decode(x)
        for name, kind in self._kinds.items():
            if isinstance(kind, list) and row[name] is not None and to_text(row[name]) not in kind:
                raise refuse_level(name, kind)

    def is_same(self, known: bytes, x: bytes) -> bool:
        """Whether the values that were sent are the same, whatever was filled in."""
        return bool(_decode(known)[0] == _decode(x)[0])

    # ---- for models ------------------------------------------------------------------------------

    def list_numbers(self, x: bytes) -> list[float]:
        """The numbers, with those that were filled in."""
        row, filled = _decode(x)
        row |= filled
        kinds = self.find_kinds(x)
        return [float(row[name]) for name in row if kinds[name] == "number"]

    def list_values(self, x: bytes) -> dict[str, Any]:
        """What was sent, but for dates and times: those to come are always new."""
        row, _ = _decode(x)
        kinds = {name: _name_kind(kind) for name, kind in self.find_kinds(x).items()}
        return {
            name: value if value is None or kinds[name] == "number" else to_text(value)
            for name, value in row.items()
            if kinds[name] not in ("date", "time")
        }

    def open_one(self, x: bytes) -> tuple[dict[str, Any], Added]:
        """A mapping of columns to values, dates as parts of the calendar."""
        row, filled = _decode(x)
        kinds = self.find_kinds(x)
        values: dict[str, Any] = {}
        for name, value in row.items():
            kind = KINDS[_name_kind(kinds[name])]
            missing = value is None and name in filled
            made = dict.fromkeys(kind.parts, filled[name]) if missing else kind.read(value)
            parts = made if self._columns else kind.parts  # days are a feature of a file alone
            values |= {name + part: made[part] for part in parts}
        if self._columns:  # in the model's order
            values = {name: values[name] for name in self._columns if name in values}
        added = {role: values.pop(name) for role, name in self.roles.items()}
        return values, added

    def open(self, rows: Sequence[bytes]) -> tuple[pa.Table, Added]:
        """A table of Arrow."""
        opened = [self.open_one(x) for x in rows]
        added = {role: np.array([its[role] for _, its in opened]) for role in self.roles}
        return pa.Table.from_pylist([values for values, _ in opened]), added

    def note(self, x: bytes) -> None:
        """Keep the kinds of the first row, and means of the numbers that were sent."""
        row, _ = _decode(x)
        self._kinds = self.find_kinds(x)
        if self.settings.missing == "fill":
            known = [name for name, kind in self._kinds.items() if kind in _MEANS]
            values = np.array([row[name] for name in known], np.float64)  # None is NaN
            there = ~np.isnan(values)
            self._means.add(known, np.where(there, values, 0.0), there.astype(np.float64))

    def make_examples(self, n: int, largest: float) -> list[bytes]:
        """Rows of random numbers and of the same text."""
        kinds = self._kinds or _guess_kinds(self.settings)
        learned = kinds.keys() - set(self.roles.values())
        examples = []
        for number in (largest * np.random.default_rng(0).random(n)).tolist():
            row = {
                name: kind[0] if isinstance(kind, list) else KINDS[kind].example
                for name, kind in kinds.items()
            }
            row |= {name: number for name in learned if kinds[name] == "number"}
            examples.append(self.read(row))
        return examples


def _guess_kinds(settings: PredictorSettings) -> dict[str, Any]:
    """Kinds that columns may have whose first row has not come."""
    if settings.formula is None:
        return {"x": "number"} | ({settings.groups: "category"} if settings.groups else {})
    formula = read_formula(settings.formula)
    groups = {node.text for group in formula.groups for node in group.groups}
    return {name: "category" if name in groups else "number" for name in formula.predictors}


def _find_kinds(x: Any) -> dict[str, str]:
    """Kinds by the values of a first row."""
    if isinstance(x, list):
        message = "the first row says what the features are: send them by name"
        raise RefusedError(422, message, "x")
    if not x:
        raise RefusedError(422, "the row has no features: send one or more", "x")
    for name, value in x.items():
        if value is None:
            message = f"{name!r} is missing in the first row: send a value, or create the "
            message += 'predictor with the kinds of its features, as in {"size": "number"}'
            raise RefusedError(422, message, f"x.{name}")
    return {name: find_kind(value) for name, value in x.items()}


def _name_kind(kind: Any) -> str:
    return "category" if isinstance(kind, list) else kind


def _describe(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, str) else f"{value:g}"
