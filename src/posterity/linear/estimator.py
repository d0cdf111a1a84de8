"""The skeleton of every linear estimator: how it learns rows, merges, and is asked for one row.

An estimator adds its parameters, the posterior it starts with, how it reads what comes with a row,
and what its predictions are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions.row_distribution import RowDistribution
from posterity.factor import Rows
from posterity.factor.usable import check_usable
from posterity.linear import functions
from posterity.linear.base import LinearModel
from posterity.linear.inputs import (
    check_same_features,
    explained,
    read_points,
    read_rows,
    read_times,
    read_weights,
    refuse_no_weight,
)
from posterity.linear.targets import check_same_targets, read_target_row, target_row
from posterity.transaction import all_or_nothing

Array = NDArray[np.float64]
Way = Literal["fit", "append", "predict_then_learn"]


class LinearEstimator(LinearModel):
    """A linear model that learns rows, whatever they are rows of."""

    # ---- learning --------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Forget everything and learn these rows.

        Parameters
        ----------
        X : (n, m) array or data frame
        y : (n,) array
            For a model that takes several targets also an (n, q) array or data frame.
        sample_weight : (n,) array, optional
            Weights >= 0; weight 2 is the row twice.
        times : (n,) array, optional
            When each row came, in any unit, not decreasing; what a ``forgetting`` strategy counts
            its time in. By default each row comes one unit after the one before it.

        Raises
        ------
        ValueError
            If a value is not finite or not a number, a weight is negative, shapes disagree, or a
            parameter is out of its range; the message names the row and column.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> BayesianLinearRegression(prior_precision=0.0).fit([[0], [1], [2]], [1, 3, 5]).coef_
        array([2.])
        """
        self._learned("fit", (X, y, sample_weight), times)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows too, one or many. Parameters and errors as in :meth:`fit`.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(prior_precision=0.0)
        >>> model.partial_fit([[0], [1]], [1, 3]).partial_fit([[2]], [5]).coef_
        array([2.])
        """
        self._learned("append", (X, y, sample_weight), times)
        return self

    def predict_then_learn(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Any:
        """Predict each row before it is learned, then learn it: progressive validation in one pass.

        Parameters as in :meth:`fit`. Returns the distribution of each target given all the rows
        before it (of Gaussian rows Normal or StudentT), at the price of learning alone.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> settings = {"prior_precision": 1.0, "noise_precision": 1.0, "fit_intercept": False}
        >>> model = BayesianLinearRegression(**settings)
        >>> model.predict_then_learn([[1.0], [1.0]], [2.0, 2.0]).mean()
        array([0., 1.])
        """
        return self._learned("predict_then_learn", (X, y, sample_weight), times)

    def learn_one(
        self,
        x: ArrayLike | Mapping[str, float],
        y: Any,
        weight: float = 1.0,
        time: float | None = None,
    ) -> Self:
        """Learn one row: the lean path, a microsecond or two a call.

        Lean without times, in every way to forget but Changepoint (Adaptive takes some ten times
        as long); of several targets where old rows are discounted, at most. Else as
        :meth:`partial_fit`.

        Parameters
        ----------
        x : (m,) array, or mapping of feature names to numbers
        y : float
            Of several targets a (q,) array, or a mapping of their names to numbers.
        weight : float, default 1.0
        time : float, optional
            When the row came; see ``times`` of :meth:`fit`.

        Raises
        ------
        ValueError
            As :meth:`fit`; also when a mapping lacks a feature or has one too many.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(prior_precision=0.0)
        >>> model.learn_one({"age": 1.0}, 3.0).learn_one({"age": 2.0}, 5.0).coef_
        array([2.])
        """
        try:
            learn = self._learn_lean
        except AttributeError:
            if self._knowledge is None:
                return self._begin_with(x, y, weight, time)
            if not self._learns_lean:
                self._learn_row(x, y, weight, time)
                return self
            learn = self._open_lean("_learn_lean", "learn")
        if time is not None or self._now is not None or not learn(x, y, weight):
            self._learn_row(x, y, weight, time)
        return self

    @all_or_nothing
    def merge(self, other: Self) -> Self:
        """Learn all that ``other`` has learned; the prior they share counts once.

        Exact for Gaussian rows. Of other likelihoods the Gaussian rows that stand for the
        observations of both are added up: had these come to one model, they would have been found
        from more knowledge, and would differ a little; the longer both have learned, the less.

        Raises
        ------
        ValueError
            If the two models differ in features, prior, noise, classes or intercept, or forget in a
            way that can't be merged.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> X, y = [[0.0], [1.0], [2.0], [4.0]], [1.0, 3.0, 5.0, 8.0]
        >>> whole = BayesianLinearRegression().fit(X, y)
        >>> half = BayesianLinearRegression().fit(X[:2], y[:2])
        >>> half = half.merge(BayesianLinearRegression().fit(X[2:], y[2:]))
        >>> bool(np.isclose(half.log_evidence_, whole.log_evidence_))
        True
        """
        theirs = other._known
        if self._knowledge is None:
            fresh = self._fresh()
            fresh._begin_as(other)
            return self._take_over(fresh.merge(other))
        check_same_features(self, other)
        if not functions.same(getattr(self, "basis_", None), getattr(other, "basis_", None)):
            raise ValueError(
                "the models differ in their basis: give both the same one with its domain, which "
                "otherwise is that of the first batch"
            )
        check_same_targets(self, other)
        self._check_mergeable(other)
        if not self._knowledge.same_prior(theirs):
            raise ValueError(
                "the models differ in prior, noise or intercept, or in how they learn and forget: "
                "only models that started from the same belief can be merged"
            )
        self._knowledge.merge(theirs)
        return self

    def unlearn(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Forget rows that were learned, as if they had never come.

        Parameters as in :meth:`fit`. The model does not keep its rows, so it refuses only what it
        can prove: rows outside what it has learned, or more of them than there were.

        Raises
        ------
        ValueError
            If a row was never learned, or can't be taken out again.

        Warns
        -----
        UserWarning
            If the rows carried nearly all that was known of a direction, so that digits are lost.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 9.0])
        >>> model.unlearn([[2.0]], [9.0]).n_observations_
        2.0
        """
        return self._unlearned((X, y, sample_weight))

    # ---- reading ---------------------------------------------------------------------------------

    def predict_one(self, x: ArrayLike | Mapping[str, float]) -> Any:
        """Mean at one row ``x`` (as in :meth:`learn_one`); before any data, the prior's.

        Where linear regression learns its prior it is the mean that :meth:`predict_then_learn`
        would give: its prior was chosen a few rows ago, where that of ``predict`` rests on all.
        Of several targets it is a (q,) array, or a mapping where they came with names.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(prior_precision=0.0)
        >>> model.predict_one([3.0])
        0.0
        >>> model.fit([[0], [1]], [1, 3]).predict_one([3.0])
        7.0
        """
        try:
            predict = self._predict_lean
        except AttributeError:
            model = self if self._knowledge is not None else self._begun_from(x)
            if not model._predicts_lean:
                reader = model.__dict__.get("_row_path") or model._reader()
                values = model._known.predict_mean_ahead(model._columns(reader.values(x)))
                return target_row(model, values[0])
            predict = model._open_lean("_predict_lean", "predict_mean")
        return predict(x)

    def sample_coefficients(self, size: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw ``size`` coefficient vectors (size, m), of several targets (size, q, m).

        For joint draws of intercept and coefficients use ``posterior_.rvs``. ``rng`` is anything
        that ``numpy.random.default_rng`` takes.

        Raises
        ------
        ValueError
            If the posterior is still improper: a direction with a flat prior was never seen.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 4.0])
        >>> model.sample_coefficients(5, rng=0).shape
        (5, 1)
        """
        draws = self.posterior_.rvs(size, random_state=np.random.default_rng(rng))
        return draws[..., self._offset :]

    def predict_mean_distribution(self, X: Any) -> RowDistribution:
        """Distribution of the expected target at ``X`` (n, m): what is not known of it, no noise.

        New observations vary more: see ``predict_distribution``, whose mean is the same.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(noise_precision=1.0).fit([[0.0], [2.0]], [0.0, 1.0])
        >>> model.predict_mean_distribution([[1.0]]).std().round(4)
        array([0.7071])
        >>> model.predict_distribution([[1.0]]).std().round(4)
        array([1.2247])
        """
        return self._eta_distribution(X, None)

    def sample_mean(self, X: Any, size: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw ``size`` times the expected target at all rows of ``X`` (n, m): (size, n).

        Of several targets (size, n, q). Each draw is of one coefficient vector, intercept included,
        so that rows belong together.
        ``rng`` is anything that ``numpy.random.default_rng`` takes.

        Raises
        ------
        ValueError
            If the posterior is still improper: a direction with a flat prior was never seen.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 4.0])
        >>> model.sample_mean([[0.0], [3.0]], 5, rng=0).shape
        (5, 2)
        """
        return self._eta_draws(X, size, rng, None)

    # ---- what an estimator says in its own words -------------------------------------------------

    def _eta_offsets(self, added: ArrayLike | None, n: int) -> Array | None:
        """What users say is added to eta, as numbers (n,)."""
        return None

    def _eta_distribution(self, X: Any, added: ArrayLike | None) -> RowDistribution:
        """Distribution of the linear predictor at the rows of ``X``."""
        posterior, (rows, shift) = self.posterior_, self._predicted_rows(X, added)
        return posterior.project(rows, shift)

    def _eta_draws(
        self, X: Any, size: int, rng: int | np.random.Generator | None, added: ArrayLike | None
    ) -> Array:
        """(size, n) draws of the linear predictor at the rows of ``X``; of targets (size, n, q)."""
        posterior, (rows, shift) = self.posterior_, self._predicted_rows(X, added)
        draws = posterior.rvs(size, random_state=np.random.default_rng(rng)) @ rows.T + shift
        return draws if draws.ndim == 2 else np.swapaxes(draws, 1, 2)

    def _predicted_rows(self, X: Any, added: ArrayLike | None) -> tuple[Array, Array | float]:
        """Columns of ``X``, after any 1, and what is added to eta."""
        X = read_points(self, X)
        columns, shift = self._columns(X), self._eta_offsets(added, len(X))
        if self._offset:
            columns = np.column_stack([np.ones(len(X)), columns])
        return columns, 0.0 if shift is None else shift

    def _tell(self, way: Way, rows: Rows) -> Any:
        """Have the posterior learn rows of columns; returns what was predicted, if asked."""
        known, learned = self._known, (rows.X, rows.y, rows.weights, rows.elapsed)
        if way == "fit":
            return known.fit(*learned)
        return (known.append if way == "append" else known.predict_then_learn)(*learned)

    def _check_mergeable(self, other: Self) -> None:
        """Raise ``ValueError`` where the models differ in what only this class has."""

    # ---- inner -----------------------------------------------------------------------------------

    @all_or_nothing
    def _learned(
        self,
        way: Way,
        rows: tuple[Any, Any, ArrayLike | None],
        times: ArrayLike | None,
        added: ArrayLike | None = None,
    ) -> Any:
        """Learn rows (X, y, sample_weight) in one of three ways; returns what was predicted."""
        if way == "fit":
            refuse_no_weight(rows[2])
        first = way == "fit" or self._knowledge is None
        model = self._fresh() if first else self
        X, y, weights = read_rows(model, *rows, reset=first)
        elapsed, now = read_times(times, len(X), weights, None if first else self._now)
        read = Rows(X, y, weights, elapsed, self._eta_offsets(added, len(X)))
        if first:
            model._begin(X, weights)
        told = model._told(way, read)
        model._now = now
        if first:
            self._take_over(model)
        return told

    @all_or_nothing
    def _unlearned(
        self, rows: tuple[Any, Any, ArrayLike | None], added: ArrayLike | None = None
    ) -> Self:
        """Unlearn rows (X, y, sample_weight)."""
        known: Any = self._known
        X, y, weights = read_rows(self, *rows, reset=False)
        offsets = self._eta_offsets(added, len(X))
        with explained(self, X, y):
            columns = self._columns(X)
            check_usable(columns, y)
            known.remove(columns, y, weights, *(() if offsets is None else (offsets,)))
        return self

    def _told(self, way: Way, rows: Rows) -> Any:
        """Have the posterior learn rows of features; says which values can't be learned."""
        with explained(self, rows.X, rows.y):
            if self.basis is None:
                return self._tell(way, rows)
            return self._tell(way, replace(rows, X=self._columns(rows.X)))

    @all_or_nothing
    def _begin_with(self, x: Any, y: Any, weight: float, time: float | None) -> Self:
        """Learn the first row."""
        learner = self if self._knowledge is not None else self._begun_from(x, y)
        learner.learn_one(x, y, weight, time)
        return self if learner is self else self._take_over(learner)

    @all_or_nothing
    def _learn_row(self, x: Any, y: Any, weight: float, time: float | None) -> None:
        """The general path of learn_one: forgetting, or a time of its own."""
        X, target = self._path.values(x), read_target_row(self, y)
        weights = None if weight == 1.0 else read_weights([weight], 1)
        elapsed, now = read_times(None if time is None else [time], 1, weights, self._now)
        self._told("append", Rows(X, target, weights, elapsed))
        self._now = now

    @property
    def _learns_lean(self) -> bool:
        """Whether single rows are learned on the lean path."""
        return self.basis is None and self._known.learns_lean

    @property
    def _predicts_lean(self) -> bool:
        """Whether single rows are predicted there."""
        return self.basis is None and self._known.predicts_lean
