"""Solutions of triangular systems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm

Array = NDArray[np.float64]


def solve_triangle(
    triangle: Array, right: NDArray[Any], *, lower: bool = False, transposed: bool = False
) -> Array:
    """``triangle^-1 right`` (p,) or (p, k), or of its transpose; nothing on its diagonal is 0.

    BLAS directly: LAPACK's solver wakes threads even for three columns, which beside other programs
    costs milliseconds, and SciPy's checks take many times as long as few columns.

    Examples
    --------
    >>> solve_triangle(np.array([[2.0, 1.0], [0.0, 4.0]]), np.array([4.0, 8.0]))
    array([1., 2.])
    """
    columns = right[:, None] if right.ndim == 1 else right
    if triangle.flags.c_contiguous:  # in the order of Fortran that is its transpose: no copy
        triangle, lower, transposed = triangle.T, not lower, not transposed
    solved = dtrsm(1.0, triangle, columns, lower=int(lower), trans_a=int(transposed))
    return np.asarray(solved[:, 0] if right.ndim == 1 else solved)


__all__ = ["solve_triangle"]
