"""A Gibbs sampler for a linear model with random intercepts and slopes: a slow twin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sample_mixed_model(
    y: Array, X: Array, Z: Array, group: NDArray[np.intp], n_draws: int, seed: int = 0
) -> dict[str, Array]:
    """Draws of coefficients, group effects, their covariance and the noise's variance.

    y = X b + Z u[group] + noise; b flat, p(variance) = 1 / variance of the noise. Standard
    deviations of u have a half Student-t prior of 3 degrees of freedom and a scale of 2.5 standard
    deviations of y, divided by the root mean square of their column; the correlation of two is
    uniform. Given the effects, the covariance is drawn by Metropolis steps in logs and inverse
    hyperbolic tangent. This prior is of the intercept at the mean of a slope's column; the draws
    are of the one at 0.
    """
    rng = np.random.default_rng(seed)
    means = np.append(0.0, Z[:, 1:].mean(axis=0))
    Z = Z - means
    n, k, n_groups = len(y), Z.shape[1], int(group.max()) + 1
    scale = 2.5 * y.std() / np.sqrt([np.mean(np.square(z[z != 0.0])) for z in Z.T])
    start = np.log(0.3 * scale)
    at = np.concatenate([start, np.zeros(k * (k - 1) // 2)])
    u, noise = np.zeros((n_groups, k)), y.var()
    products, across = np.zeros((n_groups, k, k)), np.zeros((n_groups, k, X.shape[1]))
    np.add.at(products, group, Z[:, :, None] * Z[:, None, :])
    np.add.at(across, group, Z[:, :, None] * X[:, None, :])
    totals = np.zeros((n_groups, k))
    np.add.at(totals, group, Z * y[:, None])
    step, kept = 0.5 / np.sqrt(n_groups) * 1.7, {"b": [], "u": [], "at": [], "noise": []}
    for draw in range(n_draws + n_draws // 10):
        precision = np.linalg.inv(make_covariance(at, k)) + products / noise
        covariances = np.linalg.inv(precision)
        # Coefficients with the effects integrated over, and then these.
        pulled = np.einsum("gij,gjp->gip", covariances, across) / noise
        information = (X.T @ X - np.einsum("gip,giq->pq", across, pulled)) / noise
        shift = (X.T @ y - np.einsum("gi,gip->p", totals, pulled)) / noise
        covariance = np.linalg.inv(information)
        b = rng.multivariate_normal(covariance @ shift, covariance)
        centres = np.einsum("gij,gj->gi", covariances, totals - across @ b) / noise
        roots = np.linalg.cholesky(covariances)
        u = centres + np.einsum("gij,gj->gi", roots, rng.normal(size=(n_groups, k)))
        left = y - X @ b - np.einsum("nk,nk->n", Z, u[group])
        noise = 0.5 * left @ left / rng.gamma(0.5 * n)
        for _ in range(10):
            moved = at + step * rng.normal(size=len(at))
            gain = log_density(moved, u, k, scale) - log_density(at, u, k, scale)
            if np.log(rng.random()) < gain:
                at = moved
        if draw >= n_draws // 10:
            for name, value in (("b", b), ("u", u), ("at", at), ("noise", noise)):
                kept[name].append(value)
    back = np.eye(k)
    back[0] -= means
    kept["u"] = [one @ back.T for one in kept["u"]]
    kept["at"] = [move(one, back) for one in kept["at"]]
    return {name: np.array(values) for name, values in kept.items()}


def move(at: Array, back: Array) -> Array:
    """The coordinates of the covariance of other effects, ``back`` (k, k) times these."""
    covariance = back @ make_covariance(at, len(back)) @ back.T
    sds = np.sqrt(covariance.diagonal())
    correlations = (covariance / np.outer(sds, sds))[np.triu_indices(len(back), 1)]
    return np.append(np.log(sds), np.arctanh(correlations))


def make_covariance(at: Array, k: int) -> Array:
    """(k, k), k 1 or 2, of log standard deviations and the correlation's tangent."""
    correlation = np.eye(k)
    if k == 2:
        correlation[0, 1] = correlation[1, 0] = np.tanh(at[2])
    sds = np.exp(at[:k])
    return sds[:, None] * correlation * sds


def log_density(at: Array, u: Array, k: int, scale: Array) -> float:
    """Of the covariance, given effects u (groups, k)."""
    covariance = make_covariance(at, k)
    squares = np.einsum("gi,ij,gj->", u, np.linalg.inv(covariance), u)
    value = -0.5 * (squares + len(u) * np.linalg.slogdet(covariance)[1])
    value += np.sum(at[:k] - 2.0 * np.log1p(np.exp(2.0 * at[:k]) / (3.0 * scale**2)))
    return float(value + (np.log1p(-(np.tanh(at[2]) ** 2)) if k == 2 else 0.0))
