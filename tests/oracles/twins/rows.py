"""The kernel again, slowly and plainly in NumPy: the oracle its tests compare it with.

Same functions, same arguments, same answers to rounding. The triangle here has shape (q, ld) as in
the kernel, q = p + k; only its first q columns are used. ``posterity_kernel.h`` has the algebra.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EPSILON = float(np.finfo(float).eps)


def stack_rows(X: Array, Y: Array | None, n_targets: int, intercept: bool) -> Array:
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
    for i, row in enumerate(stack_rows(X, None, n_targets, intercept)):
        mean[i], leverage[i] = _predict_row(triangle, row, p)
    return mean, leverage


def _learn_after(
    forget: Callable[[int], None],
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
) -> tuple[Array, Array, Array]:
    """Before row i ``forget(i)`` changes the triangle; then the row is predicted and learned."""
    p = len(triangle) - n_targets
    error, leverage = np.empty((len(X), n_targets)), np.empty(len(X))
    residual = np.empty((len(X), n_targets))
    rows = stack_rows(X, Y, n_targets, intercept)
    roots = np.ones(len(X)) if weights is None else np.sqrt(weights)
    for i, (row, root) in enumerate(zip(rows, roots, strict=True)):
        forget(i)
        mean, leverage[i] = _predict_row(triangle, row, p)
        error[i] = row[p:] - mean
        residual[i] = np.sum(triangle[p:, p : len(triangle)] ** 2, axis=0)
        _append_row(triangle, root * row)
    return error, leverage, residual


def learn_rows(
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    discounts: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Append rows one by one, in place; before row i everything weighs discounts[i] of what it did.

    Returns, for each row before it was learned, the prediction error (n, k), leverage (n,) and
    residual sum of squares (n, k).
    """

    def fade(i: int) -> None:
        if discounts is not None:
            triangle[:] *= np.sqrt(discounts[i])

    return _learn_after(fade, triangle, n_targets, X, Y, weights, intercept)


def learn_stabilized(
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    discounts: Array,
    prior: Array,
) -> tuple[Array, Array, Array]:
    """As ``learn_rows``, but the prior never fades: it is exactly prior + discounted data.

    The kernel's prior weighs somewhat more between the rows of a call, and 1 at the end.
    """
    q = len(triangle)
    data = np.zeros_like(triangle)
    data[:, :q] = _root(triangle[:, :q].T @ triangle[:, :q] - prior[:, :q].T @ prior[:, :q])
    rows = np.sqrt(1.0 if weights is None else weights[:, None]) * stack_rows(
        X, Y, n_targets, intercept
    )

    def fade(i: int) -> None:
        if i > 0:
            _append_row(data, rows[i - 1].copy())
        data[:] *= np.sqrt(discounts[i])
        triangle[:] = prior
        for row in data[:, :q]:
            _append_row(triangle, row.copy())

    return _learn_after(fade, triangle, n_targets, X, Y, weights, intercept)


def learn_directional(
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    discounts: Array,
    prior: Array,
) -> tuple[Array, Array, Array]:
    """As ``learn_rows``, but only the information beyond the prior in a row's direction fades.

    D = R'R - R0'R0 loses (1 - discount) D x x'D / (x'D x); the mean stays; the residual fades.
    The posterior must be proper.
    """
    p, q = len(triangle) - n_targets, len(triangle)
    points = stack_rows(X, None, n_targets, intercept)[:, :p]

    def fade(i: int) -> None:
        information = triangle[:p, :p].T @ triangle[:p, :p]
        beyond = (information - prior[:p, :p].T @ prior[:p, :p]) @ points[i]
        along = points[i] @ beyond
        triangle[p:] *= np.sqrt(discounts[i])
        if along > 1e-10 * (points[i] @ information @ points[i]):
            mean = np.linalg.solve(triangle[:p, :p], triangle[:p, p:q])
            lost = (1.0 - discounts[i]) / along * np.outer(beyond, beyond)
            triangle[:p, :p] = _root(information - lost)
            triangle[:p, p:q] = triangle[:p, :p] @ mean

    return _learn_after(fade, triangle, n_targets, X, Y, weights, intercept)


def learn_random_walk(
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    elapsed: Array,
    variance: Array,
) -> tuple[Array, Array, Array]:
    """As ``learn_rows``, but before row i the coefficients move by Normal(0, variance elapsed[i]).

    By covariances, as in a Kalman filter: the posterior must be proper.
    """
    p, q = len(triangle) - n_targets, len(triangle)

    def random_walk_step(i: int) -> None:
        mean = np.linalg.solve(triangle[:p, :p], triangle[:p, p:q])
        inverse = np.linalg.inv(triangle[:p, :p])
        covariance = inverse @ inverse.T + np.diag(variance * elapsed[i])
        triangle[:p, :p] = _root(np.linalg.inv(covariance))
        triangle[:p, p:q] = triangle[:p, :p] @ mean

    return _learn_after(random_walk_step, triangle, n_targets, X, Y, weights, intercept)


def slide(
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    start: int,
    leave: NDArray[np.intp],
    prior: Array,
) -> tuple[Array, Array, Array]:
    """Slide a window over rows start..n: build it from the prior and its rows, for each row.

    Rows before leave[i] are out when row start + i is predicted, and rows before the last of
    ``leave`` at the end.
    """

    def rebuild(i: int) -> None:
        triangle[:] = prior
        inside = slice(leave[i], start + i)
        inner = None if weights is None else weights[inside]
        learn_rows(triangle, n_targets, X[inside], Y[inside], inner, intercept)

    new = None if weights is None else weights[start:]
    before = _learn_after(rebuild, triangle, n_targets, X[start:], Y[start:], new, intercept)
    rebuild(len(X) - start)
    return before


def _root(gram: Array) -> Array:
    """Upper triangle with this Gram matrix, positive semi-definite up to rounding."""
    values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
    values[values < 1e-13 * np.max(np.abs(values), initial=0.0)] = 0.0
    upper = np.linalg.qr(np.sqrt(values)[:, None] * vectors.T, mode="r")
    return np.where(np.diag(upper) < 0.0, -1.0, 1.0)[:, None] * upper


def append_block(
    triangle: Array, n_targets: int, X: Array, Y: Array, weights: Array | None, intercept: bool
) -> None:
    """Append all rows at once, in place: one Householder QR of everything stacked."""
    q = len(triangle)
    roots = np.ones(len(X)) if weights is None else np.sqrt(weights)
    rows = roots[:, None] * stack_rows(X, Y, n_targets, intercept)
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
    rows = roots[:, None] * stack_rows(X, Y, n_targets, intercept)
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
