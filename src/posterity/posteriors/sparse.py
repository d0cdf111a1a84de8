"""The posterior of many features of which a row has few: a sparse precision matrix."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array

from posterity.factor.sparse_pattern import SparsityPattern, find_sparsity_pattern
from posterity.likelihoods import Gaussian, Likelihood
from posterity.posteriors._centres import Centres, compute_left, subtract_centres
from posterity.posteriors._sparse_centring import CentredData, centre_kept_rows, centre_sums
from posterity.posteriors._sparse_matrices import (
    find_rows,
    renumber,
    stack_rows,
    to_matrix,
    to_rows,
)
from posterity.posteriors._sparse_rows import Row, SparseRows
from posterity.posteriors._sparse_search import NEGLIGIBLE, NEGLIGIBLE_A_ROW, Columns, search
from posterity.posteriors._sparse_sites import ProductSums, SiteRows, Sweep
from posterity.posteriors._sparse_solution import Solution
from posterity.safety import check_memory
from posterity.transaction import Undo

Array = NDArray[np.float64]
Numbers = NDArray[np.int32]

# Weight of the prior of a column's scale, for labels or counts, in weights of 1.
KNOWN_WEIGHTS = 1.0
# Number of weights that tell a scale: of Gaussian noise, columns that have fewer are given the
# others. Of k weights in such columns, and n rows, these draw to 0 by a share of (k / n)^2.
ENOUGH_WEIGHTS = 5.0
# Relative rounding of sums from which rows were subtracted.
RELATIVE_ROUNDING = 1e-9


@dataclass
class SparsePosterior:
    """Weights with all their covariances, by a sparse factor of prior and data.

    Feature and column 0 are the intercept's. Of Gaussian noise the sums of products are kept; of
    any other likelihood the rows are, each with a Gaussian site that has to be found anew
    (expectation propagation). With ``learns`` the prior precision of each column is the one with
    the largest evidence.
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
    _solution: Solution | None = field(default=None, compare=False, repr=False)
    _pattern: tuple[Any, SparsityPattern] | None = field(default=None, compare=False, repr=False)

    members = 1
    weights = np.ones(1)

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
        vague = 0.0 if likelihood.is_noise else 1.0 / likelihood.vague_variance
        return cls(
            likelihood,
            start,
            precision is None,
            intercept,
            noise,
            owners=np.zeros(1, dtype=np.int32),
            squares=np.zeros((2, 2)),
            rows=_make_no_rows(),
            targets=np.zeros(0),
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
            self._forget_solution()
            self.squares = np.concatenate([self.squares, np.zeros((new, 2))])
            self.found = np.concatenate([self.found, np.full((new, 1), self.start)])

    def plan(self, n: int, weights: Array | None) -> list[tuple[int, int]]:
        """Parts in which n rows are to be learned: all at once."""
        return [(0, n)]

    def expect(self, rows: SparseRows, weights: Array | None) -> Centres:
        """Return where the numbers of these rows, which are learned next, are to be centred.

        Sums of products are about a value that is near, so that few digits are lost. Rows are kept
        as they came.
        """
        centres = self.centres.copy()
        centres.count(rows, weights)
        if self.likelihood.is_noise and self.intercept:
            centres.begin_at_means(rows, weights)
        return centres

    def learn(
        self,
        rows: SparseRows,
        y: Array,
        weights: Array | None,
        discounts: Array | None,
        centres: Centres,
        *,
        offsets: Array | None = None,
        predict: bool,
        undo: Undo,
    ) -> None:
        """Learn rows, in place."""
        assert not predict
        updated = self._add_rows(rows, y, weights, discounts, offsets, centres)
        if self.n_observations == 0.0:
            updated._find_pattern(updated._read().matrix)
        vars(self).update(vars(updated))

    def learn_given(
        self,
        rows: SparseRows,
        y: Array,
        weights: Array | None,
        discounts: Array | None,
        *,
        offsets: Array | None = None,
        predict: bool,
        undo: Undo,
    ) -> None:
        """Learn rows as they came, in place."""
        centres = self.expect(rows, weights)
        rows = subtract_centres(rows, centres, self.owners)
        how: dict[str, Any] = {"offsets": offsets, "predict": predict, "undo": undo}
        self.learn(rows, y, weights, discounts, centres, **how)

    def learn_row(self, row: Row, y: float, discount: float, offset: float) -> bool:
        """Learn a row of known features, as it came."""
        rows, left, added = SparseRows.of_one(row), np.array([discount]), np.array([offset])
        how: dict[str, Any] = {"offsets": added, "predict": False, "undo": Undo()}
        self.learn_given(rows, np.array([y]), None, left, **how)
        return True

    def centre_numbers(self) -> None:
        """Do nothing: numbers are centred where the posterior is found."""

    def revisit(
        self, rows: SparseRows, y: Array, weights: Array | None, offsets: Array | None = None
    ) -> None:
        """Do nothing: rows that come together are learned together."""

    def merge(self, other: SparsePosterior, features: Numbers, columns: Numbers) -> None:
        """Add what ``other`` has learned; its features and columns are these of one's own."""
        self.squares[columns] += other.squares
        theirs = other._renumber(features, len(self.owners))
        theirs.centres.add(self.centres.features)
        self.centres.add(theirs.centres.features)
        by = self.centres.values - theirs.centres.values
        theirs._shift(by)
        theirs.centres.move(by)
        self.centres.absorb(theirs.centres)
        self._add(theirs, 1.0)
        self.n_observations += other.n_observations
        self.n_effective += other.n_effective
        self._forget_solution()

    def unlearn(
        self,
        came: SparseRows,
        rows: SparseRows,
        y: Array,
        weights: Array | None,
        offsets: Array | None = None,
    ) -> None:
        """Take back what these rows added; raise ``ValueError`` where they can't be among it.

        ``came``: the rows before their numbers were centred.
        """
        own = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        updated = self.copy()
        added = np.zeros(len(y)) if offsets is None else offsets
        taken = self._summary(self._matrix(rows), y, own, added, self.centre)
        lacking = not (updated._subtract if self.likelihood.is_noise else updated._drop)(taken)
        if lacking or float(own.sum()) > self.n_observations * (1.0 + RELATIVE_ROUNDING):
            raise ValueError(
                "these rows were not learned, or not with these weights: unlearn only rows that "
                "the model has learned"
            )
        sums, counts = self._sum_squares(rows, own)
        updated.squares = np.maximum(self.squares - np.stack([sums, counts], axis=1), 0.0)
        updated.centres.count(came, weights, -1.0)
        updated.n_observations = max(self.n_observations - float(own.sum()), 0.0)
        updated.n_effective = max(self.n_effective - float(own.sum()), 0.0)
        if updated.n_observations <= RELATIVE_ROUNDING * self.n_observations:
            updated._clear()
        updated._forget_solution()
        vars(self).update(vars(updated))

    def _clear(self) -> None:
        """Be as before the first row: what subtraction leaves of all rows is rounding."""
        self.rows, self.targets = _make_no_rows(), np.zeros(0)
        self.row_weights = self.row_offsets = np.zeros(0)
        self.square = self.centre = self.n_observations = self.n_effective = 0.0
        self.squares = np.zeros_like(self.squares)
        self.centres.clear()

    def _subtract(self, taken: SparsePosterior) -> bool:
        """Subtract sums; whether what is left could be sums of rows."""
        before, square = self._precision_matrix_of_data().diagonal(), self.square
        rows = to_rows(-to_matrix(taken.rows, len(self.owners)))
        self._add(replace(taken, rows=rows, targets=-taken.targets, square=-taken.square), 1.0)
        left, square_left = self._precision_matrix_of_data().diagonal(), self.square
        self.square = max(self.square, 0.0)
        kept = left >= -RELATIVE_ROUNDING * (before + 1.0)
        return bool(kept.all() and square_left >= -RELATIVE_ROUNDING * (square + 1.0))

    def _drop(self, taken: SparsePosterior) -> bool:
        """Drop kept rows that are the same as these; whether each of these was there."""
        size = len(self.owners)
        mine, theirs = to_matrix(self.rows, size), to_matrix(taken.rows, size)
        found = find_rows((mine, self._row_numbers), (theirs, taken._row_numbers))
        if found is None:
            return False
        left = np.delete(np.arange(len(self.targets)), found)
        self.rows, self.targets = to_rows(csr_array(mine[left])), self.targets[left]
        self.row_weights, self.row_offsets = self.row_weights[left], self.row_offsets[left]
        return True

    @property
    def _row_numbers(self) -> Array:
        """(n, 3) targets, weights and offsets of kept rows."""
        return np.stack([self.targets, self.row_weights, self.row_offsets], axis=1)

    def _sum_squares(self, rows: SparseRows, weights: Array) -> tuple[Array, Array]:
        """Sum of squares of each column's values, and their number, in rows of weight > 0."""
        here = np.repeat(weights > 0.0, np.diff(rows.starts))
        owners = np.where(here, self.owners[rows.features], 0)
        some, size = owners > 0, len(self.squares)
        sums = np.bincount(owners[some], np.square(rows.numbers[some]), size)
        return sums.astype(np.float64), np.bincount(owners[some], None, size).astype(np.float64)

    def _add_rows(
        self,
        rows: SparseRows,
        y: Array,
        weights: Array | None,
        discounts: Array | None,
        offsets: Array | None,
        centres: Centres,
    ) -> SparsePosterior:
        updated = replace(self, centres=centres)
        own = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        added = np.zeros(len(y)) if offsets is None else offsets
        left = compute_left(discounts)
        left = np.ones(len(y) + 1) if left is None else left
        kept = own * left[1:]
        updated._shift(centres.values - self.centres.values)
        X = self._matrix(rows)
        updated.squares = self.squares + np.stack(self._sum_squares(rows, own), axis=1)
        if self.n_observations == 0.0 and self.intercept and len(y) and own.any():
            updated.centre = (
                float(np.average(y - added, weights=own)) if self.likelihood.is_noise else 0.0
            )
        updated._add(self._summary(X, y, kept, added, updated.centre), left[0])
        updated.n_observations += float(own.sum())
        updated.n_effective = self.n_effective * float(left[0]) + float(kept.sum())
        updated._forget_solution()
        return updated

    def _summary(
        self, X: csr_array, y: Array, weights: Array, offsets: Array, centre: float
    ) -> SparsePosterior:
        """Return the statistics of these rows, as a posterior whose other fields do not matter."""
        if not self.likelihood.is_noise:
            some = weights > 0.0
            rows = to_rows(X if some.all() else csr_array(X[some]))
            return replace(
                self,
                rows=rows,
                targets=y[some],
                row_weights=weights[some],
                row_offsets=offsets[some],
                centre=0.0,
            )
        apart = y - offsets - centre
        products = csr_array(X.T @ (diags_array(weights) @ X))
        return replace(
            self,
            rows=to_rows(products),
            targets=X.T @ (weights * apart),
            square=float(weights @ np.square(apart)),
            centre=centre,
        )

    def _renumber(self, features: Numbers, size: int) -> SparsePosterior:
        """The same data, with other numbers of features."""
        matrix, centres = to_matrix(self.rows, len(self.owners)), self.centres.renumber(features)
        if not self.likelihood.is_noise:
            rows = to_rows(renumber(matrix, None, features, size))
            return replace(self, rows=rows, centres=centres)
        sums = np.zeros(size)
        sums[features[: len(self.targets)]] = self.targets
        rows = to_rows(renumber(matrix, features, features, size))
        return replace(self, rows=rows, targets=sums, centres=centres)

    def _shift(self, by: Array) -> None:
        """Take sums of products about numbers that are centred further on ``by``."""
        if by.any():
            size = max(len(self.owners), len(self.targets))
            matrix, targets = to_matrix(self.rows, size), np.zeros(size)
            matrix.resize(size, size)
            targets[: len(self.targets)] = self.targets
            B = self.centres.find_terms(by).matrix(size)
            self.rows, self.targets = to_rows(csr_array(B.T @ matrix @ B)), B.T @ targets

    def _add(self, other: SparsePosterior, left: float) -> None:
        """Add data to what is ``left`` of one's own."""
        size = len(self.owners)
        mine, theirs = to_matrix(self.rows, size), to_matrix(other.rows, size)
        if not self.likelihood.is_noise:
            self.rows = to_rows(stack_rows(mine, theirs))
            self.targets = np.concatenate([self.targets, other.targets])
            self.row_weights = np.concatenate([left * self.row_weights, other.row_weights])
            self.row_offsets = np.concatenate([self.row_offsets, other.row_offsets])
            return
        mine.resize(size, size)
        theirs.resize(size, size)
        sums = np.zeros(size)
        sums[: len(other.targets)] = other.targets
        square = other.square
        shift = self.centre - other.centre
        if shift != 0.0:  # their targets, from one's own centre
            with_intercept = theirs[:, [0]].toarray()[:, 0]
            square += shift * (shift * with_intercept[0] - 2.0 * sums[0])
            sums -= shift * with_intercept
        sums[: len(self.targets)] += left * self.targets
        self.rows, self.targets = to_rows(left * mine + theirs), sums
        self.square = left * self.square + square

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def precision(self) -> Array:
        """(columns, 1) prior precisions, on values of mean square 1 where they are learned."""
        return self.solution().precisions

    @property
    def shape(self) -> float:
        """Shape of the Gamma posterior of the noise's precision, -1 where it is known."""
        return self.solution().shape

    @property
    def rates(self) -> Array:
        """(1,) rate of the Gamma posterior of the noise's precision."""
        return np.array([self.solution().rate])

    @property
    def reading_centres(self) -> Centres:
        """Where the numbers of rows are to be centred that are read."""
        return self.solution().centres

    def linear_moments(self, rows: SparseRows) -> tuple[Array, Array]:
        """Mean and variance of eta at centred rows, in units of the noise: (n, 1) each."""
        found = self.solution()
        variance = np.zeros(len(rows))
        known = rows.features >= 0
        if not known.all():
            assert rows.columns is not None
            prior = found.column_precisions[rows.columns[~known]]
            squares = np.square(rows.numbers[~known])
            np.add.at(variance, rows.row_numbers[~known], squares / prior)
            rows = rows.keep_entries(known)
        mean, own = found.predict(self._matrix(rows))
        return (mean + self.centre)[:, None], (variance + own)[:, None]

    def given_moments(self, rows: SparseRows) -> tuple[Array, Array]:
        """The same at rows as they came."""
        return self.linear_moments(subtract_centres(rows, self.reading_centres, self.owners))

    def row_moments(self, row: Row) -> tuple[Array, Array]:
        """The same at one row of known features, as it came: (1, 1) each."""
        return self.given_moments(SparseRows.of_one(row))

    def marginals(self, n_features: int) -> tuple[Array, Array]:
        """Means and variances of the first ``n_features`` weights, the intercept's at 0.

        Variances are in units of the noise.
        """
        mean, variance = self.solution().marginals()
        mean[0] += self.centre
        return mean[:n_features], variance[:n_features]

    def covariances(self, summed: Array) -> Array:
        """(p,) covariances of the first p weights with a sum of them, in units of the noise."""
        every = np.zeros(len(self.owners))
        every[: len(summed)] = summed
        return self.solution().covariances(every)[: len(summed)]

    def degrees_of_freedom(self, n_features: int) -> Array:
        """(n_features,) of the Student-t distributions of the weights; infinite of known noise."""
        if not self.likelihood.is_noise:
            return np.full(n_features, np.inf)
        return self.solution().degrees_of_freedom()[:n_features]

    def has_same_prior(self, other: SparsePosterior) -> bool:
        """Return True if both started from the same prior."""
        names = ("likelihood", "start", "learns", "intercept", "noise")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def copy(self) -> SparsePosterior:
        """An independent copy."""
        arrays: dict[str, Any] = {
            k: v.copy() for k, v in vars(self).items() if isinstance(v, np.ndarray | Centres)
        }
        return replace(self, **arrays)

    def solution(self) -> Solution:
        """The posterior; found anew where rows have come since it was read last."""
        if self._solution is None:
            self._solution = self._search()
        return self._solution

    def _forget_solution(self) -> None:
        """Rows have come: the next search begins where the last one ended."""
        if self._solution is not None:
            self.found, self._solution = self._solution.precisions, None

    # ---- inner -----------------------------------------------------------------------------------

    def _search(self) -> Solution:
        """The posterior under the prior precisions of the largest evidence."""
        data = self._read()
        met = np.flatnonzero(data.matrix.diagonal() >= np.finfo(float).tiny)
        columns = self._describe_columns(data, met)
        fixed, negligible = columns.few[columns.owners], NEGLIGIBLE
        if not self.likelihood.is_noise:
            negligible = NEGLIGIBLE_A_ROW * len(self.targets)
        targets = data.targets[met] if self.likelihood.is_noise else data.targets

        def noise(sweep: Sweep, prior: Array) -> tuple[float, float]:
            return self._noise(targets, sweep, np.where(fixed, prior, 0.0))

        def precision(sweep: Sweep, prior: Array) -> float | None:
            return self._noise_precision(*noise(sweep, prior))

        rows = self._find_rows(data, met)
        begun = self.found[:, 0].copy()
        begun[np.setdiff1d(np.arange(1, len(begun)), columns.learned)] = self.start
        sweep, precisions = search(rows, columns, begun, precision, negligible)
        mean = np.zeros(len(self.owners))
        mean[met] = sweep.mean
        mean[0] -= self._offset_centre
        shape, rate = noise(sweep, columns.spread(precisions))
        each = precisions * columns.scale
        return Solution(
            met,
            precisions[:, None],
            each,
            each[self.owners],
            mean,
            sweep.factor,
            sweep.variance,
            shape,
            rate,
            data.centres,
            columns,
        )

    def _read(self) -> CentredData:
        """Return the data with their numbers centred at their means."""
        if self.likelihood.is_noise:
            return centre_sums(self.rows, self.targets, self.centres, len(self.owners))
        return centre_kept_rows(
            self.rows,
            self.targets,
            self.row_weights,
            self.centres,
            len(self.owners),
            self.intercept,
        )

    def _find_rows(self, data: CentredData, met: NDArray[np.intp]) -> ProductSums | SiteRows:
        """Return the statistics of the rows learned, of the features ``met``."""
        matrix = csc_array(data.matrix[met][:, met])
        pattern = self._find_pattern(matrix)
        if self.likelihood.is_noise:
            return ProductSums(pattern.gather(matrix), data.targets[met], pattern)
        assert data.rows is not None
        X = csr_array(data.rows[:, met])
        pairs = pattern.pair(X)
        numbers = self.targets, self.row_weights, self.row_offsets - self._offset_centre
        return SiteRows(self.likelihood, X, *numbers, pattern, pairs)

    @property
    def _offset_centre(self) -> float:
        """What offsets are centred at: so no unit of exposure moves the intercept's prior."""
        if not (self.intercept and self.row_weights.any()):
            return 0.0
        return float(np.average(self.row_offsets, weights=self.row_weights))

    def _describe_columns(self, data: CentredData, met: NDArray[np.intp]) -> Columns:
        """Return the columns of the features ``met``, and what is known of their scales."""
        owners, size = self.owners[met], len(self.squares)
        numbers = np.bincount(owners, minlength=size)
        learned = (numbers > 0) & (np.arange(size) > 0) & self.learns
        few = learned & (numbers < ENOUGH_WEIGHTS) & self.likelihood.is_noise
        scale = np.where(self.learns, self._mean_squares(data), 1.0)
        known, usual = np.full(size, KNOWN_WEIGHTS), 1.0
        if self.likelihood.is_noise:
            known = np.where(few, ENOUGH_WEIGHTS - numbers, 0.0)
            usual = max(float(numbers[few].sum()), 1.0) ** 2 / max(self.n_effective, 1.0)
        return Columns(owners, np.flatnonzero(learned), scale, known, usual, few)

    def _mean_squares(self, data: CentredData) -> Array:
        """(columns,) mean squares of columns' values, of numbers that are centred about these."""
        sums, counts = self.squares.T.copy()
        features, weights = data.centres.weigh(data.squares, data.weight)
        if len(features):
            owners, size = self.owners[features], len(sums)
            sizes = np.bincount(owners, weights, size)
            touched = sizes > 0.0
            sums = np.where(touched, np.bincount(owners, data.squares[features], size), sums)
            counts = np.where(touched, sizes, counts)
        some = (counts > 0.0) & (sums > 0.0) & (np.arange(len(counts)) > 0)
        return np.where(some, sums / np.where(some, counts, 1.0), 1.0)

    def _noise(self, targets: Array, sweep: Sweep, prior: Array) -> tuple[float, float]:
        """Shape and rate of the noise's precision; -1 and 0 if it is known.

        Weights with a ``prior`` (p,) count as if it were flat: they take degrees of freedom.
        """
        if self.noise is None:
            return -1.0, 0.0
        flat = float(self.intercept and self.n_effective > 0.0)
        some = prior > 0.0
        taken = float(np.sum(1.0 - prior[some] * sweep.variance[some]))
        left = self.square - float(targets @ sweep.mean) - float(prior @ np.square(sweep.mean))
        shape = self.noise[0] + 0.5 * max(self.n_effective - flat - taken, 0.0)
        return shape, self.noise[1] + 0.5 * max(left, 0.0)

    def _noise_precision(self, shape: float, rate: float) -> float | None:
        """Return the noise precision that weights are relative to; None before data tell of it."""
        if isinstance(self.likelihood, Gaussian) and self.noise is None:
            return self.likelihood.precision
        if self.noise is None:
            return 1.0
        return shape / rate if shape > 0.0 and rate > 0.0 else None

    def _precision_matrix_of_data(self) -> csr_array:
        """(P, P) sums of products of rows of Gaussian noise."""
        matrix = to_matrix(self.rows, len(self.owners))
        matrix.resize(len(self.owners), len(self.owners))
        return matrix

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
