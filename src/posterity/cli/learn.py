"""Verbs that learn: fit, update, unlearn, merge."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import click
from sklearn.base import is_classifier

from posterity.cli.evaluate import notes as notes_on
from posterity.cli.evaluate import progress_bar
from posterity.cli.forgetting import parse
from posterity.cli.model_files import (
    STANDARD_INPUT,
    ModelFile,
    check_place,
    read_model,
    table_path,
)
from posterity.files import save
from posterity.io import TableStream, open_table
from posterity.io.columns import chosen_columns
from posterity.io.learning import named
from posterity.io.sources import open_source
from posterity.io.targets import Target, TargetLabels, TargetNumbers


def fit(
    file: str,
    output: str,
    *,
    target: str,
    prior_precision: float | str,
    noise_precision: float | None,
    forgetting: str,
    no_intercept: bool,
    missing: Any,
    quiet: bool,
    **reading: Any,
) -> None:
    """Learn a table; ``reading`` are the options of ``open_table``."""
    from posterity import BayesianLinearRegression

    check_place(output)
    model = BayesianLinearRegression(
        prior_precision=prior_precision,
        noise_precision=noise_precision,
        fit_intercept=not no_intercept,
        forgetting=parse(forgetting),
    )
    with table_path(file) as path:
        table = open_table(path, target, missing=missing, drop_first=not no_intercept, **reading)
        notes = {"target": target, "missing": missing, **_schema(path, table, target, **reading)}
        _pass(table, model.partial_fit, quiet=quiet)
    if not hasattr(model, "feature_names_in_"):
        raise ValueError(f"{_called(file)} has no row without a missing value: nothing was learned")
    save(model, output, notes=notes)
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
    batch_rows: int,
    quiet: bool,
) -> None:
    """Learn a table on top of what a model knows."""
    kept = _read(model, file, output)
    policy = kept.missing(missing)
    learn = _method(kept, "partial_fit")
    table = _learn_rows(kept, file, learn, (target, output, policy, batch_rows, quiet))
    _say(f"{_rows(table)} learned into {output or model}", quiet)


def unlearn(
    model: str,
    file: str,
    *,
    target: str | None,
    output: str | None,
    missing: str | None,
    batch_rows: int,
    quiet: bool,
) -> None:
    """Take the rows of a table back."""
    kept = _read(model, file, output)
    # Means so far were those of the rows before: what was filled in then can't be known now.
    policy = missing or ("skip" if kept.missing(None) == "skip" else "error")
    forget = _method(kept, "unlearn")
    table = _learn_rows(kept, file, forget, (target, output, policy, batch_rows, quiet))
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
    join = _method(first, "merge")
    for other in others:
        _check_alike(first, other)
        try:
            join(other.model)
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{other.path} can't join {first.path}: {error}") from error
    save(first.model, output, notes=first.notes)
    _say(f"{len(models)} models merged into {output}", quiet)


# ---- inner ---------------------------------------------------------------------------------------


def _read(model: str, file: str, output: str | None) -> ModelFile:
    if model == STANDARD_INPUT and output is None:
        raise ValueError("MODEL is standard input, which can't be replaced: give --output")
    kept = read_model(model, file)
    check_place(output or model)
    return kept


def _learn_rows(
    kept: ModelFile,
    file: str,
    learn: Callable[[Any, Any], object],
    how: tuple[str | None, str | None, Any, int, bool],
) -> TableStream:
    """Give a table to a method of the model, then write the model."""
    target, output, missing, batch_rows, quiet = how
    column = kept.target(target)
    goal: Target = TargetLabels(column) if is_classifier(kept.model) else TargetNumbers(column)
    with table_path(file) as path:
        table = kept.open(path, goal, batch_rows, missing)
        _pass(table, learn, quiet=quiet)
    for note in kept.notes_on(table):
        _say(f"note: {note}", quiet)
    if output is None:
        kept.replace()
    else:
        save(kept.model, output, notes={**kept.notes, "target": column})
    return table


def _pass(table: TableStream, learn: Callable[[Any, Any], object], *, quiet: bool) -> None:
    with progress_bar(table, shown=not quiet and sys.stderr.isatty()) as advance:
        for X, y in table:
            learn(named(X, table.feature_names), y)
            if advance is not None:
                advance(table.n_rows_read)


def _schema(path: str, table: TableStream, target: str, **reading: Any) -> dict[str, Any]:
    """Columns that features come from, and the levels that were left out, as ``zone=a``."""
    whole = open_table(path, target, drop_first=False, **reading).feature_names
    columns = chosen_columns(open_source(path).schema, target, reading["features"], reading["drop"])
    names = table.feature_names
    used = [
        column
        for column in columns
        if any(name == column or name.startswith(f"{column}=") for name in names)
    ]
    return {"columns": used, "left_out": [name for name in whole if name not in names]}


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


def _called(file: str) -> str:
    return "standard input" if file == "-" else file


def _say(words: str, quiet: bool) -> None:
    if not quiet:
        click.echo(words, err=True)
