"""The mode of many classes: Newton's method, its steps by conjugate gradients.

No matrix of all coefficients is made: a product with the second derivative takes one pass over the
rows. What goes before it is a triangle of what is known and of the rows' curvature in each
coordinate by itself, which is near enough that a few products make a step. Where there are few
coefficients the matrix is made, and looks are the kernel's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from posterity.factor import Factor
from posterity.factor.gram import cholesky, gram
from posterity.kernel import look_at_labels
from posterity.posteriors._softmax_likelihood import Array, LabelLikelihood, Rows

# Twice what the log posterior can still gain, against its size.
PRECISE = 1e-22
MOST_STEPS, MOST_PRODUCTS = 100, 500
# So many products for a step, and the triangle before them is made anew.
MANY_PRODUCTS = 8
FARTHEST = 1e8


@dataclass(frozen=True)
class Objective:
    """Log posterior of coefficients (R, p), a row for each coordinate of ``basis`` (K, R).

    ``roots`` (B, s, s) and ``moments`` (B, s) are what was known before of B parts of the
    coordinates, B s = R p. The log likelihood is averaged over the points ``moved`` (n, S, R) about
    each row's coordinates, where there are any.
    """

    rows: Rows
    basis: Array
    roots: Array
    moments: Array
    moved: Array | None = None

    @classmethod
    def with_factors(
        cls, priors: Sequence[Factor], rows: Rows, basis: Array, moved: Array | None = None
    ) -> Objective:
        """Return the objective with these factors as the prior of the rows."""
        roots = np.stack([factor.root for factor in priors])
        moments = np.stack([factor.moments[:, 0] for factor in priors])
        return cls(rows, basis, roots, moments, moved)

    def evaluate_labels(self, w: Array) -> LabelLikelihood:
        """Evaluate the labels' likelihood at these coefficients."""
        return LabelLikelihood.evaluate_at(
            self.rows.labels, self.rows.X @ w.T, self.basis, self.moved
        )

    def value(self, w: Array, look: LabelLikelihood) -> float:
        """Log posterior, up to a constant."""
        left = self.moments - self._times(w)
        return float(self.rows.weights @ look.value) - 0.5 * float(np.sum(np.square(left)))

    def gradient(self, w: Array, look: LabelLikelihood) -> Array:
        """(R, p)."""
        rows = self.rows
        gradient = (rows.weights[:, None] * look.slope(self.basis)).T @ rows.X
        gradient += self._multiply_transposed(self.moments - self._times(w), w)
        if len(self.roots) == len(self.basis):
            # What all classes have in common no label tells of: of a flat prior it is rounding.
            flat = ~self.roots.any(axis=(0, 1))
            gradient[:, flat] -= gradient[:, flat].mean(axis=0)
        return gradient

    def evaluate_directly(self, w: Array) -> tuple[float, Array, Array]:
        """Log posterior, gradient (R, p), minus the second derivative (R p, R p); of one part."""
        (root,), left, (r, p) = self.roots, self.moments - self._times(w), w.shape
        gradient, value = self._multiply_transposed(left, w), -0.5 * float(np.sum(np.square(left)))
        rows = self.rows
        looks = look_at_labels(rows.labels, rows.X @ w.T, self.basis, self.moved)
        values, slope, curvature = looks
        value += float(rows.weights @ values)
        gradient += (rows.weights[:, None] * slope).T @ rows.X
        curvature *= rows.weights[:, None, None]
        squares = rows.X[:, :, None] * rows.X[:, None]
        multiply_curvature = curvature.reshape(-1, r * r).T @ squares.reshape(-1, p * p)
        whole = multiply_curvature.reshape(r, r, p, p).transpose(0, 2, 1, 3).reshape(r * p, r * p)
        return value, gradient, whole + root.T @ root

    def product(self, direction: Array, look: LabelLikelihood) -> Array:
        """(R, p) minus the second derivative, times a direction."""
        rows = self.rows
        multiply_curvature = look.multiply_curvature((rows.X @ direction.T) @ self.basis.T)
        multiply_curvature *= rows.weights[:, None]
        product = (multiply_curvature @ self.basis).T @ rows.X
        product += self._multiply_transposed(self._times(direction), direction)
        return product

    def triangles(self, look: LabelLikelihood) -> list[Array]:
        """Return the factor of each part, with the rows' curvature in each coordinate by itself."""
        sizes = (self.rows.weights[:, None] * look.sizes(self.basis)).T
        parts = sizes.reshape(len(self.roots), -1, len(self.rows.X))
        return [self._added(root, part) for root, part in zip(self.roots, parts, strict=True)]

    def _added(self, root: Array, sizes: Array) -> Array:
        # By products where they have digits enough: a step's direction needs few.
        X = self.rows.X
        squares = block_diag(*(gram(X, size, intercept=False) for size in sizes))
        scale, triangle = cholesky(root.T @ root + squares)
        return _usable(self._rotate(root, sizes)) if triangle is None else triangle * scale

    def _rotate(self, root: Array, sizes: Array) -> Array:
        each = []
        for size in sizes:
            alone = Factor(self.rows.X.shape[1])
            alone.append(self.rows.X, np.zeros((len(size), 1)), np.ascontiguousarray(size))
            each.append(alone.root)
        both = Factor(len(root))
        for rows in (root, block_diag(*each)):
            both.append(np.ascontiguousarray(rows), np.zeros((len(rows), 1)))
        return both.root

    def _times(self, w: Array) -> Array:
        """(B, s) the roots times coefficients."""
        parts = w.reshape(len(self.roots), -1, 1)
        return np.asarray((self.roots @ parts)[:, :, 0])

    def _multiply_transposed(self, values: Array, like: Array) -> Array:
        """(R, p) the roots' transposes times values (B, s)."""
        return np.asarray((values[:, None] @ self.roots).reshape(like.shape))


