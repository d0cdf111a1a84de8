"""Sets of strong features drawn from their posterior: walkers side by side.

Half of them start on a background alone; the others have none, and a set grown feature by feature,
drawn by what each would explain. All take steps that leave the posterior as it is. Between two such
regions there can be a barrier that no walker crosses: so half way those in a region of little
probability give way to copies of the others. (Going from prior to posterior by powers of the
evidence does not help: 50 rows that a few of 500 features explain perfectly are, at low powers,
better explained by a background.)

The random numbers are the same at every call, and a walker's place is discrete (a set, and two
places on grids): so the same data give the same walkers, and rounding makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from posterity.aliases import Array, Indices
from posterity.evidence.relevance_state import (
    BACKGROUNDS,
    SLABS,
    Evidence,
    FeatureSets,
    SolvedSets,
    compute_log_half_cauchy,
)

SEED = 20030103
LONGEST_START = 12
# Rounds before walkers in improbable regions are resampled, and after; few features need fewer.
ROUNDS_BEFORE, ROUNDS_AFTER = 12, 6
# Steps on the grids of background and slab.
STRIDES = np.array([1, 1, 2, 3, 5, 8])


@dataclass(frozen=True, eq=False)
class WalkResult:
    """The walkers' last sets, all equally probable, and the log evidence (up to a constant)."""

    solved: SolvedSets
    log_evidence: float


