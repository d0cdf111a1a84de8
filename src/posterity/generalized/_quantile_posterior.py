"""A posterior of a quantile: its covariance is adjusted to be valid whatever the noise is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import cholesky

from posterity.aliases import Array
from posterity.distributions import MultivariateNormal, Normal
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.triangles import solve_triangle
from posterity.generalized._asymmetric_laplace_noise import AsymmetricLaplaceNoise
from posterity.generalized._heavy_tails import HeavyTailedPosterior
from posterity.noise import JointOfOne
from posterity.posteriors import LinearPosterior
from posterity.posteriors.memory import Memory
from posterity.priors import GaussianPrior

# Most first rows of a stream that are kept.
MOST_START_ROWS = 4096


@dataclass(frozen=True)
class QuantilePosterior(HeavyTailedPosterior):
    """Beside the reweighted rows it learns the features' own, of which the adjustment is made.

    S = b^2 (R'R)^-1 is the covariance of the working posterior, D'D the information of the plain
    rows, X'X. Adjusted: q (1 - q) / b^2 S D'D S (Yang, Wang and He 2016, eq. 5).
    """

    likelihood: AsymmetricLaplaceNoise
    # A flat posterior of the plain rows, with targets 0, that forgets alike.
    design: LinearPosterior

    @classmethod
    def _make_from(cls, *parts: Any) -> Self:
        fresh: LinearPosterior = parts[0]
        flat = GaussianPrior(0.0, 0.0)
        design = LinearPosterior.before_data(
            flat, fresh.noise, fresh.n_features, intercept=fresh.intercept
        )
        make: Any = cls
        posterior: Self = make(*parts, design)
        return posterior

    def copy(self) -> Self:
        """An independent copy."""
        return super().copy()._copy_with(design=self.design.copy())

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        super().copy_from(other)
        self.design.copy_from(other.design)

    def with_memory(self, memory: Memory) -> Self:
        """The same that forgets, before it has seen anything."""
        return super().with_memory(memory)._copy_with(design=self.design.with_memory(memory))

    @property
    def _n_start(self) -> int:
        return min(math.ceil(super()._n_start / self._told_by_row), MOST_START_ROWS)

    @property
    def _told_by_row(self) -> float:
        # As many rows on the rarer side of the quantile as the median has.
        return 4.0 * self.likelihood.quantile * (1.0 - self.likelihood.quantile)

    @property
    def companions(self) -> Sequence[LinearPosterior]:
        """The plain rows' posterior."""
        return (self.design,)

    def fit(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows at once: their most probable fit. Nothing was learned before."""
        super().fit(X, y, weights, elapsed)
        self.design.append(X, np.zeros_like(y), weights, elapsed)

    def predict_then_learn(  # type: ignore[override]
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> RowDistribution:
        """Learn row after row; returns the distribution of each target before its row."""
        predictions = super().predict_then_learn(X, y, weights, elapsed)
        self.design.absorb(X, np.zeros_like(y), weights, elapsed)
        return predictions

    def merge(self, other: Self) -> None:
        """Learn all that ``other`` learned, with the weights that its rows have there."""
        super().merge(other)
        self.design.merge(other.design)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows of the start; refuse others."""
        gone = float(len(X)) if weights is None else float(np.sum(weights))
        if self.state.kept is None and self.has_fast_learn_one and gone < self.n_observations:
            raise ValueError(
                f"can't unlearn rows of a quantile model with more than {self._n_start} rows: "
                "their weights depend on all errors, which are not kept; fit the remaining rows "
                "again"
            )
        design = self.design.copy()
        design.remove(X, np.zeros_like(y), weights)
        super().remove(X, y, weights)  # which may begin the design anew, or learn it
        self.design.copy_from(design)

    def quantile_distribution(self, X: Array) -> Normal:
        """Posterior of the quantile at the rows of ``X``."""
        mean, leverage = self.relative(X)
        covariance = self._compute_adjusted_covariance()
        if covariance is None:
            scale = np.where(np.isinf(leverage), math.inf, self.scale * np.sqrt(leverage))
            return Normal(mean, np.where(np.isnan(scale), math.inf, scale))
        rows = np.column_stack([np.ones(len(X)), X]) if self.intercept else X
        return Normal(mean, np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows)))

    def joint(self, names: tuple[str, ...]) -> JointOfOne:
        """Joint posterior of [intercept, coefficients], adjusted where all of it is determined."""
        covariance = self._compute_adjusted_covariance()
        if covariance is None:
            return super().joint(names)
        # Scaled to a unit diagonal, so that coefficients of any size keep their digits.
        size = np.sqrt(np.diag(covariance))
        turned = (covariance / np.outer(size, size))[::-1, ::-1]
        try:
            upper = size[:, None] * cholesky(turned, lower=True)[::-1, ::-1]
        except np.linalg.LinAlgError:
            return super().joint(names)
        root = solve_triangle(upper, np.eye(len(size)))
        return MultivariateNormal(self.coefficients(), root, 1.0, names=names)

    def _compute_adjusted_covariance(self) -> Array | None:
        """(p, p) adjusted covariance; None while a direction, or the scale, is open.

        Or while the prior says much: of rows that are few for it, the scale's spread is known.
        What the prior P says is as it says: only what the rows say is adjusted, and S is made of
        both. So directions that no row tells have the prior's spread.
        """
        b, q = self.scale, self.likelihood.quantile
        joint = super().joint(("",) * self.n_coefficients)
        few = self.state.spread is not None
        if few or not (math.isfinite(b) and np.diag(joint.precision_root).all()):
            return None
        half = solve_triangle(joint.precision_root, np.eye(self.n_coefficients))
        # S / b^2 = half half' is relative, and so is P: b^2 (q (1 - q) M'M + N'N).
        spread = half @ half.T
        M, N = self.design.factor.root @ spread, self._relative_prior_root @ spread
        return np.asarray(b * b * (q * (1.0 - q) * (M.T @ M) + N.T @ N))
