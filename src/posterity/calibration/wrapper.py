"""Base of wrappers of a model: rows, predictions before each of them, and one step."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags

from posterity.aliases import Array, Estimator
from posterity.averaging import inputs
from posterity.averaging.base import PredictsIntervals
from posterity.averaging.members import (
    check_member,
    copy_unfitted,
    get_final_step,
    transform_for_last,
)
from posterity.distributions._limits import interval_ends
from posterity.factor import Rows
from posterity.linear import BayesianLinearRegression
from posterity.linear.inputs import (
    read_times,
    refuse_no_weight,
)
from posterity.linear.named import explain_unlearned, has_learned, wrap_read_rows
from posterity.transaction import atomic, make_branch

Given = tuple[Any, Array, Array | None]

# What is learned, and replaced in one step.
LEARNED_ATTRIBUTES = ("model_", "_state", "n_features_in_", "feature_names_in_")


class OnlineWrapper(PredictsIntervals, MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """A scikit-learn estimator around a model that learns, and a state that watches it.

    Subclasses say how the state begins, learns, and shapes a prediction.
    """

    model: Estimator
    model_: Any
    n_features_in_: int
    # None until something was learned: the class attribute stands in for a fresh wrapper's.
    _state: Any = None

    # ---- what subclasses say ---------------------------------------------------------------------

    def _make_state(self) -> Any:
        """The state before any row; parameters are checked here."""
        raise NotImplementedError

    def _calibrate_then_learn(
        self, predictive: Any, y: Array, weights: Array | None, return_predictions: bool
    ) -> Any:
        """Learn predictions of rows and what came; returns the calibrated ones, if asked for."""
        raise NotImplementedError

    def _calibrate(self, distribution: Any) -> Any:
        """A prediction of rows to come."""
        raise NotImplementedError

    # ---- learning --------------------------------------------------------------------------------

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **how: Any) -> Self:
        """Learn these rows in their order, starting anew.

        Each is predicted before it is learned, which is what the calibration learns from.

        Parameters
        ----------
        X : (n, m) array or data frame
        y : (n,) array
        sample_weight : (n,) array, optional
            Weights >= 0, for the model; to the calibration a row of weight 0 is no row, and all
            others are one row each.
        **how
            Passed on to the model's ``predict_then_learn``, such as ``times``.

        Raises
        ------
        ValueError
            If a parameter is out of its range, or the model refuses the rows: see there.
        TypeError
            If the model lacks what it must have.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.calibration import Conformal
        >>> model = Conformal(BayesianLinearRegression(prior_precision=0.0))
        >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(9)
        array([7.])
        """
        refuse_no_weight(sample_weight)
        new = self._copy_unfitted()
        new._learn(new._rows(X, y, sample_weight, reset=True), how, return_predictions=False)
        return self._take_over(new)

    @atomic
    def partial_fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **how: Any
    ) -> Self:
        """Learn these rows too, one or many. Parameters and errors as in :meth:`fit`.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.calibration import Conformal
        >>> model = Conformal(BayesianLinearRegression()).partial_fit([[0.0], [1.0]], [1.0, 3.0])
        >>> model.partial_fit([[2.0]], [5.0]).model_.n_observations_
        3.0
        """
        if self._state is None:
            return self.fit(X, y, sample_weight, **how)
        self._learn(self._rows(X, y, sample_weight, reset=False), how, return_predictions=False)
        return self

    @atomic
    def predict_then_learn(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **how: Any
    ) -> Any:
        """Predict each row before it is learned, then learn it.

        Parameters and errors as in :meth:`fit`. Returns what :meth:`predict_distribution` would
        have returned for each row right before it came.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.calibration import Conformal
        >>> model = Conformal(BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0))
        >>> predictive = model.predict_then_learn([[0.0], [1.0], [2.0]], [0.0, 0.5, 0.9])
        >>> len(predictive)
        3
        """
        learner = self if self._state is not None else self._copy_unfitted()
        rows = learner._rows(X, y, sample_weight, reset=learner is not self)
        predictive = learner._learn(rows, how, return_predictions=True)
        if learner is not self:
            self._take_over(learner)
        return predictive

    @atomic
    def learn_one(
        self,
        x: ArrayLike | Mapping[str, float],
        y: float,
        weight: float = 1.0,
        time: float | None = None,
    ) -> Self:
        """Learn one row ``x`` (m,), an array or a mapping of feature names to numbers.

        A few times cheaper than a batch of one row, where the model is a
        ``BayesianLinearRegression``; a batch of many is cheaper still.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.calibration import Conformal
        >>> model = Conformal(BayesianLinearRegression()).learn_one({"a": 1.0}, 2.0)
        >>> model.learn_one({"a": 2.0}, 3.0).model_.n_observations_
        2.0
        """
        learner = self if self._state is not None else self._copy_unfitted()
        row = learner._read_row(x, reset=learner is not self).with_target(y, weight)
        model = self._model_with_fast_path()
        if time is None and row.array is not None and model is not None:
            predictive = _predict_one(model, row)
            self._calibrate_then_learn(predictive, row.y, row.weights, return_predictions=False)
            return self
        how = {} if time is None else {"times": [time]}
        learner._learn((row.of(None), row.y, row.weights), how, return_predictions=False)
        return self if learner is self else self._take_over(learner)

    # ---- predicting ------------------------------------------------------------------------------

    def predict_distribution(self, X: Any, **how: Any) -> Any:
        """Distribution of new observations at ``X`` (n, m); see the class for what it is.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.calibration import Conformal
        >>> model = Conformal(BayesianLinearRegression()).fit([[0], [1], [2]], [1, 3, 4])
        >>> len(model.predict_distribution([[3.0]]))
        1
        """
        return self._calibrate(
            get_final_step(self._learned_model).predict_distribution(self._points(X), **how)
        )

    def predict_interval(self, X: Any, level: float = 0.95, **how: Any) -> Array:
        """(n, 2) ends of the interval for new observations at ``X``.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.calibration import Conformal
        >>> model = Conformal(BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0))
        >>> model.fit([[0.0], [2.0]], [0.0, 1.0]).predict_interval([[1.0]]).shape
        (1, 2)
        """
        return interval_ends(self.predict_distribution(X, **how), level)

    def predict_one(self, x: ArrayLike | Mapping[str, float]) -> float:
        """Mean at one row ``x`` (as in :meth:`learn_one`).

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.calibration import Conformal
        >>> model = Conformal(BayesianLinearRegression(prior_precision=0.0))
        >>> round(model.fit([[0], [1], [2]], [1, 3, 5]).predict_one([3.0]), 9)
        7.0
        """
        self._learned_model  # noqa: B018  (raises where nothing was learned)
        row = self._read_row(x, reset=False).of(None)
        return float(self._mean(transform_for_last(self.model_, row))[0])

    def predict_distribution_one(self, x: ArrayLike | Mapping[str, float]) -> Any:
        """Distribution of a new observation at one row ``x`` (as in :meth:`learn_one`).

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.calibration import Conformal
        >>> model = Conformal(BayesianLinearRegression()).fit([[0], [1], [2], [3]], [1, 3, 5, 8])
        >>> bool(model.predict_distribution_one([3.0]).mean() > 6.0)
        True
        """
        self._learned_model  # noqa: B018  (raises where nothing was learned)
        row = self._read_row(x, reset=False)
        read = row.given if row.array is None else wrap_read_rows(self, row.array)
        return self.predict_distribution(read)[0]

    # ---- inner -----------------------------------------------------------------------------------

    def _mean(self, points: Any) -> Array:
        """Means (n,) at rows as the last step of a pipeline takes them."""
        return np.asarray(get_final_step(self.model_).predict(points))

    def _model_with_fast_path(self) -> BayesianLinearRegression | None:
        """The model, if it can take single rows without a batch's checks."""
        model = getattr(self, "model_", None)
        ready = type(model) is BayesianLinearRegression and model._posterior_or_none is not None
        return model if ready else None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    @property
    def _learned_model(self) -> Estimator:
        """The model that learned."""
        if self._state is None:
            raise explain_unlearned(self)
        return self.model_

    def _copy_unfitted(self) -> Self:
        """A wrapper with the same parameters that knows nothing, ready to learn."""
        new = type(self)(**self.get_params(deep=False))
        check_member(_name(self.model), self.model)
        if is_classifier(get_final_step(self.model)):
            raise TypeError(
                f"{type(self).__name__} can't wrap {type(get_final_step(self.model)).__name__}, a "
                "classifier: labels have no intervals; give a regressor"
            )
        new._state, new.model_ = new._make_state(), copy_unfitted(self.model)
        return new

    def _branch(self) -> Self:
        """A copy that can learn without this one's knowing."""
        branch = type(self).__new__(type(self))
        branch.__dict__ = dict(self.__dict__)
        if self._state is not None:
            branch._state, branch.model_ = copy.deepcopy(self._state), make_branch(self.model_)
        return branch

    def _take_over(self, new: Self) -> Self:
        """Replace all that was learned by what ``new`` has learned, in one step."""
        kept = {
            name: value for name, value in self.__dict__.items() if name not in LEARNED_ATTRIBUTES
        }
        self.__dict__ = kept | {k: v for k, v in new.__dict__.items() if k in LEARNED_ATTRIBUTES}
        return self

    def _learn(self, rows: Given, how: dict[str, Any], return_predictions: bool) -> Any:
        """Let the model predict and learn; it refuses bad rows before anything is changed."""
        X, y, weights = rows
        given = transform_for_last(self.model_, X, y, first=not has_learned(self.model_))
        predictive = get_final_step(self.model_).predict_then_learn(
            given, y, sample_weight=weights, **how
        )
        return self._calibrate_then_learn(predictive, y, weights, return_predictions)

    def _rows(self, X: Any, y: Any, sample_weight: ArrayLike | None, *, reset: bool) -> Given:
        """Rows as the model takes them: an array, or a table for a pipeline."""
        rows = inputs.read(self, X, y, sample_weight, reset=reset)
        return rows.of(self.model), rows.y, rows.weights

    def _points(self, X: Any) -> Any:
        """Rows to predict at, as the last step of a pipeline takes them."""
        model = self._learned_model
        return transform_for_last(model, inputs.read_points(self, X).of(model))

    def _read_row(self, x: ArrayLike | Mapping[str, float], *, reset: bool) -> inputs.Rows:
        if isinstance(self.model, Pipeline) and isinstance(x, Mapping):
            raise TypeError(
                "x is a mapping, and the model a pipeline: give data frames of one row to "
                "partial_fit and predict instead"
            )
        return inputs.read_one(self, x, reset=reset)


def _predict_one(model: BayesianLinearRegression, row: inputs.Rows) -> Any:
    """Prediction of a checked row, before it is learned."""
    assert row.array is not None
    target = row.y[:, None]
    elapsed, now = read_times(None, 1, row.weights, model._now)
    predictive = model._predict_with(
        "predict_then_learn", Rows(row.array, target, row.weights, elapsed)
    )
    model._now = now
    return predictive


def _name(model: Estimator) -> str:
    return (model if isinstance(model, type) else type(model)).__name__.lower()
