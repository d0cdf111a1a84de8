"""The kernel again, slowly and plainly in NumPy: the oracle its tests compare it with.

Same functions, same arguments, same answers to rounding. The triangle here has shape (q, ld) as in
the kernel, q = p + k; only its first q columns are used. ``posterity_kernel.h`` has the algebra.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EPSILON = float(np.finfo(float).eps)


def stacked_rows(X: Array, Y: Array | None, n_targets: int, intercept: bool) -> Array:
    """Rows [1?, x, y] of shape (n, q)."""
    targets = np.zeros((len(X), n_targets)) if Y is None else Y.reshape(len(X), n_targets)
    ones = np.ones((len(X), 1 if intercept else 0))
    return np.hstack([ones, X, targets])


def _noise_level(T: Array, j: int, left: float) -> float:
    return float(16.0 * EPSILON * (j + 1) * np.sqrt(left**2 + np.sum(T[:j, j] ** 2)))


def _point_noise(T: Array, j: int, leverage: float) -> float:
    return float(64.0 * EPSILON * (j + 1) * np.sqrt(leverage * np.sum(T[:j, j] ** 2)))


def _append_row(T: Array, row: Array) -> None:
    """Givens rotations: zero the row entry by entry against the diagonal."""
    q = len(T)
    for j in range(q):
        a, b = T[j, j], row[j]
        if b == 0.0:
            continue
        if a == 0.0 and abs(b) <= _noise_level(T, j, b):
            row[j] = 0.0
            continue
        norm = np.hypot(a, b)
        c, s = a / norm, b / norm
        T[j, j:q], row[j:] = c * T[j, j:q] + s * row[j:], c * row[j:] - s * T[j, j:q]
        row[j] = 0.0


def _predict_row(T: Array, row: Array, p: int) -> tuple[Array, float]:
    """Mean (k,) and leverage by forward substitution with R'."""
    q = len(T)
    left, leverage = row.copy(), 0.0
    left[p:] = 0.0
    for j in range(p):
        if T[j, j] == 0.0:
            if leverage < np.inf and abs(left[j]) > _point_noise(T, j, leverage):
                leverage = np.inf
            left[j] = 0.0
            continue
        g = left[j] / T[j, j]
        leverage += g * g
        left[j:] -= g * T[j, j:q]
    return -left[p:], leverage


def predict_rows(triangle: Array, n_targets: int, X: Array, intercept: bool) -> tuple[Array, Array]:
    """Mean (n, k) and leverage (n,) of each row of ``X`` (n, m)."""
    p = len(triangle) - n_targets
    mean, leverage = np.empty((len(X), n_targets)), np.empty(len(X))
    for i, row in enumerate(stacked_rows(X, None, n_targets, intercept)):
        mean[i], leverage[i] = _predict_row(triangle, row, p)
    return mean, leverage


def learn_rows(
    triangle: Array, n_targets: int, X: Array, Y: Array, weights: Array | None, intercept: bool
) -> tuple[Array, Array, Array]:
    """Append rows one by one, in place.

    Returns, for each row before it was learned, the prediction error (n, k), leverage (n,) and
    residual sum of squares (n, k).
    """
    p = len(triangle) - n_targets
    error, leverage = np.empty((len(X), n_targets)), np.empty(len(X))
    residual = np.empty((len(X), n_targets))
    rows = stacked_rows(X, Y, n_targets, intercept)
    roots = np.ones(len(X)) if weights is None else np.sqrt(weights)
    for i, (row, root) in enumerate(zip(rows, roots, strict=True)):
        mean, leverage[i] = _predict_row(triangle, row, p)
        error[i] = row[p:] - mean
        residual[i] = np.sum(triangle[p:, p : len(triangle)] ** 2, axis=0)
        _append_row(triangle, root * row)
    return error, leverage, residual


def append_block(
    triangle: Array, n_targets: int, X: Array, Y: Array, weights: Array | None, intercept: bool
) -> None:
    """Append all rows at once, in place: one Householder QR of everything stacked."""
    q = len(triangle)
    roots = np.ones(len(X)) if weights is None else np.sqrt(weights)
    rows = roots[:, None] * stacked_rows(X, Y, n_targets, intercept)
    upper = np.linalg.qr(np.vstack([triangle[:, :q], rows]), mode="r")
    signs = np.where(np.diag(upper) < 0.0, -1.0, 1.0)
    triangle[:, :q] = signs[:, None] * upper


def remove_rows(
    triangle: Array, n_targets: int, X: Array, Y: Array, weights: Array | None, intercept: bool
) -> tuple[int, float]:
    """Take rows out one by one, in place, by the Cholesky factor of the difference.

    Returns the 1-based row that was never in (0: all were) and the smallest cosine met
    among the coefficients.
    """
    q = len(triangle)
    p = q - n_targets
    roots = np.ones(len(X)) if weights is None else np.sqrt(weights)
    rows = roots[:, None] * stacked_rows(X, Y, n_targets, intercept)
    least = 1.0
    for i, row in enumerate(rows):
        before = np.diag(triangle[:, :q]).copy()
        gram = triangle[:, :q].T @ triangle[:, :q] - np.outer(row, row)
        try:
            triangle[:, :q] = np.linalg.cholesky(gram).T
        except np.linalg.LinAlgError:
            return i + 1, least
        # A rotation changes one diagonal entry, by its cosine.
        least = min(least, float(np.min((np.diag(triangle[:, :q]) / before)[:p])))
    return 0, least
