"""The prior that groups share, and the values computed from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posterity.aliases import Array, Mask
from posterity.evidence.group_noises import GivenPrior, let_noises_differ
from posterity.evidence.group_variances import let_groups_differ
from posterity.evidence.groups import EtaScale, GroupSample, SharedPrior
from posterity.evidence.shared import (
    learn_prior,
    make_unit_information_prior,
)
from posterity.factor import Factor
from posterity.noise import Noise


@dataclass(frozen=True)
class GroupBelief:
    """The given parts of the shared prior: (p,) means, which are learned, and the precision.

    ``precision`` is a factor with it and its means, or None where it is learned: in whole, or with
    ``unit``, the scales of the features alone, whose coefficients get the information of one row.
    """

    mean: Array
    free: Mask
    precision: Factor | None
    unit: bool = False

    def is_same(self, other: GroupBelief) -> bool:
        """Return True if the same is given, and the same is learned."""
        triangles: list[Any] = [
            None if one.precision is None else one.precision.triangle for one in (self, other)
        ]
        return (
            self.unit == other.unit
            and np.array_equal(self.mean, other.mean)
            and np.array_equal(self.free, other.free)
            and np.array_equal(*triangles)
        )

    @property
    def learns_covariance(self) -> bool:
        """True if the covariance over groups is learned, including columns that never varied."""
        return self.precision is None and not self.unit

    def prior(
        self,
        sample: GroupSample,
        noise: Noise,
        *,
        intercept: bool,
        tolerance: float,
        near: SharedPrior | None = None,
        scale: EtaScale | None = None,
    ) -> SharedPrior:
        """The prior that the groups share; the search for it may begin near another one."""
        precision, differ = self.precision, scale is None and sample.is_whole
        if self.unit:
            precision = make_unit_information_prior(sample, self.mean, intercept=intercept)
        if precision is not None:
            given = GivenPrior.of(sample, precision, self.free, scale)
            return let_noises_differ(given, noise) if differ else given.share()

        def learn(sample: GroupSample, near: SharedPrior | None) -> SharedPrior:
            return learn_prior(
                sample,
                noise,
                self.mean,
                self.free,
                intercept=intercept,
                tolerance=tolerance,
                near=near,
                scale=scale,
            )

        prior = learn(sample, near)
        return let_groups_differ(prior, sample, noise, learn) if differ else prior


@dataclass(frozen=True)
class PriorAndNoise:
    """The prior and the noise that predictions of groups use.

    ``residual_df`` observations are left for the noise: their count less the flat directions.
    """

    prior: SharedPrior
    residual_df: float
    residual: float


__all__ = ["GroupBelief", "PriorAndNoise"]
