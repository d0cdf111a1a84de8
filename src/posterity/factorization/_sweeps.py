"""Variational sweeps of a factorization machine: one side's levels given all others.

Given the other sides, the weights theta = [w, v] of one level are a linear regression of what the
others leave, on the features f = x [1, sum of the others' x v]. The others are uncertain, so
E[f f'] and E[f e] take the place of f f' and f e (Raiko, Ilin & Karhunen 2007, for two sides).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from posterity.aliases import Array, Indices

Codes = Indices

# What learning changes in place.
COPIED = (
    "means", "covariances", "precisions", "products", "prior_means", "prior_precisions", "bounds"
)  # fmt: skip


@dataclass
class LevelWeights:
    """Posterior of the weights of all levels of all sides, in units of the target's spread.

    Parameters
    ----------
    means, covariances
        For each side (L, p) and (L, p, p), p = 1 + rank: of [w, v], Normal.
    precisions, products
        For each side (L, p, p) and (L, p), sums of E f f' and of E f e over the rows of each level.
    prior_means, prior_precisions
        (S, p), of the levels of each side.
    offset, offset_variance
        The intercept.
    """

    means: list[Array]
    covariances: list[Array]
    precisions: list[Array]
    products: list[Array]
    prior_means: Array
    prior_precisions: Array
    offset: float
    offset_variance: float

    @property
    def rank(self) -> int:
        """Number of factors."""
        return self.prior_means.shape[1] - 1

    @property
    def sizes(self) -> list[int]:
        """Number of levels of each side."""
        return [len(one) for one in self.means]

    def copy(self) -> Self:
        """A copy with weights of its own."""
        own = {name: deepcopy(value) for name, value in vars(self).items() if name in COPIED}
        return replace(self, **own)


@dataclass(frozen=True)
class SideRows:
    """Rows sorted by the level of one side, and how often its levels meet those of the others."""

    side: int
    levels: Codes
    starts: Codes
    codes: Codes
    values: Array
    y: Array
    weights: Array
    squared_products: dict[int, csr_array]
    cross_products: dict[int, csr_array]

    @classmethod
    def of(
        cls,
        side: int,
        codes: Codes,
        values: Array,
        y: Array,
        sizes: list[int],
        weights: Array | None = None,
    ) -> SideRows:
        """Sort rows: codes and values (n, S), y and weights (n,); ``sizes`` count the levels."""
        order = np.argsort(codes[:, side], kind="stable")
        codes, values = codes[order], values[order]
        weights = np.ones(len(y)) if weights is None else weights[order]
        sorted_codes = codes[:, side]
        starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
        levels = sorted_codes[starts]
        ends = np.append(starts[1:], len(y))
        row = np.repeat(np.arange(len(levels)), ends - starts)
        own, squared_products, cross_products = values[:, side], {}, {}
        for other in set(range(len(sizes))) - {side}:
            shape, places = (len(levels), sizes[other]), (row, codes[:, other])
            square = weights * values[:, other] ** 2
            squared_products[other] = csr_array((own**2 * square, places), shape=shape)
            cross_products[other] = csr_array((own * square, places), shape=shape)
        return cls(
            side, levels, starts, codes, values, y[order], weights, squared_products, cross_products
        )

    def sum_by_level(self, rows: Array) -> Array:
        """Sums over the rows (n,) of each level."""
        return np.add.reduceat(rows, self.starts)

    def compute_effects(self, sides: LevelWeights) -> dict[int, Array]:
        """x [w, v] of the other sides' levels in each row, (p, n), means."""
        return {
            other: np.ascontiguousarray(sides.means[other][self.codes[:, other]].T)
            * self.values[:, other]
            for other in self.squared_products
        }


def sum_second_moments(rows: SideRows, features: Array) -> Array:
    """Weighted sums of f f' over the rows of each level, (L, p, p), for features (p, n)."""
    p = len(features)
    sums = np.empty((p, p, len(rows.levels)))
    for i in range(p):
        for j in range(i + 1):
            sums[i, j] = sums[j, i] = rows.sum_by_level(rows.weights * features[i] * features[j])
    return np.ascontiguousarray(sums.transpose(2, 0, 1))


def make_features(rows: SideRows, effects: dict[int, Array], p: int) -> Array:
    """(p, n) means of f = x [1, sum of the others' x v]."""
    features = np.zeros((p, len(rows.y)))
    features[0] = 1.0
    for effect in effects.values():
        features[1:] += effect[1:]
    return features * rows.values[:, rows.side]


def compute_partial_residuals(rows: SideRows, effects: dict[int, Array], offset: float) -> Array:
    """(n,) means of the target less all that this side has no part in."""
    rest = rows.y - offset
    seen: list[Array] = []
    for effect in effects.values():
        rest = rest - effect[0]
        for earlier in seen:
            rest -= np.einsum("kn,kn->n", earlier[1:], effect[1:])
        seen.append(effect)
    return rest


def sum_covariances(rows: SideRows, sides: LevelWeights) -> Array:
    """Sum x^2 Cov of the others' v over rows, (L, k, k): the part of f f' beyond its means."""
    k = sides.rank
    total = np.zeros((len(rows.levels), k * k))
    for other, met in rows.squared_products.items():
        spread = np.ascontiguousarray(sides.covariances[other][:, 1:, 1:])
        total += met @ spread.reshape(len(spread), k * k)
    return total.reshape(len(rows.levels), k, k)


