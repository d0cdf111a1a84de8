"""The driver's jobs in Spark: from columns to tasks, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator

from posterity.adapters import _partitions as core
from posterity.adapters import _spark_tasks as tasks
from posterity.adapters._extras import require_module
from posterity.adapters._partitions import Columns, Task
from posterity.io.arrow import pa
from posterity.io.errors import TableError


def learn_frame(model: BaseEstimator, frame: Any, columns: Columns) -> bytes | None:
    """Learn all rows of the frame; return a model file, or None where no row is learned."""
    task = plan_task(model, frame, columns)
    functions = require_module("pyspark.sql.functions", "spark")
    used = task.columns(frame.columns)
    results = map_partitions(frame, used, partial(tasks.learn, task), tasks.RESULT)
    branch = (functions.col("part") % core.BRANCHES).alias("branch")
    contents = collect_parts(results.groupBy(branch).applyInArrow(tasks.merge, tasks.RESULT))
    return core.merge_contents([content for _, content in contents]) if contents else None


def plan_task(model: BaseEstimator, frame: Any, columns: Columns) -> Task:
    """The task of every partition, the whole frame looked at first where that is needed."""
    require_module("pyspark", "spark")
    types = require_module("pyspark.sql.pandas.types", "spark")
    if not hasattr(frame, "mapInArrow"):
        raise TypeError(
            f"a {type(frame).__name__} is not a Spark data frame: give a pyspark.sql.DataFrame"
        )
    schema = types.to_arrow_schema(frame.schema)
    asked, surveys = core.questions(model, schema, columns), []
    if asked.columns:
        found = map_partitions(frame, asked.columns, partial(tasks.survey, asked), tasks.RESULT)
        surveys = [content.decode() for _, content in collect_parts(found)]
    return core.plan(model, schema, columns, surveys)


def collect_parts(frame: Any) -> list[tuple[int, bytes]]:
    """Collect the tasks' results in the order of their partitions; raise errors of rows."""
    rows = sorted(frame.collect(), key=lambda row: row.part)
    for row in rows:
        if row.error is not None:
            raise TableError(f"partition {row.part}: {row.error}")
    return [(row.part, bytes(row.result)) for row in rows]


def map_partitions(frame: Any, names: Sequence[str], work: Any, schema: pa.Schema) -> Any:
    """Map ``work`` over the record batches of each partition, of these columns alone."""
    rows = number_columns(frame, names)
    return rows.mapInArrow(partial(tasks.restore_names, work, tuple(names)), schema)


def number_columns(frame: Any, names: Sequence[str]) -> Any:
    """Columns c0, c1, ...: mapInArrow takes a dot in a name for a field of a structure."""
    column = require_module("pyspark.sql.functions", "spark").col
    quoted = [name.replace("`", "``") for name in names]
    return frame.select(*(column(f"`{name}`").alias(f"c{i}") for i, name in enumerate(quoted)))
