"""How large the numbers are that a model has learned, and which of them drown the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Binary digits by which a number may exceed those that stay when it is taken back: it is
# subtracted, and of the 52 that a float has, 32 must be left.
MOST_DIGITS = 20


class Sizes:
    """Counts of the binary exponents of what was learned, for each arm and column of its rows.

    To take a row back is to subtract it, and rounding leaves 1e-16 of it behind. So a row that is
    far larger than all that stays takes their digits along. Exponents of what was taken back stay,
    with a count of 0: its rounding is there.

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
        self._arms: dict[int, list[dict[int, int]]] = {}
        for arm, column, exponent, count in (notes or {}).get("sizes", _NOTHING).tolist():
            self._list_columns(arm, column + 1)[column][exponent] = count

    @property
    def notes(self) -> dict[str, NDArray[np.int64]]:
        """The counts, as an array (n, 4) that a model file can keep."""
        counts = [
            (arm, column, *counted)
            for arm, columns in self._arms.items()
            for column, exponents in enumerate(columns)
            for counted in exponents.items()
        ]
        return {"sizes": np.array(counts, np.int64).reshape(-1, 4)}

    def add(self, arm: int, x: Sequence[float], y: float, count: int = 1) -> None:
        """Count a row that is learned."""
        for exponents, value in zip(self._list_columns(arm, 1 + len(x)), (y, *x), strict=False):
            if value:  # 0 has no size
                exponent = frexp(value)[1]
                exponents[exponent] = max(exponents.get(exponent, 0) + count, 0)

    def remove(self, arm: int, x: Sequence[float], y: float) -> None:
        """Count a row that is taken back."""
        self.add(arm, x, y, -1)

    def drowns(self, arm: int, x: Sequence[float], y: float) -> bool:
        """Whether the digits of what stays are lost when this row is subtracted."""
        for exponents, value in zip(self._list_columns(arm, 1 + len(x)), (y, *x), strict=False):
            if not value:
                continue
            exponent = frexp(value)[1]
            left = [size for size, count in exponents.items() if count > (size == exponent)]
            if max([exponent, *exponents]) > max(left, default=0) + MOST_DIGITS:
                return True
        return False

    def _list_columns(self, arm: int, count: int) -> list[dict[int, int]]:
        columns = self._arms.setdefault(arm, [])
        while len(columns) < count:
            columns.append({})
        return columns


_NOTHING = np.empty((0, 4), np.int64)
