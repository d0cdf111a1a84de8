"""Sets of strong features drawn from their posterior: walkers in parallel, from prior to posterior.

A sequential Monte Carlo sampler (Del Moral, Doucet and Jasra 2006; on sets: Schaefer and Chopin
2013). Walkers drawn from the prior go through prior x evidence^t, t from 0 to 1: at each t those
that fit badly give way to copies of those that fit well, and all of them take steps that leave the
posterior at t as it is.

The random numbers are the same at every call, and a walker's place is discrete (a set, and two
places on grids): so the same data give the same walkers, and rounding makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from posterity.evidence.relevance_state import (
    BACKGROUNDS,
    SLABS,
    Evidence,
    Sets,
    Solved,
    _log_half_cauchy,
)

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

SEED = 20030103
LONGEST_START = 12
FIRST_ROUNDS, LAST_ROUNDS = 12, 6
# Steps on the grids of background and slab.
STRIDES = np.array([1, 1, 2, 3, 5, 8])


@dataclass(frozen=True, eq=False)
class Walk:
    """Where the walkers ended, all equally probable, and the log evidence (up to a constant)."""

    solved: Solved
    log_evidence: float


def walked(evidence: Evidence, n_walkers: int) -> Walk:
    """Draw ``n_walkers`` sets from the posterior."""
    random = np.random.default_rng(SEED)
    solved = _started(evidence, n_walkers, random)
    heights = np.zeros(n_walkers)
    for round_ in range(FIRST_ROUNDS):
        solved = _moved(evidence, solved, 1.0, random)
        if round_ >= FIRST_ROUNDS // 2:
            heights += solved.value + evidence.log_prior(solved.sets)
    heights /= FIRST_ROUNDS - FIRST_ROUNDS // 2
    weights = np.exp(heights - heights.max())
    solved = solved.take(_resampled(weights / weights.sum(), random))
    for _ in range(LAST_ROUNDS):
        solved = _moved(evidence, solved, 1.0, random)
    return Walk(solved, float((solved.value + evidence.log_prior(solved.sets)).max()))


def _started(evidence: Evidence, count: int, random: Generator) -> Solved:
    """Half of the walkers on a strong background; the others have none, and a set grown on it."""
    background, slab = (
        _drawn(np.tile(_log_half_cauchy(grid), (count, 1)), random) for grid in (BACKGROUNDS, SLABS)
    )
    background[::2] = 0
    solved = evidence.solve(Sets(np.zeros((count, 0), dtype=np.intp), background, slab))
    longest = min(evidence.most, LONGEST_START, max(2, int(evidence.freed) // 4))
    for _ in range(longest):
        odds = evidence.gains(solved)
        walker, inside = np.nonzero(solved.sets.members >= 0)
        odds[walker, solved.sets.members[walker, inside]] = -np.inf
        features = np.where(np.arange(count) % 2 == 0, _drawn(odds, random), -1)
        solved = evidence.solve(solved.sets.flipped(features))
        for name, grid in (("background", BACKGROUNDS), ("slab", SLABS)):
            solved = _shift(evidence, solved, 1.0, random, name, len(grid))
    return solved


def _resampled(weights: Array, random: Generator) -> Indices:
    """Systematic resampling."""
    places = (np.arange(len(weights)) + random.random()) / len(weights)
    return np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)



# ---- steps that leave the posterior as it is -----------------------------------------------------


def _moved(evidence: Evidence, solved: Solved, t: float, random: Generator) -> Solved:
    rates = _rates(evidence, solved, t)
    for _ in range(3 + int(solved.sets.sizes.mean()) // 4):
        solved, rates = _flip(evidence, solved, rates, t, random)
    solved = _swap(evidence, solved, t, random)
    for name, grid in (("background", BACKGROUNDS), ("slab", SLABS)):
        solved = _shift(evidence, solved, t, random, name, len(grid))
    return solved


def _flip(
    evidence: Evidence, solved: Solved, rates: Array, t: float, random: Generator
) -> tuple[Solved, Array]:
    """Put a feature in, or take one out, by how much that raises the posterior.

    Of the changed posterior's odds o, proposals are drawn in proportion to o / (1 + o), which
    leaves little to reject (Zanella 2020).
    """
    features = _drawn(np.log(rates), random)
    proposed = evidence.solve(solved.sets.flipped(features))
    others = _rates(evidence, proposed, t)
    accepted = random.random(len(features)) * others.sum(axis=1) < rates.sum(axis=1)
    rates = np.where(accepted[:, None], others, rates)
    return solved.but(accepted, proposed), rates


def _rates(evidence: Evidence, solved: Solved, t: float) -> Array:
    odds = t * evidence.gains(solved) + evidence.prior_gains(solved.sets)
    with np.errstate(over="ignore"):
        return np.maximum(1.0 / (1.0 + np.exp(-odds)), 1e-300)


def _swap(evidence: Evidence, solved: Solved, t: float, random: Generator) -> Solved:
    """Take a feature out, any of the set, and put one in, by the posterior of what comes out."""
    sets = solved.sets
    some = sets.sizes > 0
    place = np.minimum((random.random(len(some)) * sets.sizes).astype(np.intp), sets.sizes - 1)
    if not some.any():
        return solved
    leaves = np.where(some, sets.members[np.arange(len(some)), np.maximum(place, 0)], -1)
    without = evidence.solve(sets.flipped(leaves))
    odds = t * evidence.gains(without)
    walker, inside = np.nonzero(without.sets.members >= 0)
    odds[walker, without.sets.members[walker, inside]] = -np.inf
    enters = np.where(some, _drawn(odds, random), -1)
    return evidence.solve(without.sets.flipped(enters))


def _shift(
    evidence: Evidence, solved: Solved, t: float, random: Generator, name: str, size: int
) -> Solved:
    """Step along one of the grids."""
    sets = solved.sets
    count = len(sets.slab)
    stride = STRIDES[(random.random(count) * len(STRIDES)).astype(np.intp)]
    where = getattr(sets, name) + np.where(random.random(count) < 0.5, stride, -stride)
    inside = (where >= 0) & (where < size)
    places = {"background": sets.background, "slab": sets.slab}
    places[name] = np.where(inside, where, places[name])
    proposed = evidence.solve(Sets(sets.members, **places))
    gain = t * (proposed.value - solved.value)
    gain += evidence.log_prior(proposed.sets) - evidence.log_prior(sets)
    accepted = inside & (np.log(random.random(count)) < gain)
    return solved.but(accepted, proposed)


def _drawn(logs: Array, random: Generator) -> Indices:
    """(K,) one column of each row of ``logs`` (K, m), with probabilities in proportion to exp."""
    chances = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    places = random.random(len(logs))[:, None] * chances[:, -1:]
    return np.minimum(np.count_nonzero(chances <= places, axis=1), logs.shape[1] - 1)
