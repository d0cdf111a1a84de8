"""A posterior averaged over several ways to forget, by how well each has predicted lately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self, cast

import numpy as np
from numpy.typing import NDArray

from posterity.distributions.mixing import mix_predictions
from posterity.factor import Factor
from posterity.factor.parallel import run_in_parallel
from posterity.kernel import (
    MemberNoises,
    MembersPath,
    RowPath,
    average_members,
    leading_dimension,
)
from posterity.posteriors.ensemble import (
    Ranks,
    predict_and_score_rows,
    rank_next_row,
    rank_predictions,
)
from posterity.posteriors.mixed import MixedPosterior, as_arguments

Array = NDArray[np.float64]


@dataclass
class TwoLevelWeights:
    """Two levels of :class:`Ensemble`, as the kernel's ``average_members`` keeps them.

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


@dataclass(frozen=True)
class AveragedPosterior(MixedPosterior):
    """Dynamic model averaging (Raftery, Karny and Ettler 2010) over posteriors that forget.

    The weight of a member is proportional to its past predictive densities, each to the power
    persistence^age. How fast success itself should be forgotten is averaged over too: each
    persistence makes an average of the members, and these are weighed in the same way.
    """

    runs: tuple[Any, ...]
    persistence: tuple[float, ...]
    outer_persistence: float
    expert_weights: TwoLevelWeights = field(repr=False)

    @classmethod
    def wrap(
        cls, runs: Sequence[Any], persistence: tuple[float, ...], outer_persistence: float
    ) -> Self:
        """Average over ``runs``, which have seen nothing."""
        members = np.zeros((len(persistence), leading_dimension(len(runs))))
        expert_weights = TwoLevelWeights(members, np.zeros(leading_dimension(len(persistence))))
        make: Any = cls  # whose fields are not its parent's
        average: Self = make(tuple(runs), persistence, outer_persistence, expert_weights)
        return average

    def copy(self) -> Self:
        """An independent copy."""
        runs = tuple(run.copy() for run in self.runs)
        return replace(self, runs=runs, expert_weights=self.expert_weights.copy())

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        for run, saved in zip(self.runs, other.runs, strict=True):
            run.copy_from(saved)
        self.expert_weights.__dict__.update(other.expert_weights.__dict__)

    # ---- learning ------------------------------------------------------------------------------

    def predict_then_learn(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> Any:
        """Learn row after row; returns the mixture predicted for each target before its row."""
        before = self.copy()
        try:
            others = y, weights, elapsed, *as_arguments(offsets)
            predictions, densities, ranks = self._learn_members(X, *others)
        except BaseException:
            self.copy_from(before)
            raise
        member_weights, log_density = self._average(densities, ranks, self.expert_weights)
        self.expert_weights.log_evidence += log_density
        return mix_predictions(predictions, member_weights)

    @property
    def has_fast_learn_one(self) -> bool:  # type: ignore[override]
        """True if all members do no more than fade towards their priors."""
        return all(run.fades_to_prior for run in self.runs)

    @property
    def has_fast_predict_one(self) -> bool:  # type: ignore[override]
        """The same."""
        return self.has_fast_learn_one

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """Return the compiled path that learns and predicts single rows, or only reads them."""
        if not self.has_fast_learn_one:
            return super().row_path(names)
        path = MembersPath(
            Factor(self.n_features).row_path(False, names),
            self.n_coefficients,
            self.intercept,
            len(self.runs),
            lambda: [run.as_member() for run in self.runs],
            *self._fast_path_noises(),
            self.expert_weights,
            self.persistence,
            self.outer_persistence,
        )
        return cast(RowPath, path)

    def _fast_path_noises(self) -> tuple[MemberNoises | None, float]:
        """Return the tracker of the members' noises, and the noise precision if it is given."""
        return None, self.noise.parameters[0]

    def _learn_members(self, X: Array, *others: Any) -> tuple[list[Any], Array, Ranks]:
        """Members' predictions of rows, their log densities times weights, and ranks (k, n)."""
        predictions: list[Any] = [None] * len(self.runs)
        densities = np.empty((len(self.runs), len(X)))

        def learn(i: int) -> None:
            predictions[i], densities[i] = predict_and_score_rows(self.runs[i], X, *others)

        self._run_members(learn, len(X))
        return predictions, densities, np.stack([rank_predictions(one) for one in predictions])

    def _run_members(self, learn: Callable[[int], None], n_rows: int) -> None:
        """Call ``learn`` for each member, where it pays on all cores."""
        # The shortest memories are the dearest, and come last in the grid: begin with them.
        work = n_rows * len(self.runs) * float(self.first.n_coefficients) ** 2
        run_in_parallel(learn, range(len(self.runs) - 1, -1, -1), work)

    def remove(self, X: Array, y: Array, weights: Array | None) -> NoReturn:
        """Refuse: a row that has faded can't be taken out."""
        raise ValueError(
            "can't unlearn rows under Adaptive: the weight of a row depends on its age; fit "
            "the remaining rows again"
        )

    def merge(self, other: Self) -> NoReturn:
        """Refuse: how members did side by side is not known."""
        raise ValueError(
            "can't merge models under Adaptive: the weights of its memories depend on the order "
            "of all rows; fit all rows in one model"
        )

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior and forget alike."""
        return type(self) is type(other) and self.first.has_same_prior(other.first)

    def _average(
        self, densities: Array, ranks: Ranks, expert_weights: TwoLevelWeights
    ) -> tuple[Array, float]:
        return average_members(
            densities,
            ranks,
            expert_weights.members,
            expert_weights.rates,
            np.array(self.persistence),
            self.outer_persistence,
        )

    # ---- reading -------------------------------------------------------------------------------

    @property
    def first(self) -> Any:
        """The longest memory of those that were asked for by default."""
        return self.runs[0]

    def ahead(self) -> tuple[Sequence[Any], Array]:
        """The members, and their weights (k,) for the next row."""
        return self.runs, self.weights

    @property
    def weights(self) -> Array:
        """Weights (k,) of the members for the next row."""
        ranks = np.array([[self._rank(i)] for i in range(len(self.runs))], dtype=np.uint8)
        return self._average(np.zeros(ranks.shape), ranks, self.expert_weights.copy())[0][0]

    def _rank(self, i: int) -> int:
        return rank_next_row(self.runs[i])

    def predictive(self, X: Array, offsets: Array | None = None) -> Any:
        """Distribution of new observations at the rows of ``X``."""
        predictions = [
            self._predict_member(i, X, *as_arguments(offsets)) for i in range(len(self.runs))
        ]
        return mix_predictions(predictions, self.weights)

    def predict_mean_ahead(self, X: Array) -> Array:
        """Mean of the next observations at the rows of ``X``."""
        return np.asarray(self.average_of(lambda one: one.predict_mean_ahead(X)))

    def _predict_member(self, i: int, X: Array, *offsets: Array) -> Any:
        return self.runs[i].predictive(X, *offsets)

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of the rows as they came."""
        return self.expert_weights.log_evidence

    @property
    def n_held(self) -> float:
        """The weight of rows that is left in the longest memory."""
        return max(run.n_effective for run in self.runs)

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return float(self.first.n_observations)
