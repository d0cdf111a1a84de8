"""Likelihood of many classes: the softmax, its derivatives, and averages of it.

Linear predictors eta (..., K) are ``basis`` (K, R) times R coordinates: K - 1 contrasts, or the K
predictors themselves. See :mod:`posterity.posteriors.softmax`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from posterity.aliases import Array, Indices

# Points of the quadrature over several contrasts, with their mirror images twice as many.
N_POINTS = 256
# Of its trace: keeps the root of a covariance that rounding has made indefinite.
RIDGE = 1e-13


@dataclass(frozen=True)
class Rows:
    """Rows to learn: ``X`` (n, p) with the intercept's 1, labels (n,) from 0, weights (n,)."""

    X: Array
    labels: Indices
    weights: Array

    def of(self, part: slice | Indices) -> Rows:
        """Some of them."""
        return Rows(self.X[part], self.labels[part], self.weights[part])

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(np.sum(self.weights))


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


def log_softmax(eta: Array) -> Array:
    """Log probabilities (..., K) at linear predictors (..., K).

    Examples
    --------
    >>> np.exp(log_softmax(np.zeros((1, 3)))).round(3)
    array([[0.333, 0.333, 0.333]])
    """
    eta = eta - eta.max(axis=-1, keepdims=True)
    return eta - np.log(np.sum(np.exp(eta), axis=-1, keepdims=True))


@dataclass(frozen=True)
class LabelLikelihood:
    """Likelihood of labels (n,) at S points each: the classes' probabilities (n, S, K) there.

    Examples
    --------
    >>> look = LabelLikelihood.evaluate_at(np.array([1]), np.zeros((1, 1)), helmert(2))
    >>> look.value.round(3), look.slope(helmert(2)).round(3)
    (array([-0.693]), array([[0.707]]))
    >>> look.sizes(helmert(2))
    array([[0.5]])
    """

    labels: Indices
    value: Array
    points: Array

    @classmethod
    def evaluate_at(
        cls, labels: Indices, place: Array, basis: Array, moved: Array | None = None
    ) -> LabelLikelihood:
        """At coordinates (n, R), or on average over points (n, S, R) about them, and mirrored."""
        places = place[:, None]
        if moved is not None:
            places = np.concatenate([places + moved, places - moved], axis=1)
        log_probabilities = log_softmax(places @ basis.T)
        value = np.mean(log_probabilities[np.arange(len(labels)), :, labels], axis=1)
        return cls(labels, value, np.exp(log_probabilities, out=log_probabilities))

    @property
    def average(self) -> Array:
        """(n, K) probabilities, averaged over the points."""
        return self.points[:, 0] if self.points.shape[1] == 1 else np.mean(self.points, axis=1)

    def slope(self, basis: Array) -> Array:
        """(n, R) gradient of the log likelihood."""
        slope = -self.average
        slope[np.arange(len(slope)), self.labels] += 1.0
        return slope @ basis

    def sizes(self, basis: Array) -> Array:
        """(n, R) the diagonal of minus its second derivative, basis' (diag(p) - p p') basis."""
        means = np.mean(np.square(self.points @ basis), axis=1)
        return np.maximum(self.average @ np.square(basis) - means, 0.0)

    def multiply_curvature(self, direction: Array) -> Array:
        """(n, K) the curvature in the predictors, times directions (n, K)."""
        if self.points.shape[1] == 1:
            turned = self.points[:, 0] * direction
            return turned - self.points[:, 0] * turned.sum(axis=1, keepdims=True)
        shifts = self.points @ direction[:, :, None]
        along = (shifts.transpose(0, 2, 1) @ self.points)[:, 0] / self.points.shape[1]
        return self.average * direction - along


def compute_absence_site(weight: float, mean: Array, variance: float) -> tuple[float, float, float]:
    """The site that ``weight`` rows of other classes add to the last contrast, of one dimension.

    With the other contrasts at their ``mean`` (K - 1,), the last class has the log odds
    s c - log sum exp(eta) of its contrast c, s = sqrt(K / (K - 1)). Returns precision, target and
    the log of the constant of the Gaussian that stands for it, at the mode.

    Examples
    --------
    >>> precision, target, _ = compute_absence_site(100.0, np.zeros(2), 100.0)
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


def integrated(mean: Array, root: Array, basis: Array) -> Array:
    """Log of the softmax (n, K), averaged over coordinates of this mean and root of covariance.

    Quadrature at ``N_POINTS`` points of Sobol's sequence and their mirror images: the same points
    for every row and every call, so that nothing is random. The error is about 1e-3.

    Examples
    --------
    >>> predictive = integrated(np.zeros((1, 2)), np.ones((1, 2)), helmert(3))
    >>> np.exp(predictive).round(2)
    array([[0.33, 0.33, 0.33]])
    """
    log_probabilities = log_softmax(spread(mean, root) @ basis.T)
    result = logsumexp(log_probabilities, axis=1)
    return result - logsumexp(result, axis=1, keepdims=True)


def spread(mean: Array, root: Array) -> Array:
    """Return points (n, 2 N_POINTS, R), of equal weight, that represent normal distributions."""
    moved = rotate_points(spread_points(mean.shape[1]), root)
    return np.concatenate([mean[:, None] + moved, mean[:, None] - moved], axis=1)


def rotate_points(units: Array, root: Array) -> Array:
    """Standard points (S, R) turned by roots of covariances, (n, R, R) or diagonals (n, R)."""
    if root.ndim == 2:
        return np.asarray(units * root[:, None, :])
    moved: Array = units @ root.transpose(0, 2, 1)
    return moved


def compute_root(covariance: Array) -> Array:
    """Roots, as :func:`rotate_points` takes them, of covariances (n, R, R) or variances (n, R)."""
    if covariance.ndim == 2:
        return np.sqrt(covariance)
    ridge = RIDGE * np.trace(covariance, axis1=1, axis2=2)[:, None, None]
    try:
        return np.asarray(np.linalg.cholesky(covariance + ridge * np.eye(covariance.shape[1])))
    except np.linalg.LinAlgError:  # one of them is of less rank than rounding
        return compute_principal_root(covariance)


def compute_principal_root(covariance: Array) -> Array:
    """Return roots along principal axes, the longest of which gets the most even of the points."""
    if covariance.ndim == 2:
        return np.sqrt(covariance)
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


@lru_cache(maxsize=64)
def balanced_points(dimension: int, n_points: int) -> Array:
    """Return at least ``n_points`` normal points; with their mirror images covariance is I.

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


@lru_cache(maxsize=64)
def plain_points(dimension: int, n_points: int) -> Array:
    """So many standard normal points, of mean square 1 in each of many directions."""
    points: Array = np.random.default_rng(0).normal(size=(n_points, dimension))
    return points / np.sqrt(np.mean(np.square(points), axis=0))


@lru_cache(maxsize=16)
def spread_points(dimension: int) -> Array:
    """(N_POINTS, dimension) standard normal points, of mean square 1 in each direction."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    uniform = qmc.Sobol(dimension, scramble=False).random(N_POINTS)
    points: Array = ndtri((uniform + 0.5 / N_POINTS) % 1.0)
    return points / np.sqrt(np.mean(np.square(points), axis=0))
