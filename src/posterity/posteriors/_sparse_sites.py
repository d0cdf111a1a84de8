"""Sufficient statistics of rows with few active features: sums of products, or sites of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.sparse import csr_array

from posterity.aliases import AnyArray, Array, Indices
from posterity.factor.sparse_cholesky import SparseCholesky
from posterity.factor.sparse_pattern import SparsityPattern
from posterity.likelihoods import Likelihood, Sites
from posterity.posteriors._site_fit import compute_cavity
from posterity.posteriors._site_rows import find_sites

# The least prior precision of a weight, relative to what rows tell of it, where that has to be.
LEAST_PRIOR = 1e-11
# The step of differences by phi.
PHI_STEP = 1e-3
# Tolerance of the gain in log density by one more Newton step, and the most steps.
NEWTON_TOLERANCE, MOST_NEWTON, MOST_HALVINGS = 1e-1, 60, 40


@dataclass(frozen=True)
class PriorPrecision:
    """A prior precision (p, p): its diagonal, and pairs of weights that depend on each other.

    Of pair i the rows and columns are features, and ``places`` the pattern's entries. ``phi`` (m,):
    logs of the likelihood's parameters that go with it.
    """

    diagonal: Array
    rows: Indices
    columns: Indices
    values: Array
    places: Indices
    phi: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of_diagonal(cls, diagonal: Array) -> PriorPrecision:
        """The precision of weights that are independent."""
        none = np.zeros(0, dtype=np.intp)
        return cls(diagonal, none, none, np.zeros(0), none)

    @property
    def pairs(self) -> tuple[AnyArray, ...]:
        """Rows, columns, values and places of the pairs."""
        return self.rows, self.columns, self.values, self.places

    def __matmul__(self, mean: Array) -> Array:
        product = self.diagonal * mean
        np.add.at(product, self.rows, self.values * mean[self.columns])
        np.add.at(product, self.columns, self.values * mean[self.rows])
        return product

    def factorize(self, entries: Array, pattern: SparsityPattern) -> SparseCholesky:
        """The factor of this and of what data tell, the pattern's ``entries``."""
        values = entries.copy()
        values[pattern.diagonal] += self.diagonal
        values[self.places] += self.values
        return SparseCholesky(values, pattern)


class Sweep(NamedTuple):
    """The posterior of weights (p,) under some sites, and where these would go from there."""

    factor: SparseCholesky
    mean: Array
    step: Array  # of the sites
    metric: Array  # what a step of one is worth, in posterior standard deviations
    change: float  # the largest step, in these
    explained: float = 0.0  # of Gaussian noise, what the mean takes off the sum of squares
    # Finds derivatives (2, m), first and second, of the log evidence by phi: of settled sites.
    slopes: Callable[[], Array] = partial(np.zeros, (2, 0))

    @property
    def inverse(self) -> Array:
        """The pattern's entries of the covariance, in units of the noise."""
        return self.factor.inverse_entries()

    @property
    def variance(self) -> Array:
        """(p,) variances of the weights."""
        return self.inverse[self.factor.pattern.diagonal]


@dataclass(frozen=True)
class ProductSums:
    """Rows of Gaussian noise: sums of products, of the pattern's entries, and with targets (p,)."""

    entries: Array
    products: Array
    pattern: SparsityPattern

    def start(self, prior: PriorPrecision, sites: Array | None = None) -> Array:
        """Return no sites: each row is Gaussian."""
        return np.zeros(0)

    def sweep(self, prior: PriorPrecision, sites: Array) -> Sweep:
        """The posterior under a prior precision."""
        try:
            factor = prior.factorize(self.entries, self.pattern)
        except LinAlgError:  # beside very large weights the prior is lost to rounding
            least = LEAST_PRIOR * self.entries[self.pattern.diagonal]
            prior = replace(prior, diagonal=prior.diagonal + least)
            factor = prior.factorize(self.entries, self.pattern)
        mean = factor.solve(self.products)
        return Sweep(factor, mean, sites, sites, 0.0, float(self.products @ mean))

    def log_evidence(self, prior: PriorPrecision, sweep: Sweep, sites: Array) -> float:
        """What rows say of the prior, without constants, the noise and the prior's determinant."""
        return -0.5 * sweep.factor.log_determinant()


