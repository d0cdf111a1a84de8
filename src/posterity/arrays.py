"""Names of the arrays that signatures speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]
AnyArray = NDArray[Any]  # of any kind: labels, keys, a column of a frame

__all__ = ["AnyArray", "Array", "Indices", "Mask"]
