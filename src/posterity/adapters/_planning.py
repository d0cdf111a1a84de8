"""Planning before partitions are learned apart: all of them need the same features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier

from posterity import files
from posterity.adapters._keyed import get_key_columns
from posterity.adapters._survey import Answers, Questions, merge_answers
from posterity.io import ColumnMeans
from posterity.io.arrow import pa
from posterity.io.columns import Dates, Encoding, make_encoders, require, select_columns
from posterity.io.encoders import Encoder
from posterity.io.errors import TableError
from posterity.io.learning import check_takes_offsets
from posterity.io.missing import Missing
from posterity.io.reading import BATCH_ROWS, ColumnsBeside, ReadSettings, take
from posterity.io.tables import describe_table
from posterity.io.targets import make_target
from posterity.kernel.values import is_word
from posterity.linear.named import list_feature_names


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Columns of a table to use, and how: the parameters of `posterity.io.learn_stream`.

    ``missing="mean"`` fills in the means over the whole table, so that the order of rows and of
    partitions makes no difference; one machine's, of the rows before, depends on it.
    """

    target: str
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    weight: str | None = None
    offset: str | None = None
    exposure: str | None = None
    missing: Missing = "error"
    dates: Dates = "error"
    levels: Mapping[str, Sequence[str]] | None = None
    batch_rows: int = BATCH_ROWS

    def __post_init__(self) -> None:
        for name, value in (("dates", self.dates), ("missing", self.missing)):
            if is_word(value, "calendar", "level"):
                raise ValueError(
                    f'{name}="{value}" depends on the first rows of a table, which partitions do '
                    "not have: compute these columns beforehand"
                )


class ColumnChoice(TypedDict, total=False):
    """The same as keywords, the target apart."""

    features: Sequence[str] | None
    drop: Sequence[str]
    weight: str | None
    offset: str | None
    exposure: str | None
    missing: Missing
    dates: Dates
    levels: Mapping[str, Sequence[str]] | None


@dataclass(frozen=True)
class Task:
    """All that a worker needs to learn a partition. Made by `plan`; pickles.

    Attributes
    ----------
    model : bytes
        Model file of the estimator, which has learned nothing.
    names : tuple of str
        Features, "size" or "zone=b", so that every partition has the same.
    target : str
    reading : ReadSettings
        Weights and offsets, and fixed means where missing values are filled in.
    classes : tuple
        Labels of a classifier.
    by : tuple of str
        Key columns of a model of groups.
    """

    model: bytes
    names: tuple[str, ...]
    target: str
    reading: ReadSettings
    classes: tuple[Any, ...] = ()
    by: tuple[str, ...] = ()

    def columns(self, present: Iterable[str]) -> list[str]:
        """Return those of the columns ``present`` that the task reads, in their order."""
        needed = {self.target, *self.reading.other_columns, *self.by}
        features = set(self.names)
        stems = {name[:i] for name in self.names for i, mark in enumerate(name) if mark == "="}
        return [name for name in present if name in needed or name in features or name in stems]


def check_model(model: BaseEstimator) -> None:
    """Refuse models whose partitions can't be merged: ``TypeError`` or ``ValueError`` says why."""
    kind = type(model).__name__
    for needed in ("partial_fit", "merge"):
        if not hasattr(model, needed):
            raise TypeError(
                f"{kind} can't be learned in partitions: it has no {needed}; learn its rows on one "
                "machine with posterity.io.learn_stream"
            )
    if getattr(model, "forgetting", None) is not None:
        raise ValueError(
            f"{kind} has forgetting={model.forgetting!r}, which depends on the order of the "
            "rows, and partitions have no order: leave it out, or learn on one machine with "
            "posterity.io.learn_stream"
        )


def questions(model: BaseEstimator, schema: pa.Schema, columns: Columns) -> Questions:
    """Return the questions to ask of the whole table; none without ``columns``.

    Raises
    ------
    TableError
        For columns that are not there or of a wrong type.
    TypeError, ValueError
        As `check_model`.
    """
    check_model(model)
    check_takes_offsets(model, columns)
    require(get_key_columns(model), list(schema.names), "key")
    goal = make_target(columns.target, labels=is_classifier(model))
    goal.check(describe_table(schema))
    ColumnsBeside(_reading(columns)).check(describe_table(schema), goal.columns)
    classless = is_classifier(model) and not hasattr(model, "classes_")
    labels = columns.target if classless else None
    if list_feature_names(model):
        if columns.features is not None or columns.drop:
            raise TableError(
                "the model has learned its features by name already: leave out features and drop"
            )
        if fills_with_means(columns.missing):
            raise TableError(
                "the model has learned rows already: give the means that were used then, as in "
                "missing={'age': 31.2}, or the fixed ones of a posterity.io.ColumnMeans"
            )
        if _lacks_domain(model):
            raise TableError(
                "the domain of the model's basis comes from its first rows, and partitions need "
                "the same domain: give the basis a domain=(low, high) before anything is learned"
            )
        return Questions(labels=labels)
    chosen = _choose_columns(schema, columns, get_key_columns(model))
    words = {one.column for one in _encoders(schema, chosen, columns, None) if one.is_category}
    averages = fills_with_means(columns.missing)
    open_words = words if averages else words.difference(columns.levels or {})
    return Questions(
        tuple(name for name in chosen if name in open_words),
        tuple(name for name in chosen if name not in words and (averages or _lacks_domain(model))),
        labels,
    )


