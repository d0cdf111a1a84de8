"""Runs: posteriors from each row on at which the last change may have been.

A run that began at row s is the hypothesis that the last change lies right before row s. Between
two rows a change comes with a probability, the hazard; after it a new run starts (Adams and MacKay
2007; Fearnhead and Liu 2007):

    before row t    p(run s) (1 - hazard) for those that are there, hazard for the new one
    after it        each times the density that the run gave row t, normalised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor, OneStepPredictions
from posterity.factor.bank import FactorBank, combine_prior_with_data
from posterity.kernel import RunsKernel
from posterity.noise import Noise
from posterity.posteriors._row_evidence import (
    compute_evidence_gain,
    noise_is_proper,
    noise_variance,
)
from posterity.posteriors.ensemble import update_probabilities

Array = NDArray[np.float64]

# Weight, in rows, of the noise's prior in a new run: with fewer its predictions, and with them
# every mixture, would have no variance.
NOISE_ROWS = 3.0
# The start of a new run is computed again once the rows or the noise have changed by this much.
RESTART_CHANGE = 0.02
# Runs are dropped a few at a time: once this share of them has become negligible.
NEGLIGIBLE_SHARE = 0.25
# Rows between two checks of this.
ROWS_BETWEEN_LOOKS = 8
# When there are too many runs, this share more of them is dropped as well.
EXTRA_DROPPED_SHARE = 0.25


class Change(NamedTuple):
    """A change right before a row, and the one before it."""

    row: int
    earlier: Change | None

    def rows(self) -> list[int]:
        """The rows of this change and those before it, in order."""
        found = [self.row]
        while self.earlier is not None:
            self = self.earlier
            found.append(self.row)
        return found[::-1]


def median_change(probability: Array, changes: list[Change | None]) -> Change | None:
    """The change that the present run began with, as far as its probabilities (k,) tell.

    It is the median of the run's first row: with probability 1/2 at least it lies there or later,
    and there or earlier.
    """
    if probability[0] >= 0.5:
        return changes[0]
    found = int(np.searchsorted(probability.cumsum(), 0.5))
    return changes[min(found, len(probability) - 1)]


def select_runs(probability: Array, smallest: float, most: int) -> NDArray[np.bool_] | None:
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


def _append_changes(
    known: list[Change | None],
    numbers: list[int],
    rows: NDArray[np.int64],
    earlier: NDArray[np.int64],
) -> list[Change | None]:
    """The changes of these numbers: those that were known, then new ones, each after an earlier."""
    needed, wanted = set(), [number for number in numbers if number >= len(known)]
    while wanted:
        number = wanted.pop()
        if number >= len(known) and number not in needed:
            needed.add(number)
            wanted.append(int(earlier[number - len(known)]))
    made = dict(enumerate(known))
    for number in sorted(needed):
        new = number - len(known)
        made[number] = Change(int(rows[new]), made[int(earlier[new])])
    return [made[number] for number in numbers]


@dataclass(frozen=True)
class Start:
    """The start of a new run: its triangle, and the observations its noise counts for.

    ``count`` and ``variance`` are the weight of the rows and the noise's variance it was made for.
    """

    triangle: Array
    residual_df: float
    count: float = 0.0
    variance: float = 0.0

    def is_close(self, count: float, variance: float) -> bool:
        """Return True if count and variance are still about the same."""
        return (
            count <= (1.0 + RESTART_CHANGE) * self.count
            and abs(variance - self.variance) <= RESTART_CHANGE * self.variance
        )


@dataclass(frozen=True)
class RunPrior:
    """The prior that new runs start from, completed where it is improper.

    A new run must not win because an improper prior's density is 1 everywhere. So where the prior
    says nothing (flat directions, noise of unknown size) it starts with a little of what all rows
    so far say, and until that suffices no change is considered:

    * the rows so far, all together as one row of weight v/V: v is the noise's variance now, V that
      of the targets so far (around their mean if there is an intercept, otherwise around 0). The
      new coefficients are centred on those of all rows, as uncertain as to predict an average row
      no better than knowing nothing but mean and spread of the targets does: a unit information
      prior (Kass and Wasserman 1995) of the scale of the targets instead of the noise's;
    * the noise's variance now, with the weight of ``NOISE_ROWS`` rows.
    """

    prior: Factor
    noise: Noise
    intercept: bool

    @cached_property
    def from_prior(self) -> Start | None:
        """The prior, where it suffices."""
        whole = self.prior.rank == self.prior.n_coefficients
        return Start(self.prior.triangle, 0.0) if whole and self.has_proper_noise else None

    @cached_property
    def has_proper_noise(self) -> bool:
        """True if the prior of the noise is proper."""
        return noise_is_proper(self.noise)

    def after(self, data: Array, count: float, variance: float) -> Start | None:
        """Start of a run after rows of total weight ``count``, ``data`` being their triangle."""
        p = self.prior.n_coefficients
        # The intercept's rotation took the mean out of the rows below the first.
        targets = data[int(self.intercept) : p + 1, p]
        spread = float(targets @ targets) / count if count > 0.0 else 0.0
        if not (0.0 < variance < math.inf and spread > 0.0):
            return None
        triangle = combine_prior_with_data(self.prior, data, min(variance / spread, 1.0) / count)
        if not triangle.diagonal()[:p].all():
            return None
        # A run's starting point fits itself by construction: only the noise is informative.
        if self.has_proper_noise:
            triangle[p, p] = 0.0
            return Start(triangle, 0.0, count, variance)
        triangle[p, p] = math.sqrt(NOISE_ROWS * variance)
        return Start(triangle, NOISE_ROWS, count, variance)


@dataclass
class Runs:
    """All runs that are still considered, oldest first; arrays are (k + 1,), k of them in use.

    ``bank`` holds the triangle of all rows (without a prior), then those of the runs. The run i
    began at row ``first[i]``, has ``probability[i]``, ``freed[i]`` observations for its noise and
    rows of weight ``learned[i]``; ``changes[i]`` is the change that it began with.
    """

    bank: FactorBank
    first: NDArray[np.int64]
    probability: Array
    residual_df: Array
    learned: Array
    changes: list[Change | None]
    latest_start: Start | None = None
    row: int = 0
    seen: float = 0.0
    log_evidence: float = 0.0

    @classmethod
    def before_data(cls, prior: Factor, capacity: int) -> Self:
        """Return one run, which began with the stream at the prior."""
        bank = FactorBank(prior.n_coefficients, capacity + 1)
        bank.push(Factor(prior.n_coefficients).triangle)
        bank.push(prior.triangle)
        empty = np.zeros(capacity)
        runs = cls(bank, np.zeros(capacity, np.int64), empty, empty.copy(), empty.copy(), [None])
        runs.probability[0] = 1.0
        # Each flat direction takes an observation to be determined.
        runs.residual_df[0] = prior.rank - prior.n_coefficients
        return runs

    @property
    def size(self) -> int:
        """Number of runs."""
        return self.bank.size - 1

    def copy(self) -> Runs:
        """An independent copy."""
        return replace(
            self,
            bank=self.bank.copy(),
            first=self.first.copy(),
            probability=self.probability.copy(),
            residual_df=self.residual_df.copy(),
            learned=self.learned.copy(),
            changes=self.changes.copy(),
        )

    def residual(self) -> Array:
        """(k,) residual sums of squares."""
        return self.bank.residual()[1:]

    def last_change(self) -> Change | None:
        """The change that the present run began with, as far as is known."""
        return median_change(self.probability[: self.size], self.changes)

    def start(self, beginning: RunPrior) -> Start | None:
        """The start of a run that begins now; None while it would be improper.

        To be called where NumPy's warnings are silent.
        """
        if beginning.from_prior is not None:
            return beginning.from_prior
        k = self.size
        variance = noise_variance(
            beginning.noise, self.probability[:k], self.residual_df[:k], self.residual()
        )
        if self.latest_start is None or not self.latest_start.is_close(self.seen, variance):
            self.latest_start = beginning.after(self.bank.triangles[0], self.seen, variance)
        return self.latest_start

    def learn_rows(
        self, i: int, history: Any, beginning: RunPrior, rules: tuple[float, int], rows: Any
    ) -> int:
        """Learn rows from row i on in the kernel; returns the first that must be learned by itself.

        As :meth:`begin`, :meth:`learn` and :meth:`drop` row by row, for ``rules``, the smallest
        probability and most runs. ``rows`` are X, y, weights and hazards, and ``history`` records
        each. To be called where NumPy's warnings are silent.
        """
        hazards, n = rows[3], len(rows[0])
        path = self.in_kernel(history, beginning, rules, rows)
        while i < n:
            asked = hazards[i] > 0.0 and self.seen > 0.0
            after = path.learn(i, self.start(beginning) if asked else None)
            if after == i:
                break
            i = after
        self.changes = _append_changes(self.changes, *path.changes())
        return i

    def in_kernel(
        self, history: Any, beginning: RunPrior, rules: tuple[float, int], rows: Any
    ) -> RunsKernel:
        """Return the compiled learner of rows; arguments as of :meth:`learn_rows`."""
        X, y, weights, hazards = rows
        ways = beginning.intercept, beginning.noise.parameters
        several = (
            rules[0],
            NEGLIGIBLE_SHARE,
            EXTRA_DROPPED_SHARE,
            RESTART_CHANGE,
            rules[1],
            ROWS_BETWEEN_LOOKS,
        )
        return RunsKernel(self, history, self.bank.room, X, y, weights, hazards, *ways, several)

    def update_changes(
        self, path: RunsKernel, size: int, known: list[Change | None]
    ) -> list[Change | None]:
        """The changes after ``path`` has learned one row, of ``size`` runs with those ``known``."""
        numbers, begun, earlier = path.changes()
        if len(begun) == 1 and self.size == size + 1:  # none was dropped
            return [*known, Change(int(begun[0]), known[int(earlier[0])])]
        return _append_changes(known, numbers, begun, earlier)

    def begin(self, start: Start, hazard: float) -> None:
        """Begin a new run at the next row, with probability ``hazard``."""
        k = self.size
        earlier = self.last_change()
        self.bank.push(start.triangle)
        self.first[k], self.residual_df[k], self.learned[k] = self.row, start.residual_df, 0.0
        self.probability[:k] *= 1.0 - hazard
        self.probability[k] = hazard
        self.changes.append(Change(self.row, earlier))

    def learn(
        self, X: Array, Y: Array, weights: Array | None, noise: Noise, *, intercept: bool
    ) -> OneStepPredictions:
        """Learn one row in each run; returns the prediction of each before it.

        To be called where NumPy's warnings are silent.
        """
        k = self.size
        weight = 1.0 if weights is None else float(weights[0])
        before = self.bank.learn(X, Y, weights, intercept=intercept)
        error, leverage = before[0][1:, 0], before[1][1:]
        residual, residual_df = before[2][1:, 0], self.residual_df[:k].copy()
        gain = compute_evidence_gain(noise, weight, error, leverage, residual_df, residual)
        self.probability[:k], added = update_probabilities(self.probability[:k], gain)
        self.log_evidence += added
        self.residual_df[:k] += weight
        self.learned[:k] += weight
        self.seen += weight
        self.row += 1
        return OneStepPredictions(error, leverage, residual, residual_df)

    def drop(self, smallest_probability: float, most: int) -> None:
        """Drop runs that have become negligible, once there are enough of them or too many runs."""
        k = self.size
        if k <= most and self.row % ROWS_BETWEEN_LOOKS:
            return
        kept = select_runs(self.probability[:k], smallest_probability, most)
        if kept is None:
            return
        self.bank.keep(np.concatenate([[True], kept]))
        for values in (self.first, self.probability, self.residual_df, self.learned):
            values[: self.size] = values[:k][kept]
        self.probability[: self.size] /= self.probability[: self.size].sum()
        self.changes = [change for change, stays in zip(self.changes, kept, strict=True) if stays]
