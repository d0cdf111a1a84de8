"""Several posteriors of the same coefficients, weighed, and read as one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from posterity.aliases import Array
from posterity.distributions import Normal
from posterity.distributions.mixing import match_moments, mix_table
from posterity.posteriors._reads import read_along
from posterity.posteriors.ensemble import predict_and_score_rows
from posterity.posteriors.gaussian import ONE_TARGET, LinearPosterior
from posterity.posteriors.hypotheses import NO_LATE_CLASS, Hypotheses


@dataclass(frozen=True)
class MixedPosterior(LinearPosterior):
    """Mixture of the members of ``hypotheses``: its predictions and weighted averages.

    A member must be able to ``copy``, ``predict_then_learn`` and its ``predictive``; of all else it
    is asked only what a user asks of the whole. What it believed before any data is that of its
    members, so that there is nothing of its own to keep.
    """

    hypotheses: Hypotheses

    is_one_factor: ClassVar[bool] = False

    # What the members have in common.
    belief: ClassVar[Any] = read_along("common.belief")  # type: ignore[misc]
    noise: ClassVar[Any] = read_along("common.noise")  # type: ignore[misc]
    intercept: ClassVar[Any] = read_along("common.intercept")  # type: ignore[misc]
    prior: ClassVar[Any] = read_along("common.prior")  # type: ignore[misc]
    factor: ClassVar[Any] = read_along("common.factor")  # type: ignore[misc]
    memory: ClassVar[Any] = read_along("hypotheses.memory")  # type: ignore[misc]
    n_coefficients = read_along("common.n_coefficients")
    n_features = read_along("common.n_features")
    n_flat = read_along("common.n_flat")
    improper = read_along("common.improper")
    # What is known of all of them together.
    common = read_along("hypotheses.common")
    log_evidence = read_along("hypotheses.log_evidence")
    n_observations = read_along("hypotheses.n_observations")
    n_effective = read_along("hypotheses.n_effective")
    n_held = read_along("hypotheses.n_held")
    noise_precision = read_along("hypotheses.noise_precision")
    change_probability = read_along("hypotheses.change_probability")
    changes = read_along("hypotheses.changed_rows")
    # How they learn, and are read: methods.
    row_path = read_along("hypotheses.row_path")
    add_classes = read_along("hypotheses.add_classes")
    reorder = read_along("hypotheses.reorder")
    wait = read_along("hypotheses.wait")
    ahead = read_along("hypotheses.ahead")
    coefficients = read_along("hypotheses.coefficients")
    joint = read_along("hypotheses.joint")
    predict_mean = read_along("hypotheses.predict_mean")
    predict_mean_ahead = read_along("hypotheses.predict_mean_ahead")
    average_of = read_along("hypotheses.average")
    has_fast_learn_one = read_along("hypotheses.has_row_path")
    has_fast_predict_one = read_along("hypotheses.predicts_rows")
    tells_rows: ClassVar[Any] = read_along("hypotheses.predicts_rows")
    scores_rows: ClassVar[Any] = read_along("hypotheses.scores_rows")
    # What the member that predicts best says of its features and its prior.
    prior_precision = read_along("best.prior_precision")
    pearson = read_along("best.pearson")
    feature_scales = read_along("best.feature_scales")
    feature_means = read_along("best.feature_means")
    find_sums_to_one = read_along("best.find_sums_to_one")
    never_varied = read_along("best.never_varied")
    unseen_effects = read_along("best.unseen_effects")

    @classmethod
    def of(cls, hypotheses: Hypotheses) -> Self:
        """Mix these, which have seen nothing."""
        make: Any = cls  # whose fields are not its parent's
        posterior: Self = make(hypotheses)
        return posterior

    def copy(self) -> Self:
        """An independent copy."""
        return replace(self, hypotheses=self.hypotheses.copy())

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.hypotheses.take_over(other.hypotheses.copy())

    # ---- learning ------------------------------------------------------------------------------

    def for_targets(self, count: int) -> LinearPosterior:
        """Refuse: members are weighed by how they predict one target."""
        raise ValueError(ONE_TARGET.format("an average over memories or regimes"))

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array, *offsets: Array | None
    ) -> Any:
        """Learn row after row; returns the mixture predicted for each target before its row."""
        path = self._learn_by_path(X, y, weights, elapsed)
        if path is not None:
            return mix_table(path.told(), 1)
        learned = self.hypotheses.copy()
        predictive = learned.learn(X, y, weights, elapsed, *_given(*offsets))
        self.hypotheses.take_over(learned)
        return predictive

    def _learn_by_path(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> Any:
        """Learn a single row by its path, which needs no copy; the path, or None if that can't."""
        if len(X) == 1 and weights is None and elapsed[0] == 1.0 and self.tells_rows:
            path: Any = self.row_path(None)
            return path if path.learn(X[0], y[0, 0]) else None
        return None

    def append(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array, *offsets: Array | None
    ) -> None:
        """Learn rows in order."""
        if self._learn_by_path(X, y, weights, elapsed) is not None:
            return
        learned = self.hypotheses.copy()
        learned.append(X, y, weights, elapsed, *_given(*offsets))
        self.hypotheses.take_over(learned)

    # Rows that come together are learned in order: weights depend on predictions.
    fit = absorb = append

    def remove(self, X: Array, y: Array, weights: Array | None, *offsets: Array) -> None:
        """Refuse: what members would have predicted without a row is not known."""
        self.memory.check_removal()

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior and forget alike."""
        return type(self) is type(other) and self.hypotheses.begins_as(other.hypotheses)

    def without_prior(self) -> NoReturn:
        """Refuse: several members have several posteriors of the rows."""
        raise ValueError(NO_LATE_CLASS)

    def take_rows(self, other: Self, target: Callable[[Array], Array]) -> None:
        """Know the rows of another one, with other targets, where rows are kept."""
        self.hypotheses.take_rows(other.hypotheses, target)

    # ---- reading -------------------------------------------------------------------------------

    def mixture_of(self, read: Callable[[Any], Any]) -> Any:
        """Return the mixture of the predictions that ``read`` returns for each member."""
        members, weights = self.ahead()
        return self.hypotheses.mix([read(one) for one in members], weights)

    @property
    def best(self) -> Any:
        """The member that predicts best."""
        members, weights = self.ahead()
        return members[int(np.argmax(weights))]

    def predictive(self, X: Array, *offsets: Array | None) -> Any:
        """Distribution of new observations at the rows of ``X``."""
        return self.hypotheses.mix(*self.hypotheses.predict(X, *_given(*offsets)))

    def linear_predictor(self, X: Array, *offsets: Array | None) -> Any:
        """Distribution of eta at the rows of ``X``, with the mixture's mean and variance."""
        members, weights = self.ahead()
        etas = [one.linear_predictor(X, *_given(*offsets)) for one in members]
        if len(etas) == 1:
            return etas[0]
        scales = np.array([one.scale for one in etas])
        return Normal(*match_moments(np.array([one.loc for one in etas]), scales, weights))

    def probability_interval(self, X: Array, level: float) -> Array:
        """(n, K, 2) ends of the central interval of the probability of each of many classes."""
        members, weights = self.ahead()
        if len(members) == 1:
            return np.asarray(members[0].probability_interval(X, level))
        ends = []
        for part in self.common.blocks(len(X)):
            points = [one.probability_points(X[part]) for one in members]
            drawn = np.concatenate(points, axis=1)
            counted = np.repeat(weights, [one.shape[1] for one in points])
            order = np.argsort(drawn, axis=1)
            below = np.cumsum(counted[order], axis=1)
            tail = 0.5 - 0.5 * level
            places = [np.argmax(below >= q * below[:, -1:], axis=1) for q in (tail, 1.0 - tail)]
            drawn = np.take_along_axis(drawn, order, axis=1)
            both = [np.take_along_axis(drawn, one[:, None], axis=1)[:, 0] for one in places]
            ends.append(np.stack(both, axis=-1))
        return np.concatenate(ends)

    def noise_coefficients(self) -> Array:
        """Mean of [intercept, coefficients] of the log variance of the noise, where it has one."""
        return np.asarray(self.average_of(lambda one: one.noise_coefficients()))


@predict_and_score_rows.register
def _learn_and_score(member: MixedPosterior, *rows: Any) -> Any:
    """In place: an average learns on a copy, of which this is a part."""
    return member.hypotheses.learn_and_score(*rows)


def _given(*offsets: Array | None) -> list[Array]:
    """Offsets as last arguments, of likelihoods that have an eta; none where there are none."""
    return [one for one in offsets if one is not None]
