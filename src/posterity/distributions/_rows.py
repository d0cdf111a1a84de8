"""Run a formula over the rows of a distribution, one cache-sized block after another."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

# Large enough to hide the cost of a NumPy call, small enough for the temporaries to stay in cache.
BLOCK_ROWS = 16384


def as_floats(values: ArrayLike) -> FloatArray:
    """Values as a float64 array; no copy where they are one already."""
    return np.asarray(values, dtype=np.float64)


def rowwise(
    formula: Callable[..., FloatArray], *operands: FloatArray, block_rows: int = BLOCK_ROWS
) -> FloatArray:
    """Evaluate ``formula`` over the broadcast operands.

    Parameters
    ----------
    formula : callable
        Takes one block per operand, 1-D or (for an operand that is one number) 0-d, and returns
        an array that broadcasts to the block. One number stays one number, so what depends on it
        alone is worked out once a block, not once a row.
    *operands : ndarray
        Arrays that broadcast together.
    block_rows : int
        Rows of a block.

    Returns
    -------
    ndarray
        Of the broadcast shape; a NumPy scalar where that shape is ``()``.
    """
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    size = math.prod(shape)
    flat = [
        o if o.ndim == 0 or o.shape == (size,) else np.broadcast_to(o, shape).reshape(-1)
        for o in operands
    ]
    result = np.empty(size)
    # Infinite scales, scales of zero and targets far away are legal: their limits are written out.
    with np.errstate(all="ignore"):
        for start in range(0, size, block_rows):
            rows = slice(start, start + block_rows)
            result[rows] = formula(*(o if o.ndim == 0 else o[rows] for o in flat))
    reshaped: FloatArray = result.reshape(shape)[()]
    return reshaped
