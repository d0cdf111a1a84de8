"""Statistics that a posterior of mean and noise keeps beside those two posteriors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from posterity.posteriors._site_start import StartRows
from posterity.posteriors.generalized import GeneralizedPosterior

Array = NDArray[np.float64]


@dataclass
class NoiseStatistics:
    """State beside the two posteriors.

    ``centre`` (m,) is the mean of the features over the rows that the mean's factor holds, and
    ``level`` that of the log precisions they were weighed with. ``rule`` is what rows of a stream
    are weighed by: the spread as it was when the clock's second number was set, and the centre and
    level at that time, ``at`` and ``at_level``; ``clock`` counts rows. ``log_predictive`` sums the
    log densities. ``start`` are the first rows of a stream, kept to be fitted together again.
    """

    centre: Array
    rule: GeneralizedPosterior
    at: Array
    clock: NDArray[np.int64]
    level: float = 0.0
    at_level: float = 0.0
    log_predictive: float = 0.0
    start: StartRows | None = None

    @classmethod
    def before_data(cls, spread: GeneralizedPosterior, n_features: int) -> Self:
        """Return the statistics of no rows."""
        return cls(
            np.zeros(n_features), spread.copy(), np.zeros(n_features), np.zeros(2, dtype=np.int64)
        )

    def move(self, centre: Array, level: Array | float, count: float, held: float) -> None:
        """Let the means know of rows of this weight in all that is held; below 0 they have left."""
        share = min(count / max(held, 1e-300), 1.0)
        self.centre = self.centre + (centre - self.centre) * share
        self.level += (float(level) - self.level) * share

    def copy(self) -> NoiseStatistics:
        """An independent copy."""
        return replace(self, centre=self.centre.copy(), clock=self.clock.copy())

    def copy_from(self, other: NoiseStatistics) -> None:
        """Take over all of another one."""
        self.__dict__.update(other.copy().__dict__)
