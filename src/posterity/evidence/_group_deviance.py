"""The evidence of the covariance D of groups, with their means and the noise integrated.

The model and the formula are those of :mod:`posterity.evidence.shared`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posterity.aliases import Array, Mask
from posterity.evidence._covariance_prior import CovariancePrior
from posterity.evidence._covariance_search import DeviancePoint, search, search_from
from posterity.evidence._group_frame import Frame, triangulate
from posterity.evidence.groups import SharedPrior
from posterity.factor import Factor
from posterity.factor.grouped import GroupBank, whiten_groups
from posterity.factor.grouped_rows import GroupedRows
from posterity.noise import KnownNoise, Noise

# Strengths of the prior of D, in groups per coefficient, the strongest first.
STRENGTHS = (64.0, 8.0, 1.0)
# The tolerance at which these strengths are compared.
ROUGH = 0.03
# Largest increase of the log of an uncertain variance over groups.
MOST_SPREAD = 1.0


def find_covariance(
    frame: Frame,
    noise: Noise,
    mean: Array,
    free: Mask,
    tolerance: float,
    near: SharedPrior | None,
) -> DeviancePoint:
    """The best D under the prior of that strength for which the evidence is highest.

    From the most strict prior on, each from where the last one ended, until none is better. The
    least is worth one group, but only where groups have rows to spare that tell of the noise.
    """
    p = len(frame.root)
    known = None if near is None or p != len(near.root) else near.best_root
    # Where columns depended on others their part of the root is 0: then the search begins anew.
    if near is not None and near.strength and known is not None and np.diagonal(known).all():
        task = Deviance(frame, noise, mean, free, CovariancePrior(near.strength, frame.scale))
        return search_from(task, frame.root @ np.linalg.inv(known), tolerance)
    strengths = [each * p for each in STRENGTHS if p > 1]
    if p == 1 or frame.residual_df >= len(frame.rows):
        strengths.append(1.0)
    lower: Any = np.tril_indices(p)
    least = 0.1 * min(len(frame.rows) / frame.sample.count, 1.0)
    tasks = [
        Deviance(frame, noise, mean, free, CovariancePrior(strength, frame.scale))
        for strength in strengths
    ]
    best = search(tasks[0], p, least, frame.scale, ROUGH)
    chosen, lowest = tasks[0], best.value + best.compute_volume(lower)
    for task in tasks[1:]:
        point = search_from(task, best.root, ROUGH)
        deviance = point.value + point.compute_volume(lower)
        if deviance >= lowest:
            break
        chosen, best, lowest = task, point, deviance
    return search_from(chosen, best.root, tolerance)


def compute_expected_root(point: DeviancePoint) -> Array:
    """A root of the mean of D over what the groups leave open of it."""
    spread = point.compute_spread(np.tril_indices(len(point.root)))
    return np.asarray(point.root * np.exp(0.5 * np.minimum(spread, MOST_SPREAD)))


class MeansRegression:
    """The regression for the means, at one root of D^-1: [S, t; 0, r] and what it was made from."""

    def __init__(
        self,
        frame: Frame,
        mean: Array,
        free: Mask,
        root: Array,
        whitened: tuple[Array, Array] | None = None,
    ) -> None:
        white, log_determinants = whitened or whiten_groups(root, frame.rows)
        g, self.frame = len(white), frame
        self.W = white[:, :, :-1]
        of_means = self.W / frame.sample.stretch
        target = white[:, :, -1] - of_means[:, :, ~free] @ mean[~free]
        self.columns = np.ascontiguousarray(of_means[:, :, free])
        self.target = target
        self.free = free
        # Of fixed means the prior says nothing.
        self.own = frame.mean_rows[:, np.append(free, True)]
        self.factor = self._regress(self.columns, target)
        self.fixed = np.where(free, 0.0, mean)
        self.mean = self.fixed.copy()
        self.mean[free] = self.factor.coefficients()[:, 0]
        self.residual = float(self.factor.residual()[0, 0]) + frame.sample.residual
        diagonal = np.diag(root)
        own = 2.0 * float(np.sum(np.log(diagonal[diagonal > 0.0])))
        self.log_determinants = (
            g * own - float(np.sum(log_determinants)) - self.factor.log_determinant()
        )
        prior = self._regress(self.columns[:0], target[:0])
        self.n_flat = self.factor.rank - prior.rank
        self.log_determinants += prior.log_determinant()
        if self.n_flat:  # their density is 1 in units of w: U is triangular, free the first or all
            self.log_determinants -= 2.0 * float(np.sum(np.log(np.diag(frame.root)[free])))

    def without_each(self, groups: int) -> Array:
        """(groups + 1, f, f + 1) triangles [S, t] of the means: but for one group, and of all."""
        rows = np.concatenate([self.columns, self.target[:, :, None]], axis=2)
        left = np.repeat(rows[None], groups + 1, axis=0)
        left[range(groups), range(groups)] = 0.0
        own = np.repeat(self.own[None], groups + 1, axis=0)
        flat = left.reshape(groups + 1, -1, rows.shape[2])
        return triangulate_groups(np.concatenate([flat, own], axis=1)).rows()

    def _regress(self, columns: Array, target: Array) -> Factor:
        factor = Factor(columns.shape[-1])
        factor.append(columns.reshape(target.size, columns.shape[-1]), target.reshape(-1, 1))
        if len(self.own):
            factor.append(self.own[:, :-1].copy(), self.own[:, -1:].copy())
        return factor


@dataclass(frozen=True)
class Deviance:
    """-2 log posterior density as a function of a root L of D = L L'."""

    frame: Frame
    noise: Noise
    mean: Array
    free: Mask
    prior: CovariancePrior

    def value(self, root: Array) -> float:
        """Return -2 log evidence at a root, up to a constant."""
        return self._compute_value(root, self._compute_means(root))

    def evaluate(self, root: Array) -> DeviancePoint:
        """Return the deviance at a root, with its gradient and information.

        With M = W'W and a = W' e, e the residuals of the regression for m, K = (S'S)^-1 and c the
        noise precision, the slope by D is sum(M - M K M - c a a').
        """
        means, noise = self._compute_means(root), self.noise
        residual_df, residual = self._compute_noise(means)
        precision = noise.precision(residual_df, residual) if means.residual >= residual else 0.0
        error = means.target - means.columns @ means.mean[self.free]
        W = means.W @ root
        transposed = np.swapaxes(W, 1, 2)
        information = transposed @ W
        pull = (transposed @ error[:, :, None])[:, :, 0]
        spread = (transposed @ means.columns) @ _compute_inverse_root(means.factor)
        each = information - spread @ np.swapaxes(spread, 1, 2)
        slope = each.sum(axis=0) - precision * (pull.T @ pull)
        slope += self.prior.slope(root)
        learns = not isinstance(noise, KnownNoise)
        value = self._compute_value(root, means)
        return DeviancePoint(
            root, value, slope, each, residual_df if learns else np.inf, self.prior
        )

    def _compute_means(self, root: Array) -> MeansRegression:
        inverse = triangulate(np.asarray(np.linalg.inv(root)))
        return MeansRegression(self.frame, self.mean, self.free, inverse)

    def _compute_noise(self, means: MeansRegression) -> tuple[float, float]:
        """Return the residual degrees of freedom, and the residual sum of squares."""
        residual_df = self.frame.sample.count - means.n_flat
        return residual_df, max(means.residual, self.frame.least)

    def _compute_value(self, root: Array, means: MeansRegression) -> float:
        value = -2.0 * self.noise.log_evidence(*self._compute_noise(means), means.log_determinants)
        return value + self.prior.penalty(root)


def _compute_inverse_root(factor: Factor) -> Array:
    """(f, f) T with T T' the inverse of the information, 0 where there is none."""
    kept, f = factor.determined, factor.n_coefficients
    inverse = np.zeros((f, f))
    own = factor.root[np.ix_(kept, kept)]
    inverse[np.ix_(kept, kept)] = np.linalg.inv(own)
    return inverse


def triangulate_groups(rows: Array) -> GroupBank:
    """The triangles of rows (g, n, p + 1)."""
    groups, n, q = rows.shape
    bank = GroupBank(q - 1)
    bank.reserve(max(groups, 1))
    bank.grow(groups)
    flat, numbers = rows.reshape(groups * n, q), np.repeat(np.arange(groups, dtype=np.int32), n)
    X, y = np.ascontiguousarray(flat[:, :-1]), np.ascontiguousarray(flat[:, -1])
    bank.learn(GroupedRows(X, y, None, False, numbers, np.arange(groups)))
    return bank
