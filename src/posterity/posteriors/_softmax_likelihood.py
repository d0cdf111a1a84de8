"""Many classes: the softmax in K - 1 contrasts, its derivatives, and what it averages to.

See :mod:`posterity.posteriors.softmax` for what the contrasts are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Points of the quadrature over several contrasts, with their mirror images twice as many.
N_POINTS = 256


@lru_cache(maxsize=16)
def helmert(n_classes: int) -> Array:
    """Orthonormal contrasts (K, K - 1), each of whose columns sums to 0.

    Examples
    --------
    >>> helmert(3).round(3)
    array([[-0.707, -0.408],
           [ 0.707, -0.408],
           [ 0.   ,  0.816]])
    """
    contrasts = np.zeros((n_classes, n_classes - 1))
    for k in range(1, n_classes):
        contrasts[:k, k - 1] = -1.0
        contrasts[k, k - 1] = k
        contrasts[:, k - 1] /= np.sqrt(k * (k + 1.0))
    contrasts.setflags(write=False)
    return contrasts


def log_softmax(contrast: Array) -> Array:
    """Log probabilities (..., K) at contrasts (..., K - 1).

    Examples
    --------
    >>> np.exp(log_softmax(np.zeros((1, 2)))).round(3)
    array([[0.333, 0.333, 0.333]])
    """
    eta = contrast @ helmert(contrast.shape[-1] + 1).T
    eta -= eta.max(axis=-1, keepdims=True)
    return eta - np.log(np.sum(np.exp(eta), axis=-1, keepdims=True))


def averages(
    labels: Index, contrast: Array, moved: Array | None = None
) -> tuple[Array, Array, Array]:
    """What labels (n,) say at their contrasts (n, K - 1), or on average over points around them.

    Parameters
    ----------
    moved : (n, S, K - 1) array, optional
        Where the points lie from ``contrast``, each with its mirror image; none: all at it.

    Returns
    -------
    Log likelihood (n,), its gradient (n, K - 1), and minus its second derivative,
    H' (diag(p) - p p') H (n, K - 1, K - 1), each averaged over the points.
    """
    around = contrast[:, None]
    if moved is not None:
        around = np.concatenate([around + moved, around - moved], axis=1)
    told = log_softmax(around)
    rows, n_points = np.arange(len(labels)), around.shape[1]
    probabilities = np.exp(told)
    ahead = -np.mean(probabilities, axis=1)
    contrasts = helmert(told.shape[2])
    second = np.einsum("nk,ka,kb->nab", -ahead, contrasts, contrasts, optimize=True)
    means = probabilities @ contrasts
    second -= means.transpose(0, 2, 1) @ means / n_points
    ahead[rows, labels] += 1.0
    return np.mean(told[rows, :, labels], axis=1), ahead @ contrasts, second


def log_likelihood(labels: Index, contrast: Array, moved: Array | None = None) -> Array:
    """(n,) the first of :func:`averages` alone."""
    around = contrast[:, None]
    if moved is not None:
        around = np.concatenate([around + moved, around - moved], axis=1)
    result: Array = np.mean(log_softmax(around)[np.arange(len(labels)), :, labels], axis=1)
    return result


def site_of_absence(weight: float, mean: Array, variance: float) -> tuple[float, float, float]:
    """What ``weight`` rows of other classes say of the last contrast, where it is one-dimensional.

    With the other contrasts at their ``mean`` (K - 1,), the last class has the log odds
    s c - log sum exp(eta) of its contrast c, s = sqrt(K / (K - 1)). Returns precision, target and
    the log of the constant of the Gaussian that stands for it, at the mode.

    Examples
    --------
    >>> precision, target, _ = site_of_absence(100.0, np.zeros(2), 100.0)
    >>> float(round(precision, 2)), float(round(target, 1))
    (0.07, -6.5)
    """
    k = len(mean)
    slope = np.sqrt((k + 1.0) / k)
    others = float(logsumexp(helmert(k) @ mean[:-1])) if k > 1 else 0.0

    def pull(c: float) -> float:
        return float((mean[-1] - c) / variance - weight * slope * expit(slope * c - others))

    low, high = mean[-1] - variance * weight * slope, mean[-1]
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if pull(middle) > 0.0 else (low, middle)
    share = float(expit(slope * high - others))
    gradient = -weight * slope * share
    precision = max(weight * slope * slope * share * (1.0 - share), 1e-10)
    constant = weight * float(log_expit(others - slope * high)) + 0.5 * gradient**2 / precision
    return precision, high + gradient / precision, constant


@dataclass(frozen=True)
class Rows:
    """Rows to learn: ``X`` (n, p) with the intercept's 1, labels (n,) from 0, weights (n,)."""

    X: Array
    labels: Index
    weights: Array

    def of(self, part: slice | Index) -> Rows:
        """Some of them."""
        return Rows(self.X[part], self.labels[part], self.weights[part])


