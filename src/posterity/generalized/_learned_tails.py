"""Student-t noise whose degrees of freedom are learned.

All candidates have one scale: that of the first, whose core is as wide. So rows that were learned
under one of them stand as they are when another is in force. Which one is, the log densities of all
rows so far decide: sums like those of the scale, which fade and are merged as those are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from posterity.aliases import Array
from posterity.generalized._core import compute_t_core
from posterity.generalized._matched_noise import GROSS
from posterity.generalized._noise_tally import NoiseSums, OneStepScales
from posterity.generalized._student_t_noise import StudentTNoise
from posterity.generalized._working_noise import Mode, Rows

# Each is taken for e times as probable as the next before any data. With fewer, as many as half of
# the rows may be outliers and still be expected; with more, new outliers would not be.
CANDIDATES = (4.0, 2.0, 1.0, 0.7)
# Squared core sds of the furthest rows: those beyond are errors, of any size, and no noise.
FURTHEST = GROSS**2


@dataclass(frozen=True)
class LearnedTails(StudentTNoise):
    """Student-t noise with the degrees of freedom that are in force, in units of the first's."""

    @cached_property
    def unit(self) -> float:  # type: ignore[override]
        """Its own scale, in units of that of the first candidate, whose core is as wide."""
        return compute_t_core(CANDIDATES[0]) / compute_t_core(self.df)


@dataclass
class TailSums(NoiseSums):
    """The same sums, and log densities of the rows under each candidate, beyond a constant."""

    sums: ClassVar = (*NoiseSums.sums, "of_df_4", "of_df_2", "of_df_1", "of_df_0_7")

    of_df_4: float = 0.0
    of_df_2: float = 0.0
    of_df_1: float = 0.0
    of_df_0_7: float = 0.0

    def find_likely_noise(self) -> LearnedTails:
        """The candidate under which all of these rows are most probable."""
        logs = (self.of_df_4, self.of_df_2, self.of_df_1, self.of_df_0_7)
        posterior = [log - place for place, log in enumerate(logs)]
        return LearnedTails(CANDIDATES[posterior.index(max(posterior))])

    def for_average(self) -> NoiseSums:
        """Under the first candidate: averages would depend on when each learned which tails."""
        return NoiseSums(StudentTNoise(CANDIDATES[0]), self.known_scale, self.n_flat)

    def weigh_tails(self, square: float, g: float) -> None:
        """Add the log densities of one row, so many squared core sds away."""
        square = min(square, FURTHEST)
        (c4, p4, r4), (c2, p2, r2), (c1, p1, r1), (c07, p07, r07) = TERMS
        self.of_df_4 += g * (c4 - p4 * math.log1p(r4 * square))
        self.of_df_2 += g * (c2 - p2 * math.log1p(r2 * square))
        self.of_df_1 += g * (c1 - p1 * math.log1p(r1 * square))
        self.of_df_0_7 += g * (c07 - p07 * math.log1p(r07 * square))

    def compute_terms(
        self, error: Array, leverage: Array, weights: Array, before: OneStepScales
    ) -> Array:
        """(k, n) what the rows add to each sum, given the scales before them."""
        terms = super().compute_terms(error, leverage, weights, before)
        known = np.isfinite(leverage) & np.isfinite(before.core[:-1])
        core = np.where(known, before.core[:-1], 1.0)
        square = np.where(known, np.square(error / core) / (1.0 + leverage), 0.0)
        return np.concatenate([terms, weights * known * _compute_densities(square)])

    def set_mode(self, rows: Rows, mode: Mode, scale: float) -> None:
        """Take all from the mode of these rows instead, and the scale that is said."""
        super().set_mode(rows, mode, scale)
        noise = mode.weight > 0.0
        square = np.square((rows.y - mode.fit)[noise] / self.core)
        told = _compute_densities(square) @ rows.weights[noise]
        for name, value in zip(self.sums[-4:], told.tolist(), strict=True):
            setattr(self, name, value)


def _make_term(df: float) -> tuple[float, float, float]:
    """Constant, power and rate of the log density of a square, relative to that of the core."""
    ratio, half = compute_t_core(df), 0.5 * (df + 1.0)
    constant = math.lgamma(half) - math.lgamma(0.5 * df) - 0.5 * math.log(df) + math.log(ratio)
    return constant, half, ratio * ratio / df


TERMS = tuple(_make_term(df) for df in CANDIDATES)


def _compute_densities(square: Array) -> Array:
    """(k, n) log densities of squares (n,) under each candidate, beyond a constant."""
    constant, power, rate = np.array(TERMS).T[:, :, None]
    return constant - power * np.log1p(rate * np.minimum(square, FURTHEST))
