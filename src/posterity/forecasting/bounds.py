"""Lower bounds of forecasts: counts and amounts are never negative.

A forecast that ends at a bound is a normal censored there (Tobin 1958): what lies below counts as
being at the bound. Censoring a normal raises its mean. But the mean of a linear forecast is right
whatever the distribution of the values. So of series that are often at their bound the normal is
chosen whose *censored* mean and variance are those of the forecast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]

ROOT_2_PI = float(np.sqrt(2.0 * np.pi))
# A series is often at its bound if at least this share of its values is.
FREQUENT_SHARE = 0.05
# Means of forecasts, in standard deviations above the bound. Above the first the bound does not
# matter. Between the third and the second the censored mean is the second. At the third that is the
# mean of the forecast's own normal when it is censored, and below nothing is moved.
UNCENSORED_MEAN, SMALLEST_CENSORED_MEAN, LOWEST_MEAN = 5.0, 0.2, -0.4929
# The table by which the normals with given censored moments are found.
LOWEST, POINTS = -4.0, 4096
ONE = np.array(1.0)


@dataclass(frozen=True, eq=False)
class LowerBounds:
    """Lower bounds, minus infinity where there is none, and which of them are ``often`` reached."""

    values: Array
    often: NDArray[np.bool_]

    def before(self, columns: slice | int) -> LowerBounds:
        """Return the bounds before some columns: one after the other, of all series each (n S,)."""
        values, often = self.values[:, columns], self.often[:, columns]
        return LowerBounds(values.T.reshape(-1), often.T.reshape(-1))


def check_lower_bound(bound: Any) -> None:
    """Raise ``ValueError`` unless ``bound`` is "auto", None or a finite number."""
    number = isinstance(bound, int | float | np.integer | np.floating) and np.isfinite(bound)
    if not (bound is None or number or (isinstance(bound, str) and bound == "auto")):
        raise ValueError(
            f'lower_bound is {bound!r}: give "auto", a finite number below which there are no '
            "values, or None"
        )


def find_lower_bounds(values: Array, bound: float | str | None) -> LowerBounds:
    """Bounds (S, T + 1) known before each column of ``values`` (S, T), and after the last.

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
        there = np.cumsum(values <= limit, axis=1)
    bounds = np.full((series, length + 1), -np.inf)
    bounds[:, 1:] = np.where(bounded, limit, -np.inf)
    often = np.zeros(bounds.shape, dtype=bool)
    often[:, 1:] = bounded & (there > FREQUENT_SHARE * np.cumsum(np.isfinite(values), axis=1))
    return LowerBounds(bounds, often)


def compute_censored_moments(over: Array, sd: Array) -> tuple[Array, Array]:
    """Mean and mean square of max(x, 0), x ~ Normal(over, sd^2) with sd > 0 (Tobin 1958)."""
    z = over / sd
    above, height = ndtr(z), sd * np.exp(-0.5 * z * z) / ROOT_2_PI
    return over * above + height, (np.square(over) + np.square(sd)) * above + over * height


def move_to_moments(z: Array) -> tuple[Array, Array]:
    """Mean and sd of the normals whose moments, censored at 0, are those of a forecast.

    ``z`` are means of forecasts with a standard deviation of 1.
    """
    share = np.clip((z - LOWEST_MEAN) / (SMALLEST_CENSORED_MEAN - LOWEST_MEAN), 0.0, 1.0)
    mean = np.maximum(z, SMALLEST_CENSORED_MEAN)
    variance = share + (1.0 - share) * (
        compute_censored_moments(np.array(LOWEST_MEAN), ONE)[1] - SMALLEST_CENSORED_MEAN**2
    )
    ratios, places = _make_table()
    found = np.interp(np.log(variance / np.square(mean)), ratios, places)
    sd = mean / compute_censored_moments(found, ONE)[0]
    moved = (z > LOWEST_MEAN) & (z < UNCENSORED_MEAN)
    return np.where(moved, found * sd, z), np.where(moved, sd, 1.0)


# ---- inner ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _make_table() -> tuple[Array, Array]:
    """Increasing logs of variance over squared mean of censored normals, and their means."""
    places = np.linspace(UNCENSORED_MEAN + 1.0, LOWEST, POINTS)
    mean, square = compute_censored_moments(places, ONE)
    return np.log(square / np.square(mean) - 1.0), places
