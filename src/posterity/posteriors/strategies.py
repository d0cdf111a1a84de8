"""Ways to forget side by side, each of which may be several hypotheses itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.factor import Factor
from posterity.factor.usable import LARGEST
from posterity.kernel import RowPath
from posterity.posteriors.ensemble import HAS_VARIANCE, Ranks, clip_log_densities
from posterity.posteriors.hypotheses import ReadRows
from posterity.posteriors.memory import Several
from posterity.posteriors.switching import Switching

Array = NDArray[np.float64]

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
    def has_row_path(self) -> bool:
        """True if compiled code learns single rows in all members."""
        return all(one.rows_leave_no_trace and one.has_fast_learn_one for one in self.members)

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The path that learns and predicts single rows, by those of the members."""
        if not self.has_row_path:
            return super(Switching, self).row_path(names)
        reader = Factor(self.common.n_features).row_path(False, names)
        return cast(RowPath, StrategiesPath(reader, self))

    def _rank(self, predictions: list[Any], densities: Array, weights: Array | None) -> Ranks:
        # Where a direction is open a row adds nothing to the evidence.
        each = np.ones(densities.shape[1]) if weights is None else weights
        before = self.n_observations - np.cumsum(each[::-1])[::-1]
        return self._rank_after(before) * (densities != 0.0).astype(np.uint8)

    def _rank_after(self, count: Array) -> Ranks:
        """(k, n) after so many rows (n,): all wait for the first until their noise has a variance.

        Its prior may be learned, and theirs be flat.
        """
        waits = np.arange(len(self.members))[:, None] > 0
        knows = (count > self.common.n_coefficients + LEAST_RESIDUAL_DF) | ~waits
        return HAS_VARIANCE * knows.astype(np.uint8)

    def average(self, read: Callable[[Any], ArrayLike]) -> Any:
        """Weighted average of ``read`` of the members, and of theirs."""
        return super().average(lambda one: one.average_of(read))

    def learn_weights(self, gained: Array) -> None:
        """Weigh the members by what a row, which they have learned, added to their evidences."""
        densities = clip_log_densities(gained)[:, None]
        _, log_density = self._weigh(densities, self._rank([], densities, None), self.scores)
        self.scores.log_evidence += log_density

    def ahead(self) -> tuple[Sequence[Any], Array]:
        """The members, and their weights (k,) for the next row."""
        ranks = self._rank_after(np.array([self.n_observations]))
        if self.common.common.never_varied().any():  # of which flat priors know nothing at all
            ranks[1:] = 0
        return self.members, self._weigh(np.zeros(ranks.shape), ranks, self.scores.copy())[0][0]


class StrategiesPath(ReadRows):
    """Learns and predicts single rows in ``averaged``, in place, as a call for each row would.

    The log density of a row is what it adds to a member's evidence. ``reader`` reads rows.
    """

    def __init__(self, reader: RowPath, averaged: Strategies) -> None:
        self.reader, self.averaged = reader, averaged
        self._paths: list[Any] = [one.row_path(reader.names) for one in averaged.members]

    def learn(self, x: ArrayLike | Mapping[str, float], y: float, weight: float = 1.0) -> bool:
        """Learn the row; False, and nothing happens, where it must be learned in another way."""
        values, averaged = self.values(x), self.averaged
        # Rows that can't be learned are left to the general code, which says why.
        if self._closed or weight != 1.0 or not abs(y) <= LARGEST:
            return False
        if not np.abs(values).max(initial=0.0) <= LARGEST:
            return False
        before = [one.log_evidence for one in averaged.members]
        count = averaged.common.n_observations
        try:
            self._learn_each(values, y, count)
        except BaseException:
            if averaged.members[0].n_observations > count:  # learned by some: then by all
                self._learn_each(values, y, count)
                self._learn_weights(before)
            raise
        self._learn_weights(before)
        return True

    def _learn_each(self, values: Array, y: float, count: float) -> None:
        """Let the members learn a row that have not: those that know of ``count`` rows."""
        for i, member in enumerate(self.averaged.members):
            if member.n_observations > count or self._paths[i].learn(values[0], y):
                continue
            member.append(values, np.full((1, 1), y), None, np.ones(1))
            self._paths[i] = member.row_path(self.reader.names)

    def _learn_weights(self, before: list[float]) -> None:
        after = [one.log_evidence for one in self.averaged.members]
        self.averaged.learn_weights(np.subtract(after, before))

    def predict_mean(self, x: ArrayLike | Mapping[str, float]) -> float:
        """Mean at ``x``, as the next row."""
        values, weights = self.values(x)[0], self.averaged.ahead()[1].tolist()
        pairs = zip(self._paths, weights, strict=True)
        return sum(weight * path.predict_mean(values) for path, weight in pairs if weight)
