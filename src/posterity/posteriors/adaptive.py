"""An average over posteriors whose noise is learned apart from what they know of coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from posterity.distributions import MultivariateMixture, MultivariateT, Normal, StudentT
from posterity.kernel import MemberNoises
from posterity.noise import Joint, JointOfOne, LearnedNoise
from posterity.posteriors._noise_memories import NoiseMemories, make_member_noises
from posterity.posteriors.averaged import AveragedPosterior
from posterity.posteriors.ensemble import Ranks, rank_predictions

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AdaptivePosterior(AveragedPosterior):
    """Model average as :class:`AveragedPosterior`; each member's noise has memories of its own.

    A posterior that forgets coefficients at some rate would forget its noise at the same: after a
    jump the long memories' noise is too large for long, and the short ones' rests on a few rows.
    Here members predict in units of the noise (``UnitNoise``), and what the unit is they learn from
    their errors: see :class:`NoiseMemories`. The factor is in those units anyway.
    """

    noises: tuple[NoiseMemories, ...] = field(default=(), repr=False)

    @classmethod
    def wrap(
        cls, runs: Sequence[Any], persistence: tuple[float, ...], outer_persistence: float
    ) -> Self:
        """Average over ``runs``, which have seen nothing and predict in units of the noise."""
        average = super().wrap(runs, persistence, outer_persistence)
        return replace(average, noises=tuple(NoiseMemories() for _ in runs))

    def copy(self) -> Self:
        """An independent copy."""
        return replace(super().copy(), noises=tuple(noise.copy() for noise in self.noises))

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        super().copy_from(other)
        for noise, saved in zip(self.noises, other.noises, strict=True):
            noise.copy_from(saved)

    @property
    def noise_precision(self) -> float:
        """Average of what the members have learned."""
        variances = np.array([self._noise_of(i)[1] for i in range(len(self.runs))])
        with np.errstate(divide="ignore"):
            return float(self.weights @ (1.0 / variances))

    def joint(self, *names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        joints: list[JointOfOne] = []
        for i, run in enumerate(self.runs):
            one, (df, variance) = cast(JointOfOne, run.joint(*names)), self._noise_of(i)
            root, scale = one.precision_root, variance**0.5
            joints.append(MultivariateT(df, one.mean, root, scale, names=names[0]))
        return MultivariateMixture(joints, self.weights)

    def _noise_of(self, i: int) -> tuple[float, float]:
        return self.noises[i].now(cast(LearnedNoise, self.noise))

    def _fast_path_noises(self) -> tuple[MemberNoises, float]:
        noise = cast(LearnedNoise, self.noise)
        return make_member_noises(self.noises, noise, self.n_coefficients), 1.0

    def _predict_member(self, i: int, X: Array, *offsets: Array) -> StudentT:
        return _rescale_to_noise(super()._predict_member(i, X, *offsets), *self._noise_of(i))

    def _rank(self, i: int) -> int:
        nothing = np.zeros((1, self.n_coefficients - int(self.intercept)))
        return int(rank_predictions(self._predict_member(i, nothing))[0])

    def _learn_members(self, X: Array, *others: Any) -> tuple[list[Any], Array, Ranks]:
        y, weights, *_ = others
        loc, scale = np.empty((2, len(self.runs), len(X)))

        def learn(i: int) -> None:
            unit = self.runs[i].predict_then_learn(X, *others)
            loc[i], scale[i] = unit.loc, unit.scale

        self._run_members(learn, len(X))
        noises, _ = self._fast_path_noises()
        df, densities, ranks = noises.score(y[:, 0], loc, scale, weights)
        return [StudentT(*each) for each in zip(df, loc, scale, strict=True)], densities, ranks


def _rescale_to_noise(unit: Normal, df: Array | float, variance: Array | float) -> StudentT:
    """Rescale predictions in units of the noise by its variance, as far as that is known."""
    with np.errstate(invalid="ignore"):
        scale = unit.scale * np.sqrt(variance)
    scale[np.isnan(scale)] = np.inf  # without noise so far, an unknown direction is still unknown
    return StudentT(df, unit.loc, scale)
