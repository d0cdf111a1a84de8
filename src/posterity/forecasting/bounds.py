"""Where values end below: counts and amounts that have no negative ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def check_lower_bound(bound: Any) -> None:
    """Raise ``ValueError`` unless ``bound`` is "auto", None or a finite number."""
    number = isinstance(bound, int | float | np.integer | np.floating) and np.isfinite(bound)
    if not (bound is None or number or (isinstance(bound, str) and bound == "auto")):
        raise ValueError(
            f'lower_bound is {bound!r}: give "auto", a finite number below which there are no '
            "values, or None"
        )


def find_lower_bounds(values: Array, bound: float | str | None) -> Array:
    """(S, T + 1) bounds known before each column of ``values`` (S, T), and after the last.

    "auto": 0 where no value so far is negative, and all are whole numbers or some are 0. No bound
    is minus infinity. A value below a bound that was given ends it for its series.
    """
    series, length = values.shape
    limit = 0.0 if isinstance(bound, str) else -np.inf if bound is None else float(bound)
    with np.errstate(invalid="ignore"):
        bounded = np.logical_and.accumulate(~(values < limit), axis=1)
        if isinstance(bound, str):
            whole = np.isnan(values) | (values == np.round(values))
            touched = np.logical_or.accumulate(values == 0.0, axis=1)
            bounded &= np.logical_and.accumulate(whole, axis=1) | touched
    bounds = np.full((series, length + 1), -np.inf)
    bounds[:, 1:] = np.where(bounded, limit, -np.inf)
    return bounds
