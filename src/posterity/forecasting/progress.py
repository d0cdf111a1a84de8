"""Progressive validation n steps ahead: every row is forecast before it is learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.forecasting.ensemble import begun, tried
from posterity.forecasting.forecast import Forecast, answered
from posterity.forecasting.forms import Form
from posterity.forecasting.panel import Panel
from posterity.forecasting.rows import Levels

Array = NDArray[np.float64]

# Forms are weighed anew when so much more has come, and a horizon at least.
GROWTH = 0.1

Ends = Callable[[int, Array], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class Progress:
    """What was forecast right before each new row, and what came: (n, S, h), NaN beyond the end.

    Entry [i, s, k] was forecast knowing all rows before the i-th new one, of the row k after it.

    Attributes
    ----------
    ids : tuple
        Names of the series.
    level : float
        Of the intervals from ``low`` to ``high``.
    median, low, high, crps, outcomes : (n, S, h) array
    pit : (n, S, h) array
        Probabilities, by the forecasts, of no more than what came.

    Examples
    --------
    A value that no forecast of one step expected:

    >>> from posterity.forecasting import Forecaster, Form
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=80))
    >>> y[70] += 12.0
    >>> walk = Forecaster(forms=[Form(drift=False)]).fit(y[:50])
    >>> strange = walk.forecast_then_learn(y[50:], h=1).p_values()[:, 0, 0]
    >>> int(strange.argmin()), bool(strange.min() < 1e-6)
    (20, True)
    """

    ids: tuple[Any, ...]
    level: float
    median: Array
    low: Array
    high: Array
    crps: Array
    outcomes: Array
    pit: Array

    def p_values(self) -> Array:
        """(n, S, h) how often something as far out would come: small where it is an anomaly.

        Twice the probability of the tail that the outcome is in. Entries [:, :, 0] say it of each
        new row before it is learned.
        """
        return 2.0 * np.minimum(self.pit, 1.0 - self.pit)

    def by_step(self) -> dict[str, Array]:
        """(h,) mean absolute error, mean CRPS, and share of outcomes held, by steps ahead."""
        held = (self.low <= self.outcomes) & (self.outcomes <= self.high)
        known = np.isfinite(self.outcomes) & np.isfinite(self.median)
        count = np.maximum(known.sum(axis=(0, 1)), 1)

        def mean(values: Array) -> Array:
            return np.asarray(np.where(known, values, 0.0).sum(axis=(0, 1)) / count)

        return {
            "mae": mean(np.abs(self.median - self.outcomes)),
            "crps": mean(self.crps),
            "coverage": mean(held.astype(np.float64)),
        }


def _central(level: float, h: int) -> tuple[Array, Array]:
    return np.full(h, 0.5 - 0.5 * level), np.full(h, 0.5 + 0.5 * level)


def forecasts(
    whole: Panel, first: int, h: int, forms: tuple[Form, ...], size: int
) -> Iterator[Forecast]:
    """The forecast right before each column from ``first`` on, of what is left of ``h`` steps."""
    due = first
    for column in range(first, whole.length):
        now = whole.before(whole.length - column)
        if column >= due:
            learners, levels = begun(forms, now)
            said = tried(learners, levels, now, h, size)
            due = column + max(h, int(GROWTH * column))
        else:
            levels = {log: Levels.of(now, log=log) for log in levels}
            for learner in learners:
                learner.learn_until(levels[learner.form.log], column)
        future = whole.columns[:, column : column + h]
        yield answered(now, learners, levels, said, future, future.shape[1], size)


def progress(
    whole: Panel,
    first: int,
    h: int,
    forms: tuple[Form, ...],
    size: int,
    level: float,
    ends: Ends | None = None,
) -> Progress:
    """All of these forecasts, beside what came.

    ``ends`` may say the probabilities (h,) below the ends of the intervals of each forecast, by its
    number and by ``pit`` of those before: of what came until then.
    """
    shape = (whole.length - first, len(whole), h)
    median, low, high, crps, outcomes, pit = (np.full(shape, np.nan) for _ in range(6))
    for number, forecast in enumerate(forecasts(whole, first, h, forms, size)):
        steps = forecast.horizon
        y = whole.values[:, first + number : first + number + steps]
        marginals = forecast.marginals
        median[number, :, :steps] = marginals.quantile(0.5)
        below, above = _central(level, h) if ends is None else ends(number, pit)
        low[number, :, :steps] = marginals.quantile(below[:steps])
        high[number, :, :steps] = marginals.quantile(above[:steps])
        known = np.isfinite(y)
        came = np.where(known, y, median[number, :, :steps])
        crps[number, :, :steps] = np.where(known, marginals.crps(came), np.nan)
        pit[number, :, :steps] = np.where(known, marginals.cdf(came), np.nan)
        outcomes[number, :, :steps] = y
    return Progress(whole.ids, level, median, low, high, crps, outcomes, pit)