def integrated(mean: Array, covariance: Array) -> Array:
    """Log of the softmax (n, K), averaged over contrasts ~ Normal(mean, covariance).

    Quadrature at ``N_POINTS`` points of Sobol's sequence and their mirror images: the same points
    for every row and every call, so that nothing is random. The error is about 1e-3.

    Examples
    --------
    >>> told = integrated(np.zeros((1, 2)), np.eye(2)[None])
    >>> np.exp(told).round(2)
    array([[0.33, 0.33, 0.33]])
    """
    result = np.empty((len(mean), mean.shape[1] + 1))
    block = max(1, int(2e6 / (2 * N_POINTS * result.shape[1])))
    for start in range(0, len(mean), block):
        rows = slice(start, start + block)
        told = log_softmax(spread(mean[rows], covariance[rows]))
        result[rows] = logsumexp(told, axis=1) - np.log(2.0 * N_POINTS)
    return result - logsumexp(result, axis=1, keepdims=True)


def spread(mean: Array, covariance: Array) -> Array:
    """Points (n, 2 N_POINTS, K - 1) that stand for the normal distributions, of equal weight."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    moved = np.einsum("nab,sb->nsa", root, _points(mean.shape[1]), optimize=True)
    return np.concatenate([mean[:, None] + moved, mean[:, None] - moved], axis=1)


@lru_cache(maxsize=64)
def balanced_points(dimension: int, n_points: int) -> Array:
    """At least so many standard normal points that with their mirror images have covariance I.

    Orthogonal axes at distances that are quantiles of the chi distribution, each time turned: with
    S blocks of ``dimension`` points the averages of all cubic functions are exact.

    Examples
    --------
    >>> chosen = balanced_points(3, 5)
    >>> chosen.shape, np.allclose(chosen.T @ chosen / len(chosen), np.eye(3))
    ((6, 3), True)
    """
    from scipy.special import gammaincinv

    blocks = max(1, -(-n_points // dimension))
    shares = (np.arange(blocks) + 0.5) / blocks
    squares = 2.0 * gammaincinv(0.5 * dimension, shares)
    squares *= dimension / np.mean(squares)
    rng = np.random.default_rng(0)
    turned = [np.linalg.qr(rng.normal(size=(dimension, dimension)))[0] for _ in range(blocks)]
    chosen = np.concatenate([np.sqrt(r) * q for r, q in zip(squares, turned, strict=True)])
    chosen.setflags(write=False)
    return chosen


@lru_cache(maxsize=16)
def _points(dimension: int) -> Array:
    """(N_POINTS, dimension) standard normal points, of mean square 1 in each direction."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    uniform = qmc.Sobol(dimension, scramble=False).random(N_POINTS)
    points: Array = ndtri((uniform + 0.5 / N_POINTS) % 1.0)
    return points / np.sqrt(np.mean(np.square(points), axis=0))
