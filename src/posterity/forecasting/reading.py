"""Reading series: an array, a dict of arrays, a wide frame, or a long one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from posterity.aliases import AnyArray, Array, Mask
from posterity.forecasting.calendar import Calendar, Index, as_numbers, as_times, format_time
from posterity.forecasting.frames import (
    columns_of,
    get_column,
    name_exogenous,
    read_column,
    read_exogenous,
)
from posterity.forecasting.levels import find_level
from posterity.forecasting.names import sort_names
from posterity.forecasting.panel import (
    Panel,
    check_finite,
    check_gaps,
    convert_to_values,
    refuse_times,
)
from posterity.forecasting.writing import Writing
from posterity.kernel.values import read_floats

# Names of columns in long frames, as in Nixtla's libraries.
ID, TIME, TARGET = "unique_id", "ds", "y"
# Most gaps that a warning names.
NAMED = 3
# Hour before which clocks are set back.
LATEST_CHANGE = 4.0
# An unnamed index that spans this many times the rows may be left over from a selection.
SPARSE = 2


class GapWarning(UserWarning):
    """Times are missing within a series."""


def read(
    data: Any, X: Any = None, calendar: Calendar | None = None, known: Sequence[Any] = ()
) -> Panel:
    """The series of ``data``.

    Parameters
    ----------
    data
        (n,) array; (n, k) array, a series each column; mapping of names to arrays; a long frame
        with columns unique_id (optional), ds and y, all others exogenous; any other frame is a wide
        one, a series each column. Times are in the column ds or in a pandas index: dates, or whole
        numbers that have a name or are not 0, 1, ... in this order.
    X
        (n, m) exogenous columns, array or frame, of a single series.
    calendar
        What is known of times; by default it is found from them.
    known
        Names of the exogenous columns that were learned before.

    Raises
    ------
    ValueError
        Times double or between steps, values infinite or no numbers, shapes that disagree.
    """
    panel = _read_panel(data, X, calendar, known)
    times = _get_times(data) if calendar is None else None
    if times is None:
        return panel
    return replace(panel, calendar=panel.calendar.as_written(Writing.of(times)))


def has_times(data: Any, calendar: Calendar | None = None) -> bool:
    """Return True if rows come with times, in the column ds or in a pandas index."""
    return TIME in (columns_of(data) or ()) or _read_index_times(data, calendar) is not None


def future(data: Any, panel: Panel, h: int) -> Array:
    """(S, h, m) exogenous columns of the next ``h`` steps; ``ValueError`` where one is missing."""
    if not panel.names:
        if data is not None:
            raise ValueError(
                "X_future was given, but no exogenous columns were learned: leave it out"
            )
        return np.zeros((len(panel), h, 0))
    if data is None:
        raise ValueError(
            f"X_future is missing: the forecaster has learned the exogenous columns "
            f"{list(panel.names)}, and needs their values in the next {h} steps"
        )
    names = columns_of(data)
    if names is None:
        table = _read_table(data, "X_future")
        found = np.broadcast_to(table, (len(panel), *table.shape))
    else:
        found = _read_future_frame(data, names, panel, h)
    if found.shape[1] < h or found.shape[2] != len(panel.names):
        raise ValueError(
            f"X_future has {found.shape[1]} rows and {found.shape[2]} columns: expected {h} rows "
            f"(the horizon) of {len(panel.names)} columns {list(panel.names)}"
        )
    found = found[:, :h]
    missing = np.argwhere(~np.isfinite(found))
    if len(missing):
        series, step, column = missing[0]
        raise ValueError(
            f"X_future has no value of {panel.names[column]!r} for "
            f"{panel.describe_series(panel.ids[series])} in step {step + 1} of {h}: give it for "
            "every step"
        )
    return np.asarray(found)


# ---- inner ---------------------------------------------------------------------------------------


def _read_panel(data: Any, X: Any, calendar: Calendar | None, known: Sequence[Any]) -> Panel:
    names = columns_of(data)
    if names is None:
        times = _read_index_times(data, calendar)
        if times is not None:
            return _read_series(data, times, X, calendar, known)
        return _add_columns(_read_values(data), X, known)
    if X is not None:
        raise ValueError("X is for arrays: in a frame, add exogenous columns to the frame of y")
    if TARGET in names:
        return _read_long(data, names, calendar, known)
    return _read_wide(data, names, calendar)


def _get_times(data: Any) -> Any:
    """Times as users give them: the column of a frame, or a pandas index; None without any."""
    if TIME in (columns_of(data) or ()):
        return get_column(data, TIME)
    index = getattr(data, "index", None)
    return index if hasattr(index, "dtype") else None


def _read_series(
    data: Any, times: AnyArray, X: Any, calendar: Calendar | None, known: Sequence[Any]
) -> Panel:
    """A series with an index of times."""
    y = convert_to_values(data, "the series")
    table, names = _read_columns(X, len(y), known)
    theirs = _read_index_times(X, calendar)
    if theirs is not None and not np.array_equal(theirs, times):
        raise ValueError(
            "the index of X is not that of y: give X the same index, with its rows in the same "
            "order, as X.loc[y.index] does"
        )
    rows, which = np.column_stack([y, table]), np.zeros(len(y), dtype=np.int64)
    panel = _place_on_grid((TARGET,), which, times, rows, names, calendar)
    return replace(panel, single=True)


def _read_values(data: Any) -> Panel:
    if isinstance(data, Mapping):
        panel = Panel.of_arrays(dict(data))
    else:
        refuse_times(data, "the series")
        array = read_floats(data, "the series")
        if array.ndim == 1:
            panel = Panel.of_arrays({TARGET: array}, single=True)
        elif array.ndim == 2:
            panel = Panel.of_arrays(dict(enumerate(array.T)))
        else:
            raise ValueError(f"the series have shape {array.shape}: expected (n,) or (n, k)")
    if not len(panel) or panel.length == 0:
        raise ValueError("there is no row to learn: give at least one value of a series")
    return panel


def _read_long(
    frame: Any, names: list[Any], calendar: Calendar | None, known: Sequence[Any]
) -> Panel:
    y = convert_to_values(read_column(frame, TARGET), f"column {TARGET!r}")
    own = [name for name in names if name not in {ID, TIME, TARGET}]
    exogenous = name_exogenous(frame, own, known)
    rows = np.column_stack([y, *(read_exogenous(frame, name) for name in exogenous)])
    times = _read_times(frame, names, calendar)
    ids = read_column(frame, ID) if ID in names else np.array([TARGET] * len(y))
    if times is None:
        if ID in names:
            raise ValueError(
                f"a frame of several series needs the column {TIME!r}, with the time of each row"
            )
        times = np.arange(len(y))
    if ids.dtype.kind in "fO":
        unnamed = [row for row, name in enumerate(ids) if name is None or name != name]
        if unnamed:
            raise ValueError(
                f"{ID} is missing at row {unnamed[0]} (from 0): name each row's series"
            )
    distinct, which = _number_series(ids)
    panel = _place_on_grid(distinct, which, times, rows, exogenous, calendar)
    return panel if ID in names else replace(panel, single=True)


def _number_series(ids: AnyArray) -> tuple[tuple[Any, ...], Index]:
    """Distinct names, sorted where they can be, and the number of each row's."""
    given = ids.tolist()
    distinct = sort_names(dict.fromkeys(given))
    place = {name: number for number, name in enumerate(distinct)}
    return distinct, np.array([place[name] for name in given], dtype=np.int64)


