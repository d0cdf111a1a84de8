"""Ways to forget, so that a model follows a world that changes.

A strategy is a frozen dataclass without data. ``begin(posterior)`` turns a posterior that has
seen nothing into one that forgets; that object owns all state. Time is counted in rows, or in the
unit of ``times=`` where rows come with times: time that passes without rows forgets as well.

Examples
--------
>>> import numpy as np
>>> from posterity import BayesianLinearRegression
>>> from posterity.forgetting import Stabilized
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(400, 1))
>>> y = np.where(np.arange(400) < 200, 1.0, -1.0) * X[:, 0] + 0.1 * rng.normal(size=400)
>>> follows = BayesianLinearRegression(forgetting=Stabilized(discount=0.95)).fit(X, y)
>>> stays = BayesianLinearRegression().fit(X, y)
>>> bool(follows.coef_[0] < -0.8), bool(abs(stays.coef_[0]) < 0.2)
(True, True)
"""

from typing import Protocol, runtime_checkable

from posterity.forgetting.averages import Adaptive, Changepoint
from posterity.forgetting.fading import (
    Directional,
    Exponential,
    RandomWalk,
    Smoothing,
    Stabilized,
)
from posterity.forgetting.window import Window
from posterity.posteriors.gaussian import LinearPosterior

__all__ = [
    "Adaptive",
    "Changepoint",
    "Directional",
    "Exponential",
    "Forgetting",
    "RandomWalk",
    "Smoothing",
    "Stabilized",
    "Window",
]


@runtime_checkable
class Forgetting(Protocol):
    """Protocol of ``forgetting=``: strategies that begin a posterior which forgets.

    Models also take the words of the command line: "adaptive", "exponential:0.99", "changepoint".
    """

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one without data."""
