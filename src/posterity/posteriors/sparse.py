"""The posterior of many features of which a row has few: a sparse precision matrix."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from posterity.aliases import Array, Indices
from posterity.factor.parallel import FEW_COLUMNS, limit_blas_threads
from posterity.factor.rows import as_targets
from posterity.factor.sparse_pattern import SparsityPattern, find_sparsity_pattern
from posterity.likelihoods import Likelihood
from posterity.posteriors._centres import Centres
from posterity.posteriors._sparse_data import (
    RELATIVE_ROUNDING,
    KeptRows,
    SummedRows,
    centre_at_means,
    move,
    to_matrix,
    to_rows,
)
from posterity.posteriors._sparse_fit import Fit, Reading
from posterity.posteriors._sparse_rows import Observations, SparseRows
from posterity.posteriors._sparse_sites import Sweep
from posterity.posteriors._sparse_solution import Solution
from posterity.posteriors._wide import ManyFeatures, Pairs, match_moments
from posterity.safety import check_memory
from posterity.transaction import Undo

Numbers = NDArray[np.int32]


@dataclass
class SparsePosterior(ManyFeatures):
    """Weights with all their covariances, by a sparse factor of prior and data.

    Of Gaussian noise the sums of products are kept; of
    any other likelihood the rows are, each with a Gaussian site that has to be found anew
    (expectation propagation). With ``learns`` the prior precision of each column is the one with
    the largest evidence. With ``terms`` the columns of each vary together by level, the k-th
    feature of one with the k-th of the others; their covariances are integrated over, and weights
    of other columns have nearly no prior.
    """

    likelihood: Likelihood
    start: float
    learns: bool
    intercept: bool
    noise: tuple[float, float] | None
    owners: Numbers  # (P,) the column of each feature
    squares: Array  # (columns, 2) sum of squares of a column's values, and their number
    rows: SparseRows  # kept rows, or those of the matrix of products
    targets: Array  # (n,) of kept rows, or (P,) sums of x y
    row_weights: Array  # (n,) of kept rows
    found: Array  # (columns, 1) prior precisions with which a search begins
    row_offsets: Array = field(default_factory=lambda: np.zeros(0))  # (n,) of kept rows
    square: float = 0.0  # sum of (y - centre)^2
    centre: float = 0.0
    n_observations: float = 0.0
    n_effective: float = 0.0
    centres: Centres = field(default_factory=Centres)
    terms: tuple[tuple[int, ...], ...] | None = None
    _reading: Reading | None = field(default=None, compare=False, repr=False)
    _pattern: tuple[Any, SparsityPattern] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def before_data(
        cls,
        likelihood: Likelihood,
        precision: float | None,
        *,
        intercept: bool,
        noise: tuple[float, float] | None = None,
        forgets: bool = False,
    ) -> Self:
        """Return the prior; ``precision`` None: learned. ``noise``: shape and rate, if learned."""
        del forgets  # sums fade as a whole
        start = 1.0 if precision is None else precision
        vague = 0.0 if likelihood.is_gaussian else 1.0 / likelihood.vague_variance
        return cls(
            likelihood,
            start,
            precision is None,
            intercept,
            noise,
            owners=np.zeros(1, dtype=np.int32),
            squares=np.zeros((2, 2)),
            rows=_make_no_rows(),
            targets=as_targets(np.zeros((0, likelihood.n_numbers))),
            row_weights=np.zeros(0),
            found=np.array([[vague], [start]]),
        )

    # ---- learning --------------------------------------------------------------------------------

    def grow(self, n_features: int, owners: Numbers, n_columns: int) -> None:
        """Have room for features up to ``n_features``, the last of them of columns ``owners``."""
        more = n_features - len(self.owners)
        if more > 0:
            self.owners = np.concatenate([self.owners, np.zeros(more, dtype=np.int32)])
        if len(owners):
            self.owners[n_features - len(owners) : n_features] = owners
        new = n_columns - len(self.squares)
        if new > 0:
            self._forget_reading()
            self.squares = np.concatenate([self.squares, np.zeros((new, 2))])
            self.found = np.concatenate([self.found, np.full((new, 1), self.start)])

    def learn(
        self, data: Observations, pairs: Pairs | None, undo: Undo, *, predict: bool = False
    ) -> None:
        """Learn rows, in place.

        Sums of products are about a value that is near, so that few digits are lost. Rows are kept
        as they came.
        """
        assert not predict
        centres, (left, kept) = self.centres.copy(), data.left
        centres.count(data.rows, data.weights)
        centred = self.likelihood.is_gaussian and self.intercept
        if centred:
            centres.begin_at_means(data.rows, data.weights)
        data = replace(data, rows=self.centre_rows(data.rows, centres, pairs))
        updated = replace(self, centres=centres)
        mine = move(self._data, self.centres, centres.values - self.centres.values)
        updated.squares = self.squares + self._sum_squares(data)
        own = data.own_weights
        if self.n_observations == 0.0 and centred and own.any():
            mine = mine._replace(centre=float(np.average(data.y - data.own_offsets, weights=own)))
        updated._store(mine.add(mine.summarize(self._matrix(data.rows), data, kept), left))
        updated.count(data)
        updated._forget_reading()
        if self.n_observations == 0.0:
            updated._find_pattern(centre_at_means(updated._data, updated.centres)[0].met)
        vars(self).update(vars(updated))

    def merge(self, other: SparsePosterior, features: Numbers, columns: Numbers) -> None:
        """Add what ``other`` has learned; its features and columns are these of one's own."""
        self.squares[columns] += other.squares
        places = np.arange(len(features)), features
        shape = len(other.owners), len(self.owners)
        B = csr_array((np.ones(len(features)), places), shape)
        theirs, centres = other._data.transform(B), other.centres.renumber(features)
        centres.add(self.centres.features)
        self.centres.add(centres.features)
        by = self.centres.values - centres.values
        theirs = move(theirs, centres, by)
        centres.move(by)
        self.centres.absorb(centres)
        self._store(self._data.add(theirs, 1.0))
        self.n_observations += other.n_observations
        self.n_effective += other.n_effective
        self._forget_reading()

    def unlearn(self, data: Observations, pairs: Pairs | None) -> None:
        """Take back what these rows added; raise ``ValueError`` where they can't be among it."""
        came, own, mine = data.rows, data.own_weights, self._data
        data = replace(data, rows=self.centre_rows(came, self.centres, pairs))
        if (data.rows.features < 0).any():
            raise ValueError(
                "these rows have features that were never learned: unlearn only rows that the "
                "model has learned"
            )
        total = float(own.sum())
        left = mine.remove(mine.summarize(self._matrix(data.rows), data, own))
        if left is None or total > self.n_observations * (1.0 + RELATIVE_ROUNDING):
            raise ValueError(
                "these rows were not learned, or not with these weights: unlearn only rows that "
                "the model has learned"
            )
        updated = self.copy()
        updated._store(left)
        updated.squares = np.maximum(self.squares - self._sum_squares(data), 0.0)
        updated.centres.count(came, data.weights, -1.0)
        updated.n_observations = max(self.n_observations - total, 0.0)
        updated.n_effective = max(self.n_effective - total, 0.0)
        if updated.n_observations <= RELATIVE_ROUNDING * self.n_observations:
            updated._clear()
        updated._forget_reading()
        vars(self).update(vars(updated))

    def _clear(self) -> None:
        """Be as before the first row: what subtraction leaves of all rows is rounding."""
        self.rows, self.targets = _make_no_rows(), np.zeros(0)
        self.row_weights = self.row_offsets = np.zeros(0)
        self.square = self.centre = self.n_observations = self.n_effective = 0.0
        self.squares = np.zeros_like(self.squares)
        self.centres.clear()

    def _sum_squares(self, data: Observations) -> Array:
        """(columns, 2) sums of squares of columns' values, and their number, in rows of weight."""
        rows, size = data.rows, len(self.squares)
        owners = np.where(data.own_weights[rows.row_numbers] > 0.0, self.owners[rows.features], 0)
        some = owners > 0
        sums = np.bincount(owners[some], np.square(rows.values[some]), size)
        return np.stack([sums, np.bincount(owners[some], None, size)], axis=1)

    @property
    def _data(self) -> Any:
        """What is kept of rows: a :class:`SummedRows` of Gaussian noise, or :class:`KeptRows`."""
        size = len(self.owners)
        matrix = to_matrix(self.rows, size)
        if not self.likelihood.is_gaussian:
            return KeptRows(matrix, self.targets, self.row_weights, self.row_offsets)
        matrix.resize(size, size)
        targets = np.concatenate([self.targets, np.zeros(size - len(self.targets))])
        return SummedRows(matrix, targets, self.square, self.centre)

    def _store(self, data: SummedRows | KeptRows) -> None:
        fields = data._asdict()
        self.rows = to_rows(fields.pop("matrix"))
        vars(self).update(fields)

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def weights(self) -> Array:
        """(members,) weights of the priors that the posterior is a mixture over."""
        return self.reading().weights

    @property
    def members(self) -> int:
        """Number of these priors."""
        return len(self.weights)

    @property
    def precision(self) -> Array:
        """(columns, members) prior precisions, on values of mean square 1 where learned."""
        return np.hstack([one.precisions for one in self.reading().solutions])

    @property
    def shape(self) -> float:
        """Shape of the Gamma posterior of the noise's precision, -1 where it is known."""
        weights, solutions, *_ = self.reading()
        return float(weights @ [one.shape for one in solutions])

    @property
    def rates(self) -> Array:
        """(members,) rates of the Gamma posterior of the noise's precision."""
        return np.array([one.rate for one in self.reading().solutions])

    def moments(self, rows: SparseRows, pairs: Pairs | None) -> tuple[Array, Array]:
        """Mean and variance (n, members) of eta at rows as they came, in units of the noise.

        ``pairs`` are added to them.
        """
        solutions = self.reading().solutions
        rows = self.centre_rows(rows, self.solution().centres, pairs)
        known = rows.features >= 0
        X = self._matrix(rows.keep_entries(known))
        new = None if known.all() else rows.keep_entries(~known)
        found = [one.predict(X) for one in solutions]
        mean, variance = (np.stack(part, axis=1) for part in zip(*found, strict=True))
        if new is not None:
            variance += np.stack([one.predict_new(new) for one in solutions], axis=1)
        return mean + self.centre, variance

    def marginals(self, n_features: int) -> tuple[Array, Array]:
        """Means and variances of the first ``n_features`` weights, the intercept's at 0.

        Variances are in units of the noise.
        """
        found = [one.marginals() for one in self.reading().solutions]
        mean, variance = (np.stack(part, axis=1) for part in zip(*found, strict=True))
        mean[0] += self.centre
        return match_moments(mean[:n_features], variance[:n_features], self.weights)

    def member_marginals(self, features: Indices) -> tuple[Array, Array]:
        """Means and variances (n, members) of some weights, under each prior."""
        found = [one.of_features(features) for one in self.reading().solutions]
        mean, variance = (np.stack(part, axis=1) for part in zip(*found, strict=True))
        return mean + self.centre * (features == 0)[:, None], variance

    def covariances(self, summed: Array) -> Array:
        """(p,) covariances of the first p weights with a sum of them, in units of the noise."""
        every = np.zeros(len(self.owners))
        every[: len(summed)] = summed
        found = [one.covariances(every)[: len(summed)] for one in self.reading().solutions]
        return np.asarray(self.weights @ found)

    def degrees_of_freedom(self, n_features: int) -> Array:
        """(n_features,) of the Student-t distributions of the weights; infinite of known noise."""
        if not self.likelihood.is_gaussian:
            return np.full(n_features, np.inf)
        return self.solution().degrees_of_freedom()[:n_features]

    def solution(self) -> Solution:
        """The posterior under the likeliest prior."""
        return self.reading().solutions[0]

    def reading(self) -> Reading:
        """The posterior; found anew where rows have come since it was read last."""
        if self._reading is None:
            with limit_blas_threads(self._pattern[1].widest if self._pattern else FEW_COLUMNS):
                fit = Fit(self)
                self._reading = fit.maximize() if self.terms is None else fit.integrate()
        return self._reading

    def _forget_reading(self) -> None:
        """Rows have come: the next search begins where the last one ended."""
        if self._reading is not None:
            logs = np.log(np.maximum(self.precision, np.finfo(float).tiny))
            self.found, self._reading = np.exp(logs @ self.weights)[:, None], None

    # ---- inner -----------------------------------------------------------------------------------

    def _noise(self, sweep: Sweep, prior: Array, taken: float) -> tuple[float, float]:
        """Shape and rate of the noise's precision; -1 and its variance if it is known.

        Weights with a ``prior`` (p,) count as if it were flat: they have ``taken`` so many degrees
        of freedom.
        """
        if self.noise is None:
            return -1.0, 1.0 / self.known_precision
        flat = float(self.intercept and self.n_effective > 0.0)
        left = self.square - sweep.explained - float(prior @ np.square(sweep.mean))
        shape = self.noise[0] + 0.5 * max(self.n_effective - flat - taken, 0.0)
        return shape, self.noise[1] + 0.5 * max(left, 0.0)

    def _noise_precision(self, shape: float, rate: float) -> float | None:
        """Return the noise precision that weights are relative to; None before data tell of it."""
        if self.noise is None:
            return self.known_precision
        return shape / rate if shape > 0.0 and rate > 0.0 else None

    def _find_pattern(self, matrix: csc_array) -> SparsityPattern:
        """The order and the fronts, found anew where other entries are not zero."""
        matrix.sort_indices()
        where = matrix.shape, hash(matrix.indptr.tobytes()), hash(matrix.indices.tobytes())
        if self._pattern is None or self._pattern[0] != where:
            self._pattern = where, find_sparsity_pattern(matrix, _check_fill)
        return self._pattern[1]

    def _matrix(self, rows: SparseRows) -> csr_array:
        X = to_matrix(rows.add_intercept() if self.intercept else rows, len(self.owners))
        X.sort_indices()
        return X


def _make_no_rows() -> SparseRows:
    return SparseRows(np.zeros(1, np.int64), np.zeros(0, np.int32), None, np.zeros(0))


def _check_fill(n_numbers: int) -> None:
    check_memory(
        24.0 * n_numbers,
        f"a sparse factor of {n_numbers:,} numbers",
        "use the diagonal model, which needs 64 bytes a feature",
    )


__all__ = ["SparsePosterior"]
