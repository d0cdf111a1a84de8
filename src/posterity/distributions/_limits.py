"""Rows at the limits: flat ones (an infinite scale) and point masses (a scale of zero)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._rows import FloatArray, as_floats


def check_level(level: ArrayLike) -> FloatArray:
    """The level or levels of an interval, as floats between 0 and 1."""
    try:
        levels = as_floats(level)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"level is {level!r}: it must be a number; give 0.95 for a 95% interval"
        ) from None
    bad = ~((levels >= 0.0) & (levels <= 1.0))
    if bad.any():
        worst = float(levels[bad].flat[0])
        raise ValueError(
            f"level must lie between 0 and 1, but it is {worst:g}; give 0.95 for a 95% interval"
        )
    return levels


def check_single_level(level: ArrayLike) -> float:
    """The level of one interval per row: several would be read as those of several rows."""
    if np.ndim(level):
        raise ValueError(
            f"level is {level!r}: give one level, as in 0.95, and ask again for each of the others"
        )
    return float(check_level(level))


def interval_ends(distribution: Any, level: ArrayLike) -> FloatArray:
    """(..., 2): the ends of the central interval of each row, at one level."""
    return np.stack(distribution.interval(check_single_level(level)), axis=-1)


def is_flat(scale: FloatArray, shape: Sequence[FloatArray]) -> Any:
    flat = scale == math.inf
    return flat | (shape[0] <= 0.0) if shape else flat


def is_ordinary(scale: FloatArray, shape: Sequence[FloatArray]) -> bool:
    """True if no row is flat or a point mass: the usual case, found without a temporary array."""
    if not (scale.min() > 0.0 and scale.max() < math.inf):
        return False
    return not shape or bool(shape[0].min() > 0.0)


def write_limits(
    value: Any,
    scale: Any,
    shape: Sequence[Any],
    *,
    flat: Any,
    point: Any,
    given: Any,
) -> FloatArray:
    """Write the limits of flat rows and point masses over what the formula made of them."""
    settled = np.where(scale == 0.0, point, value)
    settled = np.where(is_flat(scale, shape), flat, settled)
    return np.where(np.isnan(given), math.nan, settled)


def find_series(ids: Sequence[Any], series: Any) -> int:
    """Number of a series among ``ids``; raises ``ValueError`` if none is named or known."""
    names = list(ids)
    if series is None:
        if len(names) > 1:
            raise ValueError(f"series is missing: name one of the {len(names)}, as in {names[0]!r}")
        return 0
    if series not in names:
        raise ValueError(f"there is no series {series!r} in the forecast: give one of its ids")
    return names.index(series)
