"""Forecasts whose intervals hold at each step ahead, whether the forecaster is right or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from posterity.aliases import Array
from posterity.calibration.tails import TrackedTails, get_current_ends
from posterity.forecasting import Forecaster, Progress
from posterity.transaction import AtomicModel, atomic

# Scores are normal: of probabilities no nearer to 0 and 1 than this.
SMALLEST_TAIL = 1e-12


class ConformalForecaster(AtomicModel, BaseEstimator):
    """Wraps a forecaster so that its intervals have their stated coverage at each step.

    For each step ahead by itself: the forecast of step k that was made at a row is scored when its
    outcome has come, k rows later, and moves the ends of the intervals of step k from then on. The
    method is conformal PID, as of :class:`Conformal`, on the scale of normal scores of the
    forecaster's own distribution: ends are its quantiles at probabilities that are learned.

    Parameters
    ----------
    model : Forecaster
        What forecasts; it may have learned rows already, and is never changed.
    horizon : int
        Steps ahead.
    level : float, default 0.95
        Share of outcomes that intervals hold.
    rate : float, default 0.025
        Probability that one miss moves an end by, on the scale of a Normal.
    memory : int, default 100
        Rows over which the size of scores is averaged.

    Attributes
    ----------
    model_ : Forecaster
        The forecaster that learns.

    Notes
    -----
    For *any* series, the share of outcomes that step k missed on one side is within
    (2 b + s) / (s T) of the tail after T scores, as of ends that knew all scores before: where no
    score is more than b of their sizes away, and s is rate / density of a Normal at its tail's
    quantile. Ends k steps ahead know those of k rows ago. Several series move them in turn.

    References
    ----------
    Angelopoulos, Candes and Tibshirani (2023), Conformal PID control for time series prediction;
    Wang and Hyndman (2024), Online conformal inference for multi-step time series forecasting.

    Examples
    --------
    >>> from posterity.forecasting import Form
    >>> rng = np.random.default_rng(0)
    >>> y = np.cumsum(np.where(np.arange(300) < 100, 1.0, 3.0) * rng.normal(size=300))
    >>> walk = Forecaster(forms=[Form(drift=False)], n_draws=8).fit(y[:100])  # soon too narrow
    >>> plain = walk.before(0).forecast_then_learn(y[100:], 2)
    >>> plain.by_step()["coverage"].round(2)
    array([0.9 , 0.88])
    >>> conformal = ConformalForecaster(walk, horizon=2)
    >>> conformal.forecast_then_learn(y[100:]).by_step()["coverage"].round(2)
    array([0.95, 0.94])
    >>> low, high = conformal.interval()  # of the next two steps
    """

    model_: Forecaster
    _tails: list[TrackedTails]

    def __init__(
        self,
        model: Forecaster,
        horizon: int,
        *,
        level: float = 0.95,
        rate: float = 0.025,
        memory: int = 100,
    ) -> None:
        self.model = model
        self.horizon = horizon
        self.level = level
        self.rate = rate
        self.memory = memory

    @atomic
    def forecast_then_learn(self, y: Any, X: Any = None) -> Progress:
        """Forecast before each new row, then learn it; the ends of intervals learn, too.

        Parameters and errors are those of :meth:`posterity.Forecaster.forecast_then_learn`.
        """
        model, tails = self._make_state()
        ends = _Ends(tails)
        forecasts = model._compute_progress(y, self.horizon, X, self.level, ends)
        ends(len(forecasts.pit), forecasts.pit)
        self.model_, self._tails = model, tails
        return forecasts

    def interval(self, X_future: Any = None) -> tuple[Array, Array]:
        """Ends of the intervals of the next steps (S, h), or (h,) of one series."""
        if "model_" not in self.__dict__:
            raise NotFittedError(
                "This ConformalForecaster has scored no forecast yet: call forecast_then_learn "
                "first"
            )
        forecast = self.model_.forecast(self.horizon, X_future)
        below, above = _probabilities(self._tails)
        ends = forecast.marginals.quantile(below), forecast.marginals.quantile(above)
        return (ends[0][0], ends[1][0]) if forecast.single else ends

    def _make_state(self) -> tuple[Forecaster, list[TrackedTails]]:
        """Copies to go on with."""
        if "model_" in self.__dict__:
            return self.model_._branch(), [tails.copy() for tails in self._tails]
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level is {self.level}: it must be between 0 and 1, as in 0.95")
        if not (0.0 < self.rate < np.inf and self.memory >= 2):
            raise ValueError(
                f"rate is {self.rate} and memory {self.memory}: the rate must be positive, and "
                "the memory at least 2 rows"
            )
        levels = np.array([self.level])
        tails = [
            TrackedTails.start(levels, self.rate, self.memory, 0.0) for _ in range(self.horizon)
        ]
        return self.model._branch(), tails


class _Ends:
    """Ends of intervals before each forecast, by the outcomes that have come until then."""

    def __init__(self, tails: list[TrackedTails]) -> None:
        self._tails = tails

    def __call__(self, number: int, pit: Array) -> tuple[Array, Array]:
        """Probabilities (h,) below the ends; ``pit`` (n, S, h) of which what came is used."""
        for step, tails in enumerate(self._tails):
            if number > step:
                below = np.clip(pit[number - 1 - step, :, step], SMALLEST_TAIL, 1.0 - SMALLEST_TAIL)
                tails.learn(np.ascontiguousarray(ndtri(below)), False)
        return _probabilities(self._tails)


def _probabilities(tails: list[TrackedTails]) -> tuple[Array, Array]:
    ends = ndtr(np.array([get_current_ends(each)[:, 0] for each in tails]))
    return ends[:, 0], ends[:, 1]
