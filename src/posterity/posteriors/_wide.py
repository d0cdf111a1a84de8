"""What the posteriors of many features have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array
from posterity.likelihoods import Gaussian, Likelihood
from posterity.posteriors._centres import Centres, subtract_centres
from posterity.posteriors._sparse_rows import Observations, SparseRows
from posterity.transaction import Undo

Numbers = NDArray[np.int32]
# Adds products of two active features to rows whose numbers are centred there.
Pairs = Callable[[SparseRows, Centres], SparseRows]


class ManyFeatures:
    """Base of posteriors of many features, of which a row has few.

    Feature and column 0 are the intercept's.
    """

    likelihood: Likelihood
    start: Any  # prior precisions that columns begin with
    learns: bool
    intercept: bool
    noise: tuple[float, float] | None  # shape and rate of the prior, where it is learned
    owners: Numbers  # (P,) the column of each feature
    squares: Array  # (columns, 2) sum of squares of a column's values, and their number
    n_observations: float
    n_effective: float
    centres: Centres

    @property
    def known_precision(self) -> float:
        """The precision of noise that is known; 1 of labels and counts, which have none."""
        return self.likelihood.precision if isinstance(self.likelihood, Gaussian) else 1.0

    def set_owners(self, rows: SparseRows, undo: Undo) -> None:
        """Have the features of rows in the columns that these say."""
        undo.keep_entries(self.owners, rows.features)
        self.owners[rows.features] = 1 if rows.columns is None else rows.columns

    def centre_rows(self, rows: SparseRows, centres: Centres, pairs: Pairs | None) -> SparseRows:
        """The rows with their numbers centred, and with ``pairs`` of what is then active."""
        rows = subtract_centres(rows, centres, self.owners)
        return rows if pairs is None else pairs(rows, centres)

    def count(self, data: Observations) -> None:
        """Count rows that are learned."""
        left, weights = data.left
        self.n_observations += float(data.own_weights.sum())
        self.n_effective = self.n_effective * left + float(weights.sum())

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior."""
        mine, theirs = (
            (one.likelihood, one.learns, one.intercept, one.noise) for one in (self, other)
        )
        return mine == theirs and np.array_equal(self.start, other.start)

    def copy(self) -> Self:
        """An independent copy."""
        arrays: dict[str, Any] = {
            k: v.copy() for k, v in vars(self).items() if isinstance(v, np.ndarray | Centres)
        }
        return replace(self, **arrays)  # type: ignore[type-var]


def hypothesis_weights(scores: Array) -> Array:
    """Probabilities (..., members) by sums of log densities."""
    shares = np.exp(scores - np.maximum.reduce(scores, axis=-1, keepdims=True))
    return np.asarray(shares / np.add.reduce(shares, axis=-1, keepdims=True))


def match_moments(mean: Array, variance: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and variance (n,) of mixtures (n, members)."""
    if mean.shape[1] == 1:
        return mean[:, 0], variance[:, 0]
    centre = np.add.reduce(weights * mean, axis=1)
    spread = variance + np.square(mean - centre[:, None])
    return centre, np.add.reduce(weights * spread, axis=1)


__all__ = ["ManyFeatures", "Pairs", "hypothesis_weights", "match_moments"]
