"""A table on disk as a stream of columns: text stays text, and any row may bring a new level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from posterity.aliases import Mask
from posterity.io.arrow import pa
from posterity.io.columns import require, select_columns
from posterity.io.conversions import MISSING
from posterity.io.errors import TableError
from posterity.io.missing import LEAVE_OUT, LEVEL
from posterity.io.reading import ReadSettings, Rows
from posterity.io.source import Source
from posterity.io.table import TableStream, open_any
from posterity.io.targets import Target, TargetRows
from posterity.io.text_format import TextFormat

Holes = Literal["error", "skip", "level"]


class WideStream(TableStream):
    """Batches of a table whose X is an Arrow record batch of the columns, as they are.

    Missing values raise, leave their row out ("skip"), or are a level of their own in columns that
    are not numbers ("level").
    """

    def __init__(
        self,
        source: Source,
        target: Target,
        columns: Sequence[str],
        reading: ReadSettings,
        since: float | None = None,
    ) -> None:
        missing: Any = reading.missing
        if missing not in get_args(Holes):
            raise TableError(
                "the mean of earlier rows is not for models of many features", [LEAVE_OUT, LEVEL]
            )
        self._columns, self._shown, self._holes = tuple(columns), reading.keep, missing
        kept = tuple(dict.fromkeys([*columns, *reading.keep]))
        # Of the target alone; of the columns the stream itself takes care.
        policy: Any = "skip" if missing == "skip" else "error"
        bare = replace(reading, missing=policy, keep=kept)
        super().__init__(source, target, (), bare, since=since)

    def _restart(self) -> None:
        super()._restart()
        self._n_dropped = 0
        self.n_missing, self.n_left_out = Counter(), Counter()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of X."""
        return self._columns

    @property
    def used_columns(self) -> tuple[str, ...]:
        """The same."""
        return self._columns

    @property
    def n_skipped(self) -> int:
        """Rows left out because a value was missing."""
        return super().n_skipped + self._n_dropped

    def batches(self) -> Iterator[Rows]:
        """Batches with names for their parts."""
        for rows in super().batches():
            others = rows.other_columns.select(list(self._shown)) if self._shown else None
            yield rows._replace(
                X=rows.other_columns.select(list(self._columns)), other_columns=others
            )

    def _usable(self, rows: Rows, past: int) -> Rows:
        holes = {name: holes for name in self._columns if (holes := self._find(rows, name)).any()}
        self.n_missing.update({name: int(found.sum()) for name, found in holes.items()})
        if self._holes == "level":
            rows = rows._replace(other_columns=_with_level(rows.other_columns, holes))
            holes = {name: found for name in holes if (found := self._find(rows, name)).any()}
        if holes and self._holes != "skip":
            name = min(holes, key=lambda one: int(np.argmax(holes[one])))
            place = self._cell(int(np.argmax(holes[name])), name)
            raise TableError(f"{place} is missing", [LEAVE_OUT, LEVEL], before="; ")
        if holes:
            self.n_left_out.update({name: int(found.sum()) for name, found in holes.items()})
            kept = ~np.any(list(holes.values()), axis=0)
            self._n_dropped += int(np.sum(~kept))
            rows = rows.select(kept)
        return super()._usable(rows, past)

    def _find(self, rows: Rows, name: str) -> Mask:
        """Return True where a value is missing."""
        column = rows.other_columns.column(name)
        return np.asarray(column.is_null(nan_is_null=True))


def open_wide(
    path: Any,
    target: Target | None,
    reading: ReadSettings,
    *,
    columns: tuple[Sequence[str] | None, Sequence[str]] = (None, ()),
    since: float | None = None,
    text: TextFormat | None = None,
) -> WideStream:
    """Open a table as rows of ``columns``, those to use and those to drop.

    Without a target, y are the numbers of the rows. Raises :class:`TableError` as
    :func:`open_table`.
    """
    source = open_any(path, text)
    goal = target or TargetRows()
    goal.check(source)
    use, drop = columns
    if goal.columns:
        use = select_columns(source, goal.columns, use, drop, reading.other_columns)
    chosen = list(use or ())
    require(chosen, list(source.schema.names), "feature")
    return WideStream(source, goal, chosen, reading, since)


def _with_level(batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
    """The batch, in which missing text of these columns is a level."""
    import pyarrow.compute as pc

    for name in names:
        place = batch.schema.get_field_index(name)
        column = batch.column(place)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            batch = batch.set_column(place, name, pc.fill_null(column, MISSING))
    return batch
