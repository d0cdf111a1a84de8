"""Posteriors of many autoregressions of one form at once: exact draws of coefficients and noise.

Each series has the triangle [R, q; 0, s] of its rows. Its coefficients have the prior

    w ~ Normal(m, sigma^2 / ratio P P'),

with m = 0 and P the inverse root mean squares of the features (the scale-free prior of
:class:`posterity.evidence.Integrated`), or m and P learned over all series. Coefficients of a level
have a flat prior: they come first in the triangle, of which the rest is that of what they leave
unexplained. In the singular directions of R P everything is a sum, the ratio is integrated on a
grid, and the noise by formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv, ndtri
from scipy.stats import qmc

from posterity.aliases import Array
from posterity.evidence.hyperprior import make_log_ratio_grid
from posterity.forecasting.forms import Form

# Limit of log(ratio / signal): signals of 1e-7 of the noise variance, or 1e7 times it.
FARTHEST = 16.0
# Points of the grid for a shared prior, and the sd of the log ratio there: of the closeness of a
# series to what the others say, which is known but for a factor of e^2 or so.
SHARED_POINTS, SHARED_SPREAD = 25, 2.0
# Weight of the noise's prior, in rows with errors of the naive forecast's size.
NOISE_ROWS = 2.0
# A lag with a smaller root mean square, in units of the naive errors, has hardly moved.
SMALLEST_MOVE = 0.01
# Number of shares whose product is far from underflow.
TOGETHER = 8


@dataclass(frozen=True, eq=False)
class Prior:
    """Prior of the coefficients that series share: ``mean`` (p,) and ``root`` (p, p), P above."""

    mean: Array
    root: Array


@dataclass(frozen=True, eq=False)
class Draws:
    """Joint draws of the coefficients (S, K, p) and of the noise's standard deviation (S, K)."""

    coefficients: Array
    noise: Array


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior of S series on a grid of G ratios.

    ``directions`` (S, p, p) has right singular vectors as columns, and ``rotation`` turns what is
    along them into coefficients; ``values``, ``projections`` (S, p) are singular values and targets
    along them; ``ratios``, ``weights`` and ``residuals`` (S, G);
    ``rows`` (S,) twice the shape of the noise's posterior. ``level`` (S, f, f + p + 1) are the rows
    of the triangle that belong to free coefficients.
    """

    mean: Array
    directions: Array
    rotation: Array
    values: Array
    projections: Array
    ratios: Array
    weights: Array
    residuals: Array
    rows: Array
    level: Array

    @classmethod
    def of(cls, triangles: Array, count: Array, prior: Prior | None, form: Form) -> Posterior:
        """Return the posterior from triangles (S, p + 1, p + 1) of ``count`` (S,) rows of a form.

        Lags that hardly moved, as of a series that was constant until its last row, tell nothing of
        their coefficients, which are near 0 then.
        """
        free, level = form.n_free, triangles[:, : form.n_free]
        triangles, count = triangles[:, free:, free:], count - free
        p = triangles.shape[1] - 1
        root, target = triangles[:, :p, :p], triangles[:, :p, p]
        naive = np.square(triangles[:, :, p]).sum(axis=1) / np.maximum(count, 1.0)
        if prior is None:
            size = np.sqrt(np.square(root).sum(axis=1) / np.maximum(count, 1.0)[:, None])
            scale = 1.0 / np.where(size > 0.0, size, 1.0)
            lags = slice(0, form.n_lags)
            scale[:, lags] = size[:, lags] / np.square(np.maximum(size[:, lags], SMALLEST_MOVE))
            turned, mean = root * scale[:, None, :], np.zeros(p)
        else:
            target, turned, mean = target - root @ prior.mean, root @ prior.root, prior.mean
        left, values, right = np.linalg.svd(turned)
        projections = (np.swapaxes(left, 1, 2) @ target[:, :, None])[:, :, 0]
        squares = np.square(values)
        signal = None if prior else np.maximum(np.count_nonzero(root.any(axis=1), axis=1), 1)
        ratios, log_prior = _make_grid(len(root), p, signal)
        log_shares, residuals = _sum_over_directions(ratios, squares, np.square(projections))
        residuals += (np.square(triangles[:, p, p]) + NOISE_ROWS * naive)[:, None]
        rows = np.maximum(count, 0.0) + NOISE_ROWS
        log_weights = 0.5 * log_shares + log_prior
        log_weights -= 0.5 * rows[:, None] * np.log(np.maximum(residuals, 1e-300))
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        directions = np.swapaxes(right, 1, 2)
        rotation = scale[:, :, None] * directions if prior is None else prior.root @ directions
        known = (mean, directions, rotation, values, projections)
        return cls(*known, ratios, weights, residuals, rows, level)

    def draws(self, size: int) -> Draws:
        """``size`` draws of each series, of a fixed set of points of low discrepancy."""
        p, free = self.values.shape[1], self.level.shape[1]
        points = make_sobol_points(size, p + 2 + free)
        below = np.cumsum(self.weights, axis=1)
        node = (points[None, :, 0, None] > below[:, None, :]).sum(axis=2)
        node = np.minimum(node, self.weights.shape[1] - 1)
        ratios = np.take_along_axis(self.ratios, node, axis=1)
        rates = 0.5 * np.take_along_axis(self.residuals, node, axis=1)
        # Many series, and many forms, have the same number of rows.
        rows, which = np.unique(self.rows, return_inverse=True)
        precisions = [_draw_precisions(each, *points.shape) for each in rows.tolist()]
        noise = np.sqrt(rates / np.stack(precisions)[which])
        information = ratios[:, :, None] + np.square(self.values)[:, None, :]
        along = (self.values * self.projections)[:, None, :] / information
        # By the symmetric root of the covariance: the signs of directions, and how those of equal
        # values are turned, differ between processors.
        turned = ndtri(points[:, 2 : 2 + p]) @ self.directions
        along += noise[:, :, None] * turned / np.sqrt(information)
        coefficients = self.mean + along @ np.swapaxes(self.rotation, 1, 2)
        errors = noise[:, :, None] * ndtri(points[:, 2 + p :])
        return Draws(self._add_level(coefficients, errors), noise)

    def coefficients(self) -> Array:
        """(S, p) posterior means."""
        squares = np.square(self.values)[:, None, :]
        known = self.weights[:, None, :] @ (1.0 / (self.ratios[:, :, None] + squares))
        along = known[:, 0] * self.values * self.projections
        means = self.mean + (self.rotation @ along[:, :, None])[:, :, 0]
        return self._add_level(means[:, None], np.zeros((1, 1, self.level.shape[1])))[:, 0]

    def _add_level(self, others: Array, errors: Array) -> Array:
        """(S, K, p) coefficients, the free ones of the level first, given the ``others``.

        Their rows of the triangle are solved from the last to the first, with ``errors`` of theirs.
        """
        found = others
        for place in reversed(range(self.level.shape[1])):
            row = self.level[:, place, None]
            left = row[:, :, -1] - (found @ np.swapaxes(row[:, :, place + 1 : -1], 1, 2))[:, :, 0]
            left += errors[:, :, place]
            known = row[:, :, place] != 0.0
            value = np.divide(left, row[:, :, place], out=np.zeros_like(left), where=known)
            found = np.concatenate([value[:, :, None], found], axis=2)
        return found


@lru_cache(maxsize=64)
def make_sobol_points(size: int, dimensions: int) -> Array:
    """Points (size, dimensions) in the unit cube, always the same."""
    with np.errstate(all="ignore"):
        points = qmc.Sobol(dimensions, scramble=True, rng=0).random_base2(
            int(np.ceil(np.log2(size)))
        )[:size]
    points = np.clip(points, 1e-9, 1.0 - 1e-9)
    points.setflags(write=False)
    return points


@lru_cache(maxsize=8192)
def _draw_precisions(rows: float, size: int, dimensions: int) -> Array:
    """(size,) gamma distributed draws of shape rows / 2, whose quantiles are slow to find."""
    drawn: Array = gammaincinv(0.5 * rows, make_sobol_points(size, dimensions)[:, 1])
    drawn.setflags(write=False)
    return drawn


def _sum_over_directions(ratios: Array, squares: Array, weights: Array) -> tuple[Array, Array]:
    """(S, G) sums over directions of log shares, and of shares with ``weights`` (S, p).

    The share of a direction is ratio / (ratio + its square). Direction by direction, and a
    logarithm for several: an axis that is short is slow to sum over.
    """
    logs, total, product = np.zeros(ratios.shape), np.zeros(ratios.shape), np.ones(ratios.shape)
    for number in range(squares.shape[1]):
        share = ratios / (ratios + squares[:, number, None])
        total += weights[:, number, None] * share
        product *= share
        if number % TOGETHER == TOGETHER - 1:
            logs += np.log(product)
            product[:] = 1.0
    return logs + np.log(product), total


def _make_grid(n_series: int, p: int, signal: Array | None) -> tuple[Array, Array]:
    """Return ratios (S, G) and their log prior (G,).

    ``signal`` (S,) is how much coefficients that are as large as the noise explain; with a shared
    prior it is None.
    """
    if signal is None:
        log_ratios = np.linspace(-3.0, 3.0, SHARED_POINTS) * SHARED_SPREAD
        log_prior = -0.5 * np.square(log_ratios / SHARED_SPREAD)
        return np.broadcast_to(np.exp(log_ratios), (n_series, SHARED_POINTS)), log_prior
    log_ratios, log_prior = make_log_ratio_grid(p)
    some = np.abs(log_ratios) < FARTHEST
    return np.exp(log_ratios[some]) * signal[:, None], log_prior[some]
