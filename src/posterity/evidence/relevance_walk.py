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
from numpy.typing import NDArray

from posterity.aliases import Array, Indices
from posterity.evidence.relevance_state import (
    BACKGROUNDS,
    SLABS,
    Evidence,
    FeatureSets,
    SolvedSets,
    compute_log_half_cauchy,
)
from posterity.kernel import SetWalkers

SEED = 20030103
LONGEST_START = 12
# Rounds before walkers in improbable regions are resampled, and after; few features need fewer.
ROUNDS_BEFORE, ROUNDS_AFTER = 12, 6
LOG_PRIORS = compute_log_half_cauchy(BACKGROUNDS), compute_log_half_cauchy(SLABS)


@dataclass(frozen=True, eq=False)
class WalkResult:
    """The walkers' last sets, all equally probable, and the log evidence (up to a constant)."""

    solved: SolvedSets
    log_evidence: float


def sample_sets(evidence: Evidence, n_walkers: int) -> WalkResult:
    """Draw ``n_walkers`` sets from the posterior."""
    random = np.random.default_rng(SEED)
    few = evidence.lengths.shape[1]
    longest = min(evidence.most, LONGEST_START, max(2, int(evidence.residual_df + 1e-6) // 4))
    walkers = SetWalkers(evidence, SLABS, LOG_PRIORS, random.bit_generator, n_walkers, longest)
    states, heights = walkers.move(min(ROUNDS_BEFORE, 2 + few))
    # The mean of the log posterior is the log of a region's probability less its entropy.
    means = heights[len(heights) // 2 :].mean(axis=0)
    weights = np.exp(means - means.max())
    walkers.take(_resample(weights / weights.sum(), random))
    more = walkers.move(min(ROUNDS_AFTER, 2 + few))
    log_evidence = _estimate_log_evidence(
        np.concatenate([states, more[0]]), np.concatenate([heights, more[1]])
    )
    return WalkResult(evidence.solve(_read_sets(walkers)), log_evidence)


def _read_sets(walkers: SetWalkers) -> FeatureSets:
    width = int(walkers.sizes.max())
    there = np.arange(width) < walkers.sizes[:, None]
    background, slab = walkers.places.T.copy()
    return FeatureSets(np.where(there, walkers.members[:, :width], -1), background, slab)


def _estimate_log_evidence(states: NDArray[np.uint64], heights: Array) -> float:
    """log p(y) = log p(y, A) - log p(A | y), A the states visited before the last rounds.

    The first is a sum over A, the second the share of the last rounds' states that are in A.
    Walkers that meet count once, as some are copies of others.
    """
    last = len(states) // 3
    known, first = np.unique(states[:-last], return_index=True)
    again = np.concatenate([np.isin(np.unique(some), known) for some in states[-last:]])
    share = max(int(again.sum()), 1) / len(again)
    return float(np.logaddexp.reduce(heights[:-last].ravel()[first])) - float(np.log(share))


def _resample(weights: Array, random: Generator) -> Indices:
    """Systematic resampling."""
    places = (np.arange(len(weights)) + random.random()) / len(weights)
    return np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)