@dataclass(frozen=True)
class SiteRows:
    """Rows (n, p) of any likelihood, each with a Gaussian site: precision and shift (2 n,).

    Sites are on X w; ``offsets`` (n,) are added to it where the likelihood is asked.
    """

    likelihood: Likelihood
    X: csr_array
    y: Array
    weights: Array
    offsets: Array
    pattern: SparsityPattern
    pairs: csr_array  # of the pattern's entries, for the variance of each row

    def start(self, prior: PriorPrecision, sites: Array | None = None) -> Array:
        """The sites of Laplace's method, near the mode.

        Newton's method from 0 or from the mean under some ``sites``, with steps halved until the
        density rises.
        """
        X, y, weights, offsets = self.X, self.y, self.weights, self.offsets
        likelihood, mean = self._observe(prior.phi), np.zeros(X.shape[1])
        if sites is not None:
            precision, shift = np.split(sites, 2)
            mean = self._factorize(prior, np.maximum(precision, 0.0)).solve(X.T @ shift)

        def density(mean: Array) -> float:
            each = likelihood.log_density(y, offsets + X @ mean)
            return float(weights @ each - 0.5 * mean @ (prior @ mean))

        height = density(mean)
        for _ in range(MOST_NEWTON):
            slope, curvature = likelihood.derivatives(y, offsets + X @ mean)
            gradient = X.T @ (weights * slope) - prior @ mean
            step = self._factorize(prior, weights * curvature).solve(gradient)
            if gradient @ step < NEWTON_TOLERANCE:
                break
            for _ in range(MOST_HALVINGS):
                higher = density(mean + step)
                if higher >= height:
                    break
                step = 0.5 * step
            else:  # as high as rounding lets it be
                break
            mean, height = mean + step, higher
        shift = weights * (curvature * (X @ mean) + slope)
        return np.concatenate([weights * curvature, shift])

    def sweep(self, prior: PriorPrecision, sites: Array) -> Sweep:
        """The posterior, and what expectation propagation makes of all sites (Minka 2001)."""
        precision, shift = np.split(sites, 2)
        precision = np.maximum(precision, 0.0)
        factor = self._factorize(prior, precision)
        mean, entries = factor.solve(self.X.T @ shift), factor.inverse_entries()
        eta, variance = self.X @ mean, self.pairs @ entries
        cavity = compute_cavity(eta, variance, precision, shift)
        found = self._find(prior.phi, cavity)
        new_shift = found.precision * (found.target - self.offsets)
        to_precision, to_shift = found.precision - precision, new_shift - shift
        deviation = np.sqrt(variance)
        moved = np.abs([to_precision * variance, (to_shift - to_precision * eta) * deviation])
        return Sweep(
            factor,
            mean,
            np.concatenate([found.precision, new_shift]) - sites,
            np.concatenate([variance, deviation]),
            float(moved.max(initial=0.0)),
            slopes=partial(self._differentiate, prior.phi, cavity, found.log_normalizer.sum()),
        )

    def log_evidence(self, prior: PriorPrecision, sweep: Sweep, sites: Array) -> float:
        """What rows say of the prior, but for its determinant (Minka 2001).

        A site's constant gives it the same integral over its cavity as the likelihood has.
        """
        precision, shift = np.split(sites, 2)
        eta, variance = self.X @ sweep.mean, self.pairs @ sweep.inverse
        centre, spread = compute_cavity(eta, variance, precision, shift)
        found = self._find(prior.phi, (centre, spread))
        with np.errstate(over="ignore", invalid="ignore"):  # of sites that never agreed
            left = 1.0 + precision * spread
            tilted = shift * (2.0 * centre + shift * spread) - precision * np.square(centre)
            constants = found.log_normalizer + 0.5 * (np.log(left) - tilted / left)
        return float(constants.sum() + 0.5 * shift @ eta) - 0.5 * sweep.factor.log_determinant()

    def _observe(self, phi: Array) -> Likelihood:
        """The likelihood with these logs (m,) of its parameters."""
        return self.likelihood.with_parameters(np.exp(phi)) if len(phi) else self.likelihood

    def _find(self, phi: Array, cavity: tuple[Array, Array]) -> Sites:
        """The sites (n,) given means and variances of X w without them."""
        centre, spread = cavity
        at = self.offsets + centre
        return find_sites(self._observe(phi), "moments", self.y, at, spread, self.weights)

    def _differentiate(self, phi: Array, cavity: tuple[Array, Array], here: float) -> Array:
        """Derivatives (2, m) of the sum of the sites' logs, ``here`` at phi, by differences.

        Where sites have settled the evidence has no slope by them, so cavities may stay.
        """
        above, below = (
            np.array([self._find(phi + step, cavity).log_normalizer.sum() for step in steps])
            for steps in (np.eye(len(phi)) * PHI_STEP, np.eye(len(phi)) * -PHI_STEP)
        )
        second = (above + below - 2.0 * here) / PHI_STEP**2
        return np.array([(above - below) / (2.0 * PHI_STEP), second])

    def _factorize(self, prior: PriorPrecision, precision: Array) -> SparseCholesky:
        entries = 0.5 * (self.pairs.T @ precision)  # where off the diagonal both triangles count
        entries[self.pattern.diagonal] *= 2.0
        return prior.factorize(entries, self.pattern)


__all__ = ["PriorPrecision", "ProductSums", "SiteRows", "Sweep"]
