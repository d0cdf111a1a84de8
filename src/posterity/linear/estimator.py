"""The skeleton of every linear estimator: how it learns rows, unlearns them and merges.

An estimator adds its parameters, the posterior it starts with, how it reads what comes with a row,
and what its predictions are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.factor import Rows
from posterity.factor.parallel import FEW_COLUMNS, limit_blas_threads
from posterity.factor.usable import check_rows
from posterity.kernel.values import read_scalar
from posterity.linear.coding import join_categories, join_levels_of_row
from posterity.linear.inputs import (
    check_same_features,
    check_same_kind,
    name_bad_rows,
    read_rows,
    read_times,
    read_weights,
    refuse_no_weight,
)
from posterity.linear.later import stop_waiting
from posterity.linear.learning import LearnsRows
from posterity.linear.reach import reach, reach_together
from posterity.linear.reader import LinearReader
from posterity.linear.rounding import warn_of_columns_lost
from posterity.linear.targets import (
    check_same_targets,
    check_targets_seen,
    fill_missing_targets,
    read_target_row,
    row_lacks_targets,
)
from posterity.transaction import atomic

Way = Literal["fit", "append", "predict_then_learn"]


class LinearEstimator(LearnsRows, LinearReader):
    """A linear model that learns rows, whatever they are rows of."""

    # ---- learning --------------------------------------------------------------------------------

    def learn_one(
        self,
        x: ArrayLike | Mapping[str, float],
        y: Any,
        weight: float = 1.0,
        time: float | None = None,
    ) -> Self:
        """Learn one row, in a microsecond or two.

        Lean without times, in every way to forget (Adaptive and Changepoint take some ten times as
        long); of several targets where old rows are discounted, at most. Else as
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
            learn = self._fast_learn_one
        except AttributeError:
            if self._posterior_or_none is None or not self._has_fast_learn_one:
                self._learn_row(x, y, weight, time)
                return self
            learn = self._open_fast_method("_fast_learn_one", self._fast_name)
        try:
            learned = time is None and self._now is None and learn(x, y, weight)
        except OverflowError:  # of a whole number beyond floats: the other way says so
            learned = False
        except TypeError:
            read_scalar(weight, "weight")  # says what is wrong with it, if it is that
            raise
        except ValueError:
            if not row_lacks_targets(self, y):
                raise
            learned = False
        if not learned:
            self._learn_row(x, y, weight, time)
        return self

    def predict_then_learn_one(
        self, x: ArrayLike | Mapping[str, float], y: Any, weight: float = 1.0, **how: Any
    ) -> Any:
        """Predict one row, then learn it; returns the distribution of its target before it came.

        How surprising the target was is ``-distribution.logpdf(y)``. Parameters as of
        :meth:`learn_one`, and keywords of :meth:`predict_then_learn`, with one value in each.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(noise_precision=1.0, prior_precision=0.0)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
        >>> [round(-float(model.predict_then_learn_one([3.0], y).logpdf(y)), 1) for y in (3, 9)]
        [1.5, 11.8]
        """
        told = None if how else self._learn_and_tell(x, y, weight)
        return self._predict_then_learn_row(x, y, weight, how) if told is None else told

    @atomic
    def merge(self, other: Self) -> Self:
        """Learn all that ``other`` has learned; the prior counts once.

        Exact for Gaussian rows. Of other likelihoods the Gaussian rows that stand for the
        observations of both are added up: had these come to one model, they would have been found
        from more knowledge, and would differ a little; the longer both have learned, the less. A
        model of labels or counts that still keeps its first rows brings the rows themselves.

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
        check_same_kind(self, other, LinearEstimator)
        other._posterior  # noqa: B018 - not fitted comes first
        if self._posterior_or_none is None:
            self._begin_as(other)
        check_same_features(self, other)
        other = reach_together(self, other)
        check_same_targets(self, other)
        self._check_mergeable(other)
        if self._categories != other._categories:
            both = join_categories(self, other)
            self._take_over(self._with_levels(both))
            other = other._with_levels(both)
        if not self._posterior.has_same_prior(other._posterior):
            raise ValueError(
                "the models differ in prior, noise, intercept or forgetting: only models with "
                "the same settings can be merged"
            )
        self._posterior.merge(other._posterior)
        self.__dict__.pop("_before_waiting", None)
        return self

    # ---- what an estimator says in its own words -------------------------------------------------

    def _update_posterior(self, way: Way, rows: Rows) -> Any:
        """Have the posterior learn rows of columns; returns what was predicted, if asked."""
        if way == "fit":
            check_targets_seen(self, rows.y)
        if way == "predict_then_learn" or not self._posterior.reads_columns:
            rows = replace(rows, X=np.asarray(rows.X))
        return learn(self._posterior, way, rows)

    def _check_mergeable(self, other: Self) -> None:
        """Raise ``ValueError`` where the models differ in what only this class has."""

    # ---- inner -----------------------------------------------------------------------------------

    @atomic
    def _learn_rows(
        self,
        way: Way,
        rows: tuple[Any, Any, ArrayLike | None],
        times: ArrayLike | None,
        added: ArrayLike | None = None,
    ) -> Any:
        """Learn rows (X, y, sample_weight) in one of three ways; returns what was predicted."""
        if way == "fit":
            refuse_no_weight(rows[2])
        first = way == "fit" or self._posterior_or_none is None
        if first:
            self._forget_all()
        else:
            stop_waiting(self)
            self._take_over(self._meeting(rows[0]))
        X, y, weights = self._read_rows(way, rows, added, reset=first)
        elapsed, now = read_times(times, len(X), weights, self._now)
        read = Rows(X, y, weights, elapsed, self._eta_offsets(added, len(X)))
        if first:
            self._begin(X, y, weights)
        else:
            reach(self, X, weights)
        predictive = self._predict_with(way, read)
        self._now = now
        if first:
            warn_of_columns_lost(self, X)
        return predictive

    def _read_rows(
        self, way: Way, rows: tuple[Any, Any, ArrayLike | None], added: Any, *, reset: bool
    ) -> tuple[Array, Array, Array | None]:
        """Features, targets (n, q) and weights; with ``reset`` the model takes theirs."""
        return read_rows(self, *rows, reset=reset, columns=self._learns_features)

    @atomic
    def _unlearn_rows(
        self, rows: tuple[Any, Any, ArrayLike | None], added: ArrayLike | None = None
    ) -> Self:
        """Unlearn rows (X, y, sample_weight)."""
        posterior: Any = self._posterior  # not fitted comes first
        X, y, weights = read_rows(self, *rows, reset=False)
        offsets = self._eta_offsets(added, len(X))
        with name_bad_rows(self, X, y, weights):
            columns = self._columns(X)
            check_rows(columns, fill_missing_targets(self, y), weights)
            posterior.remove(columns, y, weights, *(() if offsets is None else (offsets,)))
        self.__dict__.pop("_before_waiting", None)
        return self

    def _meet_row(self, x: Any, y: Any) -> None:
        """Begin with a row, if it is the first, or let its levels join."""
        stop_waiting(self)
        if self._posterior_or_none is None:
            self._begin_with_row(x, y)
        elif self._categories is not None:
            self._take_over(self._with_levels(join_levels_of_row(self, x)))

    def _predict_with(self, way: Way, rows: Rows) -> Any:
        """Have the posterior learn rows of features; says which values can't be learned."""
        with name_bad_rows(self, rows.X, rows.y, rows.weights):
            return self._update_posterior(way, replace(rows, X=self._columns(rows.X)))

    @atomic
    def _learn_row(
        self, x: Any, y: Any, weight: float, time: float | None, added: Any = None
    ) -> None:
        """The general path of learn_one."""
        weight = read_scalar(weight, "weight")
        self._meet_row(x, y)
        X, target = self._path.values(x), self._read_target(y)
        weights = None if weight == 1.0 else read_weights([weight], 1, "weight")
        reach(self, X, weights)
        elapsed, now = read_times(None if time is None else [time], 1, weights, self._now)
        self._predict_with("append", Rows(X, target, weights, elapsed, self._eta_offsets(added, 1)))
        self._now = now

    @atomic
    def _predict_then_learn_row(self, x: Any, y: Any, weight: float, how: Mapping[str, Any]) -> Any:
        """The general path of predict_then_learn_one."""
        self._meet_row(x, y)
        weights = None if weight == 1.0 else [weight]
        return self.predict_then_learn(self._row(x), [y], weights, **how)[0]

    def _read_target(self, y: Any) -> Array:
        """The targets of one row, (1, q)."""
        return read_target_row(self, y)


def learn(posterior: Any, way: Way, rows: Rows) -> Any:
    """Have a posterior learn rows, and predict each before it is learned if that is the way."""
    offsets = () if rows.offsets is None else (rows.offsets,)
    n, width = rows.X.shape
    # Threads of BLAS would wait for each other in each pass over many rows, too.
    with limit_blas_threads(max(width, min(n, FEW_COLUMNS))):
        return getattr(posterior, way)(rows.X, rows.y, rows.weights, rows.elapsed, *offsets)
