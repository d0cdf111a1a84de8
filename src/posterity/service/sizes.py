"""How large the numbers are that a model has learned, and which of them drown the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Binary digits by which a number may exceed those that stay when it is taken back: it is
# subtracted, and of the 52 that a float has, 32 must be left.
MOST_DIGITS = 20
Column = tuple[int, int]


class Sizes:
    """Counts of the binary exponents of what was learned, for each arm and column of its rows.

    To take a row back is to subtract it, and rounding leaves 1e-16 of it behind. So a row that is
    far larger than all that stay takes their digits along.

    Parameters
    ----------
    notes : mapping, optional
        What ``notes`` was when a snapshot was written.

    Examples
    --------
    >>> sizes = Sizes()
    >>> for y in (1.0, 2.0, 1e20):
    ...     sizes.add(0, [1.0], y)
    >>> sizes.drowns(0, [1.0], 2.0), sizes.drowns(0, [1.0], 1e20)
    (False, True)
    """

    def __init__(self, notes: Mapping[str, Any] | None = None) -> None:
        notes = notes or {}
        self._counts: dict[Column, dict[int, int]] = {}
        for arm, column, exponent, count in notes.get("sizes", np.empty((0, 4), int)).tolist():
            self._counts.setdefault((arm, column), {})[exponent] = count
        # The largest exponents that the sums have ever held: what was taken back left its rounding.
        largest = notes.get("largest", np.empty((0, 3), int)).tolist()
        self._largest: dict[Column, int] = {(arm, column): top for arm, column, top in largest}

    @property
    def notes(self) -> dict[str, NDArray[np.int64]]:
        """The counts, as arrays that a model file can keep."""
        counts = [
            (*key, exponent, count)
            for key, exponents in self._counts.items()
            for exponent, count in exponents.items()
        ]
        largest = [(*key, top) for key, top in self._largest.items()]
        return {
            "sizes": np.array(counts, np.int64).reshape(-1, 4),
            "largest": np.array(largest, np.int64).reshape(-1, 3),
        }

    def add(self, arm: int, x: Any, y: float) -> None:
        """Count a row that is learned."""
        for key, exponent in _list_exponents(arm, x, y):
            exponents = self._counts.setdefault(key, {})
            exponents[exponent] = exponents.get(exponent, 0) + 1
            self._largest[key] = max(self._largest.get(key, exponent), exponent)

    def remove(self, arm: int, x: Any, y: float) -> None:
        """Count a row that is taken back."""
        for key, exponent in _list_exponents(arm, x, y):
            exponents = self._counts.get(key, {})
            exponents[exponent] = exponents.get(exponent, 0) - 1
            if exponents[exponent] <= 0:  # or it was learned before anything was counted
                del exponents[exponent]

    def drowns(self, arm: int, x: Any, y: float) -> bool:
        """Whether the digits of what stays are lost when this row is subtracted."""
        for key, exponent in _list_exponents(arm, x, y):
            left = [
                size
                for size, count in self._counts.get(key, {}).items()
                if count > (size == exponent)
            ]
            if max(exponent, self._largest.get(key, exponent)) > max(left, default=0) + MOST_DIGITS:
                return True
        return False


def _list_exponents(arm: int, x: Any, y: float) -> Iterator[tuple[Column, int]]:
    """The binary exponent of each number of a row, which is 0 in no column."""
    for column, value in enumerate((y, *x)):
        if value:
            yield (arm, column), math.frexp(value)[1]
