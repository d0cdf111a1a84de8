"""Plot of forecasts as a fan: the median, bands, and the values before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.plots._frame import COLOURS, axes_of, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_forecast(
    forecast: Any,
    ax: Axes | None = None,
    *,
    series: Any = None,
    history: ArrayLike | None = None,
    outcomes: ArrayLike | None = None,
    levels: Sequence[float] = (0.5, 0.8, 0.95),
    n_paths: int = 0,
    unit: str = "units of y",
) -> Axes:
    """Draw a forecast: the median, with a band for each level, the darker the narrower.

    Parameters
    ----------
    forecast : Forecast
        From `posterity.forecasting.Forecaster.forecast`.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    series : optional
        Name of the series; needed if there are several.
    history : (n,) array, optional
        Values before the forecast, the last one right before it.
    outcomes : (k,) array, optional
        What came, from the first step on.
    levels : sequence of float, default (0.5, 0.8, 0.95)
        Probability that a band holds each step.
    n_paths : int, default 0
        Sample paths to draw, always the same.
    unit : str
        Unit of the series, for the axis label.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If there are several series and none is named, or there is none of that name.
    ModuleNotFoundError
        Matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity.forecasting import Forecaster
    >>> y = np.sin(np.arange(60) * 2 * np.pi / 12)
    >>> forecast = Forecaster(seasonality=12).fit(y[:48]).forecast(12)
    >>> ax = plot_forecast(forecast, Figure().subplots(), history=y[:48], outcomes=y[48:])
    >>> ax.get_ylabel()
    'y (units of y)'
    """
    ax = axes_of(ax)
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    of = find_series(forecast, series)
    times = np.asarray(forecast.times).reshape(len(forecast.ids), -1)[of]
    for level in sorted(levels, reverse=True):
        low, high = (np.reshape(end, (-1, len(times)))[of] for end in forecast.interval(level))
        label = f"{level:.0%}" if level == max(levels) else None
        ax.fill_between(times, low, high, color=COLOURS[0], alpha=0.18, lw=0, label=label)
    if n_paths:
        paths = np.reshape(forecast.rvs(n_paths, random_state=0), (n_paths, -1, len(times)))
        ax.plot(times, paths[:, of].T, color=COLOURS[0], lw=0.6, alpha=0.6)
    median = np.reshape(forecast.median(), (-1, len(times)))[of]
    ax.plot(times, median, color=COLOURS[0], lw=1.8, label="median")
    if history is not None:
        known = np.asarray(history)
        step = times[1] - times[0] if len(times) > 1 else times.dtype.type(1)
        ax.plot(times[0] - step * np.arange(len(known), 0, -1), known, color="0.25", lw=1.2)
    if outcomes is not None:
        came = np.asarray(outcomes)[: len(times)]
        ax.plot(times[: len(came)], came, "o", color=COLOURS[1], ms=3.5, label="what came")
    if times.dtype.kind == "M":
        dates = AutoDateLocator()  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(dates)
        short = ConciseDateFormatter(dates)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_formatter(short)
    return finish(ax, "Forecast", x="time", y=f"y ({unit})")


def find_series(forecast: Any, series: Any) -> int:
    """Number of a series among ``ids``; raises ``ValueError`` if none is named or known."""
    names = list(forecast.ids)
    if series is None:
        if len(names) > 1:
            raise ValueError(f"series is missing: name one of the {len(names)}, as in {names[0]!r}")
        return 0
    if series not in names:
        raise ValueError(f"there is no series {series!r} in the forecast: give one of its ids")
    return names.index(series)
