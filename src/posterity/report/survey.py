"""What may be wrong with a table, seen while it streams by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

FAR = 20.0  # standard deviations
ALIKE = 0.9999
SHOWN = 8


class Survey:
    """Passes batches ``(X, y)`` on, and keeps sums over each column: memory for a few per column.

    Parameters
    ----------
    stream : iterable of (X, y) or (X, y, sample_weight)
        Arrays (n, p), (n,) and (n,).

    Examples
    --------
    >>> survey = Survey([(np.ones((3, 1)), np.arange(3.0))])
    >>> for X, y in survey:
    ...     pass
    >>> survey.problems(["rain"], "fare")
    ["1 feature never changes, and says nothing: 'rain'"]
    """

    def __init__(self, stream: Iterable[tuple[Any, ...]]) -> None:
        self._stream = stream
        self.n_rows = 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self.n_rows = 0
        for batch in self._stream:
            if len(batch[1]):
                self._see(np.column_stack(batch[:2]))
            yield batch

    def _see(self, table: FloatArray) -> None:
        if self.n_rows == 0:
            self._origin = table.mean(axis=0)
            self._low, self._high = table.min(axis=0), table.max(axis=0)
            self._ends = {side: _End(side, table.shape[1]) for side in (-1.0, 1.0)}
            self._sum = np.zeros(table.shape[1])
            self._squares, self._with_y = self._sum.copy(), self._sum.copy()
        self._low = np.minimum(self._low, table.min(axis=0))
        self._high = np.maximum(self._high, table.max(axis=0))
        for end in self._ends.values():
            end.see(table, self.n_rows)
        centred = table - self._origin
        with np.errstate(over="ignore", invalid="ignore"):
            self._sum += centred.sum(axis=0)
            self._squares += np.einsum("ij,ij->j", centred, centred)
            self._with_y += np.einsum("i,ij->j", centred[:, -1], centred)
        self.n_rows += len(table)

    @property
    def n_rows_read(self) -> int:
        """Rows of the table so far, where the stream is one."""
        return int(getattr(self._stream, "n_rows_read", 0))

    @property
    def fraction(self) -> float:
        """Share of the table read so far, where the stream is one."""
        return float(getattr(self._stream, "fraction", 0.0))

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of each feature (p,)."""
        return self._spreads()[:-1]

    def _spreads(self) -> FloatArray:
        mean = self._sum / self.n_rows
        with np.errstate(over="ignore", invalid="ignore"):
            return np.sqrt(np.maximum(self._squares / self.n_rows - mean**2, 0.0))

    def problems(self, features: Sequence[str], target: str) -> list[str]:
        """What should be looked at, in words."""
        if self.n_rows < 2:
            return []
        found = []
        constant = self._low == self._high
        if constant[-1]:
            found.append(f"the target {target!r} never changes")
        if constant[:-1].any():
            which = _listed(features, np.flatnonzero(constant[:-1]))
            count = int(constant[:-1].sum())
            found.append(f"{_never(count)}: {which}")
        return found + self.suspicions(features, target)

    def suspicions(self, features: Sequence[str], target: str) -> list[str]:
        """Values that may be slips, and features that may tell the target, in words."""
        if self.n_rows < 2:
            return []
        return [*self._far(features, target), *self._leaks(features, target)]

    def _far(self, features: Sequence[str], target: str) -> Iterator[str]:
        """Values so far out that they may be slips, and that lead a linear model."""
        spread, mean = self._spreads(), self._origin + self._sum / self.n_rows
        names = [*features, target]
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.maximum(self._high - mean, mean - self._low) / spread
        # One among n zeros lies sqrt(n) out: a rare event, not a slip.
        for k in np.flatnonzero(out > FAR)[:SHOWN]:
            high = self._high[k] - mean[k] > mean[k] - self._low[k]
            end = self._ends[1.0 if high else -1.0]
            if not (self._low[k] == 0.0 and self._high[k] == 1.0):
                others = f"all others are {'at most' if high else 'at least'} {end.second(k):.6g}"
                yield (
                    f"row {end.row[k]:,} has {names[k]!r} = {end.value(k):.6g}, {out[k]:.0f} "
                    f"standard deviations from its mean {mean[k]:.4g}; {others}: is it a slip?"
                )

    def _leaks(self, features: Sequence[str], target: str) -> Iterator[str]:
        """Features that are the target in disguise."""
        mean, spread = self._sum / self.n_rows, self._spreads()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            covariance = self._with_y / self.n_rows - mean * mean[-1]
            correlation = covariance / (spread * spread[-1])
        for k in np.flatnonzero(np.abs(correlation[:-1]) > ALIKE)[:SHOWN]:
            yield (
                f"{features[k]!r} is almost {target!r} itself (correlation "
                f"{correlation[k]:.5f}): is it known before the target is?"
            )


class _End:
    """The value farthest out of each column on one side, its row (from 0), and the next."""

    def __init__(self, side: float, n: int) -> None:
        self._side, self.row = side, np.zeros(n, dtype=np.int64)
        self._two = np.full((2, n), -np.inf)

    def see(self, table: FloatArray, first_row: int) -> None:
        signed = self._side * table
        columns, rows = np.arange(table.shape[1]), signed.argmax(axis=0)
        most = signed[rows, columns]
        signed[rows, columns] = -np.inf
        self.row = np.where(most > self._two[0], first_row + rows, self.row)
        all_four = np.stack([*self._two, most, signed.max(axis=0)])
        self._two = np.sort(all_four, axis=0)[:1:-1]

    def value(self, k: int) -> float:
        return float(self._side * self._two[0, k])

    def second(self, k: int) -> float:
        return float(self._side * self._two[1, k])


def _never(count: int) -> str:
    if count == 1:
        return "1 feature never changes, and says nothing"
    return f"{count} features never change, and say nothing"


def _listed(names: Sequence[Any], which: NDArray[np.intp]) -> str:
    said = ", ".join(repr(str(names[k])) for k in which[:SHOWN])
    return f"{said}, ..." if len(which) > SHOWN else said
