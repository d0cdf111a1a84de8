"""Read contexts and rows: an error names the field."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from posterity.aliases import Array
from posterity.factor.usable import LARGEST
from posterity.linear.levels import to_text
from posterity.service.errors import RefusedError

# What a context without features is: a bandit needs one.
_NONE = np.ones(1)
# Models of counts.
COUNTS = ("poisson", "negative binomial")
# Counts beyond it are no longer told apart.
LARGEST_COUNT = 2.0**53


# What is no number, in words.
_TOLD = {str: "text", bool: "true or false", type(None): "null"}


def read_context(
    given: dict[str, float] | list[float],
    features: Sequence[str],
    ranges: Mapping[str, tuple[float, float]],
    field: str = "context",
) -> Array:
    """The numbers (m,) of a context, by name or in the order of the features.

    Raises
    ------
    RefusedError
        422, with the field: a feature that is missing, unknown, not finite or out of its range.
    """
    values = _order_values(given, features, field)
    if not math.isfinite(sum(values)):  # a sum that is too large is no error
        for name, value in zip(features, values, strict=True):
            if not math.isfinite(value):
                message = f"{name!r} is {value}: it must be finite"
                raise RefusedError(422, message, f"{field}.{name}")
    for name, (low, high) in ranges.items():
        value = values[features.index(name)]
        if not low <= value <= high:
            message = f"{name!r} is {value:g}: it must lie between {low:g} and {high:g}"
            raise RefusedError(422, message, f"{field}.{name}")
    if not values:
        return _NONE
    x = np.array(values, dtype=np.float64)
    sizes = [*map(abs, values)]  # of few numbers, lists are faster than arrays
    if max(sizes) > LARGEST:
        place = sizes.index(max(sizes))
        message = f"{features[place]!r} is {x[place]:g}: it must lie within {LARGEST:g} of 0"
        raise RefusedError(422, message, f"{field}.{features[place]}")
    if min(sizes) < 1.0 / LARGEST:  # what models can't square
        x[np.abs(x) < 1.0 / LARGEST] = 0.0
    return x


def number_levels(
    given: dict[str, Any] | list[Any],
    features: Sequence[str],
    levels: Mapping[str, Sequence[str]],
    field: str,
) -> Any:
    """The same with the number of its level, from 1 on, for text, and 0 for one that is not known.

    Raises
    ------
    RefusedError
        422, with the field: text where a number should be.
    """
    places = [*given] if isinstance(given, dict) else features
    values = [*given.values()] if isinstance(given, dict) else given
    numbers: list[float] = []
    for name, value in zip(places, values, strict=False):
        if name in levels:
            word = to_text(value)
            each = levels[name]
            numbers.append(each.index(word) + 1.0 if word in each else 0.0)
        elif type(value) in _TOLD:
            message = f"{name!r} is {_TOLD[type(value)]}: give a number, or name its levels in the "
            message += "settings"
            raise RefusedError(422, message, f"{field}.{name}")
        else:
            numbers.append(value)
    numbers += values[len(numbers) :]  # too many, which is said of all of them
    return dict(zip(given, numbers, strict=True)) if isinstance(given, dict) else numbers


def check_target(model: str, value: float, field: str) -> None:
    """Refuse a target, or a reward, that a model of this name can't learn.

    Raises
    ------
    RefusedError
        422, with the field.
    """
    if model == "logistic" and value not in (0.0, 1.0):
        message = f"{field} is {value:g}: give 0 for no, or 1 for yes"
    elif model in COUNTS and not (value.is_integer() and 0.0 <= value <= LARGEST_COUNT):
        message = f"{field} is {value:g}: give a count, a whole number from 0 to 2^53"
    elif not abs(value) <= LARGEST:
        message = f"{field} is {value:g}: it must lie within {LARGEST:g} of 0"
    else:
        return
    raise RefusedError(422, message, field)


def _order_values(
    given: dict[str, float] | list[float], features: Sequence[str], field: str
) -> list[float]:
    if isinstance(given, list):
        if len(given) != len(features):
            message = (
                f"expected {len(features)} numbers, got {len(given)}: give one for each feature"
            )
            if features:
                message += f", which are {list_names(features)}"
            raise RefusedError(422, message, field)
        return given
    if len(given) == len(features) and all(map(given.__contains__, features)):
        return [given[name] for name in features]
    known = set(features)
    for name in given:
        if name not in known:
            message = f"unknown feature {name!r}: give {list_names(features)}"
            raise RefusedError(422, message, f"{field}.{name}")
    missing = next(name for name in features if name not in given)
    raise RefusedError(422, f"feature {missing!r} is missing: send a value", f"{field}.{missing}")


def list_names(names: Iterable[str], most: int = 20) -> str:
    """Names in a sentence; of many, the first.

    Examples
    --------
    >>> list_names(["age", "size"]), list_names("abc", most=2), list_names([])
    ('age, size', 'a, b, and 1 more', 'none')
    """
    listed = list(names)
    more = [f"and {len(listed) - most:,} more"] if len(listed) > most else []
    return ", ".join([*listed[:most], *more]) or "none"
