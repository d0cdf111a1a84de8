"""The noise of one member of an average, learned from how it predicted, at several memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from posterity.kernel import MemberNoises
from posterity.noise import LearnedNoise

Array = NDArray[np.float64]

# Memories in rows. Only the first does not cap errors: it finds noise that has grown by orders of
# magnitude in one row, and forgets an outlier after a few rows.
MEMORIES = np.array([5.0, 10.0, 40.0, 160.0, 640.0, 2560.0])
RATES = 1.0 - 1.0 / MEMORIES
# Variances that a squared error counts for at most: five standard deviations.
CAPS = np.array([1e150, 25.0, 25.0, 25.0, 25.0, 25.0])
# Errors are not capped while coefficients are undetermined, nor in this many rows after.
UNCAPPED_ROWS = 5.0
# Discount of the scores of each memory.
PERSISTENCE = 0.99


@dataclass
class NoiseMemories:
    """State: the noise estimate of each memory, and its log predictive density.

    ``state`` (4, m) holds, for each of m memories, the faded sums of squared errors (each relative
    to what its variance would be if the noise's were 1) and of their weights, a discounted sum of
    log densities, and how much weight was ever seen.

    Each memory tells an inverse-gamma distribution of the noise's variance; together they are a
    mixture, for which the one stands whose logarithm has the same mean and variance, but no heavier
    tails than the shortest memory's.
    """

    state: Array = field(default_factory=lambda: np.zeros((4, len(MEMORIES))))

    def copy(self) -> NoiseMemories:
        """An independent copy."""
        return NoiseMemories(self.state.copy())

    def copy_from(self, other: NoiseMemories) -> None:
        """Take over what another one knows."""
        self.state[...] = other.state

    def now(self, noise: LearnedNoise) -> tuple[float, float]:
        """Return degrees of freedom and variance of the noise of the next row."""
        nothing, scale = np.zeros(1), np.ones((1, 1))
        df, _, _ = make_member_noises([self.copy()], noise, 0).score(
            nothing, nothing[None], scale, nothing
        )
        return float(df[0, 0]), float(scale[0, 0]) ** 2


def make_member_noises(
    memories: Sequence[NoiseMemories], noise: LearnedNoise, n_coefficients: int
) -> MemberNoises:
    """A kernel object that follows the noises of all members, in the memories of each."""
    return MemberNoises(
        [each.state for each in memories],
        RATES,
        CAPS,
        UNCAPPED_ROWS + n_coefficients,
        PERSISTENCE,
        (2.0 * noise.shape, 2.0 * noise.rate),
    )
