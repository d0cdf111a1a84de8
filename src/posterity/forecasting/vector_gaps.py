"""The last levels of signals of which some were not observed: drawn given those that were."""

from __future__ import annotations

import numpy as np

from posterity.aliases import Array
from posterity.forecasting.gaps import carry_forward

# Most levels that are drawn together; in longer gaps the first values are repeated.
MOST_TOGETHER = 400


def complete_levels(values: Array, weights: Array, roots: Array, lags: int) -> Array:
    """The last ``lags`` levels (K, lags, q) of signals ``values`` (n, q), NaN where not observed.

    The steps since the last row without a gap are drawn from what the autoregression with
    coefficients ``weights`` (K, 1 + lags q, q) and noise ``roots`` (K, q, q) says of them, and
    conditioned on what was observed of them (Hoffman and Ribak 1991), a draw for each of the K.
    """
    count, q = len(weights), values.shape[1]
    carried = carry_forward(values.T).T
    whole = np.flatnonzero(np.isfinite(values).all(axis=1))
    k = len(values) - 1 - (int(whole[-1]) if len(whole) else -1)
    k = min(k, MOST_TOGETHER // max(q, 1), len(values) - 1)
    before = carried[: len(values) - k][-lags:]
    before = np.vstack([np.tile(before[:1], (lags - len(before), 1)), before])
    if k == 0 or q == 0:
        return np.tile(before, (count, 1, 1))
    levels = continue_levels(np.tile(before, (count, 1, 1)), weights, k)
    responses = compute_responses(weights, roots, lags, k)
    root = np.zeros((count, k, q, k, q))
    for shock in range(k):
        root[:, shock:, :, shock, :] = responses[:, : k - shock]
    root = root.reshape(count, k * q, k * q)
    shocks = np.random.default_rng(0).standard_normal((count, k * q, 1))
    drawn = levels[:, lags:].reshape(count, k * q) + (root @ shocks)[:, :, 0]
    recent = values[-k:].reshape(-1)
    seen = np.isfinite(recent)
    if seen.any():
        covariance = root @ np.swapaxes(root, 1, 2)
        among = covariance[:, seen][:, :, seen]
        off = (recent[seen] - drawn[:, seen])[:, :, None]
        drawn += (covariance[:, :, seen] @ (np.linalg.pinv(among, hermitian=True) @ off))[:, :, 0]
        drawn[:, seen] = recent[seen]
    levels[:, lags:] = drawn.reshape(count, k, q)
    return levels[:, -lags:]


def continue_levels(last: Array, weights: Array, h: int) -> Array:
    """(K, lags + h, q): the ``last`` levels (K, lags, q), and the next without shocks."""
    count, lags, q = last.shape
    levels = np.empty((count, lags + h, q))
    levels[:, :lags] = last
    for step in range(h):
        past = levels[:, step : lags + step][:, ::-1].reshape(count, -1)
        levels[:, lags + step] = weights[:, 0] + np.einsum("kp,kpq->kq", past, weights[:, 1:])
    return levels


def compute_responses(weights: Array, roots: Array, lags: int, h: int) -> Array:
    """(K, h, q, q) of signals to unit shocks, 0 to h - 1 steps later."""
    count, _, q = weights.shape
    found = np.zeros((count, lags + h - 1, q, q))
    found[:, lags - 1] = roots
    for step in range(1, h):
        past = found[:, step - 1 : lags + step - 1][:, ::-1].reshape(count, lags * q, q)
        found[:, lags - 1 + step] = np.swapaxes(weights[:, 1:], 1, 2) @ past
    return found[:, lags - 1 :]
