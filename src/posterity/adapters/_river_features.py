"""What posterity's estimators for river do with the names of features."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from river.utils import dataframe

from posterity.adapters._rows import NamedRows, check_values

Array = NDArray[np.float64]


class NamedFeatures:
    """What both estimators do with names."""

    _rows: NamedRows[Any]

    # Parameters that need one number for all features, because more may join.
    _ONE_FOR_ALL: ClassVar[tuple[str, ...]] = ("prior_mean", "prior_precision")

    def to_estimator(self) -> Any:
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

    def _know(self, names: Any) -> None:
        """Have a column for each of these features."""
        if self._rows.begun:
            self._rows.grow(names)
        else:
            self._check_one_for_all()
            self._rows.begin(names)

    def _check_one_for_all(self) -> None:
        for parameter in self._ONE_FOR_ALL:
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
        names, values = list[Any](frame.columns), dataframe.to_numpy(frame)
        check_values(names, values)  # before anything changes
        self._know(names)
        return self._rows.select_frame_values(names, values), frame

    def _unfit(self, X: Any) -> tuple[Array, Array, Any]:
        """The rows of a data frame, the sums of the features not known (n,), and the frame."""
        frame = dataframe.into_frame(X)
        names, values = list[Any](frame.columns), dataframe.to_numpy(frame)
        rows = self._rows.select_frame_values(names, values)
        unknown = [i for i, name in enumerate(names) if name not in self._rows.columns]
        return rows, values[:, unknown].sum(axis=1), frame
