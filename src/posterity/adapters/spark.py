"""Learn, score and predict Spark's data frames where their rows are (needs PySpark 4 and Java).

Each partition becomes one factor through Arrow, a tree of merges on the executors leaves at most
16 of them, and these alone come to the driver: its work grows with p^3, never with rows. What a
task tells is a pure function of its partition, and Spark takes one answer of each, so tasks that
are retried, or run twice, change nothing.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, Unpack

from sklearn.base import BaseEstimator, clone

from posterity import files
from posterity.adapters import _partitions as core
from posterity.adapters import _spark_tasks as tasks
from posterity.adapters._extras import require_module
from posterity.adapters._partitions import ColumnChoice, Columns
from posterity.adapters._spark_driver import (
    collect_parts,
    learn_frame,
    map_partitions,
    number_columns,
    plan_task,
)
from posterity.adapters._spark_streams import MicroBatches
from posterity.evaluation import ValidationResult
from posterity.evaluation import merge_validations as merged_results
from posterity.io.columns import Dates, require
from posterity.io.errors import TableError
from posterity.io.missing import Missing
from posterity.io.reading import ReadSettings

__all__ = ["evaluate", "fit", "fit_by_key", "learn_micro_batches", "partial_fit", "predict"]

Model = TypeVar("Model")
Levels = Mapping[str, Sequence[str]]


def fit(
    model: Model,
    frame: object,
    target: str,
    *,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
    missing: Missing = "error",
    dates: Dates = "error",
    levels: Levels | None = None,
) -> Model:
    """A new model with the parameters of ``model`` that has learned all rows of a data frame.

    Linear regressions agree with one machine to rounding, however the frame is partitioned. Models
    of classes and counts are near it: each partition finds by itself the Gaussian rows that stand
    for its observations.

    Parameters
    ----------
    model : estimator with ``partial_fit`` and ``merge``
        Stays as it is. One that forgets is refused: partitions have no order.
    frame : pyspark.sql.DataFrame
        Only the columns that are used are read: once, and once more before where levels, means
        or classes have to be found.
    target : str
        Column to predict: numbers, or the labels of a classifier.
    features, drop : sequences of str, optional
        Columns to use, in this order, and to leave out.
    weight : str, optional
        Column of the rows' weights.
    offset, exposure : str, optional
        Of counts: columns of what is added to each log rate, and of the time, area or people that
        each count comes from.
    missing : {"error", "skip", "mean"}, mapping of feature to number, or ColumnMeans
        As in :func:`posterity.io.open_table`, but that "mean" is the mean over the whole frame; a
        :class:`posterity.io.ColumnMeans` keeps it, so that predictions can use it too.
    dates : {"error", "days"}
        As in :func:`posterity.io.open_table`.
    levels : mapping of column to levels, optional
        Levels of categories; found in the whole frame where they are not given.

    Returns
    -------
    estimator

    Raises
    ------
    TableError
        A ``ValueError``: a column that is not there or of a wrong type, missing or infinite values
        (with partition, row and column), or no row to learn.
    TypeError, ValueError
        The model can't be learned in partitions.
    ImportError
        Without PySpark: ``pip install "posterity[spark]"``.

    Examples
    --------
    >>> model = fit(BayesianLinearRegression(), rides, "fare", drop=["id"])  # doctest: +SKIP
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
    return _learn_frame(clone(model), frame, columns)


def partial_fit(
    model: Model,
    frame: object,
    target: str,
    *,
    weight: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
    missing: Missing = "error",
) -> Model:
    """A new model that knows what ``model`` knows, and has learned a data frame too.

    Columns are found by the names of the model's features. Parameters and errors as of :func:`fit`.

    Examples
    --------
    >>> model = partial_fit(model, more_rides, "fare")  # doctest: +SKIP
    """
    columns = Columns(
        target=target, weight=weight, offset=offset, exposure=exposure, missing=missing
    )
    return _learn_frame(model, frame, columns)


