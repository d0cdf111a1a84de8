"""Settings to read a table by, and the rows read, with the columns beside their features."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from posterity.aliases import Array, Mask
from posterity.io.arrow import pa
from posterity.io.columns import check_numbers, require
from posterity.io.conversions import as_floats, as_numbers
from posterity.io.errors import TableError
from posterity.io.missing import Missing, check_missing
from posterity.io.source import Source

# Names the value in a row of a batch, and a column.
Place = Callable[[int, str], str]
# What a column may say of a row, beside its features and its target.
ROLES = "weight", "time", "offset", "exposure"
BATCH_ROWS = 65536
MEMORY = "512MB"
# Batches that are there at once: in Arrow's hands, read ahead, and in use; as numbers, two.
_RAW, _NUMBERS = 4, 2
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True, kw_only=True)
class ReadSettings:
    """Settings that hold for any columns; parameters as in :func:`open_table`.

    Columns to ``keep`` come with the rows as they are in the table.
    """

    batch_rows: int = BATCH_ROWS
    missing: Missing = "error"
    weight: str | None = None
    time: str | None = None
    offset: str | None = None
    exposure: str | None = None
    memory: int | str = MEMORY
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise ValueError(f"batch_rows must be at least 1, got {self.batch_rows}")
        check_missing(self.missing)
        parse_bytes(self.memory)

    def choose_batch_rows(self, n_columns: int, n_features: int, least: int) -> int:
        """Rows to read at a time: ``batch_rows``, at least ``least``, and as memory allows."""
        bytes_a_row = 8 * (_RAW * n_columns + _NUMBERS * n_features + 1)
        return max(1, min(max(self.batch_rows, least), parse_bytes(self.memory) // bytes_a_row))

    @property
    def other_columns(self) -> tuple[str, ...]:
        """Columns that are no features, unless they are named among them."""
        return tuple(name for name in self.roles.values() if name is not None)

    @property
    def roles(self) -> dict[str, str | None]:
        """Names of these columns by what they say of a row."""
        return take(self, *ROLES)


def take(settings: object, *names: str) -> dict[str, Any]:
    """Some of what an object has, by name."""
    return {name: getattr(settings, name) for name in names}


def parse_bytes(memory: int | str) -> int:
    """Return the bytes of an amount like "512MB"; raises ``ValueError`` if it is none.

    Examples
    --------
    >>> parse_bytes("512MB"), parse_bytes("1.5 GiB"), parse_bytes(10_000_000)
    (512000000, 1610612736, 10000000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", str(memory), re.IGNORECASE)
    amount = 0.0
    if found is not None:
        number, unit, binary = found.groups()
        power = list(_UNITS).index(unit.upper())
        amount = float(number) * (1024**power if binary else _UNITS[unit.upper()])
    if not amount >= 1.0:
        raise ValueError(f"memory must be an amount, as in '512MB' or '2GB'; got {memory!r}")
    return int(amount)


class Rows(NamedTuple):
    """A batch: X (n, p), y (n,), (n,) weights, times and offsets where there are such columns.

    An offset is what a log rate has beside its coefficients, the log of the exposure in it.
    ``other_columns`` is an Arrow record batch of the n rows, of the columns that are kept.
    """

    X: Array
    y: Any
    weight: Array | None = None
    time: Array | None = None
    offset: Array | None = None
    other_columns: Any = None

    def select(self, rows: Mask | slice) -> Rows:
        """Return some of the rows."""
        parts = [None if part is None else part[rows] for part in self[:5]]
        if self.other_columns is None:
            return Rows(*parts)  # type: ignore[arg-type]
        places = np.arange(len(self.y))[rows]
        return Rows(*parts)._replace(other_columns=self.other_columns.take(places))  # type: ignore[arg-type]

    def keywords(self) -> dict[str, Array]:
        """Keyword arguments (weights, times, offsets) for a method that learns."""
        found = {"sample_weight": self.weight, "times": self.time, "offset": self.offset}
        return {name: values for name, values in found.items() if values is not None}


class ColumnsBeside:
    """The columns of weights, times, offsets and exposures; checked row by row.

    Times must not go back.

    ``since`` is the time of the last row that was learned before, if there was one.
    """

    def __init__(self, reading: ReadSettings, since: float | None = None) -> None:
        self._roles, self._now, self.columns = reading.roles, since, reading.other_columns

    def check(self, source: Source, target: Collection[str]) -> None:
        """Refuse columns that are not there, hold something else, or are the target."""
        schema = source.schema
        for role, name in self._roles.items():
            if name is None:
                continue
            require([name], list(schema.names), role)
            if name in target:
                raise TableError(
                    f"{name!r} is the target, and can't also be the {role}: name another column"
                )
            if not (role == "time" and pa.types.is_temporal(schema.field(name).type)):
                check_numbers(source, name, role)

    def read(
        self, batch: pa.RecordBatch, place: Place
    ) -> tuple[Array | None, Array | None, Array | None]:
        """Weights, times and offsets (n,) of a record batch; ``place(row, column)`` names a value.

        The log of an exposure is an offset.
        """
        weight, time, offset, exposure = (
            None if name is None else getattr(self, f"_read_{role}")(batch, name, place)
            for role, name in self._roles.items()
        )
        logs = None if exposure is None else np.log(exposure)
        return weight, time, logs if offset is None else offset if logs is None else offset + logs

    def _read_weight(self, batch: pa.RecordBatch, name: str, place: Place) -> Array:
        rule = "weights must be finite and not negative (0 leaves a row out)"
        return _read_numbers(batch, name, place, lambda values: values >= 0.0, rule)

    def _read_offset(self, batch: pa.RecordBatch, name: str, place: Place) -> Array:
        return _read_numbers(batch, name, place, np.isfinite, "offsets must be finite")

    def _read_exposure(self, batch: pa.RecordBatch, name: str, place: Place) -> Array:
        rule = "an exposure must be positive and finite; leave out rows without exposure"
        return _read_numbers(batch, name, place, lambda values: values > 0.0, rule)

    def _read_time(self, batch: pa.RecordBatch, name: str, place: Place) -> Array:
        column = batch.column(name)
        times = as_numbers(column)
        before = times[:1] if self._now is None else np.array([self._now])
        elapsed = np.diff(times, prepend=before)
        bad = np.flatnonzero(~((elapsed >= 0.0) & np.isfinite(times)))
        if len(bad):
            row, value = int(bad[0]), times[bad[0]]
            last = times[row - 1] if row else before[0]
            earlier = f", and {last:g} came before it" if np.isfinite(value) else ""
            raise TableError(
                f"{place(row, name)} is {_show(value)}{earlier}: times must be finite and must "
                "not decrease; sort the rows by time"
            )
        if len(times):
            self._now = float(times[-1])
        return times


def _read_numbers(
    batch: pa.RecordBatch, name: str, place: Place, is_right: Callable[[Array], Any], rule: str
) -> Array:
    """A column of finite numbers (n,); raises ``TableError`` where one breaks the rule."""
    values = np.array(as_floats(batch.column(name)))  # Arrow's own is read-only
    bad = np.flatnonzero(~(is_right(values) & np.isfinite(values)))
    if len(bad):
        row = int(bad[0])
        raise TableError(f"{place(row, name)} is {_show(values[row])}: {rule}")
    return values


def _show(value: float) -> str:
    return "missing" if np.isnan(value) else f"{value:g}"
