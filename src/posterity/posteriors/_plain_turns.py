"""Turns of a stream in one loop: rows are predicted and learned, and the prior is chosen anew.

As :meth:`NodesStream.predict_then_learn` does it, where nodes are plain: compiled code predicts by
them, and no posterior is made. A short stream has most of its turns in its first rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from posterity.evidence import Choice, Strategy
from posterity.factor import Factor
from posterity.factor.usable import LARGEST, check_learned
from posterity.kernel import MOST_COLUMNS, append_block, predict_by_nodes
from posterity.noise import Distribution, Noise
from posterity.posteriors._chooser import Chooser
from posterity.posteriors._evidence_state import EvidenceState
from posterity.posteriors._nodes import make_distribution
from posterity.posteriors._turns import count_rows, count_rows_until, find_turns_around

Array = NDArray[np.float64]


@dataclass
class PlainTurns:
    """A stream of one target under a prior that ``strategy`` chooses, of coefficients of ``mean``.

    ``data`` is all that was learned and ``turn`` what it was at the last turn, ``rows`` counts the
    rows and ``due`` those at the next turn. ``choice`` is what was chosen at the last turn, or None
    if no row has followed. No arrays but that of ``data`` are changed in place.
    """

    strategy: Strategy
    noise: Noise
    intercept: bool
    mean: Array
    data: Factor
    turn: Factor | None
    rows: int
    due: int
    choice: Choice | None = None

    @classmethod
    def of(
        cls, chooser: Chooser, state: EvidenceState, *, stream: bool, single: bool
    ) -> Self | None:
        """Return the turns that follow; None where what is chosen is not plain."""
        nodes = state.stream
        few = len(chooser.mean) <= MOST_COLUMNS and chooser.shapes is None and state.scales is None
        if not few or (nodes is not None and not nodes.choice.is_plain):
            return None
        return cls(
            chooser.select_strategy(stream=stream, single=single),
            chooser.noise,
            chooser.intercept,
            chooser.mean,
            state.data.factor,
            state.turn,
            int(state.clock[0]),
            int(state.clock[1]),
            None if nodes is None else nodes.choice,
        )

    def predict_then_learn(self, X: Array, y: Array, weights: Array | None) -> Distribution | None:
        """Learn row after row, until one that has no plain nodes.

        Returns the predictions of those learned before each was; None where there are none.
        """
        first, parts, data = 0, [], self.data
        triangle, count, seen = data.triangle.copy(), data.count, data.seen
        ones = data.lacks_intercept_column(X, self.intercept)
        while first < len(X):
            choice = self.choice or self._choose()
            if not choice.is_plain and (count > 0.0 or not self.intercept):
                self.choice = choice  # what these features say when they vary is not plain
                break
            left = None if weights is None else weights[first:]
            stop = first + count_rows_until(len(X) - first, left, self.due - self.rows)
            some = None if weights is None else weights[first:stop]
            rows = X[first:stop], y[first:stop], some, ones
            nodes = self.mean, choice.precisions, choice.weights
            parts.append(predict_by_nodes(triangle, *rows, *nodes, count, self.noise.parameters))
            append_block(triangle, 1, *rows)
            check_learned(triangle, *rows[:3], largest=LARGEST)
            total = stop - first if some is None else float(np.sum(some))
            count, seen = count + total, seen + total
            self.rows += count_rows(some, stop - first)
            self.choice, first = choice, stop
            if self.rows >= self.due:
                self.turn, self.choice = Factor.of_memory(triangle.copy(), count, seen), None
                self.due = find_turns_around(self.rows, data.n_coefficients, forgets=False)[1]
        if not parts:
            return None
        learned = None if weights is None else weights[:first]
        data.check_underflow(triangle, X[:first], y[:first], learned)
        data.set_triangle(triangle, count, seen)
        loc, scale, df = (np.concatenate(one) for one in zip(*parts, strict=True))
        return make_distribution(loc, scale, df, self.noise)

    def _choose(self) -> Choice:
        turn = self.turn or Factor(self.data.n_coefficients)
        return self.strategy.choose(turn, self.noise, intercept=self.intercept, mean=self.mean)
