"""Ways to forget side by side, each of which may be several hypotheses itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.kernel import RowPath
from posterity.posteriors._member_paths import MemberPaths
from posterity.posteriors.ensemble import HAS_VARIANCE, Ranks
from posterity.posteriors.memory import Several
from posterity.posteriors.new_columns import NewColumns
from posterity.posteriors.switching import Switching

# A Student-t of no more degrees of freedom has no variance.
LEAST_RESIDUAL_DF = 2


@dataclass
class Strategies(Switching):
    """Averages of whole ways to forget: a member has its own noise, and any kind of hypotheses."""

    memory = Several(
        "Adaptive",
        why_not_merge="the weights of its strategies depend on the order of all rows; fit all "
        "rows in one model",
    )

    @property
    def common(self) -> Any:
        """The first strategy: all share its prior."""
        return self.members[0]

    @property
    def n_waiting(self) -> float:  # type: ignore[override]
        """Rows for which all members but the first wait: until their noise has a variance."""
        return float(self.common.n_coefficients + LEAST_RESIDUAL_DF)

    def _open_path(self, reader: RowPath) -> RowPath:
        return cast(RowPath, MemberPaths(reader, self))

    def _rank(self, predictions: list[Any], densities: Array, weights: Array | None) -> Ranks:
        # Where a direction is open a row adds nothing to the evidence.
        each = np.ones(densities.shape[1]) if weights is None else weights
        before = self.n_observations - np.cumsum(each[::-1])[::-1]
        return self._rank_after(before) * (densities != 0.0).astype(np.uint8)

    def _rank_after(self, count: Array) -> Ranks:
        """(k, n) after so many rows (n,): all wait for the first until their noise has a variance.

        Its prior may be learned, and theirs be flat.
        """
        ranks = np.full((len(self.members), len(count)), HAS_VARIANCE, dtype=np.uint8)
        ranks[1:, count <= self.n_waiting] = 0
        return ranks

    def average(self, read: Callable[[Any], ArrayLike]) -> Any:
        """Weighted average of ``read`` of the members, and of theirs."""
        return super().average(lambda one: one.average_of(read))

    def widen_from(self, other: Self, columns: NewColumns, widen: Any) -> None:
        """Know what ``other`` does, of other columns.

        A slope that is new begins to move from what is known where none moves, the first member.
        """
        p = self.common.n_coefficients
        memories = [one.memory.widened(columns.places, p) for one in other.members]
        for i, mine in enumerate(self.members):
            k = memories.index(mine.memory) if mine.memory in memories else 0
            widen(mine, other.members[k], columns)
            self.scores.members[:, i] = other.scores.members[:, k]
        self.scores.rates[:] = other.scores.rates
        self.scores.log_evidence = other.scores.log_evidence

    def ahead(self) -> tuple[Sequence[Any], Array]:
        """The members, and their weights (k,) for the next row."""
        ranks = self._rank_after(np.array([self.n_observations]))
        if self.common.common.never_varied().any():  # of which flat priors know nothing at all
            ranks[1:] = 0
        return self.members, self._weigh(np.zeros(ranks.shape), ranks, self.scores.copy())[0][0]
