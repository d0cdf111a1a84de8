"""Along time and against assumptions: coefficients, change points, residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from posterity.aliases import Array, Axes, Estimator, Indices
from posterity.plots._along import predict_rows, read_rows
from posterity.plots._frame import (
    COLOURS,
    STYLES,
    axes_of,
    draws,
    find_coefficient,
    finish,
    finish_along_rows,
    look,
)

MOST_POINTS = 5000
MOST_EXTREMES = 200
AXIS_LABELS = {
    "mean": "predicted mean (units of y)",
    "time": "row",
    "quantiles": "standard normal quantile",
}


@draws("row_end", "follow_coefficients(model, X, y)")
def plot_coefficients_along_time(
    path: Any,
    ax: Axes | None = None,
    *,
    coefficients: Sequence[int | str] | None = None,
    truth: ArrayLike | None = None,
) -> Axes:
    """Draw posterior means of coefficients along a stream, each with its interval.

    Parameters
    ----------
    path : CoefficientPath
        From :func:`posterity.evaluation.follow_coefficients`.
    ax : matplotlib Axes, optional
    coefficients : sequence of int or str, optional
        Which, by number or name. Default: all but the intercept.
    truth : array, optional
        True values of what is drawn, (m,); or (s, m), along time.

    Raises
    ------
    ValueError
        If there is no such coefficient.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import follow_coefficients
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> path = follow_coefficients(BayesianLinearRegression(), X, X @ [1.0, -2.0])
    >>> plot_coefficients_along_time(path, Figure().subplots()).get_xlabel()
    'rows seen'
    """
    names = list(path.names)
    if coefficients is None:
        coefficients = [k for k, name in enumerate(names) if name != "intercept"]
    which = [find_coefficient(names, one, "there are") for one in coefficients]
    ax = axes_of(ax)
    for i, k in enumerate(which):
        colour, style = look(i)
        known = np.isfinite(path.low[:, k]) & np.isfinite(path.high[:, k])
        low, high = (np.where(known, end[:, k], np.nan) for end in (path.low, path.high))
        ax.fill_between(path.row_end, low, high, color=colour, alpha=0.18, linewidth=0.0)
        mean = np.where(known, path.mean[:, k], np.nan)
        ax.plot(path.row_end, mean, color=colour, linestyle=style, linewidth=1.8, label=names[k])
    if truth is not None:
        true_values = np.broadcast_to(
            np.asarray(truth, dtype=np.float64), (len(path.row_end), len(which))
        )
        for i, line in enumerate(true_values.T):
            label = None if i else "truth"
            ax.plot(path.row_end, line, color="black", linewidth=0.9, linestyle=":", label=label)
    _fit_to_later_half(ax, path, which)
    title = f"Coefficients along time, with {100 * path.level:g}% intervals"
    return finish_along_rows(ax, path.row_end[-1], title, "coefficient")


def plot_changepoints(probability: Any, ax: Axes | None = None, *, first_row: int = 0) -> Axes:
    """Draw the probability of a change right before each row.

    Parameters
    ----------
    probability : (n,) array, or a model
        As ``change_probability_`` of a model that forgets by
        :class:`posterity.forgetting.Changepoint`, or that model.
    ax : matplotlib Axes, optional
    first_row : int, default 0
        Number of the first of these rows in its stream.

    Raises
    ------
    ValueError
        If these are not probabilities.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = plot_changepoints([0.0, 0.1, 0.8, 0.1], Figure().subplots())
    >>> ax.get_ylabel()
    'probability of a change'
    """
    p = np.asarray(getattr(probability, "change_probability_", probability), dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0.0) & (p <= 1.0 + 1e-9)):
        raise ValueError("probability must be of shape (n,), all values between 0 and 1")
    ax = axes_of(ax, height=3.0)
    rows = first_row + np.arange(len(p))
    ax.vlines(rows, 0.0, p, color=COLOURS[0], linewidth=1.4)
    ax.set_ylim(0.0, 1.03)
    ax.set_xlim(first_row, first_row + max(len(p), 1))
    return finish(ax, "Where the world changed", x="row", y="probability of a change")


def plot_residuals(
    model: Estimator, X: Any, y: Any = None, ax: Axes | None = None, *, against: str = "mean"
) -> Axes:
    """Draw residuals, standardised by the whole predictive distribution: normal if it is right.

    A residual is the standard normal quantile of F(y), F the predictive distribution function
    (Dunn and Smyth 1996, quantile residuals): 1.96 is the upper end of the 95% interval.

    Parameters
    ----------
    model : estimator, pipeline or distribution
        What predicts the rows; or its predictions, as ``predict_then_learn`` returns them, which
        their targets follow: ``plot_residuals(predictive, y, ax)``.
    X : (n, m) array or data frame
        Rows.
    y : (n,) array
        Their targets.
    ax : matplotlib Axes, optional
    against : {"mean", "time", "quantiles"}
        The predicted mean (is the form of the function right?), the row (do residuals go
        together in time?), or normal quantiles (is the form of the noise right?).

    Returns
    -------
    matplotlib Axes
        Of more than 5,000 rows every so many-th is drawn, and the 200 most extreme.

    Raises
    ------
    ValueError
        If `against` is none of these.
    TypeError
        If there are no targets, or no numbers are predicted.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> model = BayesianLinearRegression()
    >>> predictive = model.predict_then_learn(x[:, None], 2 * x + np.sin(9 * x))
    >>> plot_residuals(predictive, 2 * x + np.sin(9 * x), Figure().subplots()).get_ylabel()
    'standardised residual'
    """
    if against not in AXIS_LABELS:
        listed = ", ".join(map(repr, AXIS_LABELS))
        raise ValueError(f"against is {against!r}: it must be one of {listed}")
    X, y, ax = read_rows(X, y, ax)
    predictive, target = predict_rows(model, X, y, "plot_residuals")
    ax = axes_of(ax)
    # Beyond what a double can tell from 0 and 1 a residual would be infinite.
    residual = ndtri(np.clip(predictive.cdf(target), 1e-300, 1.0 - 1e-16))
    known = np.flatnonzero(~predictive.is_flat())
    residual, mean = residual[known], predictive.mean()[known]
    shown = _thin_rows(residual)
    if against == "quantiles":
        order = np.argsort(residual)
        rank = np.empty(len(residual))
        rank[order] = np.arange(1, len(residual) + 1)
        x = ndtri((rank - 0.5) / max(len(residual), 1))
        ends = [-3.5, 3.5]
        ax.plot(ends, ends, color="black", linewidth=1.0, linestyle=STYLES[1], label="normal")
    else:
        x = mean if against == "mean" else known
        ax.axhline(0.0, color="black", linewidth=1.0)
        for end in (-1.96, 1.96):
            ax.axhline(end, color="0.35", linewidth=0.9, linestyle=STYLES[1])
    ax.plot(x[shown], residual[shown], ".", color=COLOURS[0], markersize=4, alpha=0.6)
    if against == "mean":
        _draw_running_mean(ax, x, residual)
    return finish(
        ax, "Standardised residuals", x=AXIS_LABELS[against], y="standardised residual", grid="both"
    )


def _thin_rows(residual: Array) -> Indices:
    """Rows to draw: all, or every so many-th and the most extreme."""
    n = len(residual)
    if n <= MOST_POINTS:
        return np.arange(n)
    extreme = np.argpartition(-np.abs(residual), MOST_EXTREMES)[:MOST_EXTREMES]
    return np.union1d(np.arange(0, n, -(-n // MOST_POINTS)), extreme)


def _draw_running_mean(ax: Axes, x: Array, residual: Array) -> None:
    """Draw means over twenty groups of equal size: a bend shows that the function is not linear."""
    if len(x) < 40:
        return
    groups = np.array_split(np.argsort(x), 20)
    middle = [x[group].mean() for group in groups]
    mean = [residual[group].mean() for group in groups]
    ax.plot(middle, mean, color=COLOURS[1], linewidth=2.0, label="mean of neighbours")


def _fit_to_later_half(ax: Axes, path: Any, which: list[int]) -> None:
    """The first rows know little: their wide intervals must not set the scale."""
    half = len(path.row_end) // 2
    ends = np.concatenate([path.low[half:, which].ravel(), path.high[half:, which].ravel()])
    ends = ends[np.isfinite(ends)]
    if len(ends) and ends.max() > ends.min():
        room = 0.35 * (ends.max() - ends.min())
        ax.set_ylim(ends.min() - room, ends.max() + room)
