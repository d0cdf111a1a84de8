"""Unlearning rows together, where unlearning one after another would lose precision.

A direction that only these rows knew is gone with them. Hyperbolic rotations then divide rounding
by rounding; here the factor itself shows whether all of a direction goes.
"""

from __future__ import annotations

import numpy as np

from posterity import kernel
from posterity.aliases import Array

# Rows with more of a direction than there is, by this share, were never learned; a share below the
# second is zero. Both are far beyond rounding, unless features are collinear to ten digits.
EXCESS_TOLERANCE = 1e-6
ZERO_TOLERANCE = 1e-10
# Of the length of a target so much must be left, for four digits of a deviation, or nothing.
LEAST_LEFT, ZERO_LEFT, LARGEST_ALONE = 1e-6, 1e-13, 1e12
# For rows that are nearly those learned: where less than this share of a direction is left, the
# mean moves by at most this many of its standard deviations; and columns below this share of their
# length are zero.
SMALL_SHARE, MOST_MOVED = 0.1, 3.0
LEAST_COLUMN = 1e-4


def loses_targets(before: Array, after: Array, n_targets: int) -> bool:
    """True if what is left (q, ld) of some target has too few digits.

    Removing subtracts squares, and the rounding of the removed ones stays. What is left and no more
    than rounding is believed to be 0, as where all other rewards are 0, unless it was too large.

    Examples
    --------
    >>> before, after = np.diag([1.0, 1e9]), np.diag([1.0, 1.0])
    >>> loses_targets(before, after, 1), loses_targets(after, after, 1)
    (True, False)
    """
    q = len(before)
    size, left = (np.linalg.norm(T[:, :q], axis=0) for T in (before, after))
    lost, p = left < LEAST_LEFT * size, q - n_targets
    if (lost & (left > ZERO_TOLERANCE * size))[:p].any():
        return False  # a row of large features: another warning is for that
    is_zero = (left <= ZERO_LEFT * size) & (size <= LARGEST_ALONE)
    return bool((lost & ~is_zero)[p:].any())


def remove_rows(
    triangle: Array, n_targets: int, rows: Array, stay: Array | None = None
) -> tuple[Array, float] | None:
    """The triangle (q, ld) without ``rows`` (n, q), and the smallest cosine; None if impossible.

    With F the rows of the triangle that hold something, rows = G F for rows that were learned,
    and what is left is F'(I - G'G)F: of the singular values of G none is above 1, and those that
    are 1 are the directions that only these rows knew (the cosine is 0). There ``stay`` (k, q) is
    left, if given: rows of the triangle, those of a prior, that are not taken out.

    Examples
    --------
    >>> triangle = kernel.empty_triangle(2)
    >>> rows = np.array([[1.0, 2.0]])
    >>> kernel.append_block(triangle, 1, rows[:, :1].copy(), rows[:, 1:].copy(), None, False)
    >>> remove_rows(triangle, 1, rows)[0][:, :2]
    array([[0., 0.],
           [0., 0.]])
    >>> remove_rows(triangle, 1, 2.0 * rows) is None
    True
    """
    q = len(triangle)
    size = np.linalg.norm(triangle[:, :q], axis=0)
    held = np.flatnonzero(np.diag(triangle))
    G = express_in_factor(triangle, rows, size)
    if G is None:
        return None
    _, cosines, turned = np.linalg.svd(G, full_matrices=True)
    if cosines.max(initial=0.0) > 1.0 + EXCESS_TOLERANCE:
        return None
    left = np.ones(len(held))
    left[: len(cosines)] = (1.0 - cosines) * (1.0 + cosines)
    left[left < ZERO_TOLERANCE] = 0.0
    kept = left > 0.0
    rest = np.sqrt(left[kept])[:, None] * turned[kept]
    its = None if stay is None else express_in_factor(triangle, stay, size)
    if its is not None:
        rest = np.vstack([rest, its @ turned[~kept].T @ turned[~kept]])
    fresh = _triangulate(rest @ triangle[held, :q], n_targets, size, clean=its is None)
    return fresh, float(np.sqrt(left.min(initial=1.0)))


