"""Single rows of what is averaged: each member learns them by a path of its own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions.mixing import tabulate_row
from posterity.kernel import RowPath
from posterity.posteriors.hypotheses import ReadRows

Array = NDArray[np.float64]

# Rows with larger values are learned in the general way, which changes nothing where it fails: here
# no member must refuse, for products that overflow, what others have learned.
LARGEST = 1e35


class MemberPaths(ReadRows):
    """Learns and predicts single rows in ``averaged``, in place, as a call for each row would.

    The log density of a row is what it adds to a member's evidence. ``reader`` reads rows.
    """

    def __init__(self, reader: RowPath, averaged: Any) -> None:
        self.reader, self.averaged = reader, averaged
        self._paths: list[Any] = [one.row_path(reader.names) for one in averaged.members]
        self._targets: dict[Hashable, float] = {}
        # How members that learned the last row in another way predicted it; the weights of all.
        self._told: dict[int, Array] = {}
        self._weights: Array

    def name_labels(self, labels: Sequence[Hashable], flipped: bool) -> None:
        """Name one label or two, in order; the second stands for 1, if ``flipped`` the first."""
        self._targets = {label: float(place != flipped) for place, label in enumerate(labels)}

    def learn_label(
        self, x: ArrayLike | Mapping[str, float], label: Hashable, weight: float = 1.0
    ) -> bool:
        """As ``learn``, with a label; False, too, for one without a name."""
        target = self._targets.get(label)
        return target is not None and self.learn(x, target, weight)

    def learn(self, x: ArrayLike | Mapping[str, float], y: float, weight: float = 1.0) -> bool:
        """Learn the row; False, and nothing happens, where it must be learned in another way."""
        row, members = self.values(x)[0], self.averaged.members
        # Rows that can't be learned are left to the general code, which says why.
        if self._closed or weight != 1.0 or not (abs(y) <= LARGEST and row @ row <= LARGEST**2):
            return False
        self._told = {}
        before = [one.log_evidence for one in members]
        count = members[0].n_observations
        try:
            self._learn_each(row, y, range(len(members)))
        except BaseException:
            if members[0].n_observations > count:  # learned by some: then by all
                rest = [i for i, one in enumerate(members) if one.n_observations == count]
                self._learn_each(row, y, rest)
                self._learn_weights(before)
            raise
        self._learn_weights(before)
        return True

    def _learn_each(self, row: Array, y: float, places: Sequence[int]) -> None:
        """Let the members at these places learn a row."""
        for i in places:
            if not self._paths[i].learn(row, y):
                member = self.averaged.members[i]
                learn = member.predict_then_learn if self.averaged.predicts_rows else member.append
                told = learn(row[None], np.full((1, 1), float(y)), None, np.ones(1))
                if told is not None:
                    self._told[i] = tabulate_row(told)
                self._paths[i] = member.row_path(self.reader.names)

    def _learn_weights(self, before: list[float]) -> None:
        after = [one.log_evidence for one in self.averaged.members]
        self._weights = self.averaged.learn_weights(np.subtract(after, before))

    def told(self) -> Array:
        """Weights, degrees of freedom, means and scales (4, k) that predicted the last row."""
        tables = []
        for i, (path, weight) in enumerate(zip(self._paths, self._weights.tolist(), strict=True)):
            table = self._told[i] if i in self._told else path.told()
            table[0] *= weight
            tables.append(table)
        return np.concatenate(tables, axis=1)

    def predict_mean(self, x: ArrayLike | Mapping[str, float]) -> float:
        """Mean at ``x``, as the next row."""
        values, weights = self.values(x)[0], self.averaged.ahead()[1].tolist()
        pairs = zip(self._paths, weights, strict=True)
        return sum(weight * path.predict_mean(values) for path, weight in pairs if weight)
