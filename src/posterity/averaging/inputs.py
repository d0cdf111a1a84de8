"""Check what users pass to an average of models, and hand each model its rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, validate_data

from posterity.aliases import Array
from posterity.factor.usable import LARGEST
from posterity.kernel.tables import find_table, read_names
from posterity.kernel.values import read_floats, read_scalar
from posterity.linear.coding import takes_categories
from posterity.linear.inputs import read_points as read_array
from posterity.linear.inputs import read_rows, read_target, read_weights, refuse_unusable
from posterity.linear.named import get_feature_names


@dataclass(frozen=True)
class Rows:
    """Rows as they were given, for pipelines, and as an array (n, m), for all other models.

    Where models take categories there is no array, and all get the rows as they were given.
    """

    given: Any
    array: Array | None
    y: Array
    weights: Array | None = None

    def of(self, model: BaseEstimator) -> Any:
        """The rows as this model takes them."""
        if self.array is None:
            return self.given
        framed = isinstance(model, Pipeline) and find_table(self.given) is not None
        return self.given if framed else self.array

    def with_target(self, y: float, weight: float) -> Rows:
        """The same row, to be learned."""
        target = np.array([read_scalar(y, "y")])
        if not abs(target[0]) <= LARGEST:
            raise ValueError(f"y is {target[0]}: it must be finite, and at most {LARGEST:g}")
        weights = None if weight == 1.0 else read_weights([weight], 1)
        return replace(self, y=target, weights=weights)


# ---- parameters ----------------------------------------------------------------------------------


def are_named(models: object) -> bool:
    """Return True if models are given as (name, estimator)."""
    return isinstance(models, list | tuple) and all(
        isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], str)
        for item in models
    )


def name_models(models: Any) -> list[tuple[str, Any]]:
    """Models by name; by default that of the class, numbered where there are several."""
    if are_named(models):
        return [(name, model) for name, model in models]
    if not isinstance(models, list | tuple):
        return []
    names = [type(model).__name__.lower() for model in models]
    count, used = Counter(names), Counter[str]()
    for i, name in enumerate(names):
        if count[name] > 1:
            used[name] += 1
            names[i] = f"{name}-{used[name]}"
    return list(zip(names, models, strict=True))


def log_prior(prior_weights: ArrayLike | None, n_models: int) -> Array:
    """Logs (k,) of prior probabilities."""
    if n_models == 0:
        raise ValueError(
            "models must be a list with at least one estimator, or pairs (name, estimator)"
        )
    if prior_weights is None:
        return np.full(n_models, -math.log(n_models))
    weights = read_floats(prior_weights, "prior_weights")
    if weights.shape != (n_models,):
        raise ValueError(
            f"prior_weights has shape {weights.shape}: expected ({n_models},), one for each model"
        )
    if not (weights >= 0.0).all() or not 0.0 < weights.sum() < math.inf:
        raise ValueError(
            f"prior_weights is {weights.tolist()}: weights must be finite and not negative, and "
            "not all zero"
        )
    with np.errstate(divide="ignore"):
        logs: Array = np.log(weights / weights.sum())
    return logs


def check_persistence(persistence: float) -> float:
    """A number above 0 and at most 1."""
    if not 0.0 < persistence <= 1.0:
        raise ValueError(f"persistence is {persistence}: it must be above 0 and at most 1")
    return float(persistence)


# ---- rows ----------------------------------------------------------------------------------------


def read(
    average: BaseEstimator, X: Any, y: Any, sample_weight: ArrayLike | None, *, reset: bool
) -> Rows:
    """Rows to learn, checked; with ``reset`` the average takes the names of the features."""
    if not _requires_array(average, X):
        if y is None:
            raise ValueError("This model requires y to be passed, but the target y is None")
        validate_data(average, X, reset=reset, skip_check_array=True)
        target = read_target(y)
        check_consistent_length(X, target)
        refuse_unusable(average, np.empty((0, 0)), target[:, None])
        return Rows(X, None, target, read_weights(sample_weight, len(target)))
    array, column, weights = read_rows(average, X, y, sample_weight, reset=reset)
    refuse_unusable(average, array, column)
    return Rows(X, array, column[:, 0], weights)


def read_points(average: BaseEstimator, X: Any) -> Rows:
    """Rows to predict at, checked."""
    if _requires_array(average, X):
        return Rows(X, read_array(average, X), np.empty(0))
    validate_data(average, X, reset=False, skip_check_array=True)
    return Rows(X, None, np.empty(0))


def read_one(
    average: BaseEstimator, x: ArrayLike | Mapping[str, float], *, reset: bool = False
) -> Rows:
    """One row, of an array (m,) or a mapping; with ``reset`` the average takes its features."""
    named, names = read_names(x), None
    if named is not None:
        names = list(named) if reset else _names(average, named)
        texts = reset and any(isinstance(value, str) for value in named.values())
        if texts or takes_levels(average):
            return _read_levels(average, {name: named[name] for name in names}, reset=reset)
        values = read_floats([named[name] for name in names], "x").reshape(1, -1)
    else:
        values = np.array(read_floats(x, "x")).reshape(1, -1)
    if reset:
        average.n_features_in_ = values.shape[1]
        if names is not None:
            average.feature_names_in_ = np.array(names, dtype=object)
    elif values.shape[1] != average.n_features_in_:
        raise ValueError(
            f"x has {values.shape[1]} values, but the model has {average.n_features_in_} features: "
            "give a value for each"
        )
    refuse_unusable(average, values)
    return Rows(_as_frame(average, values), values, np.empty(0))


def takes_levels(average: BaseEstimator, X: Any = None) -> bool:
    """Return True if the models of an average, or the model of a wrapper, take categories."""
    return any(takes_categories(model, X) for model in _list_models(average))


def _list_models(average: BaseEstimator) -> list[Any]:
    if hasattr(average, "model"):
        return [getattr(average, "model_", average.model)]
    return getattr(average, "models_", [model for _, model in name_models(average.models)])


def _read_levels(average: BaseEstimator, x: dict[str, Any], *, reset: bool) -> Rows:
    """One row of numbers and levels: a data frame, as models take it."""
    frame = _import_pandas("these models take categories").DataFrame([x])
    validate_data(average, frame, reset=reset, skip_check_array=True)
    return Rows(frame, None, np.empty(0))


def _requires_array(average: BaseEstimator, X: Any) -> bool:
    """Return True if rows must be numbers: pipelines may turn other things into numbers first."""
    if takes_levels(average, X):
        return False
    if not all(isinstance(model, Pipeline) for model in _list_models(average)):
        return True
    return find_table(X) is None and getattr(X, "dtype", np.dtype(float)).kind != "O"


def _names(average: BaseEstimator, x: Mapping[str, float]) -> list[str]:
    """Names of the features, in their order, all of them in ``x`` and no others."""
    names = get_feature_names(average)
    if names is None:
        raise ValueError(
            "x has names, but the model learned without feature names: give x as an array, or "
            "fit on a data frame first"
        )
    missing = [name for name in names if name not in x]
    unknown = [name for name in x if name not in set(names)]
    if missing or unknown:
        raise ValueError(
            f"x has no {missing[0]!r}: give every feature a value"
            if missing
            else f"x has {unknown[0]!r}, which is not a feature: leave it out"
        )
    return list(names)


def _as_frame(average: BaseEstimator, values: Array) -> Any:
    """A data frame of the row if a pipeline was fitted on one, and so expects its names."""
    pipelines = [m for m in getattr(average, "models_", ()) if isinstance(m, Pipeline)]
    if not any(get_feature_names(model) is not None for model in pipelines):
        return values
    pandas = _import_pandas("these pipelines were fitted on a data frame")
    return pandas.DataFrame(values, columns=list(average.feature_names_in_))


def _import_pandas(why: str) -> Any:
    try:
        return import_module("pandas")
    except ImportError:
        raise ImportError(
            f"{why}: for single rows install pandas, or give data frames of one row to "
            "partial_fit and predict"
        ) from None
