"""Plot of predictions along one feature: sampled curves, and the mean with its bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Axes, Estimator
from posterity.plots._along import Feature, predict_numbers, read_rows, require_part, scatter, split
from posterity.plots._frame import COLOURS, axes_of, draws, finish, look

PLACES = 301


@draws("fit", "model.fit(X, y)")
def plot_predictions(
    model: Estimator,
    X: Any,
    y: Any = None,
    ax: Axes | None = None,
    *,
    feature: int | str = 0,
    at: ArrayLike | None = None,
    levels: Sequence[float] = (0.5, 0.95),
    data: tuple[Any, ArrayLike] | None = None,
    truth: ArrayLike | None = None,
    unit: str = "units of y",
) -> Axes:
    """Draw the predicted mean over one feature, with bands for new observations.

    Parameters
    ----------
    model : estimator
        Anything with ``predict_distribution``, or a scikit-learn pipeline that ends in it.
    X : (n, m) array or data frame, or (n,) array
        Rows, from the least to the largest of whose values the feature runs; or its values
        themselves, in order.
    y : (n,) array, optional
        Targets of the rows, which are then drawn.
    ax : matplotlib Axes, optional
    feature : int or str, default 0
        Which feature runs.
    at : (m,) array, optional
        Where the other features are held; by default at the medians of the rows, and at the
        commonest level of text.
    levels : sequence of float, default (0.5, 0.95)
        Probability that a band holds a new observation.
    data : (X, y), optional
        Rows to draw where `X` has values of the feature alone: (n, m) or (n,), and (n,).
    truth : (n,) array, optional
        The function that the rows came from, at those values; or at 301 places evenly.
    unit : str
        Unit of the target, for the axis label.

    Raises
    ------
    ValueError
        If there is no such feature, or it holds text, or `at` is missing or of the wrong shape.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.2, 2.8]
    >>> model = BayesianLinearRegression().fit(X, y)
    >>> ax = plot_predictions(model, X, y, Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x0', 'y (units of y)')
    """
    X, y, ax = read_rows(X, y, ax)
    along = Feature.of(model, feature, X)
    x = along.read(X)
    if y is not None or np.ndim(X) > 1:
        data = data if y is None else (X, y)
        x = np.linspace(x.min(), x.max(), PLACES)
    predictive = predict_numbers(model, along.hold_others(X, at, x), "plot_predictions")
    ax = axes_of(ax)
    _draw_bands(ax, x, predictive, levels)
    ax.plot(x, predictive.mean(), color=COLOURS[0], linewidth=1.8, label="mean", zorder=4)
    _draw_known(ax, x, along, truth, data)
    return finish(ax, "Predictions of new observations", x=along.name, y=f"y ({unit})")


@draws("fit", "model.fit(X, y)")
def plot_sampled_lines(
    model: Estimator,
    x_range: tuple[float, float],
    size: int = 6,
    ax: Axes | None = None,
    *,
    feature: int | str = 0,
    at: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    data: tuple[Any, ArrayLike] | None = None,
    truth: ArrayLike | None = None,
    unit: str = "units of y",
) -> Axes:
    """Draw lines, or curves, whose coefficients are drawn from the posterior.

    Parameters
    ----------
    model : estimator
        With a joint posterior of its coefficients and, it may be, a ``basis``; or a scikit-learn
        pipeline that ends in it.
    x_range : (float, float)
        From where to where, in units of the feature.
    size : int, default 6
        Number of lines.
    ax : matplotlib Axes, optional
    feature, at
        As in :func:`plot_predictions`.
    rng : int or Generator, optional
        As ``numpy.random.default_rng`` takes it.
    data : (X, y), optional
        Rows to draw: (n, d) or (n,), and (n,).
    truth : (301,) array, optional
        The function that the rows came from, at 301 places evenly over `x_range`.
    unit : str
        Unit of the target, for the axis label.

    Raises
    ------
    ValueError
        If the posterior is still improper, or as in :func:`plot_predictions`.
    TypeError
        If `x_range` is no pair, or the model has no joint posterior, as an average of several.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [2.0]], [0.1, 0.9, 2.2])
    >>> ax = plot_sampled_lines(model, (0.0, 2.0), 4, Figure().subplots(), rng=0)
    >>> len(ax.lines)
    4
    """
    if np.shape(x_range) != (2,):
        raise TypeError(
            "x_range must be the least and the largest value of the feature: "
            "plot_sampled_lines(model, (0.0, 1.0)); plot_predictions(model, X, y) takes rows"
        )
    require_part(model, "posterior_")
    ax = axes_of(ax)
    x, along = np.linspace(*x_range, PLACES), Feature.of(model, feature, at)
    final, rows = split(model, along.hold_others(x, at, x))
    lines = final._joint().rvs(size, random_state=np.random.default_rng(rng))
    columns = final._columns(np.asarray(rows, dtype=np.float64))
    if lines.shape[1] > columns.shape[1]:
        columns = np.column_stack([np.ones(len(x)), columns])
    for number, curve in enumerate(lines @ columns.T):
        colour, style = look(number)
        ax.plot(x, curve, color=colour, linestyle=style, linewidth=1.2)
    _draw_known(ax, x, along, truth, data)
    return finish(ax, f"{size} draws from the posterior", x=along.name, y=f"y ({unit})")


def _draw_bands(ax: Axes, x: Array, predictive: Any, levels: Sequence[float]) -> None:
    """Draw the bands, the widest first; flat predictions get a note instead."""
    for level in sorted(levels, reverse=True):
        low, high = (np.where(np.isfinite(end), end, np.nan) for end in predictive.interval(level))
        narrow = level <= 0.5
        ax.fill_between(
            x,
            low,
            high,
            color=COLOURS[0],
            alpha=0.35 if narrow else 0.17,
            linewidth=0.0,
            label=f"{100 * level:g}% of new observations",
            zorder=1,
        )
        for end in (low, high):
            ax.plot(x, end, color=COLOURS[0], linewidth=0.6, alpha=0.6, zorder=2)
    if levels and np.isnan(low).any():
        where = "" if np.isnan(low).all() else " in places"
        ax.text(
            0.5, 0.03, f"bands infinitely wide{where}", transform=ax.transAxes, ha="center", size=9
        )


def _draw_known(
    ax: Axes, x: Array, along: Feature, truth: ArrayLike | None, data: tuple[Any, ArrayLike] | None
) -> None:
    """Draw the function that rows came from, and rows, where they are given."""
    if truth is not None:
        true = np.asarray(truth, dtype=np.float64)
        style = (0, (4, 3))
        ax.plot(x, true, color="black", linestyle=style, linewidth=1.2, label="truth", zorder=3)
    if data is not None:
        scatter(ax, (along.read(data[0]), np.asarray(data[1], dtype=np.float64)))
