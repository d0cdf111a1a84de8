"""Bayesian model averaging of a list of models, as a model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.averaging import inputs
from posterity.averaging.base import LEARNED_ATTRIBUTES, AverageOfModels, collect_log_evidences
from posterity.averaging.members import get_final_step, may_be_flat, transform_for_last
from posterity.distributions import Mixture
from posterity.distributions._limits import interval_ends
from posterity.kernel.tables import TableLike
from posterity.linear.inputs import refuse_no_weight
from posterity.linear.reader import predict_targets_or_means
from posterity.transaction import atomic


@dataclass(eq=False, repr=False)
class Averaged(AverageOfModels):
    """Averages several models, each weighted by its posterior probability.

    Bayesian model averaging, exact and online. The probability of a model is its prior weight
    times its evidence; the prediction is the mixture of theirs. All of them learn all rows.

    Parameters
    ----------
    models : list of estimators or of (name, estimator)
        Estimators of this package, or scikit-learn pipelines that end in one; the other steps of
        a pipeline are fitted on the first batch and stay as they are. They are never changed:
        what learns are clones, in ``models_``.
    prior_weights : (k,) array, optional
        Prior probabilities of the models, up to a factor. Default: all alike.
    persistence : float, default 1.0
        How much of past success counts one row further back, in (0, 1]. 1: nothing is forgotten,
        and the weights are those of Bayes' rule. Below 1 (dynamic model averaging) the models
        may take turns: weights follow how well each has predicted lately.

    Attributes
    ----------
    models_ : list
        The models that learn.
    named_models_ : Bunch
        The same by name.
    weights_ : (k,) array
        Probabilities of the models, given all rows so far.
    log_evidence_ : float
        Log density of all rows under the mixture.
    n_observations_ : float
        Sum of the weights of the rows learned.
    n_effective_ : float
        What is left of them after forgetting, on average over the models.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Evidences compare where the same is improper about all priors, the flat intercept and the prior
    of the noise say. They then give the weights, provided no model forgets and ``persistence`` is
    1; a batch, its rows one by one and merged models agree. Models that choose their
    hyperparameters by evidence are weighed by ``log_evidence_`` after each call, and within one
    by how well they predict. In all other cases weights come from predictions alone: each model's
    log predictive density of every row, before it was learned (Dawid 1984); then the order of the
    rows matters. In this case a model whose prediction is still flat counts for no row that
    others can predict, and is scored as the worst of them there.

    There is no ``posterior_``: models with other features have no coefficients in common. Each
    of ``models_`` has its own. Models that are no pipelines are given arrays: the names of the
    columns are kept here.

    Every method that learns does so in copies first: a call that raises leaves everything as it
    was, and a call costs a copy. Predicting and learning in one call costs a density more for
    each model, and a row with a weight other than 0 and 1 a call for itself.

    References
    ----------
    Hoeting, Madigan, Raftery and Volinsky (1999), Bayesian model averaging: a tutorial, eq. 1-3;
    Raftery, Karny and Ettler (2010), Online prediction under model uncertainty via dynamic model
    averaging, eq. 14; Dawid (1984), Statistical theory: the prequential approach.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.averaging import Averaged
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(60, 1))
    >>> y = X[:, 0] ** 2 + 0.1 * rng.normal(size=60)
    >>> line = BayesianLinearRegression(prior_precision=0.1)
    >>> curve = make_pipeline(PolynomialFeatures(2, include_bias=False), line)
    >>> model = Averaged([("line", line), ("curve", curve)]).fit(X[:30], y[:30])
    >>> model = model.partial_fit(X[30:], y[30:])
    >>> bool(model.weights_[1] > 0.999)
    True
    >>> model.predict([[0.5]]).round(1)
    array([0.3])
    """

    models: Sequence[Any]
    _: KW_ONLY
    prior_weights: ArrayLike | None = None
    persistence: float = 1.0

    # ---- learning --------------------------------------------------------------------------------

    @atomic
    def fit(
        self,
        X: TableLike,
        y: TableLike,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows, starting from the prior.

        Parameters
        ----------
        X : (n, m) array or data frame
        y : (n,) array
        sample_weight : (n,) array, optional
            Weights >= 0; weight 2 is the row twice.
        times : (n,) array, optional
            When each row came, for models that forget by time.

        Raises
        ------
        ValueError
            If a parameter is out of its range, or a model refuses the rows: see there.
        TypeError
            If a model lacks what it must have.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> models = [BayesianLinearRegression(prior_precision=a) for a in (0.1, 10.0)]
        >>> Averaged(models).fit([[0.0], [1.0], [2.0]], [0.0, 5.0, 10.1]).weights_.round(2)
        array([0.81, 0.19])
        """
        refuse_no_weight(sample_weight)
        for name in LEARNED_ATTRIBUTES:
            self.__dict__.pop(name, None)
        self._learn(X, y, sample_weight, times)
        return self

    @atomic
    def partial_fit(
        self,
        X: TableLike,
        y: TableLike,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows too, one or many. Parameters and errors as in :meth:`fit`.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Averaged([BayesianLinearRegression()])
        >>> model.partial_fit([[0.0], [1.0]], [1.0, 3.0]).partial_fit([[2.0]], [5.0])
        Averaged(models=[BayesianLinearRegression()])
        """
        if self._ensemble_or_none is None:
            return self.fit(X, y, sample_weight, times=times)
        self._learn(X, y, sample_weight, times)
        return self

    @atomic
    def predict_then_learn(
        self,
        X: TableLike,
        y: TableLike,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Mixture:
        """Predict each row before it is learned, then learn it.

        Parameters and errors as in :meth:`fit`. Returns the mixture over n rows, each with the
        weights as they were before the row. Their log densities add up to ``log_evidence_`` where
        those of the models do.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> models = [
        ...     BayesianLinearRegression(prior_precision=1.0, noise_precision=b)
        ...     for b in (1.0, 100.0)
        ... ]
        >>> model = Averaged(models)
        >>> predictive = model.predict_then_learn([[0.0], [1.0], [2.0]], [0.0, 0.5, 0.9])
        >>> predictive.weights.round(2)
        array([[0.5 , 0.5 ],
               [0.5 , 0.5 ],
               [0.39, 0.61]])
        >>> bool(abs(predictive.logpdf([0.0, 0.5, 0.9]).sum() - model.log_evidence_) < 1e-9)
        True
        """
        return self._learn(X, y, sample_weight, times, return_predictions=True)

    @atomic
    def learn_one(
        self,
        x: ArrayLike | Mapping[str, float],
        y: float,
        weight: float = 1.0,
        time: float | None = None,
    ) -> Self:
        """Learn one row ``x`` (m,), an array or a mapping of feature names to numbers.

        Not a compiled path: a batch costs hardly more.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Averaged([BayesianLinearRegression()]).learn_one({"a": 1.0}, 2.0)
        >>> model.learn_one({"a": 2.0}, 3.0).n_observations_
        2.0
        """
        row = inputs.read_one(self, x, reset=self._ensemble_or_none is None)
        self._learn_rows(row.with_target(y, weight), None if time is None else [time])
        return self

    @atomic
    def unlearn(self, X: TableLike, y: TableLike, sample_weight: ArrayLike | None = None) -> Self:
        """Unlearn rows: the posterior becomes that of the remaining rows.

        Parameters as in :meth:`fit`.

        Raises
        ------
        ValueError
            If a row was never learned, or the weights rest on the order of the rows.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Averaged([BayesianLinearRegression(prior_precision=1.0)])
        >>> model.fit([[0.0], [1.0]], [1.0, 3.0]).unlearn([[1.0]], [3.0]).n_observations_
        1.0
        """
        ensemble = self._compute_ensemble("unlearn rows")
        rows = inputs.read(self, X, y, sample_weight, reset=False)
        models = copy.deepcopy(self.models_)
        for model in models:
            get_final_step(model).unlearn(
                transform_for_last(model, rows.of(model)), rows.y, rows.weights
            )
        return self._replace(models, ensemble.given(collect_log_evidences(models)))

    @atomic
    def merge(self, other: Averaged) -> Self:
        """Learn all that ``other`` has learned; the prior counts once.

        Raises
        ------
        ValueError
            If the two differ in models, features or priors, or the weights of one rest on the
            order of its rows.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> one = Averaged([BayesianLinearRegression()]).fit([[0.0], [1.0]], [1.0, 3.0])
        >>> two = Averaged([BayesianLinearRegression()]).fit([[2.0]], [4.0])
        >>> one.merge(two).n_observations_
        3.0
        """
        ensemble = self._check_mergeable(other)
        models = copy.deepcopy(self.models_)
        for model, its in zip(models, other.models_, strict=True):
            get_final_step(model).merge(get_final_step(its))
        return self._replace(models, ensemble.given(collect_log_evidences(models)))

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, X: TableLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Mean of new observations at ``X`` (n, m), and with ``return_std`` their sd as well.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Averaged([BayesianLinearRegression(prior_precision=0.0)])
        >>> model.fit([[0], [1], [2]], [1, 3, 5]).predict([[3.0]]).round(9)
        array([7.])
        """
        points = self._read_points(X)
        if not return_std and not any(may_be_flat(model) for model in self.models_):
            return self._predict_mean(points)
        distribution = self._predict_with(points)
        return (distribution.mean(), distribution.std()) if return_std else distribution.mean()

    def predict_distribution(self, X: TableLike) -> Mixture:
        """Distribution of new observations at ``X`` (n, m): a mixture for each row.

        A model whose prediction is flat is left out where others know more.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> models = [
        ...     BayesianLinearRegression(prior_precision=1.0, noise_precision=b) for b in (1.0, 2.0)
        ... ]
        >>> Averaged(models).fit([[0.0], [2.0]], [0.0, 1.0]).predict_distribution([[1.0]])
        Mixture(2 components, 1 row)
        """
        return self._predict_with(self._read_points(X))

    def predict_mean_distribution(self, X: TableLike) -> Mixture:
        """Posterior distribution of the expected target at ``X`` (n, m), without noise.

        The mixture of the models' own, each as probable as it is.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Averaged([BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0)])
        >>> model = model.fit([[0.0], [2.0]], [0.0, 1.0])
        >>> model.predict_mean_distribution([[1.0]]).std().round(2)
        array([0.71])
        """
        return self._predict_with(self._read_points(X), "predict_mean_distribution")

    def predict_interval(
        self,
        X: TableLike,
        level: float = 0.95,
        *,
        of: Literal["observation", "mean"] = "observation",
    ) -> Array:
        """(n, 2) ends of the central interval that holds a new observation with this probability.

        With ``of="mean"`` that of the expected target, which leaves out the noise.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Averaged([BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0)])
        >>> model.fit([[0.0], [2.0]], [0.0, 1.0]).predict_interval([[1.0]]).round(2)
        array([[-1.9,  2.9]])
        """
        return interval_ends(predict_targets_or_means(self, X, of, {}), level)

    def predict_distribution_one(self, x: ArrayLike | Mapping[str, float]) -> Any:
        """Distribution of a new observation at one row ``x`` (as in :meth:`learn_one`).

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Averaged([BayesianLinearRegression(noise_precision=1.0)])
        >>> model = model.learn_one({"a": 1.0}, 2.0).learn_one({"a": 2.0}, 3.0)
        >>> model.predict_distribution_one({"a": 1.0}).shape
        ()
        """
        self._ensemble  # noqa: B018  (raises where nothing was learned)
        return self._predict_with(inputs.read_one(self, x))[0]

    def predict_one(self, x: ArrayLike | Mapping[str, float]) -> float:
        """Mean at one row ``x`` (as in :meth:`learn_one`).

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Averaged([BayesianLinearRegression(prior_precision=0.0)])
        >>> round(model.fit([[0], [1], [2]], [1, 3, 5]).predict_one([3.0]), 9)
        7.0
        """
        return float(self.predict_distribution_one(x).mean())
