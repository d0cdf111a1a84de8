"""A reweighted posterior whose covariance is adjusted to be valid whatever the noise is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from posterity.distributions import MultivariateNormal, Normal
from posterity.generalized._asymmetric_laplace_noise import AsymmetricLaplaceNoise
from posterity.generalized._reweighted import ReweightedPosterior, Told
from posterity.noise import JointOfOne
from posterity.posteriors import LinearPosterior

Array = NDArray[np.float64]


class QuantilePosterior(ReweightedPosterior):
    """Beside the reweighted rows it learns the features' own, of which the adjustment is made.

    S = b^2 (R'R)^-1 is the covariance of the working posterior, D'D the information of the plain
    rows, X'X. Adjusted: q (1 - q) / b^2 S D'D S (Yang, Wang and He 2016, eq. 5).
    """

    design: LinearPosterior

    def begin(self, design: LinearPosterior) -> None:
        """Start with ``design``, a flat posterior that forgets alike and has seen nothing."""
        self.design = design

    def copy(self) -> QuantilePosterior:
        """The same knowledge, to go its own way."""
        twin = super().copy()
        assert isinstance(twin, QuantilePosterior)
        twin.design = self.design.copy()
        return twin

    def made(self, change: Callable[[LinearPosterior], LinearPosterior]) -> QuantilePosterior:
        """The same with ``change`` made to what it starts from, as a strategy that forgets does."""
        twin = super().made(change)
        assert isinstance(twin, QuantilePosterior)
        twin.begin(change(self.design))
        return twin

    @property
    def learns_lean(self) -> bool:
        """Whether nothing is forgotten."""
        return super().learns_lean and self.design.learns_lean

    @property
    def beside(self) -> Sequence[LinearPosterior]:
        """The plain rows' posterior."""
        return (self.design,)

    def settle(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows at once: their most probable fit. Nothing was learned before."""
        super().settle(X, y, weights, elapsed)
        self.design.append(X, np.zeros_like(y), weights, elapsed)

    def merge(self, other: ReweightedPosterior) -> None:
        """Learn all that ``other`` learned, with the weights that its rows have there."""
        assert isinstance(other, QuantilePosterior)
        super().merge(other)
        self.design.merge(other.design)

    def of_the_quantile(self, X: Array) -> Normal:
        """Posterior of the quantile at the rows of ``X``."""
        mean, leverage = self.relative(X)
        covariance = self._adjusted()
        if covariance is None:
            scale = np.where(np.isinf(leverage), math.inf, self.tally.scale * np.sqrt(leverage))
            return Normal(mean, np.where(np.isnan(scale), math.inf, scale))
        rows = np.column_stack([np.ones(len(X)), X]) if self.intercept else X
        return Normal(mean, np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows)))

    def joint(self, names: tuple[str, ...]) -> JointOfOne:
        """Joint posterior of [intercept, coefficients], adjusted where all of it is determined."""
        covariance = self._adjusted()
        if covariance is None:
            return super().joint(names)
        # Scaled to a unit diagonal, so that coefficients of any size keep their digits.
        size = np.sqrt(np.diag(covariance))
        turned = (covariance / np.outer(size, size))[::-1, ::-1]
        try:
            upper = size[:, None] * cholesky(turned, lower=True)[::-1, ::-1]
        except np.linalg.LinAlgError:
            return super().joint(names)
        root = solve_triangular(upper, np.eye(len(size)))
        return MultivariateNormal(self.coefficients(), root, 1.0, names=names)

    def _adjusted(self) -> Array | None:
        """(p, p) adjusted covariance; None while a direction, or the scale, is open."""
        b, design = self.tally.scale, self.design.factor
        if not (math.isfinite(b) and design.determined.all()):
            return None
        joint = super().joint(("",) * self.n_coefficients)
        half = solve_triangular(joint.precision_root, np.eye(self.n_coefficients))
        # S / b^2 = half half' is relative: q (1 - q) / b^2 S D'D S = q (1 - q) b^2 M'M.
        turned = design.root @ half @ half.T
        assert isinstance(self.noise, AsymmetricLaplaceNoise)
        q = self.noise.quantile
        return q * (1.0 - q) * b * b * (turned.T @ turned)

    def _learn_rows(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> Told:
        told = super()._learn_rows(X, y, weights, elapsed)
        self.design.absorb(X, np.zeros_like(y), weights, elapsed)
        return told
