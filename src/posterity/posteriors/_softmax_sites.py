"""The Gaussian that stands for one label among many classes.

Two approximations. Laplace's: at the mode, with the curvature there. By averages ("moments"): the
Gaussian nearest the posterior, in the sense of the smallest Kullback-Leibler divergence from it,
under which the averages of the log likelihood's gradient and curvature are the site's (Opper and
Archambeau 2009, "The variational Gaussian approximation revisited"). A label that was expected has
hardly any curvature at the mode; on average over what is not known it has its share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posterity.posteriors._softmax_likelihood import (
    Index,
    averages,
    balanced_points,
    log_likelihood,
)

Array = NDArray[np.float64]

# Points of the average over one row's contrasts, without their mirror images.
POINTS = 32
MOST_ROUNDS = 8
# Largest change of the log determinant of the covariance: the width is then right to half of it.
SETTLED = 1e-2


@dataclass(frozen=True)
class Around:
    """Where labels are looked at: contrasts (n, K - 1), and the points about them, if any."""

    contrast: Array
    moved: Array | None = None

    def of(self, part: slice) -> Around:
        """Some of them."""
        return Around(self.contrast[part], None if self.moved is None else self.moved[part])


def points_about(covariance: Array, n_points: int = POINTS) -> Array:
    """(n, S, K - 1) points that with their mirror images have these covariances."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    units = balanced_points(covariance.shape[1], n_points)
    moved: Array = units @ root.transpose(0, 2, 1)
    return moved


def around_one(
    label: Index, weight: float, mean: Array, covariance: Array, *, averaged: bool
) -> Around:
    """Where one label (1,) is looked at, ``mean`` (K - 1,) and ``covariance`` believed before it.

    Examples
    --------
    >>> around_one(np.array([1]), 1.0, np.zeros(1), np.eye(1), averaged=False).contrast.round(4)
    array([[0.4772]])
    """
    push, precision = _climb(label, weight, (mean, covariance), np.zeros_like(mean), None)
    if not averaged:
        return Around((mean + covariance @ push)[None])
    width: Array = _after(covariance, precision)
    moved, last, share = points_about(width[None]), np.inf, 1.0
    for _ in range(MOST_ROUNDS):
        push, precision = _climb(label, weight, (mean, covariance), push, moved)
        new = _after(covariance, precision)
        if share < 1.0:  # it went to and fro: the mean of both, in precisions
            new = _mean_precision(new, width)
        changed = abs(np.linalg.slogdet(new)[1] - np.linalg.slogdet(width)[1])
        share = 0.5 if changed > 0.5 * last else share
        width, last, moved = new, changed, points_about(new[None])
        if changed < SETTLED:
            break
    return Around((mean + covariance @ push)[None], moved)


def _after(covariance: Array, precision: Array) -> Array:
    """What is left of a covariance by a site of this precision."""
    after = covariance @ np.linalg.inv(np.eye(len(covariance)) + precision @ covariance)
    return np.asarray(0.5 * (after + after.T))


def _mean_precision(one: Array, other: Array) -> Array:
    """The covariance whose precision is the mean of those of two."""
    mean = np.linalg.inv(0.5 * (np.linalg.inv(one) + np.linalg.inv(other)))
    return np.asarray(0.5 * (mean + mean.T))


def _climb(
    label: Index, weight: float, believed: tuple[Array, Array], push: Array, moved: Array | None
) -> tuple[Array, Array]:
    """Newton's method from mean + covariance ``push``; returns the push and the curvature there."""
    mean, covariance = believed

    def value(push: Array) -> float:
        step = covariance @ push
        told = log_likelihood(label, (mean + step)[None], moved)[0]
        return float(weight * told - 0.5 * push @ step)

    best = value(push)
    for _ in range(60):
        step = covariance @ push
        _, slope, curvature = averages(label, (mean + step)[None], moved)
        curved = weight * curvature[0]
        right = weight * slope[0] + curved @ step
        wanted = np.linalg.solve(np.eye(len(mean)) + curved @ covariance, right)
        share = 1.0
        while (new := value(push + share * (wanted - push))) < best and share > 1e-9:
            share *= 0.5
        gained = new - best
        push, best = push + share * (wanted - push), max(new, best)
        if not gained > (1e-13 if moved is None else 1e-6) * (1.0 + abs(best)):
            break
    return push, curved
