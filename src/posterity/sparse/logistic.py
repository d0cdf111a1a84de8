"""Logistic regression with many features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import AnyArray, Array
from posterity.distributions.categorical import Categorical, positions
from posterity.generalized._labels import join_classes, read_labels
from posterity.generalized._two_classes import TwoClasses
from posterity.kernel import mix_labels
from posterity.likelihoods import Bernoulli, Likelihood
from posterity.linear.estimator import Way
from posterity.linear.learning import LearnsLabels
from posterity.posteriors._wide import hypothesis_weights
from posterity.sparse.base import DiagonalModel
from posterity.sparse.checks import make_row

Labels = AnyArray
# Nearer to 0 or 1 a difference from 1 has too few digits.
FEW_DIGITS = 1e-5


class DiagonalLogisticRegression(LearnsLabels, TwoClasses, DiagonalModel):
    """Logistic regression for sparse rows with up to millions of features, such as clicks or words.

    Each weight has a mean and a variance of its own, and nothing is kept of how they depend on each
    other: a row costs as much as it has active features. Probabilities are integrated over what is
    not known of the weights.

    Parameters
    ----------
    prior_precision : "auto" or float, default "auto"
        "auto" learns a prior scale for each column on the way, from four starts that are weighed
        by how well they predict. A number is given for all weights.
    fit_intercept : bool, default True
        Whether to learn an intercept; its prior is Normal(0, 10^2).
    interactions, hash_size, categorical_features, missing, forgetting
        As in :class:`DiagonalLinearRegression`.

    Attributes
    ----------
    classes_ : (2,) array
        Labels met or named so far, sorted.
    coef_, coef_std_ : (p,) arrays
        Posterior mean and standard deviation of each weight, of the log odds of the second class.
    intercept_ : float
    feature_names_, n_features_, prior_scales_, n_observations_, n_effective_
        As in :class:`DiagonalLinearRegression`.

    Notes
    -----
    Rows as in :class:`DiagonalLinearRegression`. With one active feature a row, no intercept and a
    given precision the answer is that of :class:`posterity.BayesianLogisticRegression` in a stream.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ad, site = rng.integers(0, 200, size=5000), rng.integers(0, 20, size=5000)
    >>> odds = rng.normal(size=200)[ad] + rng.normal(size=20)[site] - 1.0
    >>> y = rng.random(5000) < 1.0 / (1.0 + np.exp(-odds))
    >>> rows = [{"ad": f"a{a}", "site": f"s{s}"} for a, s in zip(ad, site)]
    >>> model = DiagonalLogisticRegression()
    >>> predictive = model.predict_then_learn(rows, y)
    >>> model.n_features_, bool(-predictive.logpmf(y).mean() < 0.63)
    (220, True)
    >>> model.predict_proba([{"ad": "a3", "site": "never seen"}]).shape
    (1, 2)
    """

    classes_: Labels
    # Whether eta is the log odds of the first class, which came second.
    _flipped: bool = False
    _learned_names = (*DiagonalModel._learned_names, "classes_", "_flipped")

    # ---- predicting ------------------------------------------------------------------------------

    def predict_distribution(self, X: Any) -> Categorical:
        """Distribution of the labels, integrated over the posterior."""
        return self._categorical(*self._eta(X), self._posterior.weights)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Probability of each label at one row; empty before the first label."""
        if self._posterior_or_none is None:
            return {}
        probabilities = self.predict_proba(make_row(x))[0]
        return dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))

    def predict_one(self, x: Any) -> Any:
        """The more probable label at one row; None before the first label."""
        probabilities = self.predict_proba_one(x)
        return max(probabilities, key=lambda label: probabilities[label]) if probabilities else None

    # ---- inner -----------------------------------------------------------------------------------

    def _likelihood(self) -> Likelihood:
        return Bernoulli()

    def _log_odds(self, X: Any) -> tuple[Array, Array]:
        mean, variance = self._match_eta(X)
        return (0.0 - mean if self._flipped else mean), variance

    def _marginals(self) -> tuple[Array, Array]:
        mean, variance = super()._marginals()
        return (0.0 - mean if self._flipped else mean), variance

    def _learn_labels(self, way: Way, rows: Any, times: ArrayLike | None, classes: Any) -> Any:
        X, y, weights = rows
        return self._learn_rows(way, (X, self._name_classes(y, classes), weights), times)

    def _name_classes(self, y: Any, classes: ArrayLike | None) -> Any:
        """Labels with the classes that are named beside them."""
        return y if classes is None else _Named(y, np.asarray(classes))

    def _targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
        named = None
        if isinstance(y, _Named):
            y, named = y.labels, y.classes
        labels = read_labels(y)
        known = self.__dict__.get("classes_")
        met = join_classes(known, named, labels)
        if len(met) > 2:
            raise ValueError(
                f"there are more than two classes, {met[:4].tolist()}: this model "
                "supports two; learn one model for each class against the rest"
            )
        flipped = self._is_flipped(met)
        ones = positions(met, labels)[0].astype(np.float64)
        return (1.0 - ones if flipped else ones), {"classes_": met, "_flipped": flipped}

    def _is_flipped(self, met: Labels) -> bool:
        """Whether 1 stands for the first of the classes ``met``: what it stood for stays.

        Of one class a 1 is 1, and all others are 0, so that parts of one label each can be merged.
        """
        known = self.__dict__.get("classes_")
        if known is None:
            return bool(len(met) == 1 and met[0] == 1)
        if len(known) < len(met):
            return bool(met[1] == known[0]) != self._flipped
        return self._flipped

    def _target(self, y: Any) -> float | None:
        if len(self.classes_) != 2 or type(y) not in (str, int, bool):
            return None
        first, second = self.classes_.tolist()
        if y not in (first, second):
            return None
        return float((y == second) != self._flipped)

    def _prediction(self, moments: Array, y: Array, weights: Array | None) -> Categorical:
        mean, variance, scores, _, _, log_densities = moments.swapaxes(0, 1)
        shares = hypothesis_weights(scores)
        if weights is not None or len(self.classes_) == 1:
            return self._categorical(mean, variance, shares)
        # What learning has found already: the probability of the label that came.
        came = np.sum(shares * np.exp(log_densities), axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(np.stack([1.0 - came, came], axis=1))
        logs[y == 0.0] = logs[y == 0.0, ::-1]
        logs = logs[:, ::-1] if self._flipped else logs
        sure = ~((came > FEW_DIGITS) & (came < 1.0 - FEW_DIGITS))
        if sure.any():
            parts = mean[sure], variance[sure], shares[sure]
            logs[sure] = self._categorical(*parts).log_probabilities
        return Categorical(self.classes_, logs)

    def _categorical(self, mean: Array, variance: Array, weights: Array) -> Categorical:
        if len(self.classes_) == 1:
            return Categorical(self.classes_, np.zeros((len(mean), 1)))
        shares = np.broadcast_to(weights, mean.shape)
        mixed = mix_labels(*(np.ascontiguousarray(part) for part in (mean, variance, shares)))
        with np.errstate(divide="ignore"):
            logs = np.log(mixed)
        return Categorical(self.classes_, logs[:, ::-1] if self._flipped else logs)

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        met = join_classes(self.classes_, None, other.classes_)
        if len(met) > 2 or self._is_flipped(met) != other._is_flipped(met):
            raise ValueError(
                "the models have different classes, or in another order: begin each with "
                "rows of both classes, or name both by classes=..., where partial_fit takes it"
            )

    def _join_names(self, other: Self) -> None:
        met = join_classes(self.__dict__.get("classes_"), None, other.classes_)
        self.classes_, self._flipped = met, other._is_flipped(met)


class _Named:
    """Labels, and the classes that were named."""

    def __init__(self, labels: Any, classes: Labels) -> None:
        self.labels, self.classes = labels, classes
