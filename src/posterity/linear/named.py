"""Rows that need no reading, for those who make them: a table's batches, thousands of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from posterity.aliases import Array


def get_feature_names(model: BaseEstimator) -> Any:
    """The names of the features that a model has learned; None where rows come without names."""
    return getattr(model, "feature_names_in_", None)


def has_learned(model: BaseEstimator) -> bool:
    """Return True if a model, of whatever package, has learned features."""
    return hasattr(model, "n_features_in_")


def explain_unlearned(model: BaseEstimator) -> NotFittedError:
    """What to raise where a model is asked before it has learned."""
    return NotFittedError(
        f"This {type(model).__name__} has learned nothing yet: call fit, partial_fit, "
        "predict_then_learn or learn_one first"
    )


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows (n, m), n >= 1, C-contiguous float64, with the names of their columns.

    Models take it for ``X`` once they have learned features of these names. They then keep from
    copying it, which is what they do with a data frame.
    """

    values: Array
    names: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, m)."""
        return self.values.shape

    def read_by(self, model: BaseEstimator) -> Array:
        """The rows; raises ``ValueError`` unless the model has these features in this order."""
        known = list_feature_names(model)
        if known != self.names:
            raise ValueError(
                f"the rows have columns {', '.join(map(repr, self.names))}; the model has learned "
                f"{', '.join(repr(str(name)) for name in known) or 'no names'}"
            )
        return self.values


def wrap_read_rows(model: BaseEstimator, X: Array) -> Array | NamedRows:
    """Rows that were read already, as the methods of ``model`` take them."""
    names = list_feature_names(model)
    if not names and not hasattr(model, "categories_"):
        return X
    return NamedRows(np.ascontiguousarray(X), names)


def list_feature_names(model: BaseEstimator) -> tuple[str, ...]:
    """The same names, none where rows come without."""
    names = get_feature_names(model)
    return () if names is None else tuple(names)
