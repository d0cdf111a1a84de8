"""All that a sparse posterior keeps of rows: sums of products, or the rows themselves.

Both are values with the same verbs. Features are columns of SciPy's matrices here, 0 that of the
intercept, and ``B`` (P, P') takes rows x to x B.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array, vstack

from posterity.aliases import Array, Indices
from posterity.factor.sparse_pattern import SparsityPattern
from posterity.likelihoods import Likelihood
from posterity.posteriors._centres import Centres
from posterity.posteriors._sparse_rows import Observations, SparseRows
from posterity.posteriors._sparse_sites import ProductSums, SiteRows

# Finds the pattern of a matrix's factor.
Find = Callable[[csc_array], SparsityPattern]

# Relative rounding of sums from which rows were subtracted.
RELATIVE_ROUNDING = 1e-9
# A row that has faded to this weight is not kept.
SPENT = 1e-12


class SummedRows(NamedTuple):
    """Rows of Gaussian noise: sums of products (P, P), and with targets less a centre (P,)."""

    matrix: csr_array
    targets: Array
    square: float  # sum of (y - centre)^2
    centre: float

    def summarize(self, X: csr_array, data: Observations, weights: Array) -> SummedRows:
        """Other rows (n, P) with these weights (n,), in the same way."""
        apart = data.y - data.own_offsets - self.centre
        products = csr_array(X.T @ (diags_array(weights) @ X))
        square = float(weights @ np.square(apart))
        return SummedRows(products, X.T @ (weights * apart), square, self.centre)

    @property
    def products(self) -> csr_array:
        """(P, P) weighted sums of products of the features."""
        return self.matrix

    @property
    def sums(self) -> Array:
        """(P,) weighted sums of the features: products with the intercept's 1."""
        return np.asarray(self.matrix[[0], :].toarray()[0], dtype=np.float64)

    @property
    def squares(self) -> Array:
        """(P,) weighted sums of the features' squares."""
        return np.asarray(self.matrix.diagonal(), dtype=np.float64)

    @property
    def met(self) -> csc_array:
        """(P, P) of what is not zero where two features meet in a row."""
        return self.matrix.tocsc()

    @property
    def offset_centre(self) -> float:
        """What offsets are centred at: targets have none."""
        return 0.0

    def transform(self, B: csr_array) -> SummedRows:
        """The same of rows x B."""
        return self._replace(matrix=csr_array(B.T @ self.matrix @ B), targets=B.T @ self.targets)

    def add(self, other: SummedRows, left: float) -> SummedRows:
        """What is ``left`` of these rows, and others."""
        sums, square, shift = other.targets, other.square, self.centre - other.centre
        if shift != 0.0:  # their targets, from one's own centre
            square += shift * (shift * other.sums[0] - 2.0 * sums[0])
            sums = sums - shift * other.sums
        matrix, targets = left * self.matrix + other.matrix, left * self.targets + sums
        return self._replace(matrix=matrix, targets=targets, square=left * self.square + square)

    def remove(self, other: SummedRows) -> SummedRows | None:
        """These rows without others; None where what is left can't be sums of rows."""
        targets, square = self.targets - other.targets, self.square - other.square
        matrix = csr_array(self.matrix - other.matrix)
        left = self._replace(matrix=matrix, targets=targets, square=max(square, 0.0))
        known = (left.squares >= -RELATIVE_ROUNDING * (self.squares + 1.0)).all()
        return left if known and square >= -RELATIVE_ROUNDING * (self.square + 1.0) else None

    @property
    def features(self) -> Indices:
        """Those that rows have."""
        return np.flatnonzero(self.squares >= np.finfo(float).tiny)

    def gather(self, likelihood: Likelihood, features: Indices, find: Find) -> ProductSums:
        """The statistics of some features."""
        matrix = csc_array(self.met[features][:, features])
        pattern = find(matrix)
        return ProductSums(pattern.gather(matrix), self.targets[features], pattern)


