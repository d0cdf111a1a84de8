"""Tasks of Spark's executors: record batches of a partition in, one row of bytes out.

Functions have names at the top of a module, so that only their arguments travel.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from posterity import files
from posterity.adapters import _partitions as core
from posterity.adapters._partitions import Task
from posterity.io.arrow import pa

# What every task tells: its partition, and bytes, or what is wrong with the rows.
RESULT = "part long, result binary, error string"


def restore_names(
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    names: Sequence[str],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Have ``work`` read batches whose columns have their own names again."""
    yield from work(batch.rename_columns(list(names)) for batch in batches)


def learn(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from _result(lambda: core.learn(task, batches))


def survey(asked: core.Questions, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from _result(lambda: core.survey(asked, batches).encode())


def score(
    task: Task,
    begun: Mapping[int, bytes],
    intervals: Sequence[float],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    def scores() -> bytes | None:
        start = begun.get(_get_partition_id())
        if start is None:  # a partition without rows; if it has some now, they are found missing
            return None
        scores = core.score(task, start, batches, levels=intervals)
        return None if scores[1] is None else pickle.dumps(scores)

    yield from _result(scores)


def merge(table: pa.Table) -> pa.Table:
    """Merge the rows of a branch into one: their merged factor, or the first error."""
    rows = sorted(table.to_pylist(), key=lambda row: row["part"])
    wrong = [row for row in rows if row["error"] is not None]
    first = wrong[0] if wrong else rows[0]
    content = None if wrong else core.merge_contents([row["result"] for row in rows])
    return pa.Table.from_batches([_row(first["part"], content, first["error"])])


def learn_key(
    task: Task, keys: Sequence[str], names: Sequence[str]
) -> Callable[[pa.Table], pa.Table]:
    """Learn the rows of one key; yield its values, a model file, and any error."""

    # Spark looks at the annotations, which those of a partial function hide.
    def of_rows(table: Any) -> Any:
        table = table.rename_columns(list(names))
        content, error = core.try_task(lambda: core.learn(task, table.to_batches()))
        if content is None and error is None:
            error = "every row was left out"
        one = table.select(keys).slice(0, 1)
        one = one.append_column("model", pa.array([content], pa.binary()))
        return one.append_column("error", pa.array([error], pa.string()))

    return of_rows


def predict(
    content: bytes, settings: Mapping[str, Any], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    model = files.loads(content)
    for batch in batches:
        predictions = core.predict_batch(model, batch, **settings)
        arrays = [*batch.columns, *predictions.columns]
        yield pa.RecordBatch.from_arrays(
            arrays, names=[*batch.schema.names, *predictions.schema.names]
        )


def _result(work: Callable[[], bytes | None]) -> Iterator[pa.RecordBatch]:
    result, error = core.try_task(work)
    if result is not None or error is not None:
        yield _row(_get_partition_id(), result, error)


def _row(place: int, result: bytes | None, error: str | None) -> pa.RecordBatch:
    columns = {
        "part": pa.array([place], pa.int64()),
        "result": pa.array([result], pa.binary()),
        "error": pa.array([error], pa.string()),
    }
    return pa.record_batch(columns)


def _get_partition_id() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None  # there is one on every executor
    return int(context.partitionId())
