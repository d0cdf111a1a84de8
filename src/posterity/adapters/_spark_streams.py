"""A model file that learns the micro-batches of Structured Streaming."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, clone

from posterity import files
from posterity.adapters import _partitions as core
from posterity.adapters._partitions import Columns
from posterity.adapters._spark_driver import learn_frame
from posterity.linear.named import list_feature_names


@dataclass(frozen=True)
class MicroBatches:
    """See :func:`posterity.adapters.spark.learn_micro_batches`."""

    model: BaseEstimator = field(repr=False)
    path: Path
    columns: Columns

    def __call__(self, frame: Any, batch: int) -> None:
        """Learn a micro-batch, unless that was done."""
        model, notes = self._find_latest_batch()
        query = _get_query_id(frame)
        done = dict(notes.get("micro_batches", {}))
        if batch <= done.get(query, -1):
            return
        columns = self.columns
        if list_feature_names(model):
            columns = replace(columns, features=None, drop=(), dates="error", levels=None)
        if not frame.isEmpty():
            content = learn_frame(model, frame, columns)
            model = model if content is None else core.continue_from(model, content)
        done[query] = int(batch)
        files.save(model, self.path, notes={**notes, "micro_batches": done})

    def _find_latest_batch(self) -> tuple[Any, dict[str, Any]]:
        try:
            return files.load_with_notes(self.path)
        except FileNotFoundError:
            return clone(self.model), {}


def _get_query_id(frame: Any) -> str:
    """Return the streaming query that calls; micro-batches are numbered within each."""
    context = getattr(frame.sparkSession, "sparkContext", None)
    query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    return query or ""
