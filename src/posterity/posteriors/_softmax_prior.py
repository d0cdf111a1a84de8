"""The prior of contrasts between classes, and how its scale is learned from the evidence."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# What is believed of an intercept before any row, where rows come online: nearly nothing, and
# proper, so that one label can be learned from.
VAGUE_PRECISION = 0.01
# Log precisions per unit of the features' variance that are looked at, and what is believed of
# them. Log odds have a scale of their own: a feature that is one sd larger seldom changes odds by
# more than e^5 (Gelman et al. 2008, "A weakly informative default prior distribution for logistic
# and other regression models"), which one, and few rows of separated classes, would not say.
LOG_SCALES = np.arange(-20.0, 20.05, 0.1)
MOST_MOVES = 12


def log_belief(log_scale: Any) -> Any:
    """Log density of the prior's log scale, up to a constant: Normal(0, 2^2)."""
    return -0.5 * np.square(log_scale / 2.0)


@dataclass
class ContrastPrior:
    """Precision of the columns of one contrast; all contrasts have the same.

    Parameters
    ----------
    root
        (p, p) upper or diagonal; the precision is root'root, with the intercept's in front.
    intercept
        Whether the first column is one.
    scale
        What multiplies the mean squares of the features; learned.
    count, center, squares
        Weight, mean (p,) and sum of squares about it (p,) of the rows seen.
    """

    root: Array
    intercept: bool
    scale: float
    count: float
    center: Array
    squares: Array

    @classmethod
    def of(cls, root: Array, *, intercept: bool) -> ContrastPrior:
        """From the root (m, m) of the features' precision."""
        offset = int(intercept)
        p = len(root) + offset
        whole = np.zeros((p, p))
        whole[offset:, offset:] = root
        if intercept:
            whole[0, 0] = np.sqrt(VAGUE_PRECISION)
        return cls(whole, intercept, 1.0, 0.0, np.zeros(p), np.zeros(p))

    def copy(self) -> ContrastPrior:
        """The same, to go its own way."""
        twin = copy.copy(self)
        twin.center, twin.squares = self.center.copy(), self.squares.copy()
        return twin

    def with_flat_intercept(self) -> ContrastPrior:
        """The same, with nothing believed of the intercept."""
        twin = self.copy()
        if self.intercept:
            twin.root = self.root.copy()
            twin.root[0, 0] = 0.0
        return twin

    def saw(self, X: Array, weights: Array) -> None:
        """Take rows (n, p) into account in the features' mean squares."""
        count = float(np.sum(weights))
        if count == 0.0:
            return
        center = weights @ X / count
        squares = weights @ np.square(X - center)
        total = self.count + count
        shift = center - self.center
        self.squares += squares + np.square(shift) * self.count * count / total
        self.center += shift * count / total
        self.count = total

    def merge(self, other: ContrastPrior) -> None:
        """Take the rows into account that another one saw."""
        total = self.count + other.count
        if other.count > 0.0:
            shift = other.center - self.center
            self.squares += other.squares + np.square(shift) * self.count * other.count / total
            self.center += shift * other.count / total
            self.count = total

    def fade(self, discount: float) -> None:
        """Let the rows seen count for less."""
        self.count *= discount
        self.squares *= discount

    def scaled(self, scale: float) -> ContrastPrior:
        """The prior of this precision per mean square of the features."""
        twin = self.copy()
        twin.scale = scale
        twin.root = np.diag(np.sqrt(scale * self.shape()))
        if self.intercept:
            twin.root[0, 0] = self.root[0, 0]
        return twin

    def shape(self) -> Array:
        """(p,) mean square of each column, about its mean with an intercept; 1 where it is 0."""
        about = 0.0 if self.intercept else np.square(self.center)
        with np.errstate(invalid="ignore", divide="ignore"):
            shape = self.squares / self.count + about
        # Of what has not varied yet, the value itself tells the size.
        shape = np.where(shape > 0.0, shape, np.square(self.center))
        return np.where(shape > 0.0, shape, 1.0)

    @property
    def proper(self) -> bool:
        """Whether something is believed of each feature's coefficient."""
        return bool(np.diag(self.root)[int(self.intercept) :].all())

    def precision(self) -> Array:
        """(m, m) precision of the features, or (m,) where it is diagonal."""
        root = self.root[int(self.intercept) :, int(self.intercept) :]
        precision = root.T @ root
        diagonal = np.diag(precision)
        return diagonal if np.array_equal(precision, np.diag(diagonal)) else precision


def learned_scale(root: Array, moments: Array, shape: Array) -> float:
    """Precision per unit of ``shape``: the geometric mean of its posterior, on a grid.

    Parameters
    ----------
    root : (d, d) array
        Triangle of the data, with flat directions projected out.
    moments : (d, k) array
        Rotated targets: k contrasts that share the root.
    shape : (d,) array
        Relative precisions.

    Notes
    -----
    With singular values s_i of the root in units of the prior and rotated targets z_ij, the log
    evidence is, up to a constant and with r_i = a / (a + s_i^2),
    sum_i (k log r_i - r_i sum_j z_ij^2) / 2 (Bishop 2006, eq. 3.86, read in these directions).

    Examples
    --------
    >>> learned_scale(10.0 * np.eye(3), np.full((3, 1), 5.0), np.ones(3)) < 20.0
    True
    """
    left, singular, _ = np.linalg.svd(root / np.sqrt(shape))
    turned = np.sum(np.square(left.T @ moments), axis=1)
    shares = 1.0 / (1.0 + np.square(singular) * np.exp(-LOG_SCALES)[:, None])
    with np.errstate(divide="ignore"):
        logs = 0.5 * (moments.shape[1] * np.log(shares).sum(axis=1) - shares @ turned)
    logs += log_belief(LOG_SCALES)
    weights = np.exp(logs - logs.max())
    return float(np.exp(weights @ LOG_SCALES / weights.sum()))


def peak(function: Callable[[float], float], start: float, step: float) -> float:
    """Where a function of one hump is largest: uphill by steps, then a parabola through three.

    Examples
    --------
    >>> peak(lambda x: -((x - 3.3) ** 2), 0.0, 1.0)
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
