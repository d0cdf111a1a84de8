"""The first rows of a stream, kept until there are enough of them to be met near the truth.

A row that comes alone is met around what was known before it, once. The first ones are met around
the prior, where little says how steep the line is: labels that a line nearly separates then keep
it too flat, with intervals that are far too narrow. So the first rows are kept, and fitted together
again whenever half as many more have come, as if they had come at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from posterity.factor.rows import SiteRows
from posterity.posteriors.gaussian import explain_never_learned

# Rows that are kept: at least this many, and this many a coefficient; none in models with more
# coefficients, as fitting these again would take long.
ROWS, ROWS_A_COEFFICIENT, MOST_COEFFICIENTS = 64, 4, 256
# More are kept while the mean variance of their linear predictors is above this, as with rare
# labels, where sixty rows say little; but never more rows, or more values, than these.
LARGEST_MEAN_VARIANCE, MOST_ROWS, MOST_VALUES = 0.3, 4096, 2**17


@dataclass(frozen=True)
class StartRows:
    """Rows as they came: features (n, m), targets, weights > 0 and offsets (n,).

    They are fitted together again once there are ``due`` of them: those of a stream once directions
    that are still open are ``closed``, those of a fit as they were.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64]
    offsets: NDArray[np.float64]
    due: int
    closed: bool = True

    @classmethod
    def of(cls, rows: SiteRows, *, closed: bool = True) -> StartRows:
        """The first rows, which were learned together."""
        some = rows[rows.weights > 0.0]
        return cls(some.X, some.y, some.weights, some.offsets, _make_room(len(some)), closed)

    def join(self, rows: SiteRows) -> StartRows:
        """Return these rows and more."""
        some = rows[rows.weights > 0.0]
        return StartRows(
            np.concatenate([self.X, some.X]),
            np.concatenate([self.y, some.y]),
            np.concatenate([self.weights, some.weights]),
            np.concatenate([self.offsets, some.offsets]),
            self.due,
            self.closed,
        )

    def with_row(self, x: NDArray[np.float64], y: float, weight: float) -> StartRows:
        """Return these rows and another: features (m,), target and weight, without an offset."""
        return StartRows(
            np.concatenate([self.X, x[None]]),
            np.append(self.y, y),
            np.append(self.weights, weight),
            np.append(self.offsets, 0.0),
            self.due,
            self.closed,
        )

    def without(self, rows: SiteRows) -> StartRows:
        """Return these rows less others among them; raises ``ValueError`` if one is not."""
        weights = self.weights.copy()
        for i in range(len(rows)):
            same = (rows.X[i] == self.X).all(axis=1) & (rows.y[i] == self.y)
            same &= rows.offsets[i] == self.offsets
            there = np.flatnonzero(same & (weights >= (1.0 - 1e-12) * rows.weights[i]))
            if not len(there):
                raise ValueError(explain_never_learned(f"row {i}"))
            weights[there[-1]] -= rows.weights[i]
        some = weights > 1e-12 * self.weights
        return replace(
            self,
            X=self.X[some],
            y=self.y[some],
            weights=weights[some],
            offsets=self.offsets[some],
        )

    def fitted(self) -> StartRows:
        """The same, once they were fitted together."""
        return replace(self, due=_make_room(len(self)))

    def count_missing(self) -> int:
        """Return the number of rows still to come before all are fitted together again."""
        return self.due - len(self)

    def is_enough(self, variance: NDArray[np.float64], sure: float = LARGEST_MEAN_VARIANCE) -> bool:
        """Return True if rows whose linear predictors have these variances (n,) are enough."""
        n, p = self.X.shape
        full = n >= min(MOST_ROWS, MOST_VALUES // (p + 1))
        return n >= self.n_enough and (full or float(np.mean(variance)) <= sure)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_enough(self) -> int:
        """The smallest number of rows that are kept."""
        return max(ROWS, ROWS_A_COEFFICIENT * (self.X.shape[1] + 1))

    @property
    def rows(self) -> SiteRows:
        """All of the rows, as of one time."""
        return SiteRows(self.X, self.y, self.weights, np.zeros(len(self)), self.offsets)


def _make_room(n: int) -> int:
    return n + max(1, n // 2)


def count_rows_until(weights: NDArray[np.float64], left: int) -> int:
    """Count the rows up to and including the ``left``-th of positive weight."""
    counted = np.cumsum(weights > 0.0)
    return min(int(np.searchsorted(counted, max(left, 1))) + 1, len(weights))
