"""Progressive validation n steps ahead: every row is forecast before it is learned."""

from __future__ import annotations

from collections.abc import Iterator
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
    """

    ids: tuple[Any, ...]
    level: float
    median: Array
    low: Array
    high: Array
    crps: Array
    outcomes: Array

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
    whole: Panel, first: int, h: int, forms: tuple[Form, ...], size: int, level: float
) -> Progress:
    """All of these forecasts, beside what came."""
    shape = (whole.length - first, len(whole), h)
    median, low, high, crps, outcomes = (np.full(shape, np.nan) for _ in range(5))
    for number, forecast in enumerate(forecasts(whole, first, h, forms, size)):
        steps = forecast.horizon
        y = whole.values[:, first + number : first + number + steps]
        marginals = forecast.marginals
        median[number, :, :steps] = marginals.quantile(0.5)
        low[number, :, :steps] = marginals.quantile(0.5 - 0.5 * level)
        high[number, :, :steps] = marginals.quantile(0.5 + 0.5 * level)
        known = np.isfinite(y)
        scores = marginals.crps(np.where(known, y, median[number, :, :steps]))
        crps[number, :, :steps] = np.where(known, scores, np.nan)
        outcomes[number, :, :steps] = y
    return Progress(whole.ids, level, median, low, high, crps, outcomes)
