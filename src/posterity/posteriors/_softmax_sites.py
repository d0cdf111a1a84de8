"""The Gaussian rows that stand for one label among many classes.

Two approximations. Laplace's: at the mode, with the curvature there. By averages ("moments"): the
Gaussian nearest the posterior, in the sense of the smallest Kullback-Leibler divergence from it,
under which the averages of the log likelihood's gradient and curvature are the site's (Opper and
Archambeau 2009, "The variational Gaussian approximation revisited"). A label that was expected has
hardly any curvature at the mode; on average over what is not known it has its share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from posterity.aliases import Array, Indices
from posterity.factor import Factor
from posterity.factor.gram import Products, Triangle
from posterity.kernel import look_at_labels
from posterity.posteriors._softmax_likelihood import (
    LabelLikelihood,
    Rows,
    balanced_points,
    compute_root,
    plain_points,
    rotate_points,
)

Pair = tuple[Array, Array]  # rows and targets

# Numbers of rotated rows at a time; rows whose products are summed at a time.
BLOCK_NUMBERS, PRODUCT_ROWS = 4_000_000, 2_048
# Points of the average over one row's coordinates, without their mirror images.
POINTS = 32
MOST_ROUNDS = 8
# Largest change of the log determinant of the covariance: the width is then right to half of it.
SETTLED = 1e-2
# Relative to its weight, the least a row says of a direction; without it the pseudo-target of a
# row that was certain of the wrong class is infinite. The mode is not moved by it.
LEAST_CURVATURE = 1e-10


@dataclass(frozen=True)
class LabelPoints:
    """Coordinates (n, R) at which likelihoods are evaluated, and integration points about them."""

    place: Array
    moved: Array | None = None

    def of(self, part: slice) -> LabelPoints:
        """Some of them."""
        return LabelPoints(self.place[part], None if self.moved is None else self.moved[part])

    def of_coordinate(self, one: int) -> LabelPoints:
        """One of the coordinates."""
        moved = None if self.moved is None else self.moved[:, :, one : one + 1]
        return LabelPoints(self.place[:, one : one + 1], moved)


@dataclass(frozen=True)
class Sites:
    """Sites of n labels for r coordinates: roots (n, r, r) and targets (n, r)."""

    root: Array
    target: Array
    weights: Array

    @classmethod
    def of(
        cls, slope: Array, curvature: Array, rows: Rows, around: LabelPoints
    ) -> tuple[Sites, float]:
        """Sites of this gradient and curvature ``around`` places, and the log of their constant."""
        r = curvature.shape[1]
        curvature[:, np.arange(r), np.arange(r)] += LEAST_CURVATURE
        lower = np.asarray(np.linalg.cholesky(curvature) if r > 1 else np.sqrt(curvature))
        ahead = np.linalg.solve(lower, slope[:, :, None])
        upper = lower.transpose(0, 2, 1)
        weight = np.sqrt(rows.weights)[:, None]
        target = weight * ((upper @ around.place[:, :, None]) + ahead)[:, :, 0]
        logs = 0.5 * np.sum(np.square(ahead), axis=(1, 2))
        if around.moved is not None:
            # What the site says on average over the points, too.
            bent = around.moved @ lower
            logs = logs + 0.5 * np.sum(np.square(bent), axis=(1, 2)) / around.moved.shape[1]
        return cls(weight[:, :, None] * upper, target, rows.weights), float(rows.weights @ logs)

    def rows(self, X: Array) -> tuple[Array, Array]:
        """Rows (n r, r p) and targets (n r, 1) for labels at ``X`` (n, p)."""
        n, r = self.target.shape
        x = self.root[:, :, :, None] * X[:, None, None]
        return x.reshape(n * r, -1), self.target.reshape(-1, 1)

    def products(self, X: Array) -> Products:
        """Of these rows, r p coefficients; no row is made."""
        curvature = self.root.transpose(0, 2, 1) @ self.root
        pull = (self.root.transpose(0, 2, 1) @ self.target[:, :, None])[:, :, 0].T
        r, p = len(pull), X.shape[1]
        squares = np.empty((r, p, r, p))
        for one in range(r):
            for other in range(one + 1):
                squares[one, :, other] = (curvature[:, one, other] * X.T) @ X
                squares[other, :, one] = squares[one, :, other].T
        square = float(np.sum(np.square(self.target)))
        return Products(squares.reshape(r * p, r * p), (pull @ X).reshape(-1, 1), square)


def find_sites(rows: Rows, around: LabelPoints, basis: Array) -> tuple[list[Pair], float]:
    """Rows and targets that stand for labels around their places, and the log of their constant.

    Of K coordinates each has rows of its own, of fewer all have them together. Many are brought to
    a triangle: by their products, where that costs no digits.
    """
    n, p = rows.X.shape
    if n <= 2 * p:
        ((_, sites, constant),) = _find_some(rows, around, basis, n)
        return [site.rows(rows.X) for site in sites], constant
    totals: list[Products] = []
    constant = 0.0
    for X, sites, log_constant in _find_some(rows, around, basis, PRODUCT_ROWS):
        products = [site.products(X) for site in sites]
        if totals:
            products = [one + other for one, other in zip(totals, products, strict=True)]
        totals, constant = products, constant + log_constant
    found = [one for one in (total.triangle() for total in totals) if one is not None]
    if len(found) < len(totals):
        found = _rotate(rows, around, basis, [len(total.moments) for total in totals])
    return [_as_rows(triangle) for triangle in found], constant


def _rotate(rows: Rows, around: LabelPoints, basis: Array, sizes: list[int]) -> list[Triangle]:
    block = BLOCK_NUMBERS // max(sizes[0] ** 2 // rows.X.shape[1], len(basis))
    together = [Factor(size) for size in sizes]
    for X, sites, _ in _find_some(rows, around, basis, max(1, block)):
        for factor, site in zip(together, sites, strict=True):
            factor.append(*site.rows(X))
    return [(one.root, one.moments, one.residual_root) for one in together]


def _find_some(
    rows: Rows, around: LabelPoints, basis: Array, block: int
) -> Iterator[tuple[Array, list[Sites], float]]:
    """Some rows at a time: their features, sites for each part, and the log of the constant."""
    for start in range(0, len(rows.X), block):
        part = slice(start, start + block)
        some, near = rows.of(part), around.of(part)
        if basis.shape[1] == len(basis):
            look = LabelLikelihood.evaluate_at(some.labels, near.place, basis, near.moved)
            value, slope, sizes = look.value, look.slope(basis), look.sizes(basis)
            each = [
                (slope[:, k : k + 1], sizes[:, k, None, None], some, near.of_coordinate(k))
                for k in range(len(basis))
            ]
        else:
            value, slope, curvature = look_at_labels(some.labels, near.place, basis, near.moved)
            each = [(slope, curvature, some, near)]
        sites, constants = zip(*(Sites.of(*one) for one in each), strict=True)
        yield some.X, list(sites), float(some.weights @ value) + sum(constants)


def _as_rows(triangle: Triangle) -> Pair:
    root, moments, residual = triangle
    return np.vstack([root, np.zeros((1, len(root)))]), np.vstack([moments, residual])


def place_points(covariance: Array, n_points: int = POINTS) -> Array:
    """(n, S, R) points that with their mirror images have these covariances, or variances."""
    make = balanced_points if covariance.ndim == 3 else plain_points
    return rotate_points(make(covariance.shape[1], n_points), compute_root(covariance))


def place_around_row(
    row: tuple[Indices, float], mean: Array, covariance: Array, basis: Array, *, averaged: bool
) -> LabelPoints:
    """Return where to fit one label's site; the prior is ``mean`` (R,) and ``covariance`` (R, R).

    Examples
    --------
    >>> from posterity.posteriors._softmax_likelihood import helmert
    >>> row = np.array([1]), 1.0
    >>> place_around_row(row, np.zeros(1), np.eye(1), helmert(2), averaged=False).place.round(4)
    array([[0.4772]])
    """
    prior = mean, covariance, basis
    push, precision = _find_site_mode(row, prior, np.zeros_like(mean), None)
    if not averaged:
        return LabelPoints((mean + covariance @ push)[None])
    root = compute_root(covariance[None])[0]
    (moved, size), last, share = _condition_points(root, precision), np.inf, 1.0
    for _ in range(MOST_ROUNDS):
        push, curvature = _find_site_mode(row, prior, push, moved)
        # Where it went to and fro, the mean of both.
        precision = share * curvature + (1.0 - share) * precision
        moved, new_size = _condition_points(root, precision)
        changed = abs(new_size - size)
        share = 0.5 if changed > 0.5 * last else share
        size, last = new_size, changed
        if changed < SETTLED:
            break
    return LabelPoints((mean + covariance @ push)[None], moved)


def _condition_points(root: Array, precision: Array) -> tuple[Array, float]:
    """Return points for the covariance that a site leaves, and the log determinant of its share.

    With root root' the covariance before, root (I + root' precision root)^-1/2 is one after.
    """
    inner = np.linalg.cholesky(np.eye(len(root)) + root.T @ precision @ root)
    turned = np.linalg.solve(inner, root.T).T
    units = balanced_points(len(root), POINTS)
    return rotate_points(units, turned[None]), -2.0 * float(np.sum(np.log(np.diag(inner))))


def _find_site_mode(
    row: tuple[Indices, float],
    prior: tuple[Array, Array, Array],
    push: Array,
    moved: Array | None,
) -> tuple[Array, Array]:
    """Newton's method from mean + covariance ``push``; returns the push and the curvature there."""
    (label, weight), (mean, covariance, basis) = row, prior

    def look(push: Array) -> tuple[float, Array, Array]:
        step = covariance @ push
        value, slope, curvature = look_at_labels(label, (mean + step)[None], basis, moved)
        return (
            float(weight * value[0] - 0.5 * push @ step),
            weight * slope[0],
            weight * curvature[0],
        )

    best, slope, curvature = look(push)
    for _ in range(60):
        right = slope + curvature @ (covariance @ push)
        wanted = np.linalg.solve(np.eye(len(mean)) + curvature @ covariance, right)
        share, least, last = 1.0, best - 1e-14 * (1.0 + abs(best)), curvature  # less is rounding
        while True:
            new, slope, curvature = look(push + share * (wanted - push))
            if new >= least or share <= 1e-9:
                break
            share *= 0.5
        gained, push, best = new - best, push + share * (wanted - push), max(new, best)
        if not gained > (1e-13 if moved is None else 1e-6) * (1.0 + abs(best)):
            return push, last
    return push, curvature
