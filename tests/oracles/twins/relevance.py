"""The walk over sets of strong features in NumPy, all walkers at once: the twin of SetWalkers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.random import Generator

from posterity.aliases import Array, Indices, Mask
from posterity.evidence.relevance_state import BACKGROUNDS, SLABS, Evidence, FeatureSets
from posterity.evidence.relevance_walk import LOG_PRIORS

# Steps on the grids of background and slab.
STRIDES = np.array([1, 1, 2, 3, 5, 8])


@dataclass(frozen=True, eq=False)
class Solved:
    """K sets, all (K, m) wide, and what is known of them; ``rows`` (K, m, m) are those of H."""

    sets: FeatureSets
    value: Array
    energy: Array
    mean: Array
    covariance: Array
    rows: Array


def solve(evidence: Evidence, sets: FeatureSets) -> Solved:
    """Evaluate sets, which may be narrower."""
    m = evidence.lengths.shape[1]
    sets = replace(sets, members=widened(sets.members, m))
    there = sets.members >= 0
    columns = evidence.directions.T[np.where(there, sets.members, 0)] * there[:, :, None]
    rows = (columns * evidence.left[sets.background][:, None, :]) @ evidence.directions
    solved = evidence.solve(sets)
    return Solved(sets, solved.value, solved.energy, solved.mean, solved.covariance, rows)


def replace_walkers(solved: Solved, which: Mask, other: Solved) -> Solved:
    """The same with ``other`` in the places ``which`` (K,)."""

    def choose(name: str) -> Any:
        one, two = attrgetter(name)(solved), attrgetter(name)(other)
        return np.where(which.reshape(-1, *[1] * (one.ndim - 1)), two, one)

    sets = FeatureSets(*(choose(f"sets.{name}") for name in ("members", "background", "slab")))
    return Solved(sets, *map(choose, ("value", "energy", "mean", "covariance", "rows")))


def widened(members: Indices, width: int) -> Indices:
    """Sets (K, k) with room for ``width`` members."""
    room = np.full((len(members), width - members.shape[1]), -1, dtype=np.intp)
    return np.concatenate([members, room], axis=1)


def flip_features(sets: FeatureSets, features: Indices) -> FeatureSets:
    """Add one feature to each set (K,), or remove it where it is in; -1: leave the set."""
    present = (sets.members == features[:, None]) & (features >= 0)[:, None]
    members = np.where(present, -1, sets.members)
    enters = np.where((features >= 0) & ~present.any(axis=1), features, -1)
    members = np.concatenate([members, enters[:, None]], axis=1)
    # Those that are there first; columns that nobody needs go.
    order = np.argsort(members < 0, axis=1, kind="stable")
    members = members[np.arange(len(members))[:, None], order]
    width = int((members >= 0).sum(axis=1).max(initial=0))
    return FeatureSets(members[:, :width], sets.background, sets.slab)


def compute_gains(evidence: Evidence, solved: Solved) -> Array:
    """(K, m) what each feature adds to the log evidence when it is put in, or taken out."""
    sets, rows = solved.sets, solved.rows
    kappa = np.exp(SLABS[sets.slab])[:, None]
    spread = solved.covariance @ rows
    s = np.maximum(evidence.lengths[sets.background] - np.sum(rows * spread, axis=1), 0.0)
    q = evidence.products[sets.background] - (solved.mean[:, None, :] @ rows)[:, 0]
    energy = solved.energy[:, None]
    lower = np.maximum(energy - q * q * kappa / (1.0 + kappa * s), evidence.smallest_energy)
    gains = evidence.fit(lower) - evidence.fit(energy) - 0.5 * np.log1p(kappa * s)
    walker, place = np.nonzero(sets.members >= 0)
    spread = solved.covariance[walker, place, place]
    energy = solved.energy[walker]
    out = evidence.fit(energy + np.square(solved.mean[walker, place]) / spread) - evidence.fit(
        energy
    )
    out += 0.5 * (SLABS[sets.slab[walker]] - np.log(spread))
    gains[walker, sets.members[walker, place]] = out
    return gains


def compute_prior_gains(evidence: Evidence, sets: FeatureSets) -> Array:
    """(K, m) what the same adds to the log prior."""
    sizes = sets.sizes
    now = evidence.log_sizes[sizes]
    gains = np.repeat(
        (evidence.log_sizes[sizes + 1] - now)[:, None], evidence.lengths.shape[1], axis=1
    )
    walker, place = np.nonzero(sets.members >= 0)
    out = evidence.log_sizes[np.maximum(sizes - 1, 0)] - now
    gains[walker, sets.members[walker, place]] = out[walker]
    return gains


def start_walkers(evidence: Evidence, count: int, longest: int, random: Generator) -> Solved:
    """Start half of the walkers on a strong background, the others on none with a grown set."""
    background, slab = (_draw_columns(np.tile(logs, (count, 1)), random) for logs in LOG_PRIORS)
    background[::2] = 0
    solved = solve(evidence, FeatureSets(np.zeros((count, 0), dtype=np.intp), background, slab))
    for _ in range(longest):
        odds = compute_gains(evidence, solved)
        walker, inside = np.nonzero(solved.sets.members >= 0)
        odds[walker, solved.sets.members[walker, inside]] = -np.inf
        features = np.where(np.arange(count) % 2 == 0, _draw_columns(odds, random), -1)
        solved = solve(evidence, flip_features(solved.sets, features))
        for name, grid in (("background", BACKGROUNDS), ("slab", SLABS)):
            solved = _shift(evidence, solved, random, name, len(grid))
    return solved


# ---- steps that leave the posterior as it is -----------------------------------------------------


def move(evidence: Evidence, solved: Solved, random: Generator) -> Solved:
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
    evidence: Evidence, solved: Solved, rates: Array, random: Generator
) -> tuple[Solved, Array]:
    """Put a feature in, or take one out, by how much that raises the posterior.

    Of the changed posterior's odds o, proposals are drawn in proportion to o / (1 + o), which
    leaves little to reject (Zanella 2020).
    """
    with np.errstate(divide="ignore"):
        features = _draw_columns(np.log(rates), random)
    proposed = solve(evidence, flip_features(solved.sets, features))
    others = _compute_rates(evidence, proposed)
    accepted = random.random(len(features)) * others.sum(axis=1) < rates.sum(axis=1)
    rates = np.where(accepted[:, None], others, rates)
    return replace_walkers(solved, accepted, proposed), rates


def _compute_rates(evidence: Evidence, solved: Solved) -> Array:
    odds = compute_gains(evidence, solved) + compute_prior_gains(evidence, solved.sets)
    with np.errstate(over="ignore"):
        return np.where(np.isneginf(odds), 0.0, np.maximum(1.0 / (1.0 + np.exp(-odds)), 1e-300))


def _swap(evidence: Evidence, solved: Solved, random: Generator) -> Solved:
    """Take a feature out, any of the set, and put one in, by the posterior of what comes out."""
    sets = solved.sets
    some = sets.sizes > 0
    place = np.minimum((random.random(len(some)) * sets.sizes).astype(np.intp), sets.sizes - 1)
    if not some.any():
        return solved
    leaves = np.where(some, sets.members[np.arange(len(some)), np.maximum(place, 0)], -1)
    without = solve(evidence, flip_features(sets, leaves))
    odds = compute_gains(evidence, without)
    walker, inside = np.nonzero(without.sets.members >= 0)
    odds[walker, without.sets.members[walker, inside]] = -np.inf
    enters = np.where(some, _draw_columns(odds, random), -1)
    return solve(evidence, flip_features(without.sets, enters))


def _shift(evidence: Evidence, solved: Solved, random: Generator, name: str, size: int) -> Solved:
    """Step along one of the grids."""
    sets = solved.sets
    count = len(sets.slab)
    stride = STRIDES[(random.random(count) * len(STRIDES)).astype(np.intp)]
    where = getattr(sets, name) + np.where(random.random(count) < 0.5, stride, -stride)
    inside = (where >= 0) & (where < size)
    places = {"background": sets.background, "slab": sets.slab}
    places[name] = np.where(inside, where, places[name])
    proposed = solve(evidence, FeatureSets(sets.members, **places))
    gain = proposed.value - solved.value
    gain += evidence.log_prior(proposed.sets) - evidence.log_prior(sets)
    accepted = inside & (np.log(random.random(count)) < gain)
    return replace_walkers(solved, accepted, proposed)


def _draw_columns(logs: Array, random: Generator) -> Indices:
    """(K,) one column of each row of ``logs`` (K, m), with probabilities in proportion to exp."""
    chances = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    places = random.random(len(logs))[:, None] * chances[:, -1:]
    return np.minimum((chances <= places).sum(axis=1), logs.shape[1] - 1)