class KeptRows(NamedTuple):
    """Rows (n, P) of any likelihood, with targets, weights and offsets (n,)."""

    matrix: csr_array
    targets: Array
    row_weights: Array
    row_offsets: Array

    def summarize(self, X: csr_array, data: Observations, weights: Array) -> KeptRows:
        """Other rows (n, P) with these weights (n,), but for those of 0."""
        some = weights > 0.0
        kept = X if some.all() else csr_array(X[some])
        return KeptRows(kept, data.y[some], weights[some], data.own_offsets[some])

    @property
    def products(self) -> csr_array:
        """(P, P) weighted sums of products of the features."""
        return csr_array(self.matrix.T @ (diags_array(self.row_weights) @ self.matrix))

    @property
    def sums(self) -> Array:
        """(P,) weighted sums of the features."""
        return np.asarray(self.matrix.T @ self.row_weights)

    @property
    def squares(self) -> Array:
        """(P,) weighted sums of the features' squares."""
        return np.asarray(self.matrix.power(2).T @ self.row_weights)

    @property
    def met(self) -> csc_array:
        """(P, P) of what is not zero where two features meet in a row."""
        ones = csr_array(self.matrix, copy=True)
        ones.data[:] = 1.0
        return csc_array(ones.T @ ones)

    @property
    def offset_centre(self) -> float:
        """What offsets are centred at: so no unit of exposure moves the intercept's prior."""
        if not self.sums[:1].any():
            return 0.0
        return float(np.average(self.row_offsets, weights=self.row_weights))

    def transform(self, B: csr_array) -> KeptRows:
        """The same of rows x B."""
        return self._replace(matrix=csr_array(self.matrix @ B))

    def add(self, other: KeptRows, left: float) -> KeptRows:
        """What is ``left`` of these rows, and others; rows of which nothing is left go."""
        mine = self._replace(row_weights=left * self.row_weights)
        if left < 1.0:
            mine = mine._select(np.flatnonzero(mine.row_weights > SPENT))
        (matrix, *numbers), (more, *others) = mine, other
        both = (np.concatenate(each) for each in zip(numbers, others, strict=True))
        return KeptRows(vstack([matrix, more], format="csr"), *both)

    def remove(self, other: KeptRows) -> KeptRows | None:
        """These rows without others, each dropped once; None where one is not among them."""
        places: dict[bytes, list[int]] = {}
        for number, key in enumerate(self._make_keys()):
            places.setdefault(key, []).append(number)
        dropped = []
        for key in other._make_keys():
            if not places.get(key):
                return None
            dropped.append(places[key].pop())
        return self._select(np.delete(np.arange(len(self.targets)), dropped))

    @property
    def features(self) -> Indices:
        """Those that rows have."""
        return np.unique(self.matrix.indices).astype(np.intp)

    def gather(self, likelihood: Likelihood, features: Indices, find: Find) -> SiteRows:
        """The rows of some features, with their sites."""
        pattern, X = find(csc_array(self.met[features][:, features])), self.matrix[:, features]
        numbers = self.targets, self.row_weights, self.row_offsets - self.offset_centre
        return SiteRows(likelihood, X, *numbers, pattern, pattern.pair(X))

    def _select(self, some: Indices) -> KeptRows:
        matrix, *numbers = self
        return KeptRows(csr_array(matrix[some]), *(one[some] for one in numbers))

    def _make_keys(self) -> list[bytes]:
        X, *numbers = self
        X.sort_indices()
        features, values = X.indices.astype(np.int64), X.data + 0.0
        return [
            features[low:high].tobytes() + values[low:high].tobytes() + own.tobytes()
            for low, high, own in zip(
                X.indptr[:-1], X.indptr[1:], np.column_stack(numbers) + 0.0, strict=True
            )
        ]


def centre_at_means(data: Any, centres: Centres) -> tuple[Any, Centres]:
    """The data, with numbers that are not rare centred at their means, and where these are."""
    sums = data.sums
    if not sums[0] >= np.finfo(float).tiny:  # nothing is known of means
        return data, centres
    by = np.where(centres.dense, sums[centres.features] / sums[0], -centres.values)
    moved = centres.copy()
    moved.move(by)
    return move(data, centres, by), moved


def move(data: Any, centres: Centres, by: Array) -> Any:
    """The data, with numbers centred further on ``by``."""
    if not by.any():
        return data
    return data.transform(centres.find_terms(by).matrix(len(data.sums)))


def to_matrix(rows: SparseRows, size: int) -> csr_array:
    """Rows (n, size), in memory of their own; ``ValueError`` where a feature is outside of them."""
    starts, features = rows.starts, rows.features
    lowest, highest = features.min(initial=0), features.max(initial=-1)
    if starts[0] != 0 or starts[-1] != len(features) or (np.diff(starts) < 0).any():
        raise ValueError("the rows of a sparse matrix do not begin and end where its features do")
    if lowest < 0 or highest >= size:  # SciPy would write where these say
        raise ValueError(
            f"a row has feature {highest if lowest >= 0 else lowest}, and the model has {size}"
        )
    # SciPy sorts in place, numbers without their indices where it has to convert these.
    return csr_array((rows.values, features, starts), (len(rows), size), copy=True)


def to_rows(matrix: csr_array) -> SparseRows:
    """The rows of a matrix."""
    starts = matrix.indptr.astype(np.int64)
    return SparseRows(starts, matrix.indices.astype(np.int32), None, matrix.data)


__all__ = [
    "RELATIVE_ROUNDING",
    "KeptRows",
    "SummedRows",
    "centre_at_means",
    "move",
    "to_matrix",
    "to_rows",
]