def _read_wide(frame: Any, names: list[Any], calendar: Calendar | None) -> Panel:
    series = [name for name in names if name != TIME]
    if len(set(series)) < len(series):
        twice = next(name for name in series if series.count(name) > 1)
        raise ValueError(f"two columns are called {twice!r}: name each series differently")
    times = _read_times(frame, names, calendar)
    values = [convert_to_values(read_column(frame, name), f"column {name!r}") for name in series]
    if times is None:
        return Panel.of_arrays(dict(zip(series, values, strict=True)))
    which = np.repeat(np.arange(len(series)), len(times))
    rows = np.concatenate(values)[:, None]
    return _place_on_grid(tuple(series), which, np.tile(times, len(series)), rows, (), calendar)


def _place_on_grid(
    ids: tuple[Any, ...],
    which: Index,
    times: AnyArray,
    rows: Array,
    names: tuple[Any, ...],
    calendar: Calendar | None,
) -> Panel:
    """Rows sorted by series and time, and put on the grid of their calendar."""
    if not len(times):
        raise ValueError("there is no row to learn: give at least one value of a series")
    order = np.lexsort((times, which))
    which, times, rows = which[order], times[order], rows[order]
    same = which[1:] == which[:-1]
    double = np.flatnonzero(same & (times[1:] == times[:-1]))
    if len(double):
        raise ValueError(
            f"{_describe_series(ids, which[double[0]])} has the time "
            f"{format_time(times[double[0]])} twice: "
            + _advise_on_double(times[double[0]], single=len(ids) == 1)
        )
    if calendar is None:
        calendar = _find_calendar(times, same)
    index = calendar.index(times)
    check_gaps(calendar, index[:-1][same], index[1:][same], len(index))
    panel = Panel.of_rows(ids, which, index, rows, calendar, names)
    _warn_of_gaps(ids, which, index, same, calendar)
    return panel


