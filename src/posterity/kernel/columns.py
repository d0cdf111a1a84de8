"""Columns that were never put side by side: those of a data frame, read where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# What the kernel reads, but for the order of their bytes.
READABLE = ("f8", "f4", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def is_readable(column: NDArray[Any]) -> bool:
    """Return True if the kernel can read these numbers without a copy."""
    dtype = column.dtype
    return dtype.str[1:] in READABLE and dtype.isnative and column.flags.aligned


class Columns:
    """Rows (n, m) as m columns (n,) of numbers: float64, float32, bool and whole numbers.

    The kernel appends and predicts them as they are. Everything else takes them as an array, of
    which ``np.asarray`` makes one in the order of columns; a slice of rows copies nothing.

    Examples
    --------
    >>> columns = Columns((np.array([1.0, 2.0]), np.array([True, False])))
    >>> columns.shape, columns[1:].shape
    ((2, 2), (1, 2))
    >>> np.asarray(columns)
    array([[1., 1.],
           [2., 0.]])
    """

    __slots__ = ("arrays",)
    ndim = 2
    dtype = np.dtype(np.float64)  # as which they are read

    def __init__(self, arrays: tuple[NDArray[Any], ...]) -> None:
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays[0])

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return len(self), len(self.arrays)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(
                "separate columns can't be an array without a copy: leave copy=False out"
            )
        first = self.arrays[0]
        by_rows = first.strides[0] > first.itemsize
        array = np.empty(self.shape, dtype=dtype or np.float64, order="C" if by_rows else "F")
        for place, column in enumerate(self.arrays):
            array[:, place] = column
        return array

    def __getitem__(self, key: Any) -> Any:
        """Rows of a slice, as Columns; anything else as of an array."""
        if isinstance(key, slice):
            return Columns(tuple(column[key] for column in self.arrays))
        if isinstance(key, tuple):
            return np.asarray(self[key[0]])[:, key[1]]
        return np.array([column[key] for column in self.arrays], dtype=np.float64).T
