"""The posterior of many features of which a row has few: a sparse precision matrix."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array

from posterity.factor.sparse_cholesky import Pattern, SparseCholesky, find_pattern
from posterity.likelihoods import Gaussian, Likelihood
from posterity.posteriors._sparse_sites import (
    RowSites,
    SparseData,
    find_mode_sites,
    make_sites,
    match_moments,
)
from posterity.posteriors.diagonal import SparseRows
from posterity.safety import check_memory

Array = NDArray[np.float64]
Numbers = NDArray[np.int32]

# Log of a learned precision, on values of mean square 1, and how far one step of it may go.
LEAST_LOG, LARGEST_LOG, LONGEST_STEP = -12.0, 16.0, 3.0
# Evidence, in nats, that one more step of the precisions may still gain; and the most steps.
NEGLIGIBLE, NEGLIGIBLE_A_ROW, MOST_STEPS = 1e-7, 1e-5, 100
# Of a step, while sites of rows move too; and the change of these that ends it.
PACE_OF_SCALES, SETTLED = 0.5, 1e-5
# Of sums from which rows were subtracted.
RELATIVE_ROUNDING = 1e-9
# Rows whose variances are found at once.
BLOCK = 256


class Solution(NamedTuple):
    """The posterior under given prior precisions: of the features ``met``, the others' is prior."""

    met: NDArray[np.intp]
    prior: Array  # (P,) prior precision of each feature
    mean: Array  # (P,)
    factor: SparseCholesky
    variance: Array  # (m,) of the features met, in units of the noise
    shape: float
    rate: float
    sites: RowSites | None  # of kept rows


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
    found: Array  # (columns, 1) prior precisions found last, with which a search begins
    square: float = 0.0  # sum of (y - centre)^2
    centre: float = 0.0
    n_observations: float = 0.0
    n_effective: float = 0.0
    _solution: Solution | None = field(default=None, compare=False, repr=False)
    _pattern: tuple[Any, Pattern] | None = field(default=None, compare=False, repr=False)

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
        """Before any row; ``precision`` None: learned. ``noise``: shape and rate, if learned."""
        del forgets  # sums fade as a whole
        start = 1.0 if precision is None else precision
        vague = 0.0 if likelihood.is_noise else 1.0 / likelihood.vague_variance
        nothing = SparseRows(np.zeros(1, np.int64), np.zeros(0, np.int32), None, np.zeros(0))
        return cls(
            likelihood,
            start,
            precision is None,
            intercept,
            noise,
            owners=np.zeros(1, dtype=np.int32),
            squares=np.zeros((2, 2)),
            rows=nothing,
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
            self.squares = np.concatenate([self.squares, np.zeros((new, 2))])
            self.found = np.concatenate([self.found, np.full((new, 1), self.start)])

    def learn(
        self,
        rows: SparseRows,
        y: Array,
        weights: Array | None,
        discounts: Array | None,
        *,
        predict: bool,
    ) -> None:
        """Learn rows, in place."""
        assert not predict
        updated = self._add_rows(rows, y, weights, discounts)
        if self.n_observations == 0.0:
            updated._find_pattern(updated._precision_matrix_of_data())
        vars(self).update(vars(updated))

    def merge(self, other: SparsePosterior, features: Numbers, columns: Numbers) -> None:
        """Add what ``other`` has learned; its features and columns are these of one's own."""
        self.squares[columns] += other.squares
        theirs = other._renumber(features, len(self.owners))
        self._add(theirs, 1.0)
        self.n_observations += other.n_observations
        self.n_effective += other.n_effective
        self._solution = None

    def unlearn(self, rows: SparseRows, y: Array, weights: Array | None) -> None:
        """Subtract what these rows of Gaussian noise added; raise where they can't be among it."""
        own = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        updated = self.copy()
        taken = self._summary(self._matrix(rows), y, own, self.centre)
        values = None if taken.rows.values is None else -taken.rows.values
        less = replace(
            taken,
            rows=replace(taken.rows, values=values),
            targets=-taken.targets,
            square=-taken.square,
        )
        updated._add(less, 1.0)
        before = self._precision_matrix_of_data().diagonal()
        left = updated._precision_matrix_of_data().diagonal()
        rounding = RELATIVE_ROUNDING * (before + 1.0)
        if (
            (left < -rounding).any()
            or updated.square < -RELATIVE_ROUNDING * (self.square + 1.0)
            or float(own.sum()) > self.n_observations + RELATIVE_ROUNDING
        ):
            raise ValueError(
                "these rows were not learned, or not with these weights: unlearn only rows that "
                "the model has learned"
            )
        updated.square = max(updated.square, 0.0)
        sums, counts = self._sum_squares(rows, own)
        updated.squares = np.maximum(self.squares - np.stack([sums, counts], axis=1), 0.0)
        updated.n_observations -= float(own.sum())
        updated.n_effective -= float(own.sum())
        updated._solution = None
        vars(self).update(vars(updated))

    def _sum_squares(self, rows: SparseRows, weights: Array) -> tuple[Array, Array]:
        """Sum of squares of each column's values, and their number, in rows of weight > 0."""
        here = np.repeat(weights > 0.0, np.diff(rows.starts))
        values = np.ones(len(rows.features)) if rows.values is None else rows.values
        owners = np.where(here, self.owners[rows.features], 0)
        some, size = owners > 0, len(self.squares)
        sums = np.bincount(owners[some], np.square(values[some]), size)
        return sums.astype(np.float64), np.bincount(owners[some], None, size).astype(np.float64)

    def _add_rows(
        self, rows: SparseRows, y: Array, weights: Array | None, discounts: Array | None
    ) -> SparsePosterior:
        updated = self.copy()
        own = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        left = np.ones(len(y) + 1)  # of what was before each row, and after the last
        if discounts is not None and len(y):
            left[:-1] = np.cumprod(discounts[::-1])[::-1]
        kept = own * left[1:]
        X = self._matrix(rows)
        updated.squares += np.stack(self._sum_squares(rows, own), axis=1)
        if self.n_observations == 0.0 and self.intercept and len(y) and own.any():
            updated.centre = float(np.average(y, weights=own)) if self.likelihood.is_noise else 0.0
        updated._add(self._summary(X, y, kept, updated.centre), left[0])
        updated.n_observations += float(own.sum())
        updated.n_effective = self.n_effective * float(left[0]) + float(kept.sum())
        updated._solution = None
        return updated

    def _summary(self, X: csr_array, y: Array, weights: Array, centre: float) -> SparsePosterior:
        """What these rows say, as a posterior whose other fields do not matter."""
        if not self.likelihood.is_noise:
            some = weights > 0.0
            rows = _to_rows(csr_array(X[some]))
            return replace(self, rows=rows, targets=y[some], row_weights=weights[some], centre=0.0)
        apart = y - centre
        products = csr_array(X.T @ (diags_array(weights) @ X))
        return replace(
            self,
            rows=_to_rows(products),
            targets=X.T @ (weights * apart),
            square=float(weights @ np.square(apart)),
            centre=centre,
        )

    def _renumber(self, features: Numbers, size: int) -> SparsePosterior:
        """The same data, with other numbers of features."""
        matrix = _to_matrix(self.rows, len(self.owners)).tocoo()
        column = features[matrix.col]
        if not self.likelihood.is_noise:
            matrix = csr_array((matrix.data, (matrix.row, column)), (len(self.targets), size))
            return replace(self, rows=_to_rows(matrix))
        placed = csr_array((matrix.data, (features[matrix.row], column)), (size, size))
        sums = np.zeros(size)
        sums[features[: len(self.targets)]] = self.targets
        return replace(self, rows=_to_rows(placed), targets=sums)

    def _add(self, other: SparsePosterior, left: float) -> None:
        """Add data to what is ``left`` of one's own."""
        size = len(self.owners)
        mine, theirs = _to_matrix(self.rows, size), _to_matrix(other.rows, size)
        if not self.likelihood.is_noise:
            self.rows = _to_rows(_stack_rows(mine, theirs))
            self.targets = np.concatenate([self.targets, other.targets])
            self.row_weights = np.concatenate([left * self.row_weights, other.row_weights])
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
        self.rows, self.targets = _to_rows(left * mine + theirs), sums
        self.square = left * self.square + square

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def precision(self) -> Array:
        """(columns, 1) prior precisions, on values of mean square 1 where they are learned."""
        self.solution()
        return self.found

    @property
    def shape(self) -> float:
        """Shape of the Gamma posterior of the noise's precision, -1 where it is known."""
        return self.solution().shape

    @property
    def rates(self) -> Array:
        """(1,) its rate."""
        return np.array([self.solution().rate])

    def linear_moments(self, rows: SparseRows) -> tuple[Array, Array]:
        """Mean and variance of eta at rows, in units of the noise: (n, 1) each."""
        found = self.solution()
        mean, variance = np.zeros(len(rows)), np.zeros(len(rows))
        known = rows.features >= 0
        values = np.ones(len(known)) if rows.values is None else rows.values
        row = np.repeat(np.arange(len(rows)), np.diff(rows.starts))
        if not known.all():
            assert rows.columns is not None
            prior = self._column_precisions()[rows.columns[~known]]
            np.add.at(variance, row[~known], np.square(values[~known]) / prior)
        X = csr_array((values[known], (row[known], rows.features[known])), self._shape(rows))
        X = _add_intercept(X) if self.intercept else X
        mean += X @ found.mean
        seen = np.zeros(len(self.owners), dtype=bool)
        seen[found.met] = True
        with np.errstate(divide="ignore"):
            unseen = np.where(seen, 0.0, 1.0 / found.prior)
        variance += X.power(2) @ np.where(np.isfinite(unseen), unseen, 0.0)
        met = csr_array(X[:, found.met])
        for start in range(0, len(rows), BLOCK):
            some = slice(start, start + BLOCK)
            white = found.factor.whiten(met[some].toarray().T)
            variance[some] += np.einsum("ij,ij->j", white, white)
        if self.intercept:
            mean += self.centre
            if not seen[0] and found.prior[0] == 0.0:
                variance[:] = np.inf
        return mean[:, None], variance[:, None]

    def marginals(self, n_features: int) -> tuple[Array, Array]:
        """Means and variances of the first so many weights, the intercept's at 0.

        Variances are in units of the noise.
        """
        found = self.solution()
        with np.errstate(divide="ignore"):
            variance = 1.0 / found.prior
        variance[found.met] = found.variance
        mean = found.mean.copy()
        mean[0] += self.centre
        return mean[:n_features], variance[:n_features]

    def same_prior(self, other: SparsePosterior) -> bool:
        """Whether both started from the same belief."""
        names = ("likelihood", "start", "learns", "intercept", "noise")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def copy(self) -> SparsePosterior:
        """The same, to go its own way."""
        arrays: dict[str, Any] = {
            k: v.copy() for k, v in vars(self).items() if isinstance(v, np.ndarray)
        }
        return replace(self, **arrays)

    def solution(self) -> Solution:
        """The posterior; found anew where rows have come since it was read last."""
        if self._solution is None:
            self._solution, self.found = self._search()
        return self._solution

    # ---- inner -----------------------------------------------------------------------------------

    def _search(self) -> tuple[Solution, Array]:
        """The posterior under the prior precisions of largest evidence, by Fisher's scoring.

        The gradient of the log evidence by the log of a column's precision is half of what its
        features are known to by data, less what their squares have of the prior's precision. Of
        rows that need sites it is so where these have settled; both move together until then.
        """
        precision = self.found.copy()
        found = self._at(precision)
        columns = np.unique(self.owners[found.met])
        columns = columns[columns > 0]
        learns = self.learns and self._tells_of_scales(found)
        negligible, pace = NEGLIGIBLE, 1.0
        if not self.likelihood.is_noise:
            negligible, pace = NEGLIGIBLE_A_ROW * len(self.targets), PACE_OF_SCALES
        for _ in range(MOST_STEPS):
            if learns:
                logs = np.log(precision[columns, 0])
                step, gain = self._step(found, columns)
                new = np.clip(logs + pace * step, LEAST_LOG, LARGEST_LOG)
                learns = bool(np.sum(gain * (new != logs)) >= negligible)
                precision[columns, 0] = np.exp(new) if learns else precision[columns, 0]
            if not learns and (found.sites is None or found.sites.change < SETTLED):
                break
            found = self._at(precision, found.sites, same_prior=not learns)
        return found, precision

    def _step(self, found: Solution, columns: NDArray[Any]) -> tuple[Array, Array]:
        """Change of the log precisions of columns, and the evidence that it gains."""
        owners, prior = self.owners[found.met], found.prior[found.met]
        by_data = 1.0 - prior * found.variance
        taken = self._noise_precision(found) * prior * np.square(found.mean[found.met])
        size = len(self.squares)
        gradient = 0.5 * (np.bincount(owners, by_data - taken, size))[columns]
        information = 0.5 * np.bincount(owners, np.square(by_data), size)[columns]
        step = np.clip(gradient / (information + 1e-12), -LONGEST_STEP, LONGEST_STEP)
        return step, np.abs(gradient * step)

    def _noise_precision(self, found: Solution) -> float:
        if isinstance(self.likelihood, Gaussian) and self.noise is None:
            return self.likelihood.precision
        return 1.0 if self.noise is None else found.shape / found.rate

    def _tells_of_scales(self, found: Solution) -> bool:
        """Whether there is a noise to compare weights with."""
        return self.noise is None or (found.shape > 0.0 and found.rate > 0.0)

    def _at(
        self, precision: Array, sites: RowSites | None = None, *, same_prior: bool = True
    ) -> Solution:
        """The posterior under these precisions; of rows with sites, one sweep on."""
        prior = (precision[:, 0] * self._mean_squares())[self.owners]
        data = self._precision_matrix_of_data()
        met = np.flatnonzero(data.diagonal() > 0.0)
        mean = np.zeros(len(prior))
        if self.likelihood.is_noise:
            factor = self._factorize(data, prior, met)
            mean[met] = factor.solve(self.targets[met])
            variance = factor.inverse_diagonal()
        else:
            X = csr_array(_to_matrix(self.rows, len(prior))[:, met])
            factor, mean[met], variance, sites = self._sweep(X, prior[met], sites, same_prior)
        shape, rate = -1.0, 0.0
        if self.noise is not None:
            flat = float(self.intercept and self.n_effective > 0.0)
            shape = self.noise[0] + 0.5 * max(self.n_effective - flat, 0.0)
            left = max(self.square - float(self.targets[met] @ mean[met]), 0.0)
            rate = self.noise[1] + 0.5 * left
        return Solution(met, prior, mean, factor, variance, shape, rate, sites)

    def _sweep(
        self, X: csr_array, prior: Array, before: RowSites | None, same_prior: bool
    ) -> tuple[SparseCholesky, Array, Array, RowSites]:
        """Factor, mean and variance of the weights, and the rows' sites one sweep on."""
        data = SparseData(X, self.targets, self.row_weights)

        def factorize(precision: Array) -> SparseCholesky:
            matrix = csc_array(X.T @ (diags_array(precision) @ X))
            return SparseCholesky(matrix + diags_array(prior), self._find_pattern(matrix))

        if before is None:
            precision, shift = find_mode_sites(self.likelihood, data, prior, factorize)
        else:
            precision, shift = match_moments(self.likelihood, data, before)
        factor = factorize(precision)
        mean = factor.solve(X.T @ shift)
        variance, spread = factor.variances(X)
        sites = make_sites(precision, shift, X @ mean, spread, before, same_prior=same_prior)
        return factor, mean, variance, sites

    def _factorize(self, data: csc_array, prior: Array, met: NDArray[np.intp]) -> SparseCholesky:
        matrix = csc_array(data[met][:, met])
        return SparseCholesky(matrix + diags_array(prior[met]), self._find_pattern(matrix))

    def _precision_matrix_of_data(self) -> csc_array:
        """(P, P) of Gaussian noise what rows have said; else where that is not zero."""
        matrix = _to_matrix(self.rows, len(self.owners))
        if self.likelihood.is_noise:
            matrix.resize(len(self.owners), len(self.owners))
            return matrix.tocsc()
        return csc_array(abs(matrix).T @ abs(matrix))

    def _find_pattern(self, matrix: csc_array) -> Pattern:
        """The order and the fronts, found anew where other entries are not zero."""
        matrix.sort_indices()
        where = matrix.shape, hash(matrix.indptr.tobytes()), hash(matrix.indices.tobytes())
        if self._pattern is None or self._pattern[0] != where:
            self._pattern = where, find_pattern(matrix, _check_fill)
        return self._pattern[1]

    def _matrix(self, rows: SparseRows) -> csr_array:
        X = _to_matrix(rows, len(self.owners))
        return _add_intercept(X) if self.intercept else X

    def _shape(self, rows: SparseRows) -> tuple[int, int]:
        return len(rows), len(self.owners)

    def _column_precisions(self) -> Array:
        return np.asarray(self.precision[:, 0] * self._mean_squares())

    def _mean_squares(self) -> Array:
        """(columns,) what learned precisions are relative to."""
        sums, counts = self.squares.T
        relative = self.learns & (counts > 0.0) & (np.arange(len(counts)) > 0)
        return np.where(relative, sums / np.where(relative, counts, 1.0), 1.0)


def _check_fill(n_numbers: int) -> None:
    check_memory(
        24.0 * n_numbers,
        f"a sparse factor of {n_numbers:,} numbers",
        "use the diagonal model, which needs 64 bytes a feature",
    )


def _to_matrix(rows: SparseRows, size: int) -> csr_array:
    values = np.ones(len(rows.features)) if rows.values is None else rows.values
    # A copy: SciPy sorts in place, numbers without their indices where it has to convert these.
    return csr_array((values, rows.features, rows.starts), (len(rows), size), copy=True)


def _to_rows(matrix: csr_array) -> SparseRows:
    matrix = csr_array(matrix)
    starts = matrix.indptr.astype(np.int64)
    return SparseRows(starts, matrix.indices.astype(np.int32), None, matrix.data)


def _add_intercept(X: csr_array) -> csr_array:
    n = X.shape[0]
    ones = csr_array((np.ones(n), np.zeros(n, np.int32), np.arange(n + 1)), X.shape)
    return csr_array(X + ones)


def _stack_rows(above: csr_array, below: csr_array) -> csr_array:
    starts = np.concatenate([above.indptr, above.indptr[-1] + below.indptr[1:]])
    indices = np.concatenate([above.indices, below.indices])
    shape = (above.shape[0] + below.shape[0], below.shape[1])
    return csr_array((np.concatenate([above.data, below.data]), indices, starts), shape)


__all__ = ["SparsePosterior"]
