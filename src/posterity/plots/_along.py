"""Curves along one feature of a model, the others held where they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Feature:
    """Column ``index`` of ``at`` (d,), which says where the other features are held."""

    index: int
    name: str
    at: Array

    @classmethod
    def of(cls, model: Any, feature: int | str, at: ArrayLike | None) -> Feature:
        """The feature of that number or name; raises ``ValueError`` if there is none."""
        count = int(model.n_features_in_)
        given = getattr(model, "feature_names_in_", None)
        names = [f"x{index}" for index in range(count)] if given is None else list(given)
        if isinstance(feature, str):
            if feature not in names:
                raise ValueError(
                    f"feature is {feature!r}: give one of the model's features, {', '.join(names)}"
                )
            feature = names.index(feature)
        if not 0 <= feature < count:
            raise ValueError(f"feature is {feature}: give 0 to {count - 1}")
        if at is None and count > 1:
            raise ValueError(
                f"the model has {count} features: give at=, a row with the values at which all "
                f"but {names[feature]} are fixed"
            )
        row = np.zeros(1) if at is None else np.asarray(at, dtype=np.float64)
        if row.shape != (count,):
            raise ValueError(f"at has shape {row.shape}: expected ({count},), one for each feature")
        return cls(int(feature), str(names[feature]), row)

    def rows(self, x: Array) -> Array:
        """(n, d) rows whose feature runs over ``x`` (n,)."""
        rows = np.tile(self.at, (len(x), 1))
        rows[:, self.index] = x
        return rows

    def points(self, data: tuple[Any, ArrayLike]) -> tuple[Array, Array]:
        """Values of the feature (n,) and of the target (n,) in the rows of ``data``."""
        X, y = np.asarray(data[0], dtype=np.float64), np.asarray(data[1], dtype=np.float64)
        return (X if X.ndim == 1 else X[:, self.index]), y


def unnamed(call: Callable[..., Any], *arguments: Any) -> Any:
    """Call with arrays what may have learned from data frames: the order of features is theirs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return call(*arguments)


def scatter(ax: Any, points: tuple[Array, Array]) -> None:
    """Draw rows: black, so that they stand out on any band."""
    x, y = points
    if len(x):
        size = 26.0 if len(x) <= 100 else 8.0
        ax.scatter(
            x, y, s=size, color="black", edgecolor="white", linewidth=0.6, zorder=5, label="rows"
        )