def _advise_on_double(time: Any, *, single: bool) -> str:
    """Say what to do with a time that comes twice; clocks are set back in the night to Sunday."""
    if getattr(time, "dtype", np.dtype(int)).kind == "M":
        hours = float((time - time.astype("datetime64[D]")) / np.timedelta64(1, "h"))
        sunday = not np.is_busday(time.astype("datetime64[D]"), weekmask="1111110")
        if sunday and 0.0 < hours < LATEST_CHANGE:
            return (
                "clocks were set back then, as it seems; give times with their zone, as "
                "frame['ds'].dt.tz_localize('Europe/Paris', ambiguous='infer') does, or in UTC"
            )
    advice = "each time may come once; add the rows up, or choose one"
    return advice + (", or name the series of each row (unique_id)" if single else "")


def _find_calendar(times: AnyArray, same: Mask) -> Calendar:
    """The calendar whose step divides all distances within series."""
    kind = Calendar.of(times, np.ones(1, dtype=np.int64)).kind
    return Calendar.of(times, np.diff(as_numbers(times, kind))[same])


def _warn_of_gaps(
    ids: tuple[Any, ...], which: Index, index: Index, same: Mask, calendar: Calendar
) -> None:
    gaps = np.flatnonzero(same & (np.diff(index) > 1))
    if not len(gaps):
        return
    listed = ", ".join(
        f"after {format_time(calendar.stamps(index[gap]))} of {_describe_series(ids, which[gap])} "
        f"({index[gap + 1] - index[gap] - 1} missing)"
        for gap in gaps[:NAMED]
    )
    more = f", and {len(gaps) - NAMED} more" if len(gaps) > NAMED else ""
    warnings.warn(
        f"times are {calendar.distance} apart, and there are gaps: {listed}{more}; what is missing "
        "is not learned, and lags bridge it",
        GapWarning,
        stacklevel=2,
    )


def _add_columns(panel: Panel, X: Any, known: Sequence[Any]) -> Panel:
    if X is None:
        return panel
    if len(panel) != 1:
        raise ValueError("X is for a single series: for several, give a frame with the columns")
    table, names = _read_columns(X, panel.length, known)
    return replace(panel, columns=table[None], names=names)


