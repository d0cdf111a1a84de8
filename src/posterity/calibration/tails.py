"""Bounds of scores that learn from their misses: the state of a conformal wrapper.

Symbols: L levels from the narrowest to the widest; a tail is (1 - level) / 2, what a score may
exceed a bound with, on each side. A score is what lies in Normal(0, 1) where the target lies in the
model's prediction; both kinds of state start from that, as if the model were right.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from posterity.aliases import Array
from posterity.kernel import adapt, track

# Rows that the starting scale counts for.
SCALE_PRIOR = 10.0
# The integrator of conformal PID allows for misses of the order of this share of all rows.
SATURATION = 5.0
# Scores that a window holds before there are any: the quantiles of Normal(0, 1).
FIRST_SCORES = 100
# Multiples of the rate that the experts have: with the default rate they are, relative to the
# tail, those of Gibbs and Candes (2024), who take 0.001 to 0.128 at a tail of 0.1. And the stretch
# of rows on which all together shall be about as good as the best of them (their section 2.3).
EXPERTS: Array = 0.025 * np.exp2(np.arange(8.0))
STRETCH = 500


class Tails(Protocol):
    """The interface of conformal methods, which bound the scores of targets."""

    levels: Array

    def learn(self, scores: Array, return_predictions: bool) -> Array | None:
        """Learn scores (n,) in order; returns the ends (n, 2, L) before each, if asked for."""

    def copy(self) -> Self:
        """An independent copy."""


def get_current_ends(tails: Tails) -> Array:
    """(2, L): lower and upper ends of the next score."""
    ends = tails.copy().learn(np.array([math.nan]), True)
    assert ends is not None
    return np.asarray(ends[0])


@dataclass
class TrackedTails:
    """Conformal PID (Angelopoulos, Candes and Tibshirani 2023): bounds that move with each miss.

    In units of the recent scores' scale, each bound moves by ``step (miss - tail)``, with ``step =
    rate / density``: the stochastic approximation of a quantile of Normal(0, 1). The scale is
    their scorecaster; it is an average of the last scores' sizes that forgets.
    """

    levels: Array
    tails: Array
    steps: Array
    integrator: tuple[float, float]
    forgetting_rate: float
    bounds: Array
    integrals: Array
    scale: Array

    @classmethod
    def start(cls, levels: Array, rate: float, memory: int, integral: float) -> TrackedTails:
        """Return the state before any score; levels (L,) increase."""
        tails = 0.5 * (1.0 - levels)
        quantiles = -ndtri(tails)
        density = np.exp(-0.5 * quantiles**2) / math.sqrt(2.0 * math.pi)
        bounds = np.tile(quantiles, (2, 1))
        scale = np.array([1.0, SCALE_PRIOR, 0.0])
        integrator = (integral, SATURATION)
        return cls(
            levels, tails, rate / density, integrator, 1.0 / memory, bounds, np.zeros_like(bounds),
            scale,
        )  # fmt: skip

    def learn(self, scores: Array, return_predictions: bool) -> Array | None:
        """As in :class:`Tails`."""
        return track(
            scores, self.tails, self.steps, self.integrator, self.forgetting_rate,
            self.bounds, self.integrals, self.scale, return_predictions,
        )  # fmt: skip

    def copy(self) -> Self:
        """As in :class:`Tails`."""
        return copy.deepcopy(self)


@dataclass
class AdaptedTails:
    """Adaptive conformal inference: quantiles of the last scores, at a tail that is learned.

    With one rate that of Gibbs and Candes (2021), each side for itself as in AgACI (Zaffran,
    Feron, Goude, Josse and Dieuleveut 2022); with several, DtACI (Gibbs and Candes 2024).
    """

    levels: Array
    tails: Array
    rates: Array
    temperatures: Array
    share: float
    aims: Array
    weights: Array
    ordered: Array
    recent: Array
    count: NDArray[np.int64]

    @classmethod
    def start(cls, levels: Array, rates: Array, window: int) -> AdaptedTails:
        """Return the state before any score; levels (L,) increase, rates (K,) are per tail."""
        tails = 0.5 * (1.0 - levels)
        aims = np.tile(tails[None, :, None], (2, 1, len(rates)))
        n_first = min(FIRST_SCORES, window)
        ordered, recent = np.zeros(window), np.zeros(window)
        ordered[:n_first] = ndtri((np.arange(n_first) + 0.5) / n_first)
        # They leave from both ends at once, so that those that remain stay centred.
        outside_in = np.argsort(-np.abs(ordered[:n_first]), kind="stable")
        recent[:n_first] = ordered[outside_in[::-1]]
        return cls(
            levels, tails, rates, _compute_learning_rates(tails, len(rates)), 0.5 / STRETCH, aims,
            np.full_like(aims, 1.0 / len(rates)), ordered, recent,
            np.array([n_first, 0], dtype=np.int64),
        )  # fmt: skip

    def learn(self, scores: Array, return_predictions: bool) -> Array | None:
        """As in :class:`Tails`."""
        return adapt(
            scores, self.tails, self.rates, self.temperatures, self.share, self.aims,
            self.weights, self.ordered, self.recent, self.count, return_predictions,
        )  # fmt: skip

    def copy(self) -> Self:
        """As in :class:`Tails`."""
        return copy.deepcopy(self)


def _compute_learning_rates(tails: Array, n_experts: int) -> Array:
    """Return the experts' learning rates (L,): Gibbs and Candes (2024), section 2.3.

    sqrt(3 / I) sqrt((log(K I) + 2) / ((1 - a)^2 a^3 + a^2 (1 - a)^3)) on stretches of I rows.
    """
    spread = (1.0 - tails) ** 2 * tails**3 + tails**2 * (1.0 - tails) ** 3
    return np.sqrt(3.0 / STRETCH * (math.log(n_experts * STRETCH) + 2.0) / spread)
