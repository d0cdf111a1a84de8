"""Whole predictive distributions, recalibrated online."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posterity.aliases import Array, Estimator, Indices, Mask
from posterity.averaging.members import get_final_step
from posterity.calibration.probability_map import ProbabilityMap
from posterity.calibration.recalibrated_distribution import WIDTHS, RecalibratedDistribution
from posterity.calibration.wrapper import OnlineWrapper
from posterity.distributions import LogNormalCounts


class Recalibrated(OnlineWrapper):
    """Wraps a model, and maps its predictive distributions to observed frequencies.

    Where the model says 10% and 30% of the last targets fell, it now says about 30%: the cdf
    becomes R(F(y)), with R learned from the probability integral transforms F(y) of past rows
    (Kuleshov, Fenner and Ermon 2018). R is increasing by construction: a histogram of the
    transforms, finer in the tails, that forgets, and that is mixed with the identity.

    Parameters
    ----------
    model : estimator
        A regressor of this package that predicts continuous distributions, or a pipeline that ends
        in one. It is never changed: what learns is a clone, ``model_``.
    memory : float, default 500.0
        Rows that the map remembers; ``math.inf``: all alike.
    trust : float, default 100.0
        How many rows the model's own word counts for. Large: the map changes little.

    Attributes
    ----------
    model_ : estimator
        The model that learns.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The map is made anew every 50 rows, whatever the calls were. Log densities of rows in a
    row are honest: each is scored by a map that has not seen it, and the most that this can cost a
    row is log((trust + rows remembered) / trust), about 1.8.

    Unlike :class:`Conformal` it promises no coverage: it follows what changes at the pace of
    ``memory``. In return all methods of a prediction agree with each other. Means, variances and
    CRPS are sums over quantiles, which cost microseconds a row. A row about which the model knows
    nothing, or all, keeps the model's prediction and teaches nothing.

    References
    ----------
    Kuleshov, Fenner and Ermon (2018), Accurate uncertainties for deep learning using calibrated
    regression, algorithm 1; Dawid (1984), Statistical theory: the prequential approach.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.calibration import Recalibrated
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 1))
    >>> y = X[:, 0] + rng.standard_exponential(5000)
    >>> model = BayesianLinearRegression()
    >>> plain = model.predict_then_learn(X, y).logpdf(y)[100:].mean()
    >>> predictive = Recalibrated(model).predict_then_learn(X, y).logpdf(y)[100:].mean()
    >>> bool(predictive > plain + 0.2)
    True
    """

    def __init__(self, model: Estimator, *, memory: float = 500.0, trust: float = 100.0) -> None:
        self.model = model
        self.memory = memory
        self.trust = trust

    def predict(self, X: Any, return_std: bool = False, **how: Any) -> Array | tuple[Array, Array]:
        """Mean of the recalibrated distribution at ``X`` (n, m); with ``return_std`` also its sd.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Recalibrated(BayesianLinearRegression(prior_precision=0.0))
        >>> model.fit([[0], [1], [2]], [1, 3, 5]).predict([[3.0]]).round(6)
        array([7.])
        """
        predictive = self.predict_distribution(X, **how)
        return (predictive.mean(), predictive.std()) if return_std else predictive.mean()

    # ---- inner -----------------------------------------------------------------------------------

    def _mean(self, points: Any) -> Array:
        return np.asarray(
            self._calibrate(get_final_step(self.model_).predict_distribution(points)).mean()
        )

    def _make_state(self) -> ProbabilityMap:
        if not self.memory > 1.0:
            raise ValueError(f"memory is {self.memory}: it must be a number of rows above 1")
        if not 0.0 < self.trust < math.inf:
            raise ValueError(f"trust is {self.trust}: it must be positive and finite")
        return ProbabilityMap.start(float(self.memory), float(self.trust))

    def _calibrate_then_learn(
        self, predictive: Any, y: Array, weights: Array | None, return_predictions: bool
    ) -> Any:
        _check_continuous(predictive)
        counted = _has_uncertainty(predictive)
        scored = counted * (1.0 if weights is None else weights)
        masses, which = self._state.learn(predictive.cdf(y), scored)
        return _map_distribution(predictive, masses, which, counted) if return_predictions else None

    def _calibrate(self, distribution: Any) -> RecalibratedDistribution:
        which = np.zeros(distribution.shape, dtype=np.intp)
        return _map_distribution(
            distribution, self._state.masses()[None], which, _has_uncertainty(distribution)
        )


def _map_distribution(
    predictive: Any, masses: Array, which: Indices, counted: Mask
) -> RecalibratedDistribution:
    """The distribution; rows that the model says nothing or all about keep the identity."""
    if not counted.all():
        which = np.where(counted, which, len(masses))
        masses = np.concatenate([masses, WIDTHS[None]])
    return RecalibratedDistribution(predictive, masses, which)


def _has_uncertainty(predictive: Any) -> Mask:
    """Return True for predictions that are neither flat nor certain."""
    scale = getattr(predictive, "scale", None)
    spread = predictive.std() if scale is None else np.broadcast_to(scale, predictive.shape)
    return np.asarray(~predictive.is_flat() & (spread > 0.0))


def _check_continuous(predictive: Any) -> None:
    if isinstance(predictive, LogNormalCounts) or not hasattr(predictive, "ppf"):
        raise TypeError(
            "Recalibrated needs continuous predictions, not "
            f"{type(predictive).__name__}: wrap counts "
            "in Conformal instead"
        )
