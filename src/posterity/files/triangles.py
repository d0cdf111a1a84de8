"""The triangle of a factor, without the half that is empty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from posterity import kernel
from posterity.aliases import AnyArray, Array
from posterity.factor.packed import places as _places
from posterity.factor.usable import LARGEST_IN_TRIANGLE
from posterity.files.ranges import LARGEST, SMALLEST

# A prior's triangle is mostly empty, too: up to this share of entries, each has its place with it.
SPARSE = 0.25
# Not for larger ones, nor for more bytes of them in a file: a few bytes must not ask for all of the
# memory.
LARGEST_SPARSE, MOST_SPARSE = 4096, 1 << 29


def check_solvable(triangles: Array, n_targets: int) -> None:
    """Raise ``ValueError`` unless solutions (..., q, ld) and their variances are finite.

    Rows whose squares become 0 are refused when they are learned, and what is forgotten is kept
    above as well.
    """
    _check_pivots(triangles.diagonal(axis1=-2, axis2=-1), np.abs(triangles).max(axis=-1), n_targets)


def _check_pivots(pivots: Array, sizes: Array, n_targets: int) -> None:
    pivots, least = np.abs(pivots), np.maximum(sizes / LARGEST, SMALLEST)
    least[..., least.shape[-1] - n_targets :] = 0.0
    if ((pivots > 0.0) & (pivots < least)).any():
        raise ValueError("a factor has no finite solution")


def packed(triangle: Array, *, sparse: bool = True) -> dict[str, AnyArray]:
    """Return a triangle (q, ld) as arrays: its upper half, or nonzeros and their places.

    Whatever else may be in it is kept as well: then the whole. All, too, unless ``sparse``.

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
    if not sparse or n_filled > SPARSE * len(upper) or len(triangle) > LARGEST_SPARSE:
        return {"factor": upper}
    places = np.flatnonzero(filled)
    return {
        "factor": places.astype(np.int32),
        "values": upper[places],
        "size": np.array(len(upper)),
    }


def unpacked(
    factor: AnyArray,
    values: Array | None,
    size: int | None,
    take: Callable[[int], None] = lambda n_bytes: None,
) -> Array:
    """The triangle (q, ld) again; ``ValueError`` where it can't be one.

    ``take`` gets the bytes of one that takes more room than its file, twice: it is copied.
    """
    if values is None and factor.ndim == 2:
        return np.array(factor, dtype=np.float64)
    if values is None or size is None:
        q = _rows_of(factor, len(factor))
        triangle = np.zeros((q, kernel.leading_dimension(q)))
        triangle.reshape(-1)[_places(*triangle.shape)] = factor
        return triangle
    if factor.dtype != np.int32 or factor.shape != values.shape:
        raise ValueError("the indices of a triangle do not match its values")
    q = _rows_of(factor, size)
    if q > LARGEST_SPARSE or (len(factor) and not 0 <= factor.min() <= factor.max() < size):
        raise ValueError("an index is outside its triangle")
    take(16 * q * kernel.leading_dimension(q))
    triangle = np.zeros((q, kernel.leading_dimension(q)))
    # Row i begins at place i q - i (i - 1) / 2.
    begins = np.arange(q) * q - np.arange(q) * (np.arange(q) - 1) // 2
    rows = np.searchsorted(begins, factor, side="right") - 1
    triangle[rows, factor - begins[rows] + rows] = values
    return triangle


def _rows_of(factor: AnyArray, length: int) -> int:
    q = (int(np.sqrt(8.0 * length + 1.0)) - 1) // 2 if length >= 0 else -1
    if factor.ndim != 1 or q * (q + 1) // 2 != length:
        raise ValueError(f"{length} numbers do not make a triangle")
    return q


def unpack_triangles(halves: Array, q: int) -> Array:
    """Unpack triangles (n, q (q + 1) / 2) of a file; ``ValueError`` if they have another size."""
    if halves.dtype != np.float64 or halves.ndim != 2 or halves.shape[1] != q * (q + 1) // 2:
        raise ValueError(f"an array of shape {halves.shape} does not contain triangles of {q} rows")
    if not np.abs(halves).max(initial=0.0) <= LARGEST_IN_TRIANGLE:  # NaN is not, either
        raise ValueError("triangles contain values that are not finite, or too large")
    starts = np.cumsum([0, *range(q, 1, -1)])
    _check_pivots(halves[:, starts], np.maximum.reduceat(np.abs(halves), starts, axis=1), 1)
    return halves
