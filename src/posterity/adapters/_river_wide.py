"""Diagonal models as river estimators: any number of keys, text as levels of its key."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from river import base
from river.utils import dataframe
from sklearn.base import BaseEstimator

from posterity import sparse
from posterity.adapters._river_distribution import make_river_distribution
from posterity.adapters._river_features import get_shared_parameters
from posterity.aliases import Estimator
from posterity.forgetting import Stabilized
from posterity.sparse.checks import Interactions

Row = Mapping[Any, Any]


def _name_columns(X: Any) -> Any:
    """The frame with its columns named by text: the keys of rows are, as river's rows have them."""
    if all(isinstance(name, str) for name in X.columns):
        return X
    return X.set_axis([str(name) for name in X.columns], axis=1)


class _Wide:
    """Base of both: it holds posterity's own model, made of the same parameters."""

    _model: Any

    def learn_one(self, x: Row, y: Any, w: float = 1.0) -> None:
        """Learn one row, a mapping of numbers and text; weight 2 is a row of half the noise.

        Raises
        ------
        ValueError, TypeError
            If a value or the target can't be used; nothing has changed then.
        """
        self._model.learn_one(x, y, w)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame in order."""
        first = self._model._posterior_or_none is None and isinstance(self, base.Classifier)
        labels = dataframe.into_series(y).to_list()
        named = first and all(isinstance(label, bool | np.bool_) for label in labels)
        how = {"classes": [False, True]} if named else {}
        self._model.partial_fit(_name_columns(X), labels, **how)

    def to_estimator(self) -> Estimator:
        """A copy as posterity's own estimator, to save or merge."""
        return deepcopy(self._model)

    @classmethod
    def from_estimator(cls, model: BaseEstimator) -> Self:
        """Convert a copy of one of posterity's own estimators back to river's.

        Raises
        ------
        TypeError
            If ``model`` is of another class than :meth:`to_estimator` returns.
        ValueError
            If it has a setting that river's estimator has not.
        """
        made = cls()
        settings = get_shared_parameters(cls, model, type(made._model))
        made = cls(**settings)
        made._model = deepcopy(model)
        return made


@dataclass(eq=False, repr=False)
class DiagonalLinearRegression(_Wide, base.MiniBatchRegressor):
    """Linear regression of many features, each with a variance of its own, for river.

    Parameters
    ----------
    prior_precision
        "auto": a scale for each key is learned; or a number.
    noise_precision
        1 / variance of the noise; None: learned.
    fit_intercept
        Whether to learn an intercept.
    interactions
        2: products of all pairs of features, too; or a list of pairs of keys.
    hash_size
        Hash names into so many places, so that memory is bounded; None: a vocabulary that grows.
    forgetting
        :class:`posterity.forgetting.Stabilized`, as "stabilized:0.99" too, or None.

    Examples
    --------
    >>> from posterity.adapters.river import DiagonalLinearRegression
    >>> model = DiagonalLinearRegression(noise_precision=100.0)
    >>> for _ in range(5):
    ...     model.learn_one({"shop": "north"}, 3.0)
    ...     model.learn_one({"shop": "south", "holiday": 1}, 5.0)
    >>> round(model.predict_one({"shop": "north"}), 1)
    3.0
    """

    prior_precision: float | str = "auto"
    noise_precision: float | None = None
    fit_intercept: bool = True
    interactions: Interactions = None
    hash_size: int | None = None
    forgetting: Stabilized | str | None = None

    def __post_init__(self) -> None:
        self._model = sparse.DiagonalLinearRegression(**vars(self))

    def predict_one(self, x: Row, with_dist: bool = False) -> Any:
        """Mean at ``x``, or with ``with_dist`` the distribution of a new target there."""
        if not with_dist:
            return self._model.predict_one(x)
        model = self._model
        if model._posterior_or_none is None:
            model = model._copy_unfitted()
            model._begin(None)
        return make_river_distribution(model.predict_distribution([x]), model.n_observations_)

    def predict_many(self, X: Any) -> Any:
        """Means at the rows of a data frame, as a series of its kind."""
        frame = dataframe.into_frame(X)
        means = (
            [0.0] * len(frame)
            if self._model._posterior_or_none is None
            else self._model.predict(_name_columns(X))
        )
        return dataframe.to_native_series(means, name=None, like=frame)


@dataclass(eq=False, repr=False)
class DiagonalLogisticRegression(_Wide, base.MiniBatchClassifier):
    """Logistic regression of many features, each with a variance of its own, for river.

    Parameters as of :class:`DiagonalLinearRegression`, without noise.

    Examples
    --------
    >>> from posterity.adapters.river import DiagonalLogisticRegression
    >>> model = DiagonalLogisticRegression(interactions=2)
    >>> for _ in range(5):
    ...     model.learn_one({"site": "a", "ad": "x"}, True)
    ...     model.learn_one({"site": "b", "ad": "x"}, False)
    >>> model.predict_one({"site": "a", "ad": "new"})
    True
    """

    prior_precision: float | str = "auto"
    fit_intercept: bool = True
    interactions: Interactions = None
    hash_size: int | None = None
    forgetting: Stabilized | str | None = None

    def __post_init__(self) -> None:
        self._model = sparse.DiagonalLogisticRegression(**vars(self))

    @property
    def _multiclass(self) -> bool:
        return False

    def learn_one(self, x: Row, y: Any, w: float = 1.0) -> None:
        """Learn one row and its label, a truth value or one of two; raises as the regression.

        Examples
        --------
        >>> model = DiagonalLogisticRegression()
        >>> model.learn_one({"site": None}, True)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: 'site' is None in row 0: leave the key out if its value is unknown...
        """
        y = bool(y) if isinstance(y, np.bool_) else y
        if self._model._posterior_or_none is None and isinstance(y, bool):
            self._model.partial_fit([x], [y], [w], classes=[False, True])
        else:
            self._model.learn_one(x, y, w)

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """Probability of each label, integrated over the posterior."""
        probabilities: dict[Any, float] = self._model.predict_proba_one(x)
        return probabilities or {False: 0.5, True: 0.5}

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities at the rows of a data frame: a column for each label."""
        frame, model = dataframe.into_frame(X), self._model
        if model._posterior_or_none is None:
            return dataframe.to_native_frame({}, like=frame)
        probabilities = model.predict_proba(_name_columns(X))
        columns = {label: probabilities[:, k] for k, label in enumerate(model.classes_.tolist())}
        return dataframe.to_native_frame(columns, like=frame)
