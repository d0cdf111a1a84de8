"""The cavity distributions: of each eta before its observation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.likelihoods.observation import Observation
from posterity.likelihoods.site import Sites


class Cavity:
    """Cavity distributions: of each eta before its observation, proper everywhere."""

    def __init__(self, mean: Array, variance: Array, added: Array, flat: Array) -> None:
        self.mean, self.variance, self.added, self.flat = mean, variance, added, flat

    @classmethod
    def of(cls, likelihood: Observation, y: Array, mean: Array, variance: Array) -> Cavity:
        """Make cavities proper: where flat, by a wide normal or by the target itself."""
        open_ = np.isinf(variance)
        vague = likelihood.vague_variance
        filled = np.where(open_, vague, variance)
        if likelihood.is_noise:
            return cls(np.where(open_, y, mean), filled, np.zeros(len(y)), open_)
        added = np.where(open_, 1.0 / vague, 0.0)
        return cls(mean, filled, added, np.zeros(len(y), dtype=bool))

    def with_log_normalizers(self, precision: Array, target: Array, log_normalizer: Array) -> Sites:
        """Return the sites with the cavities' normalizers; flat predictions have log density 0."""
        total = precision + self.added
        with np.errstate(invalid="ignore", divide="ignore"):
            both = (precision * target + self.added * self.mean) / total
        target = np.where(self.added > 0.0, both, target)
        return Sites(total, target, np.where(self.flat, 0.0, log_normalizer))


def as_rows(
    y: ArrayLike, mean: ArrayLike, variance: ArrayLike, weights: ArrayLike | None
) -> tuple[Array, Array, Array, Array]:
    """Return all as arrays (n,); targets of several numbers stay (n, k)."""
    targets = np.array(y, dtype=np.float64, ndmin=1)
    one = targets.ndim == 1
    given = (targets if one else targets[:, 0], mean, variance, 1.0 if weights is None else weights)
    first, mean, variance, weights = (
        np.array(value, dtype=np.float64)
        for value in np.broadcast_arrays(*(np.atleast_1d(value) for value in given))
    )
    return first if one else targets, mean, variance, weights
