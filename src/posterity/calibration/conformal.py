"""Intervals that hold whether the model is right or not: conformal prediction, online."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Estimator
from posterity.averaging.members import get_final_step
from posterity.calibration.prediction import ConformalPrediction
from posterity.calibration.scores import PredictionScales
from posterity.calibration.tails import EXPERTS, AdaptedTails, Tails, TrackedTails, get_current_ends
from posterity.calibration.wrapper import OnlineWrapper

METHODS = ("pid", "aci", "dtaci")
# Rate and memory by method; measured on the streams of the page on calibration.
DEFAULTS = {"pid": (0.025, 100), "aci": (0.4, 1000), "dtaci": (0.4, 1000)}
MOST_LEVELS = 32


@dataclass(eq=False, repr=False)
class Conformal(OnlineWrapper):
    """Wraps a model so that its intervals have their stated coverage, even if it is wrong.

    The model predicts as before. Its intervals are moved and stretched, on either side for itself,
    by how often targets have lately been outside: ``low = mean + sd * l`` and ``high = mean +
    sd * u``, with the model's own mean and standard deviation, so that they keep adapting to ``x``,
    and ``l``, ``u`` learned. They start as the model's.

    Parameters
    ----------
    model : estimator
        A regressor of this package, or a pipeline that ends in one. It is never changed: what
        learns is a clone, ``model_``.
    level : float or sequence of float, default (0.5, 0.8, 0.9, 0.95, 0.99)
        Levels that are learned, each for itself. Others may be asked for, see
        :meth:`ConformalPrediction.interval`; what is guaranteed is guaranteed of these.
    method : "pid", "aci" or "dtaci", default "pid"
        "pid": conformal PID, bounds that move with each miss, in units of the recent scores' size.
        "aci": adaptive conformal inference, quantiles of the last scores at a tail that moves with
        each miss. "dtaci": the same at eight rates, weighed by how well they do.
    rate : float, optional
        How much one miss moves. "pid" (default 0.025): the probability that a bound is moved by,
        on the scale of a Normal. "aci" (default 0.4): the rate gamma of the paper, as a share of
        the tail (1 - level) / 2 of one side. "dtaci" (default 0.4): eight rates, from a
        fortieth of it to 3.2 times it.
    memory : int, optional
        "pid" (default 100): rows over which the size of scores is averaged. "aci" and "dtaci"
        (default 1000): how many of the last scores are kept.
    integral : float, default 0.0
        Gain of the integrator of "pid", in standard deviations. It bounds the share of misses
        where scores have no bound; on the streams that were tried it changed nothing.

    Attributes
    ----------
    model_ : estimator
        The model that learns.
    levels_ : (L,) array
        The levels that are learned, increasing.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With "pid" and without the integrator, for each level, side, and *any* stream, the share of the
    first T scored rows that were missed on that side is exactly

        tail + (bound_T - bound_0) / (step T)

    where the bound is in units of the scale, and ``step`` is rate / density of a Normal at its
    tail quantile. So if no score is more than b scales away, it is within (2 b + step) / (step T)
    of the tail. With "aci" it is tail + (aim_0 - aim_T) / (gamma T), where the tail that is aimed
    at has not been held at 1, the least that an interval can be. Of *which* rows are missed nothing
    is promised: only that, along the stream, they are so many.

    All that is kept of the past are a few numbers for each level, and with "aci" and "dtaci" the
    window of scores. A row about which the model knows nothing, or all (a scale of 0), gets the
    model's own interval and teaches nothing; all other intervals are finite. The order of the rows
    matters, so wrapped models are neither merged nor made to unlearn.

    With delayed targets give each row when its target has come: it is scored by what the model
    would have predicted then.

    References
    ----------
    Gibbs and Candes (2021), Adaptive conformal inference under distribution shift, eq. 2 and
    proposition 4.1; Zaffran, Feron, Goude, Josse and Dieuleveut (2022), Adaptive conformal
    predictions for time series; Angelopoulos, Candes and Tibshirani (2023), Conformal PID control
    for time series prediction, section 2; Gibbs and Candes (2024), Conformal inference for online
    prediction with arbitrary distribution shifts, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.calibration import Conformal
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 1))
    >>> y = X[:, 0] + rng.standard_exponential(5000)  # not symmetric, and variance 1
    >>> model = BayesianLinearRegression(prior_precision=1.0, noise_precision=4.0)
    >>> low, high = model.predict_then_learn(X, y).interval(0.95)
    >>> float(np.mean((low <= y) & (y <= high)).round(2))
    0.86
    >>> low, high = Conformal(model).predict_then_learn(X, y).interval(0.95)
    >>> float(np.mean((low <= y) & (y <= high)).round(2))
    0.95
    """

    model: Estimator
    _: KW_ONLY
    level: float | Sequence[float] = (0.5, 0.8, 0.9, 0.95, 0.99)
    method: Literal["pid", "aci", "dtaci"] = "pid"
    rate: float | None = None
    memory: int | None = None
    integral: float = 0.0

    @property
    def levels_(self) -> Array:
        """(L,) levels that are learned, increasing."""
        self._learned_model  # noqa: B018  (raises where nothing was learned)
        levels: Array = self._state.levels.copy()
        return levels

    def predict(self, X: Any, return_std: bool = False, **how: Any) -> Array | tuple[Array, Array]:
        """The model's mean at ``X`` (n, m), and with ``return_std`` its sd as well.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Conformal(BayesianLinearRegression(prior_precision=0.0))
        >>> model.fit([[0], [1], [2]], [1, 3, 5]).predict([[3.0]]).round(9)
        array([7.])
        """
        points = self._points(X)
        if not return_std:
            return np.asarray(get_final_step(self.model_).predict(points, **how))
        predictive = get_final_step(self.model_).predict_distribution(points, **how)
        return predictive.mean(), predictive.std()

    # ---- inner -----------------------------------------------------------------------------------

    def _make_state(self) -> Tails:
        levels = _check_levels(self.level)
        if self.method not in METHODS:
            raise ValueError(
                f"method is {self.method!r}: it must be {', '.join(map(repr, METHODS))}"
            )
        rate, memory = DEFAULTS[self.method]
        rate = _check_positive("rate", self.rate, rate)
        memory = _check_whole_number("memory", self.memory, memory)
        if not 0.0 <= self.integral < math.inf:
            raise ValueError(f"integral is {self.integral}: it must be finite and not negative")
        if self.method == "pid":
            return TrackedTails.start(levels, rate, memory, float(self.integral))
        rates = rate * (EXPERTS if self.method == "dtaci" else np.ones_like(EXPERTS[:1]))
        return AdaptedTails.start(levels, rates, memory)

    def predict_one(self, x: ArrayLike | Mapping[str, float]) -> float:
        """Mean at one row ``x`` (as in :meth:`learn_one`): the model's.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = Conformal(BayesianLinearRegression(prior_precision=0.0))
        >>> round(model.fit([[0], [1], [2]], [1, 3, 5]).predict_one([3.0]), 9)
        7.0
        """
        model = self._model_with_fast_path()
        if model is None or hasattr(x, "keys"):
            return super().predict_one(x)
        try:
            return model.predict_one(x)
        except ValueError:
            return super().predict_one(x)  # which knows the names of the features

    def _calibrate_then_learn(
        self, predictive: Any, y: Array, weights: Array | None, return_predictions: bool
    ) -> Any:
        units = PredictionScales.of(predictive)
        ends = self._state.learn(units.scores(y, weights), return_predictions)
        return (
            None
            if ends is None
            else ConformalPrediction(predictive, self._state.levels, ends, units)
        )

    def _calibrate(self, distribution: Any) -> ConformalPrediction:
        ends = get_current_ends(self._state)[None]
        return ConformalPrediction(distribution, self._state.levels, ends)


def _check_levels(level: float | Sequence[float]) -> Array:
    """(L,) increasing, each once."""
    levels: Array = np.unique(np.atleast_1d(np.asarray(level, dtype=np.float64)))
    if levels.ndim != 1 or not 1 <= len(levels) <= MOST_LEVELS:
        raise ValueError(f"level has {levels.size} values: give from 1 to {MOST_LEVELS} levels")
    bad = levels[~((levels > 0.0) & (levels < 1.0))]
    if len(bad):
        raise ValueError(f"level is {bad[0]:g}: levels must lie between 0 and 1, as in 0.95")
    return levels


def _check_positive(name: str, value: float | None, default: float) -> float:
    value = default if value is None else value
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} is {value}: it must be positive and finite")
    return float(value)


def _check_whole_number(name: str, value: int | None, default: int) -> int:
    value = default if value is None else value
    if value != int(value) or value < 2:
        raise ValueError(f"{name} is {value}: it must be a whole number of rows, at least 2")
    return int(value)