def sample_sets(evidence: Evidence, n_walkers: int) -> WalkResult:
    """Draw ``n_walkers`` sets from the posterior."""
    random = np.random.default_rng(SEED)
    few = evidence.lengths.shape[1]
    solved = _start_walkers(evidence, n_walkers, random)
    visited: list[dict[tuple[int, ...], float]] = []
    heights = []
    for _ in range(min(ROUNDS_BEFORE, 2 + few)):
        solved = _move(evidence, solved, random)
        heights.append(evidence.log_posterior(solved))
        visited.append(_collect_states(solved.sets, heights[-1]))
    # The mean of the log posterior is the log of a region's probability less its entropy.
    weights = np.exp(_centre(np.mean(heights[len(heights) // 2 :], axis=0)))
    solved = solved.take(_resample(weights / weights.sum(), random))
    for _ in range(min(ROUNDS_AFTER, 2 + few)):
        solved = _move(evidence, solved, random)
        visited.append(_collect_states(solved.sets, evidence.log_posterior(solved)))
    return WalkResult(solved, _estimate_log_evidence(visited))


def _collect_states(sets: FeatureSets, values: Array) -> dict[tuple[int, ...], float]:
    places = zip(sets.background.tolist(), sets.slab.tolist(), strict=True)
    members = np.sort(sets.members, axis=1).tolist()
    return {
        (*place, *(one for one in some if one >= 0)): float(value)
        for place, some, value in zip(places, members, values, strict=True)
    }


def _estimate_log_evidence(visited: list[dict[tuple[int, ...], float]]) -> float:
    """log p(y) = log p(y, A) - log p(A | y), A the states visited before the last rounds.

    The first is a sum over A, the second the share of the last rounds' states that are in A.
    """
    last = len(visited) // 3
    known = {state: value for some in visited[:-last] for state, value in some.items()}
    again = [state in known for some in visited[-last:] for state in some]
    share = max(sum(again), 1) / len(again)
    return float(np.logaddexp.reduce(list(known.values()))) - float(np.log(share))


def _centre(logs: Array) -> Array:
    return logs - logs.max()


def _start_walkers(evidence: Evidence, count: int, random: Generator) -> SolvedSets:
    """Start half of the walkers on a strong background, the others on none with a grown set."""
    background, slab = (
        _draw_columns(np.tile(compute_log_half_cauchy(grid), (count, 1)), random)
        for grid in (BACKGROUNDS, SLABS)
    )
    background[::2] = 0
    solved = evidence.solve(FeatureSets(np.zeros((count, 0), dtype=np.intp), background, slab))
    longest = min(evidence.most, LONGEST_START, max(2, int(evidence.residual_df + 1e-6) // 4))
    for _ in range(longest):
        odds = evidence.compute_gains(solved)
        walker, inside = np.nonzero(solved.sets.members >= 0)
        odds[walker, solved.sets.members[walker, inside]] = -np.inf
        features = np.where(np.arange(count) % 2 == 0, _draw_columns(odds, random), -1)
        solved = evidence.solve(solved.sets.flip_features(features))
        for name, grid in (("background", BACKGROUNDS), ("slab", SLABS)):
            solved = _shift(evidence, solved, random, name, len(grid))
    return solved


def _resample(weights: Array, random: Generator) -> Indices:
    """Systematic resampling."""
    places = (np.arange(len(weights)) + random.random()) / len(weights)
    return np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)


# ---- steps that leave the posterior as it is -----------------------------------------------------


def _move(evidence: Evidence, solved: SolvedSets, random: Generator) -> SolvedSets:
    rates = _compute_rates(evidence, solved)
    m = evidence.lengths.shape[1]
    for _ in range(min(3, m) + int(solved.sets.sizes.mean()) // 4):
        solved, rates = _flip(evidence, solved, rates, random)
    if m > 1:
        solved = _swap(evidence, solved, random)
    for name, grid in (("background", BACKGROUNDS), ("slab", SLABS)):
        solved = _shift(evidence, solved, random, name, len(grid))
    return solved


def _flip(
    evidence: Evidence, solved: SolvedSets, rates: Array, random: Generator
) -> tuple[SolvedSets, Array]:
    """Put a feature in, or take one out, by how much that raises the posterior.

    Of the changed posterior's odds o, proposals are drawn in proportion to o / (1 + o), which
    leaves little to reject (Zanella 2020).
    """
    with np.errstate(divide="ignore"):
        features = _draw_columns(np.log(rates), random)
    proposed = evidence.solve(solved.sets.flip_features(features))
    others = _compute_rates(evidence, proposed)
    accepted = random.random(len(features)) * others.sum(axis=1) < rates.sum(axis=1)
    rates = np.where(accepted[:, None], others, rates)
    return solved.replace_rows(accepted, proposed), rates


def _compute_rates(evidence: Evidence, solved: SolvedSets) -> Array:
    odds = evidence.compute_gains(solved) + evidence.compute_prior_gains(solved.sets)
    with np.errstate(over="ignore"):
        return np.where(np.isneginf(odds), 0.0, np.maximum(1.0 / (1.0 + np.exp(-odds)), 1e-300))


def _swap(evidence: Evidence, solved: SolvedSets, random: Generator) -> SolvedSets:
    """Take a feature out, any of the set, and put one in, by the posterior of what comes out."""
    sets = solved.sets
    some = sets.sizes > 0
    place = np.minimum((random.random(len(some)) * sets.sizes).astype(np.intp), sets.sizes - 1)
    if not some.any():
        return solved
    leaves = np.where(some, sets.members[np.arange(len(some)), np.maximum(place, 0)], -1)
    without = evidence.solve(sets.flip_features(leaves))
    odds = evidence.compute_gains(without)
    walker, inside = np.nonzero(without.sets.members >= 0)
    odds[walker, without.sets.members[walker, inside]] = -np.inf
    enters = np.where(some, _draw_columns(odds, random), -1)
    return evidence.solve(without.sets.flip_features(enters))


def _shift(
    evidence: Evidence, solved: SolvedSets, random: Generator, name: str, size: int
) -> SolvedSets:
    """Step along one of the grids."""
    sets = solved.sets
    count = len(sets.slab)
    stride = STRIDES[(random.random(count) * len(STRIDES)).astype(np.intp)]
    where = getattr(sets, name) + np.where(random.random(count) < 0.5, stride, -stride)
    inside = (where >= 0) & (where < size)
    places = {"background": sets.background, "slab": sets.slab}
    places[name] = np.where(inside, where, places[name])
    proposed = evidence.solve(FeatureSets(sets.members, **places))
    gain = proposed.value - solved.value
    gain += evidence.log_prior(proposed.sets) - evidence.log_prior(sets)
    accepted = inside & (np.log(random.random(count)) < gain)
    return solved.replace_rows(accepted, proposed)


def _draw_columns(logs: Array, random: Generator) -> Indices:
    """(K,) one column of each row of ``logs`` (K, m), with probabilities in proportion to exp."""
    chances = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    places = random.random(len(logs))[:, None] * chances[:, -1:]
    return np.minimum((chances <= places).sum(axis=1), logs.shape[1] - 1)
