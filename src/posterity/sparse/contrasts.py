"""What the levels of columns are compared with: the mean of their column's levels, or one of them.

Rows tell how levels differ; what all of a column have in common could as well be the intercept's.
With a base the intercept and the levels are

    intercept' = intercept + sum over columns of base,    level' = level - base .
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from posterity.distributions.guesses import did_you_mean
from posterity.sparse.index import UNNAMED, FeatureIndex

Array = NDArray[np.float64]
Base = Literal["mean", "first"] | Mapping[str, Any] | None
# Levels that a message lists, at most.
MOST_LISTED = 20


class Compared(NamedTuple):
    """Levels (k,) of a column, and their shares (k,) of what they are compared with."""

    features: NDArray[np.int32]
    shares: Array


def choose_bases(index: FeatureIndex, base: Base) -> list[Compared]:
    """What the levels of each column are compared with; nothing where ``base`` is None.

    Raises
    ------
    ValueError
        If there is no such column, or no such level; the message names the nearest.
    """
    if base is None:
        return []
    named = dict(base) if isinstance(base, Mapping) else {}
    if not isinstance(base, Mapping) and base not in ("mean", "first"):
        raise ValueError(
            f"base is {base!r}: it must be 'mean', 'first' or a dict of columns and levels, as in "
            "base={'zone': 'north'}"
        )
    if index.hashed is not None:
        raise ValueError("hashed levels have no names, so none can be the base: leave base out")
    columns = dict(_list_levels(index))
    unknown = next((name for name in named if name not in columns), None)
    if unknown is not None:
        listed = (
            f"the categories are {', '.join(map(repr, columns))}" if columns else "there is none"
        )
        near = did_you_mean(unknown, columns)
        raise ValueError(f"base names {unknown!r}, which is no category: {listed}{near}")
    return [
        Compared(features, _choose_shares(name, levels, named.get(name), base))
        for name, (levels, features) in columns.items()
    ]


def compare_levels(
    bases: list[Compared], mean: Array, variance: Array, covariances: Any
) -> tuple[Array, Array]:
    """Means and variances (P,) of weights, the intercept's first, once levels are compared.

    ``covariances`` gives those of all weights with a sum of weights (P,).
    """
    mean, variance = mean.copy(), variance.copy()
    total = np.zeros(len(mean))
    for features, shares in bases:
        compared = np.zeros(len(mean))
        compared[features] = shares
        with_base = covariances(compared)
        base = float(compared @ mean)
        mean[0] += base
        mean[features] -= base
        spread = variance[features] + compared @ with_base - 2.0 * with_base[features]
        variance[features] = np.where(shares == 1.0, 0.0, np.maximum(spread, 0.0))
        total += compared
    with_all = covariances(total)
    variance[0] += total @ with_all + 2.0 * with_all[0]
    return mean, variance


def _list_levels(index: FeatureIndex) -> Iterator[tuple[str, tuple[list[str], Any]]]:
    """The columns of levels, each with these and their features."""
    for column, levels in index.levels.items():
        if column != UNNAMED:
            names = [str(key) for key in levels.index.list_keys().tolist()]
            yield index.column_name(column), (names, levels.features)


def _choose_shares(name: str, levels: list[str], level: Any, base: Base) -> Array:
    if level is None and base != "first":
        return np.full(len(levels), 1.0 / max(len(levels), 1))
    chosen = min(levels, key=_order) if level is None else str(level)
    if chosen not in levels:
        listed = ", ".join(map(repr, levels[:MOST_LISTED]))
        raise ValueError(
            f"base is {chosen!r} for column {name!r}, which has no such level: its levels are "
            f"{listed}{did_you_mean(chosen, levels)}"
        )
    return np.array([one == chosen for one in levels], dtype=np.float64)


def _order(level: str) -> tuple[float, str]:
    """Numbers by their size, before text."""
    try:
        return float(level), level
    except ValueError:
        return np.inf, level


__all__ = ["Base", "choose_bases", "compare_levels"]
