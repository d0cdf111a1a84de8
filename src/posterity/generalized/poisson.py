"""Bayesian Poisson regression: how many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from posterity.basis import Basis
from posterity.distributions import PoissonLogNormal
from posterity.evidence import Strategy
from posterity.forgetting import Forgetting
from posterity.generalized.base import Approximation, GeneralizedModel, log_exposure
from posterity.likelihoods import Likelihood, Poisson
from posterity.linear.inputs import read_points
from posterity.transaction import all_or_nothing

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CountsOrRates(Poisson):
    """The same for numbers that are not whole: averages of counts, as weights say.

    Examples
    --------
    >>> CountsOrRates().check_targets(np.array([0.5]))
    """

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are finite and not negative."""
        bad = np.flatnonzero(~((y >= 0.0) & np.isfinite(y)))
        if len(bad):
            raise ValueError(
                f"y in row {bad[0]} is {y[bad[0]]:g}: a count must be 0 or more, and finite"
            )


class BayesianPoissonRegression(RegressorMixin, GeneralizedModel):
    """Poisson regression with a log link and a Gaussian prior, in one pass or to convergence.

    ``y ~ Poisson(exposure * exp(intercept + x . coef))``. Each row is learned as a Gaussian row
    that stands for its likelihood, so that learning online, forgetting, weights and the evidence
    work as in :class:`posterity.BayesianLinearRegression`.

    Parameters
    ----------
    prior_mean : float or (m,) array, default 0.0
        Prior mean of the coefficients.
    prior_precision : "auto", "ard", strategy, float, (m,) or (m, m) array, default "auto"
        Prior precision of the coefficients, in 1 / coefficient units squared; "auto" learns it
        from the evidence. 0.0 is a flat prior: maximum likelihood.
    fit_intercept : bool, default True
        Whether to learn an intercept. Its prior is flat in :meth:`fit`; online the first row is met
        with Normal(0, 10^2).
    approximation : "auto", "laplace" or "moments", default "auto"
        The Gaussian that stands for a row. "laplace": at the mode, so that ``fit`` ends in the mode
        (maximum a posteriori, as scikit-learn's PoissonRegressor with
        alpha = prior_precision / n). "moments": of equal moments, so that it ends near the
        posterior mean (expectation propagation); in one pass it predicts better. "auto" is
        "laplace" in ``fit`` and "moments" in all that comes online.
    basis : transformer from posterity.basis, optional
        Functions of the features to be linear in.
    forgetting : strategy from posterity.forgetting, optional
        How old rows lose their say; None: never.

    Attributes
    ----------
    coef_ : (m,) array
        Posterior mean (after ``fit`` the mode) of the coefficients, in log rate per unit.
    intercept_ : float
    posterior_ : MultivariateNormal
        Joint posterior of [intercept, coefficients].
    prior_precision_, log_evidence_, n_observations_, n_effective_, forgotten_
        As in :class:`posterity.BayesianLinearRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> hours = rng.uniform(1.0, 10.0, size=500)
    >>> y = rng.poisson(hours * np.exp(0.5 + X @ [0.3, -0.2]))
    >>> model = BayesianPoissonRegression().fit(X, y, exposure=hours)
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1)
    ([0.3, -0.2], 0.5)
    >>> model.predict([[0.0, 0.0]], exposure=10.0).round(0)
    array([16.])
    """

    def __init__(
        self,
        *,
        prior_mean: ArrayLike = 0.0,
        prior_precision: ArrayLike | str | Strategy = "auto",
        fit_intercept: bool = True,
        approximation: Approximation = "auto",
        basis: Basis | None = None,
        forgetting: Forgetting | None = None,
    ) -> None:
        self.prior_mean = prior_mean
        self.prior_precision = prior_precision
        self.fit_intercept = fit_intercept
        self.approximation = approximation
        self.basis = basis
        self.forgetting = forgetting

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
        >>> model = BayesianPoissonRegression(prior_precision=0.0).fit([[0], [1]], [1, 3])
        >>> model.predict([[0], [1]]).round(6)
        array([1., 3.])
        """
        if sample_weight is not None and not np.asarray(sample_weight).any():
            raise ValueError("every sample_weight is zero: there is nothing to fit")
        self._learned("fit", (X, y, sample_weight), times, exposure)
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
        >>> model = BayesianPoissonRegression(prior_precision=1.0)
        >>> model.partial_fit([[0]], [1]).partial_fit([[1]], [3]).n_observations_
        2.0
        """
        self._learned("append", (X, y, sample_weight), times, exposure)
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
        >>> told = BayesianPoissonRegression().predict_then_learn([[0.0], [0.0]], [4, 4])
        >>> bool(told.logpmf([4, 4])[1] > told.logpmf([4, 4])[0])
        True
        """
        told = self._learned("predict_then_learn", (X, y, sample_weight), times, exposure)
        return _counts(told)

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
            self._learn_lean = learn = self._open_row_path().learn
        if time is not None or self._now is not None or not learn(x, y, weight):
            self._learn_row(x, y, weight, time)
        return self

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, X: Any, *, exposure: ArrayLike | None = None) -> Array:
        """(n,) expected counts at the coefficients' mean (after ``fit`` the mode).

        The rate at the coefficients that are reported, as a generalised linear model's; the mean
        of :meth:`predict_distribution`, which is larger where they are uncertain, averages over
        them.

        Examples
        --------
        >>> model = BayesianPoissonRegression().fit([[0], [1]], [1, 3])
        >>> model.predict([[0]], exposure=[2.0]).shape
        (1,)
        """
        known = self._known
        X = read_points(self, X)
        offsets = log_exposure(exposure, len(X))
        eta = known.predict_mean(self._columns(X))
        return np.exp(np.minimum(eta if offsets is None else eta + offsets, 700.0))

    def predict_distribution(
        self, X: Any, *, exposure: ArrayLike | None = None
    ) -> PoissonLogNormal:
        """Distribution of new counts, integrated over the posterior: one a row of ``X``.

        Examples
        --------
        >>> model = BayesianPoissonRegression().fit([[0], [1], [2]], [1, 3, 8])
        >>> model.predict_distribution([[1.0]]).pmf([3]).shape
        (1,)
        """
        mean, variance = self._at(X, exposure)
        return PoissonLogNormal(mean, variance)

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
        >>> BayesianPoissonRegression().predict_one([3.0])
        1.0
        """
        try:
            predict = self._predict_lean
        except AttributeError:
            if self._knowledge is None or not self._predicts_lean:
                model, row = self._one_row(x)
                eta = model._known.predict_mean(model._columns(row))
                return math.exp(min(float(eta[0]), 700.0))
            self._predict_lean = predict = self._open_row_path().predict_mean
        return math.exp(min(predict(x), 700.0))

    # ---- inner -----------------------------------------------------------------------------------

    def _likelihood(self) -> Likelihood:
        return CountsOrRates()

    def _at(self, X: Any, exposure: ArrayLike | None) -> tuple[Array, Array]:
        self._known  # noqa: B018  (says that nothing was learned before X is looked at)
        X = read_points(self, X)
        return self._predictor(X, log_exposure(exposure, len(X)))


def _counts(told: Any) -> Any:
    """The same prediction with probabilities to all digits, where it is a single one."""
    if hasattr(told, "eta_mean"):
        return PoissonLogNormal(told.eta_mean, told.eta_variance)
    return told
