"""Encoders, which turn a column into numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from posterity.io.calendar import Codes, reader_of
from posterity.io.conversions import MISSING, as_days, as_floats, encode_text
from posterity.linear.categories import Category

FloatArray = NDArray[np.float64]


class Encoder(Protocol):
    """Turns one Arrow column into numbers; NaN where a value is missing."""

    @property
    def column(self) -> str:
        """Name of the file's column."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features it makes; there may be none."""
        ...

    def begin(self) -> None:
        """A stream starts at its first row."""
        ...

    def fill(self, values: Any, out: FloatArray) -> None:
        """Write an Arrow array (n,) into out (n, len(names))."""
        ...


@dataclass(frozen=True)
class Numbers:
    """A numeric or boolean column, as it is."""

    column: str

    @property
    def names(self) -> tuple[str, ...]:
        """The column's own name."""
        return (self.column,)

    def begin(self) -> None:
        """Do nothing: no earlier rows are kept."""

    def fill(self, values: Any, out: FloatArray) -> None:
        """Copy the numbers."""
        out[:, 0] = as_floats(values)


@dataclass(frozen=True)
class Categories:
    """A column of categories, one feature of zeros and ones for each level that is kept.

    A value that is none of the levels gets zeros everywhere (as the dropped first level does), and
    is counted in `unseen`. A missing value is the level "missing", where there is one.
    ``coded`` says which words the values stand for, and `part` which part of a date they are.
    """

    column: str
    levels: tuple[str, ...]
    drop_first: bool
    part: str = ""
    coded: Callable[[Any], Codes] = encode_text
    unseen: Counter[str] = field(default_factory=Counter, compare=False)

    @classmethod
    def of_part(cls, column: str, part: str, levels: Sequence[str], drop_first: bool) -> Categories:
        """Return the categories of the hour, weekday or month of a column of dates."""
        return cls(column, tuple(levels), drop_first, part, reader_of(part))

    @property
    def label(self) -> str:
        """The column, or ``column.part``."""
        return f"{self.column}.{self.part}" if self.part else self.column

    @property
    def names(self) -> tuple[str, ...]:
        """``column=level`` for each level that is kept."""
        return tuple(f"{self.label}={level}" for level in self.levels[self.drop_first :])

    def begin(self) -> None:
        """Forget the unseen levels."""
        self.unseen.clear()

    def fill(self, values: Any, out: FloatArray) -> None:
        """Write zeros and ones, and count what is none of the levels."""
        codes, levels = self.coded(values)
        index = {level: i for i, level in enumerate(self.levels)}
        # One step more than there are levels: unknown; and the last: missing.
        unknown, missing = len(self.levels), len(self.levels) + 1
        place = np.array([index.get(level, unknown) for level in levels] + [missing])
        found = place[codes]
        rows = np.zeros((missing + 1, missing - 1))
        np.fill_diagonal(rows, 1.0)
        rows[missing] = rows[index[MISSING]] if MISSING in index else np.nan
        out[:] = rows[:, self.drop_first :][found]
        if unknown in place:
            counts = np.bincount(codes, minlength=len(levels) + 1)
            for code in np.flatnonzero((place == unknown) & (counts > 0)):
                self.unseen[levels[code]] += int(counts[code])


@dataclass(frozen=True)
class LevelNumbers:
    """A column that a model takes as a category: the number of each value's level, from 1 on.

    A value that is none of the levels is 0, and counted in `unseen`; where the category ``grows``
    it is a level from then on. With ``holes`` a missing value is the level "missing".
    ``coded`` says which words the values stand for, and `part` which part of a date they are.
    """

    column: str
    levels: tuple[str, ...]
    grows: bool = False
    holes: bool = False
    part: str = ""
    coded: Callable[[Any], Codes] = encode_text
    unseen: Counter[str] = field(default_factory=Counter, compare=False)

    @property
    def label(self) -> str:
        """The column, or ``column.part``."""
        return f"{self.column}.{self.part}" if self.part else self.column

    @property
    def names(self) -> tuple[str, ...]:
        """The same, alone."""
        return (self.label,)

    def begin(self) -> None:
        """Forget the unseen levels."""
        self.unseen.clear()

    def fill(self, values: Any, out: FloatArray) -> None:
        """Write the numbers, and count what is none of the levels."""
        codes, words = self.coded(values)
        numbers = {level: float(number) for number, level in enumerate(self.levels, start=1)}
        gone = numbers.get(MISSING, 0.0 if self.holes else np.nan)
        found = np.array([numbers.get(word, 0.0) for word in words] + [gone])
        out[:, 0] = found[codes]
        counts = np.bincount(codes, minlength=len(words) + 1)
        words = [*words, MISSING] if self.holes else words
        new = {word: int(n) for word, n in zip(words, counts, strict=False) if word not in numbers}
        self.unseen.update({word: n for word, n in new.items() if n})

    def join(self, values: Any) -> LevelNumbers:
        """The same with those levels of the values, too, that come for the first time."""
        if not self.grows:
            return self
        codes, words = self.coded(values)
        words = [*words, MISSING] if self.holes else words
        counts = np.bincount(codes, minlength=len(words) + 1)
        there = [word for word, count in zip(words, counts, strict=False) if count]
        return replace(self, levels=Category(0, self.label, self.levels).join(there).levels)


@dataclass(frozen=True)
class Days:
    """A column of dates, times or durations, in days: since 1970 (UTC), since midnight, or long."""

    column: str

    @property
    def names(self) -> tuple[str, ...]:
        """The column's own name."""
        return (self.column,)

    def begin(self) -> None:
        """Do nothing: no earlier rows are kept."""

    def fill(self, values: Any, out: FloatArray) -> None:
        """Write days and their fractions."""
        out[:, 0] = as_days(values)


@dataclass(frozen=True)
class PlacedEncoder:
    """An encoder, with the places of its features among those of a row."""

    encoder: Encoder
    places: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its features."""
        return self.encoder.names

    def fill(self, values: Any, out: FloatArray) -> None:
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

    def grow(self, values: Any, n_features: int) -> PlacedEncoder:
        """Return the encoder with a feature more for each new level in ``values``."""
        if isinstance(self.encoder, LevelNumbers):
            return replace(self, encoder=self.encoder.join(values))
        if not isinstance(self.encoder, Categories):
            return self
        codes, words = self.encoder.coded(values)
        counts = np.bincount(codes, minlength=len(words) + 1)
        there = {word for word, count in zip(words, counts, strict=False) if count}
        new = sorted(there.difference(self.encoder.levels))
        if not new:
            return self
        places = (*self.places, *range(n_features, n_features + len(new)))
        return PlacedEncoder(replace(self.encoder, levels=(*self.encoder.levels, *new)), places)


def place_encoders(encoders: Sequence[Encoder]) -> tuple[PlacedEncoder, ...]:
    """Encoders whose features stand side by side."""
    made, first = [], 0
    for encoder in encoders:
        last = first + len(encoder.names)
        made.append(PlacedEncoder(encoder, tuple(range(first, last))))
        first = last
    return tuple(made)


__all__ = [
    "Categories",
    "Days",
    "Encoder",
    "LevelNumbers",
    "Numbers",
    "PlacedEncoder",
    "place_encoders",
]