def find_mode(objective: Objective, w: Array, close: float = PRECISE) -> tuple[Array, bool]:
    """The mode, from coefficients ``w`` (R, p), with halved steps; and whether it was reached."""
    look, products, triangles = objective.evaluate_labels(w), MOST_PRODUCTS, []
    value = objective.value(w, look)
    for _ in range(MOST_STEPS):
        gradient = objective.gradient(w, look)
        if products > MANY_PRODUCTS:
            triangles = objective.triangles(look)
        enough = 0.1 * close * (1.0 + abs(value))
        step, products = _newton_step(objective, look, gradient, (triangles, enough))
        if products < 0:
            return w, False
        decrement, size = float(np.sum(gradient * step)), 2.0
        least, new = value - 1e-13 * (1.0 + abs(value)), -np.inf  # less is rounding
        while not new >= least and size > 1e-10:
            size *= 0.5
            look = objective.evaluate_labels(w + size * step)
            new = objective.value(w + size * step, look)
        if not new >= least:
            return w, decrement < 1e-8 + 1e-13 * abs(value)
        w, value = w + size * step, max(new, value)
        # Where classes are separated the way ahead is long, however little is gained.
        short = bool(np.abs(step).max() <= 1e-3 * (1.0 + np.abs(w).max()))
        if decrement <= (close if short else PRECISE) * (1.0 + abs(value)):
            return w, short
        if np.abs(w).max() > FARTHEST:
            break
    return w, False


def find_mode_directly(
    objective: Objective, w: Array, close: float = PRECISE
) -> tuple[Array, bool]:
    """As :func:`find_mode`, with the matrix of all second derivatives, of coordinates in one part.

    ``reached`` is False, too, where the matrix is not positive definite.
    """
    value, gradient, matrix = objective.evaluate_directly(w)
    for _ in range(MOST_STEPS):
        factor, failed = dpotrf(matrix)
        if failed:
            return w, False
        step = dpotrs(factor, gradient.ravel())[0].reshape(w.shape)
        decrement, size = float(np.sum(gradient * step)), 2.0
        least, new = value - 1e-13 * (1.0 + abs(value)), -np.inf  # less is rounding
        while not new >= least and size > 1e-10:
            size *= 0.5
            new, gradient, matrix = objective.evaluate_directly(w + size * step)
        if not new >= least:
            return w, decrement < 1e-8 + 1e-13 * abs(value)
        w, value = w + size * step, max(new, value)
        # Where classes are separated the way ahead is long, however little is gained.
        short = bool(np.abs(step).max() <= 1e-3 * (1.0 + np.abs(w).max()))
        if decrement <= (close if short else PRECISE) * (1.0 + abs(value)):
            return w, short
        if np.abs(w).max() > FARTHEST:
            break
    return w, False


def _newton_step(
    objective: Objective, look: LabelLikelihood, gradient: Array, means: tuple[list[Array], float]
) -> tuple[Array, int]:
    """Solve minus Hessian times step = gradient, to a part of it that shrinks with it.

    ``means`` are the triangles that go before it, and how little is left when it is enough.

    Returns the step and the number of products; -1 where there is no step.
    """
    triangles, enough = means

    def ahead_of(left: Array) -> Array:
        parts = left.reshape(len(triangles), -1)
        halves = [dtrtrs(one, part, trans=1)[0] for one, part in zip(triangles, parts, strict=True)]
        solved = [dtrtrs(one, half)[0] for one, half in zip(triangles, halves, strict=True)]
        return np.asarray(solved).reshape(left.shape)

    step, left, count = np.zeros_like(gradient), gradient.copy(), 0
    ahead = ahead_of(left)
    direction, size = ahead.copy(), float(np.sum(left * ahead))
    goal = max(size * min(1e-2, size), enough)
    while size > 0.0 and (size > goal or count == 0) and count < MOST_PRODUCTS:
        moved = objective.product(direction, look)
        multiply_curvature = float(np.sum(direction * moved))
        if not multiply_curvature > 0.0:  # beyond all digits
            return step, count or -1
        step += size / multiply_curvature * direction
        left -= size / multiply_curvature * moved
        ahead = ahead_of(left)
        new = float(np.sum(left * ahead))
        direction = ahead + new / size * direction
        size, count = new, count + 1
    return step, count


def _usable(root: Array) -> Array:
    """A triangle that can be solved with: where nothing is known, nothing is to be found."""
    triangle = np.asfortranarray(root)
    small = np.flatnonzero(np.diag(triangle) == 0.0)
    triangle[small, small] = 1.0
    return triangle
