"""SciPy's distributions with parameters, made quickly."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any

import numpy as np


def freeze(family: Any, *shapes: Any, **place: Any) -> Any:
    """Return ``family(*shapes, **place)``, as ``stats.gamma(shape, scale=scale)``.

    SciPy's own call makes the family and its documentation anew, which takes most of the time of a
    likelihood's single rows.

    Examples
    --------
    >>> from scipy import stats
    >>> freeze(stats.gamma, 2.0, scale=3.0).mean()
    np.float64(6.0)
    """
    frozen = copy(_freeze_once(family))
    frozen.args, frozen.kwds = shapes, place
    frozen.a, frozen.b = family._get_support(*family._parse_args(*shapes, **place)[0])
    return frozen


@cache
def _freeze_once(family: Any) -> Any:
    return family(*np.ones(family.numargs))
