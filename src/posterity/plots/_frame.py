"""The frame of all figures: colours, new axes, and the last touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito (2008): every eye distinguishes them; line styles do so in black and white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D")


def require_matplotlib() -> None:
    """Raise ``ModuleNotFoundError`` with the cure in it, unless Matplotlib is there."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "figures need Matplotlib: pip install 'posterity[plots]'", name="matplotlib"
        ) from error


def figure_of(width: float, height: float, title: str) -> Any:
    """A figure of so many inches with a title, not registered with pyplot."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize=14, fontweight="bold")
    return figure


def axes_of(ax: Axes | None, *, width: float = 8.5, height: float = 4.2) -> Any:
    """The axes given, or new ones of so many inches."""
    require_matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def finish(ax: Any, title: str, *, x: str, y: str, grid: str = "y", columns: int = 1) -> Any:
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


def remove_frame(ax: Any) -> None:
    """Leave out the lines that frame nothing."""
    ax.spines[["top", "right"]].set_visible(False)
