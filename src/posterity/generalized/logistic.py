"""Bayesian logistic regression: yes or no, or one of many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import ClassifierMixin

from posterity.aliases import AnyArray, Array
from posterity.distributions import Categorical
from posterity.distributions._limits import check_single_level
from posterity.generalized._classifier import Classifier
from posterity.linear.learning import LearnsLabels

Labels = AnyArray


class BayesianLogisticRegression(LearnsLabels, ClassifierMixin, Classifier):
    """Logistic regression with a Gaussian prior, for two or more classes, online or in batches.

    Each row is learned as a Gaussian row that stands for its likelihood, so that learning online,
    forgetting, weights and the evidence work as in :class:`posterity.BayesianLinearRegression`.
    Probabilities are integrated over what is not known of the coefficients: far from the data they
    draw back to even odds.

    Parameters
    ----------
    prior_mean : float, (m,) array or dict, default 0.0
        Prior mean of the coefficients of the second class's log odds. What classes have in common
        no label tells of: with more than two, a prior mean has no effect.
    prior_precision : "auto", "ard", strategy, float, (m,) or (m, m) array, or dict, default "auto"
        Prior precision of the coefficients, in 1 / coefficient units squared; "auto" learns it
        from the evidence. A number is 1 / C of scikit-learn's LogisticRegression. 0.0 is a flat
        prior: maximum likelihood, which exists unless the classes are separated.
    prior : dict of posterity.distributions.Normal, optional
        Both in one, by feature name, as in ``{"price": Normal(-1.0, 0.5)}``. Features that neither
        it nor a dict of precisions names have a flat prior.
    fit_intercept : bool, default True
        Whether to learn an intercept. Its prior is flat in :meth:`fit`; online the first row is met
        with Normal(0, 10^2).
    approximation : "auto", "laplace" or "moments", default "auto"
        The Gaussian that stands for a row. "laplace": at the mode, so that ``fit`` ends in the mode
        (maximum a posteriori, as scikit-learn). "moments": of equal moments, so that it ends near
        the posterior mean (expectation propagation); in one pass it predicts better. "auto" is
        "moments" in all that comes online. In ``fit`` of two classes it averages each row's
        likelihood over the posterior (a variational approximation, Opper and Archambeau 2009): the
        probabilities of the rows learned then add up to the labels that came. With more than two
        classes ``fit`` is "laplace", unless rows are few and the prior is learned, and "moments"
        averages gradient and curvature, which is within a tenth of the same variance.
    basis : transformer from posterity.basis, optional
        Functions of the features to be linear in.
    forgetting : strategy from posterity.forgetting, optional
        How old rows lose weight. None: they never do.
    categorical_features, missing
        As in :class:`posterity.BayesianLinearRegression`.

    Attributes
    ----------
    classes_ : (K,) array
        Labels seen or named so far, sorted.
    coef_ : (1, m) array, or (K, m) with more than two classes
        Posterior mean (with "laplace" the mode) of the coefficients.
    intercept_ : (1,) or (K,) array
    posterior_ : MultivariateNormal, or MultivariateMixture where the prior is learned
        Joint posterior of [intercept, coefficients]; with K classes, of what each has more of than
        the first, class by class.
    prior_precision_, log_evidence_, n_observations_, n_effective_, forgotten_
        As in :class:`posterity.BayesianLinearRegression`.

    Notes
    -----
    With K classes each has coefficients of its own with the same prior; only their differences can
    be learned, K - 1 orthonormal contrasts, on which the prior is the same again. Up to 600 of
    these coefficients, (K - 1) p, and a work of (K - 1)^3 p^2 < 4e6 a row, they have their whole
    covariance. Beyond, each class has a factor of p columns, with its own curvature: the mode
    stays exact, and intervals nearly hold unless most coefficients are large; all classes must be
    named in the first call, and "ard" is refused.

    A class that comes late is met by its prior, and by one thing that is known of it: that all rows
    before it, at their mean, were something else.

    Rows that come online sorted by class are learned badly: 95% intervals of coefficients then
    held 9% to 39% in simulations, in random order 94% to 98%. Shuffle them, or :meth:`fit`, which
    knows no order.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = np.where(X @ [2.0, -1.0] + rng.logistic(size=400) > 0.5, "yes", "no")
    >>> model = BayesianLogisticRegression().fit(X[:300], y[:300])
    >>> model = model.partial_fit(X[300:], y[300:])
    >>> model.classes_.tolist(), model.coef_.shape
    (['no', 'yes'], (1, 2))
    >>> model.predict([[1.0, 0.0]]), model.predict_proba([[1.0, 0.0]]).shape
    (array(['yes'], dtype='<U3'), (1, 2))
    """

    # ---- learning --------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows together, to convergence, starting from the prior.

        Parameters
        ----------
        X : (n, m) array or data frame
        y : (n,) array
            Labels: whole numbers, truth values or text.
        sample_weight : (n,) array, optional
            Weights >= 0; weight 2 is the row twice.
        times : (n,) array, optional
            When each row came; what ``forgetting`` counts its time in.

        Raises
        ------
        ValueError
            If a value can't be used (the message names the row and column), or there is only one
            class.

        Warns
        -----
        UserWarning
            If the prior is flat and the classes are separated, so that nothing is most probable.

        Examples
        --------
        >>> model = BayesianLogisticRegression(prior_precision=1.0)
        >>> model.fit([[0.0], [1.0], [2.0]], ["a", "b", "b"]).predict([[5.0]])
        array(['b'], dtype='<U1')
        """
        return super().fit(X, y, sample_weight, times=times)

    def learn_one(
        self,
        x: ArrayLike | Mapping[str, float],
        y: Any,
        weight: float = 1.0,
        time: float | None = None,
    ) -> Self:
        """Learn one row ``x``, a 1-D array or a mapping of feature names to numbers; ``y`` a label.

        The compiled path, a microsecond or two a call, where there are two classes, nothing is
        forgotten, and no basis or time is given.

        Examples
        --------
        >>> model = BayesianLogisticRegression().learn_one({"age": 1.0}, "b")
        >>> model.learn_one({"age": 2.0}, "a").classes_
        array(['a', 'b'], dtype='<U1')
        """
        return super().learn_one(x, y, weight, time)

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, X: Any) -> Labels:
        """(n,) the most probable label of each row.

        Examples
        --------
        >>> BayesianLogisticRegression().fit([[0.0], [1.0]], [7, 8]).predict([[1.0]])
        array([8])
        """
        predictive = self.predict_distribution(X)
        if self._multiclass_posterior is not None or len(self.classes_) != 2:
            return predictive.mode()
        # More probable than 1/2 is eta's mean above 0, also where eta is so uncertain (a flat
        # prior, separated classes) that no digit of the probability is left to say so.
        eta = self._posterior.predict_mean(self._read_points(X))
        return self.classes_[((eta > 0.0) != self._flipped).astype(np.intp)]

    def predict_distribution(self, X: Any) -> Categorical:
        """Distribution of the labels at the rows of ``X``, integrated over the posterior.

        Examples
        --------
        >>> model = BayesianLogisticRegression().fit([[0.0], [1.0]], [7, 8])
        >>> model.predict_distribution([[0.5]]).pmf(7).round(3)
        array([0.5])
        """
        columns = self._read_points(X)
        return Categorical(self.classes_, self._log_probabilities(columns))

    def predict_proba(self, X: Any) -> Array:
        """(n, K) probability of each class, integrated over the posterior.

        For two classes the integral is exact to nine digits (Monahan and Stefanski 1992; MacKay's
        moderated output, 1992, is an approximation of it); for more it is a quadrature with an
        error of about 1e-3.

        Examples
        --------
        >>> model = BayesianLogisticRegression().fit([[0.0], [1.0]], [7, 8])
        >>> model.predict_proba([[0.5]]).round(3)
        array([[0.5, 0.5]])
        """
        return self.predict_distribution(X).probabilities

    def predict_log_proba(self, X: Any) -> Array:
        """(n, K) log of :meth:`predict_proba`, without loss of digits."""
        return self.predict_distribution(X).log_probabilities

    def decision_function(self, X: Any) -> Array:
        """(n,) log odds of the second class; with more than two, (n, K) log odds up to a constant.

        Those of :meth:`predict_proba`, which are integrated over the posterior; at the reported
        coefficients they are ``X @ coef_.T + intercept_``.

        Examples
        --------
        >>> model = BayesianLogisticRegression().fit([[0.0], [1.0]], [7, 8])
        >>> bool(abs(model.decision_function([[0.5]])[0]) < 1e-9)
        True
        """
        logs = self.predict_distribution(X).log_probabilities
        if logs.shape[1] == 1:
            return np.zeros(len(logs))
        if logs.shape[1] == 2:
            return logs[:, 1] - logs[:, 0]
        return logs - logs.mean(axis=1, keepdims=True)

    def predict_interval(
        self, X: Any, level: float = 0.95, *, of: Literal["mean"] = "mean"
    ) -> Array:
        """Ends of the central credible interval of each probability.

        A probability is the mean of a label that is 0 or 1; a label itself has no interval.

        Returns
        -------
        (n, 2) array of the second class's probability, or (n, K, 2) with more than two classes.

        Examples
        --------
        >>> model = BayesianLogisticRegression().fit([[0.0], [1.0]], [7, 8])
        >>> low, high = model.predict_interval([[0.5]], level=0.9)[0]
        >>> bool(low < 0.5 < high)
        True
        """
        if of != "mean":
            raise ValueError(
                f"of is {of!r}: labels have no interval; give 'mean' for that of their probability"
            )
        level = check_single_level(level)
        if not 0.0 < level < 1.0:
            raise ValueError(f"level is {level}: it must lie between 0 and 1, as in 0.95")
        many = self._multiclass_posterior
        if many is not None:
            return many.probability_interval(self._read_points(X), level)
        eta = self._eta(X, None)
        ends = np.stack(eta.interval(level), axis=1)
        return expit(-ends[:, ::-1] if self._flipped else ends)

    def predict_proba_one(self, x: ArrayLike | Mapping[str, float]) -> dict[Any, float]:
        """Probability of each label at one row ``x``; empty before the first label.

        Where the prior is learned and rows came after :meth:`fit`, or without it, by the one prior
        that the next label is met with, as in :meth:`predict_then_learn`; :meth:`predict_proba`
        weighs all priors by all rows anew.

        Examples
        --------
        >>> model = BayesianLogisticRegression().fit([[0.0], [1.0]], ["a", "b"])
        >>> round(model.predict_proba_one([0.5])["a"], 3)
        0.5
        """
        try:
            predict = self._fast_predict_one
        except AttributeError:
            if self._posterior_or_none is None:
                return {}
            if not self._has_fast_predict_one:
                return self._predict_proba_of_row(x)
            predict = self._open_fast_method("_fast_predict_one", "probabilities")
        probabilities = predict(x)
        return self._predict_proba_of_row(x) if probabilities is None else probabilities

    def _predict_proba_of_row(self, x: ArrayLike | Mapping[str, float]) -> dict[Any, float]:
        """The general path of predict_proba_one."""
        probabilities = np.exp(self._log_probabilities(self._columns(self._path.values(x)))[0])
        return dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))

    def predict_one(self, x: ArrayLike | Mapping[str, float]) -> Any:
        """Most probable label at one row ``x``; None before the first label.

        Examples
        --------
        >>> BayesianLogisticRegression().fit([[0.0], [1.0]], ["a", "b"]).predict_one([1.0])
        'b'
        """
        probabilities = self.predict_proba_one(x)
        return max(probabilities, key=probabilities.__getitem__) if probabilities else None
