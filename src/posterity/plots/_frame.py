"""The frame of all figures: colours, new axes, and the last touches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from posterity.aliases import AnyArray, Axes, Figure
from posterity.distributions.guesses import tell_call

P = ParamSpec("P")
R = TypeVar("R")

# Okabe and Ito (2008): every eye distinguishes them; line styles do so in black and white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D")


def look(number: int) -> tuple[str, str]:
    """Colour and line style of the curve of that number."""
    return COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]


def draws(part: str, call: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a figure refuse what lacks that part, and other wrong calls, by the right one."""

    def decorate(figure: Callable[P, R]) -> Callable[P, R]:
        told = tell_call(figure)

        @wraps(figure)
        def checked(*given: P.args, **settings: P.kwargs) -> R:
            require_matplotlib()
            if given and not hasattr(given[0], part):
                kind, name = type(given[0]).__name__, figure.__name__
                raise TypeError(f"{name} draws what {call} returns, not a {kind}: {name}({call})")
            return told(*given, **settings)

        return checked

    return decorate


def require_matplotlib() -> None:
    """Raise ``ModuleNotFoundError`` with the cure in it, unless Matplotlib is there."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "figures need Matplotlib: pip install 'posterity[plots]'", name="matplotlib"
        ) from error


def figure_of(width: float, height: float, title: str) -> Figure:
    """A figure of so many inches with a title, not registered with pyplot."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize=14, fontweight="bold")
    return figure


def axes_of(ax: Axes | None, *, width: float = 8.5, height: float = 4.2) -> Axes:
    """The axes given, or new ones of so many inches."""
    require_matplotlib()
    import matplotlib.axes
    import matplotlib.pyplot as plt

    if isinstance(ax, matplotlib.axes.Axes) and ax.name == "rectilinear":
        return ax
    if ax is not None:
        raise TypeError(f"ax is a {type(ax).__name__}: give one of the axes of figure.subplots()")
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def finish(ax: Axes, title: str, *, x: str, y: str, grid: Any = "y", columns: int = 1) -> Axes:
    """Title, labels, a quiet grid along ``grid``, and a legend where something has a label."""
    ax.set_title(title, loc="left", fontsize=11)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(axis=grid, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    remove_frame(ax)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, loc="best", fontsize=9, ncols=columns)
    return ax


def finish_along_rows(ax: Axes, n_rows: int, title: str, y: str, columns: int = 2) -> Axes:
    """The same along the rows of a stream."""
    ax.set_xlim(0, n_rows)
    ax.xaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")
    return finish(ax, title, x="rows seen", y=y, columns=columns)


def write_percent(axis: Any) -> None:
    """Write shares as percentages."""
    axis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")


def compute_chance(level: float, n_rows: AnyArray) -> tuple[Any, Any]:
    """Ends of 95% of the shares of so many rows that are inside exact intervals."""
    spread = 1.96 * np.sqrt(level * (1.0 - level) / np.maximum(n_rows, 1))
    return np.maximum(level - spread, 0.0), np.minimum(level + spread, 1.0)


def legend_above(ax: Axes, columns: int) -> None:
    """Put the legend above, where no interval can be."""
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
    ax.legend(frameon=False, fontsize=9, ncols=columns, **place)


def find_coefficient(names: Sequence[str], coefficient: int | str, say: str = "give one of") -> int:
    """Number of a coefficient that is given by number or name; raises ``ValueError``."""
    if isinstance(coefficient, str):
        if coefficient not in names:
            raise ValueError(f"there is no coefficient {coefficient!r}: {say} {', '.join(names)}")
        return names.index(coefficient)
    if not 0 <= coefficient < len(names):
        raise ValueError(f"there is no coefficient {coefficient}: give 0 to {len(names) - 1}")
    return int(coefficient)


def remove_frame(ax: Axes) -> None:
    """Leave out the lines that frame nothing."""
    ax.spines[["top", "right"]].set_visible(False)
