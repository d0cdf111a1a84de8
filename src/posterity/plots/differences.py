"""Plot of the distance of models from the best, along a stream."""

from __future__ import annotations

from typing import Any

from posterity.aliases import Axes
from posterity.plots._frame import axes_of, draws, finish_along_rows, look

UNITS = {"log_score": "nats", "squared": "units of y squared"}


@draws("difference_along", "compare_predictions(models, X, y)")
def plot_differences(comparison: Any, ax: Axes | None = None, *, against: str = "") -> Axes:
    """Draw mean losses of models less that of the best, over all rows so far.

    Above zero is worse than the best. Bands are 95% intervals of the difference, by the standard
    error of the whole stream.

    Parameters
    ----------
    comparison : PairedComparison
        From :func:`posterity.evaluation.compare_predictions`.
    ax : matplotlib Axes, optional
    against : str, optional
        Another model than the best to compare with.

    Raises
    ------
    ValueError
        If there is no such model.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import compare_predictions
    >>> models = {str(a): BayesianLinearRegression(prior_precision=a) for a in (0.1, 10.0)}
    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> result = compare_predictions(models, x[:, None], 2 * x + np.sin(9 * x))
    >>> plot_differences(result, Figure().subplots(), against="10.0").get_xlabel()
    'rows seen'
    """
    against = against or comparison.best
    ax = axes_of(ax)
    ax.axhline(0.0, color="black", linewidth=1.2, label=against)
    others = [name for name in comparison.names if name != against]
    low, high = 0.0, 0.0
    for i, name in enumerate(others):
        mean, error = comparison.difference_along(name, against)
        colour, style = look(i)
        band = mean - 1.96 * error, mean + 1.96 * error
        ax.fill_between(comparison.row_end, *band, color=colour, alpha=0.15, linewidth=0.0)
        ax.plot(comparison.row_end, mean, color=colour, linestyle=style, linewidth=1.8, label=name)
        # The first rows say little and swing much: the later half sets the scale.
        half = len(mean) // 2
        low = min(low, float(band[0][half:].min()))
        high = max(high, float(band[1][half:].max()))
    if high > low:
        ax.set_ylim(low - 0.5 * (high - low), high + 0.5 * (high - low))
    title, unit = f"Mean loss less that of {against}", UNITS.get(comparison.loss, "units of y")
    y = f"{comparison.loss} ({unit})"
    return finish_along_rows(ax, comparison.row_end[-1], title, y, columns=1)
