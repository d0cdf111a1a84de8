"""The units of a factorization machine's numbers: where each is centred, and its spread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from posterity.aliases import Array


class Units(NamedTuple):
    """Centres and scales (S,) of columns: 0 and 1 of those that hold levels.

    Centred numbers have little to do with the intercept and the weights of levels. So answers are
    the same wherever a column's zero is.
    """

    centres: Array
    scales: Array

    def apply(self, numbers: Array) -> Array:
        """Numbers (n, S) in these units."""
        return (numbers - self.centres) / self.scales

    def fit(self, values: Array, weights: Array, numeric: list[int]) -> Units:
        """Units in which the ``numeric`` columns of values (n, S) have mean 0 and mean square 1.

        ``values`` are in one's own units.
        """
        centres, scales = self.centres.copy(), self.scales.copy()
        shares = weights / weights.sum()
        for side in numeric:
            # From the first one: a column of one value is exactly constant.
            apart = values[:, side] - values[0, side]
            centre = float(shares @ apart)
            spread = float(np.sqrt(shares @ np.square(apart - centre)))
            centres[side] += scales[side] * (values[0, side] + centre)
            scales[side] *= spread or 1.0
        return Units(centres, scales)

    def convert(self, values: Array, to: Units) -> Array:
        """Values (n, S) in one's own units, in others; no digits are lost if these are near."""
        apart = (self.centres - to.centres) / to.scales
        return np.asarray(values * (self.scales / to.scales) + apart)
