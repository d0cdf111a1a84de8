"""Check of values before they are learned: finite, and small enough to square."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ddot

LARGEST = 1e150  # squares of larger values would overflow
NOT_USABLE = (
    "a value in the rows is not finite, or its square overflows: leave the row out, or use larger "
    "units"
)
# Values checked together: with more, BLAS starts threads, which costs more than it saves.
STRETCH = 8192


def check_usable(*arrays: NDArray[np.float64], largest: float = LARGEST) -> None:
    """Raise ``FloatingPointError`` unless all values are finite, and none is beyond ``largest``.

    Examples
    --------
    >>> check_usable(np.ones(3), np.array([[1e200]]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FloatingPointError: a value in the rows is not finite, or its square overflows: ...
    """
    for array in arrays:
        flat = array.ravel()
        for start in range(0, flat.size, STRETCH):
            part = flat[start : start + STRETCH]
            # No value is larger than the root of the sum of squares: only if that is too large, or
            # NaN, are the values checked one by one. (BLAS itself does not warn of overflow.)
            if not ddot(part, part) <= largest**2 and not np.abs(part).max() <= largest:
                raise FloatingPointError(NOT_USABLE)
