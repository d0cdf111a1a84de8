"""Checks of horizons and series, and the messages where they are too short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posterity.aliases import AnyArray, Indices, Mask
from posterity.forecasting.forms import Form
from posterity.forecasting.gaps import carry_forward
from posterity.forecasting.panel import Panel
from posterity.forgetting.words import read_forgetting

# Fewest observed values of a series.
FEWEST_VALUES = 4
# Fewest rows that a form needs of a series for its forecasts to count.
FEWEST_ROWS = 3
# Most steps of a horizon for each learned row, and steps that are never too many.
STEPS_A_ROW, FEW_STEPS, MOST_STEPS = 100, 10_000, 10**12


class ForecastWarning(UserWarning):
    """A forecast is less certain than it may seem: short, constant or incomplete series."""


def check_parameters(
    seasonality: float | Sequence[float] | None, forms: Sequence[Form] | None, n_draws: int
) -> None:
    """Raise ``ValueError`` or ``TypeError`` for parameters of a forecaster that are none."""
    if not (isinstance(n_draws, int | np.integer) and n_draws >= 2):
        raise ValueError(f"n_draws is {n_draws!r}: it must be at least 2")
    periods: AnyArray = np.atleast_1d(np.asarray(() if seasonality is None else seasonality))
    if periods.dtype.kind not in "fiu" or not ((periods >= 2) & (periods < np.inf)).all():
        raise ValueError(
            f"seasonality is {seasonality!r}: periods are numbers of steps, at least 2, as in "
            "(7, 365.25)"
        )
    if forms is not None and not all(isinstance(form, Form) for form in forms):
        raise TypeError("forms must be a sequence of Form, as in [Form(1, lags=(1, 2))]")
    if forms is not None and not len(forms):
        raise ValueError("forms is empty: give at least one, or None to choose them automatically")


def read_memories(forgetting: Any) -> Any:
    """A way to forget, which may be given in words; ``TypeError`` unless forms can forget so."""
    strategy = read_forgetting(forgetting)
    if strategy is not None and not hasattr(strategy, "memories"):
        raise TypeError(
            f"forgetting is {forgetting!r}: give Exponential, Stabilized, Window, Adaptive or "
            "Changepoint of posterity.forgetting"
        )
    return strategy


def check_horizon(h: int) -> None:
    """Raise ``ValueError`` unless ``h`` is a horizon."""
    if not (isinstance(h, int | np.integer) and h >= 1):
        raise ValueError(f"h is {h!r}: the horizon must be a whole number of steps, at least 1")
    if h > MOST_STEPS:
        raise ValueError(f"h is beyond {MOST_STEPS:,} steps: forecast fewer")


def check_far(h: int, rows: int) -> None:
    """Raise ``ValueError`` for a horizon that is too far for so many learned rows."""
    most = max(STEPS_A_ROW * rows, FEW_STEPS)
    if h > most:
        raise ValueError(
            f"h is {h:,}, and {rows:,} rows were learned, which say nothing so far ahead: forecast "
            f"at most {most:,} steps"
        )


def check_enough(panel: Panel) -> None:
    """Raise ``ValueError``, naming the first, where all series have too few values."""
    few = np.flatnonzero(panel.observed < FEWEST_VALUES)
    if len(few) == len(panel):
        more = f" (and {len(few) - 1} more)" if len(few) > 1 else ""
        n = panel.observed[few[0]]
        raise ValueError(
            f"{panel.describe_series(panel.ids[few[0]])}{more} has {n} "
            f"{'value' if n == 1 else 'values'}: a forecast needs at least {FEWEST_VALUES}; leave "
            "it out, or wait for more"
        )


def check_forms(panel: Panel, forms: Sequence[Form]) -> None:
    """Raise ``ValueError``, naming the first, where no form can learn any series."""
    long, unlogged = _find_lost(panel, forms)
    if not (long | unlogged).all(axis=0).all():
        return
    name, rows = panel.describe_series(panel.ids[0]), panel.lengths[0]
    if long[:, 0].all():
        raise ValueError(
            f"{name}, of {rows} rows, is shorter than the lags of every form: give forms with "
            "fewer lags, or more rows"
        )
    raise ValueError(
        f"{name}, of {rows} rows, has values that are not positive, and the forms that could "
        "learn it are in logarithms: give a form without log, as Form()"
    )


def find_unchanged(panel: Panel) -> Mask:
    """(S,) of which series the last two values are the same."""
    filled = carry_forward(panel.values)
    return np.asarray((filled[:, -2:] == filled[:, -1:]).all(axis=1))


def find_unlearned(panel: Panel, forms: Sequence[Form]) -> Indices:
    """Find the numbers of the series that no form can learn."""
    long, unlogged = _find_lost(panel, forms)
    return np.flatnonzero((panel.observed < FEWEST_VALUES) | (long | unlogged).all(axis=0))


def find_constant(panel: Panel) -> Mask:
    """(S,) which series never changed."""
    known, values = np.isfinite(panel.values), panel.values
    highest = np.where(known, values, -np.inf).max(axis=1)
    return np.asarray(highest == np.where(known, values, np.inf).min(axis=1))


def _find_lost(panel: Panel, forms: Sequence[Form]) -> tuple[Mask, Mask]:
    """(F, S) whether a series is too short for a form, and has values without a logarithm."""
    known = np.isfinite(panel.values)
    lowest = np.where(known, panel.values, np.inf).min(axis=1)
    highest = np.where(known, panel.values, -np.inf).max(axis=1)
    lengths = np.array([form.length for form in forms])[:, None]
    logs = np.array([form.log for form in forms])[:, None]
    ends = np.array([form.between or (0.0, np.inf) for form in forms]).T[:, :, None]
    outside = (lowest <= ends[0]) | (highest >= ends[1])
    return panel.lengths - lengths < FEWEST_ROWS, logs & outside
