"""What each feature of one row adds to its prediction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from posterity.aliases import Array, DataFrame
from posterity.distributions._limits import check_single_level
from posterity.distributions.joint_distribution import require_pandas
from posterity.distributions.shown_table import show_table
from posterity.kernel.tables import TableLike
from posterity.linear.effects import feature_names
from posterity.linear.functions import list_blocks
from posterity.linear.inputs import read_points
from posterity.linear.named import wrap_read_rows
from posterity.linear.ratios import add_ratios

# Names of features, and by how much they change the columns (p,).
Change = tuple[list[str], Array]

# Names of the rows that are no feature's: the first, what features do together, and the last.
AVERAGE, TOGETHER, TOTAL = "(average)", "(together)", "(this row)"
# Of what they do alone, features together do less than this by rounding.
ROUNDING = 1e-9


class Explains:
    """Models that tell what each feature of one row adds to its prediction."""

    def explain(
        self, x: ArrayLike | Mapping[str, Any], *, X: TableLike | None = None, level: float = 0.95
    ) -> DataFrame:
        """Table of what each feature of one row adds to its prediction, with intervals.

        The rows of the table are the prediction of the average row, what each feature adds to that
        because it is not the average, and their sum, the prediction of this row. Predictions are
        of the expected target; of labels its log odds, of counts the log of the rate, with ratios,
        exp, beside them.

        Parameters
        ----------
        x : (m,) array or mapping of names
            The row, as :meth:`predict_one` takes it.
        X : (n, m) array or data frame, optional
            Rows to compare with: each feature adds what the prediction changes by on average when
            it alone gets the value that it has in ``x``. By default the average of those learned,
            each counted by its weight today; features of which a basis makes functions then go
            together where that is no mapping of columns.
            Without an intercept, and without ``X``, the row is compared with zeros.
        level : float, default 0.95
            Probability that an interval holds what it is of.

        Returns
        -------
        pandas.DataFrame
            Labelled by the features' names, with the columns value, mean, sd, low and high.
            What features of ``X`` do together and not alone, through a basis, has a row of its own.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If several numbers are expected of a row.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]], [1.0, 4.0, 5.1, 6.0]
        >>> model = BayesianLinearRegression(prior_precision=0.0).fit(X, y)
        >>> model.explain([3.0, 2.0])["mean"].astype(float).round(1).to_dict()
        {'(average)': 4.0, 'x0': 3.0, 'x1': -1.0, '(this row)': 6.0}
        """
        return _explain(self, x, X, level)


def _explain(
    model: BaseEstimator, x: ArrayLike | Mapping[str, Any], X: Any, level: float
) -> DataFrame:
    """As :meth:`Explains.explain` says."""
    pandas = require_pandas("an explanation")
    level = check_single_level(level)
    model._posterior  # noqa: B018 - not fitted comes first
    if model._outputs():
        raise ValueError(
            f"explain is of one number for a row, and here each {model._label_of_outputs} has its "
            "own: average_effects(X) has rows for all of them"
        )
    values = model._path.values(x)
    here = _columns(model, values)[0]
    if X is None:
        average = _find_average(model)
        changes = list(_split(model, here - average))
    else:
        rows = read_points(model, X)
        average = _columns(model, rows).mean(axis=0)
        changes = list(_change_each(model, rows, values[0], average, here))
    sums = np.stack([average, *[change for _, change in changes], here])
    each = model._correct(sums, model._joint().project(sums, 0.0), of_rows=False)
    low, high = each.interval(level)
    shown = _show_values(model, values[0])
    told = [", ".join(shown.get(name, "") for name in names) for names, _ in changes]
    table = {
        "value": ["", *told, ""],
        "mean": each.mean(),
        "sd": each.std(),
        "low": low,
        "high": high,
    }
    index = [AVERAGE, *[", ".join(names) for names, _ in changes], TOTAL]
    return show_table(add_ratios(pandas.DataFrame(table, index=index), model._ratio()))


def _columns(model: BaseEstimator, rows: Array) -> Array:
    """(n, p) the columns of rows of features (n, d), with the intercept's."""
    return np.asarray(model._prepare_rows(wrap_read_rows(model, rows), None)[0])


def _find_average(model: BaseEstimator) -> Array:
    """(p,) the columns of the average row learned; without an intercept 0."""
    means = model._posterior.feature_means()
    return np.concatenate([[1.0], means]) if model._offset else np.asarray(means)


def _split(model: BaseEstimator, change: Array) -> Iterator[Change]:
    """The parts of a change that belong to each feature, or to several of which functions are."""
    names, categories, first = feature_names(model), model._categories, int(model._offset)
    numbers = list(range(len(names))) if categories is None else categories.numbers
    parts = [
        ([names[numbers[place]] for place in features], width)
        for features, width in list_blocks(model._fitted_basis, len(numbers))
    ]
    parts += [] if categories is None else [([one.name], one.width) for one in categories.each]
    for named, width in parts:
        own = np.zeros_like(change)
        own[first : first + width] = change[first : first + width]
        yield named, own
        first += width


def _change_each(
    model: BaseEstimator, rows: Array, values: Array, average: Array, here: Array
) -> Iterator[Change]:
    """What changes on average over rows where each feature alone gets the value that it has here.

    And, where features do more together than each alone, the rest.
    """
    rest = here - average
    for place, name in enumerate(feature_names(model)):
        changed = rows.copy()
        changed[:, place] = values[place]
        own = _columns(model, changed).mean(axis=0) - average
        rest = rest - own
        yield [name], own
    if np.abs(rest).max() > ROUNDING * np.abs(here).max():
        yield [TOGETHER], rest


def _show_values(model: BaseEstimator, values: Array) -> dict[str, str]:
    """The value of each feature of the row, as text."""
    names, categories = feature_names(model), model._categories
    shown = {name: f"{value:.6g}" for name, value in zip(names, values.tolist(), strict=True)}
    for one in () if categories is None else categories.each:
        number = int(values[one.place])
        shown[one.name] = one.levels[number - 1] if number else "(other)"
    return shown
