"""Runs: posteriors from each row on at which the last change may have been.

A run that began at row s is the hypothesis that the last change lies right before row s. Between
two rows a change comes with a probability, the hazard; after it a new run starts (Adams and MacKay
2007; Fearnhead and Liu 2007):

    before row t    p(run s) (1 - hazard) for those that are there, hazard for the new one
    after it        each times the density that the run gave row t, normalised.

Runs of a Gaussian model are triangles in one bank (:mod:`posterity.posteriors.banked_runs`), those
of any other are posteriors (:mod:`posterity.posteriors.regimes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Mask
from posterity.distributions.mixing import mix_exactly
from posterity.posteriors.hypotheses import Hypotheses
from posterity.posteriors.memory import Several

# Runs are dropped a few at a time: once this share of them has become negligible.
NEGLIGIBLE_SHARE = 0.25
# When there are too many runs, this share more of them is dropped as well.
EXTRA_DROPPED_SHARE = 0.25
# A row may be an outlier: with this probability its noise has so many times the standard deviation.
# Only a run that has learned rows enough to know its noise can tell one.
OUTLIER_PROBABILITY, OUTLIER_SCALE, JUDGING_ROWS = 0.01, 10.0, 15.0


class ChangeStrategy(Protocol):
    """Rate of changes and number of runs to keep: posterity.forgetting.Changepoint."""

    @property
    def max_runs(self) -> int:
        """Most runs to keep."""

    @property
    def smallest_probability(self) -> float:
        """Runs less probable than this are dropped."""

    def hazards(self, elapsed: Array) -> Array:
        """Probability of a change in each stretch of time."""

    def after(self, elapsed: float) -> Self:
        """The same whose unit of time is so long."""


class Change(NamedTuple):
    """A change right before a row, and the one before it."""

    row: int
    earlier: Change | None


def median_change(probability: Array, changes: list[Change | None]) -> Change | None:
    """The change that the present run began with, as far as its probabilities (k,) tell.

    It is the median of the run's first row: with probability 1/2 at least it lies there or later,
    and there or earlier.
    """
    if probability[0] >= 0.5:
        return changes[0]
    found = int(np.searchsorted(probability.cumsum(), 0.5))
    return changes[min(found, len(probability) - 1)]


class RunHistory:
    """Run probabilities before each row of a call, (n, most runs), and its log density (n,).

    ``error``, ``leverage``, ``residual_df`` and ``residual`` are those of each run's prediction,
    if they are asked for.
    """

    def __init__(self, n_rows: int, most: int, *, with_predictions: bool = False) -> None:
        self.hazard, self.log_density = np.zeros(n_rows), np.zeros(n_rows)
        self.size = np.zeros(n_rows, dtype=np.intp)
        self.first = np.zeros((n_rows, most), dtype=np.int64)
        self.probability = np.zeros((n_rows, most))
        shape = (n_rows if with_predictions else 0, most)
        # Padding has probability 0, so its predictions only have to be finite.
        self.error, self.leverage = np.zeros(shape), np.zeros(shape)
        self.residual_df, self.residual = np.ones(shape), np.ones(shape)

    def record(self, i: int, runs: Runs, hazard: float) -> None:
        """Note what is believed before row i."""
        k = runs.size
        self.hazard[i], self.size[i] = hazard, k
        self.first[i, :k] = runs.first[:k]
        self.probability[i, :k] = runs.probability[:k]

    def weights(self) -> Array:
        """(n, most) probabilities of the runs at each row, the new one included."""
        weights = self.probability * (1.0 - self.hazard)[:, None]
        weights[np.arange(len(weights)), self.size] = self.hazard
        return weights / weights.sum(axis=1, keepdims=True)

    def find_changes(self, runs: Runs) -> Array:
        """(n,) probability of a change right before each row, given all rows up to the last.

        Given a change before row t, what came before it is independent of what came after. So

            g(s) = p(run s | all rows) + sum over t > s of g(t) p(run s | rows before t)

        from the last row back (Fearnhead and Liu 2007, section 3, summed instead of sampled).
        """
        n, k = len(self.hazard), runs.size
        start = runs.row - n
        # What lies before the call, or is the stream's first row and no change, collects at n.
        earliest = max(start, 1)
        begun = np.where(self.first >= earliest, self.first - start, n)
        changed = np.zeros(n + 1)
        first = runs.first[:k]
        changed[np.where(first >= earliest, first - start, n)] = runs.probability[:k]
        for t in range(n - 1, 0, -1):
            k = self.size[t]
            changed[begun[t, :k]] += changed[t] * self.probability[t, :k]
        return np.minimum(changed[:n], 1.0)


@dataclass(kw_only=True)
class Runs(Hypotheses):
    """All runs that are still considered, oldest first; the first k entries of arrays are in use.

    Each begins as ``fresh``, which has seen nothing. The run i began at row ``first[i]``, has
    ``probability[i]`` and rows of weight ``learned[i]``; ``changes[i]`` is the change that it began
    with. ``found`` (n,) has the probability of a change right before each row of the last call,
    given all rows up to its end.
    """

    fresh: Any
    strategy: ChangeStrategy
    first: NDArray[np.int64]
    probability: Array
    learned: Array
    changes: list[Change | None] = field(default_factory=lambda: [None])
    row: int = 0
    seen: float = 0.0
    log_evidence: float = 0.0
    found: Array = field(default_factory=lambda: np.zeros(0))

    memory = Several(
        "Changepoint",
        "where changes were found depends on every row; fit the remaining rows again",
        "changes lie between the rows of one stream; fit all rows in the order they came",
    )
    mix = staticmethod(mix_exactly)
    # What changes in place.
    owned: ClassVar[tuple[str, ...]] = ("first", "probability", "learned", "changes")

    @classmethod
    def before_data(cls, fresh: Any, strategy: ChangeStrategy) -> Self:
        """Return one run, which began with the stream as ``fresh``."""
        raise NotImplementedError

    def copy(self) -> Self:
        """An independent copy."""
        return replace(self, **{name: getattr(self, name).copy() for name in self.owned})

    @property
    def common(self) -> Any:
        """The posterior that a run begins as."""
        return self.fresh

    @property
    def size(self) -> int:
        """Number of runs."""
        return len(self.changes)

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.seen

    @property
    def n_effective(self) -> float:
        """Expected weight of the rows of the present run."""
        return float(self.probability[: self.size] @ self.learned[: self.size])

    @property
    def next_hazard(self) -> float:
        """Probability of a change right before a row, one unit of time from now."""
        return float(self.strategy.hazards(np.ones(1))[0])

    def wait(self, elapsed: float) -> None:
        """Let so much time pass after the last row: a change may have come in all of it."""
        self.strategy = self.strategy.after(elapsed)

    @property
    def last_change(self) -> Change | None:
        """The change that the present run began with, as far as is known."""
        return median_change(self.probability[: self.size], self.changes)

    @property
    def change_probability(self) -> Array:
        """(n,) for the rows of the last call: probability of a change right before each.

        Given all rows up to the end of that call: learned one at a time, each row's is what was
        known when it came.
        """
        return self.found.copy()

    @property
    def changed_rows(self) -> NDArray[np.int64]:
        """Rows right before which the regression changed, counted from the start of the stream.

        The last is the median of the row at which the present run began, given all rows so far: the
        change lies there or later with probability 1/2 at least, and there or earlier as well. Each
        of those before it is the same of the run before it. Rows to come may move or revoke them.
        """
        rows, change = [], self.last_change
        while change is not None:
            rows.append(change.row)
            change = change.earlier
        return np.array(rows[::-1], dtype=np.int64)


def select_runs(probability: Array, smallest: float, most: int) -> Mask | None:
    """Select the runs to keep: (k,) flags, or None for all, as while few are negligible.

    The newest, which has had no chance yet, stays.
    """
    k = len(probability)
    kept = probability >= smallest
    if k <= most and k - np.count_nonzero(kept) <= NEGLIGIBLE_SHARE * k:
        return None
    kept[-1] = True
    if np.count_nonzero(kept) > most:
        chance = np.where(kept, probability, -1.0)
        chance[-1] = math.inf
        left = max(most - int(EXTRA_DROPPED_SHARE * most), 2)
        kept[...] = False
        kept[np.argpartition(chance, k - left)[k - left :]] = True
    return kept
