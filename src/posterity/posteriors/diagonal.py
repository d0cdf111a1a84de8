"""A posterior for many features, in which each weight has a variance and no two a covariance."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import AnyArray, Array, Indices
from posterity.kernel import MEMBERS, DiagonalState
from posterity.likelihoods import Likelihood
from posterity.likelihoods.likelihood import Kernel
from posterity.posteriors._centres import Centres
from posterity.posteriors._sparse_rows import Observations, Row, SparseRows
from posterity.posteriors._wide import ManyFeatures, Pairs, hypothesis_weights, match_moments
from posterity.transaction import Undo, run_steps

Numbers = NDArray[np.int32]

_SCALARS = "shape", "faded"  # what the kernel keeps beside arrays
NUMBERS_A_FEATURE = 2 * MEMBERS  # numbers a feature: precisions and shifts
# Starting prior standard deviations of weights on features of mean square 1, one a hypothesis.
SCALES = np.array([0.25, 0.5, 1.0, 2.0])
# Labels and counts contain little information on a scale: scales start in a
# wider range, with a larger weight of their prior; and log weights of the hypotheses.
WIDE_SCALES = np.array([0.25, 0.9, 2.0, 4.0])
WIDE_INFORMATION = 10.0
WIDE_SCORES = np.array([-1.0, 0.0, -2.0, -8.0])


@dataclass
class DiagonalPosterior(ManyFeatures):
    """Independent weights, under a few hypotheses of their prior's scale (see the kernel's header).

    ``beliefs`` (P, 2, 4) holds what rows tell, the prior apart; arrays may be longer than what is
    used.
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
        begun.information += begun.initial_information
        begun.scores += begun.initial_scores
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
            begun = np.full((new, MEMBERS), self.initial_information)
            self.information = np.concatenate([self.information, begun])
            self.squares = np.concatenate([self.squares, np.zeros((new, 2))])

    def learn(
        self, data: Observations, pairs: Pairs | None, undo: Undo, *, predict: bool = False
    ) -> Array | None:
        """Learn rows in place, and with ``predict`` return the predictions before each: (n, 6, 4).

        Without ``pairs`` that is one step, after which ``undo`` is settled. Else rows come in
        parts, as centres move in between.
        """
        if pairs is None:
            return self._learn_given(data, undo, predict)
        found: list[Any] = []
        parts: Iterable[tuple[int, int]] = [(0, len(data))]
        if len(data) > 1 and self.intercept and len(self.centres.features):
            parts = self.centres.plan(len(data), data.weights)
        for start, stop in parts:
            part = data.select(start, stop)
            self.set_owners(part.rows, undo)
            centred = self.centre_rows(part.rows, self._expect(part, undo), pairs)
            found.append(self.learn_centred(replace(part, rows=centred), undo, predict=predict))
        return np.concatenate(found) if predict else None

    def _learn_given(self, data: Observations, undo: Undo, predict: bool) -> Array | None:
        """Learn rows as they came, in one step."""
        parts = self.owners, vars(self), vars(self.centres)
        given = (*self._list_arguments(data, predict), *parts)
        before: list[Array | None] = []
        learned = starmap(self._state().learn_given, (given,))
        run_steps([partial(before.extend, learned), undo.settle])
        return before[0]

    def learn_centred(self, data: Observations, undo: Undo, *, predict: bool) -> Array | None:
        """Learn rows in place, their numbers centred and their pairs among them."""
        self._keep(undo, data.rows)
        state, before = self._state(), list[Array | None]()
        # Lazy: each is read where it is needed, without a line of Python in between.
        learned = starmap(state.learn, (self._list_arguments(data, predict),))
        found = map(getattr, (state, state), _SCALARS)
        self.count(data)
        self.centres.tally(data.rows, *data.left)
        run_steps(
            [
                partial(before.extend, learned),
                partial(deque, map(setattr, (self, self), _SCALARS, found), 0),
            ]
        )
        if self.centres.is_due():
            self.centre_numbers(undo)
        return before[0]

    def learn_row(self, row: Row, y: float, discount: float, offset: float) -> None:
        """Learn a row of known features, as it came, in one step."""
        parts = vars(self), vars(self.centres)
        added = offset - self.offset_centre
        self._state().learn_row(*self._kernel, row, y, discount, added, self.owners, *parts)

    def _expect(self, data: Observations, undo: Undo) -> Centres:
        """Return where the numbers of these rows, which are learned next, are to be centred."""
        centres, first = self.centres, self.centres.n_rows == 0.0
        centres.keep(undo, data.rows)
        centres.count(data.rows, data.weights)
        if first and self.intercept and centres.n_rows > 0.0:
            centres.start_at(data.rows.select(len(data) - 1, len(data)))
        return centres

    def _list_arguments(self, data: Observations, predict: bool) -> tuple[Any, ...]:
        """What the kernel takes of rows to learn."""
        added = self.centre_offsets(data)
        beside = data.y, data.weights, data.discounts, added, predict
        return *self._kernel, *data.rows.parts, *beside

    def centre_offsets(self, data: Observations) -> Array | None:
        """Offsets (n,) less their centre, which is that of the first row that is learned."""
        n, offsets, weights = len(data), data.offsets, data.weights
        if offsets is None:
            return None if self.offset_centre == 0.0 else np.full(n, -self.offset_centre)
        if self.intercept and self.n_observations == 0.0 and n:
            first = 0 if weights is None else int(np.argmax(weights > 0.0))
            self.offset_centre = float(offsets[first])
        return offsets - self.offset_centre

    def _keep(self, undo: Undo, rows: SparseRows) -> None:
        """Have ``undo`` put back what learning these rows changes in place."""
        for array in (self.precision, self.information, self.squares, self.scores, self.rates):
            undo.keep_entries(array, slice(None))
        self._keep_beliefs(undo, np.append(rows.features, np.int32(0)))
        self.centres.keep(undo, rows)

    def _keep_beliefs(self, undo: Undo, features: AnyArray) -> None:
        undo.keep_entries(self.beliefs.reshape(-1, NUMBERS_A_FEATURE), features)
        if self.clocks is not None:
            undo.keep_entries(self.clocks, features)

    def centre_numbers(self, undo: Undo | None = None) -> None:
        """Centre numbers at their means; the mean of eta at any row stays as it is."""
        if self.intercept and len(self.centres.features):
            self.move(self.centres.means - self.centres.values, undo or Undo())

    def move(self, by: Array, undo: Undo) -> None:
        """Centre numbers further on ``by``."""
        to, source, factors = self.centres.find_terms(-by)
        if len(to):
            means, _ = self._moments(source)
            targets, place = np.unique(to, return_inverse=True)
            moved = np.zeros((len(targets), self.members))
            np.add.at(moved, place, factors[:, None] * means)
            self._keep_beliefs(undo, targets)
            beliefs = self.beliefs.reshape(-1, 2, MEMBERS)
            beliefs[targets] = self.discounted_beliefs(targets).reshape(-1, 2, MEMBERS)
            if self.clocks is not None:
                self.clocks[targets] = self.faded
            known = beliefs[targets, 0, : self.members]
            prior = self.compute_prior_precisions(targets)[:, : self.members]
            beliefs[targets, 1, : self.members] += (known + prior) * moved
        self.centres.move(by)

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def weights(self) -> Array:
        """(members,) probabilities of the hypotheses."""
        return hypothesis_weights(self.scores[: self.members])

    def moments(self, rows: SparseRows, pairs: Pairs | None) -> tuple[Array, Array]:
        """Mean and variance of eta at rows as they came, in units of the noise: (n, members) each.

        ``pairs`` are added to them.
        """
        if pairs is None:
            given = *rows.parts, self.owners, vars(self.centres)
            return self._read_moments(self._state().predict_given(*given))
        centred = self.centre_rows(rows, self.centres, pairs)
        return self._read_moments(self._state().predict_then_learn_rows(*centred.parts))

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

    def _moments(self, features: Indices) -> tuple[Array, Array]:
        """Means and variances (n, members) of weights, of numbers that are centred."""
        known = self.discounted_beliefs(features).reshape(-1, 2, MEMBERS)
        beliefs = known[:, :, : self.members]
        prior = self.compute_prior_precisions(features)[:, : self.members]
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = 1.0 / (prior + beliefs[:, 0])
            mean = np.where(beliefs[:, 1] == 0.0, 0.0, variance * beliefs[:, 1])
        return mean, variance

    def degrees_of_freedom(self, n_features: int) -> Array:
        """(n_features,) of the Student-t distributions of the weights; infinite of known noise."""
        return np.full(n_features, 2.0 * self.shape if self.shape >= 0.0 else np.inf)

    def discounted_beliefs(self, features: Any = slice(None)) -> Array:
        """(n, 8) statistics of the rows on features, or all, discounted up to now."""
        beliefs = self.beliefs.reshape(-1, NUMBERS_A_FEATURE)[features]
        if self.clocks is None:
            return beliefs
        return np.asarray(beliefs * np.exp(self.faded - self.clocks[features])[:, None])

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior, and both forget or none."""
        same = (self.clocks is None) == (other.clocks is None)
        return same and super().has_same_prior(other)

    def copy(self) -> Self:
        """An independent copy."""
        return replace(super().copy(), _kept=None)

    # ---- inner -----------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        if self.beliefs.ctypes.data % 64:
            self.beliefs = _allocate_aligned(self.beliefs.size, self.beliefs)

    @property
    def _kernel(self) -> Kernel:
        """The likelihood's number, and its parameters."""
        kernel = self.likelihood.kernel_code
        assert kernel is not None
        return kernel

    @property
    def _begins_wide(self) -> bool:
        """True if scales begin as those of labels and counts do."""
        return self.learns and not self.likelihood.is_noise

    @property
    def initial_information(self) -> float:
        """What is known of a column's precision before data, in rows."""
        return WIDE_INFORMATION if self._begins_wide else 0.0

    @property
    def initial_scores(self) -> Array:
        """(4,) log weights of the hypotheses before data."""
        return WIDE_SCORES if self._begins_wide else np.zeros(MEMBERS)

    def compute_prior_precisions(self, features: AnyArray) -> Array:
        """(n, 4) prior precisions of features."""
        return np.asarray((self.precision * self.mean_squares[:, None])[self.owners[features]])

    @property
    def mean_squares(self) -> Array:
        """(columns,) mean squares that learned precisions are relative to."""
        sums, counts = self.squares.T
        relative = self.learns & (counts > 0.0) & (np.arange(len(counts)) > 0)
        return np.where(relative, sums / np.where(relative, counts, 1.0), 1.0)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_kept": None}

    def _state(self) -> DiagonalState:
        """The compiled state, made anew where arrays have been replaced."""
        columns = self.precision, self.information, self.squares
        source = self.beliefs, self.clocks, *columns, self.scores, self.rates
        if self._kept is None or not self._kept.resume(source, self.shape, self.faded):
            precision, information, squares = (one.ravel() for one in columns)
            numbers = self.scores, self.rates, self.shape, self.faded
            flags = self.members, self.learns, self.learns, self.intercept
            given = self.beliefs, self.clocks, precision, information, squares
            self._kept = DiagonalState(*given, *numbers, *flags)
            self._kept.source = source
        return self._kept


def _allocate_aligned(size: int, begun: Array | None = None) -> Array:
    """Zeros (size,) at the start of a cache line, after the numbers of ``begun``."""
    storage = np.zeros(size + 7)
    first = (-(storage.ctypes.data // 8)) % 8
    array = storage[first : first + size]
    if begun is not None:
        array[: begun.size] = begun
    return array


__all__ = ["DiagonalPosterior"]
