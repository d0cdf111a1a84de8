"""Model files as the verbs read and write them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import IO, Any

import click

from posterity.aliases import Document, Estimator
from posterity.cli.evaluate import notes as describe_reading
from posterity.cli.formula import open_formula_table
from posterity.cli.reading import Reading
from posterity.cli.tables import STANDARD_INPUT, standard_input
from posterity.files import load_with_notes, loads_with_notes, save
from posterity.io import ColumnMeans, TableStream, TextFormat
from posterity.io.columns import require
from posterity.io.learning import get_categories
from posterity.io.missing import WAYS
from posterity.io.reading import ROLES, ReadSettings
from posterity.io.table import open_any, open_rows
from posterity.io.targets import Target
from posterity.io.wide import open_wide
from posterity.linear.named import get_feature_names
from posterity.model import Model
from posterity.model.formula import read_formula

fcntl: Any = None
with suppress(ImportError):  # POSIX systems have it
    fcntl = import_module("fcntl")


@dataclass(frozen=True, kw_only=True)
class FileSettings(Reading):
    """Options of verbs that use a model file, one field each; None is as in fit."""

    model: str
    file: str
    output: str | None
    target: str | None = None
    missing: str | None
    weight: str | None = None
    time: str | None = None
    offset: str | None
    exposure: str | None
    batch_rows: int
    memory: str
    quiet: bool

    @property
    def place(self) -> str:
        """The model file that is written."""
        return self.output or self.model


@dataclass(frozen=True)
class ModelFile:
    """A model, what was noted with it, and the file as it was when it was read."""

    path: str
    model: Estimator
    notes: Mapping[str, Any]
    stamp: tuple[int, ...] | None
    given: Reading = field(default_factory=Reading)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features; raises ``ValueError`` where the model knows none."""
        names = get_feature_names(self.model)
        if self.has_formula:
            names = read_formula(self.model.formula).predictors
        elif self.is_wide:
            names = self.notes.get("columns")
        if names is None:
            raise ValueError(
                f"{self.path} has no feature names: fit it with this command, or in "
                "Python by learn_stream or from a data frame"
            )
        return [str(name) for name in names]

    @property
    def has_formula(self) -> bool:
        """True if a formula says what the model learns from what."""
        return isinstance(self.model, Model)

    @property
    def is_wide(self) -> bool:
        """True if the model takes columns as they are, with as many levels as come."""
        return isinstance(self.notes.get("structure"), str)

    def target(self, given: str | None) -> str:
        """The column to predict, as given or as noted; that of a formula."""
        if self.has_formula:
            return str(read_formula(self.model.formula).response)
        noted = self.notes.get("target")
        if given is None and not isinstance(noted, str):
            raise ValueError(f"{self.path} does not contain the name of its target: give --target")
        return str(noted) if given is None else given

    def missing(self, given: str | None) -> Any:
        """The policy for missing values, one of WAYS, as given or as noted."""
        noted = self.notes.get("missing")
        return given or (noted if noted in WAYS else "error")

    @property
    def is_logged(self) -> bool:
        """True if the model is one of the log of its target."""
        return self.notes.get("log_target") is True

    def choose_reading(self, given: FileSettings, missing: Any) -> ReadSettings:
        """Columns by their roles, as given or as noted; an empty name is none."""
        roles: dict[str, Any] = {}
        for role in ROLES:
            noted, own = self.notes.get(role), getattr(given, role)
            name = own if own is not None else noted if isinstance(noted, str) else None
            roles[role] = name or None
        return ReadSettings(
            batch_rows=given.batch_rows, memory=given.memory, missing=missing, **roles
        )

    def means(self) -> ColumnMeans:
        """Means of the features in the rows that were learned, where they were noted."""
        noted = self.notes.get("means")
        return ColumnMeans.of(noted) if isinstance(noted, dict) else ColumnMeans()

    def open(
        self, path: str, target: Target | None, reading: ReadSettings, *, learns: bool = False
    ) -> TableStream:
        """A table as rows of the features of the model; where it ``learns``, of new levels, too."""
        columns = self.notes.get("columns")
        if isinstance(columns, list | tuple):
            present = list(open_any(path, self.text).schema.names)
            require([str(name) for name in columns], present, "feature")
        if self.has_formula:
            return open_formula_table(self.model, path, reading, self.text, learns=learns)
        since = getattr(self.model, "_now", None)
        if self.is_wide:
            names = self.feature_names
            return open_wide(
                path, target, reading, columns=(names, ()), since=since, text=self.text
            )
        return open_rows(
            path,
            self.feature_names,
            reading,
            target=target,
            since=since,
            text=self.text,
            known=get_categories(self.model, grow=learns),
        )

    @property
    def text(self) -> TextFormat:
        """Format of text files: what was given, or else as fit read them."""
        noted = self.notes.get("text")
        return self.given.change(noted if isinstance(noted, dict) else {})

    def describe_reading(self, table: TableStream) -> Iterator[str]:
        """Yield, in words, what was done to rows and values on the way in."""
        left_out = self.notes.get("left_out") or ()
        return describe_reading(table, levels="the model", left_out=left_out)

    def replace(self, notes: Mapping[str, Any]) -> None:
        """Write the model back into its place; refuse if another was put there meanwhile."""
        if _stamp(self.path) != self.stamp:
            raise ValueError(
                f"{self.path} was changed by another process in the meantime, and nothing was "
                "written: run the command again"
            )
        save(self.model, self.path, notes=notes)


