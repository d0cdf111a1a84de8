"""Predictions of the rows of a table, as CSV, Parquet or Arrow."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from sklearn.base import is_classifier

from posterity.cli.evaluate import explain_no_rows_left, progress_bar
from posterity.cli.formula import SHARES, predict_shares
from posterity.cli.log_target import DistributionOfExp
from posterity.cli.model_files import FileSettings, ModelFile, read_model
from posterity.cli.outputs import check_place
from posterity.cli.tables import name_input, table_path
from posterity.cli.text import print_notes
from posterity.files.writing import is_special, replace_atomically
from posterity.io.containers import make_container
from posterity.io.learning import check_takes_offsets, name_columns

Write = Callable[[pa.RecordBatch], None]


@dataclass(frozen=True, kw_only=True)
class Settings(FileSettings):
    """Options of the verb, one field each."""

    level: float
    quantiles: tuple[float, ...]
    above: tuple[float, ...]
    keep: tuple[str, ...]


def run(settings: Settings) -> None:
    """Read, predict, write, batch by batch."""
    opened = open_writer(settings.output)
    kept = read_model(settings.model, settings.file, settings)
    names = kept.feature_names
    wrapped = make_container(None, "arrow")
    with table_path(settings.file) as path:
        policy: Any = kept.missing(settings.missing)
        if policy in ("mean", "level"):
            policy = kept.means().fixed or policy  # the means in FILE, where none were learned
        roles = kept.choose_reading(settings, policy)
        reading = replace(roles, weight=None, time=None, keep=settings.keep)
        check_takes_offsets(kept.model, reading)
        table = kept.open(path, None, reading)
        quiet = settings.quiet or settings.output is None
        with opened() as write, progress_bar(table, quiet=quiet) as advance:
            for rows in table.batches():
                X = name_columns(rows.X, names, kept.model)
                predictions = wrapped(rows.y, _columns(kept, settings, X, rows.keywords()))
                write(_add_kept_columns(predictions, rows.other_columns))
                if advance is not None:
                    advance(table.n_rows_read)
            if table.n_rows_read - table.n_before <= table.n_skipped:
                raise explain_no_rows_left(name_input(settings.file), table, learning=False)
    print_notes(kept.describe_reading(table), quiet=settings.quiet)


def _add_kept_columns(predictions: pa.RecordBatch, kept: pa.RecordBatch | None) -> pa.RecordBatch:
    """Predictions behind the number of the row and the columns that are kept."""
    if kept is None:
        return predictions
    twice = [name for name in kept.schema.names if name in predictions.schema.names]
    if twice:
        raise ValueError(f"--keep {twice[0]}: predictions have a column of that name; rename it")
    names = [predictions.schema.names[0], *kept.schema.names, *predictions.schema.names[1:]]
    words = [
        values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        for values in kept.columns
    ]
    return pa.RecordBatch.from_arrays(
        [predictions.column(0), *words, *predictions.columns[1:]], names=names
    )


def _columns(kept: ModelFile, settings: Settings, X: Any, added: dict[str, Any]) -> dict[str, Any]:
    model, logged = kept.model, kept.is_logged
    if kept.has_formula and model.likelihood in SHARES:
        return predict_shares(model, X, settings.level)
    if is_classifier(model):
        shares = model.predict_proba(X)
        predictions = {"label": model.classes_[np.argmax(shares, axis=1)]}
        return predictions | {f"p={label}": shares[:, i] for i, label in enumerate(model.classes_)}
    distribution = model.predict_distribution(X, **added)
    if logged:
        distribution = DistributionOfExp(distribution)
    lower, upper = distribution.interval(settings.level)
    centre = {"mean": distribution.mean(), "std": distribution.std()}
    if logged:
        centre = {"median": distribution.median()}
    predictions = {**centre, "lower": lower, "upper": upper}
    predictions |= {f"q{q:g}": np.asarray(distribution.ppf(q)) for q in settings.quantiles}
    return predictions | {f"above{t:g}": np.asarray(distribution.sf(t)) for t in settings.above}


def open_writer(output: str | None) -> Any:
    """Return the function that opens the output, by the ending of its name."""
    if output is None:
        return lambda: _write_csv(sys.stdout.buffer)
    path = check_place(output)
    kinds = {
        ".csv": _write_csv, ".parquet": _parquet, ".pq": _parquet,
        ".arrow": _arrow, ".feather": _arrow,
    }  # fmt: skip
    kind = kinds.get(path.suffix.lower(), _write_csv if is_special(path) else None)
    if kind is None:
        raise ValueError(f"{output}: unknown ending; use one of {', '.join(kinds)}")

    @contextmanager
    def opened() -> Iterator[Write]:
        with replace_atomically(path) as file, kind(file) as write:
            yield write

    return opened


@contextmanager
def _write_csv(file: IO[bytes]) -> Iterator[Write]:
    header: list[str] = []

    def write(batch: pa.RecordBatch) -> None:
        if not header:
            header.extend(batch.schema.names)
            line = io.StringIO()
            csv.writer(line, lineterminator="\n").writerow(header)
            file.write(line.getvalue().encode())
        # By way of memory: a pipe that closes is then Python's own error, not Arrow's.
        lines = io.BytesIO()
        pc.write_csv(batch, lines, pc.WriteOptions(include_header=False))
        file.write(lines.getvalue())

    yield write


@contextmanager
def _parquet(file: IO[bytes]) -> Iterator[Write]:
    writers: list[pq.ParquetWriter] = []

    def write(batch: pa.RecordBatch) -> None:
        if not writers:
            writers.append(pq.ParquetWriter(file, batch.schema))
        writers[0].write_batch(batch)

    yield write
    for writer in writers:
        writer.close()


@contextmanager
def _arrow(file: IO[bytes]) -> Iterator[Write]:
    writers: list[Any] = []

    def write(batch: pa.RecordBatch) -> None:
        if not writers:
            writers.append(pa.ipc.new_file(file, batch.schema))
        writers[0].write_batch(batch)

    yield write
    for writer in writers:
        writer.close()
