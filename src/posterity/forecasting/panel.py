"""Panel of many series on one grid of steps, each with its last value in the last column."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Mask
from posterity.forecasting.calendar import Calendar, Index, format_time
from posterity.forecasting.closing import Closing
from posterity.forecasting.names import join_names, sort_names
from posterity.forecasting.typical import find_typical
from posterity.safety import check_memory

# Most steps for each row, and steps that are never too many.
STEPS_A_ROW, MOST_STEPS = 100, 10_000
# Values that are left out: single ones, and those by which it is known that the level has moved,
# this or, by larger marks, so many values before.
OUTLIER, STEP = 1, 2
# Copies of a grid of steps that learning takes, at least.
GRIDS = 4


@dataclass(frozen=True, eq=False)
class Panel:
    """Series (S, T), NaN where nothing was observed or before a series began.

    Parameters
    ----------
    ids
        Names of the series.
    values
        (S, T), aligned at the right: the last column is the last row of each series.
    ends
        (S,) number of that row in ``calendar``.
    columns
        (S, T, m + e) exogenous columns; ``names`` (m,) are those that users gave. The others are
        known at any time.
    single
        Whether users gave one series, without a name.
    left_out
        (S, T) which values were observed, and are NaN here because forecasts ignore them:
        ``OUTLIER``, or ``STEP`` and more where the level has moved: see :func:`find_steps`.
    closing
        Which steps are known to be 0, and are NaN here.

    Examples
    --------
    >>> panel = Panel.of_arrays({"a": [1.0, 2.0], "b": [5.0]})
    >>> panel.values
    array([[ 1.,  2.],
           [nan,  5.]])
    """

    ids: tuple[Any, ...]
    values: Array
    ends: Index
    calendar: Calendar
    columns: Array
    names: tuple[Any, ...] = ()
    single: bool = False
    left_out: NDArray[np.int8] | None = None
    closing: Closing | None = None

    @classmethod
    def of_arrays(cls, series: dict[Any, Any], *, single: bool = False) -> Panel:
        """Series without times: their rows are numbered from 0."""
        arrays = {
            name: convert_to_values(one, "the series" if single else f"series {name!r}")
            for name, one in series.items()
        }
        length = max((len(one) for one in arrays.values()), default=0)
        values = np.full((len(arrays), length), np.nan)
        for row, one in zip(values, arrays.values(), strict=True):
            row[length - len(one) :] = one
        ends = np.array([len(one) - 1 for one in arrays.values()], dtype=np.int64)
        columns = np.zeros((*values.shape, 0))
        return cls(tuple(arrays), values, ends, Calendar("numbers", 1, 0), columns, (), single)

    @classmethod
    def of_rows(
        cls,
        ids: tuple[Any, ...],
        which: Index,
        index: Index,
        rows: Array,
        calendar: Calendar,
        names: tuple[Any, ...],
    ) -> Panel:
        """Return a panel of rows [y, columns] (n, 1 + m), of series ``which``, steps ``index``."""
        ends = np.full(len(ids), np.iinfo(np.int64).min)
        np.maximum.at(ends, which, index)
        back = ends[which] - index
        length = int(back.max(initial=-1)) + 1
        check_grid((len(ids), length, rows.shape[1]), len(rows), calendar)
        both = np.full((len(ids), length, rows.shape[1]), np.nan)
        both[which, length - 1 - back] = rows
        return cls(ids, np.ascontiguousarray(both[:, :, 0]), ends, calendar, both[:, :, 1:], names)

    def __len__(self) -> int:
        return len(self.ids)

    def __getstate__(self) -> dict[str, Any]:
        return {name: one for name, one in self.__dict__.items() if name != "typical"}

    @property
    def length(self) -> int:
        """T, the length of the longest series."""
        return self.values.shape[1]

    @property
    def observed(self) -> Index:
        """(S,) number of observed values."""
        return np.asarray(np.isfinite(self.values).sum(axis=1))

    @property
    def lengths(self) -> Index:
        """(S,) rows from the first observed one to the end."""
        known = np.isfinite(self.values) | np.isfinite(self.columns).any(axis=2)
        return np.where(known.any(axis=1), self.length - known.argmax(axis=1), 0)

    @cached_property
    def typical(self) -> Mask:
        """(S,) which series are like most: what all share is learned from these."""
        return find_typical(self.values, self.left_out)

    def select_typical(self) -> Panel:
        """Select the series that are like most."""
        return self if self.typical.all() else self.part(np.flatnonzero(self.typical))

    def before(self, rows: int) -> Panel:
        """The same without the last ``rows`` rows of each series."""
        if rows == 0:
            return self
        keep = self.length - rows
        return replace(
            self,
            values=self.values[:, :keep],
            columns=self.columns[:, :keep],
            ends=self.ends - rows,
            left_out=None if self.left_out is None else self.left_out[:, :keep],
        )

    def part(self, which: Index) -> Panel:
        """Return some of the series, by their numbers."""
        return replace(
            self,
            ids=tuple(self.ids[number] for number in which),
            values=self.values[which],
            ends=self.ends[which],
            columns=self.columns[which],
            left_out=None if self.left_out is None else self.left_out[which],
            closing=None if self.closing is None else self.closing.part(which),
        )

    def find_closed(self, columns: Array, steps: Index) -> Mask:
        """(S, n) which steps (S, n) after the last row are known to be 0, by columns (S, n, m)."""
        if self.closing is None:
            return np.zeros(steps.shape, dtype=bool)
        return self.closing.find(self.ends[:, None] + steps, columns)

    def pad_to_length(self, length: int) -> Panel:
        """The same with so many columns, of which there must be no fewer than there are rows."""
        cut = max(self.length - length, 0)
        more = ((0, 0), (max(length - self.length, 0), 0))
        return replace(
            self,
            values=np.pad(self.values[:, cut:], more, constant_values=np.nan),
            columns=np.pad(self.columns[:, cut:], (*more, (0, 0)), constant_values=np.nan),
        )

    def append(self, other: Panel) -> Panel:
        """Append what came later of these series, or of new ones.

        Raises ``ValueError`` where a row of ``other`` is not later than all rows of its series.
        """
        names = join_names(self.names, other.names)
        ids = sort_names(dict.fromkeys([*self.ids, *other.ids]))
        place = {name: number for number, name in enumerate(ids)}
        old = np.array([place[name] for name in self.ids], dtype=np.int64)
        new = np.array([place[name] for name in other.ids], dtype=np.int64)
        ends = np.full(len(ids), np.iinfo(np.int64).min)
        ends[old] = self.ends
        begun = other.ends - other.lengths + 1
        early = np.flatnonzero((begun <= ends[new]) & (other.lengths > 0))
        if len(early):
            first = early[0]
            raise ValueError(
                f"{self.describe_series(other.ids[first])} has a row at "
                f"{format_time(self.calendar.stamps(begun[first]))}, but its rows up to "
                f"{format_time(self.calendar.stamps(ends[new[first]]))} were learned already: "
                "new rows must be later, each time once"
            )
        known = ends[new] > np.iinfo(np.int64).min
        n_rows = int(self.lengths.sum() + other.lengths.sum())
        check_gaps(self.calendar, np.where(known, ends[new], begun), begun, n_rows)
        ends[new] = other.ends
        later = [(self._name_columns(names), old), (other._name_columns(names), new)]
        length = max(int((ends[to] - p.ends).max(initial=0)) + p.length for p, to in later)
        shape = len(ids), length, 1 + len(names)
        check_grid(shape, n_rows, self.calendar)
        both = np.full(shape, np.nan)
        for panel, to in later:
            rows = np.concatenate([panel.values[:, :, None], panel.columns], axis=2)
            for source, target, behind in zip(rows, to, ends[to] - panel.ends, strict=True):
                stop = length - int(behind)
                known = np.isfinite(source).any(axis=1)
                both[target, stop - panel.length : stop][known] = source[known]
        values = np.ascontiguousarray(both[:, :, 0])
        single = self.single and len(ids) == 1
        panel = replace(
            self,
            ids=ids,
            values=values,
            ends=ends,
            columns=both[:, :, 1:],
            names=names,
            single=single,
        )
        return panel.pad_to_length(max(int(panel.lengths.max(initial=0)), 1))

    def _name_columns(self, names: tuple[Any, ...]) -> Panel:
        """The same with these exogenous columns: zeros of levels that it has not."""
        if names == self.names:
            return self
        known = np.asarray(np.isfinite(self.columns).all(axis=2))[:, :, None]
        columns = np.where(known, np.zeros(len(names)), np.nan)
        columns[:, :, [names.index(name) for name in self.names]] = self.columns
        return replace(self, columns=columns, names=names)

    def describe_series(self, name: Any) -> str:
        """A series in words, for messages."""
        return "the series" if self.single else f"series {name!r}"


def check_gaps(calendar: Calendar, ends: Index, begins: Index, rows: int) -> None:
    """Raise ``ValueError`` where a gap from a row to the next is too long for so many ``rows``."""
    gaps = begins - ends
    worst = int(gaps.argmax()) if gaps.size else 0
    if gaps.size and gaps[worst] > max(MOST_STEPS, STEPS_A_ROW * rows):
        after, until = calendar.stamps(ends[worst]), calendar.stamps(begins[worst])
        raise ValueError(
            f"the gap after {format_time(after)} is {gaps[worst] - 1:,} steps of "
            f"{calendar.distance}, up to {format_time(until)}: is the time right? If it is, give "
            "times that are further apart"
        )


def check_grid(shape: tuple[int, int, int], rows: int, calendar: Calendar) -> None:
    """Raise ``ValueError`` where a grid (S, T, 1 + m) is too large, or too large for its rows."""
    n_series, length, _ = shape
    if length > max(MOST_STEPS, STEPS_A_ROW * rows):
        raise ValueError(
            f"there are {rows:,} rows, and {length:,} steps of {calendar.distance} from "
            "first to last: give times on a regular grid, which are further apart"
        )
    check_memory(
        8.0 * GRIDS * math.prod(shape),
        f"a grid of {n_series:,} series and {length:,} steps",
        "give times that are further apart, or fewer series at once",
    )


def find_steps(left_out: NDArray[np.int8]) -> Mask:
    """(S, T) which values begin a new level, of marks (S, T) of values that are left out."""
    found = np.zeros(left_out.shape, dtype=bool)
    series, place = np.nonzero(left_out >= STEP)
    found[series, place - (left_out[series, place] - STEP)] = True
    return found


def convert_to_values(
    values: Any, name: str, advice: str = "correct it, or leave it missing"
) -> Array:
    """A series or a column (n,), by its name in words, as numbers; NaN was not observed.

    ``advice`` says what to do with a value that is no number.
    """
    refuse_times(values, name)
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        where = _find_no_number(values)
        raise ValueError(f"{name} has a value that is not a number{where}: {advice}") from error
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}: it must be (n,)")
    check_finite(values, name)
    return np.asarray(values)


def _find_no_number(values: Any) -> str:
    """Say which value can't be converted, where one alone can't."""
    for row, value in enumerate(values):
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            return f", {value!r} at row {row} (from 0)"
    return ""


def refuse_times(values: Any, name: str) -> None:
    """Raise ``ValueError`` for dates, which would become nanoseconds."""
    if getattr(getattr(values, "dtype", None), "kind", "O") in "Mm":
        raise ValueError(
            f"{name} contains dates or times, which are no values of a series: call that column "
            "'ds', or make it the index, as in frame.set_index('when')"
        )


def check_finite(values: Array, name: str) -> None:
    """Raise ``ValueError`` for infinite values; NaN says that nothing was observed."""
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise ValueError(
            f"{name} is infinite at row {infinite[0]} (from 0): leave the value out, or write NaN"
        )
