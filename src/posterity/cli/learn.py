"""Verbs that learn: fit, update, unlearn, merge."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click
from sklearn.base import is_classifier

from posterity.cli.evaluate import notes as notes_on
from posterity.cli.evaluate import progress_bar
from posterity.cli.forgetting import parse
from posterity.cli.model_files import ModelFile, check_place, read_model
from posterity.cli.models import build, parse_one
from posterity.cli.tables import STANDARD_INPUT, called, table_path
from posterity.files import save
from posterity.io import ColumnMeans, TableStream, open_table
from posterity.io.columns import chosen_columns
from posterity.io.folders import open_source
from posterity.io.learning import named
from posterity.io.reading import Reading
from posterity.io.targets import Target, TargetLabels, TargetNumbers


def fit(
    file: str,
    output: str,
    *,
    target: str,
    model: str,
    prior_precision: float | str,
    noise_precision: float | None,
    noise: str,
    forgetting: str,
    no_intercept: bool,
    missing: Any,
    categories: Mapping[str, tuple[str, ...]],
    quiet: bool,
    **reading: Any,
) -> None:
    """Learn a table; ``reading`` are the other options of ``open_table``."""
    check_place(output)
    learner = build(
        parse_one(model),
        prior_precision=prior_precision,
        noise_precision=noise_precision,
        noise=noise,
        fit_intercept=not no_intercept,
        forgetting=parse(forgetting),
    )
    reading |= {"levels": categories, "labels": is_classifier(learner)}
    with table_path(file) as path:
        means = ColumnMeans()
        policy = means if missing == "mean" else missing
        table = open_table(path, target, missing=policy, drop_first=not no_intercept, **reading)
        notes = {"target": target, "missing": missing, **_schema(path, table, target, **reading)}
        _pass(table, learner, learner.partial_fit, quiet=quiet)
    if not hasattr(learner, "feature_names_in_"):
        raise ValueError(f"{called(file)} has no row without a missing value: nothing was learned")
    save(learner, output, notes={**notes, **_tallied(means)})
    for note in notes_on(table):
        _say(f"note: {note}", quiet)
    _say(f"{_rows(table)} learned into {output}", quiet)


def update(
    model: str,
    file: str,
    *,
    target: str | None,
    output: str | None,
    missing: str | None,
    weight: str | None,
    time: str | None,
    batch_rows: int,
    memory: str,
    quiet: bool,
) -> None:
    """Learn a table on top of what a model knows."""
    kept = _read(model, file, output)
    means = kept.means()
    policy = kept.missing(missing)
    reading = Reading(
        batch_rows=batch_rows,
        memory=memory,
        missing=means if policy == "mean" else policy,
        weight=kept.noted("weight", weight),
        time=kept.noted("time", time),
    )
    learn = _method(kept, "partial_fit")
    table = _pass_file(kept, file, learn, kept.target(target), reading, quiet=quiet)
    notes = {**kept.notes, **_tallied(means)}
    _write(kept, output, notes if output is None else {**notes, "target": kept.target(target)})
    _say(f"{_rows(table)} learned into {output or model}", quiet)


def unlearn(
    model: str,
    file: str,
    *,
    target: str | None,
    output: str | None,
    missing: str | None,
    weight: str | None,
    batch_rows: int,
    memory: str,
    quiet: bool,
) -> None:
    """Take the rows of a table back."""
    kept = _read(model, file, output)
    # Means so far were those of the rows before: what was filled in then can't be known now.
    policy: Any = missing or ("skip" if kept.missing(None) == "skip" else "error")
    weights = kept.noted("weight", weight)
    reading = Reading(batch_rows=batch_rows, memory=memory, missing=policy, weight=weights)
    forget = _method(kept, "unlearn")
    table = _pass_file(kept, file, forget, kept.target(target), reading, quiet=quiet)
    notes = dict(kept.notes)
    _write(kept, output, notes if output is None else {**notes, "target": kept.target(target)})
    _say(f"{_rows(table)} taken out of {output or model}", quiet)


def merge(models: tuple[str, ...], output: str, *, quiet: bool) -> None:
    """One model that has learned what all have."""
    if len(models) < 2:
        raise ValueError("give two model files or more to merge")
    places = [os.path.realpath(path) for path in models]
    twice = [path for i, path in enumerate(models) if places[i] in places[:i]]
    if twice:
        raise ValueError(f"{twice[0]} is given twice: its rows would count twice")
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
    save(first.model, output, notes={**first.notes, **_tallied(means)})
    _say(f"{len(models)} models merged into {output}", quiet)


# ---- inner ---------------------------------------------------------------------------------------


def _read(model: str, file: str, output: str | None) -> ModelFile:
    if model == STANDARD_INPUT and output is None:
        raise ValueError("MODEL is standard input, which can't be replaced: give --output")
    kept = read_model(model, file)
    check_place(output or model)
    return kept


def _pass_file(
    kept: ModelFile,
    file: str,
    learn: Callable[..., object],
    column: str,
    reading: Reading,
    *,
    quiet: bool,
) -> TableStream:
    """Give a table to a method of the model."""
    goal: Target = TargetLabels(column) if is_classifier(kept.model) else TargetNumbers(column)
    with table_path(file) as path:
        table = kept.open(path, goal, reading)
        _pass(table, kept.model, learn, quiet=quiet)
    for note in kept.notes_on(table):
        _say(f"note: {note}", quiet)
    return table


def _write(kept: ModelFile, output: str | None, notes: Mapping[str, Any]) -> None:
    if output is None:
        kept.replace(notes)
    else:
        save(kept.model, output, notes=notes)


def _tallied(means: ColumnMeans) -> dict[str, Any]:
    tallies = means.tallies()
    return {"means": tallies} if tallies else {}


def _pass(table: TableStream, model: Any, learn: Callable[..., object], *, quiet: bool) -> None:
    with progress_bar(table, shown=not quiet and sys.stderr.isatty()) as advance:
        for rows in table.batches():
            learn(named(rows.X, table.feature_names, model), rows.y, **rows.keywords())
            if advance is not None:
                advance(table.n_rows_read)


def _schema(path: str, table: TableStream, target: str, **reading: Any) -> dict[str, Any]:
    """Columns by their roles, and the levels that were left out, as ``zone=a``."""
    whole = open_table(path, target, drop_first=False, **reading).feature_names
    beside = {role: reading[role] for role in ("weight", "time") if reading[role] is not None}
    columns = chosen_columns(
        open_source(path).schema, target, reading["features"], reading["drop"], beside.values()
    )
    names = table.feature_names
    used = [
        column
        for column in columns
        if any(name == column or name.startswith(f"{column}=") for name in names)
    ]
    left_out = [name for name in whole if name not in names]
    return {"columns": used, "left_out": left_out, **beside}


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
    for what, name in (("target", "target"), ("level left out", "left_out")):
        theirs = [kept.notes.get(name) for kept in (first, other)]
        if theirs[0] != theirs[1]:
            raise ValueError(
                f"{first.path} and {other.path} differ in their {what}, {theirs[0]!r} and "
                f"{theirs[1]!r}: only models fitted alike can be merged"
            )


def _rows(table: TableStream) -> str:
    n = table.n_rows_read - table.n_skipped
    return f"{n:,} row{'' if n == 1 else 's'}"


def _say(words: str, quiet: bool) -> None:
    if not quiet:
        click.echo(words, err=True)
