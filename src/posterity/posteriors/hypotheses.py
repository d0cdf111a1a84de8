"""What several posteriors that are weighed have in common, whatever they differ in.

A hypothesis is one member of them: a memory (:mod:`posterity.posteriors.switching`), or a row at
which all may have changed (:mod:`posterity.posteriors.runs`). Each has a posterior of its own, and
is weighed by the densities that it gave the rows before they came. A window over rows whose sites
are found together (:mod:`posterity.posteriors.refitted`) is a single one.
:class:`~posterity.posteriors.mixed.MixedPosterior` reads their mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Indices
from posterity.distributions import MultivariateMixture
from posterity.distributions.mixing import mix_predictions
from posterity.factor import Factor
from posterity.kernel import RowPath
from posterity.noise import Joint
from posterity.posteriors._reads import refuse
from posterity.posteriors.ensemble import clip_log_densities
from posterity.posteriors.gaussian import NO_CHANGES, refuse_waiting
from posterity.posteriors.new_columns import NewColumns

NO_LATE_CLASS = (
    "a third class is new, and this way to forget supports only two classes: use one with one "
    "memory, as Stabilized"
)
NO_NEW_CLASS = (
    "y has a new class, and memories weighted by their earlier predictions can't add it: name all "
    "classes in the first call, as in partial_fit(X, y, classes=...)"
)


class Hypotheses:
    """Base of what is mixed: it learns rows in all its members, and says how they are weighed.

    What learns changes it in place, and may leave it unusable where it raises: it is a copy that
    learns, and takes its place.
    """

    log_evidence: float
    # What else tells it from others that began with the same prior.
    strategy: Any = None
    # How predictions are mixed: by default as those that hardly differ.
    mix = staticmethod(mix_predictions)
    # What they forget together.
    memory: ClassVar[Any]

    @property
    def common(self) -> Any:
        """A posterior that stands for what all members have in common."""
        raise NotImplementedError

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        raise NotImplementedError

    @property
    def n_effective(self) -> float:
        """What is left of them."""
        raise NotImplementedError

    @property
    def n_held(self) -> float:
        """The same in the longest memory."""
        return self.n_effective

    def copy(self) -> Self:
        """An independent copy."""
        raise NotImplementedError

    def take_over(self, learned: Self) -> None:
        """Know what ``learned`` does, a copy of this one that nobody else has."""
        self.__dict__.update(learned.__dict__)

    def begins_as(self, other: Hypotheses) -> bool:
        """Return True if both started from the same prior and forget alike."""
        same = type(self) is type(other) and self.strategy == other.strategy
        return same and bool(self.common.has_same_prior(other.common))

    # ---- learning ------------------------------------------------------------------------------

    def learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array, *offsets: Array
    ) -> Any:
        """Learn row after row; returns the mixture predicted for each target before its row."""
        raise NotImplementedError  # each kind says how

    def learn_and_score(self, X: Array, y: Array, weights: Array | None, *others: Array) -> Any:
        """Learn the same; returns the mixture, and its log densities (n,) times the weights."""
        predictive = self.learn(X, y, weights, *others)
        densities = clip_log_densities(predictive.logpdf(y[:, 0]))
        return predictive, densities if weights is None else weights * densities

    def append(self, *rows: Any) -> None:
        """Learn rows in order: weights depend on predictions, though nobody asks for these."""
        self.learn(*rows)

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """A path for single rows, which learns them only where ``has_row_path`` is True."""
        common = self.common
        return Factor(common.n_coefficients).row_path(common.intercept, names)

    @property
    def has_row_path(self) -> bool:
        """True if there is a path that learns and predicts single rows."""
        return False

    @property
    def predicts_rows(self) -> bool:
        """True if that path predicts them as well."""
        return self.has_row_path

    @property
    def scores_rows(self) -> bool:
        """True if a row adds to the evidence how that path predicted it."""
        return False

    def add_classes(self, n_classes: int) -> None:
        """Refuse: with another class, the members' earlier predictions would differ."""
        raise ValueError(NO_NEW_CLASS)

    def reorder(self, order: Indices) -> None:
        """Refuse the same."""
        raise ValueError(NO_NEW_CLASS)

    def take_rows(self, other: Any, target: Callable[[Array], Array]) -> None:
        """Refuse to know the rows of ``other``: several members have several posteriors of them."""
        raise ValueError(NO_LATE_CLASS)

    def widen_from(self, other: Any, columns: NewColumns, widen: Callable[..., None]) -> None:
        """Know what ``other`` does, of other columns."""
        raise NotImplementedError

    # Let time pass after the last row: only of some kinds.
    wait: Any = refuse_waiting

    # ---- reading -------------------------------------------------------------------------------

    def ahead(self) -> tuple[Sequence[Any], Array]:
        """The members, and their weights (k,) for the next row."""
        raise NotImplementedError

    def average(self, read: Callable[[Any], ArrayLike]) -> Any:
        """Weighted average of ``read`` of each member that counts."""
        pairs = [(weight, read(one)) for one, weight in zip(*self.ahead(), strict=True) if weight]
        weights, values = zip(*pairs, strict=True)
        return np.tensordot(np.array(weights), np.stack(values), axes=1)

    def predict(self, X: Array, *offsets: Array) -> tuple[list[Any], Array]:
        """Predictions of the rows of ``X`` that are mixed, and weights (k,) or (n, k)."""
        members, weights = self.ahead()
        return [one.predictive(X, *offsets) for one in members], weights

    def predict_mean(self, X: Array) -> Array:
        """Mean of new observations at the rows of ``X``."""
        return np.asarray(self.average(lambda one: one.predict_mean(X)))

    def predict_mean_ahead(self, X: Array) -> Array:
        """The same where a row is predicted in a stream, before it is learned."""
        return self.predict_mean(X)

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        return np.asarray(self.average(lambda one: one.coefficients()))

    def joint(self, *names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        members, weights = self.ahead()
        return MultivariateMixture.of([one.joint(*names) for one in members], weights)

    @property
    def noise_precision(self) -> float:
        """Average of what the members have learned."""
        return float(self.average(lambda one: one.noise_precision))

    # (n,) probability of a change right before each row of the last call, and the rows, from the
    # start of the stream, right before which all changed: only of some kinds.
    change_probability = refuse(NO_CHANGES.format("change_probability_"))
    changed_rows = refuse(NO_CHANGES.format("changes_"))
