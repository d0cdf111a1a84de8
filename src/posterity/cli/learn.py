"""Verbs that learn: fit, update, unlearn, merge."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import click
from sklearn.base import is_classifier

from posterity.cli.evaluate import explain_no_rows_left, make_model, progress_bar
from posterity.cli.evaluate import notes as describe_reading
from posterity.cli.log_target import check_log_target, learning_logs
from posterity.cli.model_files import ModelFile, hold_model, read_model
from posterity.cli.outputs import check_place
from posterity.cli.reading import Reading, describe_format
from posterity.cli.tables import STANDARD_INPUT, name_input, table_path
from posterity.cli.wide import WideSettings, open_wide_table
from posterity.files import save
from posterity.io import ColumnMeans, TableStream
from posterity.io.learning import check_takes_offsets, name_columns
from posterity.io.reading import ROLES, ReadSettings
from posterity.io.targets import Target, TargetLabels, TargetNumbers


@dataclass(frozen=True, kw_only=True)
class FitSettings(WideSettings):
    """Options of fit, one field each."""

    output: str
    model: str
    prior_precision: float | str
    noise_precision: float | None
    noise: str
    forgetting: str
    no_intercept: bool
    quiet: bool
    log_target: bool = False


def fit(settings: FitSettings) -> None:
    """Learn a table."""
    check_place(settings.output)
    learner = make_model(settings)
    if settings.log_target:
        check_log_target(learner)
    check_takes_offsets(learner, settings)
    labels = is_classifier(learner)
    # The mean of a column of levels is a share of each: only columns of zeros and ones have these.
    how = {"drop_first": not settings.no_intercept, "whole": settings.missing != "mean"}
    with table_path(settings.file) as path:
        means = ColumnMeans()
        if settings.is_wide:
            whole = table = open_wide_table(settings, path, labels=labels)
        else:
            if settings.missing == "level":
                learner.set_params(missing="level")
            whole = settings.open(path, labels=labels, **{**how, "drop_first": False})
            table = settings.open(path, labels=labels, **how)
            if settings.missing in ("mean", "level"):
                table.fill_with(means)
        learn = learning_logs(learner.partial_fit) if settings.log_target else learner.partial_fit
        _learn_once(table, learner, learn, quiet=settings.quiet)
    if table.n_rows_read - table.n_before <= table.n_skipped:
        raise explain_no_rows_left(name_input(settings.file), table)
    notes = {**_make_notes(settings, table, whole), **_count_rows(means)}
    save(learner, settings.output, notes=notes)
    for note in describe_reading(table):
        _print_summary(f"note: {note}", settings.quiet)
    _print_summary(f"{_rows(table)} learned into {settings.output}", settings.quiet)


def _make_notes(settings: FitSettings, table: TableStream, whole: TableStream) -> dict[str, Any]:
    """Return notes for the other verbs: columns by their roles, and the levels left out."""
    names = table.feature_names
    written = describe_format(settings.text)
    roles = {role: getattr(settings, role) for role in ROLES}
    return {
        "target": settings.target,
        "missing": settings.missing,
        "columns": list(table.used_columns),
        "left_out": [name for name in whole.feature_names if name not in names],
        **{role: column for role, column in roles.items() if column is not None},
        **({"log_target": True} if settings.log_target else {}),
        **({"structure": settings.structure} if settings.is_wide else {}),
        **({"text": written} if written else {}),
    }


def update(
    model: str,
    file: str,
    *,
    target: str | None,
    output: str | None,
    missing: str | None,
    weight: str | None,
    time: str | None,
    offset: str | None,
    exposure: str | None,
    batch_rows: int,
    memory: str,
    quiet: bool,
    **written: Any,
) -> None:
    """Learn a table on top of what a model knows."""
    with _open_model(model, file, output, Reading(**written)) as kept:
        means = kept.means()
        policy = kept.missing(missing)
        reading = ReadSettings(
            batch_rows=batch_rows,
            memory=memory,
            missing=means if policy in ("mean", "level") else policy,
            weight=kept.noted("weight", weight),
            time=kept.noted("time", time),
            offset=kept.noted("offset", offset),
            exposure=kept.noted("exposure", exposure),
        )
        learn = _method(kept, "partial_fit")
        table = _read_file(kept, file, learn, kept.target(target), reading, quiet=quiet)
        notes = {**kept.notes, **_count_rows(means)}
        _write(kept, output, notes if output is None else {**notes, "target": kept.target(target)})
    _print_summary(f"{_rows(table)} learned into {output or model}", quiet)


def unlearn(
    model: str,
    file: str,
    *,
    target: str | None,
    output: str | None,
    missing: str | None,
    weight: str | None,
    offset: str | None,
    exposure: str | None,
    batch_rows: int,
    memory: str,
    quiet: bool,
    **written: Any,
) -> None:
    """Take the rows of a table back."""
    with _open_model(model, file, output, Reading(**written)) as kept:
        # Means so far were those of the rows before: what was filled in then can't be known now.
        policy: Any = missing or ("skip" if kept.missing(None) == "skip" else "error")
        reading = ReadSettings(
            batch_rows=batch_rows,
            memory=memory,
            missing=policy,
            weight=kept.noted("weight", weight),
            offset=kept.noted("offset", offset),
            exposure=kept.noted("exposure", exposure),
        )
        forget = _method(kept, "unlearn")
        table = _read_file(kept, file, forget, kept.target(target), reading, quiet=quiet)
        notes = dict(kept.notes)
        _write(kept, output, notes if output is None else {**notes, "target": kept.target(target)})
    _print_summary(f"{_rows(table)} taken out of {output or model}", quiet)


def merge(models: tuple[str, ...], output: str, *, quiet: bool) -> None:
    """Merge models into one that has learned all their rows."""
    if len(models) < 2:
        raise ValueError("give two model files or more to merge")
    places = [os.path.realpath(path) for path in models]
    twice = [path for i, path in enumerate(models) if places[i] in places[:i]]
    if twice:
        raise ValueError(f"{twice[0]} is given twice, so its rows would count twice: give it once")
    check_place(output)
    first, *others = [read_model(path) for path in models]
    join, means = _method(first, "merge"), first.means()
    for other in others:
        _check_alike(first, other)
        try:
            join(other.model)
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{other.path} can't join {first.path}: {error}") from error
        means.merge(other.means())
    save(first.model, output, notes={**first.notes, **_count_rows(means)})
    _print_summary(f"{len(models)} models merged into {output}", quiet)


# ---- inner ---------------------------------------------------------------------------------------


@contextmanager
def _open_model(model: str, file: str, output: str | None, given: Reading) -> Iterator[ModelFile]:
    """A model to learn; one that is replaced is held until then, so that nobody else's rows go."""
    if model == STANDARD_INPUT and output is None:
        raise ValueError("MODEL comes from standard input, which can't be replaced: give --output")
    if output is not None:
        check_place(output)
    with hold_model(model) if output is None else nullcontext():
        yield read_model(model, file, given)


