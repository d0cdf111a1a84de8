"""Results of a vector autoregression: forecasts of all signals, and impulse responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from posterity.aliases import AnyArray, Array
from posterity.forecasting.calendar import Calendar
from posterity.forecasting.forecast import choose_steps
from posterity.forecasting.marginals import Marginals
from posterity.forecasting.steps import StepDistribution, StepsAhead
from posterity.kernel.values import read_floats


@dataclass(frozen=True, eq=False, repr=False)
class VectorForecast(StepsAhead):
    """The joint distribution of the next h steps of q signals: K Gaussians, equally probable.

    Attributes
    ----------
    ids : tuple
        Names of the signals.
    times : (q, h) array
    paths : (K, h, q) array
        Means.
    responses : (K, h, q, q) array
        What a unit shock of the second signal (in the order given) adds to the first, so many
        steps later.
    """

    paths: Array
    responses: Array

    @classmethod
    def of(
        cls,
        ids: tuple[Any, ...],
        times: AnyArray,
        paths: Array,
        responses: Array,
        calendar: Calendar,
    ) -> VectorForecast:
        """Return the forecast of sample paths of the means and of impulse responses."""
        sd = np.sqrt(np.cumsum(np.square(responses).sum(axis=3), axis=1))
        marginals = Marginals.of_normals(
            np.transpose(paths, (2, 0, 1)), np.transpose(sd, (2, 0, 1))
        )
        return cls(ids, marginals, False, times, calendar, paths, responses)

    def rvs(self, size: int = 1000, random_state: Any = None, *, rng: Any = None) -> Array:
        """Sample paths (size, q, h): signals and steps are jointly drawn."""
        rng = np.random.default_rng(random_state if rng is None else rng)
        count, h, q = self.paths.shape
        which = rng.integers(count, size=size)
        shocks = rng.standard_normal((size, h, q))
        drawn = self.paths[which].copy()
        for lag in range(h):
            drawn[:, lag:] += np.einsum(
                "kij,ktj->kti", self.responses[which, lag], shocks[:, : h - lag]
            )
        return np.swapaxes(drawn, 1, 2)

    def total(self, steps: slice | int | None = None) -> StepDistribution:
        """The sum over steps, all by default or the first ``steps``, of each signal."""
        h = self.paths.shape[1]
        weights = np.zeros(h)
        weights[choose_steps(steps, h)] = 1.0
        variance = sum(
            np.square(np.einsum("klij,l->kij", self.responses[:, : h - t], weights[t:])).sum(axis=2)
            for t in range(h)
        )
        mean = np.einsum("khi,h->ki", self.paths, weights)
        marginals = Marginals.of_normals(mean.T[:, :, None], np.sqrt(variance).T[:, :, None])
        return StepDistribution(self.ids, marginals, False)

    def joint_logpdf(self, y: ArrayLike) -> float:
        """Log density of one path ``y`` (q, h) of all signals, steps together.

        Under each draw the shocks that the path needs are independent standard normals. Raises
        ``ValueError`` where a signal was constant: it has no density.
        """
        fixed = np.flatnonzero(~self.responses[:, 0].any(axis=(0, 2)))
        if len(fixed):
            raise ValueError(
                f"series {self.ids[fixed[0]]!r} was constant, and its forecast has no density: "
                "leave it out"
            )
        off = read_floats(y, "y").T - self.paths
        count, h, q = off.shape
        shocks, root = np.zeros((count, h, q)), self.responses[:, 0]
        for step in range(h):
            known = sum(
                np.einsum("kij,kj->ki", self.responses[:, step - t], shocks[:, t])
                for t in range(step)
            )
            shocks[:, step] = np.linalg.solve(root, (off[:, step] - known)[:, :, None])[:, :, 0]
        sizes = np.linalg.slogdet(root)[1]
        logs = -0.5 * np.square(shocks).sum(axis=(1, 2)) - h * sizes
        return float(logsumexp(logs) - np.log(count) - 0.5 * h * q * np.log(2.0 * np.pi))

    def covariance(self) -> Array:
        """(h, q, q) covariances of the signals, step by step."""
        shocks = np.einsum("khij,khlj->hil", self.responses, self.responses) / len(self.paths)
        off = self.paths - self.paths.mean(axis=0)
        return np.cumsum(shocks, axis=0) + np.einsum("khi,khj->hij", off, off) / len(off)


@dataclass(frozen=True, eq=False)
class ImpulseResponses:
    """Responses of all signals, 0 to h steps later, to one standard deviation of a signal's shock.

    Shocks are orthogonal in the order of the signals: an early one moves later ones at once.

    Attributes
    ----------
    ids : tuple
        Names of the signals.
    draws : (K, h + 1, q, q) array
        [k, step, i, j]: of signal i to the shock of j.
    """

    ids: tuple[Any, ...]
    draws: Array

    def median(self) -> Array:
        """(h + 1, q, q) medians."""
        return np.asarray(np.median(self.draws, axis=0))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Ends (h + 1, q, q) of the bands that hold each response with probability ``level``."""
        low, high = np.quantile(self.draws, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
        return low, high
