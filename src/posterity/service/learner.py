"""A model of the log: what experiments and predictors have in common."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from posterity.files import loads_with_notes
from posterity.service.errors import NeedsLogError, RefusedError
from posterity.service.sizes import Sizes
from posterity.service.store import Store
from posterity.service.writing import Record

logger = logging.getLogger("posterity.service")


@dataclass(slots=True)
class Change:
    """What was learned of a row before, and what is to be: None is nothing."""

    id: str
    arm: int
    x: bytes | None  # None where it was erased
    former: float | None
    total: float | None


class Learner(ABC):
    """A model that learns the log entry by entry, and can take back what it has learned.

    What is taken back is subtracted, unless that would take digits of what stays along, or the
    model refuses it: then all but this is learned anew, from the log.

    Parameters
    ----------
    name : str
    model : estimator
    notes : mapping, optional
        What was kept with it in a snapshot.
    learned_through : int
        Number of the last entry that it has learned.
    """

    kind: str
    field = ""  # of the number that it learns
    version: int
    settings: Any

    def __init__(self, name: str, model: Any, notes: Any, learned_through: int) -> None:
        self.name, self.model, self.learned_through = name, model, learned_through
        self.sizes = Sizes(notes)
        self.entries = 0  # learned since the last snapshot

    @property
    def notes(self) -> dict[str, Any]:
        """What goes into a snapshot beside the model."""
        return self.sizes.notes

    def take_over(self, before: Learner) -> None:
        """Go on with what another one, with other settings, has learned."""
        self.model, self.sizes = before.model, before.sizes
        self.learned_through, self.entries = before.learned_through, before.entries

    @abstractmethod
    def build_model(self) -> Any:
        """A model that has learned nothing."""

    @abstractmethod
    def read_change(self, entry: Record) -> Change:
        """What an entry of the log changes."""

    @abstractmethod
    def change_model(self, model: Any, change: Change, x: bytes) -> None:
        """Have a model learn a change; raises ``ValueError`` where it can't."""

    def read_numbers(self, x: bytes) -> list[float]:
        """The numbers of a row, or of a context, as the log has it."""
        numbers: list[float] = np.frombuffer(x).tolist()
        return numbers

    def describe_settings(self) -> dict[str, Any]:
        """The settings as they are shown."""
        told: dict[str, Any] = msgspec.to_builtins(self.settings)
        return told

    def describe(self) -> dict[str, Any]:
        """Settings and state, in short."""
        return {
            "name": self.name,
            "kind": self.kind,
            "version": self.version,
            "settings": self.describe_settings(),
            "learned_through": self.learned_through,
        }

    @abstractmethod
    def read_log(
        self, store: Store, after: int, through: int | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        """Yield the entries to be learned from the log after a number."""

    def replay(self, entries: Iterable[Record], log: Store) -> None:
        """Learn what the log holds after a snapshot."""
        for entry in entries:
            self.learn_entry(entry, log)

    def learn_entry(self, entry: Record, log: Store | None = None) -> None:
        """Learn what an entry changes, or nothing at all.

        Raises
        ------
        RefusedError
            The model can't learn it.
        NeedsLogError
            All but this must be learned anew, and the log was not given.
        """
        change = self.read_change(entry)
        if change.former != change.total:
            try:
                self._learn(self.model, self.sizes, change)
            except _LossError as error:
                if log is None:
                    raise NeedsLogError from error
                self.model, self.sizes = self._learn_anew(change, entry["seq"], log)
        self.learned_through = entry["seq"]
        self.entries += 1

    def _learn(self, model: Any, sizes: Sizes, change: Change) -> None:
        x, row = self._read_row(change)
        former, total = change.former, change.total
        if former is not None and sizes.drowns(change.arm, row, former):
            raise _LossError("the rest would lose its digits")
        try:
            self.change_model(model, change, x)
        except (ValueError, NotImplementedError, UserWarning) as error:
            if former is not None and not isinstance(error, NotImplementedError):
                raise _LossError(str(error)) from error
            raise RefusedError(422, str(error), self.field) from error
        if former is not None:
            sizes.remove(change.arm, row, former)
        if total is not None:
            sizes.add(change.arm, row, total)

    def _read_row(self, change: Change) -> tuple[bytes, list[float]]:
        if change.x is None:
            raise RefusedError(
                410,
                "a learned decision was deleted with its features, so it can't be learned again",
            )
        row = self.read_numbers(change.x)
        if math.isnan(sum(row)):
            raise RefusedError(
                410, "a feature of this decision has expired, so it can't be learned again"
            )
        return change.x, row

    def _learn_anew(self, change: Change, number: int, log: Store) -> tuple[Any, Sizes]:
        """The model of all entries before a number, and of this change, with nothing subtracted.

        It begins with the newest snapshot from before what is taken back was learned.
        """
        through: int | None = log.find_first_entry(self.name, change.id) or number
        while through is not None:
            after, model, notes = read_snapshot(log, self.name, through - 1)
            model, sizes = self.build_model() if model is None else model, Sizes(notes)
            try:
                for one in self._sum_changes(log, after, number, change):
                    self._learn(model, sizes, one)
                return model, sizes
            except _LossError as error:  # of what the snapshot had learned: begin before that
                through, reason = after or None, str(error)
        raise RefusedError(422, f"it can't be taken back: {reason}", self.field)

    def _sum_changes(self, log: Store, after: int, number: int, last: Change) -> list[Change]:
        """What all entries between two numbers, and a last one, change together, row by row."""
        changes: dict[tuple[Any, ...], Change] = {}
        entries = self.read_log(log, after, number - 1)
        for change in chain(map(self.read_change, entries), [last]):
            key = (change.id, change.arm, change.x)
            changes[key] = replace(changes.get(key, change), total=change.total)
        return [one for one in changes.values() if one.former != one.total]


class _LossError(Exception):
    """A row that can't be subtracted."""


def read_snapshot(log: Store, name: str, through: int | None = None) -> tuple[int, Any, Any]:
    """Number, model and notes of the newest snapshot that can be read; 0 where there is none.

    What the log holds after it is learned again, however old it is.
    """
    while (found := log.read_snapshot(name, through)) is not None:
        number = found["learned_through"]
        try:
            return number, *loads_with_notes(found["file"])
        except Exception as error:
            logger.error("snapshot %d of %r can't be read: %s", number, name, error)
            through = number - 1
    return 0, None, None
