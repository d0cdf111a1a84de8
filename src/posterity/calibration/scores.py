"""Normal scores of targets under a model's predictions, and their inverse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from posterity.aliases import Array, Mask
from posterity.distributions.location_scale import LocationScale
from posterity.kernel import normal_scores, targets_at


class PredictionScales(NamedTuple):
    """Centre and spread of predictions, (n,) or (1,) for all; df where they are Student-t."""

    loc: Array
    scale: Array
    df: Array | None

    @classmethod
    def of(cls, distribution: Any) -> PredictionScales:
        """Location and scale where there are, mean and standard deviation of all others."""
        df: Array | None = None
        if isinstance(distribution, LocationScale):
            df = getattr(distribution, "df", None)
            given = (distribution.loc, distribution.scale)
        else:
            given = (distribution.mean(), distribution.std())
        loc, scale = (np.ascontiguousarray(np.atleast_1d(value)) for value in given)
        return cls(loc, scale, None if df is None else np.ascontiguousarray(np.atleast_1d(df)))

    def usable(self) -> Mask:
        """Return True for predictions that are neither flat nor certain."""
        usable = (self.scale > 0.0) & (self.scale < np.inf)
        return usable if self.df is None else usable & (self.df > 0.0)

    def scores(self, y: Array, weights: Array | None) -> Array:
        """Scores (n,) of targets; NaN where there is none, or a weight is 0."""
        return normal_scores(np.ascontiguousarray(y), self.loc, self.scale, self.df, weights)

    def targets(self, scores: Array) -> Array:
        """The inverse: targets (n,) at given scores, (n,) or (1,) for all."""
        return targets_at(scores, self.loc, self.scale, self.df)
