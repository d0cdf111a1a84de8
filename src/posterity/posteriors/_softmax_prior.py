"""The prior of contrasts between classes, and how it is learned from the evidence."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.linalg import block_diag

from posterity.aliases import Array, Mask

# What is believed of an intercept before any row, where rows come online: nearly nothing, and
# proper, so that one label can be learned from.
VAGUE_PRECISION = 0.01
LEAST_LEFT = 1e-100  # of a prior that fades
MOST_MOVES = 12
# Of the square of its mean: a variance below is the rounding of the mean.
VARIED = 1e-26
# Of the mean: how near the mean of the squares is to it where all values are 0 or 1.
BINARY = 1e-9


@dataclass
class ContrastPrior:
    """Precision of the coefficients of all contrasts.

    Parameters
    ----------
    root
        (p, p) upper or diagonal, of each contrast, or (R, p, p) one for each; the precision is
        root'root, with the intercept's in front: of the linear predictor at the center of the rows.
    intercept
        Whether the first column is one.
    scale
        What multiplies the mean squares of the features; learned.
    count, center, squares
        Weight, mean (p,) and sum of squares about it (p,) of the rows seen.
    flat
        (m,) True where the prior of a feature is flat: while rows come online, its root is that of
        nearly nothing.
    left
        What is left of the precision, where it fades with the rows.
    """

    root: Array
    intercept: bool
    scale: float
    count: float
    center: Array
    squares: Array
    flat: Mask
    left: float = 1.0

    @classmethod
    def of(cls, root: Array, *, intercept: bool) -> ContrastPrior:
        """From the root (m, m) of the features' precision."""
        offset = int(intercept)
        p = len(root) + offset
        whole = np.zeros((p, p))
        whole[offset:, offset:] = root
        if intercept:
            whole[0, 0] = np.sqrt(VAGUE_PRECISION)
        return cls(whole, intercept, 1.0, 0.0, np.zeros(p), np.zeros(p), np.diagonal(root) == 0.0)

    def copy(self) -> ContrastPrior:
        """An independent copy."""
        twin = copy.copy(self)
        twin.center, twin.squares = self.center.copy(), self.squares.copy()
        return twin

    def with_flat_intercept(self) -> ContrastPrior:
        """A copy with a flat prior of the intercept."""
        twin = self.copy()
        if self.intercept:
            twin.root = self.root.copy()
            twin.root[..., 0, :] = 0.0
        return twin

    def with_flat_features_closed(self) -> ContrastPrior:
        """A copy that believes nearly nothing, as of the intercept, where the prior is flat."""
        if not self.flat.any():
            return self
        twin, places = self.copy(), int(self.intercept) + np.flatnonzero(self.flat)
        twin.root = self.root.copy()
        twin.root[..., places, places] = np.sqrt(VAGUE_PRECISION * self.mean_squares()[places])
        return twin

    def faded(self, share: float) -> ContrastPrior:
        """A copy of which this share is left."""
        twin = self.copy()
        twin.left = max(share * self.left, LEAST_LEFT)
        return twin

    @property
    def whole(self) -> ContrastPrior:
        """The same of which nothing has faded."""
        return self if self.left == 1.0 else self.faded(1.0 / self.left)

    def with_centered_intercept(self) -> ContrastPrior:
        """A copy whose prior of the intercept is at the centre of the rows so far."""
        twin = self.copy()
        if self.intercept:
            twin.root = self.root.copy()
            twin.root[..., 0, 1:] = self.root[..., 0, :1] * self.center[1:]
        return twin

    def add_scales(self, X: Array, weights: Array) -> None:
        """Take rows (n, p) into account in the features' mean squares; of weights < 0 out of it."""
        count = float(np.sum(weights))
        if count != 0.0:
            center = weights @ X / count
            self._add(count, center, weights @ np.square(X - center))

    def merge(self, other: ContrastPrior) -> None:
        """Take the rows into account that another one saw."""
        if other.count > 0.0:
            self._add(other.count, other.center, other.squares)

    def _add(self, count: float, center: Array, squares: Array) -> None:
        total = self.count + count
        shift = center - self.center
        sums = self.squares + squares + np.square(shift) * self.count * count / total
        self.squares = np.maximum(sums, 0.0)
        self.center = self.center + shift * count / total
        self.count = total

    def scaled(self, scale: float) -> ContrastPrior:
        """The prior of this precision per mean square of the features."""
        twin = self.with_precisions((scale * self.mean_squares())[int(self.intercept) :][None])
        twin.scale = scale
        return twin

    def with_precisions(self, precisions: Array) -> ContrastPrior:
        """The prior of these precisions (R, m) of the features."""
        twin, offset = self.copy(), int(self.intercept)
        alike = bool((precisions == precisions[0]).all())
        precisions = precisions[:1] if alike else precisions
        twin.root = np.zeros((len(precisions), *self.root.shape[-2:]))
        places = np.arange(offset, twin.root.shape[1])
        twin.root[:, places, places] = np.sqrt(precisions)
        if self.intercept:
            twin.root[:, 0, 0] = self.root[..., 0, 0].ravel()[0]
        twin.root = twin.root[0] if alike else twin.root
        twin.left = 1.0
        return twin.with_centered_intercept()

    def times(self, factor: float) -> ContrastPrior:
        """The prior of so many times these precisions of the features."""
        twin = self.with_precisions(factor * np.atleast_2d(np.exp(self._log_precisions)))
        twin.scale = factor * self.scale
        return twin

    def change_from(self, other: ContrastPrior) -> float:
        """Largest change of the log of a precision."""
        return float(np.abs(self._log_precisions - other._log_precisions).max(initial=0.0))

    @property
    def _log_precisions(self) -> Array:
        """(m,) of the features, or (R, m) of those of each contrast."""
        diagonal = np.diagonal(self.root, axis1=-2, axis2=-1)[..., int(self.intercept) :]
        return np.asarray(2.0 * np.log(diagonal))

    def mean_squares(self) -> Array:
        """(p,) mean square of each column, about its mean with an intercept.

        Of a column that was 0 in all rows it is the mean of those of 0 and 1, the levels that it
        may be another of; 1 if there are none.
        """
        about = 0.0 if self.intercept else np.square(self.center)
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = self.squares / self.count
        shape = variance + about
        varied = shape > VARIED * np.square(self.center)
        # Of what has not varied yet but for rounding, the value itself tells the size.
        shape = np.where(varied, shape, np.square(self.center))
        off = np.abs(variance + np.square(self.center) - self.center)
        levels = varied & (variance > 0.0) & (off <= BINARY * self.center)
        usual = float(np.mean(shape[levels])) if levels.any() else 1.0
        return np.where(shape > 0.0, shape, usual)

    @property
    def proper(self) -> bool:
        """True if each feature's coefficient has a proper prior."""
        diagonal = np.diagonal(self.root, axis1=-2, axis2=-1)
        return bool(diagonal[..., int(self.intercept) :].all())

    def rows(self, places: range) -> Array:
        """Return the prior of the coefficients of some coordinates, as rows with targets 0."""
        root = np.sqrt(self.left) * self.root
        if root.ndim == 3:
            return np.asarray(block_diag(*root[places]))
        return np.asarray(np.kron(np.eye(len(places)), root), dtype=np.float64)

    def log_determinant_and_rank(self, places: range) -> tuple[float, int]:
        """Log determinant of the precision of some coordinates, and its rank."""
        roots = np.sqrt(self.left) * (self.root[places] if self.root.ndim == 3 else self.root[None])
        diagonal = np.abs(np.diagonal(np.linalg.qr(roots, mode="r"), axis1=1, axis2=2))
        proper, each = diagonal[diagonal > 0.0], len(places) // len(roots)
        return 2.0 * each * float(np.sum(np.log(proper))), each * len(proper)

    @property
    def given_root(self) -> Array:
        """(m, m), or (R, m, m), root of the features' precision before any row: 0 where flat."""
        inner, flat = slice(int(self.intercept), None), np.flatnonzero(self.flat)
        root = self.root[..., inner, inner].copy()
        root[..., flat, flat] = 0.0
        return root

    def precision(self) -> Array:
        """(m, m) precision of the features, (m,) where it is diagonal, (R, m) of each contrast."""
        root = self.given_root
        precision = root.swapaxes(-1, -2) @ root
        diagonal = np.diagonal(precision, axis1=-2, axis2=-1)
        if root.ndim == 3:
            return np.asarray(diagonal)
        return diagonal if np.array_equal(precision, np.diag(diagonal)) else precision


def find_maximum(function: Callable[[float], float], start: float, step: float) -> float:
    """The maximum of a unimodal function: by uphill steps, then a parabola through three points.

    Examples
    --------
    >>> find_maximum(lambda x: -((x - 3.3) ** 2), 0.0, 1.0)
    3.3
    """
    value = cache(lambda place: function(start + place * step))
    best = 0
    for _ in range(MOST_MOVES):
        last, best = best, max(best, best - 1, best + 1, key=value)
        if best == last:
            break
    below, here, above = value(best - 1), value(best), value(best + 1)
    bend = below - 2.0 * here + above
    moved = 0.5 * (below - above) / bend if bend < 0.0 else 0.0
    return start + (best + moved) * step
