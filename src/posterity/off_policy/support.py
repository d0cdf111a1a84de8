"""Support of a log for a policy: weights, and decisions that were never made."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from posterity.aliases import Array
from posterity.io.rounds import Rounds
from posterity.moments import compute_moments, count_effective_errors, merge_moments
from posterity.off_policy.targets import EvaluatedDecisions

# A share of decisions without support that is let pass.
TOLERATED_SHARE = 0.01
# Errors of one size that the spread of an arm rests on, before it is believed: where none came,
# three may have been due (with probability .05).
_FEWEST_ERRORS = 3.0
# Errors in effect from which on an arm tells its own spread, and before which it may be larger
# than all arms show.
_TOLD_ERRORS = 20.0
_FEWEST_TOLD = 10.0
# Squares beside those of the mean that are rounding.
_ROUNDING = 1e-24


@dataclass(frozen=True)
class Support:
    """Overlap between a log and a policy: how well the log can evaluate it.

    Attributes
    ----------
    rows : int
        Decisions of the log.
    effective_rows : float
        Kish's number: squared sum of weights over the sum of squares. Nan without propensities.
    largest_weight, mean_weight : float
        The mean is 1 but for chance, where propensities are right and nothing lacks support.
    without_support : float
        Share of the policy's decisions that the log would never have made.
    never_seen : float
        That of arms which are not in the log at all, and that no reward model knows.
    """

    rows: int
    effective_rows: float
    largest_weight: float
    mean_weight: float
    without_support: float
    never_seen: float


@dataclass
class SupportSums:
    """Sums over rows for :class:`Support`."""

    n_arms: int
    rows: int = 0
    known: bool = True  # the propensity of the arm that was chosen
    all_known: bool = True  # those of all arms
    largest: float = 0.0
    ends: tuple[float, float] = (np.inf, -np.inf)  # of the propensities
    weights: Array = field(default_factory=lambda: np.zeros(2))  # sums of w and w^2
    mass: Array = field(default_factory=lambda: np.zeros(0))
    unsupported: Array = field(default_factory=lambda: np.zeros(0))
    counts: Array = field(default_factory=lambda: np.zeros(0))  # (K,) rows of each arm

    def __post_init__(self) -> None:
        self.mass, self.unsupported = np.zeros(self.n_arms + 1), np.zeros(self.n_arms + 1)
        self.counts = np.zeros(self.n_arms)

    def add(self, rounds: Rounds, rows: EvaluatedDecisions) -> None:
        """Add more rows."""
        self.rows += len(rounds)
        counts = np.bincount(rounds.arms, minlength=self.n_arms)
        self.counts += counts
        self.mass += np.append(counts, 0) if rows.is_logged else rows.mass
        self.unsupported += rows.unsupported
        self.all_known = self.all_known and rounds.propensities is not None
        if rows.weight is None:
            self.known = False
        elif len(rounds):
            self.largest = max(self.largest, float(rows.weight.max()))
            self.weights += (rows.weight.sum(), rows.weight @ rows.weight)
            self._add_rows(rounds, rows)

    def _add_rows(self, rounds: Rounds, rows: EvaluatedDecisions) -> None:
        if not rows.is_logged and rounds.propensity is not None:
            low, high = self.ends
            own = rounds.propensity
            self.ends = min(low, float(own.min())), max(high, float(own.max()))

    @property
    def is_uniform(self) -> bool:
        """True if all arms were chosen with one probability, as far as is known."""
        low, high = self.ends
        return not high > low * (1.0 + 1e-9)

    @property
    def direct_weights(self) -> Array:
        """(K,) how much each row of an arm counts in the mean of a model, as weights do in IPS."""
        return np.asarray(self.mass[:-1] / np.maximum(self.counts, 1.0))

    @property
    def direct_rows(self) -> float:
        """Effective rows of the mean of a model, whose rows have these weights."""
        squares = float(self.counts @ np.square(self.direct_weights))
        return self.rows**2 / squares if squares > 0.0 else 0.0

    def estimate(self) -> Support:
        """Return the support that the sums show."""
        n = max(self.rows, 1)
        unseen = max(float(self.mass[:-1][self.counts == 0].sum() + self.mass[-1]), 0.0) / n
        # An arm that never came had no chance, where all chances are not known.
        without = unseen
        if self.all_known:
            without = float(self.unsupported.sum() + max(self.mass[-1], 0.0)) / n
        if not self.known:
            return Support(self.rows, np.nan, np.nan, np.nan, without, unseen)
        total, squares = self.weights
        mean = total / n
        error = np.sqrt(max(squares / n - mean**2, 0.0) / n)
        if not self.all_known and mean + 3.0 * error < 1.0 - TOLERATED_SHARE:
            without = max(without, 1.0 - mean)
        effective = total**2 / squares if squares > 0.0 else 0.0
        return Support(self.rows, effective, self.largest, mean, without, unseen)


@dataclass
class ArmRewards:
    """Moments of each arm's rewards in the log, and what rewards there are."""

    n_arms: int
    moments: Array = field(default_factory=lambda: np.zeros((5, 0)))
    newest: Array = field(default_factory=lambda: np.zeros((5, 0)))  # those of the last rows
    values: Array = field(default_factory=lambda: np.zeros(0))  # up to three different ones
    ends: tuple[float, float] = (np.inf, -np.inf)

    def __post_init__(self) -> None:
        self.moments = np.zeros((5, self.n_arms))

    def add(self, rounds: Rounds) -> None:
        """Add more rows."""
        rewards = rounds.rewards
        if not len(rewards):
            return
        self.newest = compute_moments(rewards, rounds.arms, self.n_arms)
        self.moments = merge_moments(self.moments, self.newest)
        low, high = self.ends
        self.ends = min(low, float(rewards.min())), max(high, float(rewards.max()))
        if len(self.values) < 3:
            others = rewards[~np.isin(rewards, self.values)]
            self.values = np.unique(np.concatenate([self.values, others]))[:3]

    @property
    def variance(self) -> float:
        """Mean squared error about each arm's mean; 0 where it is rounding."""
        n, mean, squares = self.moments[:3]
        total = float(squares.sum())
        return total / n.sum() if total > _ROUNDING * float(n @ np.square(mean)) else 0.0

    @property
    def size(self) -> float:
        """Squared size of errors, of which each counts by its square; infinite where all are 0."""
        if not self.variance > 0.0:
            return np.inf
        return float(self.moments[4].sum() / self.moments[2].sum())


