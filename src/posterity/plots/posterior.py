"""Plots of the posterior of the coefficients: joint densities, and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Axes, Estimator, Mask
from posterity.distributions import MultivariateMixture, MultivariateNormal, MultivariateT
from posterity.distributions.row_distribution import RowDistribution
from posterity.plots._along import require_part, split_steps
from posterity.plots._frame import (
    COLOURS,
    STYLES,
    axes_of,
    draws,
    find_coefficient,
    finish,
    legend_above,
)
from posterity.plots._steps import find_units, name_columns
from posterity.plots.intervals import MOST_NAMED, draw_intervals

Joint = MultivariateNormal | MultivariateT | MultivariateMixture

GRID = 161
DRAWS = 20_000  # contours hold their probability within about 0.3%
DRAWN_LEVEL, CONTOUR_LEVEL = (
    0.995,
    0.9995,
)  # marginal intervals that are drawn, and that hold contours


@draws("fit", "model.fit(X, y)")
def plot_posterior_density(
    model: Estimator,
    ax: Axes | None = None,
    *,
    coefficients: tuple[int | str, int | str] = (0, 1),
    truth: tuple[float, float] | None = None,
    levels: Sequence[float] = (0.5, 0.95),
    target: int | str | None = None,
) -> Axes:
    """Draw the posterior density of two coefficients, with contours of highest density.

    Axes whose limits were set before keep them, so that several can be compared.

    Parameters
    ----------
    model : estimator or pipeline
        With a joint posterior of its coefficients, which must be proper; of a pipeline in the
        units of :func:`plot_coefficients`.
    ax : matplotlib Axes, optional
    coefficients : (int or str, int or str), default (0, 1)
        Which two, by their number or name in ``model.posterior_``: the intercept, if there is one,
        is number 0.
    truth : (float, float), optional
        Their true values, marked by a cross.
    levels : sequence of float, default (0.5, 0.95)
        Probability inside each contour.
    target : int or str, optional
        Which of several targets, quantiles or classes, by its place or name.

    Raises
    ------
    ValueError
        If there is no such coefficient, the posterior is still improper, or there are several
        targets, and none is named.

    Notes
    -----
    A contour is the density that so many of 20,000 draws exceed (Hyndman 1996, Computing and
    graphing highest density regions, section 3.2), for normal, Student-t and mixtures alike.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.2, 2.8])
    >>> ax = plot_posterior_density(model, Figure().subplots(), truth=(0.0, 1.0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('intercept', 'x0')
    """
    require_part(model, "posterior_")
    model, steps = split_steps(model)
    ax = axes_of(ax, width=5.2, height=4.8)
    joint = _choose_target(model.posterior_, target)
    names = [*(joint.names or (f"coefficient {number}" for number in range(len(joint.mean))))]
    units = np.ones(len(names))
    if steps is not None:
        first = int(model.fit_intercept)
        names[first:], units[first:] = name_columns(steps), find_units(steps)
    first, second = (find_coefficient(names, one) for one in coefficients)
    if first == second:
        raise ValueError(f"coefficients are {coefficients!r}: give two different ones")
    pair = _pair(joint, [first, second], units)
    if ax.get_autoscale_on():
        (left, right), (low, high) = pair.interval(DRAWN_LEVEL)
    else:
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    across, up = np.linspace(left, right, GRID), np.linspace(low, high, GRID)
    # Relative to the mode: densities of a sharp posterior are beyond any number.
    top, density = _compute_relative_density(pair, across, up)
    ax.imshow(
        density,
        extent=(left, right, low, high),
        origin="lower",
        aspect="auto",
        cmap="Blues",
        vmin=0.0,
        vmax=1.0,
        interpolation="bilinear",
    )
    _draw_contours(ax, pair, top, levels)
    for level, style in zip(np.sort(levels), STYLES * len(levels), strict=False):
        ax.plot([], [], color="black", linestyle=style, linewidth=1.0, label=f"{100 * level:g}%")
    if truth is not None:
        ax.plot(*truth, "+", color=COLOURS[1], markersize=13, markeredgewidth=2.2, label="truth")
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    finish(ax, "Posterior density", x=names[first], y=names[second], grid="both")
    ax.grid(False)
    return ax


@draws("fit", "model.fit(X, y)")
def plot_coefficients(
    model: Estimator,
    ax: Axes | None = None,
    *,
    levels: tuple[float, float] = (0.5, 0.95),
    intercept: bool = False,
    truth: ArrayLike | None = None,
    per: Literal["unit", "sd"] = "unit",
    most: int | None = None,
    target: int | str | None = None,
    base: Any = None,
) -> Axes:
    """Draw every coefficient with its central intervals.

    Parameters
    ----------
    model : estimator or pipeline
        With a joint posterior of its coefficients; of a GroupedRegression it is that of the mean
        over groups. Coefficients of a pipeline are in the units of the columns that it was given
        where each comes from one, as behind a StandardScaler; the intercept is the last step's.
    ax : matplotlib Axes, optional
    levels : (float, float), default (0.5, 0.95)
        Probability that the thick and the thin line hold the coefficient.
    intercept : bool, default False
        Whether the intercept is drawn too, if there is one.
    truth : (m,) array, optional
        True values of what is drawn.
    per : "unit" or "sd", default "unit"
        What the feature changes by: 1, or its standard deviation in the rows learned, so that
        features of different units compare.
    most : int, optional
        How many are drawn: those whose effect per standard deviation is largest, largest first. All
        by default, in their order.
    target : int or str, optional
        Which of several targets, or quantiles, by its place or name.
    base : "mean", "first" or dict of column to level, optional
        What levels of categories are compared with, as in ``model.summary``.

    Returns
    -------
    matplotlib Axes
        A row for each coefficient, the first on top; one of which nothing is known yet is marked
        as open.

    Raises
    ------
    ValueError
        If there are several targets, and none is named; or the standard deviations of features are
        not known: without an intercept, or with more than two classes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> model = BayesianLinearRegression().fit([[0, 1], [1, 0], [2, 2], [3, 1]], [0, 1, 2, 3])
    >>> ax = plot_coefficients(model, Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x0', 'x1']
    """
    model, steps = split_steps(model)
    names, each, places = _marginals_of(model, target, base)
    mean, first = each.mean(), int(model.fit_intercept)
    shown = np.arange(0 if intercept else first, len(mean))
    unit = np.ones(len(mean))
    if steps is not None:
        names[first:], unit[first:] = name_columns(steps), find_units(steps)
    if per != "unit" or most is not None:
        scales = _effect_scales(model, places, len(mean))
        unit = scales if per == "sd" else unit
        if most is not None:
            sizes = np.nan_to_num(np.abs(mean * scales)[shown], nan=-1.0)
            shown = shown[np.argsort(-sizes, kind="stable")[:most]]
    mean = (mean * unit)[shown]
    inner, outer = ((np.transpose(each.interval(k)) * unit[:, None])[shown] for k in sorted(levels))
    known: Mask = np.asarray(np.isfinite(outer).all(axis=1))
    labels = [str(n) if k else f"{n} (open)" for n, k in zip(names[shown], known, strict=True)]
    said = [f"{100 * level:g}% interval" for level in sorted(levels)]
    bands = [(outer, said[1]), (inner, said[0])]
    ax = draw_intervals(ax, labels, np.where(known, mean, np.nan), bands, 0.0)
    if truth is not None:
        row = np.arange(len(mean))
        ax.plot(truth, row, "x", color=COLOURS[1], markersize=7, markeredgewidth=2, label="truth")
    by = "unit" if per == "unit" else "standard deviation"
    crowded = len(mean) > MOST_NAMED
    title = f"{len(mean)} coefficients (most=40 names the largest)" if crowded else "Coefficients"
    ax = finish(ax, title, x=f"change of y per {by} of the feature", y="", grid="x")
    legend_above(ax, 3)
    return ax


def _marginals_of(
    model: Estimator, target: int | str | None, base: Any
) -> tuple[Any, RowDistribution, Any]:
    """Names and distributions of what is shown, of one target; what they stand for."""
    if hasattr(model, "shared_posterior_"):
        joint = model.shared_posterior_
        return np.array(joint.names, dtype=object), joint.marginal(), None
    require_part(model, "posterior_")
    contrasts = model._contrasts(base)
    joint, each = model._compare(contrasts)
    place = getattr(joint, "each", (joint,)).index(_choose_target(joint, target))
    return np.array(joint.names, dtype=object), each[place], contrasts.places


def _choose_target(joint: Any, target: int | str | None) -> Any:
    """Joint posterior of one target, where there are several."""
    if not hasattr(joint, "each"):
        return joint
    if target is None:
        raise ValueError(
            f"there are several {joint.label}s, {', '.join(joint.labels)}: say which, as in "
            f"target={joint.labels[0]!r}"
        )
    return joint.marginal(target)


def _effect_scales(model: Estimator, places: Any, count: int) -> Array:
    """(p,) standard deviations of the features of what is shown; 1 for the intercept."""
    scales = np.asarray(model.feature_scales_)
    if np.isnan(scales).any():
        raise ValueError(
            "the standard deviations of features are not known without an intercept, or with more "
            "than two classes: leave out per='sd' and most="
        )
    each = np.concatenate([np.ones(int(model.fit_intercept)), scales, [np.nan]])
    return np.resize(each[:-1] if places is None else each[places], count)


def _compute_relative_density(pair: Joint, across: Array, up: Array) -> tuple[float, Array]:
    """Log density at the highest of its means and of the grid's points; density relative to it."""
    places = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    parts = pair.components if isinstance(pair, MultivariateMixture) else (pair,)
    log_density = pair.logpdf(places)
    middles = pair.logpdf(np.array([part.mean for part in parts]))
    top = float(max(log_density.max(), middles.max()))
    return top, np.exp(log_density - top).reshape(len(up), len(across))


def _draw_contours(ax: Axes, pair: Joint, top: float, levels: Sequence[float]) -> None:
    """Contours on a grid of their own: one over the axes may be too coarse for them."""
    (left, right), (low, high) = pair.interval(CONTOUR_LEVEL)
    across, up = np.linspace(left, right, GRID), np.linspace(low, high, GRID)
    density = _compute_relative_density(pair, across, up)[1]
    draws = pair.rvs(DRAWS, random_state=0)
    highest_first = np.sort(levels)[::-1]
    thresholds = np.quantile(pair.logpdf(draws), 1.0 - highest_first) - top
    styles = [STYLES[k % len(STYLES)] for k in range(len(thresholds))][::-1]
    ax.contour(
        across,
        up,
        density,
        levels=np.exp(thresholds),
        colors="black",
        linewidths=1.0,
        linestyles=styles,
    )


def _pair(joint: Joint, which: list[int], units: Array) -> Joint:
    """Joint distribution of two of the coefficients, each times its unit.

    Their covariance is C = A A', A two rows of R^-1; with C = U U', U upper triangular, their R is
    U^-1. Both are scaled to a unit diagonal, so that coefficients of any size keep their digits.
    """
    if isinstance(joint, MultivariateMixture):
        parts = [_pair(component, which, units) for component in joint.components]
        return MultivariateMixture(parts, joint.weights)  # type: ignore[arg-type]
    names = None if joint.names is None else [joint.names[one] for one in which]
    root = joint.precision_root
    # A level that no row had, as "(other)", is tied to no other coefficient.
    met = root.any(axis=0) | np.isin(np.arange(len(root)), which)
    if not np.diag(root)[met].all():
        joint.rvs(random_state=0)  # names the first coefficient that is open
    across = (np.linalg.inv(root[np.ix_(met, met)])[np.cumsum(met)[which] - 1].T * units[which]).T
    size = np.linalg.norm(across, axis=1)
    turned = ((across @ across.T) / np.outer(size, size))[::-1, ::-1]
    pair_root = np.linalg.inv(np.linalg.cholesky(turned)[::-1, ::-1]) / size
    mean = joint.mean[which] * units[which]
    if isinstance(joint, MultivariateT):
        return MultivariateT(joint.df, mean, pair_root, joint.scale, names=names)
    return MultivariateNormal(mean, pair_root, joint.scale, names=names)
