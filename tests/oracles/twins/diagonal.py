"""Learning sparse rows again, slowly and plainly: the oracle of ``DiagonalState``.

Everything fades at every row, features are looped over, and sites are given as ``find``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Precision, target and log density of a site, given target, mean, variance and weight.
Find = Callable[[float, float, float, float], tuple[float, float, float]]
# Active features of a row: feature, column, value.
Row = list[tuple[int, int, float]]

HASTE, LONGEST_STEP, WEAKEST, STRONGEST = 2.0, 0.5, 1e-8, 1e8


@dataclass
class DiagonalTwin:
    """One hypothesis: ``known`` and ``shift`` (P), ``precision`` and ``information`` (columns)."""

    find: Find
    known: Array
    shift: Array
    precision: Array
    information: Array
    squares: Array
    learns: bool
    intercept: bool
    score: float = 0.0

    def learn(
        self, row: Row, y: float, weight: float, discount: float, offset: float = 0.0
    ) -> tuple[float, float]:
        """Learn a row; mean and variance of eta before it."""
        self.known *= discount
        self.shift *= discount
        self.score *= discount
        if self.intercept:
            row = [*row, (0, 0, 1.0)]
        prior = [self._prior(column, x) for _, column, x in row]
        v = [1.0 / (p + self.known[j]) for p, (j, _, _) in zip(prior, row, strict=True)]
        m = [one * self.shift[j] for one, (j, _, _) in zip(v, row, strict=True)]
        mean = offset + sum(x * one for one, (_, _, x) in zip(m, row, strict=True))
        variance = sum(x * x * one for one, (_, _, x) in zip(v, row, strict=True))
        precision, target, log_density = self.find(y, mean, variance, weight)
        shrink = precision / (1.0 + precision * variance)
        pull = shrink * (target - mean)
        if self.learns:
            self._learn_precisions(row, prior, m, v, pull, shrink)
        for k, (j, column, x) in enumerate(row):
            # The exact mean and variance given the row, as natural parameters.
            after = v[k] - (v[k] * x) ** 2 * shrink
            self.shift[j] += (m[k] + v[k] * x * pull) / after - m[k] / v[k]
            self.known[j] += 1.0 / after - 1.0 / v[k]
            self.squares[column] += [x * x, 1.0]
        self.score += log_density
        return mean, variance

    def _prior(self, column: int, x: float) -> float:
        total, count = self.squares[column]
        square = 1.0 if not (self.learns and column) else total / count if count else x * x
        return float(self.precision[column] * square)

    def _learn_precisions(
        self,
        row: Row,
        prior: list[float],
        m: list[float],
        v: list[float],
        pull: float,
        shrink: float,
    ) -> None:
        """A step of Fisher scoring on the log of each column's precision but the intercept's."""
        for column in {column for _, column, _ in row if column}:
            slope = curvature = 0.0
            for k, (_, own, x) in enumerate(row):
                if own == column:
                    moved, wider = x * m[k] * v[k] * prior[k], (x * v[k]) ** 2 * prior[k]
                    slope += pull * moved + 0.5 * (pull**2 - shrink) * wider
                    curvature += 0.5 * (wider * shrink) ** 2 + moved**2 * shrink
            self.information[column] += curvature
            step = HASTE * slope / (1.0 + self.information[column])
            step = math.copysign(min(abs(step), LONGEST_STEP), step)
            moved = self.precision[column] * (2.0 - step) / (2.0 + step)
            self.precision[column] = min(max(moved, WEAKEST), STRONGEST)
