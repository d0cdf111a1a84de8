"""The number of each feature: a column, and where that holds labels the level in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import murmurhash3_32

from posterity.distributions.guesses import did_you_mean
from posterity.factor.grouped_rows import number_keys
from posterity.grouped.index import KeyIndex
from posterity.linear.keys import Keys, list_labels
from posterity.sparse.parts import Part
from posterity.transaction import Undo

Numbers = NDArray[np.int32]
Codes = NDArray[np.int64]
Pair = tuple[int, int]

# Column of a matrix's features, and of tokens; named ones and pairs of columns come after it.
UNNAMED = 1
SHIFT = 32
# As FeatureHasher has it.
SEED, LEAST_HASH = 0, -(2**31)


@dataclass
class FeatureLevels:
    """The levels of a column, or pairs of features, and the feature that each is."""

    index: KeyIndex = field(default_factory=KeyIndex)
    features: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int32))


@dataclass
class FeatureIndex:
    """Numbers of columns and features, both from 1 on; 0 is the intercept's.

    With ``hashed`` a feature's number is a hash of its name, "column=level", as in scikit-learn's
    FeatureHasher, and only columns grow in number. The ``given`` features of a matrix come first;
    they are columns of their own if ``columns`` has their names, else all of one.

    Examples
    --------
    >>> from posterity.linear.keys import read_keys
    >>> index = FeatureIndex()
    >>> site = index.column("site", new=True)
    >>> index.levels_of(site, read_keys([["a", "b", "a"]], ["site"]), new=True)[0]
    array([1, 2], dtype=int32)
    >>> index.names()
    ['site=a', 'site=b']
    """

    hashed: int | None = None
    given: int | None = None
    size: int = 1
    columns: list[str | Pair] = field(default_factory=list)
    levels: dict[int, FeatureLevels] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)  # features of columns of numbers
    pairs: FeatureLevels = field(default_factory=FeatureLevels)

    def __post_init__(self) -> None:
        if self.size == 1:
            self.size += self.hashed or self.given or 0
        self._places = {name: 2 + place for place, name in enumerate(self.columns)}

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureIndex, tuple(getattr(self, name) for name in self.__dataclass_fields__)

    @property
    def n_columns(self) -> int:
        """Number of columns, the intercept's among them."""
        return 2 + len(self.columns)

    @property
    def has_own_columns(self) -> bool:
        """True if each feature of a matrix is a column, as they are numbers."""
        return bool(self.given and self.columns) and isinstance(self.columns[0], str)

    def column(self, name: str | Pair, *, new: bool) -> int:
        """The number of a column, or of a pair of columns; -1 of one that is not known."""
        if name == "":
            return UNNAMED
        number = self._places.get(name, -1)
        if number < 0 and new:
            number = self._places[name] = self.n_columns
            self.columns.append(name)
        return number

    def known_feature(self, column: int, label: str | None) -> int:
        """The feature of a column of numbers, or of a level; -1 of one that is not known."""
        if label is None:
            return self.numbers.get(column, -1)
        levels = self.levels.get(column)
        place = None if levels is None else levels.index.place(label)
        return -1 if levels is None or place is None else int(levels.features[place])

    def column_name(self, number: int) -> str:
        """The name of a column, "a & b" of a pair."""
        if number <= UNNAMED:
            return ""
        name = self.columns[number - 2]
        return name if isinstance(name, str) else " & ".join(map(self.column_name, name))

    def check_kinds(self, parts: Iterable[Part]) -> None:
        """Raise ``ValueError`` where levels are of another kind than those known."""
        for part in parts:
            levels = self.levels.get(self.column(part.name, new=False))
            if levels is not None and part.keys is not None:
                try:
                    levels.index.check_kinds(part.keys)
                except ValueError as error:
                    raise ValueError(f"column {part.name!r}: {error}") from error

    def check_complete(self, parts: Sequence[Part]) -> None:
        """Raise ``ValueError`` where columns of all rows, as of a frame, lack one that is known.

        Or where one holds numbers that held levels, or the other way round: it would be left out.
        """
        if not parts or any(part.rows is not None for part in parts):
            return  # mappings leave out what is not active
        kinds: dict[str, dict[int, Any]] = {"levels": self.levels, "numbers": self.numbers}
        for part in parts:
            column = self.column(part.name, new=False)
            now, before = kinds if part.keys is not None else reversed(kinds)
            if column in kinds[before] and column not in kinds[now]:
                raise ValueError(
                    f"column {part.name!r} holds {now} now, and held {before} in rows before: "
                    "convert it to the type that it had"
                )
        given = {part.name for part in parts}
        known = [name for name in self.columns if isinstance(name, str)]
        lost = next((name for name in known if name not in given), None)
        if lost is not None:
            raise ValueError(
                f"X lacks the column {lost!r}, which was learned{did_you_mean(lost, given)}: add "
                "it, or give rows as mappings of names to values, which leave out what is not "
                "active"
            )

    def keep(self, undo: Undo, parts: Iterable[Part]) -> None:
        """Have ``undo`` take back the numbers of what is new in these parts, and of their pairs."""
        undo.keep_attributes(self)
        for named in (self._places, self.levels, self.numbers):
            undo.add(partial(_shorten, named, named.popitem, len(named)))
        undo.add(partial(_shorten, self.columns, self.columns.pop, len(self.columns)))
        known = (self.levels.get(self.column(part.name, new=False)) for part in parts)
        for levels in (self.pairs, *(one for one in known if one is not None)):
            undo.keep_attributes(levels)
            undo.add(levels.index.take_snapshot().restore)

    # ---- features ----

    def levels_of(self, column: int, keys: Keys, *, new: bool) -> tuple[Numbers, Numbers | None]:
        """Features of the labels of ``keys``, -1 of those not known, and signs if hashed."""
        if self.hashed is not None:
            name = self.column_name(column)
            lead = f"{name}=" if name else ""
            return self._hash([f"{lead}{label}" for label in list_labels(keys.labels)])
        if new:
            levels = self.levels.setdefault(column, FeatureLevels())
        else:
            levels = self.levels.get(column, FeatureLevels())
        return self._place(levels, keys, new), None

    def number_of(self, column: int, *, new: bool) -> tuple[int, int]:
        """The feature of a column of numbers, and its sign."""
        if self.hashed is not None:
            features, signs = self._hash([self.column_name(column)])
            if new:
                self.numbers[column] = int(features[0])
            return int(features[0]), int(signs[0])
        feature = self.numbers.get(column, -1)
        if feature < 0 and new:
            feature = self.numbers[column] = self.size
            self.size += 1
        return feature, 1

    def pairs_of(self, low: Numbers, high: Numbers, *, new: bool) -> Numbers:
        """The features that two active ones together are, -1 where not known."""
        codes = low.astype(np.int64) << SHIFT | high
        if self.hashed is not None:
            return _mix_hashes(codes, self.hashed)
        known = (low >= 0) & (high >= 0)
        places, distinct = number_keys(np.where(known, codes, 0))
        found = self._place(self.pairs, Keys(places, distinct, ("numbers",)), new)
        return np.where(known, found[places], np.int32(-1))

    def pair_columns_of(self, low: Numbers, high: Numbers, *, new: bool) -> Numbers:
        """The columns that pairs of columns are, -1 where not known."""
        places, codes = number_keys(low.astype(np.int64) << SHIFT | high)
        pairs = [(code >> SHIFT, code & (2**SHIFT - 1)) for code in codes.tolist()]
        found = [self.column(pair, new=new) for pair in pairs]
        return np.array(found, dtype=np.int32)[places]

    def list_numbers(self) -> list[int]:
        """The features of columns of numbers."""
        return list(self.numbers.values())

    # ---- reading ----

    def names(self) -> list[str]:
        """Names of the features but the intercept, in their order; of hashed ones numbers."""
        named = [f"x{place}" for place in range(self.size - 1)]
        if self.hashed is not None:
            return named
        for column, feature in self.numbers.items():
            named[feature - 1] = self.column_name(column)
        for column, levels in self.levels.items():
            lead = f"{self.column_name(column)}=" if column != UNNAMED else ""
            for label, feature in zip(levels.index.list_keys(), levels.features, strict=True):
                named[feature - 1] = f"{lead}{label}"
        for code, feature in zip(self.pairs.index.labels, self.pairs.features, strict=True):
            one, other = int(code) >> SHIFT, int(code) & (2**SHIFT - 1)
            named[feature - 1] = f"{named[one - 1]} & {named[other - 1]}"
        return named

    def absorb(self, other: FeatureIndex) -> tuple[Numbers, Numbers]:
        """Return this index's numbers of another's features and columns; new ones are added."""
        columns = np.arange(other.n_columns, dtype=np.int32)
        for number in range(2, other.n_columns):
            name = other.columns[number - 2]
            mine = (
                name if isinstance(name, str) else _order_pair(columns[name[0]], columns[name[1]])
            )
            columns[number] = self.column(mine, new=True)
        features = np.arange(other.size, dtype=np.int32)
        if self.hashed is not None:
            return features, columns
        for column, feature in other.numbers.items():
            features[feature] = self.number_of(int(columns[column]), new=True)[0]
        for column, levels in other.levels.items():
            found = self.levels_of(int(columns[column]), _all_keys(levels), new=True)[0]
            features[levels.features] = found
        codes = np.asarray(other.pairs.index.labels, dtype=np.int64)
        one, two = features[codes >> SHIFT], features[codes & (2**SHIFT - 1)]
        if len(codes):
            ends = np.minimum(one, two), np.maximum(one, two)
            features[other.pairs.features] = self.pairs_of(*ends, new=True)
        return features, columns

    # ---- inner ----

    def _place(self, levels: FeatureLevels, keys: Keys, new: bool) -> Numbers:
        places = levels.index.places(keys, new=new)
        more = len(levels.index.labels) - len(levels.features)
        if more:
            fresh = np.arange(self.size, self.size + more, dtype=np.int32)
            levels.features = np.concatenate([levels.features, fresh])
            self.size += more
        return np.append(levels.features, np.int32(-1))[places]  # the last is that of place -1

    def _hash(self, names: list[str]) -> tuple[Numbers, Numbers]:
        assert self.hashed is not None
        hashes = np.array([murmurhash3_32(name, seed=SEED) for name in names], dtype=np.int64)
        # The absolute value of the least number is not one of 32 bits.
        places = np.where(hashes == LEAST_HASH, 2**31 - self.hashed, np.abs(hashes)) % self.hashed
        return (1 + places).astype(np.int32), np.where(hashes >= 0, 1, -1).astype(np.int32)


def _shorten(collection: Sized, pop: Callable[[], object], size: int) -> None:
    while len(collection) > size:
        pop()


def _order_pair(one: Any, two: Any) -> Pair:
    return (int(min(one, two)), int(max(one, two)))


def _all_keys(levels: FeatureLevels) -> Keys:
    index = levels.index
    return Keys(np.arange(len(index.labels), dtype=np.int32), index.labels, index.kinds)


def _mix_hashes(codes: Codes, size: int) -> Numbers:
    """Hashes of pairs of features (the finalizer of SplitMix64, Steele et al. 2014)."""
    bits = codes.view(np.uint64).copy()
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ bits >> np.uint64(shift)) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return (1 + bits % np.uint64(size)).astype(np.int32)
