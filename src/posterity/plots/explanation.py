"""Plot of what each feature of one row adds to its prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterity.aliases import Axes, DataFrame, Estimator
from posterity.plots._along import ask, is_frame, require_part, split_steps
from posterity.plots._frame import COLOURS, axes_of, draws, finish, legend_above
from posterity.plots._steps import name_columns

# Most features that are drawn.
MOST_DRAWN = 20


@draws("fit", "model.fit(X, y)")
def plot_explanation(
    model: Estimator,
    x: Any,
    ax: Axes | None = None,
    *,
    X: Any = None,
    level: float = 0.95,
    unit: str = "units of y",
) -> Axes:
    """Draw what each feature of one row adds to its prediction, the largest first.

    Bars begin at the prediction of the average row; lines are intervals of what is added.

    Parameters
    ----------
    model : estimator or pipeline
        With ``explain``.
    x : (m,) array or mapping of names
        The row.
    ax : matplotlib Axes, optional
    X : (n, m) array or data frame, optional
        Rows to compare with; by default those learned.
    level : float, default 0.95
        Probability that an interval holds what it is of.
    unit : str
        Unit of the prediction, for the axis label: of labels it is log odds, of counts log rates.

    Returns
    -------
    matplotlib Axes
        Of the 20 features that add most.

    Raises
    ------
    ValueError
        If several numbers are expected of a row.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from posterity import BayesianLinearRegression
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]], [1.0, 3.0, 5.1, 6.9]
    >>> model = BayesianLinearRegression(prior_precision=0.0).fit(X, y)
    >>> ax = plot_explanation(model, [3.0, 1.0], Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x0 = 3', 'x1 = 1']
    """
    table = _explain(model, x, X, level)
    average, total = table["mean"].iloc[[0, -1]].tolist()
    parts = table.iloc[1:-1]
    parts = parts.iloc[np.argsort(-np.abs(parts["mean"].to_numpy()), kind="stable")]
    parts = parts.iloc[:MOST_DRAWN]
    ax = axes_of(ax, height=1.6 + 0.42 * len(parts))
    row, mean = np.arange(len(parts)), parts["mean"].to_numpy()
    colours = [COLOURS[int(value < 0.0)] for value in mean]
    ax.barh(row, mean, left=average, height=0.62, color=colours)
    ends = (average + parts[end].to_numpy() for end in ("low", "high"))
    ax.hlines(row, *ends, color="black", linewidth=1.2, label=f"{100 * level:g}% interval")
    ax.axvline(average, color="black", linewidth=1.0)
    ax.axvline(total, color=COLOURS[2], linewidth=1.4, linestyle="--", label="this row")
    labels = [f"{name} = {value}" if value else name for name, value in parts["value"].items()]
    ax.set_yticks(row, labels)
    ax.set_ylim(len(row) - 0.5, -0.5)
    title = f"{average:,.5g} on average, {total:,.5g} for this row"
    ax = finish(ax, title, x=f"prediction ({unit})", y="", grid="x")
    legend_above(ax, 2)
    return ax


def _explain(model: Estimator, x: Any, X: Any, level: float) -> DataFrame:
    """Table of a model; of a pipeline with the values that the row has in its own columns."""
    require_part(model, "explain")
    final, steps = split_steps(model)
    if is_frame(x):
        raise TypeError("x is a table: give one row, as a mapping or a series, such as x.iloc[0]")
    if steps is None:
        return final.explain(x, X=X, level=level)
    is_named = hasattr(x, "keys")
    named = dict(x) if is_named else {f"x{k}": value for k, value in enumerate(x)}
    row: Any = np.array([list(named.values())])
    if is_named:
        import pandas

        row = pandas.DataFrame([named])
    rows = None if X is None else np.asarray(ask(steps, "transform", X))
    table = final.explain(np.asarray(steps.transform(row))[0], X=rows, level=level)
    columns = name_columns(steps)
    table.index = [table.index[0], *columns, table.index[-1]]
    for name in named.keys() & set(columns):
        table.loc[name, "value"] = f"{named[name]:.6g}"
    return table
