"""What is known of many groups: the triangle of each, and the prior that they share.

The rows of each group are kept as a triangle of their own, under a flat prior; the prior stands
apart and can be learned anew at any time, from the triangles alone. A group's posterior is the
prior's rows stacked on its triangle.

What is predicted of a row right before it is learned comes from posteriors that learn each row, on
a prior that is learned anew at certain numbers of rows, the turns, whoever learned them and how
(:mod:`posterity.posteriors._group_turns`). At a turn a sample of the groups is kept as it is, from
which the prior can be learned later. Reading changes nothing: it learns a prior from all rows so
far; where there are many groups, predictions of a stream are read under the prior of its last turn.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

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
from posterity.posteriors._group_turns import last_opening, opened, span_of, turns_around

Array = NDArray[np.float64]
Slots = NDArray[np.intp]

# The shared prior is learned from so many groups at most, drawn evenly.
MOST_GROUPS, TOLERANCE = 2048, 1e-6
# The prior of a stream, which is learned so often, need not be this exact.
STREAM_GROUPS, STREAM_TOLERANCE = 512, 0.01
# With more groups than this, predictions of a stream are read under the prior of its last turn.
FEW_GROUPS = 64


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
        *,
        intercept: bool,
        tolerance: float,
    ) -> SharedPrior:
        """The prior that the groups share."""
        if self.precision is None:
            return learned(
                sample,
                noise,
                self.mean,
                self.free,
                intercept=intercept,
                tolerance=tolerance,
            )
        if self.is_given:
            return given(self.precision)
        return with_given_precision(sample, self.precision, self.free)


@dataclass(frozen=True)
class Reading:
    """What is read of groups: a prior, a bank with posteriors on it, and what is left as noise.

    ``freed`` observations are left for the noise: their count less the flat directions.
    """

    prior: SharedPrior
    bank: GroupBank
    freed: float
    residual: float


@dataclass
class GroupedPosterior:
    """State: a bank of triangles, and what the prior of the stream is learned from.

    ``turn`` are the groups as they were at the last turn, ``brief`` fewer of them; None: as they
    are, be it that all was learned at once, or that rows were unlearned or groups merged. With a
    turn, ``rows`` counts the rows learned; when they are as many as ``due_at`` there is the next
    one. ``span`` are rows of all directions that have come, None when there are no others. Where
    the bank has posteriors, they are on the stream's prior, and ``residual`` and ``count`` are
    those of all groups under it. Only caches are ``prior``, the stream's, learned from ``brief``,
    ``read``, learned from ``turn``, and ``fresh``, from all rows.
    """

    belief: GroupBelief
    noise: Noise
    intercept: bool
    discount: float
    bank: GroupBank
    turn: GroupSample | None = None
    brief: GroupSample | None = None
    rows: int = 0
    due_at: int = 0
    span: Factor | None = None
    residual: float = 0.0
    count: float = 0.0
    prior: SharedPrior | None = None
    read: SharedPrior | None = None
    fresh: Reading | None = None

    improper: ClassVar[None] = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"fresh": None}

    def copy(self) -> GroupedPosterior:
        """The same knowledge, to go its own way."""
        twin = copy.copy(self)
        twin.bank = self.bank.copy()
        twin.span = None if self.span is None else self.span.copy()
        return twin

    def image(self, slots: Slots) -> PosteriorImage:
        """What is needed to undo changes of the groups at ``slots``, and of new ones."""
        return PosteriorImage(self, dict(self.__dict__), self.bank.image(slots))

    def with_groups(self, bank: GroupBank) -> GroupedPosterior:
        """The same belief about other groups."""
        return GroupedPosterior(self.belief, self.noise, self.intercept, self.discount, bank)

    # ---- learning ------------------------------------------------------------------------------

    def fit(self, rows: GroupedRows) -> None:
        """Learn the first rows, all at once: they all are what the stream goes on from.

        As :meth:`learn` takes them.
        """
        self._learn(rows)

    def learn(self, rows: GroupedRows) -> None:
        """Learn rows, which are usable (:func:`posterity.factor.grouped_rows.check_together`).

        If they are not, ``FloatingPointError`` is raised, and this is of no use any more.
        """
        self._begin()
        n, total = len(rows), self.rows + len(rows)
        last, due = turns_around(total, self.bank.n_coefficients)
        opening, self.span = last_opening(rows.X, self.span, intercept=self.intercept)
        cut = max(last - self.rows, opening, 0)
        if cut:
            self.bank.drop_posterior()
            self._learn(rows.part(0, cut))
            self._turn()
        if cut < n:
            self._learn(rows.part(cut, n))
        self.rows, self.due_at = total, due

    def learn_row(self, slot: int, X: Array, y: float, weight: float) -> None:
        """Learn a usable row (1, m) of weight > 0, of a group in the bank; where nothing fades."""
        self._begin()
        bank, target = self.bank, np.array([[y]])
        weights = None if weight == 1.0 else np.array([weight])
        self.fresh = None
        kernel.append_block(bank.triangles[slot], 1, X, target, weights, self.intercept)
        if bank.stacked:
            triangle, p = bank.posterior[slot], bank.n_coefficients
            before = triangle[p, p]
            kernel.append_block(triangle, 1, X, target, weights, self.intercept)
            self.residual += float((triangle[p, p] - before) * (triangle[p, p] + before))
            self.count += weight
        bank.count_row(slot, weight)
        opening, self.span = last_opening(X, self.span, intercept=self.intercept)
        self._counted(1, turns=opening > 0)

    def predict_then_learn(self, rows: GroupedRows) -> Distribution:
        """Learn row after row; returns the distribution of each target before its row."""
        n = len(rows)
        told, freed, residual = np.empty((4, n)), np.empty(n), np.empty(n)
        first = 0
        self._begin()
        self.bank.reserve(int(rows.slots.max(initial=-1)) + 1)
        while first < n:
            self._be_ready()
            stop, opens = self._stretch(rows, first)
            part, some = rows.part(first, stop), slice(first, stop)
            known = self.bank.size
            self._make_room(part)
            count = self.count
            _running(self.residual, self._tell(part, told[:, some])[2], residual[some])
            if self._counts_rows(part):
                counts = np.arange(count, count + len(part))
                np.subtract(counts, self._flat_before(part, known), out=freed[some])
            else:
                _running(count, told[3, some], freed[some])
                freed[some] -= self._flat_before(part, known)
            self._counted(_weighty(part.weights, len(part)), turns=opens)
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
        self._rest_on_all()

    def merge(self, other: GroupedPosterior, slots: Slots) -> None:
        """Learn all that ``other`` learned of groups that are at ``slots`` here."""
        self._rest_on_all()
        self.bank.grow(int(slots.max(initial=-1)) + 1)
        self.bank.merge(other.bank, slots)

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Drop the groups for which ``which`` is False; the prior is then learned from the rest."""
        self._rest_on_all()
        self.bank.keep(which)

    # ---- reading -------------------------------------------------------------------------------

    def predictive(self, X: Array, slots: Slots) -> Distribution:
        """Distribution of new observations in the groups at ``slots``, -1 for unknown ones."""
        known, slots = self._reading(slots)
        mean, leverage = known.bank.predict(
            X, slots, known.prior.newcomer, intercept=self.intercept
        )
        return self.noise.predictive(mean, leverage, known.freed, known.residual)

    def predict_mean(self, X: Array, slots: Slots) -> Array:
        """Mean of the same."""
        known, slots = self._reading(slots)
        return known.bank.predict(X, slots, known.prior.newcomer, intercept=self.intercept)[0]

    def predict_one(self, X: Array, slot: int) -> float:
        """Mean at one row (1, m)."""
        known, slots = self._reading(np.array([slot], dtype=np.intp))
        place = int(slots[0])
        triangle = known.prior.newcomer if place < 0 else known.bank.posterior[place]
        return float(kernel.predict_rows(triangle, 1, X, self.intercept)[0][0, 0])

    def exact(self) -> Reading:
        """The prior learned from all rows so far, the posterior triangles and the noise with it."""
        if self.fresh is None:
            sample = self._sample(MOST_GROUPS)
            prior = self._prior_of(sample, TOLERANCE)
            bank, residual = self.bank.stacked_on(prior.priors), prior.residual
            if self.belief.is_given or bank.size > MOST_GROUPS:
                residual = _residual_of(bank)
            freed = self._freed(float(bank.count.sum()), prior, bank.size)
            self.fresh = Reading(prior, bank, freed, residual)
        return self.fresh

    def coefficients(self) -> Array:
        """(groups, p) posterior means, the intercept first."""
        return self.exact().bank.coefficients()

    @property
    def log_evidence(self) -> float:
        """log p(y) under the prior in use; flat directions have density 1."""
        known = self.exact()
        prior, bank = known.prior, known.bank
        if self.belief.is_given:
            diagonals = bank.posterior.diagonal(axis1=1, axis2=2)[:, :-1]
            logs = np.log(diagonals, where=diagonals > 0.0, out=np.zeros_like(diagonals))
            log_determinants = bank.size * prior.log_determinants - 2.0 * float(logs.sum())
            return self.noise.log_evidence(known.freed, known.residual, log_determinants)
        if bank.size > MOST_GROUPS:
            prior = of_all(self._sample(bank.size), prior, self.belief.free)
        return self.noise.log_evidence(known.freed, prior.residual, prior.log_determinants)

    # ---- inner ---------------------------------------------------------------------------------

    @property
    def _flat_each(self) -> int:
        """Directions that are flat in each group by themselves: a given prior's."""
        given_ = self.belief.precision
        return 0 if given_ is None else given_.n_coefficients - given_.rank

    def _freed(self, count: float, prior: SharedPrior, groups: int) -> float:
        return count - prior.n_means - self._flat_each * groups

    def _make_room(self, rows: GroupedRows) -> None:
        newcomer = self._turned().newcomer if self.bank.stacked else None
        self.bank.grow(int(rows.slots.max(initial=-1)) + 1, newcomer)

    def _learn(self, rows: GroupedRows) -> None:
        self.fresh = None
        self._make_room(rows)
        if self.bank.stacked and len(rows) <= self.bank.size:
            self._tell(rows)
        else:
            self.bank.learn(rows, self.discount)

    def _tell(self, rows: GroupedRows, out: Array | None = None) -> Array:
        """Learn rows in posteriors, too, and account for what they bring."""
        self.fresh = None
        corner = -1, self.bank.n_coefficients
        before = self.bank.posterior[rows.slots, *corner]
        told = self.bank.tell(rows, self._turned().priors, self.discount, out)
        if self.discount == 1.0:
            self.residual += float(told[2].sum())
        else:  # what rows are told to bring leaves out what fading itself brings to a posterior
            after = self.bank.posterior[rows.slots, *corner]
            self.residual += float((after**2 - before**2).sum())
        self.count += len(rows) if self._counts_rows(rows) else float(told[3].sum())
        return told

    def _counts_rows(self, rows: GroupedRows) -> bool:
        """Whether each row raises the count by 1, which then is not told."""
        return rows.weights is None and self.discount == 1.0

    def _flat_before(self, rows: GroupedRows, known: int) -> int | Array:
        """Flat directions before each row, those of groups that begin with these rows included."""
        flat = self._turned().n_means
        if self._flat_each == 0:
            return flat
        reached = np.maximum.accumulate(rows.slots[rows.numbers]) + 1
        return flat + self._flat_each * np.maximum(reached, known).astype(np.float64)

    def _sample(self, most: int) -> GroupSample:
        """So many groups at most, drawn evenly, in the order in which they came."""
        bank = self.bank
        which: slice | Slots = slice(None)
        if bank.size > most:
            which = np.arange(most) * bank.size // most
        return GroupSample(
            bank.rows(which), float(bank.count[which].sum()), float(bank.residuals(which).sum())
        )

    def _prior_of(self, sample: GroupSample, tolerance: float) -> SharedPrior:
        return self.belief.prior(sample, self.noise, intercept=self.intercept, tolerance=tolerance)

    # ---- the stream ----------------------------------------------------------------------------

    def _rest_on_all(self) -> None:
        """Let what is read and the stream rest on the groups as they are."""
        self.bank.drop_posterior()
        self.turn = self.brief = self.span = None
        self.prior = self.read = self.fresh = None

    def _begin(self) -> None:
        """The stream goes on from the groups as they are, unless there was a turn already."""
        if self.turn is None:
            sample = self._turn()
            self.span = span_of(sample.rows)
            if self.span is not None and self.bank.size > MOST_GROUPS:
                self.span = span_of(self.bank.rows())
            self.rows = self.bank.clock
            self.due_at = turns_around(self.rows, self.bank.n_coefficients)[1]

    def _turn(self) -> GroupSample:
        """The stream's prior is learned from the groups as they are now, once it is needed."""
        self.bank.drop_posterior()
        self.turn = self.brief = sample = self._sample(MOST_GROUPS)
        if self.bank.size > STREAM_GROUPS:
            self.brief = self._sample(STREAM_GROUPS)
        self.prior = self.read = None
        return sample

    def _counted(self, n: int, *, turns: bool) -> None:
        """So many more rows were learned, and there may be a turn."""
        self.rows += n
        if self.rows >= self.due_at:
            self.due_at = turns_around(self.rows, self.bank.n_coefficients)[1]
            turns = True
        if turns:
            self._turn()

    def _turned(self) -> SharedPrior:
        """The stream's prior, of the last turn."""
        if self.prior is None:
            assert self.brief is not None
            self.prior = self._prior_of(self.brief, STREAM_TOLERANCE)
        return self.prior

    def _be_ready(self) -> None:
        """Posteriors on the prior of the last turn, which learn the next rows of a stream."""
        prior = self._turned()
        if not self.bank.stacked:
            bank = self.bank.stacked_on(prior.priors)
            residual = _residual_of(bank) + self._residual_apart(prior)
            count = float(bank.count.sum())
            self.__dict__.update(bank=bank, residual=residual, count=count)

    def _residual_apart(self, prior: SharedPrior) -> float:
        """By how much the residual of all groups together exceeded the sum of theirs, at the turn.

        They differ by what the means of the prior took. Of many groups it is next to nothing.
        """
        assert self.brief is not None
        groups, p = self.brief.rows.shape[:2]
        if self.belief.is_given or not 0 < groups < STREAM_GROUPS:
            return 0.0
        then = GroupBank(p)
        then.grow(groups)
        then.triangles[:, :p, : p + 1] = self.brief.rows
        own = _residual_of(then.stacked_on(prior.priors)) + self.brief.residual
        return prior.residual - own

    def _reading(self, slots: Slots) -> tuple[Reading, Slots]:
        """What the groups at ``slots`` are predicted from, and where they are in its bank."""
        if self.turn is None or self.bank.size <= FEW_GROUPS:
            return self.exact(), slots
        sample = self.turn
        if self.read is None:
            self.read = self._prior_of(sample, TOLERANCE)
        prior, residual = self.read, self.read.residual
        if self.belief.is_given:
            residual = of_all(sample, prior, self.belief.free).residual
        bank, places = self.bank.some_stacked_on(prior.priors, slots)
        freed = self._freed(sample.count, prior, len(sample.rows))
        return Reading(prior, bank, freed, residual), places

    def _stretch(self, rows: GroupedRows, first: int) -> tuple[int, bool]:
        """Where the stretch of rows that starts at ``first`` ends, the next turn.

        Also whether that is because its last row has a direction that is new: all groups are to
        know it right after.
        """
        left = self.due_at - self.rows
        if rows.weights is None:
            stop = min(first + left, len(rows))
        else:
            counted = np.cumsum(rows.weights[first:] > 0.0)
            stop = min(first + int(np.searchsorted(counted, left)) + 1, len(rows))
        weights = None if rows.weights is None else rows.weights[first:stop]
        place, self.span = opened(rows.X[first:stop], self.span, weights, intercept=self.intercept)
        return (stop, False) if place == 0 else (first + place, True)


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


def _residual_of(bank: GroupBank) -> float:
    """Sum of the residuals of all posteriors."""
    return float(np.sum(bank.posterior[:, -1, bank.n_coefficients] ** 2))


def _weighty(weights: Array | None, n: int) -> int:
    return n if weights is None else int(np.count_nonzero(weights))


__all__ = ["GroupBelief", "GroupedPosterior", "Reading"]
