"""posterity_groups.h again, slowly and plainly in NumPy: group by group, with the twin's routines.

Same arguments as the kernel's, but that ``numbers`` and ``slots`` come instead of sorted rows, and
that all groups are done.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from twins import rows as twin

Array = NDArray[np.float64]
Tallies = tuple[Array, Array, NDArray[np.int64], int]


def number_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Numbers (n,) of the keys by first appearance, and the distinct keys."""
    found: dict[int, int] = {}
    numbers = [found.setdefault(key, len(found)) for key in keys.tolist()]
    return np.array(numbers, dtype=np.int32), np.array(list(found), dtype=np.int64)


def _rows_of(numbers: NDArray[np.int32], slots: NDArray[np.intp]) -> Any:
    for number, slot in enumerate(slots):
        yield int(slot), np.flatnonzero(numbers == number)


def _discounts_of_sums(discount: float, count: float, weights: Array) -> Array:
    """Nothing fades before the first row of a group; a row of weight 0 takes no time."""
    discounts = np.where(weights > 0.0, discount, 1.0)
    if count == 0.0 and len(discounts):
        discounts[0] = 1.0
    return discounts


def _tally(tallies: Tallies, slot: int, rows: Array, weights: Array, discount: float) -> Array:
    """Bring the tallies up to date; by how much each row raises its group's count."""
    count, seen, last, clock = tallies
    gains = np.empty(len(rows))
    for i, weight in enumerate(weights):
        gains[i] = (count[slot] * (discount - 1.0) + weight) if weight > 0.0 else 0.0
        count[slot] += gains[i]
        seen[slot] += weight
    if len(rows):
        last[slot] = clock + int(rows[-1]) + 1
    return gains


def learn_groups(
    bank: Array,
    numbers: NDArray[np.int32],
    slots: NDArray[np.intp],
    X: Array,
    y: Array,
    weights: Array | None,
    intercept: bool,
    discount: float,
    tallies: Tallies,
) -> None:
    """Learn each row in the triangle of its group, in place."""
    w = np.ones(len(X)) if weights is None else weights
    for slot, rows in _rows_of(numbers, slots):
        fading = _discounts_of_sums(discount, tallies[0][slot], w[rows])
        twin.learn_rows(bank[slot], 1, X[rows], y[rows, None], w[rows], intercept, fading)
        _tally(tallies, slot, rows, w[rows], discount)


def predict_then_learn_groups(
    bank: Array,
    priors: Array,
    numbers: NDArray[np.int32],
    slots: NDArray[np.intp],
    X: Array,
    y: Array,
    weights: Array | None,
    intercept: bool,
    discount: float,
    tallies: Tallies,
) -> Array:
    """The same, and (4, n): error, leverage, gains of residual and count, by prior plus data."""
    w = np.ones(len(X)) if weights is None else weights
    predictions = np.empty((4, len(X)))
    for slot, rows in _rows_of(numbers, slots):
        prior = priors[min(slot, len(priors) - 1)]
        fading = _discounts_of_sums(discount, tallies[0][slot], w[rows])
        for i, fade in zip(rows, fading, strict=True):
            before = _stack_prior(prior, bank[slot])
            bank[slot] *= np.sqrt(fade)
            posterior = _stack_prior(prior, bank[slot])
            mean, leverage = twin.predict_rows(posterior, 1, X[[i]], intercept)
            twin.learn_rows(bank[slot], 1, X[[i]], y[[i], None], w[[i]], intercept)
            after = _stack_prior(prior, bank[slot])
            q = len(after)
            gain = after[-1, q - 1] ** 2 - before[-1, q - 1] ** 2
            predictions[:3, i] = y[i] - mean[0, 0], leverage[0], gain
        predictions[3, rows] = _tally(tallies, slot, rows, w[rows], discount)
    return predictions


def _stack_prior(prior: Array, data: Array) -> Array:
    posterior, q = prior.copy(), len(prior)
    twin.append_block(posterior, 1, data[:, : q - 1], data[:, q - 1 : q], None, False)
    return posterior


def stack_groups(bank: Array, priors: Array) -> Array:
    """Posterior triangles: each group's data on its prior."""
    return np.array([_stack_prior(priors[min(s, len(priors) - 1)], T) for s, T in enumerate(bank)])


def merge_groups(bank: Array, other: Array, slots: NDArray[np.intp]) -> None:
    """Append each triangle of ``other`` to that of its slot, in place."""
    for slot, triangle in zip(slots, other, strict=True):
        bank[slot] = _stack_prior(bank[slot], triangle)


def solve_groups(bank: Array) -> Array:
    """Coefficients (size, p); those that are not determined are 0."""
    p = bank.shape[1] - 1
    solutions = np.zeros((len(bank), p))
    for solution, T in zip(solutions, bank, strict=True):
        kept = np.flatnonzero(np.diag(T[:p, :p]))
        solution[kept] = np.linalg.solve(T[np.ix_(kept, kept)], T[kept, p])
    return solutions


def whiten_groups(root: Array, rows: Array) -> tuple[Array, Array]:
    """W'W, W'o and o'o, as (groups, p + 1, p + 1) products, and log |P'P + H'H|, by formulas.

    With D = (P'P)^-1 the rows H w = z have covariance C = I + H D H': W'W = H' C^-1 H, and so on.
    """
    covariance = np.linalg.inv(root.T @ root)
    products, logs = [], []
    for block in rows:
        H = block[:, :-1]
        C = np.eye(len(H)) + H @ covariance @ H.T
        products.append(block.T @ np.linalg.solve(C, block))
        logs.append(np.linalg.slogdet(root.T @ root + H.T @ H)[1])
    return np.array(products), np.array(logs)
