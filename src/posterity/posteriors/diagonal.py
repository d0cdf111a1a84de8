"""A posterior for many features, in which each weight has a variance and no two a covariance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from posterity.kernel import MEMBERS, DiagonalState
from posterity.likelihoods import Likelihood
from posterity.posteriors._centres import Centres, compute_left
from posterity.posteriors._diagonal_sweeps import (
    MOST_ENTRIES,
    ColumnPriors,
    Messages,
    make_blocks,
    propagate_messages,
)
from posterity.posteriors._sparse_rows import Row, SparseRows
from posterity.posteriors._sparse_search import Columns
from posterity.transaction import Undo, run_steps

Array = NDArray[np.float64]
Numbers = NDArray[np.int32]

_ARRAYS = "beliefs", "clocks", "precision", "information", "squares", "scores", "rates"
_SCALARS = "shape", "faded"  # what the kernel keeps beside these
NUMBERS_A_FEATURE = 2 * MEMBERS  # numbers a feature: precisions and shifts
# Starting prior standard deviations of weights on features of mean square 1, one a hypothesis.
SCALES = np.array([0.25, 0.5, 1.0, 2.0])
# Fewer rows than these are not revisited where the noise is learned.
FEW_ROWS = 8
# Weight of a scale's prior, in rows.
PRIOR_INFORMATION = 0.5
# The same for labels and counts, which contain little information on a scale: scales start in a
# wider range, with a larger weight of their prior; and log weights of the hypotheses.
WIDE_SCALES = np.array([0.25, 0.9, 2.0, 4.0])
WIDE_INFORMATION = 10.0
WIDE_SCORES = np.array([-1.0, 0.0, -2.0, -8.0])
# Hypotheses on all scales together once rows were revisited, in standard deviations of a log
# precision: with these weights they have mean 0 and variance 1.
LOG_PRECISION_NODES = np.array([-1.75, 0.645, 0.0, 0.0])


@dataclass
class DiagonalPosterior:
    """Independent weights, under a few hypotheses of their prior's scale (see the kernel's header).

    Feature and column 0 are the intercept's. ``beliefs`` (P, 2, 4) holds what rows tell, the
    prior apart; arrays may be longer than what is used. ``noise`` is shape and rate of its prior,
    where it is learned.
    """

    likelihood: Likelihood
    start: Array  # (4,) precisions that a column's prior begins with
    learns: bool
    intercept: bool
    members: int
    noise: tuple[float, float] | None
    beliefs: Array
    owners: Numbers  # (P,) the column of each feature
    precision: Array  # (columns, 4)
    information: Array  # (columns, 4)
    squares: Array  # (columns, 2)
    scores: Array  # (4,)
    rates: Array  # (4,)
    shape: float
    clocks: Array | None = None
    faded: float = 0.0
    n_observations: float = 0.0
    n_effective: float = 0.0
    centres: Centres = field(default_factory=Centres)
    # What is subtracted from offsets, so that no unit of exposure moves the intercept's prior.
    offset_centre: float = 0.0
    _kept: DiagonalState | None = field(default=None, compare=False, repr=False)

    @classmethod
    def before_data(
        cls,
        likelihood: Likelihood,
        precision: float | None,
        *,
        intercept: bool,
        noise: tuple[float, float] | None = None,
        forgets: bool = False,
    ) -> Self:
        """Return the prior; ``precision`` None: learned. ``noise``: shape and rate, if learned."""
        learns = precision is None
        scales = SCALES if likelihood.is_noise else WIDE_SCALES
        start = scales**-2.0 if precision is None else np.full(MEMBERS, precision)
        members = MEMBERS if learns else 1
        kernel = likelihood.kernel_code
        assert kernel is not None
        # An intercept is flat where a single row determines it.
        vague = 0.0 if likelihood.is_noise else 1.0 / likelihood.vague_variance
        shape, rate = noise or (-1.0, 0.0)
        begun = cls(
            likelihood,
            start,
            learns,
            intercept,
            members,
            noise,
            beliefs=_allocate_aligned(NUMBERS_A_FEATURE),
            owners=np.zeros(1, dtype=np.int32),
            precision=np.stack([np.full(MEMBERS, vague), start]),
            information=np.zeros((2, MEMBERS)),
            squares=np.zeros((2, 2)),
            scores=np.where(np.arange(MEMBERS) < members, 0.0, -np.inf),
            rates=np.full(MEMBERS, float(rate)),
            shape=float(shape),
            clocks=np.zeros(1) if forgets else None,
        )
        begun.information += begun._initial_information
        begun.scores += begun._initial_scores
        return begun

    # ---- learning --------------------------------------------------------------------------------

    def grow(self, n_features: int, owners: Numbers, n_columns: int) -> None:
        """Have room for features up to ``n_features``, the last of them of columns ``owners``."""
        room = len(self.owners)
        if n_features > room:
            more = max(n_features, room + room // 2)
            self.beliefs = _allocate_aligned(NUMBERS_A_FEATURE * more, self.beliefs)
            self.owners = np.concatenate([self.owners, np.zeros(more - room, dtype=np.int32)])
            if self.clocks is not None:
                self.clocks = np.concatenate([self.clocks, np.full(more - room, self.faded)])
        if len(owners):
            self.owners[n_features - len(owners) : n_features] = owners
        new = n_columns - len(self.precision)
        if new > 0:
            self.precision = np.concatenate([self.precision, np.tile(self.start, (new, 1))])
            begun = np.full((new, MEMBERS), self._initial_information)
            self.information = np.concatenate([self.information, begun])
            self.squares = np.concatenate([self.squares, np.zeros((new, 2))])

    def learn_given(
        self,
        rows: SparseRows,
        y: Array,
        weights: Array | None,
        discounts: Array | None,
        *,
        offsets: Array | None = None,
        predict: bool,
        undo: Undo,
    ) -> Array | None:
        """Learn rows as they came, in place and in one step, after which ``undo`` is settled.

        With ``predict`` return the predictions before each: (n, 6, 4).
        """
        state, kernel = self._state(), self.likelihood.kernel_code
        assert kernel is not None
        parts = self.owners, vars(self), vars(self.centres)
        added = self._centre_offsets(len(y), offsets, weights)
        given = (*kernel, *rows.parts, y, weights, discounts, added, predict, *parts)
        before: list[Array | None] = []
        run_steps([partial(before.extend, starmap(state.learn_given, (given,))), undo.settle])
        return before[0]

    def plan(self, n: int, weights: Array | None) -> Iterable[tuple[int, int]]:
        """Parts in which n rows with pairs are to be learned, as centres move in between."""
        if n > 1 and self.intercept and len(self.centres.features):
            return self.centres.plan(n, weights)
        return [(0, n)]

    def expect(self, rows: SparseRows, weights: Array | None) -> Centres:
        """Return where the numbers of these rows, which are learned next, are to be centred."""
        first = self.centres.n_rows == 0.0
        self.centres.count(rows, weights)
        if first and self.intercept and self.centres.n_rows > 0.0:
            self.centres.start_at(rows.select(len(rows) - 1, len(rows)))
        return self.centres

    def learn(
        self,
        rows: SparseRows,
        y: Array,
        weights: Array | None,
        discounts: Array | None,
        centres: Centres | None = None,
        *,
        offsets: Array | None = None,
        predict: bool,
        undo: Undo | None = None,
    ) -> Array | None:
        """Learn rows in place, their numbers centred and their pairs among them.

        With ``predict`` return the predictions before each: (n, 6, 4).
        """
        undo = undo or Undo()
        self._keep(undo, rows)
        before: list[Array | None] = []
        added = self._centre_offsets(len(y), offsets, weights)
        run_steps(self._count_rows(rows, y, weights, discounts, added, predict, before))
        if self.centres.is_due():
            self.centre_numbers(undo)
        return before[0]

    def learn_row(self, row: Row, y: float, discount: float, offset: float) -> bool:
        """Learn a row of known features, as it came, in one step."""
        kernel = self.likelihood.kernel_code
        assert kernel is not None
        parts = vars(self), vars(self.centres)
        added = offset - self.offset_centre
        self._state().learn_row(*kernel, row, y, discount, added, self.owners, *parts)
        return True

    def _centre_offsets(self, n: int, offsets: Array | None, weights: Array | None) -> Array | None:
        """Offsets (n,) less their centre, which is that of the first row that is learned."""
        if offsets is None:
            return None if self.offset_centre == 0.0 else np.full(n, -self.offset_centre)
        if self.intercept and self.n_observations == 0.0 and n:
            first = 0 if weights is None else int(np.argmax(weights > 0.0))
            self.offset_centre = float(offsets[first])
        return offsets - self.offset_centre

    def _count_rows(
        self,
        rows: SparseRows,
        y: Array,
        weights: Array | None,
        discounts: Array | None,
        offsets: Array | None,
        predict: bool,
        before: list[Array | None],
    ) -> list[Callable[[], object]]:
        """Count rows, and return the steps that learn them."""
        state, kernel = self._state(), self.likelihood.kernel_code
        assert kernel is not None
        left = compute_left(discounts)
        self._count(np.ones(len(y)) if weights is None else weights, left)
        self.centres.tally(rows, weights, left)
        given = (*kernel, *rows.parts, y, weights, discounts, offsets, predict)
        # Lazy: each is read where it is needed, without a line of Python in between.
        learned = starmap(state.learn, (given,))
        found = map(getattr, (state, state), _SCALARS)
        return [
            partial(before.extend, learned),
            partial(deque, map(setattr, (self, self), _SCALARS, found), 0),
        ]

    def _keep(self, undo: Undo, rows: SparseRows) -> None:
        """Have ``undo`` put back what learning these rows changes in place."""
        for array in (self.precision, self.information, self.squares, self.scores, self.rates):
            undo.keep_entries(array, slice(None))
        self._keep_beliefs(undo, np.append(rows.features, np.int32(0)))
        self.centres.keep(undo, rows)

    def _keep_beliefs(self, undo: Undo, features: NDArray[Any]) -> None:
        undo.keep_entries(self.beliefs.reshape(-1, NUMBERS_A_FEATURE), features)
        if self.clocks is not None:
            undo.keep_entries(self.clocks, features)

    def centre_numbers(self, undo: Undo | None = None) -> None:
        """Centre numbers at their means; the mean of eta at any row stays as it is."""
        if self.intercept and len(self.centres.features):
            self._move(self.centres.means - self.centres.values, undo or Undo())

    def _move(self, by: Array, undo: Undo) -> None:
        to, source, factors = self.centres.find_terms(-by)
        if len(to):
            means, _ = self._moments(source)
            targets, place = np.unique(to, return_inverse=True)
            moved = np.zeros((len(targets), self.members))
            np.add.at(moved, place, factors[:, None] * means)
            self._keep_beliefs(undo, targets)
            beliefs = self.beliefs.reshape(-1, 2, MEMBERS)
            if self.clocks is not None:
                beliefs[targets] *= np.exp(self.faded - self.clocks[targets])[:, None, None]
                self.clocks[targets] = self.faded
            known = beliefs[targets, 0, : self.members]
            prior = self._compute_prior_precisions(targets)[:, : self.members]
            beliefs[targets, 1, : self.members] += (known + prior) * moved
        self.centres.move(by)

    def revisit(
        self, rows: SparseRows, y: Array, weights: Array | None, offsets: Array | None = None
    ) -> None:
        """Visit rows that were learned in one pass, and no others, until their messages settle.

        In place; where rows fade, are too few for the noise or too many, one pass has to do.
        Hypotheses are then those of all columns' scales together, around the most probable ones.
        """
        entries = len(rows.features) + self.intercept * len(rows)
        few = self.likelihood.is_noise and len(y) < FEW_ROWS
        if few or self.clocks is not None or entries > MOST_ENTRIES:
            return
        self.squares = self._sum_squares(rows, weights)
        added = self._centre_offsets(len(y), offsets, weights)
        blocks, active = make_blocks(rows, y, weights, added, intercept=self.intercept)
        begun = self._get_column_priors(active), self._get_messages(active)
        with np.errstate(all="ignore"):  # of what goes astray
            found = propagate_messages(
                self.likelihood, blocks, *begun, self._compute_noise_precision
            )
        if found is not None:
            priors, messages, noise_precision = found
            self._set_messages(active, priors, messages)
            if self.noise is not None:
                self.rates[: self.members] = self.shape / noise_precision

    def _compute_noise_precision(self, square: float) -> float:
        """The noise's precision, given the sum of squared residuals and penalties."""
        if not self.likelihood.is_noise:
            return 1.0
        if self.noise is None:
            return float(self.likelihood.precision)  # type: ignore[attr-defined]
        return self.shape / max(self.noise[1] + 0.5 * square, 1e-300)

    def _get_column_priors(self, active: NDArray[np.intp]) -> ColumnPriors:
        """Return the priors of the columns: those of the hypotheses, averaged in logarithms."""
        logs = np.log(np.maximum(self.precision[:, : self.members], np.finfo(float).tiny))
        numbers = np.arange(len(self.precision))
        learned = np.flatnonzero((numbers > 0) & (self.squares[:, 1] > 0.0) & self.learns)
        nothing = np.zeros(len(self.precision))
        columns = Columns(
            self.owners[active], learned, self._compute_mean_squares(), nothing, 1.0, nothing > 0.0
        )
        return ColumnPriors(columns, np.exp(logs @ self.weights))

    def _get_messages(self, active: NDArray[np.intp]) -> Messages:
        """Return the messages of rows under the most probable hypothesis."""
        best = int(np.argmax(self.scores[: self.members]))
        beliefs = self.beliefs.reshape(-1, 2, MEMBERS)[active, :, best]
        return Messages(beliefs[:, 0], beliefs[:, 1])

    def _set_messages(
        self, active: NDArray[np.intp], priors: ColumnPriors, messages: Messages
    ) -> None:
        learned = priors.columns.learned
        self.beliefs.reshape(-1, 2, MEMBERS)[active] = np.stack(messages, axis=1)[:, :, None]
        information = priors.compute_information(messages)
        sd = min(1.0, float(np.sum(information)) ** -0.5) if len(learned) else 0.0
        self.precision[learned] = priors.precisions[learned, None] * np.exp(
            sd * LOG_PRECISION_NODES
        )
        self.scores[: self.members] = self._initial_scores[: self.members]
        self.information[learned] = information[:, None] + self._initial_information

    def merge(self, other: DiagonalPosterior, features: Numbers, columns: Numbers) -> None:
        """Add what ``other`` has learned; its features and columns are these of one's own."""
        other = self._join_centres(other, features)
        self._join_offsets(other)
        self._merge_scales(other, columns)
        self.squares[columns] += other.squares
        mine, theirs = self.discounted_beliefs().copy(), other.discounted_beliefs()[: len(features)]
        if other.noise is not None:
            self.shape += other.shape - other.noise[0]
            self.rates += other.rates - other.noise[1]
            self.rates += self._compute_disagreement(features, mine[features], theirs)
        mine[features] += theirs
        self.beliefs[:] = mine.ravel()
        self.clocks = None if self.clocks is None else np.full(len(self.owners), self.faded)
        scores = other.scores - other._initial_scores * np.exp(other.faded)
        self.scores[: self.members] += scores[: self.members]
        self.n_observations += other.n_observations
        self.n_effective += other.n_effective
        self.centre_numbers()

    def _join_centres(self, other: DiagonalPosterior, features: Numbers) -> DiagonalPosterior:
        """Return ``other``, its numbers centred where one's own are; their rows are counted."""
        theirs, mine = other.centres.renumber(features), self.centres
        other = other.copy()
        mine.add(theirs.features)
        mine.due = max(mine.due, theirs.due)
        there = mine.find(theirs.features)
        apart = mine.values[there] - theirs.values
        order = np.argsort(features[other.centres.features], kind="stable")
        by = np.empty(len(order))
        by[order] = apart
        other._move(by, Undo())
        theirs.add(mine.features)
        theirs.move(mine.values - theirs.values)
        mine.absorb(theirs)
        return other

    def _join_offsets(self, other: DiagonalPosterior) -> None:
        """Have the other's offsets centred where one's own are."""
        if self.n_observations == 0.0:
            self.offset_centre = other.offset_centre
        known, shift = other.beliefs.reshape(-1, 2, MEMBERS)[0]
        shift += known * (self.offset_centre - other.offset_centre)
        other.offset_centre = self.offset_centre

    def _compute_disagreement(self, features: Numbers, mine: Array, theirs: Array) -> Array:
        """(members,) half the sum of squares by which the weights of two models differ.

        Of a weight with means m and n, precisions a and b, prior p each: what a m^2 + b n^2 loses
        when the data are together, (a b (m - n)^2 - p (a m^2 + b n^2)) / (a + b - p).
        """
        prior = self._compute_prior_precisions(features)
        one, two = mine.reshape(-1, 2, MEMBERS), theirs.reshape(-1, 2, MEMBERS)
        a, b = prior + one[:, 0], prior + two[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            m, n = one[:, 1] / a, two[:, 1] / b
            lost = a * b * np.square(m - n) - prior * (a * np.square(m) + b * np.square(n))
            lost /= a + b - prior
        known = (a > 0.0) & (b > 0.0)
        return np.asarray(0.5 * np.sum(np.where(known, lost, 0.0), axis=0))

    def _sum_squares(self, rows: SparseRows, weights: Array | None) -> Array:
        """(columns, 2) sum of squares of each column's values, and their number."""
        size, some = len(self.squares), np.ones(len(rows.features), dtype=bool)
        if weights is not None:
            some = (weights > 0.0)[rows.row_numbers]
        columns = np.ones(len(some), dtype=np.int32) if rows.columns is None else rows.columns
        sums = np.bincount(columns[some], np.square(rows.numbers[some]), size)
        counts = np.bincount(columns[some], None, size)
        found = np.stack([sums, counts], axis=1).astype(np.float64)
        found[0] = self.squares[0]
        return found

    def _count(self, weights: Array, left: Array | None) -> None:
        total = float(weights.sum())
        self.n_observations += total
        if left is None:
            self.n_effective += total
        else:
            now = float(np.sum(weights * left[1:]))
            self.n_effective = self.n_effective * float(left[0]) + now

    def _merge_scales(self, other: DiagonalPosterior, columns: Numbers) -> None:
        """Average the logs of learned precisions, each weighed by what is known of it."""
        if not self.learns:
            return
        learned = other.information - other._initial_information
        mine = self.information[columns] - self._initial_information + PRIOR_INFORMATION
        theirs = learned + PRIOR_INFORMATION
        logs = mine * np.log(self.precision[columns], where=columns[:, None] > 0, out=0.0 * mine)
        logs += theirs * np.log(other.precision, where=columns[:, None] > 0, out=0.0 * mine)
        averaged = np.exp(logs / (mine + theirs))
        self.precision[columns] = np.where(columns[:, None] > 0, averaged, self.precision[columns])
        self.information[columns] += learned

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def reading_centres(self) -> Centres:
        """Where the numbers of rows are to be centred that are read."""
        return self.centres

    @property
    def weights(self) -> Array:
        """(members,) probabilities of the hypotheses."""
        return hypothesis_weights(self.scores[: self.members])

    def linear_moments(self, rows: SparseRows) -> tuple[Array, Array]:
        """Mean and variance of eta at centred rows, in units of the noise: (n, members) each."""
        return self._read_moments(self._state().predict_then_learn_rows(*rows.parts))

    def given_moments(self, rows: SparseRows) -> tuple[Array, Array]:
        """The same at rows as they came."""
        given = *rows.parts, self.owners, vars(self.centres)
        return self._read_moments(self._state().predict_given(*given))

    def row_moments(self, row: Row) -> tuple[Array, Array]:
        """The same at one row of known features, as it came: (1, members) each."""
        return self._read_moments(self._state().predict_row(row, self.owners, vars(self.centres)))

    def _read_moments(self, moments: Array) -> tuple[Array, Array]:
        return moments[:, 0, : self.members] - self.offset_centre, moments[:, 1, : self.members]

    def marginals(self, n_features: int) -> tuple[Array, Array]:
        """Means and variances of the first ``n_features`` weights, the intercept's at 0.

        Variances are in units of the noise.
        """
        mean, variance = self._moments(np.arange(n_features))
        to, source, factors = self.centres.find_terms(self.centres.values)
        both = mean.copy(), variance.copy()
        np.add.at(both[0], to, factors[:, None] * mean[source])
        np.add.at(both[1], to, np.square(factors)[:, None] * variance[source])
        found = match_moments(*both, self.weights)
        found[0][0] -= self.offset_centre
        return found

    def covariances(self, summed: Array) -> Array:
        """(p,) covariances of the first p weights with a sum of them, in units of the noise.

        Within each hypothesis weights are independent, and between these their means differ.
        """
        size, weights = len(summed), self.weights
        mean, variance = self._moments(np.arange(size))
        B = self.centres.find_terms(self.centres.values).matrix(size)
        centred = (B.T @ summed)[:, None]
        with np.errstate(invalid="ignore"):
            own = B @ np.where(centred == 0.0, 0.0, variance * centred)
        apart = B @ mean
        apart = apart - (apart @ weights)[:, None]
        return np.asarray((own + apart * (summed @ apart)) @ weights)

    def _moments(self, features: NDArray[np.intp]) -> tuple[Array, Array]:
        """Means and variances (n, members) of weights, of numbers that are centred."""
        beliefs = self.beliefs.reshape(-1, 2, MEMBERS)[features, :, : self.members]
        if self.clocks is not None:
            beliefs = beliefs * np.exp(self.faded - self.clocks[features])[:, None, None]
        prior = self._compute_prior_precisions(features)[:, : self.members]
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = 1.0 / (prior + beliefs[:, 0])
            mean = np.where(beliefs[:, 1] == 0.0, 0.0, variance * beliefs[:, 1])
        return mean, variance

    def degrees_of_freedom(self, n_features: int) -> Array:
        """(n_features,) of the Student-t distributions of the weights; infinite of known noise."""
        return np.full(n_features, 2.0 * self.shape if self.shape >= 0.0 else np.inf)

    def discounted_beliefs(self) -> Array:
        """(P, 8) statistics of the rows, discounted up to now."""
        beliefs = self.beliefs.reshape(-1, NUMBERS_A_FEATURE)
        if self.clocks is None:
            return beliefs
        return beliefs * np.exp(self.faded - self.clocks)[:, None]

    def has_same_prior(self, other: DiagonalPosterior) -> bool:
        """Return True if both started from the same prior."""
        names = ("likelihood", "learns", "intercept", "members", "noise")
        return (
            all(getattr(self, name) == getattr(other, name) for name in names)
            and np.array_equal(self.start, other.start)
            and (self.clocks is None) == (other.clocks is None)
        )

    def copy(self) -> DiagonalPosterior:
        """An independent copy."""
        arrays: dict[str, Any] = {
            k: v.copy() for k, v in vars(self).items() if isinstance(v, np.ndarray | Centres)
        }
        return replace(self, **arrays, _kept=None)

    # ---- inner -----------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        if self.beliefs.ctypes.data % 64:
            self.beliefs = _allocate_aligned(self.beliefs.size, self.beliefs)

    @property
    def _begins_wide(self) -> bool:
        """True if scales begin as those of labels and counts do."""
        return self.learns and not self.likelihood.is_noise

    @property
    def _initial_information(self) -> float:
        return WIDE_INFORMATION if self._begins_wide else 0.0

    @property
    def _initial_scores(self) -> Array:
        return WIDE_SCORES if self._begins_wide else np.zeros(MEMBERS)

    def _compute_prior_precisions(self, features: NDArray[Any]) -> Array:
        """(n, 4) prior precisions of features."""
        return np.asarray(
            (self.precision * self._compute_mean_squares()[:, None])[self.owners[features]]
        )

    def _compute_mean_squares(self) -> Array:
        """(columns,) mean squares that learned precisions are relative to."""
        sums, counts = self.squares.T
        relative = self.learns & (counts > 0.0) & (np.arange(len(counts)) > 0)
        return np.where(relative, sums / np.where(relative, counts, 1.0), 1.0)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_kept": None}

    def _state(self) -> DiagonalState:
        """The compiled state, made anew where arrays have been replaced."""
        source = tuple(getattr(self, name) for name in _ARRAYS)
        if self._kept is None or not self._kept.resume(source, self.shape, self.faded):
            self._kept = self._make_state()
            self._kept.source = source
        return self._kept

    def _make_state(self) -> DiagonalState:
        return DiagonalState(
            self.beliefs,
            self.clocks,
            self.precision.ravel(),
            self.information.ravel(),
            self.squares.ravel(),
            self.scores,
            self.rates,
            self.shape,
            self.faded,
            self.members,
            self.learns,
            self.learns,
            self.intercept,
        )


def hypothesis_weights(scores: Array) -> Array:
    """Probabilities (..., members) by sums of log densities."""
    shares = np.exp(scores - np.maximum.reduce(scores, axis=-1, keepdims=True))
    return np.asarray(shares / np.add.reduce(shares, axis=-1, keepdims=True))


def match_moments(mean: Array, variance: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and variance (n,) of mixtures (n, members)."""
    if mean.shape[1] == 1:
        return mean[:, 0], variance[:, 0]
    centre = np.add.reduce(weights * mean, axis=1)
    spread = variance + np.square(mean - centre[:, None])
    return centre, np.add.reduce(weights * spread, axis=1)


def _allocate_aligned(size: int, begun: Array | None = None) -> Array:
    """Zeros (size,) at the start of a cache line, after the numbers of ``begun``."""
    storage = np.zeros(size + 7)
    first = (-(storage.ctypes.data // 8)) % 8
    array = storage[first : first + size]
    if begun is not None:
        array[: begun.size] = begun
    return array


__all__ = ["DiagonalPosterior", "hypothesis_weights", "match_moments"]
