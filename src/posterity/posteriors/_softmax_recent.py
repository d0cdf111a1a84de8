"""The last rows that came to a classifier of many classes, kept so that they are learned together.

A row that is learned alone is looked at around what was known before it. Row after row that is too
sure, the more so the more coefficients there are: what the rows after it tell of the same
coefficients is not used. So the last rows are kept, together with what was known before them, and
now and then they are learned again, all at once: as if they had come in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posterity.aliases import Array, Indices
from posterity.posteriors._softmax_contrasts import Contrasts
from posterity.posteriors._softmax_likelihood import Rows

# Rows that are kept, and how many new ones there are at least when all are learned again. Up to
# MOST new ones that is whenever half of all that is known are new, later when this share of it is.
SIZE, FEWEST, MOST, SHARE = 200, 4, 50, 0.125


@dataclass
class RecentRows:
    """Rows since ``base``; no array of it is changed in place.

    Parameters
    ----------
    base
        What was known before these rows.
    first
        Whether that is nothing.
    X, labels, weights
        Rows (n, p) with the intercept's 1, labels (n,) from 0, weights (n,) that fade.
    fresh
        How many of them were only learned one by one so far.
    averaged
        Whether they are learned by averages, or at the mode.
    """

    base: Contrasts
    first: bool
    X: Array
    labels: Indices
    weights: Array
    fresh: int
    averaged: bool

    @classmethod
    def after(cls, base: Contrasts, n_columns: int, *, first: bool) -> RecentRows:
        """No rows so far."""
        labels = np.zeros(0, dtype=np.intp)
        return cls(base, first, np.zeros((0, n_columns)), labels, np.zeros(0), 0, True)

    def with_rows(self, rows: Rows, *, averaged: bool) -> RecentRows:
        """With some more rows."""
        return replace(
            self,
            X=np.concatenate([self.X, rows.X]),
            labels=np.concatenate([self.labels, rows.labels]),
            weights=np.concatenate([self.weights, rows.weights]),
            fresh=self.fresh + len(rows.X),
            averaged=averaged,
        )

    def faded(self, x: Array, elapsed: float) -> RecentRows:
        """The same, counting for less, as so much time passes before a row ``x`` (1, p)."""
        base, discounts = self.base.copy(), self.base.memory.discounts(np.array([elapsed]))
        base.pass_time(x, elapsed)
        return replace(self, base=base, weights=discounts * self.weights)

    @property
    def rows(self) -> Rows:
        """All of them."""
        return Rows(self.X, self.labels, self.weights)

    @property
    def full(self) -> bool:
        """True if there is no room for another row."""
        return len(self.X) >= SIZE

    @property
    def due(self) -> bool:
        """True if all of the rows are to be learned again."""
        return self.fresh > 0 and self._count_rows_until_due(0) == 0

    @property
    def before_due(self) -> int:
        """The number of single rows that may come before all are to be learned again."""
        return self._count_rows_until_due(1) - 1

    def _count_rows_until_due(self, least: int) -> int:
        """Count the rows, at least ``least``, after which all are to be learned again."""
        size, fresh, base = len(self.X), self.fresh, self.base.n_effective
        known, more, most = base + size, least, max(MOST, SHARE * base)
        while size + more < SIZE and fresh + more < min(most, max(FEWEST, (known + more) // 2)):
            more += 1
        return more
