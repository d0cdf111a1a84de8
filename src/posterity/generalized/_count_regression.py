"""What regressions of counts share: exposure, rates, and predictions of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from posterity.distributions import LogNormalCounts
from posterity.generalized.base import GeneralizedModel, log_exposure
from posterity.linear.inputs import read_points, refuse_no_weight
from posterity.transaction import all_or_nothing

Array = NDArray[np.float64]


def check_counts_or_rates(y: Array) -> None:
    """Raise ``ValueError`` unless all are finite and not negative; averages are not whole."""
    bad = np.flatnonzero(~((y >= 0.0) & np.isfinite(y)))
    if len(bad):
        raise ValueError(
            f"y in row {bad[0]} is {y[bad[0]]:g}: a count must be 0 or more, and finite"
        )


class CountRegression(RegressorMixin, GeneralizedModel):
    """A count of the rate ``exposure * exp(intercept + x . coef)``."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    # ---- learning --------------------------------------------------------------------------------

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Forget everything and learn these rows together, to convergence.

        Parameters
        ----------
        X : (n, m) array or data frame
        y : (n,) array
            Counts, from 0 up. Numbers that are not whole are averages of counts, learned as if
            they were; they have no probability as a prediction.
        sample_weight : (n,) array, optional
            Weights >= 0; weight 2 is the row twice.
        exposure : (n,) array or float, optional
            Time, area or people that each count comes from, > 0; 1 by default.
        times : (n,) array, optional
            When each row came; what ``forgetting`` counts its time in.

        Raises
        ------
        ValueError
            If a value can't be used; the message names the row and column.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression(prior_precision=0.0).fit([[0], [1]], [1, 3])
        >>> model.predict([[0], [1]]).round(6)
        array([1., 3.])
        """
        refuse_no_weight(sample_weight)
        self._learned("fit", (X, y, sample_weight), times, partial(log_exposure, exposure))
        return self

    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows too, together, from what is known so far. Parameters as in :meth:`fit`.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression(prior_precision=1.0)
        >>> model.partial_fit([[0]], [1]).partial_fit([[1]], [3]).n_observations_
        2.0
        """
        self._learned("append", (X, y, sample_weight), times, partial(log_exposure, exposure))
        return self

    @all_or_nothing
    def predict_then_learn(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Any:
        """Predict each row before it is learned, then learn it: one pass, row after row.

        Returns the distribution of each count given all the rows before it.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> told = BayesianPoissonRegression().predict_then_learn([[0.0], [0.0]], [4, 4])
        >>> bool(told.logpmf([4, 4])[1] > told.logpmf([4, 4])[0])
        True
        """
        return self._learned(
            "predict_then_learn", (X, y, sample_weight), times, partial(log_exposure, exposure)
        )

    @all_or_nothing
    def unlearn(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """As :meth:`GeneralizedModel.unlearn`; ``exposure`` as when the rows were learned.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> X, y = [[0.0], [1.0], [2.0]], [1, 2, 5]
        >>> model = BayesianPoissonRegression(prior_precision=1.0).partial_fit(X[:2], y[:2])
        >>> before = model.coef_
        >>> model.learn_one(X[2], y[2]).unlearn(X[2:], y[2:]).coef_.round(6) == before.round(6)
        array([ True])
        """
        return self._unlearned((X, y, sample_weight), partial(log_exposure, exposure))

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, X: Any, *, exposure: ArrayLike | None = None) -> Array:
        """(n,) expected counts at the coefficients' mean (after ``fit`` the mode).

        The rate at the coefficients that are reported, as a generalised linear model's; the mean
        of :meth:`predict_distribution`, which is larger where they are uncertain, averages over
        them.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression().fit([[0], [1]], [1, 3])
        >>> model.predict([[0]], exposure=[2.0]).shape
        (1,)
        """
        known = self._known
        X = read_points(self, X)
        offsets = log_exposure(exposure, len(X))
        eta = known.predict_mean(self._columns(X))
        return np.exp(np.minimum(eta if offsets is None else eta + offsets, 700.0))

    def predict_distribution(self, X: Any, *, exposure: ArrayLike | None = None) -> LogNormalCounts:
        """Distribution of new counts, integrated over the posterior: one a row of ``X``.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression().fit([[0], [1], [2]], [1, 3, 8])
        >>> model.predict_distribution([[1.0]]).pmf([3]).shape
        (1,)
        """
        return self._counts(*self._at(X, exposure))

    def predict_interval(
        self,
        X: Any,
        level: float = 0.95,
        *,
        exposure: ArrayLike | None = None,
        of: Literal["count", "rate"] = "count",
    ) -> Array:
        """(n, 2) ends of the central interval of a new count, or of the expected count.

        Parameters
        ----------
        X : (n, m) array or data frame
        level : float, default 0.95
        exposure : (n,) array or float, optional
        of : "count" or "rate"
            The rate's interval knows the coefficients' uncertainty only; a count varies more.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression().fit([[0], [1], [2]], [1, 3, 8])
        >>> low, high = model.predict_interval([[1.0]], level=0.9)[0]
        >>> bool(low < 3.0 < high)
        True
        """
        if of == "count":
            told = self.predict_distribution(X, exposure=exposure)
            return np.stack(told.interval(level), axis=1)
        if of != "rate":
            raise ValueError(f"of is {of!r}: it must be 'count' or 'rate'")
        if not 0.0 < level < 1.0:
            raise ValueError(f"level is {level}: it must lie between 0 and 1, as in 0.95")
        mean, variance = self._at(X, exposure)
        reach = ndtri(0.5 + 0.5 * level) * np.sqrt(variance)
        with np.errstate(over="ignore"):
            return np.exp(np.stack([mean - reach, mean + reach], axis=1))

    def predict_one(self, x: ArrayLike | Mapping[str, float]) -> float:
        """Expected count at one row ``x``, as of :meth:`predict`; before any data, the prior's.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> BayesianPoissonRegression().predict_one([3.0])
        1.0
        """
        return math.exp(min(self._predictor_one(x), 700.0))

    # ---- inner -----------------------------------------------------------------------------------

    def _counts(self, mean: Array, variance: Array) -> LogNormalCounts:
        """Counts of log rates with these means and variances (n,)."""
        raise NotImplementedError

    def _at(self, X: Any, exposure: ArrayLike | None) -> tuple[Array, Array]:
        self._known  # noqa: B018  (says that nothing was learned before X is looked at)
        X = read_points(self, X)
        return self._predictor(X, log_exposure(exposure, len(X)))
