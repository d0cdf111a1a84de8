"""Figures of curves and surfaces."""

from __future__ import annotations

from typing import Any

from posterity.aliases import Axes
from posterity.model.formula import Curve
from posterity.plots._frame import axes_of, finish
from posterity.plots.effects import draw_band


def draw_curve(curve: Curve, table: Any, ax: Axes | None, level: float) -> Axes:
    """Draw a curve's table: a band of each level, or the contours of a surface."""
    if len(curve.over) == 1:
        ax = axes_of(ax)
        named = table.groupby("level") if "level" in table else [("mean", table)]
        for place, (name, own) in enumerate(named):
            ends = (own["low"], own["high"])
            ax = draw_band(ax, own["x"], own["mean"], ends, level, place=place, name=str(name))
        title = "Curve" if curve.by is not None else "Curve, less its mean"
        return finish(ax, title, x=str(curve.over[0]), y=curve.name)
    if "level" in table:
        raise ValueError(
            f"{curve.name} has a surface for each level, and a figure has room for one: draw the "
            "rows of a level in the table that curve(...) gives"
        )
    x, z = (str(node) for node in curve.over)
    surface = table.pivot(index=z, columns=x, values="mean")
    ax = axes_of(ax)
    ax.clabel(ax.contour(surface.columns, surface.index, surface.to_numpy()))
    return finish(ax, f"{curve.name}, less its mean", x=x, y=z)
