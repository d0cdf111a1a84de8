"""Base of cluster engines: a task goes out to partitions, and factors return.

Rows stay where they are. Each partition becomes one model file (`learn`), which holds a triangle
and counts; files are merged in a fixed order (`merged`), exactly. Nothing here knows an engine.
Every function is a pure one of its arguments, so a task that is run twice tells the same twice.

An engine asks each partition for a `survey` where there are `questions`, makes a `plan` on the
driver, has the partitions `learn` it, and brings the `merged` factors to the driver.

Examples
--------
>>> import pyarrow as pa
>>> from posterity import BayesianLinearRegression, files
>>> rides = pa.table({"km": [1.0, 2.0, 3.0, 4.0], "zone": list("abab"), "fare": [3.0, 6, 7, 9]})
>>> model, columns = BayesianLinearRegression(), Columns(target="fare")
>>> parts = [rides[:1].to_batches(), rides[1:].to_batches()]
>>> asked = questions(model, rides.schema, columns)
>>> task = plan(model, rides.schema, columns, [survey(asked, part) for part in parts])
>>> model = files.loads(merge_contents([learn(task, part) for part in parts]))
>>> model.feature_names_in_.tolist(), model.n_observations_
(['km', 'zone=b'], 4.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from posterity import files
from posterity.adapters._keyed import (
    NUMBER,
    Keys,
    get_key_columns,
    prediction_names,
    predictions_by_key,
)
from posterity.adapters._planning import (
    ColumnChoice,
    Columns,
    Task,
    check_model,
    fills_with_means,
    plan,
    questions,
)
from posterity.adapters._survey import Questions, survey
from posterity.aliases import Estimator
from posterity.evaluation import ValidationResult, progressive_validation
from posterity.io import predict_stream
from posterity.io.arrow import pa
from posterity.io.columns import make_learned_encoders, require
from posterity.io.errors import TableError
from posterity.io.learning import check_takes_offsets, get_categories, name_columns
from posterity.io.missing import Missing
from posterity.io.reading import ColumnsBeside, ReadSettings, Rows
from posterity.io.table import TableStream, open_rows
from posterity.io.tables import describe_table
from posterity.io.targets import make_target
from posterity.linear.named import has_learned, list_feature_names

# A tree of merges has so many branches: the last one merges no more files than this.
BRANCHES = 16
ROWS = "rows"


# ---- on the workers ------------------------------------------------------------------------------


def learn(task: Task, batches: Iterable[pa.RecordBatch]) -> bytes | None:
    """Model file of one partition's record batches; None where there are no rows.

    Its note ``rows`` is how many rows there were, those left out included.

    Raises
    ------
    TableError
        As `posterity.io.learn_stream`; it names row, from 0 in the partition, and column.
    """
    rows = _skip_empty_batches(batches)
    if rows is None:
        return None
    model: BaseEstimator = files.loads(task.model)
    stream, coming = _open_stream(task, rows, model)
    classes = {"classes": np.array(task.classes)} if task.classes else {}
    for X, y, weight, *beside in coming:
        added = {"offset": beside[-1]} if beside else {}
        model.partial_fit(X, y, sample_weight=weight, **added, **classes)
    if not has_learned(model):  # every row was left out
        return None
    return files.dumps(model, notes={ROWS: stream.n_rows_read})


def score(
    task: Task, start: bytes, batches: Iterable[pa.RecordBatch], **settings: Any
) -> tuple[int, ValidationResult | None]:
    """Number of rows, and progressive scores of one partition by the model that comes to it.

    ``start`` is one of `starts`, ``settings`` are of `posterity.evaluation.progressive_validation`.
    """
    rows = _skip_empty_batches(batches)
    if rows is None:
        return 0, None
    stream, coming = _open_stream(task, rows)
    first = next(coming, None)
    if first is None:
        return stream.n_rows_read, None
    result = progressive_validation(files.loads(start), chain([first], coming), **settings)
    return stream.n_rows_read, result


def try_task(work: Callable[[], Any]) -> tuple[Any, str | None]:
    """The result of the work, or what is wrong with the rows: trying those again is of no use."""
    try:
        return work(), None
    except pa.ArrowException:  # some are ValueErrors, and the engine's own stream may have broken
        raise
    except (ValueError, TypeError) as error:
        return None, str(error)


def predict_batch(
    model: BaseEstimator,
    batch: pa.RecordBatch,
    *,
    level: float | None = None,
    quantiles: Sequence[float] = (),
    missing: Missing = "error",
    offset: str | None = None,
    exposure: str | None = None,
) -> pa.RecordBatch:
    """Record batch of predictions, a row for each of ``batch``; null where a row was left out.

    Columns as of `posterity.io.predict_stream`, but for "row". Raises ``TableError`` as that.
    """
    asked: Any = {"level": level, "quantiles": quantiles}
    roles = {"offset": offset, "exposure": exposure}
    given = asked | {role: name for role, name in roles.items() if name is not None}
    whole = _make_prediction_batch(model, batch, missing, **given) if batch.num_rows else None
    if whole is None:
        schema = prediction_schema(model, **asked)
        empty = [pa.nulls(batch.num_rows, field.type) for field in schema]
        return pa.RecordBatch.from_arrays(empty, schema=schema)
    kept, columns = whole.column("row").to_numpy(), whole.select(whole.schema.names[1:])
    if len(kept) == batch.num_rows:
        return columns
    place = np.full(batch.num_rows, -1)
    place[kept] = np.arange(len(kept))
    return columns.take(pa.array(place, mask=place < 0))


def prediction_schema(model: BaseEstimator, **asked: Any) -> pa.Schema:
    """Return the Arrow schema of the predictions, whatever the rows."""
    names = _get_feature_names(model)
    if get_key_columns(model):
        columns = prediction_names(asked.get("level"), asked.get("quantiles", ()))
        return pa.schema([(name, pa.float64()) for name in columns])
    row = pa.record_batch({name: [0.0] for name in names})
    return predict_batch(model, row, **asked).schema


def check_scores(model: BaseEstimator) -> None:
    """Refuse a model whose predictions are not scored in partitions."""
    if is_classifier(model):
        raise TypeError(
            f"{type(model).__name__} is a classifier: score it on one machine with "
            "posterity.evaluation.progressive_classification"
        )


def check_names(names: Iterable[str], columns: Iterable[str]) -> None:
    """Refuse a frame that has a column of a prediction's name: ``TableError``."""
    taken = sorted(set(names) & set(columns))
    if taken:
        raise TableError(
            f"the frame has a column {taken[0]!r}, which is a name used for predictions: rename it"
        )


