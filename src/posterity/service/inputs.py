"""Read contexts and rows: what is wrong is said by the name of the field."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from posterity.service.errors import RefusedError

# What a context without features is: a bandit needs one.
_NONE = np.ones(1)


def read_context(
    given: dict[str, float] | list[float],
    features: Sequence[str],
    ranges: Mapping[str, tuple[float, float]],
    field: str = "context",
) -> NDArray[np.float64]:
    """The numbers (m,) of a context, by name or in the order of the features.

    Raises
    ------
    RefusedError
        422, with the field: a feature that is missing, unknown, not finite or out of its range.
    """
    if isinstance(given, dict):
        for name in given:
            if name not in features:
                known = ", ".join(features)
                raise RefusedError(
                    422, f"unknown feature {name!r}: give {known}", f"{field}.{name}"
                )
        for name in features:
            if name not in given:
                raise RefusedError(422, f"feature {name!r} is missing", f"{field}.{name}")
        values = [given[name] for name in features]
    elif len(given) != len(features):
        raise RefusedError(422, f"{len(given)} numbers: there are {len(features)} features", field)
    else:
        values = given
    for name, value in zip(features, values, strict=True):
        if not math.isfinite(value):
            raise RefusedError(422, f"{name!r} is {value}: it must be finite", f"{field}.{name}")
    for name, (low, high) in ranges.items():
        value = values[features.index(name)]
        if not low <= value <= high:
            said = f"{name!r} is {value:g}: it must lie between {low:g} and {high:g}"
            raise RefusedError(422, said, f"{field}.{name}")
    return np.array(values, dtype=np.float64) if values else _NONE
