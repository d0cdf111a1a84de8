"""Several models side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterity.aliases import Axes, Mask
from posterity.plots._frame import COLOURS, axes_of, draws, finish

LABELS = {"evidence": "log evidence", "prequential": "prequential log score"}
SMALLEST_LABELLED_WEIGHT = 0.005


@draws("log_scores", "compare(models, X, y)")
def plot_evidence(comparison: Any, ax: Axes | None = None) -> Axes:
    """Draw the log evidence, or prequential score, of each model, and mark the best.

    Numbers are probabilities of the models, of half a percent and more.

    Parameters
    ----------
    comparison : Comparison
        From :func:`posterity.evaluation.compare`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Models from left to right, in the order they were compared; those whose score is not finite
        are at the edge.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import compare
    >>> models = {str(a): BayesianLinearRegression(prior_precision=a) for a in (0.1, 1.0, 10.0)}
    >>> result = compare(models, [[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.2, 2.8])
    >>> plot_evidence(result, Figure().subplots()).get_ylabel()
    'log evidence (nats)'
    """
    ax = axes_of(ax)
    place, score = np.arange(len(comparison.names)), comparison.log_scores
    finite = np.isfinite(score)
    ax.plot(place[finite], score[finite], color="0.75", linewidth=1.0, zorder=1)
    ax.plot(
        place[finite], score[finite], "o", color="white", markeredgecolor=COLOURS[0], markersize=7
    )
    for at in place[~finite]:
        # In units of the axes upwards: infinite scores have no place among the others.
        high = score[at] > 0.0
        ax.annotate(
            "\N{INFINITY}" if high else "\N{MINUS SIGN}\N{INFINITY}",
            (at, 0.97 if high else 0.03),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="top" if high else "bottom",
        )
    best = int(np.argmax(score))
    if finite[best]:
        ax.plot(place[best], score[best], "*", color=COLOURS[1], markersize=17, label="best")
    _write_weights(ax, comparison, finite)
    ax.set_xticks(place, comparison.names)
    if sum(len(name) + 2 for name in comparison.names) > 75:
        ax.tick_params(axis="x", labelrotation=30)
    ax.margins(y=0.15)
    kind = LABELS.get(comparison.score, comparison.score)
    return finish(ax, f"{kind.capitalize()} by model", x="model", y=f"{kind} (nats)")


def _write_weights(ax: Axes, comparison: Any, finite: Mask) -> None:
    for at in np.flatnonzero(finite & (comparison.weights >= SMALLEST_LABELLED_WEIGHT)):
        ax.annotate(
            f"{100 * comparison.weights[at]:.0f}%",
            (at, comparison.log_scores[at]),
            xytext=(0, 10),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
