"""The container of rows to learn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from posterity.aliases import AnyArray, Array


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn; nobody writes into their arrays.

    ``X`` (n, m), targets ``y`` (n, k) or (n,), weights (n,) or None for ones, the time before each
    row (n,), what is added to its eta (n,) or None for nothing, and whether a 1 comes before each
    x. What nobody asks for may be left out.

    Examples
    --------
    >>> rows = Rows(np.arange(6.0).reshape(6, 1), np.zeros(6), elapsed=np.ones(6))
    >>> len(rows[2:]), rows.total, rows.thin(3).weights
    (4, 6.0, array([3., 3.]))
    """

    X: Array
    y: Array
    weights: Array | None = None
    elapsed: Array = field(default_factory=lambda: np.empty(0))
    offsets: Array | None = None
    intercept: bool = False

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, part: slice | AnyArray) -> Self:
        return replace(
            self,
            X=self.X[part],
            y=self.y[part],
            weights=None if self.weights is None else self.weights[part],
            elapsed=self.elapsed[part] if len(self.elapsed) else self.elapsed,
            offsets=None if self.offsets is None else self.offsets[part],
        )

    def thin(self, share: int) -> Self:
        """Return every ``share``-th row, each with the weight of all that it stands for."""
        few = self[::share]
        return replace(
            few,
            X=np.ascontiguousarray(few.X),
            y=np.ascontiguousarray(few.y),
            weights=np.full(len(few), float(share)) if few.weights is None else share * few.weights,
            elapsed=np.ascontiguousarray(few.elapsed),
            offsets=None if few.offsets is None else np.ascontiguousarray(few.offsets),
        )

    @property
    def first(self) -> int:
        """The first row of positive weight."""
        return 0 if self.weights is None else int(np.argmax(self.weights > 0.0))

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(len(self)) if self.weights is None else float(np.sum(self.weights))


def as_columns(y: Array) -> Array:
    """Targets (n,) or (n, k) as (n, 1) or (n, k)."""
    return y[:, None] if y.ndim == 1 else y


def as_targets(y: Array) -> Array:
    """The reverse, contiguous: (n, 1) as (n,)."""
    return np.ascontiguousarray(y[:, 0] if y.shape[1] == 1 else y)


@dataclass(frozen=True, eq=False)
class SiteRows(Rows):
    """The same of one target, (n,) or (n, k), with all that sites need: nothing is left out."""

    weights: Array = field()
    elapsed: Array = field()
    offsets: Array = field()

    @cached_property
    def spread(self) -> Array:
        """Standard deviations (m,) of the features."""
        return np.asarray(self.X.std(axis=0))

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """Least and largest value (m,) of each feature, of one row or more."""
        m, many = self.X.shape[1], len(self.X) // 64 * 64
        side_by_side = self.X[:many].reshape(64, -1)  # NumPy goes through long rows much faster
        some = side_by_side.min(axis=0), side_by_side.max(axis=0)
        low, high = (np.concatenate([one.reshape(-1, m), self.X[many:]]) for one in some)
        return low.min(axis=0), high.max(axis=0)

    def measure_reach(self, *, intercept: bool) -> Array:
        """Largest distances (m,) of the features from 0; beside an intercept from their means."""
        if not len(self):
            return np.zeros(self.X.shape[1])
        middle = np.full(len(self), 1.0 / len(self)) @ self.X if intercept else 0.0
        low, high = self.ends
        return np.asarray(np.maximum(high - middle, middle - low))
