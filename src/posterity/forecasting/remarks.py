"""Warnings: series whose forecasts are less certain than they seem, or are not their own."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Mask
from posterity.forecasting.borrowing import Loan
from posterity.forecasting.calendar import format_time
from posterity.forecasting.checks import FEWEST_VALUES, ForecastWarning, find_constant
from posterity.forecasting.choosing import FEWEST_SERIES
from posterity.forecasting.forecast import Forecast
from posterity.forecasting.panel import OUTLIER, Panel, find_steps

# Most series that a warning names.
MOST_NAMED = 3
# Probability without noise from which the usual intervals have no width.
NOISELESS = 0.9


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
            _warn(
                f"{_list_names(panel, np.isin(np.arange(len(panel)), which))} too short for every "
                f"form, or not positive as forms in logarithms need: {what}"
            )


def warn_of_constant(panel: Panel) -> None:
    """Warn of series that never changed."""
    constant = find_constant(panel) & (panel.observed >= FEWEST_VALUES)
    if constant.any():
        _warn(
            f"{_list_names(panel, constant)} constant: the variation of the next values is "
            "unknown, and their intervals have width 0",
            depth=3,
        )


def warn_of_still(forecast: Forecast, unchanged: Mask) -> None:
    """Warn of series, ``unchanged`` (S,) lately, whose forecast has no noise."""
    noiseless = [
        (path.noise == 0.0).mean(axis=1) * np.isfinite(path.mean).all(axis=(1, 2))
        for path in forecast.paths
    ]
    still = np.einsum("sf,fs->s", forecast.marginals.weights, np.array(noiseless)) > NOISELESS
    still &= unchanged
    if still.any():
        _warn(
            f"{_list_names(forecast, still)} constant, at least lately: the variation of "
            "the next values is unknown, and their intervals have width 0",
            depth=3,
        )


def warn_of_few(panel: Panel) -> None:
    """Warn of series with too few values, which are left out."""
    few = panel.observed < FEWEST_VALUES
    if few.any():
        _warn(
            f"{_list_names(panel, few)} too short to be learned: forecasts are NaN; give at least "
            f"{FEWEST_VALUES} values",
            depth=3,
        )


def warn_of_outliers(panel: Panel, left_out: NDArray[np.int8] | None) -> None:
    """Warn of values of a panel that are ``left_out`` (S, T), and of new levels."""
    if left_out is None:
        return
    for marked, said in (
        (
            left_out == OUTLIER,
            "is far from what the values before it let expect: forecasts ignore it (outliers_ "
            "marks such values); outliers='learn' learns it",
        ),
        (
            find_steps(left_out),
            "begins a new level: forecasts take what came before for as much lower or higher; "
            "outliers='learn' takes all as it is",
        ),
    ):
        series, column = np.nonzero(marked)
        if not len(series):
            continue
        row = panel.ends[series[0]] + column[0] - panel.length + 1
        where = f"{panel.describe_series(panel.ids[series[0]])} at "
        where += format_time(panel.calendar.stamps(row))
        more = f" (and {len(series) - 1} more)" if len(series) > 1 else ""
        _warn(f"{panel.values[series[0], column[0]]:,.10g} of {where}{more} {said}")


def warn_of_bounds(panel: Panel, lower: float | str | None, upper: float | str | None) -> None:
    """Warn of a bound that was given, and of a value beyond it, which ends it."""
    for name, bound, sign in (("lower_bound", lower, 1.0), ("upper_bound", upper, -1.0)):
        if bound is None or isinstance(bound, str):
            continue
        with np.errstate(invalid="ignore"):
            series, column = np.nonzero(sign * (panel.values - bound) < 0.0)
        if len(series):
            more = f" (and {len(series) - 1} more)" if len(series) > 1 else ""
            _warn(
                f"{name} is {bound:,.10g}, and {panel.describe_series(panel.ids[series[0]])} has "
                f"{panel.values[series[0], column[0]]:,.10g}{more}: where values pass a bound "
                "there is none"
            )


def warn_of_events(names: Sequence[str]) -> None:
    """Warn of own events of which no day is among the learned rows."""
    if names:
        _warn(
            f"no learned row is on a day of the event {', '.join(map(repr, names[:MOST_NAMED]))}: "
            "nothing is known of its effect, and forecasts have none"
        )


def warn_of_short(panel: Panel, seasons: Iterable[float]) -> None:
    """Warn of series that are shorter than two of a season."""
    for season in seasons:
        short = (panel.observed < 2 * season) & (panel.observed >= FEWEST_VALUES)
        if short.any():
            _warn(
                f"{_list_names(panel, short)} shorter than two seasons of {season:g}: forecasts "
                "go without it, or by the one that was seen; give more rows, or leave it out of "
                "seasonality"
            )


def _warn(message: str, depth: int = 4) -> None:
    """Warn, as if so many calls above this one."""
    warnings.warn(message, ForecastWarning, stacklevel=depth + 1)


def _list_names(panel: Panel | Forecast, which: Mask) -> str:
    names = [
        "the series" if panel.single else f"series {panel.ids[number]!r}"
        for number in np.flatnonzero(which)
    ]
    listed = ", ".join(names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        listed += f" and {len(names) - MOST_NAMED} more"
    return f"{listed} {'is' if len(names) == 1 else 'are'}"
