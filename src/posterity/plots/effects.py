"""Plots of the average effect of a feature on expected targets, and of differences of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Axes, Estimator
from posterity.plots._along import Feature, ask, is_frame, require_part
from posterity.plots._frame import COLOURS, axes_of, draws, find_coefficient, finish, legend_above
from posterity.plots.intervals import MOST_NAMED, draw_intervals

PLACES, MOST_ROWS = 41, 500


@draws("fit", "model.fit(X, y)")
def plot_partial_effect(
    model: Estimator,
    X: Any,
    feature: int | str,
    ax: Axes | None = None,
    *,
    x: ArrayLike | None = None,
    level: float = 0.95,
    size: int = 400,
    rng: int | np.random.Generator | None = 0,
    unit: str = "units of y",
) -> Axes:
    """Draw the expected target as a function of one feature, averaged over rows, with its interval.

    The partial dependence of Friedman (2001), of each of ``size`` draws of the coefficients: the
    band is what is not known of the curve, without the noise.

    Parameters
    ----------
    model : estimator
        With ``sample_mean``: linear, of counts or of two classes, through any basis; or a pipeline
        that ends in it.
    X : (n, m) array or data frame
        Rows to average over; of more than 500 so many are taken evenly.
    feature : int or str
        The feature that changes, by its place or name.
    ax : matplotlib Axes, optional
    x : (k,) array, optional
        Values of the feature, in order; by default 41 from its least to its largest in ``X``.
    level : float, default 0.95
        Probability that the band holds the curve at a place.
    size, rng
        Number of draws, and random numbers as :func:`numpy.random.default_rng` takes them.
    unit : str
        Unit of the target, for the axis label.

    Raises
    ------
    ValueError
        If there is no such feature, or several numbers are expected of a row.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.basis import Polynomial
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]], [0.1, 0.9, 4.2, 8.8]
    >>> model = BayesianLinearRegression(basis=Polynomial(degree=2)).fit(X, y)
    >>> ax = Figure().subplots()
    >>> plot_partial_effect(model, X, "x0", ax).get_xlabel()
    'x0'
    """
    rows = X if is_frame(X) else np.asarray(X, dtype=np.float64)
    rows = rows[:: -(-len(rows) // MOST_ROWS)]
    require_part(model, "sample_mean")
    along = Feature.of(model, feature, X)
    values = along.read(rows)
    places = np.linspace(values.min(), values.max(), PLACES) if x is None else np.asarray(x)
    seed = int(np.random.default_rng(rng).integers(2**63))  # the same draws at each place
    curves = np.empty((size, len(places)))
    for place, value in enumerate(places):
        changed = along.put(rows, np.full(len(rows), value))
        lines = ask(model, "sample_mean", changed, size, seed)
        if lines.ndim != 2:
            raise ValueError("several numbers are expected of a row: this figure is of one")
        curves[:, place] = lines.mean(axis=1)
    ends = np.quantile(curves, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    ax = draw_band(ax, places, curves.mean(axis=0), ends, level)
    # Where rows are: curves say little where there are none.
    marks = np.full(len(values), 0.01)
    ax.plot(values, marks, "|", color="0.4", markersize=7, transform=ax.get_xaxis_transform())
    return finish(ax, "Average over rows", x=along.name, y=f"expected y ({unit})")


def draw_band(
    ax: Axes | None,
    x: ArrayLike,
    mean: ArrayLike,
    ends: Any,
    level: float,
    *,
    place: int = 0,
    name: str = "mean",
) -> Axes:
    """Draw a curve (k,) with its interval, whose ends are (2, k); ``place`` among others."""
    ax = axes_of(ax)
    colour, label = COLOURS[place % len(COLOURS)], "" if place else f"{100 * level:g}% interval"
    ax.fill_between(x, *ends, color=colour, alpha=0.25, linewidth=0, label=label)
    ax.plot(x, mean, color=colour, linewidth=1.8, label=name)
    return ax


@draws("model_of", "GroupedRegression().fit(X, y, groups=groups)")
def plot_groups(
    model: Estimator,
    coefficient: int | str = 0,
    ax: Axes | None = None,
    *,
    groups: Sequence[Any] | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw one coefficient of all groups with intervals, from the least to the largest.

    Parameters
    ----------
    model : GroupedRegression
    coefficient : int or str, default 0
        Which, by its place or name; with an intercept 0 is "intercept".
    ax : matplotlib Axes, optional
    groups : sequence of keys, optional
        Which groups; all by default. Each takes some milliseconds.
    level : float, default 0.95
        Probability that an interval holds the coefficient.

    Returns
    -------
    matplotlib Axes
        A row for each group, and the mean over groups as a line.

    Raises
    ------
    ValueError
        If there is no such coefficient.
    KeyError
        If no row of a group has come.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import GroupedRegression
    >>> X, y = [[0.0], [1.0], [0.0], [1.0]], [1.0, 2.0, 2.0, 3.5]
    >>> model = GroupedRegression(noise_precision=1.0).fit(X, y, groups=["a", "a", "b", "b"])
    >>> ax = plot_groups(model, "x0", Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['a', 'b']
    """
    keys = model.groups_ if groups is None else groups
    keys = [key if np.ndim(key) == 0 else tuple(key) for key in keys]
    joints = [model.model_of(key).posterior_ for key in keys]
    names = joints[0].names
    place = find_coefficient(names, coefficient)
    each = [joint.marginal([place]) for joint in joints]
    mean = np.array([one.mean()[0] for one in each])
    ends = np.array([np.ravel(one.interval(level)) for one in each])
    order = np.argsort(mean, kind="stable")
    ax = draw_intervals(
        ax,
        [str(keys[k]) for k in order],
        mean[order],
        [(ends[order], f"{100 * level:g}% interval")],
    )
    shared = float(model.shared_mean_[place])
    ax.axvline(shared, color=COLOURS[1], linewidth=1.2, label="mean over groups", zorder=1)
    about = "" if len(order) <= MOST_NAMED else f" ({len(order):,} groups)"
    ax = finish(ax, f"{names[place]} by group{about}", x=str(names[place]), y="", grid="x")
    legend_above(ax, 2)
    return ax
