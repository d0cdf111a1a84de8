"""Reads of models of lifetimes: who is alive at which time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.distributions._limits import interval_ends
from posterity.kernel.values import read_floats
from posterity.likelihoods.censored import score_ends
from posterity.linear.inputs import read_target, read_weights

# Stands for time 0, of which there may be no density.
FIRST_TIME = 1e-300
# Rounding is 1e-4 of the probability to be alive where that is as small.
LEAST_ALIVE = 1e-12


class PredictsSurvival:
    """A model whose targets may be times until something ends."""

    _predictive: Any
    _eta_distribution: Any
    _get_learned_likelihood: Any
    _likelihood: Any
    predict_distribution: Any

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the expected targets; of targets with two ends the mean log score.

        That is the mean log density of those seen, and log probability of what is known of others:
        larger is better, and :func:`posterity.evaluation.score_survival` says more.

        Examples
        --------
        >>> from posterity import BayesianGeneralizedLinear
        >>> from posterity.likelihoods import Censored, Exponential
        >>> model = BayesianGeneralizedLinear(Censored(Exponential()))
        >>> ends = [[1.0, 1.0], [2.0, np.inf], [3.0, 3.0]]
        >>> model.fit([[0.0], [0.0], [0.0]], ends).score([[0.0]], [[2.0, np.inf]]) < 0.0
        True
        """
        known = self._likelihood()
        if known.n_numbers == 1:
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        ends = read_target(y, known.n_numbers)
        known.check_targets(ends)
        scores = score_ends(self.predict_distribution(X), *ends.T)
        return float(np.average(scores, weights=read_weights(sample_weight, len(ends))))

    def predict_survival(
        self, X: Any, times: ArrayLike, *, offset: ArrayLike | None = None
    ) -> Array:
        """(n, k) probabilities that a new target at ``X`` (n, m) is larger than each time (k,).

        Integrated over what is not known of the coefficients and parameters; ``median()`` and
        ``ppf`` of :meth:`predict_distribution` say when so many are left.

        Examples
        --------
        >>> from posterity import BayesianGeneralizedLinear
        >>> from posterity.likelihoods import Censored, Exponential
        >>> y = [[1.0, 1.0], [2.0, 2.0], [3.0, np.inf], [0.5, 0.5]]
        >>> model = BayesianGeneralizedLinear(Censored(Exponential()))
        >>> model = model.fit([[0.0], [1.0], [1.0], [0.0]], y)
        >>> model.predict_survival([[0.0], [1.0]], [1.0, 2.0]).shape
        (2, 2)
        """
        return np.asarray(self._predictive(X, offset).sf(_read_times(times))).T

    def predict_survival_interval(
        self, X: Any, times: ArrayLike, level: float = 0.95, *, offset: ArrayLike | None = None
    ) -> Array:
        """(n, k, 2) ends of the central intervals of these probabilities.

        Of what is not known of the coefficients, with the mean of a parameter that was learned.

        Examples
        --------
        >>> from posterity import BayesianGeneralizedLinear
        >>> from posterity.likelihoods import Exponential
        >>> model = BayesianGeneralizedLinear(Exponential()).fit([[0.0], [1.0]], [1.0, 2.0])
        >>> low, high = model.predict_survival_interval([[0.0]], [1.0])[0, 0]
        >>> bool(low < model.predict_survival([[0.0]], [1.0])[0, 0] < high)
        True
        """
        ends = interval_ends(self._eta_distribution(X, offset), level)
        known, asked = self._get_learned_likelihood(), _read_times(times)
        alive = [1.0 - np.asarray(known.distribution(eta).cdf(asked)).T for eta in ends.T]
        return np.sort(np.stack(alive, axis=-1), axis=-1)

    def predict_hazard(self, X: Any, times: ArrayLike, *, offset: ArrayLike | None = None) -> Array:
        """(n, k) rates at which targets that are larger than each time (k,) end there.

        Density over survival; of rows that are alike, so that the frail go first. NaN at times that
        one in 10^12 does not reach.

        Examples
        --------
        >>> from posterity import BayesianGeneralizedLinear
        >>> from posterity.likelihoods import Exponential
        >>> y = np.random.default_rng(0).exponential(2.0, size=1000)
        >>> model = BayesianGeneralizedLinear(Exponential()).fit(np.zeros((1000, 1)), y)
        >>> model.predict_hazard([[0.0]], [1.0, 5.0]).round(1)
        array([[0.5, 0.5]])
        """
        predictive, asked = self._predictive(X, offset), _read_times(times)
        begun = np.where(asked == 0.0, FIRST_TIME, asked)
        alive = np.asarray(predictive.sf(begun))
        known = alive > LEAST_ALIVE
        return np.where(known, predictive.pdf(begun) / np.where(known, alive, 1.0), np.nan).T


def _read_times(times: ArrayLike) -> Array:
    """Times as a column (k, 1)."""
    asked = np.atleast_1d(read_floats(times, "times"))
    if asked.ndim != 1:
        raise ValueError(f"times has shape {asked.shape}: expected (k,), the same for all rows")
    return asked[:, None]
