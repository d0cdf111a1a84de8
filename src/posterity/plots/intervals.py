"""Plot of a table of estimates with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Axes
from posterity.plots._frame import COLOURS, axes_of, draws, finish, legend_above

# More rows are drawn without their names.
MOST_NAMED = 40


@draws("columns", "model.summary()")
def plot_intervals(
    table: Any,
    ax: Axes | None = None,
    *,
    estimate: str = "mean",
    label: str | None = None,
    reference: float | None = 0.0,
) -> Axes:
    """Draw a row for each estimate of a table, with its interval.

    Any table of the package that has ``low`` and ``high``: of coefficients, effects of groups,
    variances, average effects, relativities of a tariff, arms of an experiment.

    Parameters
    ----------
    table : data frame (n rows)
        With columns ``low`` and ``high``; drawn in its order, the first row on top.
    ax : matplotlib Axes, optional
    estimate : str, default "mean"
        The column of estimates.
    label : str, optional
        The column that names the rows; by default they have their labels in the table.
    reference : float, optional
        Where a thin line stands: 0, of ratios 1; None for none.

    Raises
    ------
    ValueError
        If a column is not there.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import Model
    >>> frame = {"y": [1.0, 1.1, 3.0, 3.1], "shop": ["a", "a", "b", "b"]}
    >>> effects = Model("y ~ 1 + (1 | shop)").fit(frame).group_effects("shop")
    >>> ax = plot_intervals(effects, Figure().subplots(), label="level")
    >>> [name.get_text() for name in ax.get_yticklabels()]
    ['a', 'b']
    """
    wanted = [estimate, "low", "high", *([label] if label else [])]
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        has = ", ".join(map(str, table.columns))
        raise ValueError(f"the table has no column {missing[0]!r}: it has {has}")
    # Frames of Polars have no index, and rows are numbers.
    names = getattr(table, "index", range(len(table))) if label is None else table[label]
    mean, *ends = (np.asarray(table[name], dtype=float) for name in (estimate, "low", "high"))
    bands = [(np.column_stack(ends), "interval")]
    ax = draw_intervals(ax, [str(name) for name in names], mean, bands, reference)
    ax = finish(ax, "Estimates with intervals", x=estimate, y="", grid="x")
    legend_above(ax, 2)
    return ax


def draw_intervals(
    ax: Axes | None,
    names: list[str],
    mean: ArrayLike,
    bands: list[tuple[Array, str]],
    reference: float | None = None,
) -> Axes:
    """Draw means (n,) and their intervals, each (n, 2) with its label, the narrowest last."""
    ax = axes_of(ax, height=max(2.2, 1.2 + 0.27 * min(len(names), MOST_NAMED)))
    row, named = np.arange(len(names)), len(names) <= MOST_NAMED
    if reference is not None:
        ax.axvline(reference, color="0.6", linewidth=0.8, zorder=1)
    for (ends, label), width in zip(bands, (1.4, 4.5), strict=False):
        known = np.isfinite(ends).all(axis=1)
        width *= 1.0 if named else 0.4
        low, high = ends[known].T
        ax.hlines(row[known], low, high, color=COLOURS[0], linewidth=width, label=label, zorder=2)
    size = 5 if named else 2
    ax.plot(mean, row, "o", color="white", markeredgecolor="black", markersize=size)
    ax.set_yticks(row if named else [], names if named else [])
    ax.set_ylim(len(row) - 0.5, -0.5)
    return ax
