"""Rules for when an experiment is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from posterity.aliases import Array


@dataclass(frozen=True)
class ArmSummaries:
    """Means and intervals of K arms' rewards.

    Attributes
    ----------
    means : (K,)
    low, high : (K, K)
        Of the difference of each row's arm from each column's, at all times.
    rows : int
    draws : (M, K)
        Of the means; none while rows are few.
    """

    means: Array
    low: Array
    high: Array
    rows: int
    draw: Callable[[], Array]

    @cached_property
    def draws(self) -> Array:
        """The joint draws, made at the first access."""
        return self.draw()

    @property
    def loss(self) -> Array:
        """(K,) expected loss of taking each arm; infinite while rows are few."""
        if not len(self.draws):
            return np.full(len(self.means), np.inf)
        return np.asarray((self.draws.max(axis=1, keepdims=True) - self.draws).mean(axis=0))

    @property
    def best(self) -> Array:
        """(K,) probability of each arm to have the largest mean; alike while rows are few."""
        count = len(self.means)
        if not len(self.draws):
            return np.full(count, 1.0 / count)
        return np.bincount(self.draws.argmax(axis=1), minlength=count) / len(self.draws)


@dataclass(frozen=True)
class Decision:
    """The end of an experiment.

    Attributes
    ----------
    arm : name
        The arm to take.
    reason : str
    rows : int
        How many rows it took.
    """

    arm: Any
    reason: str
    rows: int


class Stop:
    """A rule for stopping an experiment; ``a | b`` stops when either does.

    While there is no verdict ``waits`` says why.
    """

    waits: ClassVar[str] = "no rule for stopping is met yet"

    @property
    def smallest_effect(self) -> float:
        """Differences below it are not worth having."""
        return 0.0

    def verdict(self, summaries: ArmSummaries) -> tuple[int, str] | None:
        """Index of the winning arm and the reason; None while the experiment continues."""
        raise NotImplementedError

    def __or__(self, other: Stop) -> Stop:
        return AnyRule((self, other))


@dataclass(frozen=True)
class AnyRule(Stop):
    """The first of several rules that has a verdict."""

    rules: tuple[Stop, ...]

    @property
    def smallest_effect(self) -> float:
        """See :class:`Stop`."""
        return max(rule.smallest_effect for rule in self.rules)

    def verdict(self, summaries: ArmSummaries) -> tuple[int, str] | None:
        """See :class:`Stop`."""
        verdicts = (rule.verdict(summaries) for rule in self.rules)
        return next((one for one in verdicts if one is not None), None)


@dataclass(frozen=True, kw_only=True)
class AnytimeValid(Stop):
    """Stop when one arm is better than all others, or when no relevant difference remains.

    By intervals that hold at all times and together: however often one looks, the arm that is
    taken is not the best one with probability 1 minus the experiment's level at most.

    Parameters
    ----------
    smallest_effect
        Differences below it are not worth having (a region of practical equivalence), in the unit
        of the reward: 0.002 is 0.2 percentage points. 0 goes on until an arm is better.
    """

    waits: ClassVar[str] = "the intervals do not tell the arms apart"
    smallest_effect: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.smallest_effect < np.inf:
            raise ValueError(f"smallest_effect is {self.smallest_effect}: it must be 0 or more")

    def verdict(self, summaries: ArmSummaries) -> tuple[int, str] | None:
        """See :class:`Stop`."""
        others = ~np.eye(len(summaries.means), dtype=bool)
        better = np.flatnonzero(np.all((summaries.low > 0.0) | ~others, axis=1))
        if len(better):
            return int(better[0]), "is better than all others"
        good = np.all((summaries.low > -self.smallest_effect) | ~others, axis=1)
        if not good.any():
            return None
        best = int(np.where(good, summaries.means, -np.inf).argmax())
        return best, f"is beaten by no other by {self.smallest_effect:g} or more"


@dataclass(frozen=True)
class ExpectedLoss(Stop):
    """Stop when the expected loss of choosing the arm that looks best is below a threshold.

    It bounds no frequency of errors: how often one looks is up to who takes it.

    Parameters
    ----------
    threshold
        In units of the reward.
    """

    threshold: float

    def verdict(self, summaries: ArmSummaries) -> tuple[int, str] | None:
        """See :class:`Stop`."""
        loss = summaries.loss
        best = int(loss.argmin())
        if not loss[best] < self.threshold:
            return None
        return best, f"has an expected loss of {loss[best]:.2g}"


@dataclass(frozen=True)
class Rows(Stop):
    """Stop after a number of rows.

    Parameters
    ----------
    most
        Rows after which the arm of the largest mean is taken.
    """

    most: int

    def verdict(self, summaries: ArmSummaries) -> tuple[int, str] | None:
        """See :class:`Stop`."""
        if summaries.rows < self.most:
            return None
        means = np.where(np.isfinite(summaries.means), summaries.means, -np.inf)
        return int(means.argmax()), f"has the largest mean of {summaries.rows:,} rows"
