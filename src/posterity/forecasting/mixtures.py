"""Mixtures of normals and lognormals: distribution functions, densities and quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from posterity.aliases import Array, Indices
from posterity.forecasting.bounds import ROOT_2_PI
from posterity.forecasting.log_scale import LARGEST_SD, LOGARITHMS, LogScale
from posterity.kernel import mixture_scores

# Most steps of the search for a quantile.
STEPS = 60


@dataclass(frozen=True, eq=False)
class Normals:
    """Weights, means and inverses of standard deviations of n mixtures of K normals, (n, K) each.

    Of the values themselves or, on a ``scale``, of their logarithms.
    """

    log: bool
    weight: Array
    mean: Array
    precision: Array
    scale: LogScale = LOGARITHMS

    def quantiles(self, u: Array) -> Array:
        """(n, K) values of each normal at the normal scores ``u`` (n,)."""
        sd = 1.0 / self.precision
        if not self.log:
            return np.asarray(self.mean + u[:, None] * sd)
        return self.scale.values(self.mean + u[:, None] * np.minimum(sd, LARGEST_SD))


@dataclass(frozen=True, eq=False)
class SeriesStepMarginals:
    """Mixtures of n cells, a series at a step each, of which some may be asked for."""

    parts: list[Normals]

    def score(self, y: Array, which: Indices | None = None) -> tuple[Array, Array]:
        """Distribution function and density (c, m) at ``y`` (c, m) of the cells ``which`` (c,)."""
        which = np.arange(len(y)) if which is None else which
        cdf, density = np.zeros(y.shape), np.zeros(y.shape)
        for part in self.parts:
            x = part.scale.find(y) if part.log else y
            below, height = mixture_scores(x, which, part.weight, part.mean, part.precision)
            cdf += below
            if part.log:
                slope = part.scale.slopes(y)
                height = height / np.where(slope > 0.0, slope, np.inf)
            density += height
        return cdf, density

    def quantile(self, q: Array, near: float) -> Array:
        """Quantiles (n,) of probability ``q`` (n,), or ``near`` it.

        By Newton's method on the scale of normal scores, within a bracket that always closes.
        """
        answer, low, high = self._bracket_quantiles(ndtri(q))
        left = np.flatnonzero(high > low)
        low, high, level = low[left], high[left], q[left]
        for _ in range(STEPS):
            if not len(left):
                break
            x = answer[left]
            cdf, density = (some[:, 0] for some in self.score(x[:, None], left))
            u = ndtri(np.clip(cdf, 1e-300, 1.0 - 1e-16))
            above = cdf >= level
            high, low = np.where(above, x, high), np.where(above, low, x)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = (ndtri(level) - u) * np.exp(-0.5 * u * u) / (ROOT_2_PI * density)
                inside = (x + step >= low) & (x + step <= high)
            answer[left] = np.where(inside, x + step, 0.5 * (low + high))
            done = (np.abs(cdf - level) < near) | (high - low <= 4e-16 * np.abs(x))
            left, low, high, level = left[~done], low[~done], high[~done], level[~done]
        return answer

    def _bracket_quantiles(self, u: Array) -> tuple[Array, Array, Array]:
        """The weighted mean, the lowest and the highest of all normals' quantiles at ``u`` (n,)."""
        mean, low, high = np.zeros(len(u)), np.full(len(u), np.inf), np.full(len(u), -np.inf)
        for part in self.parts:
            each, counts = part.quantiles(u), part.weight > 0.0
            mean += np.einsum("nk,nk->n", part.weight, each)
            low = np.minimum(low, np.where(counts, each, np.inf).min(axis=1))
            high = np.maximum(high, np.where(counts, each, -np.inf).max(axis=1))
        return np.clip(mean, low, high), low, high
