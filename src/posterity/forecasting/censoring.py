"""Values that are the least of what there was: sales of a day on which the shelf was empty.

The value is learned as what it is expected to be, given that it is no less (Tobin 1958): with m the
best that the values before it let expect, s the standard error of that, and z = (y - m) / s,

    E[x | x >= y] = m + s phi(z) / (1 - Phi(z)) .

Where y is far below m, that is m: such a value says nothing, as if it were missing. Where values
end above, it is no more than halfway from y to there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from posterity.forecasting.bounds import ROOT_2_PI
from posterity.forecasting.gaps import carry_forward
from posterity.forecasting.outliers import expect_values
from posterity.forecasting.panel import Panel


def check_censored(panel: Panel, name: Any) -> None:
    """Raise ``ValueError`` unless ``name`` is None or a column of zeros and ones."""
    if name is None:
        return
    if name not in panel.names:
        raise ValueError(
            f"censored is {name!r}, and the rows have the columns {list(panel.names)} beside y: "
            "name one of zeros and ones"
        )
    column = panel.columns[:, :, panel.names.index(name)]
    strange = np.isfinite(column) & (column != 0.0) & (column != 1.0)
    if strange.any():
        raise ValueError(
            f"censored is {name!r}, and that column has the value {column[strange][0]:g}: give 1 "
            "where the value is the least that there was, and 0 elsewhere"
        )


def raise_censored(
    panel: Panel, name: Any, periods: tuple[float, ...], top: float = np.inf
) -> Panel:
    """The same without the column, and what it marks raised to what is expected of it.

    Values end at ``top``, which may be infinite.
    """
    if name is None:
        return panel
    place = panel.names.index(name)
    marked = panel.columns[:, :, place] > 0.0
    known = np.isfinite(panel.values) & ~marked
    free = carry_forward(np.where(known, panel.values, np.nan))
    expected, sd = expect_values(free, known, periods)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = (panel.values - expected) / sd
        above = np.exp(-0.5 * z * z - log_ndtr(-z)) / ROOT_2_PI
    wanted = np.minimum(expected + sd * above, 0.5 * (panel.values + top))
    raised = np.fmax(panel.values, wanted)
    raised = np.where(np.isfinite(panel.values), raised, np.nan)
    return replace(
        panel,
        values=np.where(marked, raised, panel.values),
        columns=np.delete(panel.columns, place, axis=2),
        names=(*panel.names[:place], *panel.names[place + 1 :]),
    )
