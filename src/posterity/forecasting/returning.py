"""Whether short series return to a level: the evidence against walks and lines in their values.

Each hypothesis is a Gaussian with a flat mean and an unknown scale: independent values around a
level; a walk, with and without noise; a line; a walk with a drift. Of n values z with covariance
sigma^2 C, the differences Dz have the covariance sigma^2 D C D', and with p(sigma) = 1 / sigma

    log p(Dz) = -log|D C D'| / 2 - (n - 1) / 2 log(z' D' (D C D')^-1 D z) + constant

(Harville 1974). For a walk and independent values the ratio is von Neumann's (1941): the mean
square of differences over the variance.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from posterity.aliases import Array

# Variances of a walk's steps, over that of the noise around it.
STEPS = (0.125, 0.5, 1.5)
# By how many sds of the noise a line rises over the series: the prior sd.
RISE = 3.0
# Share of the sum of squares below which it is rounding.
ROUNDING = 1e-12


def compute_level_evidence(values: Array) -> Array:
    """(S,) log Bayes factor of a level in series (S, T), against the mean of the others.

    Of observed values in order, as if there were no gaps. 0 where there are fewer than three, or
    all are equal.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=20)
    >>> compute_level_evidence(np.array([noise, np.cumsum(noise)])).round(1)
    array([ 1.4, -4. ])
    """
    count = np.isfinite(values).sum(axis=1)
    found = np.zeros(len(values))
    for n in np.unique(count[count > 2]).tolist():
        some = values[count == n]
        z = some[np.isfinite(some)].reshape(-1, n)
        z = z - z.mean(axis=1, keepdims=True)
        roots, logs = _whiten_differences(n)
        squares = np.square(z @ np.swapaxes(roots, 1, 2)).sum(axis=2)
        least = ROUNDING * np.square(z).sum(axis=1) + np.finfo(np.float64).tiny
        evidence = logs[:, None] - 0.5 * (n - 1) * np.log(squares + least)
        others = np.logaddexp.reduce(evidence[1:], axis=0) - np.log(len(evidence) - 1)
        found[count == n] = np.where(z.any(axis=1), evidence[0] - others, 0.0)
    return found


@lru_cache(maxsize=128)
def _whiten_differences(n: int) -> tuple[Array, Array]:
    """Matrices (H, n - 1, n) to which values are white, and log determinants (H,)."""
    t = np.arange(1.0, n + 1.0)
    walk, noise, line = np.minimum.outer(t, t), np.eye(n), np.outer(t, t)
    covariances = [
        noise,
        *(noise + step * walk for step in STEPS),
        walk,
        noise + np.square(RISE / n) * line,
        walk + line,
    ]
    differences = np.diff(noise, axis=0)
    roots = np.linalg.cholesky(differences @ np.array(covariances) @ differences.T)
    logs = -np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return np.linalg.solve(roots, np.broadcast_to(differences, (len(roots), n - 1, n))), logs
