"""Mean, variances and evidence of a sparse posterior, once its prior and its sites are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from posterity.aliases import Array, Indices
from posterity.factor.sparse_cholesky import SparseCholesky
from posterity.posteriors._centres import Centres
from posterity.posteriors._sparse_rows import SparseRows

# Rows whose variances are computed at once.
BLOCK = 256


class Solution(NamedTuple):
    """The posterior under given prior precisions: of the features ``met``, the others' is prior."""

    met: Indices
    precisions: Array  # (columns, 1), relative to mean squares
    column_precisions: Array  # (columns,)
    prior: Array  # (P,) prior precision of each feature
    mean: Array  # (P,)
    factor: SparseCholesky
    shape: float  # of the noise's precision and
    rate: float  # rate; where it is known, -1 and its variance
    centres: Centres
    rule: Any
    tied: Sequence[tuple[tuple[int, ...], Array]] = ()  # columns (k,), their covariance by level

    @property
    def variance(self) -> Array:
        """(m,) variances of the features met, in units of the noise."""
        return self.factor.inverse_entries()[self.factor.pattern.diagonal]

    def marginals(self) -> tuple[Array, Array]:
        """(P,) means and variances of the weights, of numbers that are not centred."""
        with np.errstate(divide="ignore"):
            variance = 1.0 / self.prior
        variance[self.met] = self.variance
        mean, terms = self.mean.copy(), self.centres.find_terms(self.centres.values)
        moved = np.unique(terms.rows)
        if len(moved):
            mean[moved], variance[moved] = self.predict(terms.matrix(len(mean))[moved])
        return mean, variance

    def of_features(self, features: Indices) -> tuple[Array, Array]:
        """Means and variances of some weights: quicker than those of all, where they are few."""
        terms = self.centres.find_terms(self.centres.values)
        return self.predict(terms.matrix(len(self.mean))[features])

    def covariances(self, summed: Array) -> Array:
        """(P,) covariances of the weights, of numbers that are not centred, with a sum of them."""
        B = self.centres.find_terms(self.centres.values).matrix(len(self.prior))
        centred = B.T @ summed
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(centred == 0.0, 0.0, centred / self.prior)
        found[self.met] = self.factor.solve(centred[self.met])
        return np.asarray(B @ found)

    def degrees_of_freedom(self) -> Array:
        """(P,) degrees of freedom of weights, of those of the noise and of scales: Satterthwaite.

        The variance v of the intercept, or of a weight whose column has few, depends on the prior
        precisions of other columns, whose logarithms are known with Fisher's information I, and
        with that of one weight beforehand, which is 1/2:
        1 / df = 1 / df of the noise + sum (d log v / d log precision)^2 / (2 I + 1).
        """
        if self.shape == 0.0:  # nothing is known of the noise
            return np.zeros(len(self.prior))
        noise = 2.0 * self.shape if self.shape > 0.0 else np.inf
        inverse = np.full(len(self.prior), 1.0 / noise)
        columns, prior = self.rule, self.prior[self.met]
        uncertain = self.met[columns.uncertain]
        if not len(uncertain):
            return 1.0 / np.maximum(inverse, 1e-300)
        precisions = self.precisions[:, 0]
        tau = self.shape / self.rate if self.shape > 0.0 and self.rate > 0.0 else 1.0
        _, information = columns.score(precisions, self.mean[self.met], self.variance, tau)
        B = self.centres.find_terms(self.centres.values).matrix(len(self.prior))[:, self.met]
        for feature in uncertain:
            row = B[[feature], :].toarray()[0]
            by = self.factor.solve(row)
            change = columns.sum(prior * np.square(by)) / (row @ by)
            inverse[feature] += float(np.sum(np.square(change) / (2.0 * information + 1.0)))
        return 1.0 / np.maximum(inverse, 1e-300)

    def predict_new(self, rows: SparseRows) -> Array:
        """(n,) variances of what rows have of levels that were never learned."""
        columns = np.zeros(0, np.int32) if rows.columns is None else rows.columns
        variance = np.zeros(len(rows))
        each = np.square(rows.values) / self.column_precisions[columns]
        np.add.at(variance, rows.row_numbers, each)
        for some, covariance in self.tied:
            found = np.zeros((len(rows), len(some)))
            for place, column in enumerate(some):
                own = columns == column
                found[rows.row_numbers[own], place] = rows.values[own]
            apart = covariance - np.diag(covariance.diagonal())
            variance += np.einsum("ni,ij,nj->n", found, apart, found)
        return variance

    def predict(self, X: csr_array) -> tuple[Array, Array]:
        """(n,) means and variances of eta at rows (n, P)."""
        unseen = np.ones(len(self.prior), dtype=bool)
        unseen[self.met] = False
        flat = unseen & (self.prior == 0.0)
        spread = np.zeros(len(self.prior))
        spread[unseen & ~flat] = 1.0 / self.prior[unseen & ~flat]
        variance = np.asarray(X.power(2) @ spread)
        variance[np.asarray(abs(X) @ flat.astype(np.float64)) > 0.0] = np.inf
        met = csr_array(X[:, self.met])
        for start in range(0, X.shape[0], BLOCK):
            some = slice(start, start + BLOCK)
            white = self.factor.whiten(met[some].toarray().T)
            variance[some] += np.einsum("ij,ij->j", white, white)
        return np.asarray(X @ self.mean), variance


__all__ = ["Solution"]
