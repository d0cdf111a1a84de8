"""Verbs that learn: fit, update, unlearn, merge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import click
from sklearn.base import is_classifier

from posterity.aliases import Document, Estimator
from posterity.cli.evaluate import explain_no_rows_left, make_model, progress_bar
from posterity.cli.evaluate import notes as describe_reading
from posterity.cli.formula import learning_rows, make_formula_model, open_formula_table
from posterity.cli.log_target import check_log_target, learning_logs
from posterity.cli.model_files import FileSettings, ModelFile, hold_model, read_model
from posterity.cli.outputs import check_place
from posterity.cli.reading import describe_format
from posterity.cli.tables import STANDARD_INPUT, name_input, table_path
from posterity.cli.text import print_notes
from posterity.cli.wide import ModelSettings, open_wide_table
from posterity.evaluation._batches import locate_rows, note_refusals
from posterity.files import save
from posterity.io import ColumnMeans, TableStream
from posterity.io.learning import check_takes_offsets, name_columns
from posterity.io.reading import ROLES, ReadSettings, take
from posterity.io.targets import make_target


@dataclass(frozen=True, kw_only=True)
class FitSettings(ModelSettings):
    """Options of fit, one field each."""

    formula: str | None
    output: str


def fit(settings: FitSettings) -> None:
    """Learn a table."""
    check_place(settings.output)
    formula = settings.formula
    learner = (
        make_model(settings)
        if formula is None
        else make_formula_model(formula, settings.model, settings.forgetting)
    )
    if settings.log_target:
        check_log_target(learner)
    check_takes_offsets(learner, settings)
    labels = is_classifier(learner)
    # The mean of a column of levels is a share of each: only columns of zeros and ones have these.
    how = {"drop_first": not settings.no_intercept, "whole": settings.missing != "mean"}
    with table_path(settings.file) as path:
        means = ColumnMeans()
        table: TableStream
        whole: TableStream
        if formula is not None:
            reading = ReadSettings(**take(settings, "batch_rows", "memory", "missing", *ROLES))
            whole = table = open_formula_table(learner, path, reading, settings.text, learns=True)
        elif settings.is_wide:
            whole = table = open_wide_table(settings, path, labels=labels)
        else:
            if settings.missing == "level":
                learner.set_params(missing="level")
            whole = settings.open(path, labels=labels, **{**how, "drop_first": False})
            table = settings.open(path, labels=labels, **how)
            if settings.missing in ("mean", "level"):
                table.fill_with(means)
        learn = learner.partial_fit if formula is None else learning_rows(learner.partial_fit)
        learn = learning_logs(learn) if settings.log_target else learn
        _learn_once(table, learner, learn, quiet=settings.quiet)
    if table.n_rows_read - table.n_before <= table.n_skipped:
        raise explain_no_rows_left(name_input(settings.file), table)
    notes = {**_make_notes(settings, table, whole), **_count_rows(means)}
    save(learner, settings.output, notes=notes)
    print_notes(describe_reading(table), quiet=settings.quiet)
    _print_summary(f"{_rows(table)} learned into {settings.output}", settings.quiet)


def _make_notes(settings: FitSettings, table: TableStream, whole: TableStream) -> Document:
    """Return notes for the other verbs: columns by their roles, and the levels left out."""
    names = table.feature_names
    written = describe_format(settings.text)
    return {
        "target": settings.target,
        "missing": settings.missing,
        **({"columns": list(table.used_columns)} if settings.formula is None else {}),
        "left_out": [name for name in whole.feature_names if name not in names],
        **{role: column for role, column in take(settings, *ROLES).items() if column is not None},
        **({"log_target": True} if settings.log_target else {}),
        **({"structure": settings.structure} if settings.is_wide else {}),
        **({"text": written} if written else {}),
    }


def update(settings: FileSettings) -> None:
    """Learn a table on top of what a model knows."""
    with _open_model(settings) as kept:
        means = kept.means()
        policy: Any = kept.missing(settings.missing)
        if policy in ("mean", "level"):
            policy = means
        table = _read_file(kept, settings, "partial_fit", kept.choose_reading(settings, policy))
        _write(kept, settings, {**kept.notes, **_count_rows(means)})
    _print_summary(f"{_rows(table)} learned into {settings.place}", settings.quiet)


def unlearn(settings: FileSettings) -> None:
    """Take the rows of a table back."""
    with _open_model(settings) as kept:
        # Means so far were those of the rows before: what was filled in then can't be known now.
        policy = settings.missing or ("skip" if kept.missing(None) == "skip" else "error")
        reading = replace(kept.choose_reading(settings, policy), time=None)
        table = _read_file(kept, settings, "unlearn", reading)
        _write(kept, settings, dict(kept.notes))
    _print_summary(f"{_rows(table)} taken out of {settings.place}", settings.quiet)


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
def _open_model(settings: FileSettings) -> Iterator[ModelFile]:
    """A model to learn; one that is replaced is held until then, so that nobody else's rows go."""
    model, output = settings.model, settings.output
    if model == STANDARD_INPUT and output is None:
        raise ValueError("MODEL comes from standard input, which can't be replaced: give --output")
    if output is not None:
        check_place(output)
    with hold_model(model) if output is None else nullcontext():
        yield read_model(model, settings.file, settings)


def _read_file(
    kept: ModelFile, settings: FileSettings, method: str, reading: ReadSettings
) -> TableStream:
    """Give a table to a method of the model."""
    learn, column = _method(kept, method), kept.target(settings.target)
    check_takes_offsets(kept.model, reading)
    goal = make_target(column, labels=is_classifier(kept.model))
    learn = learning_rows(learn) if kept.has_formula else learn
    with table_path(settings.file) as path:
        table = kept.open(path, goal, reading, learns=True)
        learn = learning_logs(learn) if kept.is_logged else learn
        _learn_once(table, kept.model, learn, quiet=settings.quiet)
    print_notes(kept.describe_reading(table), quiet=settings.quiet)
    return table


def _write(kept: ModelFile, settings: FileSettings, notes: Document) -> None:
    if settings.output is None:
        kept.replace(notes)
    else:
        target = kept.target(settings.target)
        save(kept.model, settings.output, notes={**notes, "target": target})


def _count_rows(means: ColumnMeans) -> Document:
    tallies = means.get_sums()
    return {"means": tallies} if tallies else {}


def _learn_once(
    table: TableStream, model: Estimator, learn: Callable[..., object], *, quiet: bool
) -> None:
    n_learned = 0
    with progress_bar(table, quiet=quiet) as advance:
        for rows in table.batches():
            X = name_columns(rows.X, table.feature_names, model, table.whole_categories)
            with note_refusals(locate_rows(n_learned, len(rows.y))):
                learn(X, rows.y, **rows.keywords())
            n_learned += len(rows.y)
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
