"""Several memories side by side, weighed by how well each has predicted lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Self, cast

import numpy as np

from posterity.aliases import Array
from posterity.distributions import MultivariateMixture, MultivariateT, Normal, StudentT
from posterity.distributions.mixing import mix_logs, mix_predictions
from posterity.factor import Factor
from posterity.factor.parallel import run_in_parallel
from posterity.kernel import (
    MemberNoises,
    MembersPath,
    RowPath,
    average_members,
    leading_dimension,
)
from posterity.noise import Joint
from posterity.posteriors._member_paths import MemberPaths
from posterity.posteriors.ensemble import (
    Ranks,
    predict_and_score_rows,
    predict_members,
    rank_next_row,
    rank_predictions,
)
from posterity.posteriors.hypotheses import Hypotheses
from posterity.posteriors.memory import Several
from posterity.posteriors.new_columns import NewColumns

# Memories of a member's noise, in rows. Only the first does not cap errors: it finds noise that has
# grown by orders of magnitude in one row, and forgets an outlier after a few rows.
NOISE_MEMORIES = np.array([5.0, 10.0, 40.0, 160.0, 640.0, 2560.0])
# Variances that a squared error counts for at most: five standard deviations.
CAPS = np.array([1e150, 25.0, 25.0, 25.0, 25.0, 25.0])
# Errors are not capped while coefficients are undetermined, nor in this many rows after.
UNCAPPED_ROWS = 5.0
# Discount of the scores of each of these memories.
NOISE_PERSISTENCE = 0.99


@dataclass
class TwoLevelWeights:
    """Two levels of :class:`~posterity.posteriors.ensemble.Ensemble`, as the kernel keeps them.

    ``members`` (a, k) has the scores of the members for each rate at which past success is
    forgotten, ``rates`` (a,) those of the averages that the rates make, both padded for the
    kernel; ``log_evidence`` is the sum of the log densities of the whole mixture.
    """

    members: Array
    rates: Array
    log_evidence: float = 0.0

    def copy(self) -> TwoLevelWeights:
        """An independent copy."""
        return TwoLevelWeights(self.members.copy(), self.rates.copy(), self.log_evidence)


@dataclass
class Switching(Hypotheses):
    """Dynamic model averaging (Raftery, Karny and Ettler 2010) over posteriors that forget.

    The weight of a member is proportional to its past predictive densities, each to the power
    persistence^age. How fast success itself should be forgotten is averaged over too: each
    persistence makes an average of the members, and these are weighed in the same way.

    A member that forgets coefficients at some rate would forget its noise at the same: after a jump
    the long memories' noise is too large for long, and the short ones' rests on a few rows. So
    where noise is learned members predict in units of it (``UnitNoise``), and ``noises`` (k, 4, m)
    says for each what the unit is, in m memories: faded sums of squared errors (each relative to
    what its variance would be if the noise's were 1) and of their weights, a discounted sum of log
    densities, and how much weight was ever seen. Each memory tells an inverse-gamma distribution of
    the noise's variance; together they are a mixture, for which the one stands whose logarithm has
    the same mean and variance, but no heavier tails than the shortest memory's.
    """

    members: tuple[Any, ...]
    persistence: tuple[float, ...]
    outer_persistence: float
    scores: TwoLevelWeights
    noises: Array | None

    # Rows for which all members but the first wait, learned one by one; negative: none waits.
    n_waiting = -1.0

    memory = Several(
        "Adaptive",
        why_not_merge="the weights of its memories depend on the order of all rows; fit all rows "
        "in one model",
    )

    @classmethod
    def before_data(
        cls,
        members: Sequence[Any],
        persistence: tuple[float, ...],
        outer_persistence: float,
        *,
        learns_noise: bool,
    ) -> Self:
        """Average over ``members``, which have seen nothing."""
        k, rates = len(members), len(persistence)
        scores = TwoLevelWeights(
            np.zeros((rates, leading_dimension(k))), np.zeros(leading_dimension(rates))
        )
        noises = np.zeros((k, 4, len(NOISE_MEMORIES))) if learns_noise else None
        return cls(tuple(members), persistence, outer_persistence, scores, noises)

    def copy(self) -> Self:
        """An independent copy."""
        return replace(
            self,
            members=tuple(one.copy() for one in self.members),
            scores=self.scores.copy(),
            noises=None if self.noises is None else self.noises.copy(),
        )

    def take_over(self, learned: Self) -> None:
        """Know what ``learned`` does, a copy of this one; in memory that others may share."""
        for mine, its in zip(self.members, learned.members, strict=True):
            mine.copy_from(its)
        self.scores.__dict__.update(learned.scores.__dict__)
        if self.noises is not None:
            self.noises[...] = learned.noises

    @property
    def common(self) -> Any:
        """The longest memory of those that were asked for by default."""
        return self.members[0]

    @property
    def log_evidence(self) -> float:  # type: ignore[override]
        """Sum of the log predictive densities of the rows as they came."""
        return self.scores.log_evidence

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return float(self.common.n_observations)

    @property
    def n_effective(self) -> float:
        """Average of what is left of the rows in each member."""
        return float(self.average(lambda one: one.n_effective))

    @property
    def n_held(self) -> float:
        """The weight of rows that is left in the longest memory."""
        return max(one.n_held for one in self.members)

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, *rows: Any) -> Any:
        """Learn rows; returns the mixture predicted for each target before its row."""
        return self.learn_and_score(*rows)[0]

    def learn_and_score(self, X: Array, y: Array, weights: Array | None, *others: Array) -> Any:
        """Learn rows; returns the mixture predicted for each target, and its log densities (n,)."""
        predictions, densities, ranks = self._learn_members(X, y, weights, *others)
        member_weights, log_density = self._weigh(densities, ranks, self.scores)
        self.scores.log_evidence += log_density
        mixture = mix_predictions(predictions, member_weights)
        return mixture, mix_logs(list(densities), member_weights)

    def _learn_members(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array, *offsets: Array
    ) -> tuple[list[Any], Array, Ranks]:
        """Members' predictions of rows, their log densities times weights, and ranks (k, n)."""
        k = len(self.members)
        predictions: list[Any] = [None] * k
        densities = np.empty((k, len(X)))
        rows: tuple[Any, ...] = (X, y, weights, elapsed, *offsets)

        def learn(i: int) -> None:
            if self.noises is None:
                predictions[i], densities[i] = predict_and_score_rows(self.members[i], *rows)
            else:
                predictions[i] = self.members[i].predict_then_learn(*rows)

        # The shortest memories are the dearest, and come last in the grid: begin with them.
        work = len(X) * k * float(self.common.n_coefficients) ** 2
        run_in_parallel(learn, range(k - 1, -1, -1), work)
        if self.noises is None:
            return predictions, densities, self._rank(predictions, densities, weights)
        loc, scale = (
            np.stack([getattr(unit, part) for unit in predictions]) for part in ("loc", "scale")
        )
        df, densities, ranks = self._follow(self.noises).score(y[:, 0], loc, scale, weights)
        return [StudentT(*each) for each in zip(df, loc, scale, strict=True)], densities, ranks

    def _rank(self, predictions: list[Any], densities: Array, weights: Array | None) -> Ranks:
        """How much each member knows of each row, (k, n)."""
        return np.stack([rank_predictions(one) for one in predictions])

    def _follow(self, noises: Array) -> MemberNoises:
        """A kernel object that follows the noises of all members, in the memories of each."""
        _, shape, rate = self.common.noise.parameters
        return MemberNoises(
            list(noises),
            1.0 - 1.0 / NOISE_MEMORIES,
            CAPS,
            UNCAPPED_ROWS + self.common.n_coefficients,
            NOISE_PERSISTENCE,
            (2.0 * shape, 2.0 * rate),
        )

    def _weigh(
        self, densities: Array, ranks: Ranks, scores: TwoLevelWeights
    ) -> tuple[Array, float]:
        persistence = np.array(self.persistence)
        return average_members(
            densities, ranks, scores.members, scores.rates, persistence, self.outer_persistence
        )

    @property
    def has_row_path(self) -> bool:
        """True if compiled code learns single rows in all members."""
        return all(one.has_fast_learn_one for one in self.members)

    @cached_property
    def predicts_rows(self) -> bool:
        """True if it predicts them as well: all members are Gaussian."""
        return self.has_row_path and all(one.rows_leave_no_trace for one in self.members)

    @property
    def scores_rows(self) -> bool:
        """True if a row adds to the evidence of each member how its path predicted it."""
        return all(one.scores_rows for one in self.members)

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """Return the compiled path that learns and predicts single rows, or only reads them."""
        if not self.has_row_path:
            return super().row_path(names)
        return self._open_path(Factor(self.common.n_features).row_path(False, names))

    def _open_path(self, reader: RowPath) -> RowPath:
        if not self.predicts_rows:
            return cast(RowPath, MemberPaths(reader, self))
        common = self.common
        path = MembersPath(
            reader,
            common.n_coefficients,
            common.intercept,
            len(self.members),
            lambda: [one.as_member() for one in self.members],
            None if self.noises is None else self._follow(self.noises),
            common.noise.parameters[0] or 1.0,
            self.scores,
            (self.persistence, self.outer_persistence),
        )
        return cast(RowPath, path)

    def widen_from(self, other: Self, columns: NewColumns, widen: Any) -> None:
        """Know what ``other`` does, of other columns.

        Memories must be longer with more coefficients: each member goes on with its place in the
        grid, at the discount that the place has from now on.
        """
        for mine, its in zip(self.members, other.members, strict=True):
            widen(mine, its, columns)
        known = other.copy()
        self.scores, self.noises = known.scores, known.noises

    # ---- reading -------------------------------------------------------------------------------

    def ahead(self) -> tuple[Sequence[Any], Array]:
        """The members, and their weights (k,) for the next row."""
        if self.noises is None:
            ranked: Any = [rank_next_row(one) for one in self.members]
        else:
            origin, (df, variance) = np.zeros((1, self.common.n_features)), self._noises_ahead().T
            open_ = [one.leaves_open(origin)[0] for one in self.members]
            scale = np.where(open_, np.inf, np.sqrt(variance))
            ranked = rank_predictions(StudentT(df, np.zeros(len(df)), scale))
        ranks = np.array(ranked, dtype=np.uint8)[:, None]
        return self.members, self._weigh(np.zeros(ranks.shape), ranks, self.scores.copy())[0][0]

    def predict(self, X: Array, *offsets: Array) -> tuple[list[Any], Array]:
        """Predictions of the rows of ``X``, each with its member's noise, and weights (k,)."""
        return self._predict(X, *offsets), self.ahead()[1]

    def _predict(self, X: Array, *offsets: Array) -> list[Any]:
        kinds = (list(each) for _, each in groupby(self.members, type))
        predictions = [one for each in kinds for one in predict_members(each[0], each, X, *offsets)]
        if self.noises is None:
            return predictions
        return list(map(_rescale_to_noise, predictions, *self._noises_ahead().T))

    def _noises_ahead(self) -> Array:
        """(k, 2) degrees of freedom and variance of each member's noise in the next row."""
        assert self.noises is not None
        nothing, origin = np.zeros(1), np.zeros((len(self.members), 1))
        scale = np.ones(origin.shape)
        df, _, _ = self._follow(self.noises.copy()).score(nothing, origin, scale, nothing)
        return np.hstack([df, np.square(scale)])

    def wait(self, elapsed: float) -> None:
        """Let so much time pass after the last row, in all members.

        A short memory that predicts well stands for coefficients that move fast, not for all being
        forgotten after a while.
        """
        for one in self.members:
            one.wait(one.memory.find_steady_time(elapsed))

    def predict_mean_ahead(self, X: Array) -> Array:
        """Mean of the next observations at the rows of ``X``."""
        return np.asarray(self.average(lambda one: one.predict_mean_ahead(X)))

    def joint(self, *names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        if self.noises is None:
            return super().joint(*names)
        units, noises = [one.joint(*names) for one in self.members], self._noises_ahead()
        joints = [
            MultivariateT(df, unit.mean, unit.precision_root, variance**0.5, names=names[0])
            for unit, (df, variance) in zip(units, noises.tolist(), strict=True)
        ]
        return MultivariateMixture(joints, self.ahead()[1])

    @property
    def noise_precision(self) -> float:
        """Average of what the members have learned."""
        if self.noises is None:
            return super().noise_precision
        with np.errstate(divide="ignore"):
            return float(self.ahead()[1] @ (1.0 / self._noises_ahead()[:, 1]))


def _rescale_to_noise(unit: Normal, df: float, variance: float) -> StudentT:
    """Rescale predictions in units of the noise by its variance, as far as that is known."""
    with np.errstate(invalid="ignore"):
        scale = unit.scale * np.sqrt(variance)
    scale[np.isnan(scale)] = np.inf  # without noise so far, an unknown direction is still unknown
    return StudentT(df, unit.loc, scale)
