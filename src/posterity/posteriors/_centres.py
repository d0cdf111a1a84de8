"""Where numbers are centred, so that what their weights do hardly depends on the intercept.

A row r, with the intercept's 1, is read as r B: from each number its centre is subtracted, and of a
product of two features both factors are what is then left. B differs from the identity in few
entries, and by it rows, sums of products and weights move on to other centres.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, eye_array

from posterity.aliases import AnyArray, Array, Indices, Mask
from posterity.posteriors._sparse_rows import SparseRows
from posterity.transaction import Undo

Numbers = NDArray[np.int32]

# A number is centred if at least this share of rows have it: a rarer one would lose its zeros. The
# features of a matrix are numbers if at least half of its entries are not zero.
LEAST_SHARE, FULL_MATRIX = 0.125, 0.5
# In a stream centres move after each row at first, and later when a part of 1 / STEADY has come.
STEADY = 8


class Terms(NamedTuple):
    """Entries of B - I: row, column and value."""

    rows: Indices
    columns: Indices
    values: Array

    def matrix(self, size: int) -> csr_array:
        """B (size, size)."""
        apart = coo_array((self.values, (self.rows, self.columns)), (size, size))
        return csr_array(eye_array(size) + apart)


@dataclass
class Centres:
    """Features that are numbers, in their order, and what is subtracted from each of these (k,).

    ``sums``: of what was left of them in rows, by weight; ``counts``: of rows in which they were
    not 0. ``products`` (m, 3): a feature, and the two whose product it is.
    """

    features: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    values: Array = field(default_factory=lambda: np.zeros(0))
    sums: Array = field(default_factory=lambda: np.zeros(0))
    counts: Array = field(default_factory=lambda: np.zeros(0))
    products: Numbers = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int32))
    in_matrix: bool = False
    n_rows: float = 0.0
    weight: float = 0.0
    due: float = 1.0  # number of rows at which the centres move next
    _active: Indices | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of_matrix(cls, width: int) -> Centres:
        """Of the features 1 to ``width`` of a matrix."""
        features = np.arange(1, width + 1, dtype=np.int32)
        values, sums, counts = np.zeros((3, width))
        return cls(features, values, sums, counts, in_matrix=True)

    @property
    def active(self) -> Indices:
        """The places of numbers from which something is subtracted."""
        if self._active is None:
            self._active = np.flatnonzero(self.values)
        return self._active

    def add(self, numbers: AnyArray) -> None:
        """Features that are numbers, some of which may be known to be."""
        given = np.asarray(numbers, dtype=np.int32)
        new = given[self.find(given) < 0]
        if len(new):
            new = np.unique(new)
            places = np.searchsorted(self.features, new)
            self.features = np.insert(self.features, places, new)
            self.values, self._active = np.insert(self.values, places, 0.0), None
            self.sums = np.insert(self.sums, places, 0.0)
            self.counts = np.insert(self.counts, places, 0.0)

    def add_products(self, features: Numbers, one: Numbers, other: Numbers) -> None:
        """Features that are products of two, at least one of them a number."""
        some = np.isin(one, self.features) | np.isin(other, self.features)
        if some.any():
            self._join_products(np.stack([features[some], one[some], other[some]], axis=1))

    def plan(self, n: int, weights: Array | None) -> Iterator[tuple[int, int]]:
        """Parts of n rows: after each but the last, centres are due to move."""
        here = np.ones(n) if weights is None else (weights > 0.0).astype(np.float64)
        seen, start = self.n_rows + np.cumsum(here), 0
        due = self.due
        while start < n:
            while due <= (seen[start - 1] if start else self.n_rows):
                due += max(1.0, due // STEADY)
            stop = min(int(np.searchsorted(seen, due)) + 1, n)
            yield start, stop
            start = stop

    def keep(self, undo: Undo, rows: SparseRows) -> None:
        """Have ``undo`` put back what rows change in arrays; other arrays are replaced."""
        if len(self.features):
            places = self.find(rows.features)
            undo.keep_entries(self.counts, places)
            undo.keep_entries(self.sums, places)

    def clear(self) -> None:
        """Forget all rows, but not which features are numbers."""
        self.values, self.sums, self.counts = np.zeros((3, len(self.features)))
        self.n_rows, self.weight, self._active = 0.0, 0.0, None

    def copy(self) -> Centres:
        """An independent copy."""
        named: dict[str, Any] = {
            k: v.copy() for k, v in vars(self).items() if isinstance(v, np.ndarray)
        }
        return replace(self, **named)

    # ---- rows ------------------------------------------------------------------------------------

    def find(self, features: Numbers) -> Indices:
        """The places of features among the numbers, -1 of those that are none."""
        if not len(self.features):
            return np.full(len(features), -1)
        places = np.searchsorted(self.features, features)
        places[places == len(self.features)] = 0
        return np.where(self.features[places] == features, places, -1)

    def count(self, rows: SparseRows, weights: Array | None, sign: float = 1.0) -> None:
        """Count rows of positive weight, as they came, and in how many each number is not 0."""
        if weights is not None and not weights.all():
            kept = np.where((weights > 0.0)[rows.row_numbers], rows.features, -1)
            rows = replace(rows, features=kept)
        self.n_rows += sign * (len(rows) if weights is None else np.count_nonzero(weights))
        if len(self.features):
            places = self.find(rows.features)
            np.add.at(self.counts, places[places >= 0], sign)

    def tally(self, rows: SparseRows, left: float, weights: Array) -> None:
        """Add the numbers in centred rows of these weights to what is ``left`` of all before."""
        self.sums = self.sums * left
        self.weight = self.weight * left + float(weights.sum())
        if len(self.features):
            places = self.find(rows.features)
            some = places >= 0
            np.add.at(self.sums, places[some], (rows.values * weights[rows.row_numbers])[some])

    def is_due(self) -> bool:
        """Return True if centres are to move; it is then said when they will be the next time."""
        before = self.due
        while self.due <= self.n_rows:
            self.due += max(1.0, self.due // STEADY)
        return self.due > before

    def start_at(self, row: SparseRows) -> None:
        """Centre the numbers of the first row at their values."""
        places = self.find(row.features)
        some = places >= 0
        if self.dense.any():
            self.values, self._active = self.values.copy(), None
            self.values[places[some]] = row.values[some]

    def begin_at_means(self, rows: SparseRows, weights: Array | None) -> None:
        """Centre numbers that come for the first time, in rows counted already, at their means."""
        here = np.ones(len(rows), dtype=bool) if weights is None else weights > 0.0
        places = self.find(rows.features)
        some = (places >= 0) & here[rows.row_numbers]
        size = len(self.features)
        new = self.dense & (np.bincount(places[some], None, size) == self.counts)
        mean = np.bincount(places[some], rows.values[some], size) / max(here.sum(), 1)
        self.values[new], self._active = mean[new], None

    def weigh(self, squares: Array, weight: float) -> tuple[Indices, Array]:
        """Features in columns whose values are centred, and the weight of the rows that have them.

        ``squares`` (P,): sums of squares of the features' values; ``weight``: of all rows.
        """
        active = self.values != 0.0
        if not active.any():
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        own = np.where(active, weight, weight * self.counts / self.n_rows)
        some = active | self.in_matrix
        features, weights = [self.features[some].astype(np.intp)], [own[some]]
        if len(self.products):
            product, *parts = self.products.astype(np.intp).T
            found = [self.find(part.astype(np.int32)) for part in parts]
            touched = np.any([(at >= 0) & active[at] for at in found], axis=0)
            # Levels are ones, of which the sum of squares is the weight.
            has = [
                np.where(at >= 0, own[at], squares[part])
                for at, part in zip(found, parts, strict=True)
            ]
            features.append(product[touched])
            weights.append(np.minimum(*has)[touched])
        return np.concatenate(features), np.concatenate(weights)

    @property
    def dense(self) -> Mask:
        """(k,) whether so many rows have a number that it is centred."""
        full = FULL_MATRIX * self.n_rows * len(self.features)
        if self.in_matrix and self.counts.sum() < full:
            return np.zeros(len(self.features), dtype=bool)
        return self.counts >= max(LEAST_SHARE * self.n_rows, 0.5)

    # ---- moving ----------------------------------------------------------------------------------

    @property
    def means(self) -> Array:
        """(k,) the mean of each number in all rows, 0 of one that is too rare to be centred."""
        mean = self.values + self.sums / max(self.weight, 1e-300)
        return np.where(self.dense, mean, 0.0)

    def move(self, by: Array) -> None:
        """Centre numbers further on ``by`` (k,)."""
        self.values, self._active = self.values + by, None
        self.sums = self.sums - self.weight * by

    def renumber(self, features: Numbers) -> Centres:
        """The same centres, with other numbers of features."""
        found = features[self.features]
        order = np.argsort(found, kind="stable")
        return replace(
            self,
            features=found[order],
            values=self.values[order],
            sums=self.sums[order],
            counts=self.counts[order],
            products=features[self.products] if len(self.products) else self.products,
            _active=None,
        )

    def absorb(self, other: Centres) -> None:
        """Add the rows of another one's, which has the same numbers and the same centres."""
        self.sums, self.counts = self.sums + other.sums, self.counts + other.counts
        self._join_products(other.products)
        self.n_rows += other.n_rows
        self.weight += other.weight

    def find_terms(self, by: Array) -> Terms:
        """Entries of B - I where numbers are centred further on ``by`` (k,)."""
        moved = np.flatnonzero(by)
        features, zero = self.features[moved].astype(np.intp), np.zeros(len(moved), dtype=np.intp)
        found = [(zero, features, -by[moved])]
        if len(moved) and len(self.products):
            product, one, other = self.products.astype(np.intp).T
            first, second = (self._spread(by, part) for part in (one, other))
            found += [(other, product, -first), (one, product, -second)]
            found.append((np.zeros(len(product), dtype=np.intp), product, first * second))
        parts = [np.concatenate(part) for part in zip(*found, strict=True)]
        some = parts[2] != 0.0
        return Terms(*(part[some] for part in parts))

    def _join_products(self, new: Numbers) -> None:
        if len(new):
            both = np.unique(np.concatenate([self.products, new]), axis=0)
            self.products = np.ascontiguousarray(both)

    def _spread(self, by: Array, features: Indices) -> Array:
        places = self.find(features.astype(np.int32))
        return np.where(places >= 0, by[places], 0.0)


