"""What a factorization machine has learned, and how it learns rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, log_expit, ndtri

from posterity.factorization._sweeps import (
    SideRows,
    Sides,
    errors_of,
    moments_at,
    moments_of,
    sum_rows,
    total_variance,
    update_levels,
    with_prior,
)
from posterity.kernel import MachineRows

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

# (n, S) levels and features, (n,) targets and weights.
Rows = tuple[Codes, Array, Array, Array]

# Weak prior of the precisions of weights, in units of the target's spread: Gamma(1, RATE).
RATE = 1e-3
# Spread of the factors that a fit starts from (at zero they would stay there), and their prior
# precision: shy ones find the best optimum of many rows, bold ones survive in few rows.
STARTS = ((0.1, 10.0), (0.3, 1.0))


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
    codes, values, y, weights
        (n, S), (n, S), (n,), (n,) rows learned: level of each side, its feature, the target, and
        how many rows it stands for.
    log_evidence
        The bound of the last sweep, less constants, in the target's own units.
    residual
        Expected sum of squares of the last sweep, in units of the target's spread.
    swept, begun
        Number of rows at the last sweep over all, and at the last fresh start.
    bounds
        Of the last sweeps, of targets in units of their spread.
    precisions, products
        For each side (L, p, p) and (L, p), sums over the rows of each level, with the other sides
        as they were at the last sweep or, of later rows, when the row came.
    labels
        Whether targets are labels, 0 or 1, and weights are of their log odds: each row then stands
        for a lower bound of its likelihood that is Gaussian (Jaakkola & Jordan 2000).
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
    precisions: list[Array] = field(default_factory=list)
    products: list[Array] = field(default_factory=list)
    weights: Array = field(default_factory=lambda: np.empty(0))
    labels: bool = False

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.y):  # of a file without them
            self.weights = np.ones(len(self.y))
        if not self.precisions:  # new, or of a file without them: the next rows bring a sweep
            self.precisions = [np.zeros_like(one) for one in self.covariances]
            self.products = [np.zeros_like(one) for one in self.means]
            self.swept = 0
        self._path: MachineRows | None = None
        self._room: Rows | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_path": None, "_room": None}

    @classmethod
    def begin(
        cls,
        rows: Rows,
        sizes: list[int],
        rank: int,
        noise_precision: float | None,
        seed: int | None,
        *,
        start: tuple[float, float] = STARTS[0],
        labels: bool = False,
    ) -> FactorizationPosterior:
        """Nothing learned yet of these rows, but that factors are small and not all the same."""
        codes, values, y, weights = rows
        if labels:
            share = (weights @ y + 0.5) / (weights.sum() + 1.0)
            unit, offset = 1.0, float(np.log(share / (1.0 - share)))
        else:
            mean = float(np.average(y, weights=weights))
            sd = float(np.sqrt(np.average((y - mean) ** 2, weights=weights)))
            unit = sd or float(np.abs(y).max()) or 1.0
            offset = mean / unit
        random, p = np.random.default_rng(seed), rank + 1
        means = []
        for size in sizes:
            factors = start[0] * random.standard_normal((size, p))
            factors[:, 0] = 0.0
            means.append(factors)
        spread = np.diag(np.append(0.1, np.full(rank, start[0] ** 2)))
        precisions = np.append(10.0, np.full(rank, start[1]))
        shape, rate = (np.inf, 1.0 / (noise_precision * unit**2)) if noise_precision else (1.0, 1.0)
        return cls(
            means,
            [np.tile(spread, (size, 1, 1)) for size in sizes],
            np.zeros((len(sizes), p)),
            np.tile(precisions, (len(sizes), 1)),
            offset,
            0.0,
            shape,
            rate,
            unit,
            codes,
            values,
            y,
            begun=len(y),
            weights=weights,
            labels=labels,
        )

    @property
    def sides(self) -> Sides:
        """The beliefs of the weights; changes of their arrays are changes of these."""
        return Sides(
            self.means,
            self.covariances,
            self.precisions,
            self.products,
            self.prior_means,
            self.prior_precisions,
            self.offset,
            self.offset_variance,
        )

    @property
    def sizes(self) -> list[int]:
        """Number of levels of each side."""
        return [len(one) for one in self.means]

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
            precisions=sides.precisions,
            products=sides.products,
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
        """The rows by side, as rows of numbers."""
        y, weights = self.y / self.unit, self.weights
        if self.labels:
            mean, variance = moments_at(self.codes, self.values, self.sides)
            curvature = logistic_curvature(np.sqrt(mean**2 + variance))
            y, weights = (self.y - 0.5) / curvature, self.weights * curvature
        return [
            SideRows.of(side, self.codes, self.values, y, self.sizes, weights)
            for side in range(len(self.means))
        ]

    def sweep(self, most: int, tolerance: float) -> None:
        """Update each side in turn until the bound rises by less than ``tolerance`` a row."""
        self.bounds = []
        sorted_rows: list[SideRows] = []
        for _ in range(most):
            if self.labels or not sorted_rows:
                sorted_rows = self.sorted_rows()
                moments = [moments_of(rows, self.sides) for rows in sorted_rows]
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
        for rows in sorted_rows:  # later rows add to sums of one and the same weights
            sum_rows(rows, self.sides, moments[rows.side])
        self._path = None
        self.log_evidence = self.bounds[-1] - float(self.weights.sum() * np.log(self.unit))
        self.swept = len(self.y)

    # ---- rows one by one -------------------------------------------------------------------------

    def learn(self, rows: Rows) -> None:
        """Learn rows one after the other, of levels known or new: sums of their levels grow.

        Raises ``ValueError`` if a row's numbers overflow.
        """
        codes, values, y, weights = rows
        self._add_levels(codes.max(axis=0) + 1)
        learned = self.path().learn(codes, values, y / self.unit, weights)
        if learned < len(y):
            raise ValueError(f"y is {y[learned]} in row {learned}, which is too large to learn")
        self.codes = np.concatenate([self.codes, codes])
        self.values = np.concatenate([self.values, values])
        self.y = np.concatenate([self.y, y])
        self.weights = np.concatenate([self.weights, weights])

    def learn_one(self, codes: Codes, values: Array, y: float, weight: float) -> None:
        """Learn a row (1, S) of known levels in their place. Raises as :meth:`learn`."""
        n, room = len(self.y), self._room
        if room is None or self.y.base is not room[2] or len(room[2]) == n:
            kept = self.codes, self.values, self.y, self.weights
            room = self._room = cast(Rows, tuple(_with_room(one) for one in kept))
        room[0][n], room[1][n], room[2][n], room[3][n] = codes[0], values[0], y, weight
        after = {
            name: one[: n + 1]
            for name, one in zip(("codes", "values", "y", "weights"), room, strict=True)
        }
        if not self.path().learn_one(codes, values, y / self.unit, weight, self.__dict__, after):
            raise ValueError(f"y is {y}, which is too large to learn")

    def path(self) -> MachineRows:
        """What learns single rows, made anew after each sweep."""
        if self._path is None:
            self._path = MachineRows(
                self.means,
                self.covariances,
                self.precisions,
                self.products,
                self.prior_means,
                self.prior_precisions,
                self.offset,
                self.offset_variance,
                self.noise_precision,
                self.labels,
            )
        return self._path

    def _add_levels(self, sizes: NDArray[np.intp]) -> None:
        """Levels that are new begin at their side's prior."""
        for side, size in enumerate(sizes):
            new = int(size) - len(self.means[side])
            if new <= 0:
                continue
            self._path = None
            start = {
                "means": self.prior_means[side],
                "covariances": np.diag(1.0 / self.prior_precisions[side]),
            }
            for name in ("means", "covariances", "precisions", "products"):
                arrays = getattr(self, name)
                each = start.get(name, np.zeros(arrays[side].shape[1:]))
                more = np.broadcast_to(each, (new, *each.shape))
                arrays[side] = np.concatenate([arrays[side], more])

    def _reset_to_prior(self, rows: SideRows) -> None:
        """Levels without rows are what their side has in common."""
        without = np.ones(len(self.means[rows.side]), dtype=bool)
        without[rows.levels] = False
        self.precisions[rows.side][without] = 0.0
        self.products[rows.side][without] = 0.0
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
        last, sides, count = sorted_rows[-1], self.sides, float(self.weights.sum())
        errors = errors_of(last, sides)
        total = float(last.weights.sum())
        step = float(last.weights @ errors) / total
        self.offset += step
        self.offset_variance = 1.0 / (self.noise_precision * total)
        variance = total_variance(sorted_rows, moments, sides)
        self.residual = float(last.weights @ (errors - step) ** 2) + variance
        if not self.noise_is_known:
            self.noise_shape = 0.5 * count
            self.noise_rate = 0.5 * (self.residual + total * self.offset_variance)

    def _bound(self) -> float:
        """The evidence's lower bound, of targets in their unit."""
        bound = self._labels_bound() if self.labels else self._numbers_bound()
        bound += 0.5 * (1.0 + np.log(2.0 * np.pi * self.offset_variance))
        for side, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            bound += self._compute_side_bound(side, mean, covariance)
        return float(bound)

    def _labels_bound(self) -> float:
        mean, variance = moments_at(self.codes, self.values, self.sides)
        size = np.sqrt(mean**2 + variance)
        each = log_expit(size) - 0.5 * size + (self.y - 0.5) * mean
        return float(self.weights @ each)

    def _numbers_bound(self) -> float:
        n, tau = float(self.weights.sum()), self.noise_precision
        residual = self.residual + n * self.offset_variance
        log_tau, bound = np.log(tau), 0.0
        if not self.noise_is_known:
            a, b = self.noise_shape, self.noise_rate
            log_tau = digamma(a) - np.log(b)
            bound += a - np.log(b) + gammaln(a) + (1.0 - a) * digamma(a) - log_tau
        return float(bound + 0.5 * n * (log_tau - np.log(2.0 * np.pi)) - 0.5 * tau * residual)

    def _compute_side_bound(self, side: int, mean: Array, covariance: Array) -> float:
        centre, precision = self.prior_means[side], self.prior_precisions[side]
        size, p = mean.shape
        variances = np.diagonal(covariance, axis1=1, axis2=2)
        spread = ((mean - centre) ** 2 + variances).sum(axis=0) + centre**2 + 2.0 * RATE
        gain = (size + 1) * np.log(precision) - precision * spread
        entropy = np.linalg.slogdet(covariance)[1].sum() + size * p
        return float(0.5 * (gain.sum() + entropy))


def logistic_curvature(size: Array) -> Array:
    """Curvature of the Gaussian bound of a logistic likelihood, which touches it at +-size."""
    safe = np.maximum(size, 1e-4)
    return np.where(size > 1e-4, 0.5 * np.tanh(0.5 * safe) / safe, 0.25)


def _with_room(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of rows, with room for as many again."""
    room = np.empty((2 * len(array) + 16, *array.shape[1:]), dtype=array.dtype)
    room[: len(array)] = array
    return room


__all__ = ["FactorizationPosterior"]
