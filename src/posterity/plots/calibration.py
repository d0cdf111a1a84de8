"""Are whole predictive distributions right? Histogram of F(y), coverage by level and by slice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from posterity.aliases import Axes, Estimator
from posterity.distributions.pit import PIT, count_bins
from posterity.plots._along import predict_rows, read_rows
from posterity.plots._frame import (
    COLOURS,
    MARKERS,
    STYLES,
    axes_of,
    compute_chance,
    draws,
    finish,
    look,
    write_percent,
)


def plot_pit(
    model: Estimator, X: Any = None, y: Any = None, ax: Axes | None = None, *, bins: int = 20
) -> Axes:
    """Draw the PIT histogram, which is flat if predictive distributions are calibrated.

    A U says that intervals are too narrow, a hill that they are too wide, a slope that predictions
    are biased. Between the dotted lines 95% of the bars would lie by chance if the
    distributions were right and the rows independent.

    Parameters
    ----------
    model : estimator, pipeline or ValidationResult
        What predicts the rows; or a result of
        :func:`posterity.evaluation.progressive_validation`, which needs no rows: it has scored
        each before it was learned. Axes may then come next.
    X : (n, m) array or data frame, optional
        Rows that the model has not learned.
    y : (n,) array, optional
        Their targets.
    ax : matplotlib Axes, optional
    bins : int, default 20
        A divisor of 100.

    Raises
    ------
    TypeError
        If there are neither rows nor a result.
    ValueError
        If predictions have no continuous distribution, or `bins` does not divide 100.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> model = BayesianLinearRegression()
    >>> result = progressive_validation(model, x[:, None], 2 * x + np.sin(9 * x))
    >>> plot_pit(result, Figure().subplots(), bins=10).get_ylabel()
    'density'
    """
    X, y, ax = read_rows(X, y, ax)
    pit = _find_pit(model, X, y, "plot_pit")
    density = pit.histogram(bins)
    ax = axes_of(ax)
    places = (np.arange(bins) + 0.5) / bins
    ax.bar(places, density, width=1.0 / bins, color=COLOURS[5], edgecolor="black", linewidth=0.6)
    ax.axhline(1.0, color="black", linewidth=1.2, linestyle=STYLES[1], label="calibrated")
    if pit.n_rows:
        # A bar counts a binomial share 1/bins of the rows.
        spread = 1.96 * np.sqrt((bins - 1.0) / pit.n_rows)
        for end, label in ((1.0 + spread, "chance"), (max(1.0 - spread, 0.0), None)):
            ax.axhline(end, color="0.25", linewidth=1.0, linestyle=":", label=label)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(bottom=0.0)
    return finish(
        ax,
        "Where targets fell in their predictions",
        x="predictive probability below the target (PIT)",
        y="density",
        columns=2,
    )


def plot_calibration(
    model: Estimator, X: Any = None, y: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw the coverage of central intervals by their level; the diagonal is calibrated.

    Below it, intervals are too narrow; above it, too wide.

    Parameters
    ----------
    model : estimator, pipeline or ValidationResult, or a mapping of names to them
        As in :func:`plot_pit`; or the ``results`` of
        :func:`posterity.evaluation.compare_predictions`.
    X, y, ax
        As in :func:`plot_pit`.

    Raises
    ------
    TypeError, ValueError
        As :func:`plot_pit`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> model = BayesianLinearRegression()
    >>> result = progressive_validation(model, x[:, None], 2 * x + np.sin(9 * x))
    >>> plot_calibration({"line": result}, Figure().subplots()).get_xlabel()
    'level of the interval'
    """
    X, y, ax = read_rows(X, y, ax)
    named: Mapping[str, Any] = model if isinstance(model, Mapping) else {"": model}
    pits = {name: _find_pit(one, X, y, "plot_calibration") for name, one in named.items()}
    ax = axes_of(ax, width=5.4, height=5.0)
    ax.plot([0, 1], [0, 1], color="0.35", linewidth=1.0, linestyle=(0, (1, 2)), label="calibrated")
    for i, (name, pit) in enumerate(pits.items()):
        (colour, style), levels = look(i), pit.levels
        label = f"{name}: off by {100 * pit.error:.1f} points on average"
        ax.plot(
            levels,
            pit.coverage(levels),
            color=colour,
            linestyle=style,
            linewidth=1.8,
            label=label.removeprefix(": "),
        )
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    for axis in (ax.xaxis, ax.yaxis):
        write_percent(axis)
    title = "Calibration: coverage by level"
    return finish(ax, title, x="level of the interval", y="targets inside it", grid="both")


@draws("slices", "progressive_validation(model, X, y, slices=...)")
def plot_coverage_by_slice(result: Any, feature: Any, ax: Axes | None = None) -> Axes:
    """Draw coverage in slices of a feature, to see where it is too low or too high.

    Parameters
    ----------
    result : ValidationResult
        From :func:`posterity.evaluation.progressive_validation` with ``slices=``.
    feature : str or int
        One of the features it was sliced by.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Vertical lines are where 95% of such shares lie by chance if the intervals are exact and the
        rows independent.

    Raises
    ------
    ValueError
        If there are no slices of that feature.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> model = BayesianLinearRegression()
    >>> result = progressive_validation(model, x[:, None], 2 * x + np.sin(9 * x), slices={0: 4})
    >>> len(plot_coverage_by_slice(result, 0, Figure().subplots()).get_xticks())
    4
    """
    if str(feature) not in result.slices:
        listed = ", ".join(result.slices) or "none"
        raise ValueError(
            f"there are no slices of {str(feature)!r}, only of: {listed}; give slices= to "
            "progressive_validation"
        )
    chosen = result.slices[str(feature)]
    ax = axes_of(ax)
    place, scored = np.arange(len(chosen)), chosen.n_rows - chosen.n_unscored
    for i, (level, share) in enumerate(chosen.coverage.items()):
        colour, _ = look(i)
        ax.axhline(level, color="0.35", linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        ax.vlines(place, *compute_chance(level, scored), color=colour, alpha=0.3, linewidth=7.0)
        label = f"{100 * level:g}% interval"
        ax.plot(place, share, MARKERS[i % len(MARKERS)], color=colour, label=label)
    ax.set_xticks(place, chosen.names)
    ax.set_ylim(0.0, 1.03)
    write_percent(ax.yaxis)
    title = f"Coverage by slice of {chosen.feature}"
    return finish(ax, title, x=chosen.feature, y="share of targets inside the interval")


def _find_pit(model: Estimator, X: Any, y: Any, figure: str) -> PIT:
    """That of a result; or of the predictions of rows."""
    if not hasattr(model, "pit"):
        predictive, targets = predict_rows(model, X, y, figure)
        if not hasattr(predictive, "logpmf"):
            return PIT(count_bins(predictive.cdf(targets)[~predictive.is_flat()]))
    elif model.pit is not None:
        return model.pit
    raise ValueError(
        "there is no PIT: the predictive distributions have no cdf, or are those of counts"
    )
