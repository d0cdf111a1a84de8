"""Bayesian linear regression, one row or a million at a time, with the same posterior."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length

from posterity.aliases import Array
from posterity.distributions._limits import interval_ends
from posterity.distributions.row_distribution import RowDistribution
from posterity.kernel.tables import TableLike
from posterity.linear.estimator import LinearEstimator, Way
from posterity.linear.inputs import (
    read_rows,
    read_times,
    read_weights,
    refuse_unusable,
)
from posterity.linear.later import read_at
from posterity.linear.leaving_out import ONE_TARGET, leave_one_out
from posterity.linear.matrices import check_matrix, check_width, find_block_starts
from posterity.linear.reader import predict_targets_or_means
from posterity.linear.spread import noise_depends, with_spread
from posterity.linear.targets import targets_of
from posterity.posteriors._target_coefficients import split_targets
from posterity.transaction import atomic


class GaussianRegression(RegressorMixin, LinearEstimator):
    """Base of models whose target is the linear predictor and noise, in units of its own."""

    @property
    def noise_coef_(self) -> Array:
        """(m,) posterior mean of the coefficients of the log of the noise's variance."""
        return self._posterior.noise_coefficients()[1:]

    @property
    def noise_intercept_(self) -> float:
        """Log of the noise's variance where all features are 0."""
        return float(self._posterior.noise_coefficients()[0])

    # ---- predicting ------------------------------------------------------------------------------

    def predict(
        self, X: TableLike, return_std: bool = False, *, times: ArrayLike | None = None
    ) -> Any:
        """Mean of new observations at ``X`` (n, m), and with ``return_std`` their sd as well.

        ``times``, one or (n,) that do not decrease, is when the observations come, as in
        :meth:`at`; by default at the time of the last row learned. Under ``Changepoint``, and for
        that member of ``Adaptive``, a read without a time is for one unit after the last row.

        Examples
        --------
        >>> model = BayesianLinearRegression(prior_precision=0.0).fit([[0], [1], [2]], [1, 3, 5])
        >>> model.predict([[3.0]]).round(9)
        array([7.])
        """
        if times is not None:
            return read_at(self, times, X, lambda model, rows: model.predict(rows, return_std))
        if return_std:
            distribution = self.predict_distribution(X)
            return distribution.mean(), distribution.std()
        return self._posterior.predict_mean(self._read_points(X))

    def predict_distribution(
        self, X: TableLike, *, times: ArrayLike | None = None
    ) -> RowDistribution:
        """Distribution of new observations at ``X`` (n, m): Normal or StudentT, one per row.

        ``times`` is when they come, as in :meth:`predict`.

        Of several targets it is a :class:`posterity.distributions.JointPrediction` of them all.
        Its scale is infinite where the rows learned so far leave a flat direction open.

        Examples
        --------
        >>> model = BayesianLinearRegression(noise_precision=1.0).fit([[0.0], [2.0]], [0.0, 1.0])
        >>> model.predict_distribution([[1.0]]).std().round(4)
        array([1.2247])
        """
        if times is not None:
            return read_at(self, times, X, lambda model, rows: model.predict_distribution(rows))
        return self._posterior.predictive(self._read_points(X))

    def predict_interval(
        self,
        X: TableLike,
        level: float = 0.95,
        *,
        of: Literal["observation", "mean"] = "observation",
        times: ArrayLike | None = None,
    ) -> Array:
        """(n, 2) ends of the central interval that holds a new observation with this probability.

        Of several targets (n, q, 2): for each target by itself.

        Parameters
        ----------
        X : (n, m) array or data frame
        level : float, default 0.95
        of : "observation" or "mean"
            "mean": the interval of the expected target, which leaves out the noise.
        times : float or (n,) array, optional
            When the observations come, as in :meth:`predict`.

        Examples
        --------
        >>> model = BayesianLinearRegression(noise_precision=1.0).fit([[0.0], [2.0]], [0.0, 1.0])
        >>> model.predict_interval([[1.0]], level=0.95).round(2)
        array([[-1.9,  2.9]])
        >>> model.predict_interval([[1.0]], level=0.95, of="mean").round(2)
        array([[-0.89,  1.89]])
        """
        if times is not None:
            return read_at(
                self, times, X, lambda model, rows: model.predict_interval(rows, level, of=of)
            )
        if of == "mean" and hasattr(self, "n_targets_"):
            rows, _ = self._prepare_rows(X, None)
            joints: Any = self._joint()
            pairs = zip(joints.each, self._posterior.each, strict=True)  # type: ignore[attr-defined]
            each = (self._project(*pair, rows, 0.0) for pair in pairs)
            return np.stack([interval_ends(one, level) for one in each], axis=1)
        return interval_ends(predict_targets_or_means(self, X, of, {}), level)

    def leave_one_out(self, X: TableLike, y: TableLike) -> RowDistribution:
        """Distribution of each row's target given all other rows, in closed form.

        Its ``logpdf(y)`` adds up to the expected log predictive density of leave-one-out cross
        validation, without Pareto smoothing or refits.

        Parameters
        ----------
        X : (n, m) array or data frame
            Rows that were learned, each with weight 1; that they were can't be checked.
        y : (n,) array
            Their targets.

        Returns
        -------
        Normal, StudentT or Mixture
            n rows. A row without which a direction is open is flat.

        Raises
        ------
        ValueError
            If the model forgets, has several targets or other noise than constant Gaussian, or has
            learned fewer rows than these.

        Notes
        -----
        With leverage h and residual e under the posterior of all rows, the residual without the
        row is e / (1 - h), its leverage h / (1 - h), and the sum of squares less by e^2 / (1 - h)
        (Gelman et al. 2013, section 7.2; Cook and Weisberg 1982). Where the prior is learned, its
        nodes stay as all rows chose them, and their weights are those without the row.

        Examples
        --------
        >>> import numpy as np
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.1, 4.9, 7.0])
        >>> model = BayesianLinearRegression(prior_precision=1.0).fit(X, y)
        >>> without = BayesianLinearRegression(prior_precision=1.0).fit(X[1:], y[1:])
        >>> predictive, again = model.leave_one_out(X, y), without.predict_distribution(X[:1])
        >>> bool(np.allclose(predictive.mean()[0], again.mean()[0]))
        True
        """
        posterior = self._posterior
        if targets_of(self)[0] is not None:
            raise ValueError(ONE_TARGET)
        X, targets, _ = read_rows(self, X, y, None, reset=False)
        refuse_unusable(self, X, targets)
        return leave_one_out(posterior, self._columns(X), targets)

    # ---- inner -----------------------------------------------------------------------------------

    def _means_and_variances(
        self, X: TableLike, size: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        if self.noise != "constant":
            raise ValueError(
                f"noise is {self.noise!r}: R^2 needs noise of one variance, noise='constant'"
            )
        posterior, (rows, _) = self._joint(), self._prepare_rows(X, None)
        drawn = [one.draw_with_noise(size, rng) for one in split_targets(posterior)]
        means = np.stack([coefficients @ rows.T for coefficients, _ in drawn], axis=-1)
        variances = np.stack([np.square(noise) for _, noise in drawn], axis=-1)
        several = targets_of(self)[0] is not None
        return (means, variances) if several else (means[..., 0], variances[..., 0])

    @atomic
    def _learn_rows(
        self,
        way: Way,
        rows: tuple[Any, Any, ArrayLike | None],
        times: ArrayLike | None,
        added: ArrayLike | None = None,
    ) -> Any:
        """Learn rows; a sparse matrix part by part, never dense as a whole."""
        X, y, sample_weight = rows
        plain = self.basis is None and self.noise == "constant" and way != "predict_then_learn"
        if not (plain and issparse(X) and len(find_block_starts(X)) > 1):
            return super()._learn_rows(way, rows, times, added)
        check_width(X)
        X = check_matrix(X)
        n = X.shape[0]
        weights = read_weights(sample_weight, n)
        check_consistent_length(X, y)
        read_times(times, n, weights, None if way == "fit" else self._now)
        refuse_unusable(self, np.zeros((0, 1)), np.asarray(y, dtype=np.float64).reshape(n, -1))
        begun = way != "fit"
        for start, stop in pairwise([*find_block_starts(X), n]):
            some = slice(start, stop)
            part = X[some], y[some], None if weights is None else weights[some]
            when = None if times is None else np.asarray(times)[some]
            super()._learn_rows("append" if begun else "fit", part, when, added)
            begun = True
        return None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.takes_targets
        return tags

    def _start(self) -> None:
        depends = noise_depends(self)
        super()._start()
        if depends:
            fresh = self._before_data()
            self._posterior_or_none = with_spread(fresh, self.forgetting, self._prior_shapes())
            self._take_targets()

    # Functions of features are learned as features are.

    @property
    def _has_fast_learn_one(self) -> bool:
        return self._posterior.has_fast_learn_one

    @property
    def _has_fast_predict_one(self) -> bool:
        return self._posterior.has_fast_predict_one


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianLinearRegression(GaussianRegression):
    """Linear regression with a Gaussian prior, exact and online.

    ``y = intercept + x . coef + noise``. The model stores a triangle of p (p + 1) / 2 numbers
    instead of the rows. Learning a row costs O(p^2). Rows learned one by one, in batches, at once,
    or in models that are merged give the same posterior to rounding.

    Parameters
    ----------
    prior_mean : float, (m,) array or dict, default 0.0
        Prior mean of the coefficients. A dict gives it by feature name; all others have 0.
    prior_precision : "auto", "ard", strategy, float, (m,) or (m, m) array, or dict, default "auto"
        Prior precision of the coefficients. "auto" learns a scale for each of them from the
        evidence, relative to the variance of each feature, and integrates over the remaining
        uncertainty, also over whether one scale is enough for all
        (:class:`posterity.evidence.LocalScales`). "ard" integrates over which features are strong
        (:class:`posterity.evidence.Relevance`). Other strategies are in
        :mod:`posterity.evidence`. You can also give a number for all, one for each, or a positive
        semi-definite matrix; 0.0 is a flat prior (ordinary least squares). If ``noise_precision``
        is given, this is the precision of the coefficients themselves (Bishop's alpha, in
        1 / coefficient units squared). If the noise is learned, it is relative to the noise:
        ``w | sigma^2 ~ Normal(prior_mean, sigma^2 / prior_precision)``. A dict gives it by feature
        name, as in ``{"price": 4.0}``; all others have a flat prior, 0.0.
    prior : dict of posterity.distributions.Normal, optional
        Prior mean and standard deviation by feature name, as in ``{"price": Normal(-1.0, 0.5)}``.
        They describe the coefficient itself, so ``noise_precision`` must be given. Features that
        are not named have a flat prior. The intercept is called "intercept".
    noise_precision : float, optional
        1 / variance of the noise, in 1 / target units squared. With None it is learned, and
        predictions are Student-t. With a number it is known, and predictions are normal.
    noise_prior : (float, float), default (0.0, 0.0)
        Shape and rate of the Gamma prior of a learned noise precision. (0, 0) is the scale-free
        p(sigma^2) = 1 / sigma^2.
    noise : "constant" or "linear", default "constant"
        With "linear", the log of the noise's variance is linear in the features, or in the
        functions of a ``basis``. It is learned together with the coefficients, under a learned
        prior of its own, which finds noise to be constant if it does not depend on the features.
    fit_intercept : bool, default True
        Whether to learn an intercept. Its prior is flat unless ``prior`` names it.
    basis : "auto", transformer from posterity.basis, any stateless one, or a mapping, optional
        Functions of the features that take the place of the features, to fit curves. "auto" is
        :class:`posterity.basis.AutoBasis`, a general function of several features. A mapping
        gives a basis to single columns, as in ``{"hour": Fourier(period=24.0)}``; all others
        remain linear. The basis is fitted once, to the first batch, as ``basis_``, and ``coef_``
        has one number for each function. For a basis with a prior of its own, such as
        :class:`posterity.basis.HilbertSpaceGP`, the evidence also chooses its length scale, and a
        number given as ``prior_precision`` multiplies the precisions of that prior.
    forgetting : strategy from posterity.forgetting, or str, optional
        How old rows lose weight, in words too, as "adaptive" or "exponential:0.99". None: never.
    categorical_features : "auto", "all", list or dict of str, or None, default "auto"
        Columns of a data frame that are categories: each level has a coefficient, named as in
        "zone=north". "auto": those of text and of category types; a list: these as well, though
        they hold numbers; a dict: these, with all levels that may come, as in ``{"zone": ["north",
        "south"]}``; "all": every column. Levels are in the order of the dict or of the category
        type, else sorted. One that was never learned, "zone=(other)", is predicted by the levels'
        prior.
    missing : "error" or "level", default "error"
        What a missing value of a category is: refused, or a level of its own, "missing".

    Attributes
    ----------
    coef_ : (m,) array
        Posterior mean of the coefficients; (q, m) if y has q columns.
    intercept_ : float
        Posterior mean of the intercept; (q,) if y has q columns.
    n_targets_, target_names_ : int, (q,) array
        If y has columns: their number, and their names if they have any.
    posterior_ : MultivariateNormal, MultivariateT or MultivariateMixture
        Joint posterior of [intercept, coefficients] (the intercept only if there is one). It is a
        mixture if the prior is learned and more than one precision is probable.
    noise_precision_ : float
        The known noise precision, or the posterior mean of the learned one; none with
        ``noise="linear"``.
    noise_coef_ : (m,) array
        With ``noise="linear"`` only: coefficients of the log of the noise's variance.
    noise_intercept_ : float
        With ``noise="linear"`` only: that log where all features are 0.
    prior_precision_ : float or array
        The prior precision in use; if it is learned, one for each feature.
    log_evidence_ : float
        log p(y | X), the marginal likelihood of the model. With proper priors (except for the flat
        intercept) it is the sum of the log predictive densities of the rows as they came.
    n_observations_ : float
        Sum of the weights of the rows learned.
    n_effective_ : float
        Sum of the weights after forgetting; the same if nothing is forgotten.
    forgotten_ : float
        Difference of the two: the total weight forgotten so far.
    change_probability_, changes_ : arrays
        With :class:`posterity.forgetting.Changepoint` only: probability of a change right before
        each row of the last call, and the rows where changes were found.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Several targets, y (n, q), are learned in one triangle of p + q columns. Each is predicted as by
    a model of its own, and ``predict_distribution`` gives the joint distribution of all
    (:class:`posterity.distributions.JointPrediction`). The page "Many targets" has formulas.

    A row of weight w counts as w rows in the coefficients, the counts and the degrees of freedom.
    Every method that learns checks its arguments first: a call that raises leaves the model as it
    was. The algebra is in the documentation (architecture); the equations are Bishop (2006),
    3.49-3.59, and Gelman et al. (2013), section 14.2.

    With ``noise="linear"``, log variance = noise_intercept + x . noise_coef (Harvey 1976). ``fit``
    finds both in turns, with squared errors corrected for leverage (Smyth and Verbyla 1999). Rows
    of a stream are weighted by the noise that was expected when they came, so a stream and ``fit``
    agree to about half a standard error. A row is unlearned with the weight it would have today. A
    given ``prior_precision`` is relative to the noise of the average row.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = 1.0 + X @ [2.0, -3.0] + rng.normal(scale=0.1, size=200)
    >>> model = BayesianLinearRegression().fit(X[:100], y[:100])
    >>> model = model.partial_fit(X[100:], y[100:])
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1)
    ([2.0, -3.0], 1.0)
    >>> model.predict_interval(X[:1], level=0.9).shape
    (1, 2)
    """

    takes_targets: ClassVar[bool] = True
    noise_precision: float | None = None
    noise_prior: tuple[float, float] = (0.0, 0.0)
    noise: Literal["constant", "linear"] = "constant"

    def _list_learned(self) -> list[str]:
        told = super()._list_learned()
        precision = np.asarray(getattr(self, "noise_precision_", 0.0))  # each row may have its own
        if precision.ndim == 0 and 0.0 < precision < np.inf:
            told.append(f"noise sd {float(precision) ** -0.5:,.6g}")
        return told
