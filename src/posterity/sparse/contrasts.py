"""What the levels of columns are compared with: the mean of their column's levels, or one of them.

Rows tell how levels differ; what all of a column have in common could as well be the intercept's.
With a base the intercept and the levels are

    intercept' = intercept + sum over columns of base,    level' = level - base .
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from posterity.aliases import Array, Indices
from posterity.linear.categories import sort_levels
from posterity.linear.contrasts import Base, Term, choose_bases
from posterity.sparse.index import UNNAMED, FeatureIndex


class Compared(NamedTuple):
    """Levels (k,) of a column, and their shares (k,) of what they are compared with."""

    features: Indices
    shares: Array


def choose_level_bases(index: FeatureIndex, base: Base) -> list[Compared]:
    """What the levels of each column are compared with; nothing where ``base`` is None.

    Raises
    ------
    ValueError
        If there is no such column, or no such level; the message names the nearest.
    """
    if base is None:
        return []
    if index.hashed is not None:
        raise ValueError("hashed levels have no names, so none can be the base: leave base out")
    terms = list(_list_terms(index))
    shares = choose_bases(terms, base, np.zeros(index.size, dtype=bool))
    return [Compared(one.columns, share) for one, share in zip(terms, shares, strict=True)]


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


def _list_terms(index: FeatureIndex) -> Iterator[Term]:
    """The columns of levels, each with these in order, and their features."""
    for column, known in index.levels.items():
        if column != UNNAMED:
            names = [str(key) for key in known.index.list_keys().tolist()]
            levels, places = tuple(sort_levels(names)), {name: i for i, name in enumerate(names)}
            features = known.features[[places[level] for level in levels]].astype(np.intp)
            yield Term(index.column_name(column), levels, levels, features)
