"""Scores by slice of a feature: does the model hold everywhere, or only on average?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.evaluation import _scores as column
from posterity.evaluation._scores import Column, n_columns

FloatArray = NDArray[np.float64]
Sliced = Mapping[Any, int | ArrayLike]


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
    """

    feature: str
    edges: FloatArray
    n_rows: NDArray[np.int64]
    n_unscored: NDArray[np.int64]
    mae: FloatArray
    rmse: FloatArray
    log_score: FloatArray
    crps: FloatArray
    coverage: dict[float, FloatArray]
    width: dict[float, FloatArray]

    def __len__(self) -> int:
        return len(self.n_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The slices in words, as in "1 to 2"."""
        edges = [f"{edge:.6g}" for edge in self.edges]
        if not edges:
            return ("all",)
        between = [f"{low} to {high}" for low, high in pairwise(edges)]
        return (f"up to {edges[0]}", *between, f"above {edges[-1]}")


class SliceLedger:
    """Sums of scores by slice of one feature."""

    def __init__(self, feature: Any, edges: int | ArrayLike, levels: Sequence[float]) -> None:
        self.feature = feature
        self._n_columns = n_columns(levels)
        self._n_wanted: int | None = None
        if isinstance(edges, int | np.integer):
            if edges < 1:
                raise ValueError(f"slices of {feature!r}: give at least 1, got {edges}")
            self._n_wanted = int(edges)
            return
        self._begin(_checked_edges(feature, edges))

    def _begin(self, edges: FloatArray) -> None:
        self.edges = edges
        self.sums = np.zeros((len(edges) + 1, self._n_columns))

    def add(self, X: Any, columns: Sequence[Column]) -> None:
        """Add the next rows."""
        values = _feature(X, self.feature)
        if self._n_wanted is not None:
            shares = np.arange(1, self._n_wanted) / self._n_wanted
            self._begin(np.unique(np.quantile(values, shares)))
            self._n_wanted = None
        place = np.searchsorted(self.edges, values, side="left")
        for i, scores in enumerate(columns):
            self.sums[:, i] += np.bincount(place, weights=scores, minlength=len(self.sums))

    def result(self, means: dict[str, Any]) -> Slices:
        """The slices, given the means of their sums."""
        rows, scored = self.sums[:, column.ROWS], self.sums[:, column.SCORED]
        return Slices(
            feature=str(self.feature),
            edges=self.edges,
            n_rows=rows.astype(np.int64),
            n_unscored=(rows - scored).astype(np.int64),
            **means,
        )


def _checked_edges(feature: Any, edges: ArrayLike) -> FloatArray:
    checked = np.asarray(edges, dtype=np.float64)
    if checked.ndim != 1 or not np.all(np.isfinite(checked)) or np.any(np.diff(checked) <= 0.0):
        raise ValueError(
            f"slices of {feature!r}: give a number of slices, or their edges, which must be finite "
            f"and increasing; got {edges!r}"
        )
    return checked


def _feature(X: Any, feature: Any) -> FloatArray:
    """One column of an array, by number, or of a data frame, by name or number."""
    names = list(X.columns) if hasattr(X, "columns") else None
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


__all__ = ["Slices"]