def evaluate(
    model: BaseEstimator,
    frame: Any,
    target: str,
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
    frame, target, features, drop, weight, offset, exposure, missing, dates, levels
        As of :func:`fit`. A frame that may give other rows the second time has to be persisted.

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
    >>> evaluate(BayesianLinearRegression(), rides, "fare").rmse  # doctest: +SKIP
    """
    core.check_scores(model)
    task = plan_task(model, frame, Columns(target=target, **columns))
    used = task.columns(frame.columns)
    contents = dict(
        collect_parts(map_partitions(frame, used, partial(tasks.learn, task), tasks.RESULT))
    )
    places = range(max(contents, default=-1) + 1)
    begun = core.find_start_models(model, task, [contents.get(place) for place in places])
    begun_with = {place: content for place, content in enumerate(begun) if place in contents}
    counts = {place: _n_rows(content) for place, content in contents.items()}
    scored = partial(tasks.score, task, begun_with, tuple(intervals))
    partition_scores = map_partitions(frame, used, scored, tasks.RESULT)
    results = []
    # Pickled by this very package on the executors, which run its code anyway.
    for place, content in collect_parts(partition_scores):
        n_rows, result = pickle.loads(content)
        if n_rows != counts.pop(place, 0):
            raise TableError(_UNSTABLE)
        results.append(result)
    if counts:
        raise TableError(_UNSTABLE)
    if not results:
        raise TableError(_EMPTY)
    return merged_results(results)


def predict(
    model: BaseEstimator,
    frame: Any,
    *,
    level: float | None = None,
    quantiles: Sequence[float] = (),
    missing: Missing = "error",
    offset: str | None = None,
    exposure: str | None = None,
) -> Any:
    """The data frame with columns of predictions added.

    Parameters
    ----------
    model : estimator that has learned from columns with names
    frame : pyspark.sql.DataFrame
    level, quantiles
        As of :func:`posterity.io.predict_stream`: intervals and quantiles beside "mean" and "std".
    missing : {"error", "skip"} or mapping of feature to number
        With "skip" rows that lack a value stay, with null for predictions. Means are those of the
        rows that were learned: ``ColumnMeans.fixed``.
    offset, exposure : str, optional
        Of counts: columns of the frame, as of :func:`fit`.

    Returns
    -------
    pyspark.sql.DataFrame
        Lazy: Spark predicts when it is asked for rows.

    Raises
    ------
    TableError
        If the frame lacks a feature, or has a column of a prediction's name.
    ValueError
        For ``missing="mean"``: a prediction must not depend on the rows beside it.

    Examples
    --------
    >>> predict(model, rides, level=0.9).select("mean", "lower", "upper")  # doctest: +SKIP
    """
    require_module("pyspark", "spark")
    types = require_module("pyspark.sql.pandas.types", "spark")
    spark_types = require_module("pyspark.sql.types", "spark")
    if core.fills_with_means(missing):
        raise ValueError(
            "give the means of the rows that were learned, as in missing={'age': 31.2}, or the "
            "fixed ones of the posterity.io.ColumnMeans that learned them"
        )
    asked = {"level": level, "quantiles": tuple(quantiles)}
    added = types.from_arrow_schema(core.prediction_schema(model, **asked))
    core.check_names(added.names, frame.columns)
    reading = ReadSettings(offset=offset, exposure=exposure)
    core.check_features(model, types.to_arrow_schema(frame.schema), reading)
    schema = spark_types.StructType([*frame.schema.fields, *added.fields])
    settings = {**asked, "missing": missing, "offset": offset, "exposure": exposure}
    predicted = partial(tasks.predict, files.dumps(model), settings)
    return map_partitions(frame, frame.columns, predicted, schema)


def fit_by_key(
    model: BaseEstimator,
    frame: Any,
    target: str,
    by: str | Sequence[str],
    **columns: Unpack[ColumnChoice],
) -> Any:
    """A model of its own for each key, all with the same features.

    Parameters
    ----------
    by : str or sequence of str
        Columns of the key; they are no features. The rows of a key have to fit into the memory of
        an executor; their order does not matter.
    model, frame, target, features, drop, weight, offset, exposure, missing, dates, levels
        As of :func:`fit`.

    Returns
    -------
    pyspark.sql.DataFrame
        A row for each key, lazily: the key, ``model``, the content of a model file
        (:func:`posterity.files.loads`), and ``error``, what was wrong with the rows of a key that
        has no model.

    Raises
    ------
    TableError, TypeError, ValueError
        As :func:`fit`.

    Examples
    --------
    >>> shops = fit_by_key(BayesianLinearRegression(), sales, "sold", "shop")  # doctest: +SKIP
    >>> model = posterity.files.loads(shops.first().model)  # doctest: +SKIP
    """
    keys = [by] if isinstance(by, str) else list(by)
    chosen = Columns(target=target, **columns)
    if chosen.features is None:
        chosen = replace(chosen, drop=[*chosen.drop, *keys])
    task = plan_task(model, frame, chosen)
    require(keys, frame.columns, "key")
    taken = sorted({"model", "error"}.intersection(keys))
    if taken:
        raise TableError(f"the key {taken[0]!r} has the name of a column of the result: rename it")
    types = require_module("pyspark.sql.types", "spark")
    kept = list(dict.fromkeys([*keys, *task.columns(frame.columns)]))
    fields = [frame.schema[key] for key in keys]
    fields += [
        types.StructField("model", types.BinaryType()),
        types.StructField("error", types.StringType()),
    ]
    rows = number_columns(frame, kept)
    grouped = rows.groupBy(*rows.columns[: len(keys)])
    return grouped.applyInArrow(tasks.learn_key(task, keys, kept), types.StructType(fields))


def learn_micro_batches(
    model: BaseEstimator, path: str | os.PathLike[str], target: str, **columns: Unpack[ColumnChoice]
) -> Callable[[Any, int], None]:
    """Return the function for ``foreachBatch`` that learns each micro-batch exactly once.

    The file holds the model and, in its notes, the last micro-batch of each query that it has
    learned; both are replaced in one step. A micro-batch that comes again is passed over; one
    whose learning failed has left no trace. One query at a time may write the file.

    Parameters
    ----------
    model : estimator
        What the file begins with, where there is none yet.
    path : path
        The model file, where the driver can write it.
    target, features, drop, weight, offset, exposure, dates, levels
        As of :func:`fit`. Levels that are not given are those of the first micro-batch with rows.
    missing : {"error", "skip"} or mapping of feature to number

    Returns
    -------
    callable
        Of a data frame and the number of the micro-batch.

    Raises
    ------
    ValueError
        For ``missing="mean"``: the mean over a stream is not known while it runs.

    Examples
    --------
    >>> from posterity import BayesianLinearRegression
    >>> learn = learn_micro_batches(BayesianLinearRegression(), "fare.posterity", "fare")
    >>> rides.writeStream.foreachBatch(learn).start()  # doctest: +SKIP
    """
    chosen = Columns(target=target, **columns)
    if core.fills_with_means(chosen.missing):
        raise ValueError(
            "the means of a stream are unknown while it runs: give them, as in "
            "missing={'age': 31.2}, or leave such rows out with missing='skip'"
        )
    core.check_model(model)
    return MicroBatches(model, Path(path), chosen)


# ---- inner ---------------------------------------------------------------------------------------

_EMPTY = "the frame has no row to learn: it is empty, or every row was left out"
_UNSTABLE = (
    "the frame gave other rows the second time: persist it, or order its rows before it is split"
)


def _learn_frame(model: Model, frame: object, columns: Columns) -> Model:
    content = learn_frame(model, frame, columns)
    if content is None:
        raise TableError(_EMPTY)
    learned: Model = core.continue_from(model, content)
    return learned


def _n_rows(content: bytes) -> int:
    return int(files.loads_with_notes(content)[1][core.ROWS])
