"""How large the numbers are that a model has learned, and which of them drown the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Binary digits by which a number may exceed those that stay when it is taken back: it is
# subtracted, and of the 52 that a float has, 32 must be left.
MOST_DIGITS = 20
# Rows that are counted together; and more exponents than floats have.
MOST_WAITING, EXPONENTS = 1000, 4096


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
        # By arm and column: how often each exponent came.
        self._counts: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        self._waiting: list[tuple[int, Sequence[float], float]] = []
        for arm, column, exponent, count in (notes or {}).get("sizes", _NOTHING).tolist():
            self._counts[arm, column][exponent] = count

    @property
    def notes(self) -> dict[str, NDArray[np.int64]]:
        """The counts, as an array (n, 4) that a model file can keep."""
        self._count_waiting()
        counts = [
            (*place, *counted)
            for place, exponents in sorted(self._counts.items())
            for counted in sorted(exponents.items())
        ]
        return {"sizes": np.array(counts, np.int64).reshape(-1, 4)}

    def add(self, arm: int, x: Sequence[float], y: float) -> None:
        """Count a row that is learned, together with others: the first time that it matters."""
        waiting = self._waiting
        if len(waiting) >= MOST_WAITING or (waiting and len(waiting[0][1]) != len(x)):
            self._count_waiting()
        self._waiting.append((arm, x, y))

    def remove(self, arm: int, x: Sequence[float], y: float) -> None:
        """Count a row that is taken back."""
        self._count_waiting()
        for column, value in enumerate((y, *x)):
            if value:
                exponents, exponent = self._counts[arm, column], frexp(value)[1]
                exponents[exponent] = max(exponents.get(exponent, 0) - 1, 0)

    def drowns(self, arm: int, x: Sequence[float], y: float) -> bool:
        """Whether the digits of what stays are lost when this row is subtracted."""
        self._count_waiting()
        for column, value in enumerate((y, *x)):
            if not value:
                continue
            exponents, exponent = self._counts[arm, column], frexp(value)[1]
            left = [size for size, count in exponents.items() if count > (size == exponent)]
            if max([exponent, *exponents]) > max(left, default=0) + MOST_DIGITS:
                return True
        return False

    def _count_waiting(self) -> None:
        rows, self._waiting = self._waiting, []
        if not rows:
            return
        values = np.array([(y, *x) for _, x, y in rows])
        width, arms = values.shape[1], np.array([arm for arm, _, _ in rows])
        codes = (arms[:, None] * width + np.arange(width)) * EXPONENTS + np.frexp(values)[1]
        # 0 has no size.
        found, counts = np.unique(codes[values != 0.0] + EXPONENTS // 2, return_counts=True)
        for code, count in zip(found.tolist(), counts.tolist(), strict=True):
            place, exponent = divmod(code, EXPONENTS)
            exponents = self._counts[divmod(place, width)]
            exponent -= EXPONENTS // 2
            exponents[exponent] = exponents.get(exponent, 0) + count


_NOTHING = np.empty((0, 4), np.int64)
