"""Rows with few active features, of numbers that start from 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Indices, Mask

Numbers = NDArray[np.int32]
# Feature, column and value of what is active in one row, by feature.
Entry = tuple[int, int, float]
Row = list[Entry]


@dataclass(frozen=True)
class SparseRows:
    """Active features of n rows, numbered from 1 on, -1 where one is not known.

    Those of row i stand at ``starts[i]`` up to ``starts[i + 1]``, each once, with their columns and
    ``values``. ``columns`` None: all are of column 1.
    """

    starts: NDArray[np.int64]
    features: Numbers
    columns: Numbers | None
    values: Array

    @classmethod
    def of_one(cls, row: Row) -> SparseRows:
        """One row."""
        features, columns, values = zip(*row, strict=True) if row else ((), (), ())
        return cls(
            np.array([0, len(row)], dtype=np.int64),
            np.array(features, dtype=np.int32),
            np.array(columns, dtype=np.int32),
            np.array(values, dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def parts(self) -> tuple[NDArray[np.int64], Numbers, Numbers | None, Array]:
        """The arrays, as the kernel takes them."""
        return self.starts, self.features, self.columns, self.values

    @property
    def row_numbers(self) -> Indices:
        """The row of each active feature."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def select(self, start: int, stop: int) -> SparseRows:
        """Rows from ``start`` up to ``stop``."""
        if (start, stop) == (0, len(self)):
            return self
        some = slice(self.starts[start], self.starts[stop])
        columns = None if self.columns is None else self.columns[some]
        starts = self.starts[start : stop + 1] - self.starts[start]
        return SparseRows(starts, self.features[some], columns, self.values[some])

    def drop_zeros(self) -> SparseRows:
        """The rows without features of value 0, which are not active."""
        return self if self.values.all() else self.keep_entries(self.values != 0.0)

    def keep_entries(self, kept: Mask) -> SparseRows:
        """The rows with those of their features alone that are ``kept``."""
        before = np.concatenate([[0], np.cumsum(kept)])
        columns = None if self.columns is None else self.columns[kept]
        return SparseRows(before[self.starts], self.features[kept], columns, self.values[kept])

    def add_intercept(self) -> SparseRows:
        """The rows with feature 0 active in each, before the others."""
        first, starts = self.starts[:-1], self.starts + np.arange(len(self.starts))
        columns = None if self.columns is None else np.insert(self.columns, first, 0)
        values, features = np.insert(self.values, first, 1.0), np.insert(self.features, first, 0)
        return SparseRows(starts, features, columns, values)


@dataclass(frozen=True)
class Observations:
    """Rows to learn, with their targets (n,), and what is known of each row, (n,) or None.

    ``weights`` None: ones. ``discounts``: what is left of all earlier rows at each. ``offsets``:
    what is added to eta.
    """

    rows: SparseRows
    y: Array
    weights: Array | None = None
    discounts: Array | None = None
    offsets: Array | None = None

    def __len__(self) -> int:
        return len(self.y)

    def select(self, start: int, stop: int) -> Observations:
        """Rows from ``start`` up to ``stop``."""
        some = slice(start, stop)
        beside = self.weights, self.discounts, self.offsets
        parts = (None if one is None else one[some] for one in beside)
        return Observations(self.rows.select(start, stop), self.y[some], *parts)

    @property
    def own_weights(self) -> Array:
        """(n,) the weights."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def own_offsets(self) -> Array:
        """(n,) the offsets."""
        return np.zeros(len(self)) if self.offsets is None else self.offsets

    @property
    def left(self) -> tuple[float, Array]:
        """What is left, after all rows, of all that was known before, and of their weights (n,)."""
        if self.discounts is None or not len(self):
            return 1.0, self.own_weights
        left = np.append(np.cumprod(self.discounts[::-1])[::-1], 1.0)
        return float(left[0]), self.own_weights * left[1:]


__all__ = ["Entry", "Observations", "Row", "SparseRows"]
