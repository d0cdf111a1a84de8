"""What estimators of classes and counts share beyond :class:`LinearModel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.factor.usable import check_usable
from posterity.likelihoods import Likelihood
from posterity.linear import functions
from posterity.linear.base import LinearModel
from posterity.linear.inputs import (
    check_same_features,
    explained,
    read_rows,
    read_times,
    read_weights,
)
from posterity.noise import KnownNoise, Noise
from posterity.posteriors import LinearPosterior
from posterity.posteriors.generalized import GeneralizedPosterior
from posterity.transaction import all_or_nothing

Array = NDArray[np.float64]
Approximation = Literal["auto", "laplace", "moments"]
Way = Literal["fit", "append", "predict_then_learn"]
# What is added to eta, of so many rows.
Offsets = Callable[[int], Array | None]


class GeneralizedModel(LinearModel):
    """A scikit-learn estimator around one :class:`GeneralizedPosterior`."""

    approximation: Approximation

    @property
    def noise_precision_(self) -> float:
        """There is none: what is left open is in the likelihood."""
        raise AttributeError(f"{type(self).__name__} has no noise_precision_")

    @all_or_nothing
    def merge(self, other: Self) -> Self:
        """Learn all that ``other`` has learned; the prior they share counts once.

        Exact in what was found: the Gaussian rows that stand for the observations of both are
        added up. Had the rows come to one model, they would have been found from more knowledge,
        and would differ a little; the longer both have learned, the less.

        Raises
        ------
        ValueError
            If the two models differ in features, prior, classes or intercept, or forget in a way
            that can't be merged.
        """
        theirs = other._known
        if self._knowledge is None:
            fresh = self._fresh()
            fresh._begin_as(other)
            fresh.merge(other)
            self._take_over(fresh)
            return self
        check_same_features(self, other)
        if not functions.same(getattr(self, "basis_", None), getattr(other, "basis_", None)):
            raise ValueError(
                "the models differ in their basis: give both the same one with its domain, which "
                "is otherwise taken from the first batch of each"
            )
        self._check_mergeable(other)
        if not self._knowledge.same_prior(theirs):
            raise ValueError(
                "the models differ in prior, forgetting, approximation or intercept: merge models "
                "with the same parameters"
            )
        self._knowledge.merge(theirs)
        return self

    def unlearn(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Refuse: what a row said depended on what was known when it came.

        Raises
        ------
        ValueError
            Always, once something was learned: fit the remaining rows again.
        """
        self._known.remove(np.empty((0, 0)), np.empty((0, 1)), None)
        raise ValueError(
            f"can't unlearn rows in {type(self).__name__}: what a row said depended on what was "
            "known when it came; fit the remaining rows again"
        )

    def sample_coefficients(self, size: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw ``size`` coefficient vectors (size, m) from the posterior.

        ``rng`` is anything that ``numpy.random.default_rng`` takes. With more than two classes
        (size, K, m), one row a class, of sum 0.

        Raises
        ------
        ValueError
            If the posterior is still improper: a direction with a flat prior was never seen.
        """
        draws = self.posterior_.rvs(size, random_state=np.random.default_rng(rng))
        return draws[:, self._offset :]

    def learn_one(
        self,
        x: ArrayLike | Mapping[str, float],
        y: float,
        weight: float = 1.0,
        time: float | None = None,
    ) -> Self:
        """Learn one row ``x``: a 1-D array, or a mapping of feature names to numbers.

        The lean path, a microsecond or two a call, where nothing is forgotten, and no basis or
        time is given.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression().learn_one({"age": 1.0}, 3.0)
        >>> model.n_observations_
        1.0
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

    # ---- inner -----------------------------------------------------------------------------------

    def _predictor_one(self, x: ArrayLike | Mapping[str, float]) -> float:
        """Mean of the linear predictor at one row ``x``; before any data, the prior's."""
        try:
            predict = self._predict_lean
        except AttributeError:
            if self._knowledge is None or not self._predicts_lean:
                model, row = self._one_row(x)
                return float(model._known.predict_mean(model._columns(row))[0])
            predict = self._open_lean("_predict_lean", "predict_mean")
        return predict(x)

    def _likelihood(self) -> Likelihood:
        raise NotImplementedError

    def _check_mergeable(self, other: Self) -> None:
        """Raise ``ValueError`` where the models differ in what only this class has."""

    def _begin_as(self, other: Self) -> None:
        """Start from the prior with the features and the basis of another model."""
        self._set_features(other.n_features_in_, getattr(other, "feature_names_in_", None))
        if other.basis is not None:
            self.basis_ = other.basis_
        self._start()

    def _noise(self) -> Noise:
        return KnownNoise(1.0)  # the rows that stand for observations are in units of their own

    def _check_approximation(self) -> None:
        if self.approximation not in ("auto", "laplace", "moments"):
            raise ValueError(
                f"approximation is {self.approximation!r}: it must be 'auto', 'laplace' or "
                "'moments'"
            )

    def _before_data(self) -> LinearPosterior:
        inner = super()._before_data()
        self._check_approximation()
        approximation = "moments" if self.approximation == "auto" else self.approximation
        return GeneralizedPosterior.around(inner, self._likelihood(), approximation)

    def _learned(
        self,
        way: Way,
        rows: tuple[Any, Any, ArrayLike | None],
        times: ArrayLike | None,
        offsets: Offsets | None = None,
    ) -> Any:
        """Learn rows (X, y, sample_weight) in one of three ways; returns what was predicted."""
        first = way == "fit" or self._knowledge is None
        model = self._fresh() if first else self
        X, y, weights = read_rows(model, *rows, reset=first)
        elapsed, now = read_times(times, len(X), weights, None if first else self._now)
        known_part = None if offsets is None else offsets(len(X))
        if first:
            model._begin(X)
        columns = model._columns(X)
        with explained(model, X, y):
            check_usable(columns, y)
            rows_read = columns, y, weights, elapsed
            told = learn(model._known, way, rows_read, known_part, self.approximation)
        model._now = now
        if first:
            self._take_over(model)
        return told

    @all_or_nothing
    def _learn_row(self, x: Any, y: float, weight: float, time: float | None) -> None:
        """Learn the one row ``x``, an array or a mapping."""
        X, target = self._path.values(x), np.array([[float(y)]])
        columns = self._columns(X)
        weights = None if weight == 1.0 else read_weights([weight], 1)
        elapsed, now = read_times(None if time is None else [time], 1, weights, self._now)
        with explained(self, X, target):
            check_usable(columns, target)
            self._known.append(columns, target, weights, elapsed)
        self._now = now

    @property
    def _learns_lean(self) -> bool:
        """Whether single rows are learned on the lean path."""
        known: Any = self._knowledge
        lean = self.basis is None and isinstance(known, GeneralizedPosterior)
        return lean and known.learns_lean

    @property
    def _predicts_lean(self) -> bool:
        """Whether single rows are predicted there."""
        known: Any = self._knowledge
        lean = self.basis is None and isinstance(known, GeneralizedPosterior)
        return lean and known.predicts_lean

    def _predictor(self, X: Array, offsets: Array | None = None) -> tuple[Array, Array]:
        """Mean and variance (n,) of the linear predictor at the rows of ``X``."""
        known: Any = self._known
        told = known.linear_predictor(self._columns(X), offsets)
        return told.loc, np.square(told.scale)

    def _one_row(self, x: ArrayLike | Mapping[str, float]) -> tuple[Self, Array]:
        """The model that can tell of the one row ``x``, and the row (1, m)."""
        model = self if self._knowledge is not None else self._begun_from(x)
        return model, model._reader().values(x)


def learn(
    known: Any,
    way: Way,
    rows: tuple[Array, Array, Array | None, Array],
    offsets: Array | None,
    approximation: Approximation,
) -> Any:
    """Have a posterior learn rows; under "auto" the first rows of ``fit`` at their mode."""
    at_the_mode = getattr(known, "at_the_mode", None)
    if approximation == "auto" and way == "fit" and at_the_mode is not None:
        known = at_the_mode()
    return getattr(known, way)(*rows, offsets)


def one_for_each_row(name: str, values: ArrayLike, n: int) -> Array:
    """``values`` as floats (n,); one number is meant for all rows.

    Examples
    --------
    >>> one_for_each_row("offset", 1.0, 2)
    array([1., 1.])
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(n, array)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}: expected ({n},), one for each row of X")
    return array


def log_exposure(exposure: ArrayLike | None, n: int) -> Array | None:
    """Log exposures (n,), or None for ones. Raises ``ValueError`` naming the row.

    Examples
    --------
    >>> log_exposure([1.0, 2.0], 2).round(3)
    array([0.   , 0.693])
    """
    if exposure is None:
        return None
    values = one_for_each_row("exposure", exposure, n)
    bad = ~((values > 0.0) & np.isfinite(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"exposure is {values[row]} in row {row}: it must be positive and finite; leave out "
            "rows that were not exposed"
        )
    return np.log(values)
