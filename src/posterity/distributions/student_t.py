"""The Student-t distribution, one per row."""

from __future__ import annotations

from typing import cast

from numpy.typing import ArrayLike

from posterity.distributions import _standard_t
from posterity.distributions._family import StandardFamily
from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.location_scale import LocationScale


class StudentT(LocationScale):
    """Student-t distributions, one per row: predictions with the noise learned.

    Parameters
    ----------
    df : array_like
        Degrees of freedom, shape (n,) or one for all rows (cheapest as a single number if they
        are few). Infinite: the normal distribution. At most 2: the variance is infinite; at most
        1: so is the CRPS, and ``mean()`` still gives the location. At most 0: the noise is unknown,
        so the row is *flat* whatever its scale.
    loc : array_like, default 0
        Locations, shape (n,) or one for all, in units of the target.
    scale : array_like, default 1
        Scales, >= 0, shape (n,) or one for all; not standard deviations. Infinite: nothing is
        known yet (the row is *flat*: ``logpdf`` is 0, the interval is (-inf, inf)). Zero: a point
        mass.

    Notes
    -----
    From 64 degrees of freedom on, expansions in 1/(df - 1/2)^2 take the place of the incomplete
    beta function (Hill 1970): the same digits at a tenth of the time. Tails of fewer are led there
    by recurrence; their quantiles are those of the incomplete beta function.

    Examples
    --------
    >>> from posterity.distributions import StudentT
    >>> prediction = StudentT([3.0, 300.0], [1.0, 1.0], 0.5)
    >>> prediction.std().round(4)
    array([0.866 , 0.5017])
    >>> low, high = prediction.interval(0.95)
    >>> high.round(4)
    array([2.5912, 1.984 ])
    >>> prediction.crps(1.0).round(4)
    array([0.1378, 0.117 ])
    >>> prediction[1]
    StudentT(df=300, loc=1, scale=0.5)
    """

    __slots__ = ("df",)

    df: FloatArray

    def __init__(self, df: ArrayLike, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0) -> None:
        self.df = as_floats(df)
        self.loc = as_floats(loc)
        self.scale = as_floats(scale)

    def _family(self) -> StandardFamily:
        return cast(StandardFamily, _standard_t)

    def _shape_parameters(self) -> tuple[FloatArray, ...]:
        return (self.df,)
