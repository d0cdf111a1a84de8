"""Plot of decisions along time: their rewards, and their probabilities."""

from __future__ import annotations

import numpy as np

from posterity.aliases import Array, Figure
from posterity.plots._frame import COLOURS, STYLES, figure_of, remove_frame


def plot_decisions(rewards: Array, largest: Array, uniform: float, title: str) -> Figure:
    """Draw cumulative rewards beside those of a uniform policy, and propensities below.

    Parameters
    ----------
    rewards : (n,) array
    largest : (n,) array
        Propensity of the most probable arm of each decision.
    uniform : float
        What a uniform policy earns a decision.
    title : str

    Examples
    --------
    >>> len(plot_decisions(np.ones(20), np.full(20, 0.5), 0.1, "Twenty").axes)
    2
    """
    figure = figure_of(8.0, 5.6, title)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.0, 1.0])
    rows = np.arange(1, len(rewards) + 1)
    above.plot(rows, np.cumsum(rewards), color=COLOURS[0], label="the bandit")
    above.plot(rows, uniform * rows, color=COLOURS[1], linestyle=STYLES[1], label="uniform")
    above.set_title("Reward so far", loc="left", fontsize=10)
    above.legend(frameon=False, fontsize=9, loc="upper left")
    below.plot(rows, largest, ".", markersize=2.5, color=COLOURS[0], alpha=0.5)
    below.set_title("Propensity of the most probable arm", loc="left", fontsize=10)
    below.set_ylim(0.0, 1.02)
    below.set_xlabel("decisions")
    for axes in (above, below):
        remove_frame(axes)
    return figure
