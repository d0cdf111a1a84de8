"""The newest decisions with what came for them, as the log has them: rewards look them up here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from posterity.service.store import Key, LogEntries
from posterity.service.writing import Record

# Bytes that are kept, about: some twenty thousand decisions between ten arms. What a decision has
# beside its numbers is as much as so many.
MOST_BYTES, BYTES_EACH = 33_554_432, 1_200


class Recent:
    """Decisions that this process has written, the newest; all that came for them since is known.

    So only one process may write what comes for decisions: the server that learns.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[Key, tuple[Record, list[Record]]] = OrderedDict()
        self._size = 0

    def note(self, added: LogEntries) -> None:
        """Keep what a request has added to the log."""
        for key, made in added.decisions.maps[0].items():
            self._known[key] = made, []
            self._size += _measure(made)
        for key, events in added.events.maps[0].items():
            if key in self._known:
                self._known[key] = self._known[key][0], events
        while self._size > MOST_BYTES:
            self._size -= _measure(self._known.popitem(last=False)[1][0])

    def recall(self, keys: Iterable[Key], found: LogEntries) -> list[Key]:
        """Add decisions with their events to ``found``; return the keys that are not known."""
        unknown = []
        for key in keys:
            if key in self._known:
                found.decisions[key], found.events[key] = self._known[key]
            else:
                unknown.append(key)
        return unknown

    def clear(self) -> None:
        """Forget all: what the log has of some was changed."""
        self._known.clear()
        self._size = 0


def _measure(made: Record) -> int:
    return BYTES_EACH + len(made["context"]) + 3 * len(made["propensities"])