def _read_columns(X: Any, n: int, known: Sequence[Any]) -> tuple[Array, tuple[Any, ...]]:
    """Exogenous columns (n, m) of a single series, and their names."""
    if X is None:
        return np.zeros((n, 0)), ()
    names = columns_of(X)
    if names is None:
        table = _read_table(X, "X")
        names = [f"x{column}" for column in range(table.shape[1])]
    else:
        names = list(name_exogenous(X, names, known))
        table = np.column_stack([read_exogenous(X, name) for name in names])
    if len(table) != n:
        raise ValueError(f"X has {len(table)} rows and y has {n}: give one for each")
    for column, name in enumerate(names):
        check_finite(table[:, column], f"exogenous column {name!r}")
    return table, tuple(names)


def _read_future_frame(frame: Any, names: list[Any], panel: Panel, h: int) -> Array:
    lost = [one for one in panel.names if one not in names and find_level(one, names) is None]
    if lost:
        raise ValueError(
            f"X_future lacks the column {lost[0]!r}: the forecaster has learned "
            f"{list(panel.names)}, and needs each in the next {h} steps"
        )
    table = np.column_stack([read_exogenous(frame, name, " of X_future") for name in panel.names])
    if TIME not in names:
        if len(panel) > 1:
            raise ValueError(f"X_future of several series needs the columns {ID!r} and {TIME!r}")
        return table[None]
    index = panel.calendar.index(as_times(get_column(frame, TIME), panel.calendar))
    place = {name: number for number, name in enumerate(panel.ids)}
    ids = read_column(frame, ID) if ID in names else [panel.ids[0]] * len(table)
    found = np.full((len(panel), h, len(panel.names)), np.nan)
    for row, name, at in zip(table, ids, index, strict=True):
        series = place.get(name)
        if series is not None and 0 < at - panel.ends[series] <= h:
            found[series, at - panel.ends[series] - 1] = row
    return found


def _describe_series(ids: tuple[Any, ...], number: int) -> str:
    return "the series" if ids == (TARGET,) else f"series {ids[number]!r}"


def _read_table(rows: Any, name: str) -> Array:
    """Exogenous columns (n, m) that come as an array."""
    table = read_floats(rows, name)
    return table.reshape(len(table), -1)


def _read_times(frame: Any, names: list[Any], calendar: Calendar | None) -> AnyArray | None:
    """Times of a frame's rows, where it has some."""
    if TIME in names:
        return as_times(get_column(frame, TIME), calendar)
    times = _read_index_times(frame, calendar)
    # In a long frame, an unnamed index of whole numbers counts all rows.
    counts = times is not None and times.dtype.kind in "iu" and frame.index.name is None
    return None if counts and ID in names else times


def _read_index_times(data: Any, calendar: Calendar | None = None) -> AnyArray | None:
    """Times of a pandas index, where it has some."""
    index: Any = getattr(data, "index", None)
    if hasattr(index, "to_timestamp"):  # periods stand for their first moments
        index = index.to_timestamp()
    kind = getattr(getattr(index, "dtype", None), "kind", "O")
    if kind in "iu" and (calendar is None or calendar.kind == "numbers"):
        return _read_index_numbers(index)
    return as_times(index, calendar) if kind == "M" else None


def _read_index_numbers(index: Any) -> AnyArray | None:
    """Whole numbers of a pandas index; None for 0, 1, ... without a name, which pandas makes up."""
    numbers = np.asarray(index, dtype=np.int64)
    if index.name is not None:
        return numbers
    if np.array_equal(numbers, np.arange(len(numbers))):
        return None
    apart = np.diff(np.unique(numbers))
    if len(apart) and apart.sum() // np.gcd.reduce(apart) > SPARSE * len(numbers):
        raise ValueError(
            f"the {len(numbers)} rows have whole numbers from {numbers.min()} to {numbers.max()} "
            "in their index, and most between are missing: if rows follow each other, use "
            "reset_index(drop=True); if the numbers are times, name the index 'ds'"
        )
    return numbers
