"""The mode of many classes: Newton's method.

Where there are few coefficients the matrix of second derivatives is made. Elsewhere steps are found
by conjugate gradients: a product with the second derivative takes one pass over the rows. What goes
before it is a triangle of what is known and of the rows' curvature in each coordinate by itself,
which is near enough that a few products make a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.linalg.lapack import dpotrf, dpotrs

from posterity.aliases import Array
from posterity.distributions.triangles import solve_triangle
from posterity.factor import Factor
from posterity.factor.gram import cholesky, gram
from posterity.kernel import look_at_labels
from posterity.posteriors._softmax_likelihood import LabelLikelihood, Rows

# Twice what the log posterior can still gain, against its size.
PRECISE = 1e-22
MOST_STEPS, MOST_PRODUCTS = 100, 500
# So many products for a step, and the triangle before them is made anew.
MANY_PRODUCTS = 8
FARTHEST = 1e8
# Squares and products of all rows' columns, up to which the matrix of second derivatives is made.
MOST_SQUARES = 200_000


class Point(NamedTuple):
    """Log posterior, gradient (R, p), and Newton's step for a gradient.

    The step is None where there is none; its second argument is how little may be left of it.
    """

    value: float
    gradient: Array
    step: Callable[[Array, float], Array | None]


@dataclass
class Objective:
    """Log posterior of coefficients (R, p), a row for each coordinate of ``basis`` (K, R).

    ``roots`` (B, s, s) and ``moments`` (B, s) are what was known before of B parts of the
    coordinates, B s = R p. The log likelihood is averaged over the points ``moved`` (n, S, R) about
    each row's coordinates, where there are any. ``direct`` says that the matrix of second
    derivatives is made, of one part. Else the ``triangles`` that go before products are kept, as
    long as so few ``products`` make a step.
    """

    rows: Rows
    basis: Array
    roots: Array
    moments: Array
    moved: Array | None = None
    direct: bool = False
    triangles: list[Array] = field(default_factory=list, init=False)
    products: int = field(default=MOST_PRODUCTS, init=False)

    @classmethod
    def with_factors(
        cls, priors: Sequence[Factor], rows: Rows, basis: Array, moved: Array | None = None
    ) -> Objective:
        """Return the objective with these factors as the prior of the rows."""
        roots = np.stack([factor.root for factor in priors])
        moments = np.stack([factor.moments[:, 0] for factor in priors])
        few = len(roots) == 1 and len(rows.X) * rows.X.shape[1] ** 2 <= MOST_SQUARES
        return cls(rows, basis, roots, moments, moved, few)

    def evaluate(self, w: Array) -> Point:
        """Evaluate the log posterior, up to a constant, and its derivatives."""
        rows, place, left = self.rows, self.rows.X @ w.T, self.moments - self._times(w)
        step: Callable[[Array, float], Array | None]
        if self.direct:
            values, slope, curvature = look_at_labels(rows.labels, place, self.basis, self.moved)
            step = partial(self._step_directly, curvature)
        else:
            look = LabelLikelihood.evaluate_at(rows.labels, place, self.basis, self.moved)
            values, slope = look.value, look.slope(self.basis)
            step = partial(self._step_by_products, look)
        value = float(rows.weights @ values) - 0.5 * float(np.sum(np.square(left)))
        gradient = (rows.weights[:, None] * slope).T @ rows.X
        gradient += self._multiply_transposed(left, w)
        if len(self.roots) == len(self.basis):
            # What all classes have in common no label tells of: of a flat prior it is rounding.
            flat = ~self.roots.any(axis=(0, 1))
            gradient[:, flat] -= gradient[:, flat].mean(axis=0)
        return Point(value, gradient, step)

    def _step_directly(self, curvature: Array, gradient: Array, enough: float) -> Array | None:
        factor, failed = dpotrf(self._matrix(curvature))
        if failed:
            return None
        step: Array = dpotrs(factor, gradient.ravel())[0].reshape(gradient.shape)
        return step

    def _matrix(self, curvature: Array) -> Array:
        """(R p, R p) minus the second derivative, of one part."""
        rows, (root,), r = self.rows, self.roots, curvature.shape[1]
        p = rows.X.shape[1]
        weighted = (rows.weights[:, None, None] * curvature).reshape(-1, r * r)
        squares = (rows.X[:, :, None] * rows.X[:, None]).reshape(-1, p * p)
        whole = (weighted.T @ squares).reshape(r, r, p, p).transpose(0, 2, 1, 3)
        return np.asarray(whole.reshape(r * p, r * p) + root.T @ root)

    def _step_by_products(
        self, look: LabelLikelihood, gradient: Array, enough: float
    ) -> Array | None:
        """Solve minus Hessian times step = gradient, to a part of it that shrinks with it."""
        if self.products > MANY_PRODUCTS:
            sizes = (self.rows.weights[:, None] * look.sizes(self.basis)).T
            parts = sizes.reshape(len(self.roots), -1, len(self.rows.X))
            self.triangles = [self._add(*one) for one in zip(self.roots, parts, strict=True)]
        step, left, count = np.zeros_like(gradient), gradient.copy(), 0
        ahead = self._solve_ahead(left)
        direction, size = ahead.copy(), float(np.sum(left * ahead))
        goal = max(size * min(1e-2, size), enough)
        while size > 0.0 and (size > goal or count == 0) and count < MOST_PRODUCTS:
            moved = self._multiply(direction, look)
            bent = float(np.sum(direction * moved))
            if not bent > 0.0:  # beyond all digits
                self.products = count
                return step if count else None
            step += size / bent * direction
            left -= size / bent * moved
            ahead = self._solve_ahead(left)
            new = float(np.sum(left * ahead))
            direction = ahead + new / size * direction
            size, count = new, count + 1
        self.products = count
        return step

    def _solve_ahead(self, left: Array) -> Array:
        parts = zip(self.triangles, left.reshape(len(self.triangles), -1), strict=True)
        solved = [
            solve_triangle(one, solve_triangle(one, part, transposed=True)) for one, part in parts
        ]
        return np.asarray(solved).reshape(left.shape)

    def _multiply(self, direction: Array, look: LabelLikelihood) -> Array:
        """(R, p) minus the second derivative, times a direction."""
        bent = look.multiply_curvature((self.rows.X @ direction.T) @ self.basis.T)
        bent *= self.rows.weights[:, None]
        product = (bent @ self.basis).T @ self.rows.X
        product += self._multiply_transposed(self._times(direction), direction)
        return product

    def _add(self, root: Array, sizes: Array) -> Array:
        """The triangle of a part, with the rows' curvature in each coordinate by itself."""
        # By products where they have digits enough: a step's direction needs few.
        X = self.rows.X
        squares = block_diag(*(gram(X, size, intercept=False) for size in sizes))
        scale, triangle = cholesky(root.T @ root + squares)
        if triangle is not None:
            return np.asarray(triangle * scale)
        both = Factor(len(root))
        both.append(np.ascontiguousarray(root), np.zeros((len(root), 1)))
        for place, size in enumerate(sizes):
            alone = Factor(X.shape[1])
            alone.append(X, np.zeros((len(size), 1)), np.ascontiguousarray(size))
            rows = np.kron(np.eye(len(sizes))[place : place + 1], alone.root)
            both.append(np.ascontiguousarray(rows), np.zeros((len(rows), 1)))
        usable = np.asfortranarray(both.root)
        # Where nothing is known, nothing is to be found.
        small = np.flatnonzero(np.diag(usable) == 0.0)
        usable[small, small] = 1.0
        return usable

    def _times(self, w: Array) -> Array:
        """(B, s) the roots times coefficients."""
        parts = w.reshape(len(self.roots), -1, 1)
        return np.asarray((self.roots @ parts)[:, :, 0])

    def _multiply_transposed(self, values: Array, like: Array) -> Array:
        """(R, p) the roots' transposes times values (B, s)."""
        return np.asarray((values[:, None] @ self.roots).reshape(like.shape))


def find_mode(objective: Objective, w: Array, close: float = PRECISE) -> tuple[Array, bool]:
    """The mode, from coefficients ``w`` (R, p), with halved steps; and whether it was reached."""
    point = objective.evaluate(w)
    for _ in range(MOST_STEPS):
        value = point.value
        step = point.step(point.gradient, 0.1 * close * (1.0 + abs(value)))
        if step is None:
            return w, False
        decrement, size = float(np.sum(point.gradient * step)), 1.0
        least = value - 1e-13 * (1.0 + abs(value))  # less is rounding
        point = objective.evaluate(w + step)
        while not point.value >= least and size > 1e-10:
            size *= 0.5
            point = objective.evaluate(w + size * step)
        if not point.value >= least:
            return w, decrement < 1e-8 + 1e-13 * abs(value)
        w, point = w + size * step, point._replace(value=max(point.value, value))
        # Where classes are separated the way ahead is long, however little is gained.
        short = bool(np.abs(step).max() <= 1e-3 * (1.0 + np.abs(w).max()))
        if decrement <= (close if short else PRECISE) * (1.0 + abs(point.value)):
            return w, short
        if np.abs(w).max() > FARTHEST:
            break
    return w, False
