"""Scores by slice of a feature: does the model hold everywhere, or only on average?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.aliases import Array
from posterity.evaluation._scores import Column, n_columns
from posterity.kernel.tables import find_table


@dataclass(frozen=True)
class SlicedNumbers:
    """Slices of a numeric feature, under a name of their own.

    Attributes
    ----------
    feature : str or int
        Its name in a data frame, or its number.
    edges : int or array_like
        So many slices of equal numbers of rows in the first batch, or increasing edges.
    """

    feature: Any
    edges: int | ArrayLike = 4

    def values(self, X: Any) -> Array:
        """The feature (n,)."""
        return _get_feature(X, self.feature)


@dataclass(frozen=True)
class SlicedLevels:
    """Slices by the levels of a category that is encoded as features of zeros and ones.

    Attributes
    ----------
    features : tuple of str or int
        The features, one for each level but the first in `names`.
    names : tuple of str
        Rows with zeros in all features are of the first.

    Examples
    --------
    >>> SlicedLevels((0, 1), ("red", "green", "blue")).values(np.eye(3)[:, :2])
    array([1., 2., 0.])
    """

    features: tuple[Any, ...]
    names: tuple[str, ...]

    @property
    def edges(self) -> Array:
        """Between the places of the levels."""
        return np.asarray(np.arange(len(self.features)) + 0.5, dtype=np.float64)

    def values(self, X: Any) -> Array:
        """The place of each row's level (n,)."""
        place = np.zeros(X.shape[0])
        for k, feature in enumerate(self.features, start=1):
            place[_get_feature(X, feature) != 0.0] = k
        return place


Sliced = Mapping[Any, int | ArrayLike | SlicedNumbers | SlicedLevels]


@dataclass(frozen=True, eq=False)
class Slices:
    """Scores in slices of one feature.

    Attributes
    ----------
    feature : str
        Name, or number, of the feature.
    edges : (s - 1,) array
        Borders of the slices, in units of the feature: slice k holds values above edge k - 1 and up
        to edge k.
    n_rows, n_unscored : (s,) int arrays
        Rows in the slice, and those of them whose prediction was still flat.
    mae, rmse, log_score, crps : (s,) arrays
        As in :class:`ValidationResult`; NaN where there was no row.
    coverage, width : dict of level to (s,) array
    levels : tuple of str
        Levels of a category, which has a slice for each.
    """

    feature: str
    edges: Array
    n_rows: NDArray[np.int64]
    n_unscored: NDArray[np.int64]
    mae: Array
    rmse: Array
    log_score: Array
    crps: Array
    coverage: dict[float, Array]
    width: dict[float, Array]
    levels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.n_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The slices in words, as in "1 to 2"."""
        if self.levels:
            return self.levels
        edges = [f"{edge:.6g}" for edge in self.edges]
        if not edges:
            return ("all",)
        between = [f"{low} to {high}" for low, high in pairwise(edges)]
        return (f"up to {edges[0]}", *between, f"above {edges[-1]}")


@dataclass(frozen=True, eq=False)
class SliceSums:
    """Sums of scores (s, c) in the slices of one feature, and how these are distinguished."""

    edges: Array
    sums: Array
    levels: tuple[str, ...] = ()


class SliceLedger:
    """Sums of scores by slice of one feature."""

    def __init__(self, name: Any, column: Any, levels: Sequence[float]) -> None:
        self.name = str(name)
        self._column = (
            column
            if isinstance(column, SlicedNumbers | SlicedLevels)
            else SlicedNumbers(name, column)
        )
        self._n_columns = n_columns(levels)
        self._n_wanted: int | None = None
        edges = self._column.edges
        if isinstance(edges, int | np.integer):
            if edges < 1:
                raise ValueError(f"slices of {name!r}: give at least 1, got {edges}")
            self._n_wanted = int(edges)
            return
        self._begin(_check_edges(name, edges))

    def _begin(self, edges: Array) -> None:
        self._edges = edges
        self._sums = np.zeros((len(edges) + 1, self._n_columns))

    def add(self, X: Any, columns: Sequence[Column]) -> None:
        """Add the next rows."""
        values = self._column.values(X)
        if self._n_wanted is not None:
            shares = np.arange(1, self._n_wanted) / self._n_wanted
            edges = np.unique(np.quantile(values, shares))
            # A feature that is mostly at its highest value would have an empty slice above it.
            self._begin(edges[edges < values.max()])
            self._n_wanted = None
        place = np.searchsorted(self._edges, values, side="left")
        for i, scores in enumerate(columns):
            self._sums[:, i] += np.bincount(place, weights=scores, minlength=len(self._sums))

    def total(self) -> SliceSums:
        """The sums so far."""
        levels = self._column.names if isinstance(self._column, SlicedLevels) else ()
        return SliceSums(self._edges, self._sums.copy(), levels)


def _check_edges(feature: object, edges: ArrayLike) -> Array:
    checked = np.asarray(edges, dtype=np.float64)
    if checked.ndim != 1 or not np.all(np.isfinite(checked)) or np.any(np.diff(checked) <= 0.0):
        raise ValueError(
            f"slices of {feature!r}: give a number of slices, or their edges, which must be finite "
            f"and increasing; got {edges!r}"
        )
    return checked


def _get_feature(X: Any, feature: Any) -> Array:
    """One column of an array, by number, or of a data frame, by name or number."""
    table = find_table(X)
    names = None if table is None else table.names
    if names is not None and feature in names:
        return np.asarray(X[feature], dtype=np.float64)
    n_features = X.shape[1]
    if isinstance(feature, str) or not 0 <= feature < n_features:
        known = "they are given by number" if names is None else f"there are {', '.join(names)}"
        raise ValueError(
            f"slices: there is no feature {feature!r} among the {n_features} of X; {known}"
        )
    if names is not None:
        return np.asarray(X[names[feature]], dtype=np.float64)
    values = X[:, feature]
    return np.asarray(values.toarray().ravel() if hasattr(values, "toarray") else values)