def sum_cross_covariances(rows: SideRows, sides: LevelWeights, effects: dict[int, Array]) -> Array:
    """Sum Cov(f, residual from the others) over rows, (L, k): they share the others' errors."""
    total = np.zeros((len(rows.levels), sides.rank))
    for other, met in rows.cross_products.items():
        covariance = sides.covariances[other]
        total -= met @ np.ascontiguousarray(covariance[:, 1:, 0])
        third = [effect[1:] for each, effect in effects.items() if each != other]
        if not third:
            continue
        partners = np.sum(third, axis=0)
        weights = rows.weights * rows.values[:, rows.side] * rows.values[:, other] ** 2
        for factor in range(sides.rank):
            column = covariance[:, 1 + factor, 1:][rows.codes[:, other]]
            product = np.einsum("nk,kn->n", column, partners)
            total[:, factor] -= rows.sum_by_level(weights * product)
    return total


def sum_moments(rows: SideRows, sides: LevelWeights) -> tuple[Array, Array]:
    """Sums over the rows of each level: E f E f' (L, p, p), and the covariance of v's (L, k, k)."""
    features = make_features(rows, rows.compute_effects(sides), sides.rank + 1)
    return sum_second_moments(rows, features), sum_covariances(rows, sides)


def sum_statistics(rows: SideRows, sides: LevelWeights, moments: tuple[Array, Array]) -> None:
    """Sums of E f f' and E f e over the rows of each level, given all other sides."""
    effects = rows.compute_effects(sides)
    features = make_features(rows, effects, sides.rank + 1)
    target = rows.weights * compute_partial_residuals(rows, effects, sides.offset)
    total = moments[0].copy()
    total[:, 1:, 1:] += moments[1]
    with_target = np.stack([rows.sum_by_level(one * target) for one in features], axis=1)
    with_target[:, 1:] += sum_cross_covariances(rows, sides, effects)
    sides.precisions[rows.side][rows.levels] = total
    sides.products[rows.side][rows.levels] = with_target


def update_levels(
    rows: SideRows, sides: LevelWeights, noise_precision: float, moments: tuple[Array, Array]
) -> None:
    """The best Normal of each level's weights, given all other sides, their prior and the noise."""
    sum_statistics(rows, sides, moments)
    side, levels = rows.side, rows.levels
    prior = sides.prior_precisions[side]
    precision = noise_precision * sides.precisions[side][levels] + np.diag(prior)
    right = noise_precision * sides.products[side][levels] + prior * sides.prior_means[side]
    covariance = np.linalg.inv(precision)
    covariance = 0.5 * (covariance + covariance.transpose(0, 2, 1))
    sides.covariances[side][levels] = covariance
    sides.means[side][levels] = np.linalg.solve(precision, right[:, :, None])[:, :, 0]


def compute_errors(rows: SideRows, sides: LevelWeights) -> Array:
    """(n,) targets less their means, in the order of ``rows``."""
    effects = rows.compute_effects(sides)
    features = make_features(rows, effects, sides.rank + 1)
    own = sides.means[rows.side][rows.codes[:, rows.side]]
    return compute_partial_residuals(rows, effects, sides.offset) - np.einsum(
        "pn,np->n", features, own
    )


def sum_variances(
    sorted_rows: list[SideRows], moments: list[tuple[Array, Array]], sides: LevelWeights
) -> float:
    """Sum over rows of the variance that :func:`compute_moments` says, the offset's aside."""
    total = 0.0
    for rows, (first, second) in zip(sorted_rows, moments, strict=True):
        covariance = sides.covariances[rows.side][rows.levels]
        total += float(np.vdot(covariance, first))
        total += 0.5 * float(np.vdot(covariance[:, 1:, 1:], second))
    return total


def compute_moments(codes: Codes, values: Array, sides: LevelWeights) -> tuple[Array, Array]:
    """Mean and variance, noise aside, at rows (n, S); code -1 is a level that was never seen.

    Deviations of different sides are independent, so the variance is that of the terms linear in
    one side's deviation plus that of the products of two.
    """
    tables = [append_prior(sides, side) for side in range(codes.shape[1])]
    mean = np.empty(len(codes))
    variance = np.empty(len(codes))
    block = max(1, 200_000 // (sides.rank + 1) ** 2)
    for start in range(0, len(codes), block):
        part = slice(start, start + block)
        mean[part], variance[part] = _moments_of_block(codes[part], values[part], tables, sides)
    return mean, variance


def append_prior(sides: LevelWeights, side: int) -> tuple[Array, Array]:
    """Means and covariances of a side's levels, with the prior as the last: that of code -1."""
    covariance = np.diag(1.0 / sides.prior_precisions[side])
    return (
        np.concatenate([sides.means[side], sides.prior_means[side][None]]),
        np.concatenate([sides.covariances[side], covariance[None]]),
    )


def _moments_of_block(
    codes: Codes, values: Array, tables: list[tuple[Array, Array]], sides: LevelWeights
) -> tuple[Array, Array]:
    effects = [table[codes[:, s]] * values[:, s, None] for s, (table, _) in enumerate(tables)]
    spreads = [
        table[codes[:, s]] * values[:, s, None, None] ** 2 for s, (_, table) in enumerate(tables)
    ]
    mean, variance = np.full(len(codes), sides.offset), np.full(len(codes), sides.offset_variance)
    for s, effect in enumerate(effects):
        mean += effect[:, 0]
        slope = np.ones((len(codes), sides.rank + 1))
        slope[:, 1:] = sum((one[:, 1:] for t, one in enumerate(effects) if t != s), start=0.0)
        variance += np.einsum("ni,nij,nj->n", slope, spreads[s], slope, optimize=True)
        for t in range(s):
            mean += np.einsum("nk,nk->n", effect[:, 1:], effects[t][:, 1:])
            variance += np.einsum("nij,nij->n", spreads[s][:, 1:, 1:], spreads[t][:, 1:, 1:])
    return mean, variance
