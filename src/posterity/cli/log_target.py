"""Models of the log of the target, whose predictions are of the target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.base import is_classifier

from posterity.aliases import Array, Estimator
from posterity.distributions import Transformed
from posterity.distributions.row_distribution import RowDistribution
from posterity.words import COUNTS

# Standard deviation of the log beyond which a prediction has no CRPS to speak of.
LARGEST_LOG_SD = 2.0


def check_log_target(model: Estimator) -> None:
    """Refuse models of what has no log to learn."""
    if is_classifier(model) or hasattr(model, "quantile") or type(model).__name__ in COUNTS:
        raise ValueError(
            "--log-target is for models of numbers, linear and robust: leave it out (counts have "
            "a log already)"
        )


def logs(y: Any) -> Array:
    """Logs of targets; raises ``ValueError`` where one has none."""
    y = np.asarray(y, dtype=np.float64)
    bad = np.flatnonzero(~(y > 0.0))
    if len(bad):
        raise ValueError(
            f"a target is {y[bad[0]]:g}, and --log-target takes its log: all must be above 0"
        )
    return np.log(y)


class DistributionOfExp(Transformed):
    """Distribution of the target from that of its log; its point prediction is the median.

    The mean of exp(x) is infinite where x is Student-t, and so is the CRPS: scored is that of the
    log-normal distribution with the log's mean and standard deviation (Baran and Lerch 2015).
    """

    __slots__ = ()

    def __init__(self, base: Any, *functions: Any) -> None:
        super().__init__(base, *(functions or (np.exp, np.log)))

    def _mean(self) -> Array:
        return self._median()

    def _crps(self, y: Array) -> Array:
        loc, scale = self.base.mean(), self.base.std()
        with np.errstate(all="ignore"):
            z = (np.log(y) - loc) / scale
            mean = np.exp(loc + 0.5 * scale * scale)
            inner = ndtr(z - scale) - ndtr(-scale / np.sqrt(2.0))
            crps = y * (2.0 * ndtr(z) - 1.0) - 2.0 * mean * inner
        return np.where(scale < LARGEST_LOG_SD, crps, np.nan)


def learning_logs(learn: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a model, to be given targets instead of their logs."""
    return lambda X, y, *more, **how: learn(X, logs(y), *more, **how)


class LoggedModel:
    """A model of the log of the target, to be scored by the target."""

    def __init__(self, model: Estimator) -> None:
        self._model = model

    def predict_then_learn(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **how: Any
    ) -> RowDistribution:
        """Predict and learn as the model does, for targets themselves."""
        return DistributionOfExp(self._model.predict_then_learn(X, logs(y), sample_weight, **how))

    @property
    def posterior_(self) -> Any:
        """The model's own."""
        return self._model.posterior_
