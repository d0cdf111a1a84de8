"""The prior effect of a feature that varies for the first time: that of other features like it.

Until it varies the data say nothing of a feature, not even its size, and its coefficient is held at
the prior's mean. A row in which it moves (a category that is new) is predicted with the variance
that such a move has had so far. Features like it are those with the same two values, as far as
their first two moments tell: E[(x - c)(x - c - d)] = 0 for a constant c and a move d. Their
coefficients are taken to be alike, w ~ N(0, sigma^2 / their mean precision). Where none is like it
the move is taken to be as large, for its kind, as that of the average feature.

Of columns that are the levels of one category each row had one 1. A row without any of them has a
level that is new: those like it are the levels of that category, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri, stdtrit

from posterity.aliases import Array, Indices, Mask
from posterity.evidence import RunningScales
from posterity.factor import Factor
from posterity.factor.dummies import find_sums_to_one
from posterity.posteriors._nodes import Nodes
from posterity.posteriors._turns import ConstantFeatures, have_moved

# Two values, or sizes of moves, that differ by less, relatively, are equal but for rounding.
RELATIVE_ROUNDING = 1e-6
# Largest squared effect, in noise variances, where other features give no estimate.
LARGEST_EFFECT = 1e4


@dataclass(frozen=True)
class FirstVariations:
    """Entries at which features vary that were constant before: k places (row, column) of n rows.

    ``steps`` (k,) are the moves, with their sign, and ``variances`` (K, k) what each adds to the
    variance of its row under each of K nodes, in units of the noise's.
    """

    rows: Indices
    columns: Indices
    steps: Array
    variances: Array

    def add_variances(self, n: int) -> Array:
        """(K, n) variance that features which never varied before add to each row."""
        added = np.zeros((len(self.variances), n))
        np.add.at(added.T, self.rows, self.variances.T)
        return added

    def scaled(self, rows: Array) -> FirstVariations:
        """The same for rows each of which is multiplied by a number (n,)."""
        factor = np.square(rows[self.rows])
        return FirstVariations(self.rows, self.columns, self.steps, self.variances * factor)

    def effects(self, units: Array, shape: tuple[int, int]) -> Any:
        """Sparse (n, m) sd, signed, of the effects in rows of features that never varied.

        ``units`` (K,) are the nodes' noise variances, each times the node's weight.
        """
        sds = np.sign(self.steps) * np.sqrt(units @ self.variances)
        return csr_array((sds, (self.rows, self.columns)), shape=shape)


def find_first_variations(
    nodes: Nodes,
    data: Factor,
    scales: RunningScales | None,
    still: ConstantFeatures,
    X: Array,
) -> FirstVariations | None:
    """Find the entries at which constant features begin to vary; None if there are none."""
    pinned, intercept = nodes.choice.pinned, nodes.posteriors[0].intercept
    features, constants = still
    features, constants = features[pinned[features]], constants[pinned[features]]
    moves = have_moved(X[:, features], constants)
    if not moves.any():
        return None
    rows, columns = np.nonzero(moves)
    steps = X[rows, features[columns]] - constants[columns]
    means, whole = _moments(data, scales, intercept=intercept)
    means, whole = np.abs(means[~pinned]), whole[~pinned]
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.where(means > 0.0, whole / means, 0.0)  # the other value, if one is 0
    energies = _compute_mean_squares(nodes)
    usual = energies * (whole - np.square(means) if intercept else whole)
    lengths, which = np.unique(np.abs(steps), return_inverse=True)
    more, counts = (found[..., which] for found in _average_like(lengths, sizes, energies))
    if intercept:
        of_levels, n_levels = _average_levels(data, X[rows], pinned, energies)
        more = np.where(n_levels > 0, np.square(steps) * of_levels, more)
        counts = np.where(n_levels > 0, n_levels, counts)
    n_varied = usual.shape[1]
    others = usual.mean(axis=1) if n_varied else 1.0 / nodes.choice.ratios
    more = np.where(counts > 0, more, others[:, None])
    more *= _inflate_for_few_rows(np.where(counts > 0, counts, max(n_varied, 1)))
    return FirstVariations(rows, features[columns], steps, np.minimum(more, LARGEST_EFFECT))


def _average_levels(data: Factor, X: Array, pinned: Mask, energies: Array) -> tuple[Array, Indices]:
    """(K, k) mean squared effect of the levels that rows ``X`` (k, m) lack; and their number (k,).

    They are the levels of those categories of which a row has none.
    """
    sums, counts = np.zeros((len(energies), len(X))), np.zeros(len(X), dtype=np.intp)
    among = np.cumsum(~pinned) - 1
    for columns in find_sums_to_one(data.root):
        lacks = ~X[:, columns - 1].any(axis=1)
        sums[:, lacks] += energies[:, among[columns - 1]].sum(axis=1)[:, None]
        counts[lacks] += len(columns)
    return sums / np.maximum(counts, 1), counts


def _average_like(lengths: Array, sizes: Array, energies: Array) -> tuple[Array, Indices]:
    """(K, L) mean squared effect of features of about each length; and their number (L,)."""
    order = np.argsort(sizes)
    first = np.searchsorted(sizes[order], (1.0 - RELATIVE_ROUNDING) * lengths)
    last = np.searchsorted(sizes[order], (1.0 + RELATIVE_ROUNDING) * lengths, side="right")
    ordered = np.pad(energies[:, order], ((0, 0), (0, 1)))
    sums = np.add.reduceat(ordered, np.stack([first, last], axis=1).ravel(), axis=1)[:, ::2]
    return np.square(lengths) * sums / np.maximum(last - first, 1), last - first


def _compute_mean_squares(nodes: Nodes) -> Array:
    """(K, m) mean squares of the coefficients that vary, about the prior's mean, per noise's."""
    energies, vary = [], ~nodes.choice.pinned
    for node, precision in zip(nodes.posteriors, nodes.choice.precisions, strict=True):
        first = int(node.intercept)
        off = node.coefficients()[first:] - node.belief.means(node.n_features)
        spread = node.factor.predict(np.eye(node.n_coefficients))[1][first:]
        with np.errstate(invalid="ignore"):  # without noise nothing is off, and 0 times infinity
            found = np.square(off) * node.noise_precision + spread
        energies.append(np.where(np.isfinite(found), found, 1.0 / precision)[vary])
    return np.array(energies)


def _inflate_for_few_rows(n: Indices) -> Array:
    """Return the squared ratio of the 95% points of Student's t, with n - 1 df, and a normal."""
    return np.asarray(np.square(stdtrit(np.maximum(n - 1, 1), 0.975) / ndtri(0.975)))


def _moments(data: Factor, scales: RunningScales | None, *, intercept: bool) -> tuple[Array, Array]:
    """Mean and mean square (m,) of each feature; without an intercept the mean is not known."""
    if scales is not None:
        whole = np.square(scales.mean) + scales.squares / max(scales.count, 1e-300)
        return scales.mean, whole
    root, offset = data.root, int(intercept)
    whole = np.square(root[:, offset:]).sum(axis=0) / max(data.count, 1e-300)
    return root[0, 1:] / root[0, 0] if intercept else np.zeros(len(whole)), whole
