"""Mixtures of normal and lognormal distributions, one for each series and step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr

from posterity.aliases import Array, Indices, Mask
from posterity.forecasting.bounds import (
    ROOT_2_PI,
    Bounds,
    choose_end,
    compute_censored_lognormal_moments,
    compute_censored_moments,
    move_between,
    move_to_moments,
)
from posterity.forecasting.log_scale import LARGEST_SD, LOGARITHMS, LogScale
from posterity.forecasting.mixtures import Normals, SeriesStepMarginals
from posterity.kernel.values import read_floats

# Values in a block; tolerance of quantiles.
BLOCK, QUANTILE_TOLERANCE = 2_000_000, 1e-9
# Nodes of the integral that is the CRPS, on either side of the outcome.
NODES = 16
# Probability of each tail that integrals leave out, roughly.
TAIL_PROBABILITY = 3e-5
# What 1 less a probability is known to.
ROUNDING = 1e-16
# Inverse of a standard deviation of zero.
POINT_MASS_PRECISION = 1e300


@dataclass(frozen=True, eq=False)
class Component:
    """K equally probable normals (S, K, h), of values or, on a ``scale``, of their logarithms."""

    mean: Array
    sd: Array
    log: bool
    scale: LogScale = LOGARITHMS

    def part(self, which: slice | Indices) -> Component:
        """Return some of the series."""
        return replace(self, mean=self.mean[which], sd=self.sd[which])

    def means(self) -> Array:
        """(S, K, h) means of the values."""
        return self.scale.means(self.mean, self.sd) if self.log else self.mean

    def slopes(self) -> Array:
        """(S, K, h) by how much values change with what is normal, at their means."""
        return self.scale.slopes(self.means()) if self.log else np.ones(self.mean.shape)

    def moments(self) -> tuple[Array, Array]:
        """(S, h) mean and variance of the values."""
        each = self.means()
        mean = each.mean(axis=1)
        within = self.scale.variances(self.mean, self.sd) if self.log else np.square(self.sd)
        return mean, within.mean(axis=1) + each.var(axis=1)

    def within(self, bounds: Bounds) -> Component:
        """The same, moved so that mean and variance stay when ``bounds`` (2, S) censor it.

        Only where bounds are often reached. The mean and the variance are those of the one normal
        that is nearest: draws that differ keep them nearly.
        """
        if self.log or not bounds.often.any():
            return self
        mean, sd = self.matched()
        unit = np.where(sd > 0.0, sd, 1.0)
        ends = np.where(bounds.often, bounds.values, np.array([[-np.inf], [np.inf]]))
        sign, end, width = choose_end(ends, mean)
        over, width = sign * (mean - end) / unit, width / unit
        centre, factor = move_to_moments(over)
        both = np.isfinite(width)
        if both.any():
            centre[both], factor[both] = move_between(over[both], width[both])
        often = np.asarray(bounds.often.any(axis=0))
        moved = (often[:, None] & (sd > 0.0) & (factor != 1.0))[:, None]
        if not moved.any():
            return self
        factor, centre = factor[:, None], (end + sign * unit * centre)[:, None]
        means = np.where(moved, centre + factor * (self.mean - mean[:, None]), self.mean)
        return Component(means, np.where(moved, factor * self.sd, self.sd), log=False)

    def censored_moments(self, bounds: Array) -> tuple[Array, Array]:
        """(S, h) mean and variance where values beyond ``bounds`` (2, S) count as at them.

        Of logarithms only the upper one counts, and log odds have their own.
        """
        plain, some = self.moments(), np.asarray(np.isfinite(bounds[self.log :]).any(axis=0))
        if not some.any() or self.scale != LOGARITHMS:
            return plain
        sd = np.maximum(self.sd, 1.0 / POINT_MASS_PRECISION)
        sign, end = np.ones(()), np.zeros(())
        with np.errstate(over="ignore"):
            if self.log:
                top = np.where(some, bounds[1], 1.0)[:, None, None]
                sd = np.minimum(sd, LARGEST_SD)
                each, square = compute_censored_lognormal_moments(self.mean, sd, top)
            else:
                sign, end, width = choose_end(bounds, plain[0])
                over = sign[:, None] * (self.mean - end[:, None])
                each, square = compute_censored_moments(over, sd, width[:, None])
        mean = each.mean(axis=1)
        variance = np.maximum(square.mean(axis=1) - np.square(mean), 0.0)
        return (
            np.where(some[:, None], end + sign * mean, plain[0]),
            np.where(some[:, None], variance, plain[1]),
        )

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


@dataclass(frozen=True, eq=False)
class Marginals:
    """Mixtures over F components with weights (S, F).

    What lies beyond ``bounds`` (2, S) counts as being there; None: nothing does. At steps that are
    ``closed`` (S, h) all is 0.
    """

    components: Sequence[Component]
    weights: Array
    bounds: Array | None = None
    closed: Mask | None = None

    @classmethod
    def of_normals(cls, mean: Array, sd: Array) -> Marginals:
        """Mixtures of equally probable normals (S, K, h)."""
        part = Component(np.ascontiguousarray(mean), np.ascontiguousarray(sd), log=False)
        return cls([part], np.ones((len(mean), 1)))

    @property
    def shape(self) -> tuple[int, int]:
        """S and h."""
        return len(self.weights), self.components[0].mean.shape[2]

    def within(self, bounds: Bounds | None) -> Marginals:
        """The same with bounds (2, S), and where these are often reached the same moments."""
        if bounds is None:
            return self
        parts = [part.within(bounds) for part in self.components]
        return Marginals(parts, self.weights, bounds.values, self.closed)

    def close(self, closed: Mask) -> Marginals:
        """The same, but 0 at some of the steps (S, h)."""
        return replace(self, closed=closed) if closed.any() else self

    def mean(self) -> Array:
        """(S, h) means."""
        return self._open(self._mix(lambda part: self._moments(part)[0]))

    def variance(self) -> Array:
        """(S, h) variances."""
        mean = self.mean()

        def spread(part: Component) -> Array:
            centre, variance = self._moments(part)
            return variance + np.square(centre - mean)

        return self._open(self._mix(spread))

    def cdf(self, y: Array) -> Array:
        """(S, h) probabilities of no more than ``y``."""
        below = self._compute_by_blocks(lambda some, which: some._score(y[which])[0])
        least, most = self._ends
        return self._open(np.where(y < least, 0.0, np.where(y >= most, 1.0, below)), y >= 0.0)

    def logpdf(self, y: Array) -> Array:
        """(S, h) log densities; at a bound the log of its probability."""
        cdf = self._compute_by_blocks(lambda some, which: some._score(y[which])[0])
        density = self._compute_by_blocks(lambda some, which: some._score(y[which])[1])
        least, most = self._ends
        density = np.where(
            y == least, cdf, np.where(y == most, np.maximum(1.0 - cdf, ROUNDING), density)
        )
        density = np.where((y < least) | (y > most), 0.0, density)
        with np.errstate(divide="ignore"):
            return np.log(self._open(density, y == 0.0))

    def at_bounds(self) -> Array:
        """(2, S, h) probabilities of the bounds; 0 of those that are infinite."""
        ends = np.broadcast_to(self._ends, (2, *self.shape))
        known = np.isfinite(ends)
        ends = np.where(known, ends, 0.0)
        low = self._compute_by_blocks(lambda some, which: some._score(ends[0, which])[0])
        high = self._compute_by_blocks(lambda some, which: some._score(ends[1, which])[0])
        return self._open(np.where(known, np.stack([low, 1.0 - high]), 0.0))

    def quantile(self, q: float | Array) -> Array:
        """(S, h) quantiles, to nine digits of the spread; ``q`` may be an array (h,) or (S, h)."""
        each = np.broadcast_to(q, self.shape)
        found = self._compute_by_blocks(lambda some, which: some._quantile(each[which]))
        return self._open(np.clip(found, *self._ends))

    def crps(self, y: Array) -> Array:
        """(S, h) continuous ranked probability score: the integral of (F(x) - [x >= y])^2."""
        outcomes = read_floats(y, "y")
        scores = self._compute_by_blocks(lambda some, which: some._crps(outcomes[which]))
        return self._open(scores, np.abs(outcomes))

    # ---- inner ---------------------------------------------------------------------------------

    @property
    def _ends(self) -> Array:
        """(2, S, 1) bounds, infinite where there is none."""
        if self.bounds is None:
            return np.array([-np.inf, np.inf])[:, None, None]
        return self.bounds[:, :, None]

    def _open(self, values: Array, there: Any = 0.0) -> Array:
        """Values (..., S, h) of steps, others at those that are closed."""
        return values if self.closed is None else np.where(self.closed, there, values)

    def _moments(self, part: Component) -> tuple[Array, Array]:
        return part.moments() if self.bounds is None else part.censored_moments(self.bounds)

    def _mix(self, of: Callable[[Component], Array]) -> Array:
        total: Any = 0.0
        for number, part in enumerate(self.components):
            weight = self.weights[:, number, None]
            if weight.any():
                total = total + np.where(weight > 0.0, weight * of(part), 0.0)
        return np.asarray(total)

    def _compute_by_blocks(self, of: Callable[[Marginals, slice], Array]) -> Array:
        numbers = sum(part.mean.shape[1] * part.mean.shape[2] for part in self.components)
        share = max(1, BLOCK // max(1, numbers))
        if len(self.weights) <= share:
            return of(self, slice(None))
        parts = [slice(start, start + share) for start in range(0, len(self.weights), share)]
        return np.concatenate([of(self.select(which), which) for which in parts])

    def select(self, which: slice | Indices) -> Marginals:
        """Return the mixtures of some of the series."""
        bounds = None if self.bounds is None else self.bounds[:, which]
        parts = [part.part(which) for part in self.components]
        closed = None if self.closed is None else self.closed[which]
        return Marginals(parts, self.weights[which], bounds, closed)

    def _score(self, y: Array) -> tuple[Array, Array]:
        """Distribution function and density (S, h) at ``y`` (S, h)."""
        cdf, density = self._cells.score(np.ascontiguousarray(y).reshape(-1, 1))
        return cdf.reshape(y.shape), density.reshape(y.shape)

    def _quantile(self, q: Array) -> Array:
        return self._cells.quantile(q.reshape(-1), QUANTILE_TOLERANCE).reshape(q.shape)

    @cached_property
    def _cells(self) -> SeriesStepMarginals:
        parts = []
        for kind in dict.fromkeys((part.log, part.scale) for part in self.components):
            some = [
                (part, np.broadcast_to(weight[:, None, None] / part.mean.shape[1], part.mean.shape))
                for part, weight in zip(self.components, self.weights.T, strict=True)
                if (part.log, part.scale) == kind and weight.any()
            ]
            if some:
                weights = np.concatenate([share for _, share in some], axis=1)
                means = np.concatenate([part.mean for part, _ in some], axis=1)
                sds = np.concatenate([part.sd for part, _ in some], axis=1)
                # What is not known is no number, and not left out.
                weights[np.isnan(means) & (weights > 0.0)] = np.nan
                counts = weights > 0.0
                means, sds = np.where(counts, means, 0.0), np.where(counts, sds, 1.0)
                precisions = 1.0 / np.maximum(sds, 1.0 / POINT_MASS_PRECISION)
                weights, means, precisions = map(_flatten_cells, (weights, means, precisions))
                parts.append(Normals(kind[0], weights, means, precisions, kind[1]))
        return SeriesStepMarginals(parts)

    def _crps(self, y: Array) -> Array:
        """Integrate by Gauss-Legendre on either side of the outcome, out to negligible tails.

        In u, x = median + s sinh(u), s the standard deviation of a normal as high as the median's
        density: nodes are as dense as the mass, and reach far into long tails.
        """
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
        shape, y = y.shape, y.reshape(-1)
        cells = self._cells
        low, high = (
            cells.quantile(np.full(len(y), q), 0.5 * TAIL_PROBABILITY)
            for q in (TAIL_PROBABILITY, 1.0 - TAIL_PROBABILITY)
        )
        median = cells.quantile(np.full(len(y), 0.5), 0.01)
        with np.errstate(divide="ignore"):
            unit = 1.0 / (ROOT_2_PI * cells.score(median[:, None])[1][:, 0])
        unit = np.clip(unit, 1e-6 * (high - low) + 1e-300, high - low + 1e-300)
        least, most = np.broadcast_to(self._ends, (2, *shape)).reshape(2, -1)
        low, high = np.clip(low, least, most), np.clip(high, least, most)
        # Between the outcome and the point mass the integrand is 1.
        total = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        ends = np.stack([low, np.clip(y, low, high), high])
        first, middle, last = np.arcsinh((ends - median) / unit)
        left = first[:, None] + (middle - first)[:, None] * nodes
        right = middle[:, None] + (last - middle)[:, None] * nodes
        u = np.hstack([left, right])
        cdf = cells.score(median[:, None] + unit[:, None] * np.sinh(u))[0]
        each = np.square(np.hstack([cdf[:, :NODES], 1.0 - cdf[:, NODES:]])) * np.cosh(u)
        total += unit * (middle - first) * (each[:, :NODES] @ weights)
        total += unit * (last - middle) * (each[:, NODES:] @ weights)
        return total.reshape(shape)


def scale_spread(part: Component, factor: float | Array) -> Component:
    """The same with other spreads; ``factor`` may be one for each series (S, 1)."""
    factor = np.reshape(factor, (-1, 1, 1))
    centre = part.mean.mean(axis=1, keepdims=True)
    return replace(part, mean=centre + factor * (part.mean - centre), sd=factor * part.sd)


def compute_normal_crps(
    mean: Array, sd: Array, y: Array, *, log: bool, scale: LogScale = LOGARITHMS
) -> Array:
    """CRPS of one normal, of values or their logarithms, by which forms are weighted.

    Of values in closed form (Gneiting and Raftery 2007, eq. 21). Outcomes that are not observed
    have NaN.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if log:
            return scale.crps(mean, sd, y)
        sd = np.maximum(sd, 1e-300)
        z = (y - mean) / sd
        height = np.exp(-0.5 * z * z) / ROOT_2_PI
        return np.asarray(sd * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * height - 1.0 / np.sqrt(np.pi)))


def _flatten_cells(values: Array) -> Array:
    """(S, K, h) as (S h, K)."""
    return np.ascontiguousarray(np.swapaxes(values, 1, 2).reshape(-1, values.shape[1]))
