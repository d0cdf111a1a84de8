"""Functions that Dask's workers run: pure functions of a batch, or of others' results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posterity import files
from posterity.adapters import _partitions as core
from posterity.adapters._dask_rows import batch_of_arrays, batch_of_frame
from posterity.adapters._partitions import Questions, Task
from posterity.evaluation import ValidationResult
from posterity.evaluation import merge_validations as merged_results
from posterity.io.arrow import pa
from posterity.io.errors import TableError

UNSTABLE = (
    "the collection gave other rows the second time: persist it, or read it from where it stays "
    "the same"
)


@dataclass(frozen=True)
class Refused:
    """Refusal of rows, returned as a value: trying them again is of no use."""

    message: str


def learn(task: Task, batch: pa.RecordBatch) -> bytes | Refused | None:
    """Model file of a partition; None where there is no row to learn."""
    return _try_task(lambda: core.learn(task, [batch]))


def survey(asked: Questions, batch: pa.RecordBatch) -> str | Refused:
    """Summary of a partition: names, levels, sums."""
    return _try_task(lambda: core.survey(asked, [batch]))


def score(
    task: Task,
    intervals: Sequence[float],
    begun: bytes,
    learned: bytes | None,
    batch: pa.RecordBatch,
) -> ValidationResult | Refused | None:
    """Score a partition progressively from model ``begun``; ``learned`` is from the first pass."""

    def scores() -> ValidationResult | None:
        n_rows, result = core.score(task, begun, [batch], levels=intervals)
        if learned is not None:
            before = files.loads_with_notes(learned)[1][core.ROWS]
        else:  # no rows, or none that is learned
            before = n_rows if result is None else 0
        if n_rows != before:
            raise TableError(UNSTABLE)
        return result

    return _try_task(scores)


def begin_after(begun: bytes, learned: bytes | None) -> bytes:
    """Return the model file with which the next partition begins."""
    if learned is None:
        return begun
    return files.dumps(core.continue_from(files.loads(begun), learned))


def merge_models(models: Sequence[bytes | Refused | None], first: int | None) -> Any:
    """Merge model files into one; ``first`` is the number of the first partition, of leaves."""
    return _merge_results(models, first, core.merge_contents)


def merge_results(results: Sequence[ValidationResult | Refused | None], first: int | None) -> Any:
    """Merge results into one."""
    return _merge_results(results, first, merged_results)


def name_partitions(results: Sequence[Any], first: int) -> list[Any]:
    """The same, but that what was refused says in which partition, the first being ``first``."""
    return [
        Refused(f"partition {first + place}: {one.message}") if isinstance(one, Refused) else one
        for place, one in enumerate(results)
    ]


def with_predictions(
    settings: Mapping[str, Any], used: dict[str, Any], part: Any, content: bytes
) -> Any:
    """A pandas data frame with predictions added; ``used`` are fields of the columns to read."""
    predictions = core.predict_batch(files.loads(content), batch_of_frame(part, used), **settings)
    added = predictions.to_pandas().set_index(part.index)
    return part.assign(**{name: added[name] for name in added.columns})


def prediction_rows(settings: Mapping[str, Any], X: Any, content: bytes) -> Any:
    """Predictions (n, k) of rows (n, p), labels left out."""
    predictions = core.predict_batch(files.loads(content), batch_of_arrays((), X), **settings)
    numbers = [predictions.column(name) for name in predictions.schema.names if name != "label"]
    return np.column_stack([values.to_numpy(zero_copy_only=False) for values in numbers])


def get_batch(batch: pa.RecordBatch) -> Any:
    """Return the batch itself."""
    return batch


def _merge_results(
    results: Sequence[Any], first: int | None, merge: Callable[[list[Any]], Any]
) -> Any:
    """Merge all results; return the first refusal, if there is one; None, if there is no result."""
    some = [
        one
        for one in (results if first is None else name_partitions(results, first))
        if one is not None
    ]
    refused = next((one for one in some if isinstance(one, Refused)), None)
    if refused is not None or not some:
        return refused
    return merge(some)


def _try_task(work: Callable[[], Any]) -> Any:
    result, error = core.try_task(work)
    return result if error is None else Refused(error)
