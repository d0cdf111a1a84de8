"""Mixtures of normal and lognormal distributions, one for each series and step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Array = NDArray[np.float64]

ROOT_2_PI = float(np.sqrt(2.0 * np.pi))
# Of the logarithm of a value: beyond, a mean is not a number any more.
LARGEST_LOG, LARGEST_SD = 600.0, 6.0
# Numbers that are worked on at once, steps of the search for a quantile, and how near it must come.
BLOCK, STEPS, NEAR = 2_000_000, 60, 1e-9
# Nodes of the integral that is the CRPS, on either side of the outcome.
NODES = 32
# Beyond these quantiles nothing is left, roughly.
TAIL = 1e-5


@dataclass(frozen=True, eq=False)
class Component:
    """K equally probable normals (S, K, h), of the values themselves or of their logarithms."""

    mean: Array
    sd: Array
    log: bool

    def part(self, which: slice) -> Component:
        """Some of the series."""
        return Component(self.mean[which], self.sd[which], self.log)

    def cdf(self, y: Array) -> Array:
        """Distribution function (S, h) at ``y`` (S, h)."""
        return np.asarray(ndtr(self._z(y)).mean(axis=1))

    def density(self, y: Array) -> Array:
        """Density (S, h) at ``y`` (S, h)."""
        z = self._z(y)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            height = (np.exp(-0.5 * z * z) / (ROOT_2_PI * self.sd)).mean(axis=1)
            if self.log:
                return np.where(y > 0.0, height / np.where(y > 0.0, y, 1.0), 0.0)
        return np.asarray(height)

    def _z(self, y: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            x = np.log(np.maximum(y, 0.0)) if self.log else y
            z = (x[:, None, :] - self.mean) / self.sd
        z[np.isnan(z)] = 0.0
        return np.asarray(z)

    def moments(self) -> tuple[Array, Array]:
        """(S, h) mean and variance of the values."""
        if not self.log:
            mean = self.mean.mean(axis=1)
            variance = np.square(self.sd).mean(axis=1) + self.mean.var(axis=1)
            return mean, variance
        variance = np.square(np.minimum(self.sd, LARGEST_SD))
        each = np.exp(np.minimum(self.mean + 0.5 * variance, LARGEST_LOG))
        mean = each.mean(axis=1)
        with np.errstate(over="ignore"):
            within = (np.square(each) * np.expm1(variance)).mean(axis=1)
        return mean, within + each.var(axis=1)

    def matched(self) -> tuple[Array, Array]:
        """(S, h) mean and sd of the one normal with their mean and their mean absolute deviation.

        Few draws that are far off make a variance large, and say little of where the mass is.
        """
        mean = self.mean.mean(axis=1)
        off = np.abs(self.mean - mean[:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(self.sd > 0.0, off / self.sd, 0.0)
        folded = 2.0 / ROOT_2_PI * self.sd * np.exp(-0.5 * z * z) + off * (2.0 * ndtr(z) - 1.0)
        folded = np.where(self.sd > 0.0, folded, off)
        return mean, 0.5 * ROOT_2_PI * folded.mean(axis=1)

    def quantile_of_matched(self, q: float | Array) -> Array:
        """(S, h) quantiles of that normal, as values."""
        mean, sd = self.matched()
        x = mean + ndtri(q) * np.minimum(sd, LARGEST_SD if self.log else np.inf)
        return np.exp(np.minimum(x, LARGEST_LOG)) if self.log else np.asarray(x)


@dataclass(frozen=True, eq=False)
class Marginals:
    """Mixtures over F components with weights (S, F)."""

    components: Sequence[Component]
    weights: Array

    def mean(self) -> Array:
        """(S, h) means."""
        return self._mixed(lambda part: part.moments()[0])

    def variance(self) -> Array:
        """(S, h) variances."""
        mean = self.mean()
        return self._mixed(lambda part: part.moments()[1] + np.square(part.moments()[0] - mean))

    def cdf(self, y: Array) -> Array:
        """(S, h) probabilities of no more than ``y``."""
        return self._mixed(lambda part: part.cdf(y))

    def logpdf(self, y: Array) -> Array:
        """(S, h) log densities."""
        with np.errstate(divide="ignore"):
            return np.log(self._mixed(lambda part: part.density(y)))

    def quantile(self, q: float | Array) -> Array:
        """(S, h) quantiles, to nine digits of the spread; ``q`` may be an array (h,) or (S, h)."""
        each = np.broadcast_to(q, self._shape)
        return self._by_blocks(lambda some, which: some._quantile(each[which]))

    def crps(self, y: Array) -> Array:
        """(S, h) continuous ranked probability score: the integral of (F(x) - [x >= y])^2."""
        outcomes = np.asarray(y, dtype=np.float64)
        return self._by_blocks(lambda some, which: some._crps(outcomes[which]))

    # ---- inner ---------------------------------------------------------------------------------

    def _mixed(self, of: Callable[[Component], Array]) -> Array:
        total: Any = 0.0
        for number, part in enumerate(self.components):
            weight = self.weights[:, number, None]
            if weight.any():
                total = total + np.where(weight > 0.0, weight * of(part), 0.0)
        return np.asarray(total)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.weights), self.components[0].mean.shape[2]

    def _by_blocks(self, of: Callable[[Marginals, slice], Array]) -> Array:
        numbers = sum(part.mean.shape[1] * part.mean.shape[2] for part in self.components)
        share = max(1, BLOCK // max(1, numbers))
        parts = [slice(start, start + share) for start in range(0, len(self.weights), share)]
        return np.concatenate([of(self._part(which), which) for which in parts])

    def _part(self, which: slice) -> Marginals:
        return Marginals([part.part(which) for part in self.components], self.weights[which])

    def _quantile(self, q: Array, near: float = NEAR) -> Array:
        """Newton's method on the scale of normal scores, within a bracket that always closes."""
        low, high = self._bracket(q)
        guesses = np.stack([part.quantile_of_matched(q) for part in self.components], axis=2)
        weights = self.weights[:, None, :]
        x = (np.where(weights > 0.0, guesses, 0.0) * weights).sum(axis=2)
        x = np.clip(x, low, high)
        answer, cells = x.reshape(-1), self._cells()
        left = np.flatnonzero(high.reshape(-1) > low.reshape(-1))
        low, high = low.reshape(-1)[left], high.reshape(-1)[left]
        level = q.reshape(-1)[left]
        for _ in range(STEPS):
            if not len(left):
                break
            x = answer[left]
            cdf, density = cells.score(x, left)
            u = ndtri(np.clip(cdf, 1e-300, 1.0 - 1e-16))
            above = cdf >= level
            high, low = np.where(above, x, high), np.where(above, low, x)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = (ndtri(level) - u) * np.exp(-0.5 * u * u) / (ROOT_2_PI * density)
                inside = (x + step >= low) & (x + step <= high)
            moved = np.where(inside, x + step, 0.5 * (low + high))
            answer[left] = moved
            done = (np.abs(cdf - level) < near) | (high - low <= 4e-16 * np.abs(x))
            left, low, high, level = left[~done], low[~done], high[~done], level[~done]
        return answer.reshape(len(self.weights), -1)

    def _cells(self) -> Cells:
        parts = []
        for log in (False, True):
            some = [
                (part, np.broadcast_to(weight[:, None, None] / part.mean.shape[1], part.mean.shape))
                for part, weight in zip(self.components, self.weights.T, strict=True)
                if part.log == log and weight.any()
            ]
            if some:
                means = np.concatenate([part.mean for part, _ in some], axis=1)
                sds = np.concatenate([part.sd for part, _ in some], axis=1)
                shares = np.concatenate([share for _, share in some], axis=1)
                counts = shares > 0.0
                means, sds = np.where(counts, means, 0.0), np.where(counts, sds, 1.0)
                parts.append((log, _by_cell(means), _by_cell(sds), _by_cell(shares)))
        return Cells(parts)

    def _bracket(self, q: Array) -> tuple[Array, Array]:
        """The lowest and the highest quantile of all normals of positive weight."""
        low: Any = np.inf
        high: Any = -np.inf
        for number, part in enumerate(self.components):
            some = self.weights[:, number, None] > 0.0
            if some.any():
                sd = np.minimum(part.sd, LARGEST_SD) if part.log else part.sd
                each = part.mean + ndtri(q)[:, None] * sd
                each = np.exp(np.clip(each, -LARGEST_LOG, LARGEST_LOG)) if part.log else each
                low = np.where(some, np.minimum(low, each.min(axis=1)), low)
                high = np.where(some, np.maximum(high, each.max(axis=1)), high)
        return np.asarray(low), np.asarray(high)

    def _crps(self, y: Array) -> Array:
        """Gauss-Legendre on either side of the outcome, out to where nothing is left."""
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
        low, high = (self._quantile(np.full(y.shape, q), 0.1 * TAIL) for q in (TAIL, 1.0 - TAIL))
        below, above = np.maximum(y - low, 0.0), np.maximum(high - y, 0.0)
        # What is between the outcome and the mass counts whole.
        total = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        first, last = np.minimum(y, high), np.maximum(y, low)
        lower, upper = np.minimum(below, high - low), np.minimum(above, high - low)
        cells = self._cells()
        for node, weight in zip(nodes, weights, strict=True):
            left = cells.cdf((first - lower * (1.0 - node)).reshape(-1)).reshape(y.shape)
            right = cells.cdf((last + upper * node).reshape(-1)).reshape(y.shape)
            total = total + weight * (lower * np.square(left) + upper * np.square(1.0 - right))
        return np.asarray(total)


