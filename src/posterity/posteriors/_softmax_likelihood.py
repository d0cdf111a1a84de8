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
    return eta - logsumexp(eta, axis=-1, keepdims=True)


def slopes(labels: Index, contrast: Array) -> tuple[Array, Array, Array]:
    """Log likelihood (n,), its gradient (n, K - 1) in the contrasts, and probabilities (n, K)."""
    told = log_softmax(contrast)
    rows = np.arange(len(labels))
    probabilities = np.exp(told)
    ahead = -probabilities
    ahead[rows, labels] += 1.0
    return told[rows, labels], ahead @ helmert(told.shape[1]), probabilities


def curvatures(probabilities: Array) -> Array:
    """H' (diag(p) - p p') H (n, K - 1, K - 1): minus the second derivative."""
    contrasts = helmert(probabilities.shape[1])
    mean = probabilities @ contrasts
    second = np.einsum("nk,ka,kb->nab", probabilities, contrasts, contrasts, optimize=True)
    return second - mean[:, :, None] * mean[:, None, :]


def mode_of_one(label: Index, weight: float, mean: Array, covariance: Array) -> Array:
    """Contrast (K - 1,) most probable after one label (1,): Newton's method in K - 1 dimensions.

    ``mean`` and ``covariance`` are what was believed of it.

    Examples
    --------
    >>> mode_of_one(np.array([1]), 1.0, np.zeros(1), np.eye(1)).round(4)
    array([0.4772])
    """
    push = np.zeros_like(mean)  # contrast = mean + covariance push

    def value(push: Array) -> float:
        moved = covariance @ push
        told = log_softmax((mean + moved)[None])[0, label[0]]
        return float(weight * told - 0.5 * push @ moved)

    best = value(push)
    for _ in range(60):
        contrast = mean + covariance @ push
        _, slope, probabilities = slopes(label, contrast[None])
        curvature = weight * curvatures(probabilities)[0]
        right = weight * slope[0] + curvature @ (contrast - mean)
        wanted = np.linalg.solve(np.eye(len(mean)) + curvature @ covariance, right)
        step = 1.0
        while (new := value(push + step * (wanted - push))) < best and step > 1e-9:
            step *= 0.5
        push, gained, best = push + step * (wanted - push), new - best, max(new, best)
        if not gained > 1e-13 * (1.0 + abs(best)):
            break
    return mean + covariance @ push


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

    def of(self, part: slice) -> Rows:
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


@lru_cache(maxsize=16)
def _points(dimension: int) -> Array:
    """(N_POINTS, dimension) standard normal points, of mean square 1 in each direction."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    uniform = qmc.Sobol(dimension, scramble=False).random(N_POINTS)
    points: Array = ndtri((uniform + 0.5 / N_POINTS) % 1.0)
    return points / np.sqrt(np.mean(np.square(points), axis=0))
