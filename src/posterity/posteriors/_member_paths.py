"""Single rows of what is averaged: each member learns them by a path of its own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.distributions.mixing import tabulate_row
from posterity.kernel import AveragePath


class MemberPaths(AveragePath):
    """Learns and predicts single rows in all members, those with labels, too."""

    _targets: Mapping[Hashable, float] = {}

    def name_labels(self, labels: Sequence[Hashable], flipped: bool) -> None:
        """Name one label or two, in order; the second stands for 1, if ``flipped`` the first."""
        self._targets = {label: float(place != flipped) for place, label in enumerate(labels)}

    def learn_label(
        self, x: ArrayLike | Mapping[str, float], label: Hashable, weight: float = 1.0
    ) -> bool:
        """As ``learn``, with a label; False, too, for one without a name."""
        target = self._targets.get(label)
        return target is not None and self.learn(x, target, weight)

    def learn_apart(self, place: int, row: Array, y: float) -> Any:
        """Have a member learn a row that its path leaves alone; returns how it predicted it."""
        member = self.averaged.members[place]
        learn = member.predict_then_learn if self.averaged.predicts_rows else member.append
        return learn(row[None], np.full((1, 1), y), None, np.ones(1))

    def told(self) -> Array:
        """Weights, degrees of freedom, means and scales (4, k) that predicted the last row."""
        tables = []
        for i, (path, weight) in enumerate(zip(self.paths, super().told().tolist(), strict=True)):
            table = tabulate_row(self.told_apart[i]) if i in self.told_apart else path.told()
            table[0] *= weight
            tables.append(table)
        return np.concatenate(tables, axis=1)

    def predict_mean(self, x: ArrayLike | Mapping[str, float]) -> float:
        """Mean at ``x``, as the next row."""
        values, weights = self.values(x)[0], self.averaged.ahead()[1].tolist()
        pairs = zip(self.paths, weights, strict=True)
        return sum(weight * path.predict_mean(values) for path, weight in pairs if weight)
