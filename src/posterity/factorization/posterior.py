"""What a factorization machine has learned, and how it learns rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, ndtri

from posterity.factorization._sweeps import (
    SideRows,
    Sides,
    errors_of,
    moments_at,
    moments_of,
    total_variance,
    update_levels,
    with_prior,
)

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

# Weak prior of the precisions of weights, in units of the target's spread: Gamma(1, RATE).
RATE = 1e-3
# Spread of the factors that a fit starts from: at zero they would stay there.
START = 0.1


@dataclass
class FactorizationPosterior:
    """Normal beliefs of all levels' weights, the rows they were learned from, and the noise.

    Parameters
    ----------
    means, covariances
        For each side (L, p) and (L, p, p), of the weights [w, v] of its levels, p = 1 + rank.
    prior_means, prior_precisions
        (S, p), what levels of a side have in common.
    offset, offset_variance
        The intercept.
    noise_shape, noise_rate
        Of the Gamma posterior of the noise's precision; where that is known the shape is infinite,
        and the rate its inverse.
    unit
        The spread of the targets; all of the above is in its units.
    codes, values, y
        (n, S), (n, S), (n,) rows learned: level of each side, its feature, the target.
    log_evidence
        The bound of the last sweep, less constants, in the target's own units.
    residual
        Expected sum of squares of the last sweep, in units of the target's spread.
    swept, begun
        Number of rows at the last sweep over all, and at the last fresh start.
    bounds
        Of the last sweeps, of targets in units of their spread.
    """

    means: list[Array]
    covariances: list[Array]
    prior_means: Array
    prior_precisions: Array
    offset: float
    offset_variance: float
    noise_shape: float
    noise_rate: float
    unit: float
    codes: Codes
    values: Array
    y: Array
    log_evidence: float = -np.inf
    residual: float = np.nan
    swept: int = 0
    begun: int = 0
    bounds: list[float] = field(default_factory=list)

    @classmethod
    def begin(
        cls,
        rows: tuple[Codes, Array, Array],
        sizes: list[int],
        rank: int,
        noise_precision: float | None,
        seed: int | None,
    ) -> FactorizationPosterior:
        """Nothing learned yet of these rows, but that factors are small and not all the same."""
        codes, values, y = rows
        unit = float(np.std(y)) or float(np.abs(y).max()) or 1.0
        random, p = np.random.default_rng(seed), rank + 1
        means = []
        for size in sizes:
            weights = START * random.standard_normal((size, p))
            weights[:, 0] = 0.0
            means.append(weights)
        spread = np.diag(np.append(0.1, np.full(rank, START**2)))
        shape, rate = (np.inf, 1.0 / (noise_precision * unit**2)) if noise_precision else (1.0, 1.0)
        return cls(
            means,
            [np.tile(spread, (size, 1, 1)) for size in sizes],
            np.zeros((len(sizes), p)),
            np.full((len(sizes), p), 10.0),
            float(np.mean(y)) / unit,
            0.0,
            shape,
            rate,
            unit,
            codes,
            values,
            y,
            begun=len(y),
        )

    @property
    def sides(self) -> Sides:
        """The beliefs of the weights; changes of their arrays are changes of these."""
        return Sides(
            self.means,
            self.covariances,
            self.prior_means,
            self.prior_precisions,
            self.offset,
            self.offset_variance,
        )

    @property
    def noise_precision(self) -> float:
        """Mean of the noise's precision, in units of the target's spread."""
        return 1.0 / self.noise_rate if self.noise_is_known else self.noise_shape / self.noise_rate

    @property
    def noise_is_known(self) -> bool:
        """Whether the noise's precision was given."""
        return self.noise_shape == np.inf

    def copy(self) -> FactorizationPosterior:
        """The same, to go its own way."""
        sides = self.sides.copy()
        return replace(
            self,
            means=sides.means,
            covariances=sides.covariances,
            prior_means=sides.prior_means,
            prior_precisions=sides.prior_precisions,
            bounds=list(self.bounds),
        )

    def moments(self, codes: Codes, values: Array) -> tuple[Array, Array]:
        """Mean and variance, noise aside, at rows (n, S), in the target's units."""
        mean, variance = moments_at(codes, values, self.sides)
        return mean * self.unit, variance * self.unit**2

    def scores(self, codes: Codes, policy: str | float, random: np.random.Generator) -> Array:
        """What pairs of levels (n, 2) are worth by a policy: "mean", "draw" or a quantile."""
        if policy == "draw":
            return self._drawn(codes, random) * self.unit
        mean, variance = self.moments(codes, np.ones(codes.shape))
        if policy == "mean":
            return mean
        if isinstance(policy, str) or not 0.0 < policy < 1.0:
            raise ValueError(
                f"policy is {policy!r}: it must be 'mean', 'draw' or a quantile between 0 and 1"
            )
        return mean + float(ndtri(policy)) * np.sqrt(variance)

    def _drawn(self, codes: Codes, random: np.random.Generator) -> Array:
        """The values of pairs by one draw of all weights."""
        drawn = []
        for side in range(2):
            levels, place = np.unique(codes[:, side], return_inverse=True)
            means, covariances = with_prior(self.sides, side)
            normal = random.standard_normal((len(levels), means.shape[1], 1))
            deviation = np.linalg.cholesky(covariances[levels]) @ normal
            drawn.append((means[levels] + deviation[:, :, 0])[place])
        offset = self.offset + np.sqrt(self.offset_variance) * random.standard_normal()
        first, second = drawn
        pairs = np.einsum("nk,nk->n", first[:, 1:], second[:, 1:])
        return np.asarray(offset + first[:, 0] + second[:, 0] + pairs)

    # ---- learning --------------------------------------------------------------------------------

    def sorted_rows(self) -> list[SideRows]:
        """The rows by side."""
        sizes, y = [len(one) for one in self.means], self.y / self.unit
        return [SideRows.of(side, self.codes, self.values, y, sizes) for side in range(len(sizes))]

    def sweep(self, most: int, tolerance: float) -> None:
        """Update each side in turn until the bound rises by less than ``tolerance`` a row."""
        sorted_rows = self.sorted_rows()
        self.bounds = []
        moments = [moments_of(rows, self.sides) for rows in sorted_rows]
        for _ in range(most):
            for rows in sorted_rows:
                if rows.side > 0:  # those of the first are as they were
                    moments[rows.side] = moments_of(rows, self.sides)
                update_levels(rows, self.sides, self.noise_precision, moments[rows.side])
                self._reset_to_prior(rows)
                self._learn_prior(rows.side)
            for rows in sorted_rows[:-1]:
                moments[rows.side] = moments_of(rows, self.sides)
            self._learn_offset_and_noise(sorted_rows, moments)
            bounds = self.bounds
            bounds.append(self._bound())
            if len(bounds) > 1 and bounds[-1] - bounds[-2] < tolerance * len(self.y):
                break
        self.log_evidence = self.bounds[-1] - len(self.y) * float(np.log(self.unit))
        self.swept = len(self.y)

    def extend(self, codes: Codes, values: Array, y: Array, sizes: list[int]) -> None:
        """Add rows, and levels that begin at their side's prior."""
        self.codes = np.concatenate([self.codes, codes])
        self.values = np.concatenate([self.values, values])
        self.y = np.concatenate([self.y, y])
        for side, size in enumerate(sizes):
            new = size - len(self.means[side])
            if new:
                mean = np.tile(self.prior_means[side], (new, 1))
                spread = np.tile(np.diag(1.0 / self.prior_precisions[side]), (new, 1, 1))
                self.means[side] = np.concatenate([self.means[side], mean])
                self.covariances[side] = np.concatenate([self.covariances[side], spread])

    def touch(self, codes: Codes, times: int = 2) -> None:
        """Learn the levels of these rows anew, each from all of its rows."""
        sizes, y = [len(one) for one in self.means], self.y / self.unit
        touched = []
        for side, size in enumerate(sizes):
            among = np.zeros(size, dtype=bool)
            among[codes[:, side]] = True
            own = np.flatnonzero(among[self.codes[:, side]])
            touched.append(SideRows.of(side, self.codes[own], self.values[own], y[own], sizes))
        for _ in range(times):
            for rows in touched:
                moments = moments_of(rows, self.sides)
                update_levels(rows, self.sides, self.noise_precision, moments)

    def _reset_to_prior(self, rows: SideRows) -> None:
        """Levels without rows are what their side has in common."""
        without = np.ones(len(self.means[rows.side]), dtype=bool)
        without[rows.levels] = False
        self.means[rows.side][without] = self.prior_means[rows.side]
        self.covariances[rows.side][without] = np.diag(1.0 / self.prior_precisions[rows.side])

    def _learn_prior(self, side: int) -> None:
        """The best mean and precisions of a side's levels, under a weak prior of their own."""
        mean, covariance = self.means[side], self.covariances[side]
        size = len(mean)
        if bool((self.values[:, side] == 1.0).all()):  # a shift that the intercept takes over
            shift = float(mean[:, 0].mean())
            mean[:, 0] -= shift
            self.offset += shift
        centre = mean.sum(axis=0) / (size + 1)
        centre[0] = 0.0
        variances = np.diagonal(covariance, axis1=1, axis2=2)
        spread = ((mean - centre) ** 2 + variances).sum(axis=0) + centre**2
        self.prior_means[side] = centre
        self.prior_precisions[side] = (size + 1) / (2.0 * RATE + spread)

    def _learn_offset_and_noise(
        self, sorted_rows: list[SideRows], moments: list[tuple[Array, Array]]
    ) -> None:
        n, sides = len(self.y), self.sides
        errors = errors_of(sorted_rows[-1], sides)
        step = float(errors.mean())
        self.offset += step
        self.offset_variance = 1.0 / (self.noise_precision * n)
        variance = total_variance(sorted_rows, moments, sides)
        self.residual = float(np.sum((errors - step) ** 2)) + variance
        if not self.noise_is_known:
            self.noise_shape = 0.5 * n
            self.noise_rate = 0.5 * (self.residual + n * self.offset_variance)

    def _bound(self) -> float:
        """The evidence's lower bound, of targets in their unit."""
        n, tau = len(self.y), self.noise_precision
        residual = self.residual + n * self.offset_variance
        log_tau = np.log(tau)
        bound = 0.5 * (1.0 + np.log(2.0 * np.pi * self.offset_variance))
        if not self.noise_is_known:
            a, b = self.noise_shape, self.noise_rate
            log_tau = digamma(a) - np.log(b)
            bound += a - np.log(b) + gammaln(a) + (1.0 - a) * digamma(a) - log_tau
        bound += 0.5 * n * (log_tau - np.log(2.0 * np.pi)) - 0.5 * tau * residual
        for side, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            bound += self._compute_side_bound(side, mean, covariance)
        return float(bound)

    def _compute_side_bound(self, side: int, mean: Array, covariance: Array) -> float:
        centre, precision = self.prior_means[side], self.prior_precisions[side]
        size, p = mean.shape
        variances = np.diagonal(covariance, axis1=1, axis2=2)
        spread = ((mean - centre) ** 2 + variances).sum(axis=0) + centre**2 + 2.0 * RATE
        gain = (size + 1) * np.log(precision) - precision * spread
        entropy = np.linalg.slogdet(covariance)[1].sum() + size * p
        return float(0.5 * (gain.sum() + entropy))


__all__ = ["FactorizationPosterior"]