def remove_uncertain_rows(
    triangle: Array, rows: Array, rounding: float, *, exact: bool
) -> Array | None:
    """The triangle (q, ld) of one target without ``rows`` (n, q), which may say more than it does.

    With F = [R z], rows' features are G R, and G = U C V'. Of the orthonormal directions V a share
    c^2 goes, and with it what the rows say of their target there, which, unless it is ``exact``,
    is bounded where little stays; where c >= 1 - ``rounding`` all of it goes. None if the rows'
    features are no G R.
    """
    q = len(triangle)
    p = q - 1
    size = np.linalg.norm(triangle[:, :q], axis=0)
    root = triangle.copy()
    root[:, p] = 0.0
    G = express_in_factor(root, np.column_stack([rows[:, :p], np.zeros(len(rows))]), size)
    if G is None:
        return None
    held = np.flatnonzero(np.diag(root))
    U, cosines, turned = np.linalg.svd(G, full_matrices=True)
    cosine, target = np.zeros(len(held)), np.zeros(len(held))
    cosine[: len(cosines)] = cosines
    target[: len(cosines)] = (U.T @ rows[:, p])[: len(cosines)]
    kept = cosine < 1.0 - rounding
    cosine, lost = cosine[kept], float(np.sum(np.square(target[~kept])))
    left = np.sqrt((1.0 - cosine) * (1.0 + cosine))
    rest = turned[kept] @ triangle[held, :q]
    moments = rest[:, p].copy()
    # The mean's move, in standard deviations of what is left.
    moved = cosine * (cosine * moments - target[kept]) / left
    rest *= left[:, None]
    bounded = np.zeros_like(left, dtype=bool) if exact else np.square(left) < SMALL_SHARE
    rest[:, p] += np.where(bounded, np.clip(moved, -MOST_MOVED, MOST_MOVED), moved)
    gone = float(np.sum(np.square(moments)) - np.sum(np.square(rest[:, p])))
    gone -= float(np.sum(np.square(rows[:, p]))) - lost
    rest[:, :p][:, np.linalg.norm(rest[:, :p], axis=0) <= LEAST_COLUMN * size[:p]] = 0.0
    size = np.append(size[:p], 0.0)  # of the targets every digit counts
    fresh = _triangulate(rest, 1, size, clean=True)
    fresh[p, p] = np.sqrt(max(float(triangle[p, p]) ** 2 + gone, 0.0))
    return fresh


def express_in_factor(triangle: Array, rows: Array, size: Array | None = None) -> Array | None:
    """Return G (n, r) with rows = G F, F the r nonzero rows; None if there is no such G."""
    q = len(triangle)
    size = np.linalg.norm(triangle[:, :q], axis=0) if size is None else size
    held = np.flatnonzero(np.diag(triangle))
    unit = np.where(size > 0.0, size, 1.0)
    scaled, wanted = (triangle[held, :q] / unit).T, (rows / unit).T
    G = np.linalg.lstsq(scaled, wanted, rcond=None)[0] if len(held) else np.zeros((0, len(rows)))
    off = np.abs(scaled @ G - wanted)
    return None if (off > EXCESS_TOLERANCE).any() else np.asarray(G.T)


def find_first_impossible(triangle: Array, rows: Array) -> int | None:
    """The first row that can't have been learned, whatever the others are; None: each can."""
    for i in range(len(rows)):
        G = express_in_factor(triangle, rows[i : i + 1])
        if G is None or np.linalg.norm(G) > 1.0 + EXCESS_TOLERANCE:
            return i
    return None


def _triangulate(rows: Array, n_targets: int, size: Array, *, clean: bool) -> Array:
    """Rows rotated to a triangle; a direction of which rounding alone is left is not known."""
    triangle = kernel.empty_triangle(len(size))
    if clean:  # what is left of a column is nothing against what it was
        rows[:, np.linalg.norm(rows, axis=0) <= ZERO_TOLERANCE * size] = 0.0
    _append(triangle, n_targets, rows)
    for j in range(len(size) if clean else 0):
        if 0.0 < abs(triangle[j, j]) <= ZERO_TOLERANCE * size[j]:
            row = triangle[j : j + 1, : len(size)].copy()
            row[0, j], triangle[j] = 0.0, 0.0
            _append(triangle, n_targets, row)
    return triangle


def _append(triangle: Array, n_targets: int, rows: Array) -> None:
    p = len(triangle) - n_targets
    X, Y = np.ascontiguousarray(rows[:, :p]), np.ascontiguousarray(rows[:, p:])
    kernel.append_block(triangle, n_targets, X, Y, None, False)
