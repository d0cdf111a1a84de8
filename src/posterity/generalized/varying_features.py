"""Rows of a stream whose features come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from posterity.aliases import Estimator
from posterity.generalized._growth import widen_model

Row = Mapping[str, float]


class VaryingFeatures(BaseEstimator):
    """Wraps a model so that it learns rows that are mappings, with features that come and go.

    A feature that is absent from a row is 0. With ``unknown="grow"`` one that comes for the first
    time joins with its prior: without forgetting the posterior is what it would be had the feature
    been 0 in all rows before.

    Parameters
    ----------
    model : estimator
        One of linear, logistic, Poisson or negative binomial regression, without a basis. It is not
        changed; what learns is a clone, ``model_``.
    unknown : "grow", "ignore" or "refuse", default "grow"
        What happens with a feature that the model does not know: it is learned from now on, left
        out, or a ``ValueError``.

    Attributes
    ----------
    model_ : estimator
        The model that learns, with all it knows by the names of features: its summary, its
        posterior, to save and to merge.

    Notes
    -----
    A prediction at a row with an unknown feature under "grow" takes the prior of its coefficient
    into account, and changes nothing. A row with new features costs a copy of the model; others
    cost what they cost the model.

    Examples
    --------
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.generalized import VaryingFeatures
    >>> model = VaryingFeatures(BayesianLinearRegression(noise_precision=1.0, prior_precision=1.0))
    >>> model = model.learn_one({"a": 1.0}, 2.0).learn_one({"a": 2.0, "b": 1.0}, 4.0)
    >>> model.model_.feature_names_in_.tolist()
    ['a', 'b']
    >>> narrow, wide = (model.predict_distribution_one({"b": 1.0, "c": c}) for c in (0.0, 3.0))
    >>> bool(wide.std() > narrow.std())
    True
    """

    model_: Any

    def __init__(
        self, model: Estimator, *, unknown: Literal["grow", "ignore", "refuse"] = "grow"
    ) -> None:
        self.model = model
        self.unknown = unknown

    def learn_one(
        self, x: Row, y: Any, weight: float = 1.0, time: float | None = None, **how: Any
    ) -> Self:
        """Learn one row; parameters and errors as in the model's own method.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = VaryingFeatures(BayesianLinearRegression(), unknown="ignore")
        >>> model = model.learn_one({"a": 1.0}, 2.0).learn_one({"b": 1.0}, 0.0)
        >>> model.model_.feature_names_in_.tolist()
        ['a']
        """
        if not self.__sklearn_is_fitted__():
            self._check()
            self.model_ = clone(self.model).learn_one(_read_mapping(x), y, weight, time, **how)
            return self
        model, row = self._include_features(x)
        model.learn_one(row, y, weight, time, **how)
        self.model_ = model
        return self

    def predict_one(self, x: Row, **how: Any) -> Any:
        """Mean, or label, at one row.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = VaryingFeatures(BayesianPoissonRegression()).learn_one({"a": 1.0}, 2)
        >>> bool(model.predict_one({"a": 1.0, "new": 1.0}) > 0.0)
        True
        """
        return self._predict_known("predict_one", x, how)

    def predict_proba_one(self, x: Row, **how: Any) -> Any:
        """Probabilities of the classes at one row, of a classifier.

        Examples
        --------
        >>> from posterity import BayesianLogisticRegression
        >>> model = VaryingFeatures(BayesianLogisticRegression())
        >>> model = model.learn_one({"a": 1.0}, "yes").learn_one({"b": 1.0}, "no")
        >>> sorted(model.predict_proba_one({"a": 1.0}))
        ['no', 'yes']
        """
        return self._predict_known("predict_proba_one", x, how)

    def predict_distribution_one(self, x: Row, **how: Any) -> Any:
        """Distribution of a new observation at one row, with the model's own options.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = VaryingFeatures(BayesianLinearRegression(noise_precision=1.0))
        >>> model.learn_one({"a": 1.0}, 2.0).predict_distribution_one({"a": 1.0}).shape
        ()
        """
        return self._predict_known("predict_distribution_one", x, how)

    def predict_interval_one(self, x: Row, level: float = 0.95, **how: Any) -> tuple[Any, Any]:
        """Ends of the interval at one row, with the model's own options.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = VaryingFeatures(BayesianLinearRegression(noise_precision=1.0))
        >>> low, high = model.learn_one({"a": 1.0}, 2.0).predict_interval_one({"a": 1.0})
        >>> bool(low < 2.0 < high)
        True
        """
        found: tuple[Any, Any] = self._predict_known(
            "predict_interval_one", x, {"level": level, **how}
        )
        return found

    # ---- inner -----------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _check(self) -> None:
        """Raise ``ValueError`` for settings that can't be."""
        if self.unknown not in ("grow", "ignore", "refuse"):
            raise ValueError(
                f"unknown is {self.unknown!r}: it must be 'grow', 'ignore' or 'refuse'"
            )
        if self.unknown != "grow":
            return
        settings = self.model.get_params(deep=False)
        if settings.get("basis") is not None:
            raise ValueError(
                "a basis is made for the features of the first row: unknown must be 'ignore' or "
                "'refuse'"
            )
        for name in ("prior", "prior_mean", "prior_precision"):
            given = settings.get(name)
            if isinstance(given, Mapping) or np.ndim(given):
                raise ValueError(
                    f"{name} is given for each feature: give one number for all, as more may join; "
                    "or unknown='ignore'"
                )

    def _predict_known(self, method: str, x: Row, how: Mapping[str, Any]) -> Any:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                "This VaryingFeatures has learned nothing yet: call learn_one first"
            )
        model, row = self._include_features(x)
        return getattr(model, method)(row, **how)

    def _include_features(self, x: Row) -> tuple[Any, Row]:
        """A model that knows the features of ``x``, and the row that it takes; nothing changes."""
        model, x = self.model_, _read_mapping(x)
        names = model.feature_names_in_.tolist()
        if x.keys() == set(names):
            return model, x
        new = [name for name in x if name not in names]
        if new and self.unknown == "refuse":
            raise ValueError(
                f"x has the unknown features {', '.join(map(repr, new))}: the model has learned "
                f"{', '.join(map(repr, names))}"
            )
        if new and self.unknown == "grow":
            model, names = widen_model(model, len(new)), names + new
            model._set_features(len(names), np.array(names, dtype=object))
        return model, {name: x.get(name, 0.0) for name in names}


def _read_mapping(x: Any) -> dict[Any, Any]:
    if not hasattr(x, "keys"):
        raise TypeError(
            f"x is a {type(x).__name__}, whose values have no names: give a mapping of feature "
            'names to numbers, as in {"age": 40.0}'
        )
    return x if type(x) is dict else dict(x)


__all__ = ["VaryingFeatures"]