@dataclass
class RewardSpread:
    """Rewards of each arm where a policy would choose it, to find arms that do not tell theirs.

    An arm of which none of its rare rewards came has no spread that could be estimated: an interval
    from its rows would have no width. If rewards have heavy tails, half of all arms have less
    spread in a few rows than they have in many.
    """

    log: ArmRewards
    moments: Array = field(default_factory=lambda: np.zeros((5, 0)))
    weights: Array = field(default_factory=lambda: np.zeros(0))  # (K,) sums of w^2

    def __post_init__(self) -> None:
        self.moments, self.weights = np.zeros((5, self.log.n_arms)), np.zeros(self.log.n_arms)

    def add(self, rows: EvaluatedDecisions) -> None:
        """Add more rows."""
        weight = rows.match if rows.weight is None else rows.weight
        some = weight > 0.0
        if not some.any():
            return
        arms, count = rows.rounds.arms[some], self.log.n_arms
        whole = some.all()
        more = self.log.newest if whole else compute_moments(rows.rewards[some], arms, count)
        self.moments = merge_moments(self.moments, more)
        self.weights = self.weights + np.bincount(arms, np.square(weight[some]), count)

    @property
    def mean_squares(self) -> Array:
        """(K,) mean squared weight of each arm's rows."""
        return np.asarray(self.weights / np.maximum(self.moments[0], 1.0))

    @property
    def is_untold(self) -> bool:
        """True if an arm shows few errors, in effect, and all arms together show no larger ones."""
        n, _, squares = self.moments[:3]
        most = (n > 0.0) & (len(self.log.values) > 2) & (squares > n * self.log.variance)
        return bool((count_effective_errors(self.moments)[most] < _FEWEST_TOLD).any())

    def compute_missing_squares(self, weights: Array) -> tuple[float, float]:
        """Return what the squared errors of an estimate lack, with these squared weights (K,).

        The first is of errors that all have one size: as many are added as are missing to three.
        It is infinite where all rewards are alike. The second is of sizes that differ: as much as
        an arm has less spread than all arms together, by how few errors it shows, in effect.
        """
        n, mean, squares, _, fourth = self.moments
        squares = np.where(squares > _ROUNDING * n * np.square(mean), squares, 0.0)
        used = (weights > 0.0) & (n > 0.0)
        size = np.where(
            squares > 0.0, fourth / np.where(squares > 0.0, squares, 1.0), self.log.size
        )
        few = np.maximum(_FEWEST_ERRORS * size - squares, 0.0)
        alike = (squares == 0.0) | (len(self.log.values) < 3)
        share = np.maximum(1.0 - count_effective_errors(self.moments) / _TOLD_ERRORS, 0.0)
        less = share * np.maximum(n * self.log.variance - squares, 0.0)
        one = np.where(used & alike, few, 0.0)
        other = np.where(used & ~alike, less, 0.0)
        kept = np.where(used, weights, 0.0)
        return float(np.sum(kept * one)), float(np.sum(kept * other))
