"""Shrinkage of correlations that were found in few rows, learned from the evidence.

Let C be the correlations of m rows' errors of q targets, each in units of its own size, and let
their covariance have the prior InverseWishart(kappa I, kappa + q - 1): kappa rows of uncorrelated
errors, as large as those that were found. Then its scale matrix is, relative to its own diagonal,

    m / (m + kappa) C + kappa / (m + kappa) I ,

and with e_i the eigenvalues of C the evidence of kappa is, up to a constant,

    Gamma_q((m + kappa + q - 1) / 2) / Gamma_q((kappa + q - 1) / 2)
    kappa^(q (kappa + q - 1) / 2) prod_i (kappa + m e_i)^(-(m + kappa + q - 1) / 2) .

(Chen 1979; Hannart and Naveau 2014.) Targets that hardly depend on each other are found to be
independent, and those that are nearly the same stay so.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from posterity.aliases import Array
from posterity.distributions.joint_prediction import correlations_of
from posterity.noise import Noise

# kappa is looked for on a grid of log(kappa / (q + 1)). At the lower
# end correlations are believed to ten digits, at the upper one no more than a million rows' are.
LOWEST, HIGHEST, STEP = -25.0, 14.0, 0.3
# Matrices in a block.
BLOCK = 64


def draw_correlations(correlation: Array, rows: ArrayLike) -> Array:
    """Draw correlations (..., q, q) of ``rows`` (...) rows, shrunk by their evidence.

    Averaged over kappa, whose prior is Lomax's with scale q + 1, by which each correlation is about
    as likely as any other before there are rows (Barnard, McCulloch and Meng 2000).

    Examples
    --------
    >>> near, far = np.array([[1.0, 0.999], [0.999, 1.0]]), np.array([[1.0, 0.3], [0.3, 1.0]])
    >>> [draw_correlations(one, 10.0)[0, 1].round(3) for one in (near, far)]
    [np.float64(0.997), np.float64(0.127)]
    """
    q = correlation.shape[-1]
    stacked = correlation.reshape(-1, q, q)
    counts = np.broadcast_to(np.asarray(rows, dtype=np.float64), correlation.shape[:-2]).ravel()
    shares = np.zeros(len(stacked))
    some = np.flatnonzero(counts > 0.0)
    for start in range(0, len(some), BLOCK):
        part = some[start : start + BLOCK]
        shares[part] = _compute_shares(np.asarray(np.linalg.eigvalsh(stacked[part])), counts[part])
    shares = shares.reshape(*correlation.shape[:-2], 1, 1)
    linear_moments: Array = shares * correlation + (1.0 - shares) * np.eye(q)
    return linear_moments


def compute_correlations(noise: Noise, residual_df: ArrayLike, products: Array) -> Array:
    """Correlations (..., q, q) from Psi (..., q, q) of ``residual_df`` (...) observations."""
    q = products.shape[-1]
    correlation = correlations_of(products)
    known_noise, shape, rate = noise.parameters
    if known_noise:  # of each target by itself
        return np.broadcast_to(np.eye(q), correlation.shape)
    if rate > 0.0:
        return correlation
    return draw_correlations(correlation, np.asarray(residual_df, dtype=np.float64) + 2.0 * shape)


def _compute_shares(eigenvalues: Array, rows: Array) -> Array:
    """(b,) mean of m / (m + kappa), for eigenvalues (b, q) of correlations of m = rows (b,)."""
    q = eigenvalues.shape[1]
    kappa, log_prior = _make_grid(q)
    m = rows[:, None]
    before, after = kappa + q - 1.0, m + kappa + q - 1.0
    energies = np.maximum(eigenvalues, 0.0) * m
    log_sizes = sum(np.log(kappa + energies[:, i : i + 1]) for i in range(q))
    log_weights = (
        log_prior
        + _compute_log_multivariate_gamma(after, q)
        - _compute_log_multivariate_gamma(before, q)
    )
    log_weights += 0.5 * (q * before * np.log(kappa) - after * log_sizes)
    weights = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
    return np.asarray(np.sum(weights * (m / (m + kappa)), axis=1))


def _compute_log_multivariate_gamma(nu: Array, q: int) -> Array:
    """Log Gamma_q(nu / 2), but for a constant."""
    return np.asarray(sum(gammaln(0.5 * (nu - i)) for i in range(q)))


@lru_cache(maxsize=16)
def _make_grid(q: int) -> tuple[Array, Array]:
    """kappa (g,), and the log of its prior in log kappa."""
    kappa = (q + 1.0) * np.exp(np.arange(LOWEST, HIGHEST, STEP))
    log_prior = np.log(kappa) - 2.0 * np.log(kappa + q + 1.0)
    for array in (kappa, log_prior):
        array.setflags(write=False)
    return kappa, log_prior


__all__ = ["compute_correlations", "draw_correlations"]
