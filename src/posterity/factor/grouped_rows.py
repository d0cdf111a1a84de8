"""Rows of many groups: what they are, whether they are usable, and their order by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity import kernel
from posterity.aliases import Array, Indices, Mask
from posterity.factor.parallel import run_together, split_rows
from posterity.factor.usable import check_rows

Slots = Indices

# A triangle takes about as long as this many rows of its width.
ROWS_A_TRIANGLE = 4


@dataclass(frozen=True)
class GroupedRows:
    """Rows of many groups.

    ``X`` (n, m) by rows, ``y`` (n,), ``weights`` (n,) or None, whether a 1 comes before each x,
    ``numbers`` (n,) which of the groups at hand each row is of, and ``slots`` where those are in
    the bank. ``offsets`` (n,), of rows under a likelihood, are added to their linear predictors.
    """

    X: Array
    y: Array
    weights: Array | None
    intercept: bool
    numbers: NDArray[np.int32]
    slots: Slots
    offsets: Array | None = None

    def __len__(self) -> int:
        return len(self.X)

    @property
    def all_weights(self) -> Array:
        """(n,) weights, 1 where none are given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def all_offsets(self) -> Array:
        """(n,) offsets, 0 where none are given."""
        return np.zeros(len(self)) if self.offsets is None else self.offsets

    def part(self, first: int, stop: int) -> GroupedRows:
        """The rows from ``first`` on, up to ``stop``, without the groups beyond all of theirs."""
        some = slice(first, stop)
        numbers = self.numbers[some]
        return self._select(some, numbers, self.slots[: int(numbers.max(initial=-1)) + 1])

    def take(self, places: Slots) -> GroupedRows:
        """The rows at these places (k,), no two of one group."""
        numbers = np.arange(len(places), dtype=np.int32)
        return self._select(places, numbers, self.slots[self.numbers[places]])

    def at(self, some: Mask, places: Slots) -> GroupedRows:
        """Some rows, where their groups (len(slots),) have other places in the bank."""
        return self._select(some, self.numbers[some], places)

    def _select(self, some: Any, numbers: NDArray[np.int32], slots: Slots) -> GroupedRows:
        weights, offsets = (
            None if values is None else values[some] for values in (self.weights, self.offsets)
        )
        X, y = np.ascontiguousarray(self.X[some]), np.ascontiguousarray(self.y[some])
        return GroupedRows(X, y, weights, self.intercept, numbers, slots, offsets)

    def stack_rows(self) -> Array:
        """(n, q) rows [1, x, y], times the roots of their weights."""
        ones = np.ones((len(self), int(self.intercept)))
        stacked = np.hstack([ones, self.X, self.y[:, None]])
        if self.weights is not None:
            stacked *= np.sqrt(self.weights)[:, None]
        return stacked


def stack_grouped_rows(parts: Sequence[GroupedRows]) -> GroupedRows:
    """Rows of one bank, one after another; groups are numbered by their places."""
    slots = np.concatenate([part.slots[part.numbers] for part in parts])
    return GroupedRows(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.all_weights for part in parts]),
        parts[0].intercept,
        slots.astype(np.int32),
        np.arange(int(slots.max(initial=-1)) + 1),
        np.concatenate([part.all_offsets for part in parts]),
    )


def check_together(X: Array, y: Array, weights: Array | None) -> None:
    """Raise ``FloatingPointError`` when rows are not finite, or too large to square.

    Groups learn in place, so that rows are looked at before.
    """

    def check(part: slice) -> None:
        check_rows(X[part], y[part], None if weights is None else weights[part])

    run_together(check, split_rows(len(X), 8))


def sort_rows(numbers: NDArray[np.int32], slots: Slots) -> kernel.SortedRows:
    """Rows sorted by group."""
    parts = split_rows(len(numbers), 4)
    places = list(range(len(parts)))
    counts = np.empty((len(parts), len(slots)), dtype=np.intp)

    def count(number: int, part: slice) -> None:
        counts[number] = kernel.count_rows(numbers, part.start, part.stop, len(slots))

    def place(number: int, part: slice) -> None:
        order.place(numbers, part.start, part.stop, number)

    run_together(count, places, parts)
    order = kernel.SortedRows(counts, slots)
    run_together(place, places, parts)
    return order


def number_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Number keys (n,) by first appearance; also the distinct ones.

    Examples
    --------
    >>> numbers, distinct = number_keys(np.array([7, 3, 7]))
    >>> numbers.tolist(), distinct.tolist()
    ([0, 1, 0], [7, 3])
    """
    if len(keys) > 0:
        low = int(keys.min())
        length = int(keys.max()) - low + 1
        if length <= len(keys):
            return kernel.number_range(keys, low, length)
    parts = split_rows(len(keys), 4)
    found: list[Any] = [None] * len(parts)

    def number(place: int, part: slice) -> None:
        found[place] = kernel.number_keys(keys[part])

    run_together(number, list(range(len(parts))), parts)
    if len(parts) == 1:
        return found[0]
    together, distinct = kernel.number_keys(np.concatenate([part for _, part in found]))
    numbers = np.empty(len(keys), dtype=np.int32)
    ends = np.cumsum([len(part) for _, part in found])

    def translate(place: int, part: slice) -> None:
        mine, labels = found[place]
        np.take(together[ends[place] - len(labels) : ends[place]], mine, out=numbers[part])

    run_together(translate, list(range(len(parts))), parts)
    return numbers, distinct


def shares(count: int, width: int, rows_each: int = ROWS_A_TRIANGLE) -> list[tuple[int, int]]:
    """Cut ``count`` triangles into one run for each core that is worth starting."""
    parts = len(split_rows(count * rows_each * (1 if rows_each == 1 else width), width + 1))
    return list(pairwise(count * part // parts for part in range(parts + 1)))
