"""Which values can be learned: those that are finite, and small enough to square."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e150  # squares of larger values would overflow


def check_usable(*arrays: NDArray[np.float64], largest: float = LARGEST) -> None:
    """Raise ``FloatingPointError`` unless all values are finite, and none is beyond ``largest``.

    Examples
    --------
    >>> check_usable(np.ones(3), np.array([[1e200]]))
    Traceback (most recent call last):
    FloatingPointError: the rows are not finite, or too large to square
    """
    for array in arrays:
        flat = array.ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(flat @ flat)
        # No value is larger than the root of the sum; only where that is too large is it worth
        # looking closer. NaN is neither.
        if not square <= largest**2 and not np.abs(flat).max(initial=0.0) <= largest:
            raise FloatingPointError("the rows are not finite, or too large to square")
