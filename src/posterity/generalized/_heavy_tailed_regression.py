"""Base of robust and quantile regression: an estimator around a reweighted posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from posterity.generalized._heavy_tails import HeavyTailedPosterior
from posterity.generalized._noise_tally import NoiseSums
from posterity.generalized._working_noise import WorkingNoise
from posterity.linear.regression import GaussianRegression
from posterity.noise import KnownNoise
from posterity.posteriors import LinearPosterior


@dataclass(kw_only=True, eq=False, repr=False)
class HeavyTailedRegression(GaussianRegression):
    """A linear model whose rows are reweighted; see the two that there are."""

    noise_scale: float | None = None
    _noise_parameter: ClassVar[str | None] = "noise_scale"
    _n_waves: ClassVar[int | None] = 60

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def noise_scale_(self) -> Any:
        """Scale of the noise, given or learned, in units of the target."""
        scale = (
            np.asarray(self._posterior.average_of(lambda one: one.noise_scale)) * self._scale_unit
        )
        return scale if scale.ndim else float(scale)

    # ---- inner -----------------------------------------------------------------------------------

    # The noise's scale in units of the inner posterior's.
    _scale_unit = 1.0

    def _working_noise(self) -> WorkingNoise:
        raise NotImplementedError  # each model says

    def _before_data(self) -> LinearPosterior:
        scale = self.noise_scale
        if scale is not None and not 0.0 < scale < math.inf:
            raise ValueError(
                f"noise_scale is {scale}: it must be positive and finite, or None to learn it"
            )
        if scale is not None:
            scale /= self._scale_unit
        # Rows and prior are relative to the noise; one node of the prior's precision is enough.
        inner = super()._before_data().copy_for_average()
        return self._kind.wrap(inner, self._make_sums(scale, inner.n_flat))

    def _make_sums(self, known_scale: float | None, n_flat: int) -> NoiseSums:
        return NoiseSums(self._working_noise(), known_scale, n_flat)

    _kind: ClassVar[type[HeavyTailedPosterior]] = HeavyTailedPosterior

    def _noise(self) -> KnownNoise:
        """The noise in whose units the prior is stated."""
        if self.noise_scale is None:
            return KnownNoise(1.0)
        return KnownNoise((self.noise_scale / self._scale_unit) ** -2.0)
