"""The normal distribution, one per row."""

from __future__ import annotations

from typing import cast

from numpy.typing import ArrayLike

from posterity.distributions import _standard_normal
from posterity.distributions._family import StandardFamily
from posterity.distributions._rows import as_floats
from posterity.distributions.location_scale import LocationScale


class Normal(LocationScale):
    """Normal distributions, one per row: predictions with known noise.

    Parameters
    ----------
    loc : array_like, default 0
        Means, shape (n,) or one for all rows, in units of the target.
    scale : array_like, default 1
        Standard deviations, >= 0, shape (n,) or one for all. Infinite: nothing is known yet (the
        row is *flat*: ``logpdf`` is 0, the interval is (-inf, inf)). Zero: a point mass.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> prediction = Normal([1.0, 2.0], [0.5, 1.0])
    >>> prediction.std()
    array([0.5, 1. ])
    >>> low, high = prediction.interval(0.95)
    >>> high.round(3)
    array([1.98, 3.96])
    >>> prediction.crps([1.0, 2.0]).round(4)
    array([0.1168, 0.2337])
    >>> prediction[0]
    Normal(loc=1, scale=0.5)
    """

    __slots__ = ()

    def __init__(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0) -> None:
        self.loc = as_floats(loc)
        self.scale = as_floats(scale)

    def _family(self) -> StandardFamily:
        return cast(StandardFamily, _standard_normal)
