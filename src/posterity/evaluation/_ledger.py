"""Sums along a stream of any length in constant memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Mask


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Sum and its rounding error: a + b == total + error exactly (Knuth 1969; Moller 1965)."""
    total = a + b
    b_seen = total - a
    error = (a - (total - b_seen)) + (b - b_seen)
    # An infinite total has no rounding error to speak of; inf - inf must not poison it.
    return total, np.where(np.isfinite(error), error, 0.0)


class StretchLedger:
    """Column sums over at most `capacity` stretches of the stream, all of one length.

    A stretch starts as one row. When a batch would need more than `capacity` stretches, neighbours
    are merged in pairs and the length doubles: memory is constant, the borders are exact whatever
    the batches were, and a long stream is described by between capacity/2 and capacity stretches.

    Sums are kept as unevaluated pairs (total + carry), so 1e9 rows lose no more digits than one
    batch does.
    """

    def __init__(self, n_columns: int, capacity: int = 128, n_maxima: int = 0) -> None:
        if capacity % 2:
            raise ValueError("capacity must be even, because stretches are merged in pairs")
        self._capacity = capacity
        self._total = np.zeros((capacity, n_columns))
        self._carry = np.zeros((capacity, n_columns))
        self._most = np.full((capacity, n_maxima), -np.inf)
        self.stretch_rows = 1
        self.n_rows = 0

    def add(
        self,
        columns: Sequence[Array | Mask],
        maxima: Sequence[Array | Mask] = (),
    ) -> None:
        """Add the next rows of the stream: one array (n,) for each column.

        Of those in `maxima` the greatest is kept, not the sum.
        """
        n = len(columns[0])
        if n == 0:
            return
        while self.n_rows + n > self._capacity * self.stretch_rows:
            self._merge_pairs()
        first, rows_in_first = divmod(self.n_rows, self.stretch_rows)
        starts = np.arange(-rows_in_first, n, self.stretch_rows)
        starts[0] = 0
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.stack(
                [np.add.reduceat(column, starts, dtype=np.float64) for column in columns], axis=1
            )
            touched = slice(first, first + len(starts))
            self._total[touched], error = two_sum(self._total[touched], sums)
            self._carry[touched] += error
        for i, column in enumerate(maxima):
            greatest = np.maximum.reduceat(column, starts)
            self._most[touched, i] = np.maximum(self._most[touched, i], greatest)
        self.n_rows += n

    def _merge_pairs(self) -> None:
        half = self._capacity // 2
        with np.errstate(over="ignore", invalid="ignore"):
            total, error = two_sum(self._total[::2], self._total[1::2])
        carry = self._carry[::2] + self._carry[1::2] + error
        self._total[:half], self._total[half:] = total, 0.0
        self._carry[:half], self._carry[half:] = carry, 0.0
        most = np.maximum(self._most[::2], self._most[1::2])
        self._most[:half], self._most[half:] = most, -np.inf
        self.stretch_rows *= 2

    def stretches(self) -> tuple[NDArray[np.int64], Array]:
        """Rows seen at the end of each stretch, (s,), and the sums over each, (s, n_columns)."""
        n_stretches = -(-self.n_rows // self.stretch_rows)
        row_end = np.arange(1, n_stretches + 1, dtype=np.int64) * self.stretch_rows
        row_end[-1:] = self.n_rows
        return row_end, self._total[:n_stretches] + self._carry[:n_stretches]

    def maxima(self) -> Array:
        """Greatest values in each stretch, (s, n_maxima)."""
        return self._most[: -(-self.n_rows // self.stretch_rows)]

    def overall(self) -> Array:
        """Sums over the whole stream, (n_columns,)."""
        total, carry = self._total, self._carry
        with np.errstate(over="ignore", invalid="ignore"):
            while len(total) > 1:
                odd = len(total) % 2
                top, error = two_sum(total[odd::2], total[odd + 1 :: 2])
                rest = carry[odd::2] + carry[odd + 1 :: 2] + error
                total = np.concatenate([total[:odd], top])
                carry = np.concatenate([carry[:odd], rest])
        return np.asarray(total[0] + carry[0])