def check_features(
    model: BaseEstimator, schema: pa.Schema, reading: ReadSettings | None = None
) -> None:
    """Refuse a table whose columns do not make the features of a model: ``TableError``.

    ``reading`` names columns of offsets and exposures, which are checked, too.
    """
    if reading is not None:
        check_takes_offsets(model, reading)
        ColumnsBeside(reading).check(describe_table(schema), ())
    make_learned_encoders(describe_table(schema), _get_feature_names(model), get_categories(model))
    require(get_key_columns(model), list(schema.names), "key")


# ---- factors together ----------------------------------------------------------------------------


def merge_contents(contents: Iterable[bytes]) -> bytes:
    """Model file of the merged models, in the order given.

    Exact for linear regressions, also where the prior precision is learned: then the data's factor
    stands apart. Models of classes and counts add up the rows that stand for observations, as each
    partition found them: near what one machine finds, and nearer the more rows a partition has.

    Raises
    ------
    ValueError
        If there is none, or they do not fit together.
    """
    first, *others = [files.loads_with_notes(content) for content in contents]
    model, rows = first[0], first[1].get(ROWS, 0)
    for other, notes in others:
        model.merge(other)
        rows += notes.get(ROWS, 0)
    return files.dumps(model, notes={ROWS: rows})


def find_start_models(
    model: BaseEstimator, task: Task, contents: Sequence[bytes | None]
) -> list[bytes]:
    """Yield the model file that each partition begins with: ``model`` and all before it."""
    # A model that knows nothing may have a basis that the task has closed.
    current = model if has_learned(model) else files.loads(task.model)
    model_files = [files.dumps(current)]
    current = files.loads(model_files[0])
    for content in contents[:-1]:
        if content is not None:
            other = files.loads(content)
            current = current.merge(other) if has_learned(current) else other
        model_files.append(files.dumps(current))
    return model_files


def continue_from(model: BaseEstimator, content: bytes) -> Estimator:
    """A new model that knows what ``model`` knows, and what is in a model file; both stay."""
    if not has_learned(model):
        return files.loads(content)
    return files.loads(files.dumps(model)).merge(files.loads(content))


# ---- inner ---------------------------------------------------------------------------------------


def _skip_empty_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch] | None:
    """The batches that have rows; None if there are none."""
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    return None if first is None else chain([first], filled)


def _open_stream(
    task: Task, batches: Iterator[pa.RecordBatch], model: BaseEstimator = None
) -> tuple[TableStream, Iterator[tuple[Any, ...]]]:
    """The stream, and its batches of X with names, y and weights (or None); then any offsets.

    Rows are not copied where ``model``, the one that will learn them, can do without.
    """
    goal = make_target(task.target, labels=bool(task.classes))
    if not task.by:
        stream = open_rows(batches, task.names, task.reading, target=goal)
        rows = (
            (name_columns(rows.X, task.names, model), rows.y, rows.weight, *_list_offsets(rows))
            for rows in stream.batches()
        )
        return stream, rows
    keys = Keys(task.by)
    reading = replace(task.reading, time=NUMBER)
    stream = open_rows(keys.number_rows(batches), task.names, reading, target=goal)
    keyed = (
        (keys.add_keys(name_columns(rows.X, task.names), rows.time), rows.y, rows.weight)
        for rows in stream.batches()
    )
    return stream, keyed


def _list_offsets(rows: Rows) -> tuple[Any, ...]:
    """No times, and the offsets, where there are some."""
    return () if rows.offset is None else (None, rows.offset)


def _make_prediction_batch(
    model: BaseEstimator, batch: pa.RecordBatch, missing: Missing, **asked: Any
) -> pa.RecordBatch | None:
    """Record batch of numbers of rows and predictions; None where every row was left out."""
    if get_key_columns(model):
        parts = list(predictions_by_key(model, batch, missing, **asked))
    else:
        rows = pa.Table.from_batches([batch])
        parts = list(predict_stream(model, rows, **asked, missing=missing, output="arrow"))
    return pa.concat_batches(parts) if parts else None


def _get_feature_names(model: BaseEstimator) -> list[str]:
    names = list_feature_names(model)
    if not names:
        raise TableError("the model has no feature names: learn from a table or a data frame")
    return list(map(str, names))


__all__ = [
    "BRANCHES",
    "ROWS",
    "ColumnChoice",
    "Columns",
    "Questions",
    "Task",
    "check_features",
    "check_model",
    "check_names",
    "check_scores",
    "continue_from",
    "fills_with_means",
    "find_start_models",
    "learn",
    "merge_contents",
    "plan",
    "predict_batch",
    "prediction_schema",
    "questions",
    "score",
    "survey",
    "try_task",
]
