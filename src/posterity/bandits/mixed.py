"""Expected rewards that are mixtures: of several memories, or of several prior scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from posterity.aliases import Array, Mask
from posterity.bandits.beliefs import Beliefs, StudentBeliefs
from posterity.distributions import Mixture, StudentT, _standard_t
from posterity.kernel import mixture_quantiles


@dataclass(frozen=True)
class MixedBeliefs:
    """Expected rewards of arms with independent posteriors, each a mixture of Student-t.

    What a policy asks most, moments and one quantile, is computed for all arms together.

    Parameters
    ----------
    tables
        (4, M, n, K) weights, degrees of freedom, locations and scales of M components.
    allowed
        (n, K) which arms may be chosen.

    Examples
    --------
    >>> two = np.array([[0.5, 0.5], [5.0, 5.0], [0.0, 2.0], [1.0, 1.0]])[:, :, None]
    >>> one = np.array([[1.0], [9.0], [2.0], [1.0]])[:, :, None]
    >>> beliefs = make_beliefs([two, one], np.ones((1, 2), dtype=bool))
    >>> beliefs.mean.tolist(), beliefs.quantile(0.841).round(2).tolist()
    ([[1.0, 2.0]], [[2.58, 3.06]])
    """

    tables: Array
    allowed: Mask

    are_independent: ClassVar[bool] = True

    @cached_property
    def mean(self) -> Array:
        """(n, K) means."""
        weights, _, loc, _ = self.tables
        return np.asarray((weights * loc).sum(axis=0))

    @cached_property
    def std(self) -> Array:
        """(n, K) standard deviations."""
        weights, df, loc, scale = self.tables
        some = (weights > 0.0) & (scale > 0.0)
        within = np.square(scale, where=some, out=np.zeros_like(scale))
        within[some] *= np.broadcast_to(_standard_t.variance(df), some.shape)[some]
        return np.sqrt((weights * (within + np.square(loc - self.mean))).sum(axis=0))

    @cached_property
    def unknown(self) -> Mask:
        """(n, K) allowed arms of which nothing is known."""
        weights, df, _, scale = self.tables
        flat = (weights > 0.0) & ~((scale < np.inf) & (df > 0.0))
        return np.asarray(self.allowed & flat.any(axis=0))

    @property
    def first(self) -> Mask:
        """(n, K) allowed arms that come before all others."""
        return self.unknown

    def probability_best(self) -> Array:
        """(n, K) probabilities of being the best, by quadrature."""
        return self._apart().probability_best()

    def information_directed_shares(self, n_draws: int, rng: np.random.Generator) -> Array:
        """(n, K) shares of the two arms that pay least for what they tell, by quadrature."""
        return self._apart().information_directed_shares(n_draws, rng)

    def of(self, rows: Mask) -> MixedBeliefs:
        """Return the posteriors in some of the contexts."""
        return MixedBeliefs(self.tables[:, :, rows], self.allowed[rows])

    def scale_deviations(self, by: float) -> Any:
        """The same, all values so many times as far from their means."""
        return self._apart().scale_deviations(by)

    def shift(self, by: Array, allowed: Mask) -> MixedBeliefs:
        """The same, of each of K arms so much more, for arms that are allowed."""
        moved = self.tables.copy()
        moved[2] += by
        return MixedBeliefs(moved, allowed)

    def bound(self, weights: Array, level: float) -> Array:
        """(n,) quantiles of sums over arms with weights (n, K), as of normal distributions."""
        return self._apart().bound(weights, level)

    def quantile(self, level: float) -> Array:
        """(n, K) quantiles."""
        _, df, _, scale = self.tables
        ordinary = (scale > 0.0) & (scale < np.inf) & (df > 0.0)
        return self._solve(level) if ordinary.all() else self._apart().quantile(level)

    def quantile_margins(self, level: float) -> Array:
        """(n, K) quantiles less the means."""
        return np.asarray(self.quantile(level) - self.mean)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """(size, n, K) joint draws."""
        return self._apart().sample(size, rng)

    # ---- inner ---------------------------------------------------------------------------------

    def _solve(self, level: float) -> Array:
        """Quantiles of components that have a scale."""
        tables = self.tables.copy()
        np.minimum(tables[1], _standard_t.MOST_DF, out=tables[1])
        tables = np.ascontiguousarray(tables.reshape(4, tables.shape[1], -1).swapaxes(1, 2))
        return mixture_quantiles(tables, level).reshape(self.allowed.shape)

    def _apart(self) -> Beliefs:
        """The same as a distribution for each arm."""
        weights, *parts = self.tables
        arms = []
        for arm in range(self.allowed.shape[1]):
            some = [part[:, :, arm] for part in parts]
            arms.append(Mixture(list(map(StudentT, *some)), weights[:, :, arm].T))
        return Beliefs(arms, self.allowed)


def make_beliefs(tables: Sequence[Array], allowed: Mask) -> StudentBeliefs | MixedBeliefs:
    """From a table (4, M_k, n) for each arm, of as many components as it has."""
    tables = [table[:, (table[0] > 0.0).any(axis=1)] for table in tables]
    most = max(table.shape[1] for table in tables)
    whole = np.zeros((4, most, *allowed.shape))
    for arm, table in enumerate(tables):
        whole[1:, :, :, arm] = table[1:, :1]
        whole[:, : table.shape[1], :, arm] = table
    if most > 1:
        return MixedBeliefs(whole, allowed)
    df, mean, scale = whole[1:, 0]
    return StudentBeliefs(mean, scale, df, np.ascontiguousarray(allowed))
