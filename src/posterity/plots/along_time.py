"""Error, and coverage of intervals, along a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Axes, Figure
from posterity.plots._frame import (
    COLOURS,
    MARKERS,
    axes_of,
    compute_chance,
    draws,
    figure_of,
    finish_along_rows,
    look,
    write_percent,
)
from posterity.plots.calibration import plot_calibration, plot_pit

_POINTS = 24

of_validation = draws("along", "progressive_validation(model, X, y)")


@of_validation
def plot_error_along_time(
    result: Any,
    ax: Axes | None = None,
    *,
    unit: str = "units of y",
    shade: Sequence[tuple[int, int]] | None = None,
) -> Axes:
    """Draw the mean absolute error of predictions along the stream.

    Dots are stretches of the stream, the line is the mean over all rows so far.

    Parameters
    ----------
    result : ValidationResult
        From `posterity.evaluation.progressive_validation`.
    ax : matplotlib Axes, optional
    unit : str
        Unit of the target, for the axis label.
    shade : sequence of (int, int), optional
        Rows to shade, each a first row and the row after the last. Default: the
        ``drift_periods()`` of the result, where predictions were worse than before.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> model = BayesianLinearRegression()
    >>> result = progressive_validation(model, x[:, None], 2 * x + np.sin(9 * x))
    >>> ax = plot_error_along_time(result, Figure().subplots())
    >>> ax.get_xlabel()
    'rows seen'
    """
    ax = axes_of(ax)
    along = result.along
    span, middle, error = _join_neighbours(along, along.n_rows, along.mae)
    ax.plot(
        middle,
        error,
        "o",
        color=COLOURS[0],
        markersize=4.5,
        alpha=0.55,
        label=f"each {span:,} rows",
        zorder=2,
    )
    ax.plot(
        along.row_end,
        _compute_running_mean(along.mae, along.n_rows),
        color="black",
        linewidth=1.8,
        label="all rows so far",
        zorder=3,
    )
    if shade is None:
        shade = [(each.row_start, each.row_end) for each in result.drift_periods()]
    for k, (start, end) in enumerate(shade):
        label = None if k else "worse than before"
        ax.axvspan(start, end, color="0.85", linewidth=0.0, zorder=0, label=label)
    ax.set_ylim(bottom=0.0)
    title = "Error of predictions made before their row was learned"
    return finish_along_rows(ax, result.n_rows, title, f"mean absolute error ({unit})")


@of_validation
def plot_coverage_along_time(result: Any, ax: Axes | None = None) -> Axes:
    """Draw the share of targets inside their predictive intervals along the stream.

    One colour and line style for each level. Dots are stretches, the line is the share over all
    scored rows so far, and the band is where 95% of such shares would lie if the intervals were
    exact and the rows independent.

    Parameters
    ----------
    result : ValidationResult
        From `posterity.evaluation.progressive_validation`.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> model = BayesianLinearRegression()
    >>> result = progressive_validation(model, x[:, None], 2 * x + np.sin(9 * x))
    >>> ax = plot_coverage_along_time(result, Figure().subplots())
    >>> ax.get_ylabel()
    'share of targets inside the interval'
    """
    ax = axes_of(ax)
    along = result.along
    scored = along.n_rows - along.n_unscored
    seen = np.cumsum(scored)
    for i, (level, share) in enumerate(along.coverage.items()):
        colour, style = look(i)
        ends = compute_chance(level, seen)
        ax.fill_between(along.row_end, *ends, color=colour, alpha=0.13, linewidth=0.0, zorder=1)
        ax.axhline(level, color="0.35", linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        span, middle, dots = _join_neighbours(along, scored, share)
        ax.plot(
            middle,
            dots,
            MARKERS[i % len(MARKERS)],
            color=colour,
            markersize=4.5,
            alpha=0.55,
            zorder=2,
        )
        ax.plot(
            along.row_end,
            _compute_running_mean(share, scored),
            color=colour,
            linestyle=style,
            linewidth=1.8,
            label=f"{100 * level:g}% interval, all rows so far",
            zorder=3,
        )
    if along.coverage:
        ax.plot([], [], "o", color="0.5", markersize=4.5, alpha=0.7, label=f"each {span:,} rows")
        ax.fill_between([], [], color="0.5", alpha=0.25, linewidth=0.0, label="chance, if exact")
    ax.set_ylim(0.0, 1.03)
    write_percent(ax.yaxis)
    title = "Coverage: do the intervals hold what they promise?"
    return finish_along_rows(ax, result.n_rows, title, "share of targets inside the interval")


@of_validation
def plot_validation(
    result: Any, title: str = "Progressive validation", *, unit: str = "units of y"
) -> Figure:
    """Draw coverage and error along time and, if there is one, the PIT, in one figure.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> model = BayesianLinearRegression()
    >>> result = progressive_validation(model, x[:, None], 2 * x + np.sin(9 * x))
    >>> len(plot_validation(result, "A wave").axes)
    4
    """
    if result.pit is None:
        figure = figure_of(8.5, 8.0, title)
        upper, lower = figure.subplots(2, 1, sharex=True)
    else:
        figure = figure_of(13.0, 8.0, title)
        panels = figure.subplots(2, 2, width_ratios=[8.5, 4.5])
        upper, lower = panels[:, 0]
        plot_calibration(result, panels[0, 1])
        plot_pit(result, panels[1, 1])
    plot_coverage_along_time(result, upper).set_xlabel("")
    plot_error_along_time(result, lower, unit=unit)
    return figure


def _join_neighbours(
    along: Any, weight: NDArray[np.int64], score: Array
) -> tuple[int, Array, Array]:
    """Join neighbours until few enough dots are left to be read: rows in each, middles, means.

    A last one of less than half the rows would only be noise, and is left out.
    """
    step = -(-len(weight) // _POINTS)
    starts = np.arange(0, len(weight), step)
    rows = np.add.reduceat(along.n_rows, starts)
    total = np.add.reduceat(weight, starts)
    mean = np.where(total > 0, np.add.reduceat(_times(score, weight), starts), np.nan)
    mean /= np.maximum(total, 1)
    kept = rows >= rows[0] / 2
    return int(rows[0]), (np.cumsum(rows) - rows / 2.0)[kept], mean[kept]


def _compute_running_mean(score: Array, weight: NDArray[np.int64]) -> Array:
    seen = np.cumsum(weight)
    total = np.cumsum(_times(score, weight))
    return np.asarray(np.where(seen > 0, total, np.nan) / np.maximum(seen, 1))


def _times(score: Array, weight: NDArray[np.int64]) -> Array:
    """Sums over stretches: a mean over no rows is NaN, its sum 0."""
    return np.where(weight > 0, score, 0.0) * weight
