"""Are forecasts right? Coverage by steps ahead, errors that repeat, and which forms count."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from posterity.aliases import Axes
from posterity.distributions._limits import find_series
from posterity.plots._frame import COLOURS, STYLES, axes_of, draws, finish

# Probabilities so near 0 or 1 that their normal scores are not numbers.
SMALLEST_TAIL = 1e-12
CALL = "forecaster.forecast_then_learn(table, h=28)"


@draws("by_step", CALL)
def plot_coverage_by_step(progress: Any, ax: Axes | None = None) -> Axes:
    """Draw how often intervals held, by steps ahead, beside the level that they should hold.

    Parameters
    ----------
    progress : Progress
        From `posterity.forecasting.Forecaster.forecast_then_learn`.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity.forecasting import Forecaster, Form
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=120))
    >>> walk = Forecaster(forms=[Form(drift=False)]).fit(y[:60])
    >>> progress = walk.forecast_then_learn(y[60:], h=5)
    >>> plot_coverage_by_step(progress, Figure().subplots()).get_xlabel()
    'steps ahead'
    """
    ax = axes_of(ax)
    held = progress.by_step()["coverage"]
    steps = np.arange(1, len(held) + 1)
    ax.axhline(
        progress.level, color="black", lw=1.2, ls=STYLES[1], label=f"should be {progress.level:.0%}"
    )
    ax.plot(steps, held, "o-", color=COLOURS[0], ms=4, lw=1.4, label="held")
    ax.set_ylim(min(0.5, float(held.min()) - 0.05), 1.02)
    ax.locator_params(axis="x", integer=True)
    return finish(ax, "Coverage by steps ahead", x="steps ahead", y="share of outcomes inside")


@draws("pit", CALL)
def plot_autocorrelation(
    progress: Any, ax: Axes | None = None, *, series: Any = None, n_lags: int = 24
) -> Axes:
    """Draw the autocorrelation of one-step errors: bars beyond the dotted lines repeat something.

    Errors are on the scale of normal scores: those of the probabilities that forecasts gave to no
    more than what came. Between the lines 95% of the bars lie by chance.

    Parameters
    ----------
    progress : Progress
        From `posterity.forecasting.Forecaster.forecast_then_learn`.
    ax : matplotlib Axes, optional
    series : optional
        Name of the series; needed if there are several.
    n_lags : int, default 24
        Lags to draw, at most a third of the rows.

    Raises
    ------
    ValueError
        If there are several series and none is named, or there is none of that name.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity.forecasting import Forecaster, Form
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=120))
    >>> walk = Forecaster(forms=[Form(drift=False)]).fit(y[:60])
    >>> ax = plot_autocorrelation(walk.forecast_then_learn(y[60:], h=1), Figure().subplots())
    >>> ax.get_xlabel()
    'lag'
    """
    pit = progress.pit[:, find_series(progress.ids, series), 0]
    ax = axes_of(ax)
    scores = ndtri(np.clip(pit, SMALLEST_TAIL, 1.0 - SMALLEST_TAIL))
    off = np.nan_to_num(scores - np.nanmean(scores))
    known = np.isfinite(scores).astype(float)
    square = np.square(off).sum() / known.sum()
    lags = np.arange(1, min(n_lags, len(off) // 3) + 1)
    pairs = np.array([known[lag:] @ known[:-lag] for lag in lags])
    products = np.array([off[lag:] @ off[:-lag] for lag in lags])
    bars = products / np.maximum(pairs, 1.0) / (square or 1.0)
    ax.bar(lags, bars, width=0.6, color=COLOURS[0])
    chance = 1.96 / np.sqrt(known.sum())
    for end in (-chance, chance):
        ax.axhline(end, color="black", lw=1.0, ls=STYLES[3])
    ax.axhline(0.0, color="0.4", lw=0.8)
    ax.locator_params(axis="x", integer=True)
    return finish(ax, "Do one-step errors repeat?", x="lag", y="autocorrelation")


@draws("forms", "Forecaster().fit(table).forecast(28)")
def plot_forms(forecast: Any, ax: Axes | None = None, *, series: Any = None) -> Axes:
    """Draw how much each form counts in a forecast, the heaviest on top.

    Parameters
    ----------
    forecast : Forecast
        From `posterity.forecasting.Forecaster.forecast`.
    ax : matplotlib Axes, optional
    series : optional
        Name of the series; needed if there are several.

    Raises
    ------
    ValueError
        If there are several series and none is named, or there is none of that name.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity.forecasting import Forecaster, Form
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=60))
    >>> forecast = Forecaster(forms=[Form(), Form(1, (1, 2))]).fit(y).forecast(3)
    >>> ax = plot_forms(forecast, Figure().subplots())
    >>> sorted(tick.get_text() for tick in ax.get_yticklabels())
    ['difference 1', 'difference 1, lags 1-2']
    """
    weights = np.atleast_2d(forecast.weights)[find_series(forecast.ids, series)]
    ax = axes_of(ax)
    order = np.argsort(weights)
    ax.barh(np.arange(len(order)), weights[order], color=COLOURS[0])
    ax.set_yticks(np.arange(len(order)), [str(forecast.forms[number]) for number in order])
    return finish(ax, "What the forecast is made of", x="weight", y="", grid="x")
