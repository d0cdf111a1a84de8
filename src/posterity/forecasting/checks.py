"""Checks of horizons and series, and the messages where they are too short."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.forecasting.borrowing import Loan
from posterity.forecasting.calendar import format_time
from posterity.forecasting.forms import FEWEST_SERIES, Form
from posterity.forecasting.panel import Panel

# Fewest observed values of a series.
FEWEST_VALUES = 4
# Fewest rows that a form needs of a series for its forecasts to count.
FEWEST_ROWS = 3
# Most series that a warning names.
MOST_NAMED = 3


class ForecastWarning(UserWarning):
    """A forecast is less certain than it may seem: short, constant or incomplete series."""


def check_parameters(
    seasonality: int | Sequence[int] | None, forms: Sequence[Form] | None, n_draws: int
) -> None:
    """Raise ``ValueError`` or ``TypeError`` for parameters of a forecaster that are none."""
    if not (isinstance(n_draws, int | np.integer) and n_draws >= 2):
        raise ValueError(f"n_draws is {n_draws!r}: it must be at least 2")
    periods: Iterable[Any] = () if seasonality is None else np.atleast_1d(np.asarray(seasonality))
    for period in periods:
        if period != int(period) or period < 2:
            raise ValueError(
                f"seasonality is {seasonality!r}: periods must be whole numbers of steps, at "
                "least 2"
            )
    if forms is not None and not all(isinstance(form, Form) for form in forms):
        raise TypeError("forms must be a sequence of Form, as in [Form(1, lags=(1, 2))]")
    if forms is not None and not len(forms):
        raise ValueError("forms is empty: give at least one, or None to choose them automatically")


def check_forgetting(forgetting: Any) -> None:
    """Raise ``TypeError`` unless forms can forget so."""
    if forgetting is not None and not hasattr(forgetting, "memories"):
        raise TypeError(
            f"forgetting is {forgetting!r}: give Exponential, Stabilized, Window, Adaptive or "
            "Changepoint of posterity.forgetting"
        )


def check_horizon(h: int) -> None:
    """Raise ``ValueError`` unless ``h`` is a horizon."""
    if not (isinstance(h, int | np.integer) and h >= 1):
        raise ValueError(f"h is {h!r}: the horizon must be a whole number of steps, at least 1")


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


def find_unlearned(panel: Panel, forms: Sequence[Form]) -> NDArray[np.intp]:
    """Find the numbers of the series that no form can learn."""
    long, unlogged = _find_lost(panel, forms)
    return np.flatnonzero((panel.observed < FEWEST_VALUES) | (long | unlogged).all(axis=0))


def warn_of_unlearned(panel: Panel, loans: Sequence[Loan]) -> None:
    """Warn of series that no form can learn, and which of these have no forecast."""
    for which, what in (
        (
            [loan.series for loan in loans if len(loan.lenders)],
            "forecasts are those of the other series, brought to the level of its values",
        ),
        (
            [loan.series for loan in loans if not len(loan.lenders)],
            f"forecasts are NaN; give at least {FEWEST_VALUES} values, or one value and "
            f"{FEWEST_SERIES} other series with values at that step",
        ),
    ):
        if which:
            warnings.warn(
                f"{_list_names(panel, np.isin(np.arange(len(panel)), which))} too short for every "
                f"form, or not positive as forms in logarithms need: {what}",
                ForecastWarning,
                stacklevel=4,
            )


def find_constant(panel: Panel) -> NDArray[np.bool_]:
    """(S,) which series never changed."""
    known, values = np.isfinite(panel.values), panel.values
    highest = np.where(known, values, -np.inf).max(axis=1)
    return np.asarray(highest == np.where(known, values, np.inf).min(axis=1))


def warn_of_constant(panel: Panel) -> None:
    """Warn of series that never changed."""
    constant = find_constant(panel) & (panel.observed >= FEWEST_VALUES)
    if constant.any():
        warnings.warn(
            f"{_list_names(panel, constant)} constant: the variation of the next values is "
            "unknown, and their intervals have width 0",
            ForecastWarning,
            stacklevel=3,
        )


def warn_of_few(panel: Panel) -> None:
    """Warn of series with too few values, which are left out."""
    few = panel.observed < FEWEST_VALUES
    if few.any():
        warnings.warn(
            f"{_list_names(panel, few)} too short to be learned: forecasts are NaN; give at least "
            f"{FEWEST_VALUES} values",
            ForecastWarning,
            stacklevel=3,
        )


def warn_of_outliers(panel: Panel, used: Panel) -> None:
    """Warn of values of a panel that are left out of the one in use."""
    series, column = np.nonzero(np.isfinite(panel.values) & np.isnan(used.values))
    if len(series):
        row = panel.ends[series[0]] + column[0] - panel.length + 1
        where = f"{panel.describe_series(panel.ids[series[0]])} at "
        where += format_time(panel.calendar.times(row))
        more = f" (and {len(series) - 1} more)" if len(series) > 1 else ""
        warnings.warn(
            f"{panel.values[series[0], column[0]]:,.10g} of {where}{more} is far from all values "
            "before it: forecasts ignore it (outliers_ marks such values); outliers='learn' learns "
            "it",
            ForecastWarning,
            stacklevel=4,
        )


def warn_of_short(panel: Panel, periods: tuple[int, ...]) -> None:
    """Warn of series that are shorter than two of their shortest season."""
    season = min(periods, default=0)
    short = (panel.observed < 2 * season) & (panel.observed >= FEWEST_VALUES)
    if short.any():
        warnings.warn(
            f"{_list_names(panel, short)} shorter than two seasons of {season}: forecasts come "
            "from forms with fewer lags",
            ForecastWarning,
            stacklevel=4,
        )


def _find_lost(panel: Panel, forms: Sequence[Form]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(F, S) whether a series is too short for a form, and has values without a logarithm."""
    lowest = np.where(np.isfinite(panel.values), panel.values, np.inf).min(axis=1)
    lengths = np.array([form.length for form in forms])[:, None]
    logs = np.array([form.log for form in forms])[:, None]
    return panel.lengths - lengths < FEWEST_ROWS, logs & (lowest <= 0.0)


def _list_names(panel: Panel, which: NDArray[np.bool_]) -> str:
    names = [panel.describe_series(panel.ids[number]) for number in np.flatnonzero(which)]
    listed = ", ".join(names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        listed += f" and {len(names) - MOST_NAMED} more"
    return f"{listed} {'is' if len(names) == 1 else 'are'}"
