"""Groups that the prior of a stream is learned from, as they were at its last update.

Between two updates few groups change: each is copied right before, and the others where all are
read. So an update costs no more than the rows that follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from posterity.aliases import Array, Indices
from posterity.evidence.groups import GroupSample
from posterity.factor.grouped import GroupBank

Slots = Indices


def draw_evenly(size: int, most: int) -> slice | Slots:
    """Places of at most so many of ``size``, of which fewer may be drawn again.

    Examples
    --------
    >>> draw_evenly(10, 4).tolist(), draw_evenly(4, 2).tolist(), draw_evenly(10, 2).tolist()
    ([0, 2, 5, 7], [0, 2], [0, 5])
    """
    return slice(None) if size <= most else np.arange(most) * size // most


def sample_groups(bank: GroupBank, most: int) -> GroupSample:
    """At most so many groups, drawn evenly, in the order in which they came."""
    which = draw_evenly(bank.size, most)
    counts, residuals = bank.count[which].copy(), bank.residuals(which)
    return GroupSample(bank.rows(which), counts, residuals, bank.size <= most)


class LateBank:
    """At most so many groups of a bank as they are now, each copied before it changes.

    Those at the slots that are ``left`` are not copied yet.
    """

    def __init__(self, bank: GroupBank, most: int) -> None:
        self._slots = np.arange(bank.size)[draw_evenly(bank.size, most)]
        self.size, self.count = bank.size, bank.count[self._slots]
        self._bank: GroupBank | None = bank
        self._copies, self._kept = GroupBank(bank.n_coefficients), dict[int, Array]()
        self.left = set(self._slots.tolist())

    def keep(self, slots: Sequence[int]) -> None:
        """Copy those at these slots, which are about to change; all where these are many."""
        if len(slots) > len(self.left):
            self.read()
        for slot in slots:
            if slot in self.left and self._bank is not None:
                self._kept[slot] = self._bank.packed[slot].copy()
                self.left.remove(slot)

    def read(self) -> GroupBank:
        """A bank of them."""
        if self._bank is not None:
            self._copies = self._bank.select(self._slots)
            self._copies.count[:] = self.count
            for slot, before in self._kept.items():
                self._copies.packed[np.searchsorted(self._slots, slot)] = before
            self._bank = None
            self.left.clear()
            self._kept.clear()
        return self._copies


class LateSample:
    """At most so many of the groups of a late bank."""

    def __init__(self, bank: LateBank, most: int) -> None:
        self._bank, self._most, self.left = bank, most, bank.left

    def __reduce__(self) -> Any:
        return GroupSample.read, (self.read(),)

    def keep(self, slots: Sequence[int]) -> None:
        """As in :class:`LateBank`."""
        self._bank.keep(slots)

    @property
    def counts(self) -> Array:
        """(g,) each group's sum of weights."""
        count = self._bank.count
        return count[draw_evenly(len(count), self._most)]

    def read(self) -> GroupSample:
        """The sample."""
        return self._sample

    @cached_property
    def _sample(self) -> GroupSample:
        sample = sample_groups(self._bank.read(), self._most)
        return replace(sample, is_whole=self._bank.size <= self._most)


def read_sample(sample: GroupSample | LateSample | None) -> GroupSample | None:
    """The sample as a file has it."""
    return None if sample is None else sample.read()


__all__ = ["LateBank", "LateSample", "read_sample", "sample_groups"]