@dataclass(frozen=True, eq=False)
class Cells:
    """The same with series and steps in one axis, of which some may be asked for.

    ``parts`` are all normals (n, K) of the values, and all of the logarithms: whether they are of
    logarithms, means, standard deviations, and weights.
    """

    parts: list[tuple[bool, Array, Array, Array]]

    def cdf(self, y: Array) -> Array:
        """Distribution function (n,) at ``y`` (n,)."""
        total = np.zeros(len(y))
        for z, _, weight, _ in self._scores(y, slice(None)):
            total += np.einsum("nk,nk->n", ndtr(z), weight)
        return total

    def score(self, y: Array, which: NDArray[np.intp]) -> tuple[Array, Array]:
        """Distribution function and density (n,) at ``y`` (n,) of the cells ``which`` (n,)."""
        total, density = np.zeros(len(y)), np.zeros(len(y))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            for z, sd, weight, unit in self._scores(y, which):
                total += np.einsum("nk,nk->n", ndtr(z), weight)
                height = np.exp(-0.5 * np.square(z)) / sd
                density += np.einsum("nk,nk->n", height, weight) / (ROOT_2_PI * unit)
        return total, density

    def _scores(
        self, y: Array, which: slice | NDArray[np.intp]
    ) -> Iterator[tuple[Array, Array, Array, Array | float]]:
        """z (n, K), standard deviations, weights, and what y moves by as that of the part does."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            log = np.log(np.maximum(y, 0.0))
            for in_logs, mean, sd, weight in self.parts:
                spread = sd[which]
                z = ((log if in_logs else y)[:, None] - mean[which]) / spread
                if not spread.all():
                    z[np.isnan(z)] = 0.0
                yield z, spread, weight[which], np.where(y > 0.0, y, np.inf) if in_logs else 1.0


def crps_of_one(part: Component, y: Array) -> Array:
    """(S, h) CRPS of the one normal, or lognormal, nearest to a component.

    In closed form (Gneiting and Raftery 2007, eq. 21; Baran and Lerch 2015): what forms are
    weighed by. Outcomes that are not observed have NaN.
    """
    mean, sd = part.matched()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if not part.log:
            sd = np.maximum(sd, 1e-300)
            z = (y - mean) / sd
            height = np.exp(-0.5 * z * z) / ROOT_2_PI
            return np.asarray(
                sd * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * height - 1.0 / np.sqrt(np.pi))
            )
        sd = np.clip(sd, 1e-12, LARGEST_SD)
        z = (np.log(np.where(y > 0.0, y, np.nan)) - mean) / sd
        centre = np.exp(np.minimum(mean + 0.5 * sd * sd, LARGEST_LOG))
        shape = ndtr(z - sd) + ndtr(sd / np.sqrt(2.0)) - 1.0
        return np.asarray(y * (2.0 * ndtr(z) - 1.0) - 2.0 * centre * shape)


def _by_cell(values: Array) -> Array:
    """(S, K, h) as (S h, K)."""
    return np.swapaxes(values, 1, 2).reshape(-1, values.shape[1])
