"""What a sparse posterior has of rows, with their numbers centred at their means."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from posterity.posteriors._centres import Centres
from posterity.posteriors._sparse_matrices import to_matrix
from posterity.posteriors._sparse_rows import SparseRows

Array = NDArray[np.float64]


class CentredData(NamedTuple):
    """Sums of products (P, P) and with targets (P,), or the rows (n, P), of centred numbers."""

    matrix: csc_array  # of sums of products, or where these are not zero
    targets: Array
    rows: csr_array | None
    squares: Array  # (P,) sums of squares
    weight: float  # of all rows
    centres: Centres


def centre_sums(rows: SparseRows, targets: Array, centres: Centres, size: int) -> CentredData:
    """Sums of products, about the means of what they are products of."""
    matrix, sums = to_matrix(rows, size), np.zeros(size)
    matrix.resize(size, size)
    sums[: len(targets)] = targets
    weight = float(matrix[0, 0]) if size else 0.0
    by = np.zeros(len(centres.features))
    if weight >= np.finfo(float).tiny:  # else nothing is known of means
        first = matrix[[0], :].toarray()[0]
        by = _find_moves(centres, first[centres.features] / weight)
    if by.any():
        B = centres.find_terms(by).matrix(size)
        matrix, sums, centres = csr_array(B.T @ matrix @ B), B.T @ sums, _moved(centres, by)
    return CentredData(matrix.tocsc(), sums, None, matrix.diagonal(), weight, centres)


def centre_kept_rows(
    rows: SparseRows, targets: Array, weights: Array, centres: Centres, size: int, intercept: bool
) -> CentredData:
    """Rows, with their numbers less the means of these."""
    X, weight = to_matrix(rows, size), float(weights.sum())
    by = np.zeros(len(centres.features))
    if weight > 0.0 and intercept:
        by = _find_moves(centres, (X.T @ weights)[centres.features] / weight)
    if by.any():
        X, centres = csr_array(X @ centres.find_terms(by).matrix(size)), _moved(centres, by)
    met = X.copy()
    squares = np.asarray(X.power(2).T @ weights)
    met.data[:] = 1.0
    return CentredData(csc_array(met.T @ met), targets, X, squares, weight, centres)


def _find_moves(centres: Centres, apart: Array) -> Array:
    """How far the centres of numbers are from their means, or 0 for one that is too rare."""
    return np.where(centres.dense, apart, -centres.values)


def _moved(centres: Centres, by: Array) -> Centres:
    moved = centres.copy()
    moved.move(by)
    return moved


__all__ = ["CentredData", "centre_kept_rows", "centre_sums"]
