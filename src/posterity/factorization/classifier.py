"""Bayesian factorization machine of labels: who clicks on what, with probabilities that hold."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from posterity.aliases import AnyArray, Array
from posterity.distributions.categorical import Categorical, positions
from posterity.factorization.inputs import make_row
from posterity.factorization.learner import FactorizationLearner
from posterity.factorization.posterior import FactorizationPosterior, Rows
from posterity.factorization.reader import FactorizationReader
from posterity.generalized._labels import join_classes, read_labels
from posterity.generalized._two_classes import TwoClasses
from posterity.kernel import mix_labels

Labels = AnyArray

_MANY = "Only binary classification is supported. The type of the target is multiclass: "
_ALL = np.ones((1, 1))


class BayesianFactorizationClassifier(TwoClasses, FactorizationLearner):
    """Factorization machine for two classes, on pairs of categories such as users and items.

    The log odds of the second class are what :class:`BayesianFactorizationMachine` has as mean:
    ``b + x'w + sum_{i<j} <v_i, v_j> x_i x_j``. Probabilities are integrated over what is not known
    of weights and factors.

    Parameters
    ----------
    rank, numeric, max_sweeps, tolerance, random_state
        As in :class:`BayesianFactorizationMachine`.

    Attributes
    ----------
    classes_ : (2,) array
        The labels, sorted.
    rank_, levels_, weights_, factors_, intercept_, log_evidence_, bounds_, n_observations_
        As in :class:`BayesianFactorizationMachine`, of log odds.

    Notes
    -----
    Each row stands for a Gaussian lower bound of its likelihood (Jaakkola & Jordan 2000), which
    every sweep renews; in a stream a row's bound is that of where it was expected.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.factorization import BayesianFactorizationClassifier
    >>> rng = np.random.default_rng(0)
    >>> taste, style = rng.normal(size=40), rng.normal(size=30)
    >>> X = np.stack([rng.integers(0, 40, 3000), rng.integers(0, 30, 3000)], axis=1)
    >>> odds = 2.0 * taste[X[:, 0]] * style[X[:, 1]]
    >>> y = np.where(rng.random(3000) < 1.0 / (1.0 + np.exp(-odds)), "bought", "left")
    >>> model = BayesianFactorizationClassifier(rank=2).fit(X[:2500], y[:2500])
    >>> model.classes_
    array(['bought', 'left'], dtype='<U6')
    >>> bool(model.score(X[2500:], y[2500:]) > 0.65)
    True
    """

    _of_labels: ClassVar[bool] = True
    noise_precision = None
    _learned_names = (*FactorizationReader._learned_names, "classes_")
    classes_: Labels

    # ---- learning --------------------------------------------------------------------------------

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows too. Where the first have one label only, ``classes`` names both.

        Labels 0 and 1, and truth values, need no names.

        Examples
        --------
        >>> model = BayesianFactorizationClassifier(rank=1)
        >>> model.partial_fit([["ann", "tea"]], ["no"], classes=["no", "yes"]).classes_
        array(['no', 'yes'], dtype='<U3')
        """
        self._learn(X, self._targets(y, classes), sample_weight)
        return self

    # ---- predicting ------------------------------------------------------------------------------

    def predict_distribution(self, X: Any) -> Categorical:
        """Distribution of the labels, integrated over the posterior.

        Examples
        --------
        >>> X, y = [["ann", "tea"], ["bob", "rum"]] * 5, [1, 0] * 5
        >>> model = BayesianFactorizationClassifier(rank=0).fit(X, y)
        >>> model.predict_distribution([["ann", "tea"]]).probabilities.shape
        (1, 2)
        """
        mean, variance = (np.ascontiguousarray(one[:, None]) for one in self._log_odds(X))
        with np.errstate(divide="ignore"):
            logs = np.log(mix_labels(mean, variance, np.ones_like(mean)))
        return Categorical(self.classes_, logs)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Probability of each label at one row: a sequence or mapping as in :meth:`learn_one`.

        Examples
        --------
        >>> model = BayesianFactorizationClassifier(rank=1)
        >>> for user, item, bought in [("ann", "tea", True), ("bob", "rum", False)] * 5:
        ...     model = model.learn_one({"user": user, "item": item}, bought)
        >>> model.predict_proba_one({"item": "tea", "user": "ann"})[True] > 0.5
        True
        """
        posterior, found = self._posterior, self._find_levels(x)
        if found is None or min(found[0]) < 0:
            probabilities = self.predict_proba(make_row(x))[0]
        else:
            mean, variance = posterior.path.moments_of_one(*found)
            probabilities = mix_labels(np.array([[mean]]), np.array([[variance]]), _ALL)[0]
        return dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))

    # ---- inner -----------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _log_odds(self, X: Any) -> tuple[Array, Array]:
        return self._moments(X)

    def _targets(self, y: Any, classes: ArrayLike | None) -> tuple[Array, dict[str, Any]]:
        labels = read_labels(y)
        met = join_classes(self.__dict__.get("classes_"), classes, labels)
        if len(met) == 1 and met.dtype.kind in "biu" and met[0] in (0, 1):
            met = np.array([0, 1], dtype=met.dtype)
        if len(met) != 2:
            kind = "" if len(met) < 2 else _MANY  # in the words of scikit-learn's checks
            raise ValueError(
                f"{kind}the labels are {met[:4].tolist()}, but this model takes two classes: where "
                "one is still to come, name both in partial_fit(X, y, classes=[...])"
            )
        return positions(met, labels)[0].astype(np.float64), {"classes_": met}

    def _target(self, y: Any) -> float | None:
        first, second = self.classes_.tolist()
        if type(y) not in (str, int, bool) or y not in (first, second):
            return None
        return float(y == second)

    def _score(self, rows: Rows, posterior: FactorizationPosterior) -> float:
        mean, variance = (
            one[:, None] for one in posterior.compute_moments(rows.codes, rows.values)
        )
        shares = mix_labels(mean, variance, np.ones_like(mean))
        return float(np.log(np.where(rows.y == 1.0, shares[:, 1], shares[:, 0])).mean())
