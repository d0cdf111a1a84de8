"""Rows that come later than those of a panel: many at once, or one by one of single series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.aliases import Array
from posterity.forecasting import reading
from posterity.forecasting.levels import expand_row
from posterity.forecasting.names import have_same_terms
from posterity.forecasting.panel import Panel, convert_to_values
from posterity.kernel.values import read_floats

# Most series that a message names.
NAMED = 5


def read_following_rows(history: Panel, y: Any, X: Any) -> Panel:
    """New rows, as users give them, on the grid of those that are known."""
    timed = reading.has_times(y, history.calendar)
    panel = reading.read(y, X, history.calendar if timed else None, history.names)
    if timed:
        return replace(panel, ids=history.ids) if history.single and panel.single else panel
    if history.single and panel.single:
        return replace(panel, ids=history.ids, ends=history.ends + panel.length)
    before = dict(zip(history.ids, history.ends, strict=True))
    new = [name for name in panel.ids if name not in before]
    if new and history.calendar.kind != "numbers":
        raise ValueError(
            f"series {new[0]!r} is new, and its rows have no times: give a frame with "
            "unique_id, ds and y, because the known series have times"
        )
    # Rows without times follow the last one of their series.
    first = np.array([before.get(name, -1) + 1 for name in panel.ids])
    return replace(panel, ends=first + panel.ends, calendar=history.calendar)


def append_rows(history: Panel, y: Any, X: Any) -> Panel:
    """The panel with new rows, as many of each series that is known, and no more of new ones."""
    whole = history.append(read_following_rows(history, y, X))
    rows = whole.length - history.length
    new = np.array([name not in history.ids for name in whole.ids])
    begins = np.where(new, whole.lengths <= rows, count_new(history, whole) == rows)
    if not begins.all():
        raise ValueError(
            "forecast_then_learn needs the same number of new rows for each series, "
            "starting right after its last row, and no more of a new series; use "
            "partial_fit for others"
        )
    return whole


def read_next_row(
    panel: Panel,
    recent: Panel | None,
    name: Any,
    y: float,
    x: ArrayLike | Mapping[str, float] | None,
) -> Panel:
    """The row after the last one of a series: ``y`` and its exogenous columns ``x``.

    These are an array (m,), or a mapping of their names.

    Raises ``ValueError`` for a name that is not known, and numbers that are none.
    """
    if name is None and len(panel) == 1:
        name = panel.ids[0]
    if name is None:
        raise ValueError(
            f"series is missing: name the one of the {len(panel)} that the value belongs to"
        )
    end = int(panel.ends[find_number(panel, name)])
    if recent is not None and name in recent.ids:
        end = int(recent.ends[recent.ids.index(name)])
    names, columns = _read_columns(x, panel.names)
    known = have_same_terms(names, panel.names) and columns.shape == (len(names),)
    if not (known and np.isfinite(columns).all()):
        raise ValueError(
            f"x is {x!r}: it must have a finite number for each of the exogenous columns "
            f"{list(panel.names)}"
        )
    return replace(
        panel,
        ids=(name,),
        values=convert_to_values([y], panel.describe_series(name))[None],
        ends=np.array([end + 1]),
        columns=columns[None, None],
        names=names,
    )


def _read_columns(x: Any, names: tuple[Any, ...]) -> tuple[tuple[Any, ...], Array]:
    """Names and values of the exogenous columns of one row: also of a level that is new."""
    if isinstance(x, Mapping):
        row = dict.fromkeys(names, np.nan) | expand_row(x, names)
        names, x = tuple(row), list(row.values())
    return names, np.zeros(0) if x is None else read_floats(x, "x").reshape(-1)


def select_series(panel: Panel, recent: Panel | None, names: Sequence[Any]) -> Panel:
    """Select some series, with all their values, from the panel of all."""
    names = [names] if isinstance(names, str) else names
    if not len(names):
        raise ValueError("series is empty: name the series to forecast, or leave it out for all")
    some = panel.part(np.unique([find_number(panel, name) for name in names]))
    if recent is None:
        return some
    late = np.array([k for k, name in enumerate(recent.ids) if name in some.ids], dtype=np.int64)
    if len(late):
        some = some.append(recent.part(late))
    before = panel.part(np.array([find_number(panel, name) for name in recent.ids])).lengths
    return some.pad_to_length(max(panel.length, int((before + recent.lengths).max())))


def find_number(panel: Panel, name: Any) -> int:
    """Return the number of the series with this name; raises ``ValueError`` if there is none."""
    if name in panel.ids:
        return panel.ids.index(name)
    listed = ", ".join(repr(one) for one in panel.ids[:NAMED])
    raise ValueError(
        f"series {name!r} is unknown: the series are {listed}"
        f"{', ...' if len(panel) > NAMED else ''}; partial_fit learns new ones"
    )


def count_new(panel: Panel, whole: Panel) -> NDArray[np.int64]:
    """(S,) steps from the ends of series in a panel to those in ``whole``; 0 of new series."""
    end_of = dict(zip(panel.ids, panel.ends, strict=True))
    ends = zip(whole.ids, whole.ends, strict=True)
    return np.array([end - end_of.get(name, end) for name, end in ends])


def align_to_calendar(panel: Panel, reference: Panel) -> Panel:
    """The rows of a panel on the grid of another."""
    begun = np.arange(panel.length) >= panel.length - panel.lengths[:, None]
    which, column = np.nonzero(begun)
    back = panel.length - 1 - column
    index = reference.calendar.index(panel.calendar.times(panel.ends[which] - back))
    rows = np.concatenate([panel.values[:, :, None], panel.columns], axis=2)[begun]
    aligned = Panel.of_rows(panel.ids, which, index, rows, reference.calendar, panel.names)
    return replace(aligned, single=panel.single)
