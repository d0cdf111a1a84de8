"""A posterior averaged over several ways to forget, by how well each has predicted lately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from posterity.distributions import Mixture, MultivariateMixture, StudentT
from posterity.factor.parallel import take_turns
from posterity.kernel import average_members, leading_dimension
from posterity.noise import Distribution, Joint, JointOfOne
from posterity.posteriors.gaussian import LinearPosterior

Array = NDArray[np.float64]

# A density further out says no more than this; keeps a point mass from deciding for ever.
MOST_TELLING = 1e4
# Ranks of a member at a row: it knows nothing, it has a scale, it has a variance too.
KNOWS, VARIES = 1, 2
# Rows at a time: their densities under all members stay in the cache.
BLOCK_ROWS = 8192


@dataclass
class Standing:
    """How the members have predicted: discounted sums of their log densities.

    ``members`` (a, k) has a row for each rate at which past success is forgotten, ``rates`` (a,)
    the same of the averages that those rows make, both padded for the kernel; ``log_evidence`` is
    the sum of the log densities of the whole mixture.
    """

    members: Array
    rates: Array
    log_evidence: float = 0.0


@dataclass(frozen=True)
class AveragedPosterior(LinearPosterior):
    """Dynamic model averaging (Raftery, Karny and Ettler 2010) over posteriors that forget.

    The weight of a member is proportional to its past predictive densities, each to the power
    persistence^age. How fast success itself should be forgotten is averaged over too: each
    persistence makes an average of the members, and these are weighed in the same way.
    """

    runs: tuple[LinearPosterior, ...]
    persistence: tuple[float, ...]
    outer_persistence: float
    standing: Standing = field(repr=False)

    forgets: ClassVar[bool] = True
    learns_lean: ClassVar[bool] = False
    predicts_lean: ClassVar[bool] = False

    @classmethod
    def around(
        cls,
        posterior: LinearPosterior,
        runs: Sequence[LinearPosterior],
        persistence: tuple[float, ...],
        outer_persistence: float,
    ) -> Self:
        """Average over ``runs``, which have seen nothing and believe what ``posterior`` does."""
        members = np.zeros((len(persistence), leading_dimension(len(runs))))
        standing = Standing(members, np.zeros(leading_dimension(len(persistence))))
        return cls(
            posterior.belief,
            posterior.noise,
            posterior.intercept,
            posterior.prior,
            posterior.factor,
            tuple(runs),
            persistence,
            outer_persistence,
            standing,
        )

    def copy(self) -> Self:
        """The same knowledge, to go its own way."""
        old = self.standing
        standing = Standing(old.members.copy(), old.rates.copy(), old.log_evidence)
        return replace(self, runs=tuple(run.copy() for run in self.runs), standing=standing)

    def become(self, other: LinearPosterior) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        assert isinstance(other, AveragedPosterior)
        for run, saved in zip(self.runs, other.runs, strict=True):
            run.become(saved)
        self.standing.__dict__.update(other.standing.__dict__)

    # ---- learning ------------------------------------------------------------------------------

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        self.predict_then_learn(X, y, weights, elapsed)

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Mixture:
        """Learn row after row; returns the mixture predicted for each target before its row."""
        before = self.copy()
        told: list[Any] = [None] * len(self.runs)
        densities = np.empty((len(self.runs), len(X)))
        ranks = np.empty(densities.shape, dtype=np.uint8)

        def learn(i: int) -> None:
            told[i] = _simplest(self._learn_member(i, X, y, weights, elapsed.copy()))
            for first in range(0, len(X), BLOCK_ROWS):
                part = slice(first, first + BLOCK_ROWS)
                some = _simplest(told[i][part])
                densities[i, part] = _told(some, y[part, 0])
                ranks[i, part] = _rank(some)

        try:
            # The shortest memories are the dearest, and come last in the grid: begin with them.
            take_turns(learn, range(len(self.runs) - 1, -1, -1))
        except BaseException:
            self.become(before)
            raise
        if weights is not None:
            densities *= weights
        member_weights, log_density = self._average(densities, ranks, self.standing)
        self.standing.log_evidence += log_density
        return Mixture(told, member_weights)

    def _learn_member(
        self, i: int, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Distribution:
        return cast(Distribution, self.runs[i].predict_then_learn(X, y, weights, elapsed))

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Refuse: a row that has faded can't be taken out."""
        raise ValueError(
            "can't unlearn rows under Adaptive: what is left of a row depends on when it came; fit "
            "the remaining rows again"
        )

    def merge(self, other: LinearPosterior) -> None:
        """Refuse: how members did side by side is not known."""
        raise ValueError(
            "can't merge models under Adaptive: how well each way to forget predicted depends on "
            "the order of all rows"
        )

    def _average(
        self, densities: Array, ranks: NDArray[np.uint8], standing: Standing
    ) -> tuple[Array, float]:
        return average_members(
            densities,
            ranks,
            standing.members,
            standing.rates,
            np.array(self.persistence),
            self.outer_persistence,
        )

    # ---- reading -------------------------------------------------------------------------------

    @property
    def weights(self) -> Array:
        """Weights (k,) of the members for the next row."""
        told = self._predicted(np.zeros((1, self._n_features)))
        ranks = np.array([np.broadcast_to(_rank(one), 1) for one in told], dtype=np.uint8)
        standing = Standing(self.standing.members.copy(), self.standing.rates.copy())
        return self._average(np.zeros(ranks.shape), ranks, standing)[0][0]

    @property
    def _n_features(self) -> int:
        return self.n_coefficients - int(self.intercept)

    def predictive(self, X: Array) -> Mixture:
        """Distribution of new observations at the rows of ``X``."""
        return Mixture(self._predicted(X), self.weights)

    def _predicted(self, X: Array) -> list[Distribution]:
        return [cast(Distribution, run.predictive(X)) for run in self.runs]

    def predict_mean(self, X: Array) -> Array:
        """Mean of new observations at the rows of ``X``."""
        return self._averaged([run.predict_mean(X) for run in self.runs])

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        return self._averaged([run.coefficients() for run in self.runs])

    def joint(self, names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        joints = [cast(JointOfOne, run.joint(names)) for run in self.runs]
        return MultivariateMixture(joints, self.weights)

    @property
    def noise_precision(self) -> float:
        """Average of what the members have learned."""
        return float(self._averaged([np.array(run.noise_precision) for run in self.runs]))

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of the rows as they came."""
        return self.standing.log_evidence

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.runs[0].n_observations

    @property
    def n_effective(self) -> float:
        """Average of what is left of them in each member."""
        return float(self._averaged([np.array(run.n_effective) for run in self.runs]))

    def _averaged(self, values: Sequence[Array]) -> Array:
        return np.tensordot(self.weights, np.stack(values), axes=1)


def _simplest(told: Distribution) -> Distribution:
    """The same distributions, with one number for degrees of freedom that have settled."""
    if isinstance(told, StudentT) and told.df.ndim and told.df.min() == told.df.max():
        return StudentT(told.df[0], told.loc, told.scale)
    return told


def _told(told: Distribution, y: Array) -> Array:
    """Log densities, kept within what may be told."""
    densities = told.logpdf(y)
    if not np.abs(densities).max(initial=0.0) <= MOST_TELLING:  # NaN is not, either
        np.nan_to_num(densities, copy=False, nan=0.0, posinf=MOST_TELLING, neginf=-MOST_TELLING)
        np.clip(densities, -MOST_TELLING, MOST_TELLING, out=densities)
    return densities


def _rank(told: Distribution) -> NDArray[np.uint8] | int:
    """How much a member knows at each row: only those that know most may count.

    A member whose memory is too short for the noise it has to learn has no variance, and an average
    with it would have none either; one that has seen no noise yet is sure of what it can't know.
    """
    scale = told.scale
    least_df = np.min(told.df, initial=math.inf) if isinstance(told, StudentT) else math.inf
    ends = np.min(scale, initial=math.inf), np.max(scale, initial=0.0)
    if ends[0] > 0.0 and ends[1] < math.inf and least_df > 2.0:
        return VARIES
    knows = (scale > 0.0) & np.isfinite(scale)
    varies = knows & np.isfinite(told.std())
    return (knows * KNOWS + varies * (VARIES - KNOWS)).astype(np.uint8)
