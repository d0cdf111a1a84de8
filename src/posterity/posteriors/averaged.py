"""A posterior averaged over several ways to forget, by how well each has predicted lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
NO_MEMBER = -1e300  # score of the lanes that only fill up a vector
# Rows at a time: their densities under all members stay in the cache.
BLOCK_ROWS = 8192


@dataclass
class Standing:
    """How the members have predicted: discounted sums of their log densities.

    ``members`` (a, k) has a row for each rate at which past success is forgotten, ``rates`` (a,)
    the same of the averages that those rows make; ``log_evidence`` is the sum of the log densities
    of the whole mixture.
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
        members = np.full((len(persistence), leading_dimension(len(runs))), NO_MEMBER)
        members[:, : len(runs)] = 0.0
        standing = Standing(members, np.zeros(len(persistence)))
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

    # ---- learning ------------------------------------------------------------------------------

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        self.predict_then_learn(X, y, weights, elapsed)

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Mixture:
        """Learn row after row; returns the mixture predicted for each target before its row."""
        before = [run.factor.copy() for run in self.runs]
        told: list[Any] = [None] * len(self.runs)
        densities = np.empty((len(X), len(self.runs)))

        def learn(i: int) -> None:
            predicted = self.runs[i].predict_then_learn(X, y, weights, elapsed.copy())
            told[i] = _simplest(cast(Distribution, predicted))
            for first in range(0, len(X), BLOCK_ROWS):
                part = slice(first, first + BLOCK_ROWS)
                densities[part, i] = _simplest(told[i][part]).logpdf(y[part, 0])

        try:
            # The shortest memories are the dearest, and come last in the grid: begin with them.
            take_turns(learn, range(len(self.runs) - 1, -1, -1))
        except BaseException:
            for run, factor in zip(self.runs, before, strict=True):
                run.factor.become(factor)
            raise
        return Mixture(told, self._weigh(told, densities, weights))

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

    def _weigh(
        self, told: Sequence[Distribution], densities: Array, weights: Array | None
    ) -> Array:
        """Weights (n, k) of the members before each row, which they then are judged by."""
        np.nan_to_num(densities, copy=False, nan=0.0, posinf=MOST_TELLING, neginf=-MOST_TELLING)
        np.clip(densities, -MOST_TELLING, MOST_TELLING, out=densities)
        if weights is not None:
            densities *= weights[:, None]
        counting = _counting(told)
        unknown = ~counting.any(axis=1)
        densities[unknown] = 0.0  # nobody knew enough to be judged
        counting[unknown] = 1.0
        standing = self.standing
        member_weights, log_density = average_members(
            densities,
            counting,
            standing.members,
            standing.rates,
            np.array(self.persistence),
            self.outer_persistence,
        )
        standing.log_evidence += log_density
        return member_weights

    # ---- reading -------------------------------------------------------------------------------

    @property
    def weights(self) -> Array:
        """Weights (k,) of the members for the next row."""
        standing, k = self.standing, len(self.runs)
        counting = _counting(self._predicted(np.zeros((1, self._n_features))))
        counting[~counting.any(axis=1)] = 1.0
        weights, _ = average_members(
            np.zeros((1, k)),
            counting,
            standing.members.copy(),
            standing.rates.copy(),
            np.array(self.persistence),
            self.outer_persistence,
        )
        return weights[0]

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


def _counting(told: Sequence[Distribution]) -> Array:
    """Which members may count at each row (n, k), as 0 and 1: those that have a variance.

    A member whose memory is too short for the noise it has to learn has none, and an average with
    it would have none either; one that has seen no noise yet is sure of what it can't know.
    """
    spread = np.stack([run.std() for run in told], axis=1)
    scale = np.stack([np.broadcast_to(run.scale, run.loc.shape) for run in told], axis=1)
    proper = (scale > 0.0) & np.isfinite(scale)
    varies = proper & np.isfinite(spread)
    return np.where(varies.any(axis=1, keepdims=True), varies, proper).astype(np.float64)
