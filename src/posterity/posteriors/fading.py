"""A posterior in which what is old counts for less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor, OneStepPredictions, Rows
from posterity.factor.forgetting import SMALLEST_DISCOUNT
from posterity.factor.rows import SiteRows
from posterity.kernel import FadingMember, ForgettingPath, RowPath
from posterity.noise import Distribution
from posterity.posteriors._row_evidence import compute_evidence_gain
from posterity.posteriors.gaussian import LinearPosterior

Array = NDArray[np.float64]


class Fading(Protocol):
    """One way for a factor to learn rows and forget: the strategies of posterity.forgetting."""

    # True if the evidence of the rows can be computed from the factor.
    has_evidence: ClassVar[bool]
    # True if it only discounts old rows; and if it spares the prior.
    only_discounts: ClassVar[bool]
    keeps_prior: ClassVar[bool]
    # True if only the directions of a row fade before it.
    by_direction: ClassVar[bool]

    # True if compiled code learns single rows.
    has_fast_learn_one: ClassVar[bool]

    def learn(
        self, factor: Factor, prior: Factor, rows: Rows, elapsed: Array
    ) -> OneStepPredictions:
        """Learn rows in order in ``factor``, where elapsed[i] >= 0 passes before row i."""

    def row_path(
        self, factor: Factor, prior: Factor, intercept: bool, names: Sequence[str] | None
    ) -> RowPath:
        """A path that learns single rows so, one unit of time apart."""

    def discounts_of_sums(self, elapsed: Array) -> Array:
        """(n,) share left of sums over the rows, as those of the noise, after each time."""


@dataclass(frozen=True)
class FadingPosterior(LinearPosterior):
    """A posterior that forgets by a :class:`Fading` strategy before each row."""

    strategy: Fading
    tally: Array = field(default_factory=lambda: np.zeros(1), repr=False, compare=False)

    forgets: ClassVar[bool] = True

    @classmethod
    def wrap(cls, posterior: LinearPosterior, strategy: Fading) -> Self:
        """Begin from a posterior that has not seen any rows."""
        return cls(
            posterior.belief,
            posterior.noise,
            posterior.intercept,
            posterior.prior,
            posterior.factor,
            strategy,
        )

    def copy_with_factor(self, factor: Factor, **changes: object) -> Self:
        """An independent copy but for its factor, which is this one, and for ``changes``."""
        return self._copy_with(factor=factor, tally=self.tally.copy(), **changes)

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        super().copy_from(other)
        self.tally[...] = other.tally

    def of_target(self, target: int | Sequence[int]) -> LinearPosterior:
        """The posterior of one target alone."""
        return super().of_target(target)._copy_with(tally=self.tally.copy())

    @property
    def has_fast_learn_one(self) -> bool:  # type: ignore[override]
        """True if compiled code learns single rows; of several targets, only under a discount."""
        return self.only_discounts or (
            self.strategy.has_fast_learn_one and self.factor.n_targets == 1
        )

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The compiled path, which learns rows where the strategy has one that does."""
        if not self.has_fast_learn_one:
            return super().row_path(names)
        path = self.strategy.row_path(self.factor, self.prior, self.intercept, names)
        if not self.strategy.has_evidence:
            tallying = cast(ForgettingPath, path)
            tallying.keep_tally(self.tally, self.noise.parameters, self.n_flat)
        return path

    def learn_alongside(self, path: RowPath, names: Sequence[str] | None) -> None:
        """Let all that is known fade before each row that ``path`` learns."""
        if self.only_discounts:
            left = float(self.strategy.discounts(np.ones(1))[0])  # type: ignore[attr-defined]
            prior = self.prior.triangle if self.keeps_prior else None
            path.fade(left if prior is None else max(left, SMALLEST_DISCOUNT), prior)

    @property
    def fades_to_prior(self) -> bool:  # type: ignore[override]
        """True if a discount, which spares the prior, is all that happens before a row."""
        return self.only_discounts and self.keeps_prior

    def as_member(self) -> FadingMember:
        """The member of a compiled average."""
        return self.factor.fading(self.prior, max(self._discount, SMALLEST_DISCOUNT))

    @property
    def _discount(self) -> float:
        """The discount of one unit of time."""
        return float(self.strategy.discounts(np.ones(1))[0])  # type: ignore[attr-defined]

    @property
    def has_evidence(self) -> bool:
        """True if the evidence of all rows can be computed from what is left of the data."""
        return self.strategy.has_evidence

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        if self.strategy.has_evidence:
            self.absorb(X, y, weights, elapsed)
        else:
            self.predict_then_learn(X, y, weights, elapsed)

    def absorb(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order, and keep no account of how they were predicted."""
        rows, elapsed = self._rows_to_learn(X, y, weights, elapsed)
        # A strategy may be faster where no predictions are needed.
        learn = getattr(self.strategy, "absorb", self.strategy.learn)
        learn(self.factor, self.prior, rows, elapsed)

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Distribution:
        """Learn row after row; returns the distribution of each target before its row."""
        before = self.learn_each(X, y, weights, elapsed)
        if self.strategy.has_evidence:
            return self._predict_by(before, y)
        added = None if weights is None else self._compute_added_evidence(before, weights)
        predictive = self._predict_by(before, y)
        self.tally[0] += np.sum(predictive.logpdf(y[:, 0])) if added is None else added
        return predictive

    def _compute_added_evidence(self, before: OneStepPredictions, weights: Array) -> float:
        """Return the log evidence that rows of these weights add."""
        with np.errstate(all="ignore"):
            return sum(
                float(
                    compute_evidence_gain(
                        self.noise,
                        float(weights[i]),
                        before.error[i],
                        before.leverage[i : i + 1],
                        before.count[i : i + 1] - self.n_flat,
                        before.residual[i],
                    )[0]
                )
                for i in np.flatnonzero(weights)
            )

    @property
    def log_evidence(self) -> float:
        """Log p(y) of the data as they have faded, or of the rows as they came."""
        return super().log_evidence if self.strategy.has_evidence else float(self.tally[0])

    def pass_time(self, X: Array, elapsed: float) -> None:
        """Let time pass before an observation, of rows ``X`` that are not learned."""
        count, seen, rows = self.factor.count, self.factor.seen, X[:1]
        if self.strategy.by_direction:
            # In identified directions all fade once; they fade together if at all.
            known = self.factor.root @ X.T
            rows = np.linalg.svd(known)[2] @ X
        nothing = np.zeros(len(rows))
        self.learn_each(rows, nothing[:, None], nothing, np.full(len(rows), elapsed))
        if self.strategy.by_direction and len(rows) > 1:
            spent = self.factor.rank - self.prior.rank  # does not fade
            left = (self.factor.count - spent) / (count - spent) if count > spent else 1.0
            count = spent + left ** (1.0 / len(rows)) * (count - spent)
            self.factor.set_triangle(self.factor.triangle, count, seen)

    def discounts(self, elapsed: Array) -> Array | None:
        """Return the share of all information left after each time (n,); None if it varies."""
        if not self.only_discounts:
            return None
        return self.strategy.discounts(elapsed)  # type: ignore[attr-defined]

    def discounts_of_sums(self, elapsed: Array) -> Array:
        """Return the share left after each time (n,) of sums over the rows."""
        return self.strategy.discounts_of_sums(elapsed)

    @property
    def keeps_prior(self) -> bool:
        """True if the factor still contains the prior, as it was."""
        return self.strategy.keeps_prior

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Refuse: a row that has faded can't be taken out."""
        raise ValueError(
            f"can't unlearn rows under {self._name}: the weight of a row depends on its age; "
            "fit the remaining rows again"
        )

    def merge(self, other: Self) -> None:
        """Merge where the prior does not fade; refuse otherwise."""
        self.check_mergeable()
        super().merge(other)

    def check_mergeable(self) -> None:
        """Refuse where the prior fades, or not all that is known fades alike."""
        if not (self.only_discounts and self.keeps_prior):
            raise ValueError(
                f"can't merge models under {self._name}: their priors were discounted with "
                "their rows; use Stabilized, which keeps the prior"
            )

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior and forget alike."""
        return super().has_same_prior(other) and other.strategy == self.strategy

    @property
    def _name(self) -> str:
        return type(self.strategy).__name__

    @property
    def only_discounts(self) -> bool:
        """True if the strategy does no more than discount."""
        return self.strategy.only_discounts

    def fading_of(self, rows: SiteRows) -> tuple[Array | None, Factor | None]:
        """Return the discounts before each row, and the prior where that does not fade."""
        elapsed = rows.elapsed.copy()
        if self.factor.seen == 0.0:  # before the first row there is nothing to forget
            elapsed[: rows.first + 1] = 0.0
        prior = self.prior if self.keeps_prior else None
        return self.strategy.discounts(elapsed), prior  # type: ignore[attr-defined]

    def forget_before(self, row: SiteRows) -> Array:
        """Forget what has passed, by a row that weighs nothing."""
        self.absorb(row.X, np.zeros((1, 1)), np.zeros(1), row.elapsed)
        return np.zeros(1)

    def learn_each(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> OneStepPredictions:
        """Learn row after row, forgetting before each; returns what was known of each before it."""
        rows, elapsed = self._rows_to_learn(X, y, weights, elapsed)
        return self.strategy.learn(self.factor, self.prior, rows, elapsed)

    def _rows_to_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> tuple[Rows, Array]:
        """The rows, and the time before each in which something is forgotten."""
        rows = Rows(X, y, weights, intercept=self.intercept)
        if self.factor.seen == 0.0:
            # Before the first row there is nothing to forget.
            elapsed = np.where(np.arange(len(elapsed)) > rows.first, elapsed, 0.0)
        return rows, elapsed