def _read_file(
    kept: ModelFile,
    file: str,
    learn: Callable[..., object],
    column: str,
    reading: ReadSettings,
    *,
    quiet: bool,
) -> TableStream:
    """Give a table to a method of the model."""
    check_takes_offsets(kept.model, reading)
    goal: Target = TargetLabels(column) if is_classifier(kept.model) else TargetNumbers(column)
    with table_path(file) as path:
        table = kept.open(path, goal, reading, learns=True)
        logged = kept.notes.get("log_target") is True
        _learn_once(table, kept.model, learning_logs(learn) if logged else learn, quiet=quiet)
    for note in kept.describe_reading(table):
        _print_summary(f"note: {note}", quiet)
    return table


def _write(kept: ModelFile, output: str | None, notes: Mapping[str, Any]) -> None:
    if output is None:
        kept.replace(notes)
    else:
        save(kept.model, output, notes=notes)


def _count_rows(means: ColumnMeans) -> dict[str, Any]:
    tallies = means.get_sums()
    return {"means": tallies} if tallies else {}


def _learn_once(
    table: TableStream, model: Any, learn: Callable[..., object], *, quiet: bool
) -> None:
    with progress_bar(table, shown=not quiet and sys.stderr.isatty()) as advance:
        for rows in table.batches():
            X = name_columns(rows.X, table.feature_names, model, table.whole_categories)
            learn(X, rows.y, **rows.keywords())
            if advance is not None:
                advance(table.n_rows_read)


def _method(kept: ModelFile, name: str) -> Callable[..., object]:
    method = getattr(kept.model, name, None)
    if method is None:
        verb = {"partial_fit": "update", "unlearn": "unlearn"}.get(name, name)
        raise ValueError(f"{kept.path} holds a {type(kept.model).__name__}, which can't {verb}")
    found: Callable[..., object] = method
    return found


def _check_alike(first: ModelFile, other: ModelFile) -> None:
    kinds = [type(kept.model).__name__ for kept in (first, other)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"{first.path} holds a {kinds[0]} and {other.path} a {kinds[1]}: only models of one "
            "kind can be merged"
        )
    shared = {
        "target": "target", "level left out": "left_out", "--log-target": "log_target",
        "offset": "offset", "exposure": "exposure",
    }  # fmt: skip
    for what, name in shared.items():
        theirs = [kept.notes.get(name) for kept in (first, other)]
        if theirs[0] != theirs[1]:
            raise ValueError(
                f"{first.path} and {other.path} differ in their {what}, {theirs[0]!r} and "
                f"{theirs[1]!r}: only models with the same settings can be merged"
            )


def _rows(table: TableStream) -> str:
    n = table.n_rows_read - table.n_skipped - min(table.n_before, table.n_rows_read)
    return f"{n:,} row{'' if n == 1 else 's'}"


def _print_summary(words: str, quiet: bool) -> None:
    if not quiet:
        click.echo(words, err=True)
