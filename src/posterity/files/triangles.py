"""The triangle of a factor, without the half that is empty."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity import kernel
from posterity.factor.factor import LARGEST

Array = NDArray[np.float64]
Places = NDArray[np.intp]

# A prior's triangle is mostly empty, too: up to this share of entries, each has its place with it.
SPARSE = 0.25
# Not for larger ones: a few bytes of a file must not ask for all of the memory.
LARGEST_SPARSE = 4096


def packed(triangle: Array) -> dict[str, NDArray[Any]]:
    """What is in a triangle (q, ld): of its upper half all, or what is not 0 and where.

    Whatever else may be in it is kept as well: then the whole.

    Examples
    --------
    >>> from posterity.factor import Factor
    >>> packed(Factor(1).triangle)["values"], packed(Factor(1).triangle)["factor"]
    (array([], dtype=float64), array([], dtype=int32))
    """
    upper = triangle.reshape(-1)[_places(*triangle.shape)]
    # By their bits: -0.0 is something.
    filled = upper.view(np.int64) != 0
    n_filled = int(np.count_nonzero(filled))
    if n_filled != np.count_nonzero(np.ascontiguousarray(triangle).view(np.int64)):
        return {"factor": triangle}
    if n_filled > SPARSE * len(upper) or len(triangle) > LARGEST_SPARSE:
        return {"factor": upper}
    places = np.flatnonzero(filled)
    return {
        "factor": places.astype(np.int32),
        "values": upper[places],
        "size": np.array(len(upper)),
    }


def unpacked(factor: NDArray[Any], values: Array | None, size: int | None) -> Array:
    """The triangle (q, ld) again; ``ValueError`` where it can't be one."""
    if values is None and factor.ndim == 2:
        return np.array(factor, dtype=np.float64)
    if values is not None and size is not None:
        if factor.dtype != np.int32 or factor.ndim != 1 or factor.shape != values.shape:
            raise ValueError("the places of a triangle do not fit its values")
        if len(factor) and not (factor.min() >= 0 and factor.max() < size):
            raise ValueError("a place is outside its triangle")
    length = len(factor) if size is None else size
    q = (int(np.sqrt(8.0 * length + 1.0)) - 1) // 2
    too_large = values is not None and q > LARGEST_SPARSE
    if factor.ndim != 1 or q * (q + 1) // 2 != length or too_large:
        raise ValueError(f"{length} numbers are no triangle")
    triangle = np.zeros((q, kernel.leading_dimension(q)))
    places = _places(*triangle.shape)
    if values is None:
        triangle.reshape(-1)[places] = factor
    else:
        triangle.reshape(-1)[places[factor]] = values
    return triangle


def upper(stack: Array) -> Array:
    """The upper halves (n, q (q + 1) / 2) of triangles (n, q, ld)."""
    n, q, ld = stack.shape
    return stack.reshape(n, q * ld)[:, _places(q, ld)]


def stacked(halves: Array, q: int) -> Array:
    """The triangles again; ``ValueError`` where they can't be any."""
    if halves.dtype != np.float64 or halves.ndim != 2 or halves.shape[1] != q * (q + 1) // 2:
        raise ValueError(f"an array of shape {halves.shape} holds no triangles of {q} rows")
    if not np.abs(halves).max(initial=0.0) <= LARGEST:  # NaN is not, either
        raise ValueError("triangles hold what is not finite, or too large")
    ld = kernel.leading_dimension(q)
    stack = np.zeros((len(halves), q, ld))
    stack.reshape(len(halves), q * ld)[:, _places(q, ld)] = halves
    return stack


@lru_cache(maxsize=8)
def _places(q: int, ld: int) -> Places:
    """Where the upper triangle (q, q) is in the memory of (q, ld), row by row."""
    rows, columns = np.triu_indices(q)
    return rows * ld + columns
