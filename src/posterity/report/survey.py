"""Survey of a table, while it streams by, for likely mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from posterity.aliases import Array, Indices

OUTLIER_SDS = 20.0  # standard deviations
DUPLICATE_CORRELATION = 0.9999
MOST_SHOWN = 8


class ColumnSummaries:
    """Passes batches ``(X, y)`` on, and keeps sums over each column.

    Parameters
    ----------
    stream : iterable of (X, y) or (X, y, sample_weight)
        Arrays (n, p), (n,) and (n,); of lifetimes y (n, 2) the lower end is looked at.

    Examples
    --------
    >>> survey = ColumnSummaries([(np.ones((3, 1)), np.arange(3.0))])
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
                self._survey_batch(*batch[:2])
            yield batch

    def _survey_batch(self, X: Array, y: Array) -> None:
        columns = np.empty((X.shape[1] + 1, len(y)))
        columns[:-1], columns[-1] = np.asarray(X).T, y.reshape(len(y), -1)[:, 0]
        if self.n_rows == 0:
            self._origin = columns.mean(axis=1)
            self._sum = np.zeros(len(columns))
            self._squares, self._with_y = self._sum.copy(), self._sum.copy()
            self._top, self._bottom = _End(1.0, len(columns)), _End(-1.0, len(columns))
        self._top.update(columns, self.n_rows)
        self._bottom.update(columns, self.n_rows)
        columns -= self._origin[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            self._sum += columns.sum(axis=1)
            self._squares += np.einsum("ij,ij->i", columns, columns)
            self._with_y += np.einsum("j,ij->i", columns[-1], columns)
        self.n_rows += len(y)

    @property
    def n_rows_read(self) -> int:
        """Rows of the table so far, where the stream is one."""
        return int(getattr(self._stream, "n_rows_read", 0))

    @property
    def fraction(self) -> float:
        """Share of the table read so far, where the stream is one."""
        return float(getattr(self._stream, "fraction", 0.0))

    @property
    def spread(self) -> Array:
        """Standard deviation of each feature (p,)."""
        return self._compute_spreads()[:-1]

    def _compute_spreads(self) -> Array:
        mean = self._sum / self.n_rows
        with np.errstate(over="ignore", invalid="ignore"):
            return np.sqrt(np.maximum(self._squares / self.n_rows - mean**2, 0.0))

    def problems(self, features: Sequence[str], target: str) -> list[str]:
        """Problems to look at, in words."""
        if self.n_rows < 2:
            return []
        found = []
        constant = self._bottom.values == self._top.values
        if constant[-1]:
            found.append(f"the target {target!r} never changes")
        if constant[:-1].any():
            which = _join_names(features, np.flatnonzero(constant[:-1]))
            count = int(constant[:-1].sum())
            found.append(f"{_describe_constant_features(count)}: {which}")
        return found + self.possible_slips(features, target)

    def possible_slips(self, features: Sequence[str], target: str) -> list[str]:
        """Describe values that may be slips, and features that may determine the target."""
        if self.n_rows < 2:
            return []
        return [*self._find_far_values(features, target), *self._find_leaks(features, target)]

    def _find_far_values(self, features: Sequence[str], target: str) -> Iterator[str]:
        """Values so far out that they may be slips, and that lead a linear model."""
        spread, mean = self._compute_spreads(), self._origin + self._sum / self.n_rows
        names = [*features, target]
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.maximum(self._top.values - mean, mean - self._bottom.values) / spread
        # One among n zeros lies sqrt(n) out: a rare event, not a slip.
        for k in np.flatnonzero(out > OUTLIER_SDS)[:MOST_SHOWN]:
            low, high = self._bottom.values[k], self._top.values[k]
            above = high - mean[k] > mean[k] - low
            end = self._top if above else self._bottom
            if not (low == 0.0 and high == 1.0):
                others = f"all others are {'at most' if above else 'at least'} {end.seconds[k]:.6g}"
                yield (
                    f"row {end.row[k]:,} has {names[k]!r} = {end.values[k]:.6g}, {out[k]:.0f} "
                    f"standard deviations from its mean {mean[k]:.4g}; {others}: is it a slip?"
                )

    def _find_leaks(self, features: Sequence[str], target: str) -> Iterator[str]:
        """Features that are the target in disguise."""
        if self._bottom.values[-1] == self._top.values[-1]:
            return  # no feature explains a target that never changes
        mean, spread = self._sum / self.n_rows, self._compute_spreads()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            covariance = self._with_y / self.n_rows - mean * mean[-1]
            correlation = covariance / (spread * spread[-1])
        for k in np.flatnonzero(np.abs(correlation[:-1]) > DUPLICATE_CORRELATION)[:MOST_SHOWN]:
            yield (
                f"{features[k]!r} is almost {target!r} itself (correlation "
                f"{correlation[k]:.5f}): is it known before the target is?"
            )


class _End:
    """The value farthest out of each column on one side, its row (from 0), and the next."""

    def __init__(self, side: float, n: int) -> None:
        self._side, self.row = side, np.zeros(n, dtype=np.int64)
        self._two_largest = np.full((2, n), -np.inf)

    def update(self, columns: Array, first_row: int) -> None:
        """Add rows (p, n), column by column."""
        rows = (columns.argmax if self._side > 0.0 else columns.argmin)(axis=1)
        most = self._side * columns[np.arange(len(columns)), rows]
        # In a long stream most batches have nothing that is farther out.
        for k in np.flatnonzero(most > self._two_largest[1]):
            if most[k] > self._two_largest[0, k]:
                self.row[k] = first_row + rows[k]
            others = self._side * np.delete(columns[k], rows[k])
            ranked = np.sort([*self._two_largest[:, k], most[k], others.max(initial=-np.inf)])
            self._two_largest[:, k] = ranked[:-3:-1]

    @property
    def values(self) -> Array:
        """Farthest out (p,)."""
        return self._side * self._two_largest[0]

    @property
    def seconds(self) -> Array:
        """The next (p,)."""
        return self._side * self._two_largest[1]


def _describe_constant_features(count: int) -> str:
    if count == 1:
        return "1 feature never changes, and says nothing"
    return f"{count} features never change, and say nothing"


def _join_names(names: Sequence[Any], which: Indices) -> str:
    listed = ", ".join(repr(str(names[k])) for k in which[:MOST_SHOWN])
    return f"{listed}, ..." if len(which) > MOST_SHOWN else listed
