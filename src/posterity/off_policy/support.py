"""Support of a log for a policy: weights, and decisions that were never made."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from posterity.io.rounds import Rounds
from posterity.off_policy.targets import EvaluatedDecisions

Array = NDArray[np.float64]

# A share of decisions without support that is let pass.
TOLERATED_SHARE = 0.01
# Errors as large as the largest that the spread of an arm rests on, before it is believed.
FEWEST_ERRORS = 3.0


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
    seen: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def __post_init__(self) -> None:
        self.mass, self.unsupported = np.zeros(self.n_arms + 1), np.zeros(self.n_arms + 1)
        self.seen = np.zeros(self.n_arms + 1, dtype=bool)

    def add(self, rounds: Rounds, rows: EvaluatedDecisions) -> None:
        """Add more rows."""
        self.rows += len(rounds)
        self.mass += rows.mass
        self.unsupported += rows.unsupported
        self.seen[:-1] |= np.bincount(rounds.arms, minlength=self.n_arms) > 0
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

    def estimate(self) -> Support:
        """Return the support that the sums show."""
        n = max(self.rows, 1)
        unseen = max(float(self.mass[~self.seen].sum()), 0.0) / n
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
class RewardSpread:
    """Sums of rewards, to find arms with too few of them to estimate their variance.

    An arm of which none of its rare rewards came has no spread that could be estimated: an interval
    from its rows would have no width.
    """

    n_arms: int
    pivot: float | None = None
    total: float = 0.0
    ends: tuple[float, float] = (np.inf, -np.inf)
    # (3, K) rows of each arm that the policy would choose, sums of rewards and of their squares
    sums: Array = field(default_factory=lambda: np.zeros((3, 0)))
    weights: Array = field(default_factory=lambda: np.zeros(0))  # (K,) sums of w^2
    rows: int = 0

    def __post_init__(self) -> None:
        self.sums, self.weights = np.zeros((3, self.n_arms)), np.zeros(self.n_arms)

    def add(self, rows: EvaluatedDecisions) -> None:
        """Add more rows."""
        rewards = rows.rewards
        if not len(rewards):
            return
        if self.pivot is None:
            self.pivot = float(rewards.mean())
        low, high = self.ends
        self.ends = min(low, float(rewards.min())), max(high, float(rewards.max()))
        weight = rows.match if rows.weight is None else rows.weight
        off = rewards - self.pivot
        self.total += float(off.sum())
        self.rows += len(off)
        some = weight > 0.0
        arms, off = rows.rounds.arms[some], off[some]
        count = [np.bincount(arms, each, self.n_arms) for each in (None, off, np.square(off))]
        self.sums = self.sums + np.stack(count)
        self.weights = self.weights + np.bincount(arms, np.square(weight[some]), self.n_arms)

    def compute_missing_squares(self) -> float:
        """Return what squared errors lack; infinite where all rewards are alike."""
        if self.pivot is None:
            return 0.0
        mean = self.pivot + self.total / self.rows
        largest = max(self.ends[1] - mean, mean - self.ends[0])
        if not largest > 0.0:
            return np.inf
        n, first, second = self.sums
        seen = second - np.square(first) / np.maximum(n, 1.0)
        missing = np.maximum(FEWEST_ERRORS * largest**2 - seen, 0.0)
        return float(missing @ (self.weights / np.maximum(n, 1.0)))


__all__ = ["TOLERATED_SHARE", "RewardSpread", "Support", "SupportSums"]
