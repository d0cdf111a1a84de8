"""Predictions of models of two classes, from the distribution of the labels and the log odds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, ndtri
from sklearn.base import ClassifierMixin

from posterity.aliases import AnyArray, Array
from posterity.distributions._limits import check_single_level
from posterity.distributions.categorical import Categorical

Labels = AnyArray


class TwoClasses(ClassifierMixin):
    """Base of a classifier whose labels are of two classes, integrated over the posterior."""

    classes_: Labels

    def predict(self, X: Any) -> Labels:
        """(n,) the more probable label of each row."""
        return self.predict_distribution(X).mode()

    def predict_distribution(self, X: Any) -> Categorical:
        """Distribution of the labels, integrated over the posterior."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> Array:
        """(n, 2) probability of each label, integrated over the posterior."""
        return self.predict_distribution(X).probabilities

    def predict_log_proba(self, X: Any) -> Array:
        """(n, 2) log of :meth:`predict_proba`, without loss of digits."""
        return self.predict_distribution(X).log_probabilities

    def decision_function(self, X: Any) -> Array:
        """(n,) log odds of the second class."""
        logs = self.predict_log_proba(X)
        return np.asarray(logs[:, -1] - logs[:, 0])

    def predict_interval(self, X: Any, level: float = 0.95) -> Array:
        """(n, 2) ends of the central interval of the second class's probability."""
        level = check_single_level(level)
        if not 0.0 < level < 1.0:
            raise ValueError(f"level is {level}: it must lie between 0 and 1, as in 0.95")
        mean, variance = self._log_odds(X)
        reach = ndtri(0.5 + 0.5 * level) * np.sqrt(variance)
        return np.asarray(expit(np.stack([mean - reach, mean + reach], axis=1)))

    # ---- what each model defines -----------------------------------------------------------------

    def _log_odds(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance (n,) of the log odds of the second class."""
        raise NotImplementedError


__all__ = ["TwoClasses"]
