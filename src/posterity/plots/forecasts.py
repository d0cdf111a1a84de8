"""Plots of forecasts: median, bands and values before, and what a forecast is the sum of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Axes, Figure
from posterity.distributions._limits import find_series
from posterity.plots._frame import COLOURS, axes_of, draws, figure_of, finish

# Values before a forecast that are drawn, in horizons, and the fewest.
HORIZONS_BEFORE, FEWEST_BEFORE = 3, 30


@draws("ids", "Forecaster().fit(table).forecast(28)")
def plot_forecast(
    forecast: Any,
    ax: Axes | None = None,
    *,
    series: Any = None,
    history: ArrayLike | Literal["auto"] | None = "auto",
    outcomes: ArrayLike | None = None,
    levels: Sequence[float] = (0.5, 0.8, 0.95),
    n_paths: int = 0,
    unit: str = "",
) -> Axes:
    """Draw a forecast: the median, with a band for each level, the darker the narrower.

    Parameters
    ----------
    forecast : Forecast
        From `posterity.forecasting.Forecaster.forecast`.
    ax : matplotlib Axes, optional
    series : optional
        Name of the series; needed if there are several.
    history : "auto", (n,) array or None, default "auto"
        Values before the forecast, the last one right before it; by default the last learned ones,
        three horizons of them; None for none.
    outcomes : (k,) array, optional
        What came, from the first step on.
    levels : sequence of float, default (0.5, 0.8, 0.95)
        Probability that a band holds each step.
    n_paths : int, default 0
        Sample paths to draw, always the same.
    unit : str
        Unit of the series, for the axis label.

    Raises
    ------
    ValueError
        If there are several series and none is named, or there is none of that name.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity.forecasting import Forecaster
    >>> y = np.sin(np.arange(60) * 2 * np.pi / 12)
    >>> forecast = Forecaster(seasonality=12).fit(y[:48]).forecast(12)
    >>> ax = plot_forecast(forecast, Figure().subplots(), outcomes=y[48:], unit="MW")
    >>> ax.get_ylabel()
    'MW'
    """
    ax = axes_of(ax)
    of = find_series(forecast.ids, series)
    times = np.asarray(forecast.times).reshape(len(forecast.ids), -1)[of]
    for level in sorted(levels, reverse=True):
        low, high = (np.reshape(end, (-1, len(times)))[of] for end in forecast.interval(level))
        ax.fill_between(times, low, high, color=COLOURS[0], alpha=0.18, lw=0, label=f"{level:.0%}")
    if n_paths:
        paths = np.reshape(forecast.rvs(n_paths, random_state=0), (n_paths, -1, len(times)))
        ax.plot(times, paths[:, of].T, color=COLOURS[0], lw=0.6, alpha=0.6)
    median = np.reshape(forecast.median(), (-1, len(times)))[of]
    ax.plot(times, median, color=COLOURS[0], lw=1.8, label="median")
    before, known = _find_history(forecast, series, history, times)
    label = "before" if len(known) else None
    ax.plot(before, known, color="0.25", lw=1.2, label=label)
    if outcomes is not None:
        came = np.asarray(outcomes)[: len(times)]
        ax.plot(times[: len(came)], came, "o", color=COLOURS[1], ms=3.5, label="what came")
    _write_dates(ax, times)
    title = "Forecast" if forecast.single else f"Forecast of {forecast.ids[of]}"
    return finish(ax, title, x="time", y=unit)


@draws("components", "Forecaster().fit(table).forecast(28)")
def plot_components(
    forecast: Any, *, series: Any = None, level: float = 0.95, unit: str = ""
) -> Figure:
    """Draw what a forecast is the sum of, one below the other: trend, seasons, holidays, columns.

    Parameters
    ----------
    forecast : Forecast
        From `posterity.forecasting.Forecaster.forecast`.
    series : optional
        Name of the series; needed if there are several.
    level : float, default 0.95
        Probability of the bands.
    unit : str
        Unit of the series, for the axis labels.

    Raises
    ------
    ValueError
        If there are several series and none is named, or there is none of that name.

    Examples
    --------
    >>> from posterity.forecasting import Forecaster
    >>> y = 20 + np.sin(np.arange(60) * 2 * np.pi / 12)
    >>> forecast = Forecaster(seasonality=12).fit(y).forecast(24)
    >>> [ax.get_title(loc="left") for ax in plot_components(forecast).axes]
    ['trend', 'season 12']
    """
    name = forecast.ids[find_series(forecast.ids, series)]
    parts = forecast.select([name]).components()
    title = "Components" if forecast.single else f"Components of {name}"
    figure = figure_of(8.5, 0.7 + 2.1 * len(parts), title)
    panels = np.atleast_1d(figure.subplots(len(parts), 1, sharex=True))
    for ax, (what, part) in zip(panels, parts.items(), strict=True):
        times, mean = np.ravel(part.times), np.ravel(part.mean())
        low, high = (np.ravel(end) for end in part.interval(level))
        ax.fill_between(times, low, high, color=COLOURS[0], alpha=0.25, lw=0)
        ax.plot(times, mean, color=COLOURS[0], lw=1.8)
        if what != "trend":
            ax.axhline(0.0, color="0.6", lw=0.8)
        _write_dates(ax, times)
        finish(ax, what, x="", y=unit)
    panels[-1].set_xlabel("time")
    figure.align_ylabels()
    return figure


def _find_history(forecast: Any, series: Any, history: Any, times: Any) -> tuple[Any, Any]:
    """Times and values before the forecast."""
    if isinstance(history, str):
        before, known = forecast.get_history(series)
        count = max(HORIZONS_BEFORE * len(times), FEWEST_BEFORE)
        return before[-count:], known[-count:]
    known = np.zeros(0) if history is None else np.asarray(history)
    step = times[1] - times[0] if len(times) > 1 else times.dtype.type(1)
    return times[0] - step * np.arange(len(known), 0, -1), known


def _write_dates(ax: Axes, times: Any) -> None:
    """Short dates along the axis of times."""
    if times.dtype.kind == "M":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        dates = AutoDateLocator()  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(dates)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(dates))  # type: ignore[no-untyped-call]
