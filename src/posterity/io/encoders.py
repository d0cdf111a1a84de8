"""Encoders, which turn a column into numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from posterity.aliases import Array, Indices
from posterity.io.arrow import pa
from posterity.io.calendar import Codes, part_codes
from posterity.io.conversions import MISSING, as_numbers, encode_text
from posterity.linear.categories import Category


class Encoder:
    """Turns one Arrow column into numbers; NaN where a value is missing."""

    column: str
    # Whether it is of a category, and whether that is one feature, the number of its level.
    is_category: ClassVar[bool] = False
    is_whole: ClassVar[bool] = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features it makes; there may be none."""
        return (self.column,)

    @property
    def n_before(self) -> int:
        """Number of earlier rows that it looks at."""
        return 0

    def begin(self) -> None:
        """A stream starts at its first row."""

    def fill(self, values: pa.Array, out: Array) -> None:
        """Write an Arrow array (n,) into out (n, len(names))."""
        raise NotImplementedError

    def join(self, values: pa.Array) -> Self:
        """The same with those levels of the values, too, that come for the first time."""
        return self


@dataclass(frozen=True)
class Numbers(Encoder):
    """A column of numbers or booleans, or of dates, which become days."""

    column: str

    def fill(self, values: pa.Array, out: Array) -> None:
        """Copy the numbers."""
        out[:, 0] = as_numbers(values)


@dataclass(frozen=True)
class LevelEncoder(Encoder):
    """A column of levels. A value that is none of them is counted in `unseen`.

    `part` is which part of a date they are, if they are one.
    """

    column: str
    levels: tuple[str, ...]
    part: str = ""
    unseen: Counter[str] = field(default_factory=Counter, compare=False)
    is_category: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """The column, or ``column.part``."""
        return f"{self.column}.{self.part}" if self.part else self.column

    def coded(self, values: pa.Array) -> Codes:
        """Which words the values stand for."""
        return part_codes(values, self.part) if self.part else encode_text(values)

    def begin(self) -> None:
        """Forget the unseen levels."""
        self.unseen.clear()


def _count_words(codes: Indices, words: Sequence[str]) -> dict[str, int]:
    """How often each word came, of those that did."""
    counts = np.bincount(codes, minlength=len(words) + 1)
    return {word: int(count) for word, count in zip(words, counts, strict=False) if count}


@dataclass(frozen=True)
class Categories(LevelEncoder):
    """A column of categories, one feature of zeros and ones for each level that is kept.

    A value that is none of the levels gets zeros everywhere (as the dropped first level does). A
    missing value is the level "missing", where there is one.
    """

    drop_first: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """``column=level`` for each level that is kept."""
        return tuple(f"{self.label}={level}" for level in self.levels[self.drop_first :])

    def fill(self, values: pa.Array, out: Array) -> None:
        """Write zeros and ones, and count what is none of the levels."""
        codes, words = self.coded(values)
        index = {level: i for i, level in enumerate(self.levels)}
        # One step more than there are levels: unknown; and the last: missing.
        unknown, missing = len(self.levels), len(self.levels) + 1
        place = np.array([index.get(word, unknown) for word in words] + [missing])
        found = place[codes]
        rows = np.zeros((missing + 1, missing - 1))
        np.fill_diagonal(rows, 1.0)
        rows[missing] = rows[index[MISSING]] if MISSING in index else np.nan
        out[:] = rows[:, self.drop_first :][found]
        if unknown in place:
            counts = _count_words(codes, words)
            self.unseen.update({word: n for word, n in counts.items() if word not in index})

    def join(self, values: pa.Array) -> Self:
        """The same with a feature more for each new level, behind the others."""
        new = sorted(_count_words(*self.coded(values)).keys() - set(self.levels))
        return replace(self, levels=(*self.levels, *new)) if new else self


@dataclass(frozen=True)
class LevelNumbers(LevelEncoder):
    """A column that a model takes as a category: the number of each value's level, from 1 on.

    A value that is none of the levels is 0; where the category ``grows`` it is a level from then
    on. With ``holes`` a missing value is the level "missing".
    """

    grows: bool = False
    holes: bool = False
    is_whole: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """The label alone."""
        return (self.label,)

    def fill(self, values: pa.Array, out: Array) -> None:
        """Write the numbers, and count what is none of the levels."""
        codes, words = self.coded(values)
        numbers = {level: float(number) for number, level in enumerate(self.levels, start=1)}
        gone = numbers.get(MISSING, 0.0 if self.holes else np.nan)
        found = np.array([numbers.get(word, 0.0) for word in words] + [gone])
        out[:, 0] = found[codes]
        counts = _count_words(codes, self._name_holes(words))
        self.unseen.update({word: n for word, n in counts.items() if word not in numbers})

    def join(self, values: pa.Array) -> Self:
        """The same with new levels where they belong."""
        if not self.grows:
            return self
        codes, words = self.coded(values)
        there = list(_count_words(codes, self._name_holes(words)))
        return replace(self, levels=Category(0, self.label, self.levels).join(there).levels)

    def _name_holes(self, words: Sequence[str]) -> Sequence[str]:
        """The words, and that of a missing value."""
        return [*words, MISSING] if self.holes else words


@dataclass(frozen=True)
class PlacedEncoder:
    """An encoder, with the places of its features among those of a row."""

    encoder: Encoder
    places: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its features."""
        return self.encoder.names

    def fill(self, values: pa.Array, out: Array) -> None:
        """Write into those of the columns of the rows ``out`` (n, m) that are its own."""
        if not self.places:
            return
        first, last = self.places[0], self.places[-1]
        if self.places == tuple(range(first, last + 1)):
            self.encoder.fill(values, out[:, first : last + 1])
            return
        block = np.empty((len(values), len(self.places)))
        self.encoder.fill(values, block)
        out[:, self.places] = block

    def grow(self, values: pa.Array, n_features: int) -> PlacedEncoder:
        """Return the encoder with a feature more for each new level in ``values`` that has one."""
        grown = self.encoder.join(values)
        new = range(n_features, n_features + len(grown.names) - len(self.places))
        return PlacedEncoder(grown, (*self.places, *new))


def place_encoders(encoders: Sequence[Encoder]) -> tuple[PlacedEncoder, ...]:
    """Encoders whose features stand side by side."""
    made, first = [], 0
    for encoder in encoders:
        last = first + len(encoder.names)
        made.append(PlacedEncoder(encoder, tuple(range(first, last))))
        first = last
    return tuple(made)
