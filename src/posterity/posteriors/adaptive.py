"""An average over posteriors whose noise is learned apart from what they know of coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from posterity.distributions import MultivariateMixture, MultivariateT, Normal, StudentT
from posterity.noise import Joint, JointOfOne, LearnedNoise
from posterity.posteriors._noise_memories import NoiseMemories
from posterity.posteriors.averaged import AveragedPosterior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AdaptivePosterior(AveragedPosterior):
    """As :class:`AveragedPosterior`, where each member's noise has memories of its own.

    A posterior that forgets coefficients at some rate would forget its noise at the same: after a
    jump the long memories' noise is too large for long, and the short ones' rests on a few rows.
    Here members predict in units of the noise (``UnitNoise``), and what the unit is they learn from
    their errors: see :class:`NoiseMemories`. The factor is in those units anyway.
    """

    noises: tuple[NoiseMemories, ...] = field(default=(), repr=False)

    @classmethod
    def around(
        cls, runs: Sequence[Any], persistence: tuple[float, ...], outer_persistence: float
    ) -> Self:
        """Average over ``runs``, which have seen nothing and predict in units of the noise."""
        average = super().around(runs, persistence, outer_persistence)
        return replace(average, noises=tuple(NoiseMemories() for _ in runs))

    def copy(self) -> Self:
        """The same knowledge, to go its own way."""
        return replace(super().copy(), noises=tuple(noise.copy() for noise in self.noises))

    def become(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        super().become(other)
        for noise, saved in zip(self.noises, other.noises, strict=True):
            noise.become(saved)

    @property
    def noise_precision(self) -> float:
        """Average of what the members have learned."""
        variances = np.array([self._noise_of(i)[1] for i in range(len(self.runs))])
        with np.errstate(divide="ignore"):
            return float(self.weights @ (1.0 / variances))

    def joint(self, names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        joints: list[JointOfOne] = []
        for i, run in enumerate(self.runs):
            one, (df, variance) = cast(JointOfOne, run.joint(names)), self._noise_of(i)
            root, scale = one.precision_root, variance**0.5
            joints.append(MultivariateT(df, one.mean, root, scale, names=names))
        return MultivariateMixture(joints, self.weights)

    def _noise_of(self, i: int) -> tuple[float, float]:
        return self.noises[i].now(cast(LearnedNoise, self.noise))

    def _predicted(self, i: int, X: Array, *offsets: Array) -> StudentT:
        return _of_size(super()._predicted(i, X, *offsets), *self._noise_of(i))

    def _learn_member(self, i: int, *rows: Any) -> StudentT:
        unit = super()._learn_member(i, *rows)
        _, y, weights, *_ = rows
        error, spread = y[:, 0] - unit.loc, np.square(unit.scale)
        noise = cast(LearnedNoise, self.noise)
        sizes = self.noises[i].follow(noise, self.n_coefficients, error, spread, weights)
        return _of_size(unit, *sizes)


def _of_size(unit: Normal, df: Array | float, variance: Array | float) -> StudentT:
    """What was predicted in units of a noise of this variance, as far as that is known."""
    with np.errstate(invalid="ignore"):
        scale = unit.scale * np.sqrt(variance)
    scale[np.isnan(scale)] = np.inf  # without noise so far, an unknown direction is still unknown
    return StudentT(df, unit.loc, scale)
