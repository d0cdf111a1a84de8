"""Features that are categories: their levels, each a column of zeros and ones.

A row of features has the number of its level, from 1 on, in the place of a category, and 0 for a
level that is not known. All levels have a column, so that none is the base that the others are
shrunk towards. One column more, ``zone=(other)``, is 1 for what is not known: it is 0 in all rows
that were learned, and its coefficient is what the prior says of a level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from posterity.aliases import Array, Indices
from posterity.basis._domain import join_columns
from posterity.posteriors.new_columns import ChangedColumns, JoinedColumns, NewColumns
from posterity.safety import check_memory

# What models take: which features are categories, and what becomes of missing values in these.
CategoricalFeatures = Literal["auto", "all"] | Sequence[str] | Mapping[str, Sequence[Any]] | None
Missing = Literal["error", "level"]

# The levels of what is missing, where that is a level, and of what is not known.
MISSING, OTHER = "missing", "(other)"


# What to do where levels can't come later.
NAME_LEVELS = (
    "name all of them from the start, by a category type (pandas.Categorical), by "
    "categorical_features={{{0!r}: [...]}}, or in the command by --levels {0}=..."
)


@dataclass(frozen=True)
class Category:
    """A feature that is a category: its place among all features, its name, and its levels.

    Where the first is ``left_out`` it has no column, and neither has what is not known.
    """

    place: int
    name: str
    levels: tuple[str, ...]
    left_out: bool = False

    @property
    def columns(self) -> list[str]:
        """Names of its columns: of the levels, and of what is none of these."""
        coded = self.levels[1:] if self.left_out else (*self.levels, OTHER)
        return [f"{self.name}={level}" for level in coded]

    @property
    def base(self) -> tuple[str, ...]:
        """The level that was left out, if one was."""
        return self.levels[: self.left_out]

    @property
    def width(self) -> int:
        """Number of its columns."""
        return len(self.levels) + (-1 if self.left_out else 1)

    def number(self, words: Sequence[str]) -> Indices:
        """The numbers of these levels, 0 of those that are not known."""
        numbers = {level: number for number, level in enumerate(self.levels, start=1)}
        return np.array([numbers.get(word, 0) for word in words], dtype=np.intp)

    def check_known(self, numbers: Array | Indices) -> None:
        """Raise ``ValueError`` where a row (n,) has a level that is not known, the number 0."""
        if numbers.all():
            return
        listed = ", ".join(map(repr, self.levels[:20]))
        raise ValueError(
            f"column {self.name!r} has a level in row {int(np.argmin(numbers))} that was not "
            f"learned: the levels are {listed}; {NAME_LEVELS.format(self.name)}"
        )

    def join(self, words: Sequence[str]) -> Category:
        """The same with these levels, too: in their order where there is one, or else behind.

        A level that was left out stays the first: the others are differences from it.
        """
        new = [word for word in dict.fromkeys(words) if word not in self.levels]
        if not new:
            return self
        others = self.levels[len(self.base) :]
        ordered = list(others) == sort_levels(others)
        levels = sort_levels([*others, *new]) if ordered else [*others, *new]
        return replace(self, levels=(*self.base, *levels))

    def columns_of(self, wider: Category) -> Array:
        """Columns (1 + m, 1 + m') with the levels of another one, by these; ones are in front."""
        mine, its = self.columns, wider.columns
        matrix = np.zeros((1 + len(mine), 1 + len(its)))
        matrix[1:, 1:] = [[one == other for other in its] for one in mine]
        for level in self.base:  # which a row has where it has none of the others
            base = np.array([f"{self.name}={level}" == other for other in its], dtype=np.float64)
            matrix[0, 1:], matrix[1:, 1:] = base, matrix[1:, 1:] - base
        matrix[0, 0] = 1.0
        return matrix


@dataclass(frozen=True)
class Categories:
    """The features of a model that are categories, of ``n_features`` in all.

    Examples
    --------
    >>> found = Categories(2, (Category(0, "zone", ("a", "b")),))
    >>> found.names
    ['zone=a', 'zone=b', 'zone=(other)']
    >>> found.columns(np.array([[2.0, 7.0], [0.0, 8.0]]))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """

    n_features: int
    each: tuple[Category, ...]

    @property
    def numbers(self) -> list[int]:
        """Places of the features that are numbers."""
        places = {one.place for one in self.each}
        return [place for place in range(self.n_features) if place not in places]

    @property
    def names(self) -> list[str]:
        """Names of the columns, category after category."""
        return [name for one in self.each for name in one.columns]

    def columns(self, X: Array) -> Array:
        """Columns (n, m) of zeros and ones at the rows ``X`` (n, d) of features."""
        width, rows = sum(one.width for one in self.each), np.arange(len(X))
        check_memory(
            8.0 * len(X) * width,
            f"{width:,} columns of levels in {len(X):,} rows",
            "learn them in parts, by partial_fit",
        )
        ones = np.zeros((len(X), width))
        first = 0
        for one in self.each:
            values = np.asarray(X[:, one.place])
            numbers = values.astype(np.intp)
            if (numbers != values).any() or numbers.max(initial=0) > len(one.levels):
                raise ValueError(f"column {one.name!r} has numbers that stand for no level")
            if one.left_out:
                one.check_known(numbers)
                there = numbers > 1
                ones[rows[there], first + numbers[there] - 2] = 1.0
            else:  # what is not known, 0, comes last
                ones[rows, first + (numbers - 1) % one.width] = 1.0
            first += one.width
        return ones

    def check_known(self, X: Array) -> None:
        """Raise ``ValueError`` where a row of features (n, d) has a level that is not known."""
        for one in self.each:
            one.check_known(np.asarray(X[:, one.place]))

    def know(self, x: Array) -> bool:
        """Return True if all levels of a row of features (d,) are known."""
        return all(x[one.place] > 0.0 for one in self.each)

    def columns_in(self, wider: Categories, before: int) -> NewColumns:
        """How ``before`` columns and those of the levels become the same with more levels.

        Raises
        ------
        ValueError
            If the levels of a category come in another order there.
        """
        each = list(zip(self.each, wider.each, strict=True))
        if any(one.base != other.base for one, other in each):
            blocks = [one.columns_of(other) for one, other in each]
            return ChangedColumns(join_columns([np.eye(before), *blocks]))
        found = {name: place for place, name in enumerate(wider.names)}
        places = np.array([found[name] for name in self.names], dtype=np.intp)
        if (np.diff(places) < 0).any():
            raise ValueError(
                "the levels of a category come in different orders: give both models the same "
                "categories, in one order"
            )
        return JoinedColumns(np.append(np.arange(before), before + places), before + len(found))


def sort_levels(levels: Sequence[str]) -> list[str]:
    """The levels in order: numbers by their size, before text.

    Examples
    --------
    >>> sort_levels(["10", "b", "9", "a"])
    ['9', '10', 'a', 'b']
    """

    def order(level: str) -> tuple[float, str]:
        try:
            value = float(level)
        except ValueError:
            return np.inf, level
        return (value, level) if value == value else (np.inf, level)

    return sorted(levels, key=order)