def read_model(path: str, table: str | None = None, given: Reading | None = None) -> ModelFile:
    """Load a model file; ``-`` is standard input, which the ``table`` can't be as well.

    ``given`` says how the text of the table is written, where it differs from that of fit.
    """
    given = given or Reading()
    if path == table == STANDARD_INPUT:
        raise ValueError("only one of MODEL and FILE can be standard input")
    if path == STANDARD_INPUT:
        return ModelFile("standard input", *_from_standard_input(), None, given)
    with _explain_path(path):
        try:
            stamp = _stamp(path)
            return ModelFile(path, *load_with_notes(path), stamp, given)
        except ValueError:
            if table is not None and _is_model(table):
                raise ValueError(
                    f"{table} is the model file, and {path} is none: they are swapped, so give "
                    f"{table} first"
                ) from None
            raise


def _is_model(path: str) -> bool:
    try:
        load_with_notes(path)
    except (ValueError, OSError):
        return False
    return True


def _from_standard_input() -> tuple[Any, Document]:
    try:
        return loads_with_notes(standard_input().read())
    except ValueError as error:
        raise ValueError(f"standard input: {error}") from error


def _stamp(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def hold_model(path: str, patience: float = 600.0) -> Iterator[None]:
    """Hold a model file, so that commands that replace it take turns.

    The lock is on the file itself. Whoever waited for one that was replaced meanwhile locks the
    file that took its place. Where the system has no such locks, `ModelFile.replace` still refuses.
    """
    if fcntl is None:
        yield
        return
    deadline, is_told = time.monotonic() + patience, False
    while True:
        with _explain_path(path):
            file = open(path, "rb")  # noqa: SIM115 - closed below
        with file:
            if _lock(file) and _is_at(file, path):
                yield
                return
        if time.monotonic() > deadline:
            raise ValueError(
                f"{path} has been held by another process for {patience:.0f} seconds: run the "
                "command again when that has ended"
            )
        if not is_told:
            click.echo(f"waiting: another process is changing {path}", err=True)
            is_told = True
        time.sleep(0.05)


@contextmanager
def _explain_path(path: str) -> Iterator[None]:
    """Say of a path that is no file what to do."""
    try:
        yield
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder: give a model file") from None


def _lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: IO[bytes], path: str) -> bool:
    """True if the path still leads to the file that is open."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
