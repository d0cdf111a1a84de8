"""The map that recalibrates a model: frequencies of targets by their predictive cdf."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posterity.aliases import Array, Indices
from posterity.calibration.recalibrated_distribution import N_BINS, WIDTHS, find_bin

# Rows between two maps. A map for each row would take as much memory as the rows themselves.
REFRESH = 50


@dataclass
class ProbabilityMap:
    """State: rows by bin, as they have faded, and those since the map was made.

    The probability of a bin is (trust width + rows in it) / (trust + rows): a Dirichlet posterior
    around the model's own. Rows fade by 1 - 1/memory with each row.
    """

    trust: float
    discount: float
    counts: Array
    waiting: Array
    clock: int = 0

    @classmethod
    def start(cls, memory: float, trust: float) -> ProbabilityMap:
        """Return the map before any row."""
        return cls(trust, (1.0 - 1.0 / memory) ** REFRESH, np.zeros(N_BINS), np.zeros(N_BINS))

    def masses(self) -> Array:
        """(B,) the map that holds now."""
        return self._compute_masses(self.counts[None])[0]

    def learn(self, probabilities: Array, weights: Array) -> tuple[Array, Indices]:
        """Learn probabilities (n,) of the targets, in order; rows of weight 0 are ignored.

        Returns
        -------
        masses : (S, B) array
            The maps that held along the rows.
        which : (n,) array of int
            The map of each row, before it was learned.
        """
        counted = weights > 0.0
        before = self.clock + np.cumsum(counted) - counted
        block = before // REFRESH - self.clock // REFRESH
        n_done = (self.clock + int(counted.sum())) // REFRESH - self.clock // REFRESH
        place = block[counted] * N_BINS + find_bin(probabilities[counted])
        summed = np.bincount(place, weights[counted], (n_done + 1) * N_BINS)
        rows = summed.astype(np.float64).reshape(-1, N_BINS)  # of no rows at all: whole numbers
        rows[0] += self.waiting
        counts = np.empty((n_done + 1, N_BINS))
        counts[0] = self.counts
        for k in range(n_done):
            counts[k + 1] = self.discount * counts[k] + rows[k]
        self.counts, self.waiting = counts[-1].copy(), rows[-1]
        self.clock += int(counted.sum())
        return self._compute_masses(counts), block.astype(np.intp)

    def _compute_masses(self, counts: Array) -> Array:
        total: Array = self.trust * WIDTHS + counts
        return total / total.sum(axis=1, keepdims=True)
