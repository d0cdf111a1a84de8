"""State of every estimator with a posterior, which is replaced in one step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from posterity.distributions.guesses import TellsCalls, TellsNames
from posterity.factor import Factor
from posterity.kernel import RowPath
from posterity.linear.named import explain_unlearned, get_feature_names
from posterity.noise import KnownNoise, LearnedNoise, Noise

Posterior = TypeVar("Posterior")

# Attributes that share memory with the factor.
SHARED = ("_row_path", "_fast_learn_one", "_fast_predict_one")


LOO = "posterity.evaluation.compare(models, X, y); linear models have leave_one_out(X, y)"
# Names in other libraries, and ours.
OUR_NAMES = {
    "aic": "log_evidence_, in which the prior is integrated over",
    "alpha_": "noise_precision_",
    "bic": "log_evidence_, in which the prior is integrated over",
    "bic_": "log_evidence_, in which the prior is integrated over",
    "bse": "posterior_.std(), or summary()",
    "clone": "sklearn.base.clone(model), which has learned nothing",
    "conf_int": "posterior_.interval(0.95), or summary()",
    "copy": "copy.deepcopy(model)",
    "cov_params": "posterior_.cov",
    "credible_interval": "posterior_.interval(0.95), or predict_interval(X)",
    "feature_importances_": "summary(), or explain(x) of one prediction",
    "fittedvalues": "predict(X)",
    "get_feature_names_out": "feature_names_in_, or posterior_.names with the intercept",
    "get_margeff": "average_effects(X)",
    "get_prediction": "predict_interval(X), with of='mean' for the expected value",
    "idata": "posterity.adapters.arviz.to_arviz(model, X, y)",
    "lambda_": "prior_precision_ * noise_precision_",
    "learn_many": "partial_fit(X, y)",
    "leave_one_out": LOO,
    "llf": "log_evidence_",
    "loo": LOO,
    "nobs": "n_observations_",
    "params": "coef_ and intercept_, or summary()",
    "plot": "posterity.plots.plot_coefficients(model), or another of posterity.plots",
    "posterior": "posterior_",
    "posterior_epred": "sample_mean(X, 1000)",
    "posterior_predict": "predict_distribution(X), and its rvs((1000, n)) for draws",
    "predict_many": "predict(X)",
    "predict_quantile": "predict_distribution(X).ppf(0.9), or predict_interval(X)",
    "predict_quantiles": "predict_distribution(X).ppf(0.9), or predict_interval(X)",
    "pvalues": "posterior_.probability('age > 0'), or summary()",
    "relativities": "summary(base='first'); models of counts and amounts have relativities(X)",
    "resid": "y - predict(X)",
    "rsquared": "score(X, y), or sample_r2(X)",
    "sample": "sample_coefficients(1000)",
    "sample_posterior_predictive": "predict_distribution(X), and its rvs((1000, n)) for draws",
    "save": "posterity.save(model, path)",
    "scores_": "log_evidence_",
    "sigma_": "noise_precision_ ** -0.5, the noise's standard deviation",
    "t_test": "posterior_.contrast({'a': 1, 'b': -1}), or posterior_.probability('a > b')",
    "unlearn_one": "unlearn(X, y), of one row or more",
    "update": "partial_fit(X, y), or learn_one(x, y)",
    "waic": LOO,
}


def tell_rows(rows: float, left: float) -> str:
    """How many rows were learned, and what they weigh today, if that is less.

    Examples
    --------
    >>> tell_rows(1.0, 1.0), tell_rows(1e6, 95.12)
    ('1 row', '1,000,000 rows that weigh 95.12 today')
    """
    weigh = f" that weigh {left:,.4g} today" if left < rows else ""
    return count(rows, "row") + weigh


def count(number: float, what: str) -> str:
    """A number of things, in words."""
    return f"{number:,.10g} {what}{'s' * (number != 1)}"


class PosteriorEstimator(TellsCalls, TellsNames, BaseEstimator, Generic[Posterior]):
    """A scikit-learn estimator around one posterior, which is None until it has learned."""

    noise_precision: float | None
    noise_prior: tuple[float, float]

    # Names in other libraries, and ours.
    _our_names: ClassVar[Mapping[str, str]] = OUR_NAMES
    # The attributes that were learned, beside features and those that share memory with them.
    _learned_names: ClassVar[tuple[str, ...]] = ("_posterior_or_none",)

    # A fresh model has only the class attribute.
    _posterior_or_none: Posterior | None = None

    @property
    def _posterior(self) -> Posterior:
        if self._posterior_or_none is None:
            raise explain_unlearned(self)
        return self._posterior_or_none

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters, and of what has learned how much that was."""
        parameters = super().__repr__(N_CHAR_MAX)
        learned = [] if self._posterior_or_none is None else self._list_learned()
        return f"{parameters}: {', '.join(learned)}" if learned else parameters

    def _list_learned(self) -> list[str]:
        """How much was learned, each thing in a few words."""
        return []

    @classmethod
    @cache  # reading the signature takes longer than a small fit
    def _get_param_names(cls) -> list[str]:
        return list(super()._get_param_names())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _copy_unfitted(self) -> Self:
        """A model with the same parameters that knows nothing."""
        return type(self)(**self.get_params(deep=False))

    def _forget_all(self) -> None:
        """Know nothing again; parameters stay."""
        for name in self._names_of_state():
            self.__dict__.pop(name, None)

    def _names_of_state(self) -> set[str]:
        return {*self._learned_names, *SHARED, "n_features_in_", "feature_names_in_"}

    def _take_over(self, fresh: Self) -> Self:
        """Replace all that was learned by what ``fresh`` has learned, in one step."""
        learned = self._names_of_state()
        kept = {name: value for name, value in self.__dict__.items() if name not in learned}
        self.__dict__ = kept | {k: v for k, v in fresh.__dict__.items() if k in learned}
        return self

    def _set_features(self, n_features: int, names: ArrayLike | None) -> None:
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _set_features_of(self, other: PosteriorEstimator[Any]) -> None:
        self._set_features(other.n_features_in_, get_feature_names(other))

    def _reader(self) -> RowPath:
        """Return the path that reads single rows of features."""
        names = get_feature_names(self)
        return Factor(self.n_features_in_).row_path(False, names)

    def _noise(self) -> Noise:
        if self.noise_precision is None:
            shape, rate = self.noise_prior
            return LearnedNoise(shape, rate)
        return KnownNoise(self.noise_precision)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k not in SHARED}
