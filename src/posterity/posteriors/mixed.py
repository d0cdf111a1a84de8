"""Several posteriors of the same coefficients, weighed, and read as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions import MultivariateMixture, Normal
from posterity.distributions.mixing import match_moments, mix_predictions
from posterity.factor import Factor
from posterity.kernel import RowPath
from posterity.noise import Joint
from posterity.posteriors.gaussian import ONE_TARGET, LinearPosterior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MixedPosterior(LinearPosterior):
    """Mixture of an ensemble of posteriors: its predictions and weighted averages.

    ``ahead`` has its members and their weights for the next row. A member must be able to
    ``copy``, ``copy_from``, ``predict_then_learn`` and its ``predictive``; of all else it is
    asked only what a user asks of the whole. What it believed before any data is that of its
    members, so that there is nothing of its own to keep.
    """

    # Other parts of a posterior: those of the first member.
    belief: ClassVar[Any] = property(lambda self: self.first.belief)  # type: ignore[misc]
    noise: ClassVar[Any] = property(lambda self: self.first.noise)  # type: ignore[misc]
    intercept: ClassVar[Any] = property(lambda self: self.first.intercept)  # type: ignore[misc]
    prior: ClassVar[Any] = property(lambda self: self.first.prior)  # type: ignore[misc]
    factor: ClassVar[Any] = property(lambda self: self.first.factor)  # type: ignore[misc]

    forgets: ClassVar[bool] = True
    has_fast_learn_one: ClassVar[bool] = False
    has_fast_predict_one: ClassVar[bool] = False
    is_one_factor: ClassVar[bool] = False

    @property
    def first(self) -> Any:
        """A member that stands for what all have in common."""
        raise NotImplementedError

    def ahead(self) -> tuple[Sequence[Any], Array]:
        """The members, and their weights (k,) for the next row."""
        raise NotImplementedError

    # ---- learning ------------------------------------------------------------------------------

    def for_targets(self, count: int) -> LinearPosterior:
        """Refuse: members are weighed by how they predict one target."""
        raise ValueError(ONE_TARGET.format("an average over memories or regimes"))

    def predict_then_learn(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> Any:
        """Learn row after row; returns the mixture predicted for each target before its row."""
        raise NotImplementedError

    def append(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> None:
        """Learn rows in order."""
        self.predict_then_learn(X, y, weights, elapsed, offsets)

    # Rows that come together are learned in order: weights depend on predictions.
    fit = absorb = append

    # ---- reading -------------------------------------------------------------------------------

    def average_of(self, read: Callable[[Any], ArrayLike]) -> Any:
        """Return the weighted average of ``read`` of each member."""
        parts = [(weight, read(one)) for one, weight in zip(*self.ahead(), strict=True) if weight]
        weights, values = zip(*parts, strict=True)
        return np.tensordot(np.array(weights), np.stack(values), axes=1)

    def mixture_of(self, read: Callable[[Any], Any]) -> Any:
        """Return the mixture of the predictions that ``read`` returns for each member."""
        members, weights = self.ahead()
        return mix_predictions([read(one) for one in members], weights)

    @property
    def best(self) -> Any:
        """The member that predicts best."""
        members, weights = self.ahead()
        return members[int(np.argmax(weights))]

    def feature_scales(self) -> Array:
        """(m,) standard deviations of the features, as the best member counts the rows."""
        return np.asarray(self.best.feature_scales())

    def find_sums_to_one(self) -> list[NDArray[np.intp]]:
        """Sets of columns of which each row has one 1, as the best member counts the rows."""
        found: list[NDArray[np.intp]] = self.best.find_sums_to_one()
        return found

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """Return a path that reads single rows, and neither learns nor predicts."""
        return Factor(self.n_coefficients).row_path(self.intercept, names)

    def predictive(self, X: Array, offsets: Array | None = None) -> Any:
        """Distribution of new observations at the rows of ``X``."""
        return self.mixture_of(lambda one: one.predictive(X, *as_arguments(offsets)))

    def linear_predictor(self, X: Array, offsets: Array | None = None) -> Normal:
        """Distribution of eta at the rows of ``X``, with the mixture's mean and variance."""
        members, weights = self.ahead()
        moments = [member.linear_predictor(X, *as_arguments(offsets)) for member in members]
        scales = np.array([one.scale for one in moments])
        return Normal(*match_moments(np.array([one.loc for one in moments]), scales, weights))

    def predict_mean(self, X: Array) -> Array:
        """Mean of new observations at the rows of ``X``."""
        return np.asarray(self.average_of(lambda one: one.predict_mean(X)))

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        return np.asarray(self.average_of(lambda one: one.coefficients()))

    def joint(self, *names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        members, weights = self.ahead()
        return MultivariateMixture.of([one.joint(*names) for one in members], weights)

    def probability_interval(self, X: Array, level: float) -> Array:
        """(n, K, 2) ends of the central interval of the probability of each of many classes."""
        members, weights = self.ahead()
        ends = []
        for part in self.first.blocks(len(X)):
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

    def never_varied(self) -> NDArray[np.bool_]:
        """(m,) True where a coefficient's feature, in the best member, has not varied yet."""
        return np.asarray(self.best.never_varied())

    def unseen_effects(self, X: Array) -> Any:
        """Sparse (n, m) sd, signed, of the effects in rows of features that never varied.

        As the best member has them.
        """
        return self.best.unseen_effects(X)

    def without_prior(self) -> NoReturn:
        """Refuse: several members have several posteriors of the rows."""
        raise ValueError(
            "a third class is new, and this way to forget supports only two classes: use one "
            "with one memory, as Stabilized"
        )

    def add_classes(self, n_classes: int) -> None:
        """Refuse: with another class, the members' earlier predictions would differ."""
        raise ValueError(
            "y has a new class, and memories weighted by their earlier predictions can't add "
            "it: name all classes in the first call, as in "
            "partial_fit(X, y, classes=...)"
        )

    @property
    def n_coefficients(self) -> int:
        """Coefficients, intercept included."""
        return int(self.first.n_coefficients)

    @property
    def n_features(self) -> int:
        """Columns of the rows that it learns."""
        return int(self.first.n_features)

    @property
    def prior_precision(self) -> ArrayLike:
        """Prior precision of the coefficients in the member that predicts best."""
        return self.best.prior_precision

    @property
    def pearson(self) -> tuple[float, float]:
        """Pearson's dispersion in the member that predicts best."""
        return self.best.pearson

    @property
    def noise_precision(self) -> float:
        """Average of what the members have learned."""
        return float(self.average_of(lambda one: one.noise_precision))

    def noise_coefficients(self) -> Array:
        """Mean of [intercept, coefficients] of the log variance of the noise, where it has one."""
        return np.asarray(self.average_of(lambda one: one.noise_coefficients()))

    @property
    def n_effective(self) -> float:
        """Average of what is left of the rows in each member."""
        return float(self.average_of(lambda one: one.n_effective))

    @property
    def has_evidence(self) -> bool:
        """False: the evidence of all rows is the sum of their predictive densities."""
        return False


def as_arguments(offsets: Array | None) -> tuple[Array, ...]:
    """Return offsets as a tuple of last arguments, for likelihoods that have an eta."""
    return () if offsets is None else (offsets,)
