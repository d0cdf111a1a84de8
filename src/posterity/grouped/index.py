"""The place of each group: found by its key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import AnyArray, Indices, Mask
from posterity.kernel import KeyTable
from posterity.linear.keys import Keys, Labels, list_labels, select_labels

Slots = Indices

_MICROSECONDS = "datetime64[us]"
_TEXT, _NUMBERS = ("text",), ("numbers",)
# Keys of these kinds are whole numbers, as a rule.
_WHOLE = (_NUMBERS, ("dates",))
_LARGEST = 2**63 - 1


@dataclass
class KeyIndex:
    """The place of each group: ``labels`` in the order of their slots, as in :class:`Keys`.

    Whole numbers take a tenth of the room that objects do.

    Examples
    --------
    >>> from posterity.linear.keys import read_keys
    >>> index = KeyIndex()
    >>> index.places(read_keys([np.array([7, 3, 7])], ["key"]), new=True).tolist()
    [0, 1]
    >>> index.places(read_keys([np.array([3, 5])], ["key"])).tolist()
    [1, -1]
    """

    labels: Labels = field(default_factory=list)
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        whole = self.kinds in _WHOLE and (
            isinstance(self.labels, np.ndarray)
            or all(type(label) is int and abs(label) <= _LARGEST for label in self.labels)
        )
        self._use_table(_Numbers(self.labels) if whole else _Objects(list_labels(self.labels)))

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyIndex, (self.labels.copy(), self.kinds)

    def _use_table(self, table: _Numbers | _Objects) -> None:
        self._table, self.labels = table, table.labels

    @property
    def is_distinct(self) -> bool:
        """True if no key is here twice."""
        return self._table.is_distinct

    def take_snapshot(self) -> IndexSnapshot:
        """The state to restore if new keys are taken back."""
        return IndexSnapshot(self, self._table, len(self.labels), self.kinds)

    def copy(self) -> KeyIndex:
        """An independent copy."""
        return KeyIndex(self.labels.copy(), self.kinds)

    def places(self, keys: Keys, *, new: bool = False) -> Slots:
        """Slots of the labels of ``keys``. New labels get a slot if ``new``, and -1 otherwise."""
        self.check_kinds(keys)
        if new and not self.kinds:
            self.kinds, self.labels = keys.kinds, keys.labels.copy()
            self.__post_init__()
            return np.arange(len(self.labels))
        if not new and not len(self.labels):
            return np.full(len(keys.labels), -1, dtype=np.intp)
        if new and not self._table.accepts(keys.labels):
            self._use_table(_Objects(list_labels(self.labels)))
        found = self._table.places(keys.labels, new)
        self.labels = self._table.labels
        return found

    def place(self, key: Any) -> int | None:
        """The slot of a number or text that is here as it is given; None for all else."""
        slot = self.look_up(key)
        return None if slot is None or slot < 0 else slot

    def look_up(self, key: Any) -> int | None:
        """The slot of a number or text, -1 if it is not here; None of a key that must be read."""
        return self._table.place(key) if self._is_of_my_kind(key) else None

    def add(self, key: Any) -> int | None:
        """The slot of a number or text, new if it is not here; None of a key that must be read."""
        plain = type(key) is str or (type(key) is int and abs(key) <= _LARGEST)
        if not plain or not self._is_of_my_kind(key):
            return None
        slot = int(self._table.places([key], True)[0])
        self.labels = self._table.labels
        return slot

    def _is_of_my_kind(self, key: Any) -> bool:
        """Return True if a key can be looked up as it is."""
        kind = type(key)
        if kind is int:
            return self.kinds == _NUMBERS
        if kind is str:
            return self.kinds == _TEXT
        if isinstance(key, int | np.integer):
            return self.kinds == _NUMBERS
        return isinstance(key, str) and self.kinds == _TEXT

    def check_kinds(self, keys: Keys) -> None:
        """Raise ``ValueError`` where text comes for numbers, say: nothing would be found."""
        if not self.kinds or not len(keys.labels) or keys.kinds == self.kinds:
            return
        if len(keys.kinds) != len(self.kinds):
            raise ValueError(
                f"a key has {len(keys.kinds)} parts, but the learned keys have "
                f"{len(self.kinds)}: give as many"
            )
        for mine, theirs in zip(self.kinds, keys.kinds, strict=True):
            if mine != theirs and "other" not in (mine, theirs):
                raise ValueError(
                    f"the keys are {theirs}, but the learned keys are {mine}: give keys of one type"
                )

    def keep(self, which: Mask) -> KeyIndex:
        """The index of those for which ``which`` (size,) is True, in the same order."""
        return KeyIndex(select_labels(self.labels, np.flatnonzero(which)), self.kinds)

    def list_keys(self) -> AnyArray:
        """The keys as users know them: (G,) numbers, dates, or objects."""
        if self.kinds == ("dates",):
            return np.array(self.labels, dtype=np.int64).view(_MICROSECONDS)
        if self.kinds == ("numbers",):
            return np.array(self.labels)
        array = np.empty(len(self.labels), dtype=object)
        for slot, label in enumerate(self.labels):
            array[slot] = (
                tuple(map(_to_python, label, self.kinds)) if len(self.kinds) > 1 else label
            )
        return array


@dataclass(frozen=True)
class IndexSnapshot:
    """An index as it was: keys are only ever put behind the others."""

    index: KeyIndex
    table: _Numbers | _Objects
    size: int
    kinds: tuple[str, ...]

    def restore(self) -> None:
        """Put all of it back."""
        self.table.truncate(self.size)
        self.index.kinds = self.kinds
        self.index._use_table(self.table)


class _Objects:
    """Places of keys that can be hashed."""

    def __init__(self, labels: list[Any]) -> None:
        self.labels = labels
        self._slots = {label: slot for slot, label in enumerate(labels)}

    @property
    def is_distinct(self) -> bool:
        return len(self._slots) == len(self.labels)

    def accepts(self, labels: Labels) -> bool:
        return True

    def place(self, key: Any) -> int:
        return self._slots.get(key, -1)

    def places(self, labels: Labels, new: bool) -> Slots:
        labels = list_labels(labels)
        if new:
            for label in labels:
                if label not in self._slots:
                    self._slots[label] = len(self.labels)
                    self.labels.append(label)
        found = (self._slots.get(label, -1) for label in labels)
        return np.fromiter(found, dtype=np.intp, count=len(labels))

    def truncate(self, size: int) -> None:
        del self.labels[size:]
        while len(self._slots) > size:
            self._slots.popitem()


class _Numbers:
    """Places of whole numbers. What equals one, as 2.0 or True do, is taken for it."""

    def __init__(self, labels: Labels) -> None:
        # Labels of a mapped file can't be written to, and the table asks for memory that can.
        self._table = KeyTable(np.require(labels, np.int64, ["C", "W"]))

    @property
    def labels(self) -> NDArray[np.int64]:
        return self._table.keys

    @property
    def is_distinct(self) -> bool:
        return self._table.is_distinct

    def accepts(self, labels: Labels) -> bool:
        return isinstance(labels, np.ndarray) or all(map(_is_whole, labels))

    def place(self, key: Any) -> int:
        whole = -_LARGEST <= key <= _LARGEST if type(key) is int else _is_whole(key)
        return self._table.place(int(key)) if whole else -1

    def places(self, labels: Labels, new: bool) -> Slots:
        if self.accepts(labels):
            return self._table.places(np.asarray(labels, dtype=np.int64), new)
        return np.array([self.place(label) for label in labels], dtype=np.intp)

    def truncate(self, size: int) -> None:
        self._table.cut(size)


def _is_whole(label: Any) -> bool:
    if not isinstance(label, int | float | np.integer) or not -_LARGEST <= label <= _LARGEST:
        return False
    return int(label) == label


def _to_python(label: Any, kind: str) -> Any:
    return np.int64(label).view(_MICROSECONDS) if kind == "dates" else label
