"""Errors of several models along one stream."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from posterity.aliases import Array, Figure
from posterity.plots._frame import figure_of, look, remove_frame


def plot_errors(errors: Mapping[str, Array], change: tuple[int, int], title: str) -> Figure:
    """Draw absolute errors along a stream, one panel a model, and their running means below.

    Parameters
    ----------
    errors : mapping of names to (n,) arrays
        Absolute error of each row, in units of the target.
    change : (int, int)
        First row of the change, and first row after it: shaded.
    title : str

    Examples
    --------
    >>> len(plot_errors({"one": np.ones(20), "other": np.zeros(20)}, (5, 10), "Two").axes)
    3
    """
    figure = figure_of(8.5, 1.35 * len(errors) + 3.4, title)
    heights = [1.0] * len(errors) + [2.2]
    *panels, below = figure.subplots(len(errors) + 1, 1, sharex=True, height_ratios=heights)
    top = 1.05 * max(float(np.max(each)) for each in errors.values())
    for i, (panel, (name, each)) in enumerate(zip(panels, errors.items(), strict=True)):
        rows = np.arange(len(each))
        colour, style = look(i)
        so_far = np.cumsum(each) / (rows + 1.0)
        panel.vlines(rows, 0.0, each, color=colour, linewidth=1.0, alpha=0.75)
        panel.plot(rows, so_far, color="black", linewidth=1.2)
        panel.set_ylim(0.0, top)
        panel.set_title(f"{name}: {so_far[-1]:.3f}", loc="left", fontsize=10)
        below.plot(rows, so_far, color=colour, linestyle=style, linewidth=1.8, label=name)
    below.set_title("Mean absolute error so far, all together", loc="left", fontsize=10)
    below.set_ylim(bottom=0.0)
    below.legend(frameon=False, fontsize=9, loc="upper left")
    below.set_xlabel("rows seen")
    below.set_xlim(0, len(rows))
    for axes in (*panels, below):
        axes.axvspan(*change, color="0.9", zorder=0, linewidth=0.0)
        remove_frame(axes)
    panels[0].text(sum(change) / 2.0, 0.97 * top, "the change", ha="center", va="top", fontsize=9)
    figure.supylabel("absolute error", fontsize=10)
    return figure
