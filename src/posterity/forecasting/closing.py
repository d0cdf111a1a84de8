"""Days on which a series is always 0, as a shop is on Sundays and on holidays.

They are known ahead: by their place in a season, or by a column that says what day it is. Forms do
not learn them, as if they were not observed, so that logarithms are a scale, and effects of other
days are multiplied. What is forecast there is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Indices, Mask

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Closing:
    """Places (S, m) of each season of ``periods`` that are closed, and columns (S, c)."""

    periods: tuple[int, ...]
    places: tuple[Mask, ...]
    columns: Mask

    @property
    def any(self) -> bool:
        """Whether something is closed."""
        return bool(self.columns.any() or any(place.any() for place in self.places))

    def find(self, index: Index, columns: Array) -> Mask:
        """(S, n) which steps, by their numbers (S, n) and columns (S, n, c), are closed."""
        closed = np.einsum("snc,sc->sn", np.nan_to_num(columns) == 1.0, self.columns)
        for m, places in zip(self.periods, self.places, strict=True):
            closed = closed | np.take_along_axis(places, index % m, axis=1)
        return np.asarray(closed)

    def only(self, some: Mask) -> Closing:
        """The same of the series that are in ``some`` (S,)."""
        return replace(
            self,
            places=tuple(place & some[:, None] for place in self.places),
            columns=self.columns & some[:, None],
        )

    def part(self, which: Indices) -> Closing:
        """Return what is closed of some of the series."""
        return replace(
            self, places=tuple(place[which] for place in self.places), columns=self.columns[which]
        )
