"""What is known of many groups: the triangle of each, and the prior that they share.

The rows of each group are kept as a triangle of their own, under a flat prior; the prior stands
apart and can be learned anew at any time, from the triangles alone. A group's posterior is the
prior's rows stacked on its triangle. What was learned since goes into both.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity import kernel
from posterity.evidence.shared import (
    GroupSample,
    SharedPrior,
    given,
    learned,
    of_all,
    with_given_precision,
)
from posterity.factor import Factor
from posterity.factor.grouped import BankImage, GroupBank, NotInGroupError
from posterity.factor.grouped_rows import GroupedRows
from posterity.noise import Distribution, Noise

Array = NDArray[np.float64]
Slots = NDArray[np.intp]

# The shared prior is learned from so many groups at most, drawn evenly.
MOST_GROUPS, TOLERANCE = 2048, 1e-6
# With more groups than this, what is predicted may lag behind by this share of a row a group.
PROMPT_GROUPS, LAG = 64, 1 / 8
# The prior of a stream, which is learned so often, need not be this exact.
STREAM_GROUPS, STREAM_TOLERANCE = 512, 0.01


@dataclass(frozen=True)
class GroupBelief:
    """What is settled of the shared prior: (p,) means, which of them are free, and the precision.

    ``precision`` is a factor with it and its means, or None where it is learned.
    """

    mean: Array
    free: NDArray[np.bool_]
    precision: Factor | None

    @property
    def is_given(self) -> bool:
        """Whether nothing is learned."""
        return self.precision is not None and not self.free.any()

    def prior(
        self,
        sample: GroupSample,
        noise: Noise,
        start: SharedPrior | None,
        *,
        intercept: bool,
    ) -> SharedPrior:
        """The prior that the groups share; roughly, if there is one to ``start`` from."""
        if self.precision is None:
            return learned(
                sample,
                noise,
                self.mean,
                self.free,
                intercept=intercept,
                start=start,
                tolerance=TOLERANCE if start is None else STREAM_TOLERANCE,
            )
        if self.is_given:
            return given(self.precision)
        return with_given_precision(sample, self.precision, self.free)


@dataclass
class GroupedPosterior:
    """State: a bank of triangles, the prior, and the noise of all groups together.

    ``residual`` and ``count`` are those of all groups under the prior. ``learned_at`` is the number
    of rows at which the prior was learned, ``due_at`` that at which it is to be learned again in a
    stream; ``exact_at`` is as ``learned_at`` if it was learned to the full, otherwise -1.
    """

    belief: GroupBelief
    noise: Noise
    intercept: bool
    discount: float
    bank: GroupBank
    prior: SharedPrior | None = None
    residual: float = 0.0
    count: float = 0.0
    learned_at: int = 0
    due_at: int = 0
    exact_at: int = -1

    def copy(self) -> GroupedPosterior:
        """The same knowledge, to go its own way."""
        twin = copy.copy(self)
        twin.bank = self.bank.copy()
        return twin

    def image(self, slots: Slots) -> PosteriorImage:
        """What is needed to undo changes of the groups at ``slots``, and of new ones."""
        return PosteriorImage(self, dict(self.__dict__), self.bank.image(slots))

    def with_groups(self, bank: GroupBank) -> GroupedPosterior:
        """The same belief about other groups."""
        return GroupedPosterior(self.belief, self.noise, self.intercept, self.discount, bank)

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, rows: GroupedRows) -> None:
        """Learn rows, which are usable (:func:`posterity.factor.grouped_rows.check_usable`).

        If they are not, ``FloatingPointError`` is raised, and this is of no use any more.
        """
        self._make_room(rows)
        if self.bank.stacked and len(rows) <= self.bank.size:
            self._account_for(rows, self._tell(rows))
        else:
            self.bank.learn(rows, self.discount)

    def learn_row(self, slot: int, X: Array, y: float, weight: float) -> None:
        """Learn a usable row (1, m) of weight > 0, of a group in the bank; where nothing fades."""
        bank, target = self.bank, np.array([[y]])
        weights = None if weight == 1.0 else np.array([weight])
        kernel.append_block(bank.triangles[slot], 1, X, target, weights, self.intercept)
        if bank.stacked:
            triangle, p = bank.posterior[slot], bank.n_coefficients
            before = triangle[p, p]
            kernel.append_block(triangle, 1, X, target, weights, self.intercept)
            self.residual += float((triangle[p, p] - before) * (triangle[p, p] + before))
            self.count += weight
        bank.count_row(slot, weight)

    def predict_then_learn(self, rows: GroupedRows) -> Distribution:
        """Learn row after row; returns the distribution of each target before its row."""
        n = len(rows)
        told, freed, residual = np.empty((4, n)), np.empty(n), np.empty(n)
        first = 0
        self.bank.reserve(int(rows.slots.max(initial=-1)) + 1)
        while first < n:
            self._be_ready()
            stop = self._stretch(rows, first)
            part, some = rows.part(first, stop), slice(first, stop)
            known = self.bank.size
            self._make_room(part)
            self._tell(part, told[:, some])
            _running(self.residual, told[2, some], residual[some])
            if self._counts_rows(part):
                counts = np.arange(self.count, self.count + len(part))
                np.subtract(counts, self._flat_before(part, known), out=freed[some])
            else:
                _running(self.count, told[3, some], freed[some])
                freed[some] -= self._flat_before(part, known)
            self._account_for(part, told[:, some])
            first = stop
        mean = np.subtract(rows.y, told[0], out=told[0])
        return self.noise.predictive(mean, told[1], freed, np.maximum(residual, 0.0, out=residual))

    def remove(self, rows: GroupedRows) -> None:
        """Unlearn rows; raises ``ValueError`` when their groups can't have learned them."""
        if self.discount < 1.0:
            raise ValueError(
                "can't unlearn rows where data fade: what is left of a row depends on when it "
                "came; fit the remaining rows again"
            )
        try:
            self.bank.remove(rows)
        except NotInGroupError as error:
            raise ValueError(
                f"row {error.row}, or another row of its group, was never learned, or is unlearned "
                "already: nothing was changed"
            ) from error
        self.exact_at = -1

    def merge(self, other: GroupedPosterior, slots: Slots) -> None:
        """Learn all that ``other`` learned of groups that are at ``slots`` here."""
        self.bank.drop_posterior()
        self.bank.grow(int(slots.max(initial=-1)) + 1)
        self.bank.merge(other.bank, slots)
        self.exact_at = -1

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Drop the groups for which ``which`` is False; the prior is then learned from the rest."""
        self.bank.keep(which)
        self.bank.drop_posterior()
        self.exact_at = -1

    # ---- reading -------------------------------------------------------------------------------

    def predictive(self, X: Array, slots: Slots) -> Distribution:
        """Distribution of new observations in the groups at ``slots``, -1 for unknown ones."""
        prior = self._prompt()
        mean, leverage = self.bank.predict(X, slots, prior.newcomer, intercept=self.intercept)
        return self.noise.predictive(mean, leverage, self.freed, self.residual)

    def predict_mean(self, X: Array, slots: Slots) -> Array:
        """Mean of the same."""
        prior = self._prompt()
        return self.bank.predict(X, slots, prior.newcomer, intercept=self.intercept)[0]

    def predict_one(self, X: Array, slot: int) -> float:
        """Mean at one row (1, m), the prior as old as the stream's schedule has it."""
        self._be_ready()
        return float(kernel.predict_rows(self._triangle(slot), 1, X, self.intercept)[0][0, 0])

    def exact(self) -> SharedPrior:
        """The prior learned from all rows so far, the posterior triangles and the noise with it."""
        known = self.prior is not None and self.bank.stacked
        if not known or (self.exact_at != self.bank.clock and not self.belief.is_given):
            self._learn_prior(MOST_GROUPS, None)
        assert self.prior is not None
        return self.prior

    def coefficients(self) -> Array:
        """(groups, p) posterior means, the intercept first."""
        self.exact()
        return self.bank.coefficients()

    def triangle(self, slot: int) -> Array:
        """(q, ld) posterior triangle of a group, or of one of which nothing is known (-1)."""
        self.exact()
        return self._triangle(slot)

    @property
    def freed(self) -> float:
        """Observations left for the noise: their count less the flat directions."""
        assert self.prior is not None
        return self.count - self.prior.n_means - self._flat_each * self.bank.size

    @property
    def log_evidence(self) -> float:
        """log p(y) under the prior in use; flat directions have density 1."""
        prior = self.exact()
        if self.belief.is_given:
            diagonals = self.bank.posterior.diagonal(axis1=1, axis2=2)[:, :-1]
            logs = np.log(diagonals, where=diagonals > 0.0, out=np.zeros_like(diagonals))
            log_determinants = self.bank.size * prior.log_determinants - 2.0 * float(logs.sum())
            return self.noise.log_evidence(self.freed, self.residual, log_determinants)
        if self.bank.size > MOST_GROUPS:
            prior = of_all(self._sample(slice(None)), prior, self.belief.free)
        return self.noise.log_evidence(self.freed, prior.residual, prior.log_determinants)

    # ---- inner ---------------------------------------------------------------------------------

    @property
    def _flat_each(self) -> int:
        """Directions that are flat in each group by themselves: a given prior's."""
        given_ = self.belief.precision
        return 0 if given_ is None else given_.n_coefficients - given_.rank

    def _triangle(self, slot: int) -> Array:
        assert self.prior is not None
        return self.prior.newcomer if slot < 0 else self.bank.posterior[slot]

    def _make_room(self, rows: GroupedRows) -> None:
        newcomer = None if self.prior is None else self.prior.newcomer
        self.bank.grow(int(rows.slots.max(initial=-1)) + 1, newcomer)

    def _tell(self, rows: GroupedRows, out: Array | None = None) -> Array:
        assert self.prior is not None
        return self.bank.tell(rows, self.prior.priors, self.discount, out)

    def _counts_rows(self, rows: GroupedRows) -> bool:
        """Whether each row raises the count by 1, which then is not told."""
        return rows.weights is None and self.discount == 1.0

    def _account_for(self, rows: GroupedRows, told: Array) -> None:
        self.residual += float(told[2].sum())
        self.count += len(rows) if self._counts_rows(rows) else float(told[3].sum())

    def _flat_before(self, rows: GroupedRows, known: int) -> int | Array:
        """Flat directions before each row, those of groups that begin with these rows included."""
        assert self.prior is not None
        flat = self.prior.n_means
        if self._flat_each == 0:
            return flat
        reached = np.maximum.accumulate(rows.slots[rows.numbers]) + 1
        return flat + self._flat_each * np.maximum(reached, known).astype(np.float64)

    def _sample(self, which: slice | Slots) -> GroupSample:
        bank = self.bank
        return GroupSample(
            bank.rows(which), float(bank.count[which].sum()), float(bank.residuals(which).sum())
        )

    def _learn_prior(self, most: int, start: SharedPrior | None) -> None:
        bank = self.bank
        which = np.arange(bank.size)
        if bank.size > most:  # evenly, in the order in which the groups came
            which = np.arange(most) * bank.size // most
        sample = self._sample(which)
        prior = self.belief.prior(sample, self.noise, start, intercept=self.intercept)
        bank, residual = bank.stacked_on(prior.priors), prior.residual
        if self.belief.is_given or bank.size > most:
            residual = float(np.sum(bank.posterior[:, -1, bank.n_coefficients] ** 2))
        self.__dict__.update(  # in one step: an interrupt finds all of it or nothing
            bank=bank,
            prior=prior,
            residual=residual,
            count=float(bank.count.sum()),
            learned_at=bank.clock,
            exact_at=bank.clock if start is None and most == MOST_GROUPS else -1,
            due_at=bank.clock + _rows_until_due(bank.clock, bank.n_coefficients),
        )

    def _be_ready(self) -> None:
        """A prior for the next rows of a stream: learned anew when that is due."""
        due = self.bank.clock >= self.due_at and not self.belief.is_given
        if self.prior is None or not self.bank.stacked or due:
            self._learn_prior(STREAM_GROUPS, self.prior)

    def _prompt(self) -> SharedPrior:
        """A prior to predict with: exact, unless there are many groups and few rows came since."""
        lag = LAG * self.bank.size if self.bank.size > PROMPT_GROUPS else 0.0
        if self.prior is None or not self.bank.stacked or self.bank.clock - self.learned_at > lag:
            return self.exact()
        return self.exact() if lag == 0.0 else self.prior

    def _stretch(self, rows: GroupedRows, first: int) -> int:
        """Where the stretch of rows that starts at ``first`` ends: the prior is due there."""
        assert self.prior is not None
        if self.belief.is_given:
            return len(rows)
        stop = min(first + max(self.due_at - self.bank.clock, 1), len(rows))
        newcomer = self.prior.newcomer
        if self.belief.precision is None and (newcomer.diagonal()[:-1] == 0.0).any():
            leverage = kernel.predict_rows(newcomer, 1, rows.X[first:stop], self.intercept)[1]
            open_ = np.isinf(leverage)
            if open_.any():  # a direction is seen for the first time: all groups are to know it
                stop = first + int(np.argmax(open_)) + 1
                self.due_at = 0
        return stop


@dataclass(frozen=True)
class PosteriorImage:
    """A posterior as it was."""

    posterior: GroupedPosterior
    before: dict[str, Any]
    bank: BankImage

    def restore(self) -> None:
        """Put all of it back."""
        self.bank.restore()
        self.posterior.__dict__.update(self.before)


def _running(start: float, gains: Array, out: Array) -> None:
    """Sums before each gain."""
    out[0] = start
    out[1:] = gains[:-1]
    np.cumsum(out, out=out)


def _rows_until_due(rows: int, p: int) -> int:
    """A fourth, then half more rows; where there are many as many again, and later twice."""
    if rows >= 1000:
        return rows if rows < 100_000 else 2 * rows
    return max(rows // (4 if rows < 8 * p else 2), 1)


__all__ = ["GroupBelief", "GroupedPosterior"]