def subtract_centres(rows: SparseRows, centres: Centres, owners: Numbers) -> SparseRows:
    """The rows with numbers less their centres: where they were not active, less than 0.

    ``owners``: the column of each feature.
    """
    active = centres.active
    if not len(active):
        return rows
    features, values = centres.features[active], centres.values[active]
    place = np.searchsorted(features, rows.features)
    place[place == len(features)] = 0
    own, given = features[place] == rows.features, rows.values
    if np.count_nonzero(own) == len(rows) * len(active):
        apart = given - np.where(own, values[place], 0.0)
        return replace(rows, values=apart).drop_zeros()
    row, other = rows.row_numbers, ~own
    block = np.zeros((len(rows), len(active)))
    block[row[own], place[own]] = given[own]
    filled_rows = np.repeat(np.arange(len(rows)), len(active))
    order = np.argsort(np.concatenate([row[other], filled_rows]), kind="stable")

    def join(kept: Any, filled: Any) -> Any:
        return np.concatenate([kept[other], np.tile(filled, len(rows))])[order]

    columns = None if rows.columns is None else join(rows.columns, owners[features])
    counts = np.bincount(row[other], minlength=len(rows)) + len(active)
    starts = np.concatenate([[0], np.cumsum(counts)])
    apart = np.concatenate([given[other], (block - values).ravel()])[order]
    return SparseRows(starts, join(rows.features, features), columns, apart).drop_zeros()


__all__ = ["Centres", "Terms", "subtract_centres"]
