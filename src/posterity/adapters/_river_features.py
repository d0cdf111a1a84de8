"""Names of features in posterity's estimators for river."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from river.utils import dataframe
from sklearn.base import BaseEstimator

from posterity.adapters._rows import NamedRows, check_values
from posterity.aliases import Array, Estimator
from posterity.linear.levels import is_category, read_words
from posterity.linear.named import get_feature_names


def get_shared_parameters(wrapper: Any, model: BaseEstimator, kind: Any) -> dict[str, Any]:
    """The parameters of ``model`` that ``wrapper`` has; the others must be as they are by default.

    Raises as :meth:`NamedFeatures.from_estimator` says.
    """
    if type(model) is not kind:
        raise TypeError(
            f"{wrapper.__name__} of river goes on from a posterity {kind.__name__}, not from a "
            f"{type(model).__name__}"
        )
    given, usual = model.get_params(deep=False), kind().get_params(deep=False)
    taken = inspect.signature(wrapper).parameters
    for name, value in given.items():
        if name not in taken and value is not usual[name] and value != usual[name]:
            raise ValueError(
                f"{name} is {value!r}: river's {wrapper.__name__} has no such setting, so it can't "
                "go on from this model"
            )
    return {name: value for name, value in given.items() if name in taken}


def read_columns(frame: Any) -> tuple[list[Any], Array]:
    """Names, and finite values (n, m), of the columns of a frame.

    Each level of a column of text, or of a category type, has a column of zeros and ones.
    """
    words = {
        name: read_words(column, name, "error")
        for name in frame.columns
        if is_category(column := frame[name].to_native())
    }
    plain = frame.drop(list(words))
    names, parts = list[Any](plain.columns), [np.empty((len(frame), 0))]
    if names:
        parts.append(dataframe.to_numpy(plain))
    for name, found in words.items():
        levels = np.unique(found.places)
        names += [f"{name}={found.words[place]}" for place in levels]
        parts.append((found.places[:, None] == levels).astype(np.float64))
    values = np.hstack(parts)
    check_values(names, values)
    return names, values


class NamedFeatures:
    """Base of both estimators that handles the names of features."""

    _rows: NamedRows[Any]

    # Parameters that need one number for all features, because more may join.
    _SCALAR_PARAMETERS: ClassVar[tuple[str, ...]] = ("prior_mean", "prior_precision")

    def to_estimator(self) -> Estimator:
        """A copy as posterity's own scikit-learn estimator, to save, plot, merge or export.

        Its features stand in the order in which they first came, sorted where they came together,
        and have their names if all are text.
        """
        rows = self._rows
        model = copy.deepcopy(rows.model)
        names = list(rows.columns)
        if names and all(isinstance(name, str) for name in names):
            model._set_features(len(names), np.array(names, dtype=object))
        return model

    @classmethod
    def from_estimator(cls, model: BaseEstimator) -> Self:
        """Convert one of posterity's own estimators back to river's.

        ``model`` is copied; it has learned rows whose features have names.

        Raises
        ------
        TypeError
            If ``model`` is of another class than this one's :meth:`to_estimator` returns.
        ValueError
            If it has a setting that river's estimator has not, or features without names.
        """
        made = cls(**get_shared_parameters(cls, model, type(cls()._rows.model)))
        if model._posterior_or_none is None:
            return made
        names = get_feature_names(model)
        if names is None:
            raise ValueError(
                "the model's features have no names: let it learn from data frames or mappings"
            )
        if model._categories is not None:
            raise ValueError(
                "the model takes some features as categories, and river's estimators take numbers: "
                "code them by river's OneHotEncoder"
            )
        inner = copy.deepcopy(model)
        del inner.feature_names_in_
        made._rows.model = inner
        made._rows.columns = {name: column for column, name in enumerate(names)}
        return made

    def _add_features(self, names: object) -> None:
        """Have a column for each of these features."""
        if self._rows.has_learned:
            self._rows.grow(names)
        else:
            self._check_one_for_all()
            self._rows.begin(names)

    def _check_one_for_all(self) -> None:
        for parameter in self._SCALAR_PARAMETERS:
            given = getattr(self, parameter)
            if np.shape(given) or isinstance(given, Mapping):
                what = (
                    "is by name" if isinstance(given, Mapping) else f"has shape {np.shape(given)}"
                )
                raise ValueError(
                    f"{parameter} {what}: give one number for all features, as more may join later"
                )

    def _learned_frame(self, X: Any) -> tuple[Array, Any]:
        """The rows of a data frame, whose features are known from now on, and the frame."""
        frame = dataframe.into_frame(X)
        names, values = read_columns(frame)  # checked before anything changes
        self._add_features(names)
        return self._rows.select_frame_values(names, values), frame

    def _read_frame(self, X: Any) -> tuple[Array, Array, Any]:
        """The rows of a data frame, the sums of the features not known (n,), and the frame."""
        frame = dataframe.into_frame(X)
        names, values = read_columns(frame)
        rows = self._rows.select_frame_values(names, values)
        unknown = [i for i, name in enumerate(names) if name not in self._rows.columns]
        return rows, values[:, unknown].sum(axis=1), frame
