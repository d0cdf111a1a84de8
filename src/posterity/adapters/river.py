"""posterity's models as river estimators: rows are dictionaries, and features come and go.

A feature that is absent from a row is 0, as everywhere in river. One that comes for the first time
joins with its prior: without forgetting the posterior is what it would be had the feature been 0
in all rows before. Text is the level of a category, ``{"zone": "north"}``, and each level a
feature, "zone=north".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.adapters._extras import require_module
from posterity.adapters._rows import NamedRows, Row, check_row, check_target
from posterity.aliases import Array
from posterity.evidence import Strategy
from posterity.forgetting import Forgetting
from posterity.generalized import BayesianLogisticRegression as LogisticEstimator
from posterity.generalized._growth import widen_model
from posterity.generalized.base import Approximation
from posterity.linear import BayesianLinearRegression as LinearEstimator

require_module("river", "river")
from river import base  # noqa: E402  (the line above says how to get it)
from river.utils import dataframe  # noqa: E402

from posterity.adapters._river_bandit import Bandit  # noqa: E402
from posterity.adapters._river_distribution import (  # noqa: E402
    make_river_distribution,
    make_row_distribution,
)
from posterity.adapters._river_features import NamedFeatures, read_columns  # noqa: E402
from posterity.adapters._river_wide import (  # noqa: E402
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
)

__all__ = [
    "Bandit",
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "DiagonalLinearRegression",
    "DiagonalLogisticRegression",
]


@dataclass(eq=False, repr=False)
class BayesianLinearRegression(NamedFeatures, base.MiniBatchRegressor):
    """Bayesian linear regression for river: exact, with learned or known noise.

    Parameters
    ----------
    prior_mean
        Prior mean of all coefficients.
    prior_precision
        Their prior precision: a number, or "auto", "ard" or a strategy from
        :mod:`posterity.evidence` to learn it. With the noise known it is river's ``1 / alpha``.
    noise_precision
        1 / variance of the noise, river's ``beta``; None: learned.
    noise_prior
        Shape and rate of the Gamma prior of a learned noise precision.
    fit_intercept
        Whether to learn an intercept; its prior is flat.
    forgetting
        A strategy from :mod:`posterity.forgetting`, or words for one, as "adaptive"; None: nothing
        is forgotten.

    Notes
    -----
    The posterior is that of :class:`posterity.BayesianLinearRegression`. With
    ``noise_precision=1.0, fit_intercept=False`` it is what river's own
    ``linear_model.BayesianLinearRegression()`` computes.

    Examples
    --------
    >>> from posterity.adapters.river import BayesianLinearRegression
    >>> model = BayesianLinearRegression(noise_precision=1.0, fit_intercept=False)
    >>> model.learn_one({"a": 1.0}, 2.0)
    >>> model.predict_one({"a": 1.0})
    1.0
    >>> model.learn_one({"a": 1.0, "b": 1.0}, 4.0)
    >>> model.predict_one({"b": 1.0}, with_dist=True)
    𝒩(μ=1.200, σ=1.265)
    """

    prior_mean: float = 0.0
    prior_precision: float | str | Strategy = 1.0
    noise_precision: float | None = None
    noise_prior: tuple[float, float] = (0.0, 0.0)
    fit_intercept: bool = True
    forgetting: Forgetting | str | None = None

    def __post_init__(self) -> None:
        self._rows = NamedRows(LinearEstimator(**vars(self)))

    # ---- learning ------------------------------------------------------------------------------

    def learn_one(self, x: Row, y: float, w: float = 1.0) -> None:
        """Learn one row; weight 2 is the row twice.

        Raises
        ------
        ValueError
            If a value, ``y`` or ``w`` can't be used; nothing has changed then.
        TypeError
            If a feature is neither a number nor text.

        Examples
        --------
        >>> BayesianLinearRegression().learn_one({"a": float("nan")}, 1.0)
        Traceback (most recent call last):
            ...
        ValueError: feature 'a' is nan: leave it out of the row (it is then 0), or fill it in, ...
        """
        paths = self._rows.paths
        if paths.width == len(x) and paths.learn is not None:
            try:
                if paths.learn(x, y, w):
                    return
            except (ValueError, TypeError):
                pass  # other features, or values that can't be used: said below
        self._learn_row(x, y, w)

    def learn_many(self, X: Any, y: Any, w: ArrayLike | None = None) -> None:
        """Learn the rows of a data frame (pandas, Polars, PyArrow), in order; ``w`` are weights.

        Examples
        --------
        >>> import pandas as pd
        >>> model = BayesianLinearRegression(prior_precision=0.0)
        >>> model.learn_many(pd.DataFrame({"a": [0.0, 1.0, 2.0]}), pd.Series([1.0, 3.0, 5.0]))
        >>> round(model.predict_one({"a": 3.0}), 9)
        7.0
        """
        targets = np.asarray(y, dtype=np.float64)
        if not np.isfinite(targets).all():
            row = int(np.argmin(np.isfinite(targets)))
            raise ValueError(
                f"y is {targets[row]} in row {row}, and must be finite: leave the row out"
            )
        if not len(targets):
            return
        rows = self._learned_frame(X)[0]
        self._rows.model.partial_fit(rows, targets, w)
        self._rows.open_paths()

    def _learn_row(self, x: Row, y: float, w: float) -> None:
        x, target = check_row(x), check_target(y, w)
        self._add_features(x)
        self._rows.model.learn_one(self._rows.values(x)[0], target, w)
        self._rows.open_paths()

    # ---- predicting ----------------------------------------------------------------------------

    def predict_one(self, x: Row, with_dist: bool = False) -> Any:
        """Mean at ``x``, or with ``with_dist`` the distribution of a new target there.

        That is river's ``proba.Gaussian`` where the noise is known; otherwise a
        ``proba.base.ContinuousDistribution`` with ``mu``, ``sigma``, ``cdf``, ``log_pdf``,
        ``interval`` and ``sample``. Before anything was learned it is the prior's.

        Examples
        --------
        >>> model = BayesianLinearRegression(noise_precision=4.0, fit_intercept=False)
        >>> model.predict_one({"a": 0.0}), model.predict_one({"a": 0.0}, with_dist=True).sigma
        (0.0, 0.5)
        """
        if with_dist:
            return self._distribution(x)
        paths = self._rows.paths
        if paths.width == len(x) and paths.predict is not None:
            try:
                return paths.predict(x)
            except (ValueError, TypeError):
                pass  # as in learn_one
        return self._mean(x)

    def predict_many(self, X: Any) -> Any:
        """Means at the rows of a data frame, as a series of its kind with its index.

        Examples
        --------
        >>> import pandas as pd
        >>> BayesianLinearRegression().predict_many(pd.DataFrame({"a": [1.0]}, index=["row"]))
        row    0.0
        dtype: float64
        """
        rows, unknown, frame = self._read_frame(X)
        means = self._add_prior_means(unknown)
        if self._rows.has_learned:
            means = means + self._rows.model.predict(rows)
        return dataframe.to_native_series(means, name=None, like=frame)

    def _mean(self, x: Row) -> float:
        row, unknown = self._rows.values(x)
        mean = float(self._add_prior_means(sum(unknown.values()))) if unknown else 0.0
        return mean + self._rows.model.predict_one(row) if self._rows.has_learned else mean

    def _add_prior_means(self, total: Any) -> Any:
        """Return what the prior means of features that never came, of this sum, add to the mean."""
        return self.prior_mean * total

    def _distribution(self, x: Row) -> Any:
        rows = self._rows
        paths = rows.paths
        if paths.width == len(x) and paths.moments is not None:
            try:
                return make_row_distribution(paths.moments(x))
            except (ValueError, TypeError):
                pass  # as in learn_one
        if rows.has_learned:
            model, values = rows.include_features(x)
            count = model.n_observations_
        else:
            model, count = rows.model._copy_unfitted(), 0.0
            values = np.array([*check_row(x).values()])[None]
            model._set_features(values.shape[1], None)
            model._start()
        return make_river_distribution(model._posterior.predictive(values), count)


@dataclass(eq=False, repr=False)
class BayesianLogisticRegression(NamedFeatures, base.MiniBatchClassifier):
    """Bayesian logistic regression for river, with two or more classes; new ones may appear.

    Parameters
    ----------
    prior_mean
        Prior mean of all coefficients, of the log odds of the second class.
    prior_precision
        Their prior precision: a number, or "auto" or a strategy to learn it.
    fit_intercept
        Whether to learn an intercept.
    approximation
        As in :class:`posterity.BayesianLogisticRegression`.
    forgetting
        A strategy from :mod:`posterity.forgetting`, or words for one, as "adaptive"; None: nothing
        is forgotten.

    Examples
    --------
    >>> from posterity.adapters.river import BayesianLogisticRegression
    >>> model = BayesianLogisticRegression()
    >>> model.predict_proba_one({"a": 1.0})
    {}
    >>> for value, label in [(0.0, False), (1.0, True), (2.0, True)]:
    ...     model.learn_one({"a": value}, label)
    >>> model.predict_one({"a": 3.0, "b": 0.0})
    True
    """

    prior_mean: float = 0.0
    prior_precision: float | str | Strategy = 1.0
    fit_intercept: bool = True
    approximation: Approximation = "auto"
    forgetting: Forgetting | str | None = None

    def __post_init__(self) -> None:
        self._rows = NamedRows(LogisticEstimator(**vars(self)))

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Row, y: Any, w: float = 1.0) -> None:
        """Learn one row and its label; weight 2 is the row twice. Raises as the regression."""
        x = check_row(x)
        check_target(0.0, w)
        self._add_features(x)
        self._rows.model.learn_one(self._rows.values(x)[0], y, w)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame in order, as :meth:`learn_one` would.

        Examples
        --------
        >>> import pandas as pd
        >>> model = BayesianLogisticRegression()
        >>> model.learn_many(pd.DataFrame({"a": [0.0, 1.0]}), pd.Series(["no", "yes"]))
        >>> model.predict_one({"a": 1.0})
        'yes'
        """
        names, values = read_columns(dataframe.into_frame(X))  # checked before anything changes
        labels = dataframe.into_series(y).to_list()
        for row, label in zip(values.tolist(), labels, strict=True):
            self.learn_one(dict(zip(names, row, strict=True)), label)

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """Probability of each label so far, integrated over the posterior; {} before any.

        Examples
        --------
        >>> model = BayesianLogisticRegression()
        >>> model.learn_one({"a": 1.0}, "yes")
        >>> model.predict_proba_one({"a": 1.0})
        {'yes': 1.0}
        """
        if not self._rows.has_learned:
            return {}
        model, values = self._rows.include_features(x)
        probabilities: dict[Any, float] = model.predict_proba_one(values[0])
        return probabilities

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities at the rows of a data frame, as one of its kind: a column for each label.

        Examples
        --------
        >>> import pandas as pd
        >>> model = BayesianLogisticRegression()
        >>> X = pd.DataFrame({"a": [0.0, 1.0]})
        >>> model.learn_many(X, pd.Series([False, True]))
        >>> model.predict_proba_many(X).sum(axis=1).round(9).tolist()
        [1.0, 1.0]
        """
        frame = dataframe.into_frame(X)
        labels, probabilities = self._probabilities(frame)
        columns = {label: probabilities[:, k] for k, label in enumerate(labels)}
        return dataframe.to_native_frame(columns, like=frame)

    def predict_many(self, X: Any) -> Any:
        """Most probable labels at the rows of a data frame, as a series of its kind."""
        frame = dataframe.into_frame(X)
        labels, probabilities = self._probabilities(frame)
        best = probabilities.argmax(axis=1) if labels else []
        predictions = [labels[k] for k in best] if labels else [None] * len(frame)
        return dataframe.to_native_series(predictions, name=None, like=frame)

    def _probabilities(self, frame: object) -> tuple[list[Any], Array]:
        """The labels so far, and their probabilities (n, K)."""
        names, values = read_columns(frame)
        rows = self._rows
        if not rows.has_learned:
            return [], np.empty((len(values), 0))
        model, unknown = rows.model, [name for name in names if name not in rows.columns]
        known = rows.select_frame_values(names, values)
        if unknown:
            model = widen_model(model, len(unknown))
            known = np.hstack([known, values[:, [names.index(name) for name in unknown]]])
        return model.classes_.tolist(), model.predict_proba(known)

    def _add_features(self, names: object) -> None:
        """Have a column for each of these features; the estimator begins with its first label."""
        if self._rows.has_learned:
            self._rows.grow(names)
        else:
            self._check_one_for_all()
            self._rows.name(names)