def plan(
    model: BaseEstimator, schema: pa.Schema, columns: Columns, surveys: Iterable[str] = ()
) -> Task:
    """The task of every partition, from the surveys of all partitions.

    Parameters
    ----------
    model : estimator
        What it knows is left out: partitions are learned from the prior, which counts once.
    schema : Arrow schema of the table
    columns : Columns
    surveys : iterable of str
        What `survey` found in each partition, where there were `questions`.

    Raises
    ------
    TableError, TypeError, ValueError
        As `questions`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.adapters._survey import survey
    >>> rides = pa.table({"km": [1.0, 2.0, 3.0, 4.0], "zone": list("abab"), "fare": [3.0, 6, 7, 9]})
    >>> model, columns = BayesianLinearRegression(), Columns(target="fare")
    >>> asked = questions(model, rides.schema, columns)
    >>> parts = [rides[:1].to_batches(), rides[1:].to_batches()]
    >>> task = plan(model, rides.schema, columns, [survey(asked, part) for part in parts])
    >>> task.names
    ('km', 'zone=b')
    """
    asked, found = questions(model, schema, columns), merge_answers(surveys)
    classes = tuple(model.classes_.tolist()) if hasattr(model, "classes_") else tuple(found.labels)
    fresh, by = clone(model), get_key_columns(model)
    if list_feature_names(model):
        names = tuple(map(str, list_feature_names(model)))
        return Task(files.dumps(fresh), names, columns.target, _reading(columns), classes, by)
    chosen = _choose_columns(schema, columns, by)
    empty = [name for name in asked.levels if not found.levels.get(name)]
    if empty and empty[0] not in (columns.levels or {}):
        raise TableError(
            f"column {empty[0]!r} has no values, or the table has no rows: drop the column, or "
            "give a table with rows"
        )
    encoders = _encoders(schema, chosen, columns, found)
    names = tuple(name for one in encoders for name in one.names)
    reading = replace(_reading(columns), missing=_fix_missing(columns.missing, encoders, found))
    if _lacks_domain(fresh):
        ranges = [
            (0.0, 1.0) if one.is_category else found.get_range(one.column)
            for one in encoders
            for _ in one.names
        ]
        fresh.basis = clone(fresh.basis).set_params(domain=np.array(ranges))
    return Task(files.dumps(fresh), names, columns.target, reading, classes, by)


def fills_with_means(missing: Missing) -> bool:
    """Return True if missing values are filled in with means that are still to be found."""
    return isinstance(missing, ColumnMeans) or is_word(missing, "mean")


# ---- inner ---------------------------------------------------------------------------------------


def _reading(columns: Columns) -> ReadSettings:
    return ReadSettings(**take(columns, "batch_rows", "missing", "weight", "offset", "exposure"))


def _choose_columns(schema: pa.Schema, columns: Columns, by: tuple[str, ...]) -> list[str]:
    other_columns = (*_reading(columns).other_columns, *by)
    features = None if columns.features is None else list(columns.features)
    source = describe_table(schema)
    return select_columns(
        source, make_target(columns.target).columns, features, list(columns.drop), other_columns
    )


def _encoders(
    schema: pa.Schema, chosen: list[str], columns: Columns, found: Answers | None
) -> tuple[Encoder, ...]:
    """Encoders by the levels given and found; by two made up ones to see which are categories."""
    given = {name: list(map(str, levels)) for name, levels in (columns.levels or {}).items()}
    made_up = {name: ["a", "b"] for name in chosen}
    known = made_up if found is None else {name: list(one) for name, one in found.levels.items()}
    how = Encoding(dates=columns.dates, levels=known | given)
    return make_encoders(describe_table(schema), chosen, None, how)


def _fix_missing(missing: Missing, encoders: Sequence[Encoder], found: Answers) -> Missing:
    """Missing values filled in with means over all partitions, which a ``ColumnMeans`` keeps."""
    if not fills_with_means(missing):
        return missing
    means = missing if isinstance(missing, ColumnMeans) else ColumnMeans()
    for one in encoders:
        if one.is_category:
            counts = found.levels.get(one.column, {})
            sums = [float(counts.get(name[len(one.column) + 1 :], 0)) for name in one.names]
            seen = float(sum(counts.values()))
        else:
            sums, seen = found.numbers[one.column][:1], found.numbers[one.column][1]
        means.add(one.names, np.array(sums), np.full(len(sums), seen))
    return means.fixed


def _lacks_domain(model: BaseEstimator) -> bool:
    """Return True if a basis would take its domain from the first rows."""
    basis = getattr(model, "basis", None)
    return basis is not None and getattr(basis, "domain", ()) is None
