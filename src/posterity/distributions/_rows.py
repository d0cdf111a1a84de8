"""Run a formula over the rows of a distribution, one cache-sized block after another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

# Large enough to hide the cost of a NumPy call, small enough for the temporaries to stay in cache.
BLOCK_ROWS = 16384


def as_floats(values: ArrayLike) -> FloatArray:
    """Values as a float64 array; no copy where they are one already."""
    return np.asarray(values, dtype=np.float64)


def rowwise(
    formula: Callable[..., Sequence[FloatArray]], outputs: int, *operands: FloatArray
) -> tuple[FloatArray, ...]:
    """Evaluate ``formula`` over the broadcast operands.

    Parameters
    ----------
    formula : callable
        Takes one block per operand, 1-D or (for an operand that is one number) 0-d, and returns
        ``outputs`` arrays that broadcast to the block. One number stays one number, so what
        depends on it alone is worked out once a block, not once a row.
    outputs : int
        How many arrays ``formula`` returns.
    *operands : ndarray
        Arrays that broadcast together.

    Returns
    -------
    tuple of ndarray
        ``outputs`` arrays of the broadcast shape; NumPy scalars where that shape is ``()``.
    """
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    size = math.prod(shape)
    flat = [
        o if o.ndim == 0 or o.shape == (size,) else np.broadcast_to(o, shape).reshape(-1)
        for o in operands
    ]
    results = [np.empty(size) for _ in range(outputs)]
    # Infinite scales, scales of zero and targets far away are legal: their limits are written out.
    with np.errstate(all="ignore"):
        for start in range(0, size, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            block = formula(*(o if o.ndim == 0 else o[rows] for o in flat))
            for result, values in zip(results, block, strict=True):
                result[rows] = values
    return tuple(result.reshape(shape)[()] for result in results)
