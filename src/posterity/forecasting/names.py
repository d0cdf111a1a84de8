"""Names of series and of exogenous columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from posterity.aliases import AnyArray


def sort_names(names: Iterable[Any]) -> tuple[Any, ...]:
    """Names in order; as they are, where they are of types that have none."""
    names = tuple(names)
    try:
        return tuple(sorted(names))
    except TypeError:
        return names


def make_names_array(names: tuple[Any, ...]) -> AnyArray:
    """Names (S,) as an array, of objects unless all are text or all are whole numbers."""
    if {type(name) for name in names} in ({str}, {int}):
        return np.array(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def have_same_terms(names: Iterable[Any], others: Iterable[Any]) -> bool:
    """Return True if names of columns are the same, but for the levels of those of text."""
    return set(map(_find_term, names)) == set(map(_find_term, others))


def join_names(names: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
    """Names of the columns of either, where they differ in levels alone.

    Raises
    ------
    ValueError
        If a column is in one of them only.
    """
    if tuple(names) == tuple(others):
        return tuple(names)
    if not have_same_terms(names, others):
        raise ValueError(
            f"the rows have the exogenous columns {list(others)}, but the learned rows had "
            f"{list(names)}: give the same"
        )
    terms, both = dict.fromkeys(map(_find_term, names)), {*names, *others}
    return tuple(
        name for term in terms for name in sort_names(n for n in both if _find_term(n) == term)
    )


# ---- inner ---------------------------------------------------------------------------------------


def _find_term(name: Any) -> Any:
    """The column that a name means, also where it is that of a level."""
    stem, mark, _ = str(name).partition("=")
    return stem + mark if mark else name
