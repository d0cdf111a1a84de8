"""Learn, score and predict Dask's data frames and arrays where their rows are.

Each partition becomes one factor, and a tree of merges, tasks like any other, brings one of them to
the client: its work does not grow with the rows. Merges have a fixed order, and every task is a
pure function of what it is given, so a task that is run again, because a worker was lost, changes
nothing. Any of Dask's schedulers will do: threads, processes, or a cluster of ``distributed``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, Unpack

import numpy as np
from sklearn.base import BaseEstimator, clone

from posterity import files
from posterity.adapters import _dask_tasks as tasks
from posterity.adapters import _partitions as core
from posterity.adapters._dask_rows import Arrays, Collection, collection
from posterity.adapters._extras import require_module
from posterity.adapters._keyed import get_key_columns
from posterity.adapters._partitions import ColumnChoice, Columns, Task
from posterity.evaluation import ValidationResult
from posterity.io.arrow import pa
from posterity.io.columns import Dates
from posterity.io.errors import TableError
from posterity.io.missing import Missing
from posterity.io.reading import ReadSettings

__all__ = ["evaluate", "fit", "partial_fit", "predict"]

Model = TypeVar("Model")
Levels = Mapping[str, Sequence[str]]


def fit(
    model: Model,
    table: Any,
    target: Any,
    *,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weight: Any = None,
    offset: Any = None,
    exposure: Any = None,
    missing: Missing = "error",
    dates: Dates = "error",
    levels: Levels | None = None,
) -> Model:
    """A new model with the parameters of ``model`` that has learned all rows of a collection.

    Linear regressions agree with one machine to rounding, however the rows are partitioned. Models
    of classes and counts are near it: each partition finds by itself the Gaussian rows that stand
    for its observations.

    Parameters
    ----------
    model : estimator with ``partial_fit`` and ``merge``
        Stays as it is. One that forgets is refused: partitions have no order.
    table : dask.dataframe.DataFrame, or dask.array.Array of shape (n, p)
        Only the columns that are used are read: once, and once more before where levels, means
        or classes have to be found. Lengths of chunks need not be known.
    target : str, or dask.array.Array of shape (n,)
        Column to predict of a data frame, or what to predict beside an array: numbers, or the
        labels of a classifier.
    features, drop : sequences of str, optional
        Columns of a data frame to use, in this order, and to leave out.
    weight : str, or dask.array.Array of shape (n,), optional
        Weights of the rows, as ``target``.
    offset, exposure : str, or dask.array.Array of shape (n,), optional
        Of counts: what is added to each log rate, and the time, area or people that each count
        comes from, as ``target``.
    missing : {"error", "skip", "mean"}, mapping of feature to number, or ColumnMeans
        As in :func:`posterity.io.open_table`, but that "mean" is the mean over all rows; a
        :class:`posterity.io.ColumnMeans` keeps it, so that predictions can use it too. Columns of
        an array are called "x0", "x1" and so on.
    dates : {"error", "days"}
        As in :func:`posterity.io.open_table`.
    levels : mapping of column to levels, optional
        Levels of categories; found in all rows where they are not given.

    Returns
    -------
    estimator
        One that learned from an array has no names of features, as on one machine.

    Raises
    ------
    TableError
        A ``ValueError``: a column that is not there or of a wrong type, missing or infinite values
        (with partition, row and column), or no row to learn.
    TypeError, ValueError
        The model can't be learned in partitions, or ``table`` is no collection of Dask.
    ImportError
        Without Dask: ``pip install "posterity[dask]"``.

    Examples
    --------
    >>> import dask.array as da
    >>> from posterity import BayesianLinearRegression
    >>> X = da.arange(1000, chunks=100).reshape(-1, 1)
    >>> model = fit(BayesianLinearRegression(prior_precision=0.0), X, 3.0 + 2.0 * X[:, 0])
    >>> model.coef_.round(9), model.n_observations_
    (array([2.]), 1000.0)
    """
    columns = Columns(
        target=target,
        features=features,
        drop=drop,
        weight=weight,
        offset=offset,
        exposure=exposure,
        missing=missing,
        dates=dates,
        levels=levels,
    )
    return _learn_tasks(_plan_tasks(clone(model), table, columns))


def partial_fit(
    model: Model,
    table: Any,
    target: Any,
    *,
    weight: Any = None,
    offset: Any = None,
    exposure: Any = None,
    missing: Missing = "error",
) -> Model:
    """A new model that knows what ``model`` knows, and has learned a collection too.

    Columns are found by the names of the model's features; those of an array by their places.
    Parameters and errors as of :func:`fit`.

    Examples
    --------
    >>> import dask.array as da
    >>> from posterity import BayesianLinearRegression
    >>> X = da.arange(1000, chunks=100).reshape(-1, 1)
    >>> model = fit(BayesianLinearRegression(), X, X[:, 0])
    >>> partial_fit(model, X, X[:, 0]).n_observations_
    2000.0
    """
    columns = Columns(
        target=target, weight=weight, offset=offset, exposure=exposure, missing=missing
    )
    return _learn_tasks(_plan_tasks(model, table, columns))


def evaluate(
    model: BaseEstimator,
    table: Any,
    target: Any,
    *,
    intervals: Sequence[float] = (0.95,),
    **columns: Unpack[ColumnChoice],
) -> ValidationResult:
    """Scores of predictions made before their rows were learned, in the order of partitions.

    Two passes: the first learns each partition; the second scores each, beginning with a model that
    knows all partitions before it. With a given prior the scores are those of one machine that
    reads partition after partition, to rounding; where the prior is learned they are near, for it
    is chosen at other rows.

    Parameters
    ----------
    model : estimator
        Begins with what it knows, and stays as it is.
    intervals : sequence of float
        Levels of the intervals whose coverage and width are measured.
    table, target, features, drop, weight, offset, exposure, missing, dates, levels
        As of :func:`fit`. A collection that may give other rows the second time has to be
        persisted.

    Returns
    -------
    posterity.evaluation.ValidationResult
        Without baselines, as of :func:`posterity.evaluation.merged`.

    Raises
    ------
    TableError, TypeError, ValueError
        As :func:`fit`; also where the second pass meets other rows than the first.

    Examples
    --------
    >>> import dask.array as da
    >>> from posterity import BayesianLinearRegression
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(100, 2))
    >>> y = X.sum(axis=1) + da.random.default_rng(1).normal(size=1000, chunks=100)
    >>> 0.9 < evaluate(BayesianLinearRegression(), X, y).rmse < 1.1
    True
    """
    core.check_scores(model)
    dask = require_module("dask", "dask")
    work = _plan_tasks(model, table, Columns(target=target, **columns))
    # Factors stay with the workers, and so do the models that are made of them.
    learned = list(dask.persist(*work.each(partial(tasks.learn, work.task))))
    _check(_merge_and_fetch(learned, tasks.merge_models))
    begun = core.find_start_models(work.model, work.task, [None])[0]
    scored = []
    for content, batch in zip(learned, work.each(tasks.get_batch), strict=True):
        score = partial(tasks.score, work.task, tuple(intervals))
        scored.append(dask.delayed(score)(begun, content, batch))
        begun = dask.delayed(tasks.begin_after)(begun, content)
    result: ValidationResult = _check(_merge_and_fetch(scored, tasks.merge_results))
    return result


def predict(
    model: BaseEstimator,
    table: Any,
    *,
    level: float | None = None,
    quantiles: Sequence[float] = (),
    missing: Missing = "error",
    offset: str | None = None,
    exposure: str | None = None,
) -> Any:
    """Predictions for all rows of a collection, as a collection of the same kind.

    Parameters
    ----------
    model : estimator that has learned
        From columns with names, where ``table`` is a data frame.
    table : dask.dataframe.DataFrame, or dask.array.Array of shape (n, p)
    level, quantiles
        As of :func:`posterity.io.predict_stream`: intervals and quantiles beside "mean" and "std".
    missing : {"error", "skip"} or mapping of feature to number
        With "skip" rows that lack a value stay, with missing predictions.
    offset, exposure : str, optional
        Of counts: columns of the data frame, as of :func:`fit`.

    Returns
    -------
    dask.dataframe.DataFrame or dask.array.Array
        Lazy. The data frame, its index and its divisions, with columns of predictions added; or
        an array (n, k) of these columns: mean and standard deviation, lower and upper end of the
        interval, quantiles. Of a classifier they are "label" and the probabilities, "p=yes"; in an
        array the probabilities alone, (n, classes).

    Raises
    ------
    TableError
        If the table lacks a feature, or has a column of a prediction's name.

    Examples
    --------
    >>> import pandas as pd, dask.dataframe as dd
    >>> from posterity import BayesianLinearRegression
    >>> rides = pd.DataFrame({"km": [1.0, 2.0, 3.0], "fare": [3.0, 5.0, 7.0]}, index=list("xyz"))
    >>> rides = dd.from_pandas(rides, npartitions=2)
    >>> model = fit(BayesianLinearRegression(prior_precision=0.0), rides, "fare")
    >>> predict(model, rides[["km"]]).compute()[["km", "mean"]].round(6)
        km  mean
    x  1.0   3.0
    y  2.0   5.0
    z  3.0   7.0
    """
    rows = collection(table)
    model = rows.add_names(model)
    reading = ReadSettings(offset=offset, exposure=exposure)
    if reading.other_columns and not rows.has_names:
        raise TableError(
            "offset= and exposure= name columns, and an array has no column names: give a data "
            "frame, or multiply predicted means by the exposure"
        )
    core.check_features(model, rows.schema, reading)
    asked = {"level": level, "quantiles": tuple(quantiles)}
    schema = core.prediction_schema(model, **asked)
    settings = {**asked, "missing": missing, "offset": offset, "exposure": exposure}
    # A task of its own: the model goes to a worker once, not with every partition.
    content = require_module("dask", "dask").delayed(files.dumps(model))
    if isinstance(rows, Arrays):
        return _predict_array(rows, content, settings, schema)
    core.check_names(schema.names, table.columns)
    read = Task(
        b"", tuple(map(str, model.feature_names_in_)), "", reading, by=get_key_columns(model)
    )
    used = {name: rows.schema.field(name) for name in read.columns(table.columns)}
    empty = schema.empty_table().to_pandas().set_index(table._meta.index[:0])
    meta = table._meta.assign(**{name: empty[name] for name in empty.columns})
    return table.map_partitions(partial(tasks.with_predictions, settings, used), content, meta=meta)


# ---- on the client -------------------------------------------------------------------------------

_EMPTY = "the table has no row to learn: it is empty, or every row was left out"


@dataclass(frozen=True)
class _Planned:
    """A model, the rows it is to learn, and what each partition of them has to do."""

    model: BaseEstimator
    rows: Collection
    task: Task

    def each(self, work: Callable[[Any], Any]) -> list[Any]:
        """Delayed values, one for each partition."""
        return self.rows.each(self.task.columns(self.rows.schema.names), work)


def _plan_tasks(model: BaseEstimator, table: object, columns: Columns) -> _Planned:
    """The task of every partition, all rows looked at first where that is needed."""
    dask = require_module("dask", "dask")
    others = columns.target, columns.weight, columns.offset, columns.exposure
    rows = collection(table, *others)
    columns, model = rows.adapt_columns(columns), rows.add_names(model)
    asked, surveys = core.questions(model, rows.schema, columns), []
    if asked.columns:
        answers = dask.compute(*rows.each(asked.columns, partial(tasks.survey, asked)))
        surveys = [_check(text) for text in tasks.name_partitions(answers, 0)]
    return _Planned(model, rows, core.plan(model, rows.schema, columns, surveys))


def _learn_tasks(work: _Planned) -> Any:
    content = _check(
        _merge_and_fetch(work.each(partial(tasks.learn, work.task)), tasks.merge_models)
    )
    model = core.continue_from(work.model, content)
    if not work.rows.has_names:
        del model.feature_names_in_
    return model


def _merge_and_fetch(leaves: list[Any], merge: Callable[..., Any]) -> Any:
    """Results of the partitions, merged by a tree of tasks whose root alone is brought here."""
    dask = require_module("dask", "dask")
    level, size = leaves, core.BRANCHES
    starts: list[int | None] = list(range(0, len(leaves), size))
    while True:
        groups = [level[place : place + size] for place in range(0, len(level), size)]
        level = [
            dask.delayed(merge)(group, first) for group, first in zip(groups, starts, strict=True)
        ]
        if len(level) == 1:
            return dask.compute(*level)[0]
        starts = [None] * len(range(0, len(level), size))


def _check(result: object) -> Any:
    if isinstance(result, tasks.Refused):
        raise TableError(result.message)
    if result is None:
        raise TableError(_EMPTY)
    return result


def _predict_array(
    rows: Arrays, content: Any, settings: Mapping[str, Any], schema: pa.Schema
) -> Any:
    n_columns = len([name for name in schema.names if name != "label"])
    X = rows.X if rows.X.numblocks[1] == 1 else rows.X.rechunk({1: -1})
    return X.map_blocks(
        partial(tasks.prediction_rows, settings),
        content=content,
        dtype=np.float64,
        chunks=(X.chunks[0], (n_columns,)),
        meta=np.empty((0, 0)),
    )
