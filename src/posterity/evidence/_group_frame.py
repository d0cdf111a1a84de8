"""Coordinates in which the prior of groups is learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posterity.aliases import Array, Mask
from posterity.distributions.triangles import solve_triangle
from posterity.evidence.columns import PINNING_PRECISION
from posterity.evidence.groups import EtaScale, GroupSample
from posterity.factor import Factor
from posterity.noise import KnownNoise, Noise

# Noise variance where the rows show none, relative to the variance of y.
LEAST_NOISE = 1e-20
# Variances of eta under a likelihood: the largest expected over groups, and of their mean.
LARGEST_VARIANCE, MEAN_VARIANCE = 4.0, 25.0
# A feature with a variance below this share of its mean square is constant.
CONSTANT = 1e-20


@dataclass(frozen=True)
class Frame:
    """Coordinates u = U w in which the mean of x x' is I: results do not depend on features' units.

    ``root`` is U over the linearly ``independent`` columns. A residual below ``least`` is none.
    ``mean_rows`` (d, p + 1) are the prior of the means, rows and targets: none where it is flat.
    """

    independent: Mask
    root: Array
    rows: Array
    sample: GroupSample
    scale: float
    is_informative: bool
    mean_rows: Array
    least: float = 1e-300

    @classmethod
    def of(
        cls, sample: GroupSample, noise: Noise, *, intercept: bool, eta: EtaScale | None = None
    ) -> Frame:
        """The coordinates of a sample."""
        g, p, _ = sample.rows.shape
        pooled = Factor(p)
        stacked = sample.rows.reshape(g * p, p + 1)
        pooled.append(stacked[:, :p], np.ascontiguousarray(stacked[:, p:]))
        kept = pooled.determined
        root = pooled.root[np.ix_(kept, kept)] / np.sqrt(max(sample.count, 1e-300))
        if eta is not None:
            own = triangulate(eta.root[:, kept])
            if (np.diag(own) > CONSTANT**0.5 * np.sqrt(np.sum(own**2, axis=0))).all():
                root = own
        # Group by group, here and below: many small products, for which BLAS starts no threads.
        filled = _drop_empty_rows(sample.rows)
        within = filled[:, :, :p][:, :, kept] @ np.linalg.inv(root)
        rows = np.concatenate([within, filled[:, :, p:]], axis=2)
        residual = float(pooled.residual()[0, 0]) + sample.residual
        around = pooled.moments[int(intercept) :, 0]
        total = float(around @ around) + residual
        scale, is_informative = _compute_signal(sample, noise, total, residual, int(kept.sum()))
        if eta is not None and is_informative:
            scale = LARGEST_VARIANCE
        own = _make_mean_rows(np.eye(len(root)), root, kept, eta)
        least = max(LEAST_NOISE * total, 1e-300)
        rows = np.ascontiguousarray(rows)
        return cls(kept, root, rows, sample, scale, is_informative, own, least)

    @classmethod
    def identity(cls, sample: GroupSample, eta: EtaScale | None) -> Frame:
        """The coefficients themselves."""
        p, all_ = sample.rows.shape[1], np.ones(sample.rows.shape[1], dtype=bool)
        root = np.eye(p) if eta is None else eta.root
        own = _make_mean_rows(root, root, all_, eta)
        return cls(all_, np.eye(p), _drop_empty_rows(sample.rows), sample, 1.0, True, own)

    @property
    def pins(self) -> Array:
        """(d, p) rows that hold at 0 the coefficients of columns that depend on others.

        None where there are other groups, whose columns may vary.
        """
        squares = np.sum(np.square(self.sample.rows[:, :, :-1]), axis=(0, 1))
        sizes = np.sqrt(np.where(squares > 0.0, PINNING_PRECISION * squares, PINNING_PRECISION))
        return np.asarray(np.diag(sizes)[~self.independent & self.sample.is_whole])

    @property
    def residual_df(self) -> float:
        """Rows beyond those that each group's own coefficients fit."""
        return self.sample.count - _count_ranks(self.sample)

    def to_whitened(self, coefficients: Array) -> Array:
        """Coefficients in these coordinates."""
        return self.root @ coefficients[self.independent]

    def from_whitened(self, coefficients: Array) -> Array:
        """Coefficients (p,) of the features, 0 where columns depend on others."""
        whole = np.zeros(len(self.independent))
        whole[self.independent] = solve_triangle(self.root, coefficients)
        return whole

    def expand_root(self, root: Array) -> Array:
        """A root (p, p) for the coefficients themselves, 0 where columns depend on others."""
        whole = np.zeros((len(self.independent),) * 2)
        whole[np.ix_(self.independent, self.independent)] = root @ self.root
        return whole


def _make_mean_rows(columns: Array, root: Array, kept: Mask, eta: EtaScale | None) -> Array:
    """The rows, in columns of a frame, of u ~ Normal(U centre, MEAN_VARIANCE / p)."""
    if eta is None:
        return np.zeros((0, len(columns) + 1))
    size = np.sqrt(len(columns) / MEAN_VARIANCE)
    return np.asarray(size * np.column_stack([columns, root @ eta.centre[kept]]))


def _drop_empty_rows(rows: Array) -> Array:
    """Drop rows of zeros from triangles (g, p, p + 1): most are, in groups of few rows."""
    filled = rows.any(axis=2)
    most = max(int(filled.sum(axis=1).max(initial=0)), 1)
    if most == rows.shape[1]:
        return rows
    places = np.argsort(~filled, axis=1, kind="stable")[:, :most]
    return np.ascontiguousarray(np.take_along_axis(rows, places[:, :, None], axis=1))


def _compute_signal(
    sample: GroupSample, noise: Noise, total: float, residual: float, rank: int
) -> tuple[float, bool]:
    """Variance of y relative to the noise's, at least 1, and whether the rows tell of any noise."""
    count = sample.count
    ranks = _count_ranks(sample)
    if total <= 0.0 or count <= 0.0:
        return 1.0, False
    known = isinstance(noise, KnownNoise)
    if count <= rank and not known:
        return 1.0, False
    if known:
        variance = 1.0 / noise.precision(count, residual)
    elif count - ranks >= 1.0:
        variance = sample.residual / (count - ranks)
    else:
        variance = residual / (count - rank)
    variance = max(variance, LEAST_NOISE * total / count)
    return max(total / (count * variance), 1.0), True


def _count_ranks(sample: GroupSample) -> float:
    """Sum of the ranks of all groups."""
    return float(np.count_nonzero(np.diagonal(sample.rows, axis1=1, axis2=2)))


def triangulate(matrix: Array) -> Array:
    """The upper triangular R >= 0 on its diagonal with R'R = matrix'matrix."""
    upper = np.asarray(np.linalg.qr(matrix, mode="r"))
    signs = np.where(np.diag(upper) < 0.0, -1.0, 1.0)
    return np.ascontiguousarray(signs[:, None] * upper)
