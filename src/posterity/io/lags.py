"""Lagged targets as features of a row."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from posterity.aliases import Array
from posterity.io.arrow import pa
from posterity.io.conversions import as_floats
from posterity.io.encoders import Encoder

_NAME = re.compile(r"(.+)\.lag([1-9]\d*)", re.DOTALL)


@dataclass(frozen=True)
class Lag(Encoder):
    """The value of a column ``rows`` rows before; NaN where there is no such row, or no value.

    Batches must come in the order of the stream; `begin` goes back to its start.
    """

    column: str
    rows: int
    _past: list[Array] = field(default_factory=list, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """``column.lag24`` for 24 rows."""
        return (f"{self.column}.lag{self.rows}",)

    @property
    def n_before(self) -> int:
        """Number of earlier rows that it looks at."""
        return self.rows

    def begin(self) -> None:
        """Start without earlier rows."""
        self._past[:] = [np.full(self.rows, np.nan)]

    def fill(self, values: pa.Array, out: Array) -> None:
        """Write what came before, and keep the end for the next batch."""
        if not self._past:
            self.begin()
        whole = np.concatenate([self._past[0], as_floats(values)])
        out[:, 0] = whole[: len(out)]
        self._past[:] = [whole[len(out) :]]


def check_lags(lags: Sequence[int]) -> tuple[int, ...]:
    """The lags, each once; raises ``ValueError`` for what is no number of rows."""
    for rows in lags:
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
            raise ValueError(f"lags must be whole numbers of rows from 1 up, got {rows!r}")
    return tuple(dict.fromkeys(map(int, lags)))


def find_lag(name: str, present: Collection[str]) -> Lag | None:
    """The lag that a feature's name stands for, where there is such a column.

    Examples
    --------
    >>> find_lag("load.lag24", ["load"])
    Lag(column='load', rows=24)
    """
    found = _NAME.fullmatch(name)
    return Lag(found[1], int(found[2])) if found and found[1] in present else None
