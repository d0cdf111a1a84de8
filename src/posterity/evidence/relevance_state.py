"""The evidence of sets of strong features, many at once, read from the data's factor.

With A the standardised columns of the data's factor and z the target, in units of the noise, every
coefficient has the background's variance tau, and those of a set S the slab's, kappa, on top:

    C = I + tau A A' + kappa A_S A_S' ,    log p(y) = -1/2 log |C| - a_n log(b_0 + z'C^-1 z / 2) ,

with the noise integrated by formula (or known). Where the background is taken out first, with
C_0 = I + tau A A', what is left needs only the rows of H = A'C_0^-1 A that belong to S.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import betaln, log_expit

from posterity.aliases import Array, Indices
from posterity.noise import Noise

# Background: log of the signal variance of all features together, over the noise's. Slab: the log
# of that of one strong feature.
BACKGROUNDS = np.linspace(-14.0, 16.1, 44)
SLABS = np.linspace(-9.8, 16.1, 38)
# Each is the odds of a share of variance r ~ Beta(1/2, 1/2): a half-Cauchy on the sd.
EXPONENT = 0.5
# Smallest residual sum of squares, relative to the target's, beyond rounding.
SMALLEST_RESIDUAL = 1e-9
# Singular values below this share of the largest are rounding, as of repeated rows.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class FeatureSets:
    """K sets of features, each with a background and a slab.

    ``members`` (K, k) are the features of each set, in any order, -1 where it has fewer; the other
    two (K,) are places in ``BACKGROUNDS`` and ``SLABS``.
    """

    members: Indices
    background: Indices
    slab: Indices

    @cached_property
    def sizes(self) -> Indices:
        """(K,) number of members."""
        return np.asarray((self.members >= 0).sum(axis=1))

    def take(self, which: Indices) -> Self:
        """Return some of the sets, or some of them several times."""
        return type(self)(self.members[which], self.background[which], self.slab[which])


@dataclass(frozen=True, eq=False)
class SolvedSets:
    """Posteriors and values of K feature sets.

    ``value`` (K,) is the log evidence up to a constant, ``energy`` (K,) 2 b_n; the slab's part of
    the members has a ``mean`` (K, k) and a ``covariance`` (K, k, k) in units of the noise.
    """

    sets: FeatureSets
    value: Array
    energy: Array
    mean: Array
    covariance: Array

    def take(self, which: Indices) -> Self:
        """Return some of the sets, or some of them several times."""
        return type(self)(
            self.sets.take(which),
            self.value[which],
            self.energy[which],
            self.mean[which],
            self.covariance[which],
        )


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of any sets of ``m`` features.

    ``directions`` (r, m) is D V' of the singular value decomposition A = U D V', ``squares`` (r,)
    D^2, ``projections`` (r,) U'z; ``most`` the largest size of a set.
    """

    directions: Array
    squares: Array
    projections: Array
    residual: float
    residual_df: float
    known: float  # noise precision; 0 where it is learned
    shape: float  # a_n, where it is learned
    full_energy: float  # 2 b_n where coefficients explain all that they can
    most: int
    variances: Array  # (b,) tau at each of BACKGROUNDS
    left: Array  # (b, r) 1 / (1 + tau d^2)
    log_determinants: Array  # (b,) log |C_0|
    energies: Array  # (b,) 2 b_0 + z'C_0^-1 z
    lengths: Array  # (b, m) the diagonal of H
    products: Array  # (b, m) A'C_0^-1 z
    log_sizes: Array  # (most + 2,) prior of one set of this size

    @classmethod
    def of(
        cls,
        matrix: Array,
        target: Array,
        residual: float,
        residual_df: float,
        count: float,
        noise: Noise,
    ) -> Self:
        """Decompose standardised columns ``matrix`` (r, m); ``target`` is (r,)."""
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        rank = max(int(np.count_nonzero(values > ROUNDING * values[0])), 1)
        left, values, right = left[:, :rank], values[:rank], right[:rank]
        directions, squares = values[:, None] * right, values * values
        projections = left.T @ target
        if len(target) > rank:
            residual += float(np.square(target - left @ projections).sum())
        signal = float(squares.sum()) / count
        variances = np.exp(BACKGROUNDS) / signal
        kept = 1.0 / (1.0 + variances[:, None] * squares)
        m = matrix.shape[1]
        # As many features as distinct rows fit any target: that is no evidence.
        most = m if rank == m < residual_df else max(min(int(residual_df + 1e-6), rank) - 1, 1)
        known, shape, rate = noise.parameters
        full_energy = 2.0 * rate + residual
        return cls(
            directions,
            squares,
            projections,
            residual,
            residual_df,
            known,
            shape + 0.5 * residual_df,
            full_energy,
            most,
            variances,
            kept,
            -np.log(kept).sum(axis=1),
            full_energy + kept @ np.square(projections),
            kept @ np.square(directions),
            (kept * projections) @ directions,
            _compute_log_size_prior(most, m),
        )

    @property
    def smallest_energy(self) -> float:
        """The smallest sum of squares that can be distinguished from 0."""
        total = self.residual + float(self.projections @ self.projections)
        return max(self.full_energy, SMALLEST_RESIDUAL * total)

    @property
    def null_energy(self) -> Array:
        """() 2 b_n where all coefficients are their prior mean."""
        return np.asarray(self.full_energy + self.projections @ self.projections)

    def noise_precision(self, energy: Array) -> Array:
        """Known, or a_n / b_n."""
        if self.known:
            return np.full_like(energy, self.known)
        return 2.0 * self.shape / energy

    def fit(self, energy: Array) -> Array:
        """Return the log evidence's term in ``energy``, which is twice the noise's rate."""
        if self.known:
            return -0.5 * self.known * energy
        return -self.shape * np.log(energy)

    def log_prior(self, sets: FeatureSets) -> Array:
        """(K,) log prior probability, up to a constant."""
        hyperpriors = compute_log_half_cauchy(BACKGROUNDS)[sets.background]
        return hyperpriors + compute_log_half_cauchy(SLABS)[sets.slab] + self.log_sizes[sets.sizes]

    def log_posterior(self, solved: SolvedSets) -> Array:
        """(K,) up to the same constant as ``value``."""
        return solved.value + self.log_prior(solved.sets)

    def solve(self, sets: FeatureSets) -> SolvedSets:
        """Evaluate, O(K k^2 (k + r))."""
        there = sets.members >= 0
        members = np.where(there, sets.members, 0)
        kept = self.left[sets.background]
        columns = self.directions.T[members] * there[:, :, None]
        precisions = np.exp(-SLABS[sets.slab])
        gram = (columns * kept[:, None, :]) @ columns.transpose(0, 2, 1)
        k = np.arange(members.shape[1])
        gram[:, k, k] += np.where(there, precisions[:, None], 1.0)
        covariance = np.linalg.inv(gram).astype(np.float64, copy=False)
        product = self.products[sets.background[:, None], members] * there
        mean = (covariance @ product[:, :, None])[:, :, 0]
        # Not by the members' explained squares: an almost perfect fit would leave no digits.
        left = self.projections - (mean[:, None, :] @ columns)[:, 0]
        energy = np.sum(kept * np.square(left), axis=1)
        energy += precisions * np.square(mean).sum(axis=1) + self.full_energy
        energy = np.maximum(energy, self.smallest_energy)
        log_determinant = self.log_determinants[sets.background] + np.linalg.slogdet(gram)[1]
        log_determinant += sets.sizes * SLABS[sets.slab]
        value = self.fit(energy) - 0.5 * log_determinant
        covariance = np.where(there[:, None, :], covariance, 0.0)
        return SolvedSets(sets, value, energy, mean, covariance)


def _compute_log_size_prior(most: int, m: int) -> Array:
    """(most + 2,) of one set of each size: the share of strong features is uniform."""
    sizes = np.arange(most + 2)
    log_sizes = betaln(1.0 + sizes, m + 1.0 - np.minimum(sizes, m))
    log_sizes[most + 1] = -np.inf
    return np.asarray(log_sizes)


def compute_log_half_cauchy(logs: Array) -> Array:
    """Log probabilities of the points of a grid in the log of a variance, over the noise's."""
    values = EXPONENT * (log_expit(logs) + log_expit(-logs))
    return values - np.log(np.exp(values).sum())
