"""Columns of a table as the series that a forecaster reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from posterity.aliases import AnyArray
from posterity.forecasting.reading import ID, TARGET, TIME
from posterity.io import TextFormat
from posterity.io.columns import check_numbers, require
from posterity.io.conversions import as_floats, is_text
from posterity.io.folders import open_source
from posterity.io.source import Source
from posterity.io.text_columns import refuse_odd_dates


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Columns of a table by role; ``time`` None: rows are in their order."""

    target: str
    time: str | None
    series: str | None
    features: tuple[str, ...] = ()
    censored: str | None = None
    region: str | None = None

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where two options name one column."""
        options = [("--target", self.target), ("--time", self.time), ("--series", self.series)]
        if self.region is not None:
            if self.series is None:
                raise ValueError("--sum needs --series, which names the series that it sums")
            options.append(("--sum", self.region))
        options.append(("--censored", self.censored))
        seen: dict[str, str] = {}
        for option, name in [*options, *(("--features", name) for name in self.features)]:
            if name is not None and seen.setdefault(name, option) != option:
                raise ValueError(
                    f"{seen[name]} and {option} both name the column {name!r}: name different ones"
                )

    def read(self, path: str, text: TextFormat, *, future: bool = False) -> Frame:
        """The table as a long frame that :class:`Forecaster` reads; of the future without target.

        Raises ``TableError`` for a column that is missing or no number.
        """
        named = {ID: self.series, TIME: self.time, TARGET: None if future else self.target}
        region, censored = (None, None) if future else (self.region, self.censored)
        columns_of_rows = (*self.features, *(() if censored is None else (censored,)))
        wanted = [name for name in (*named.values(), *columns_of_rows, region) if name is not None]
        source = open_source(path, text)
        require(wanted, list(source.schema.names), "column")
        numbers = self.features if future else (self.target, *columns_of_rows)
        texts = {name for name in self.features if is_text(source.schema.field(name).type)}
        for name in numbers:
            if name not in texts:
                check_numbers(source, name, "column")
        if self.time is not None and is_text(source.schema.field(self.time).type):
            refuse_odd_dates(source, self.time)
        table = _read_columns(source, wanted)
        if self.time is not None:
            table = _keep_months(table, self.time, source)
        columns: dict[str, Any] = {}
        if self.series is not None:
            columns[ID] = _names(table[self.series])
        if self.time is not None:
            columns[TIME] = _plain(table[self.time])
        elif self.series is not None and not future:
            columns[TIME] = _number_rows(columns[ID])
        for name in numbers:
            values = _plain(table[name]) if name in texts else as_floats(table[name])
            columns[TARGET if name == self.target else name] = values
        time_type = None if self.time is None else table[self.time].type
        regions = {} if region is None else _group(columns[ID], _names(table[region]), region)
        return Frame(columns, time_type, source.notes, regions)


class Frame:
    """Columns (n,) by name, as a data frame has them; of what type times were, and notes.

    ``regions`` are the names of sums, and of the series of each.
    """

    def __init__(
        self,
        columns: dict[str, AnyArray],
        time_type: object = None,
        notes: Sequence[str] = (),
        regions: Mapping[Any, Sequence[Any]] | None = None,
    ) -> None:
        self._columns, self.regions = columns, regions or {}
        self.time_type, self.notes = time_type, notes

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns."""
        return list(self._columns)

    def __getitem__(self, name: str) -> AnyArray:
        return self._columns[name]


def read_table(path: str, text: TextFormat) -> Frame:
    """A small table as it is: text as text, numbers as numbers."""
    source = open_source(path, text)
    names = list(source.schema.names)
    table = _read_columns(source, names)
    return Frame({name: _plain(table[name]) for name in names}, None, source.notes)


def _read_columns(source: Source, names: list[str]) -> Any:
    batches = [batch for batch, _ in source.batches(names, 65536)]
    return pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()


def _group(series: AnyArray, regions: AnyArray, column: str) -> Mapping[Any, Sequence[Any]]:
    """Names of series by the region that each is in.

    Raises ``ValueError`` for a series of two regions, and a region that is named as a series is.
    """
    pairs = sorted(set(zip(regions.tolist(), series.tolist(), strict=True)), key=repr)
    found: dict[Any, list[Any]] = {}
    for region, name in pairs:
        found.setdefault(region, []).append(name)
    each = [name for _, name in pairs]
    twice = next((name for name in each if each.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"series {twice!r} has several values of {column!r}: give each one")
    same = next((region for region in found if region in each), None)
    if same is not None:
        raise ValueError(f"{same!r} is a series and a value of {column!r}: name one of them anew")
    return found


def _keep_months(table: Any, name: str, source: Source) -> Any:
    """The table with months as they are written, as 1975-10, so that forecasts are written so."""
    if not pa.types.is_temporal(table[name].type):
        return table
    chunks = source.texts(name)
    first = next(chunks, None)
    if first is None or not re.fullmatch(r"\d{1,4}-\d{1,2}", str(first[0])):
        return table
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, pa.chunked_array([first, *chunks]))


def as_typed(times: AnyArray, time_type: object) -> Any:
    """Times as an Arrow column of the type they were read as, for tables to be joined by."""
    if time_type is not None and (
        pa.types.is_temporal(time_type) or pa.types.is_integer(time_type)
    ):
        return pa.array(times).cast(time_type)
    return pa.array(without_hours(times))


def without_hours(times: AnyArray) -> AnyArray:
    """Times as dates, where all are at midnight."""
    if times.dtype.kind != "M":
        return times
    days = times.astype("datetime64[D]")
    return days if (days == times).all() else times.astype("datetime64[s]")


def _plain(column: Any) -> AnyArray:
    """An Arrow column (chunked) as NumPy's; categories as what they are."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _names(column: object) -> AnyArray:
    """Names of series: whole numbers as such, though CSV files have no whole numbers."""
    names = _plain(column)
    if names.dtype.kind == "f" and np.isfinite(names).all() and (names == np.round(names)).all():
        return names.astype(np.int64)
    return names


def _number_rows(names: AnyArray) -> NDArray[np.int64]:
    """(n,) the number of each row within its series, from 0."""
    order = np.argsort(names.astype(str), kind="stable")
    ordered = names[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    counts = np.diff(np.append(first, len(names)))
    numbers = np.empty(len(names), dtype=np.int64)
    numbers[order] = np.arange(len(names)) - np.repeat(first, counts)
    return numbers
