"""A posterior of counts whose dispersion is learned beside their rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions import NegativeBinomialLogNormal, Normal
from posterity.factor import Rows
from posterity.kernel import RowPath
from posterity.noise import Joint
from posterity.posteriors._dispersion import (
    Dispersion,
    interpolate_log_likelihood,
    mean_and_evidence,
)
from posterity.posteriors._site_mode import choose_stride
from posterity.posteriors.gaussian import LinearPosterior

Array = NDArray[np.float64]

MOST_ROUNDS = 20
TOLERANCE = 1e-4
# Rows a coefficient below which rows are few.
ROWS_A_COEFFICIENT = 4


@dataclass(frozen=True)
class DispersedPosterior(LinearPosterior):
    """Posterior of coefficients and of the dispersion, as if these were independent.

    Of negative binomial counts they are, asymptotically: their information is diagonal. ``counts``
    learns the coefficients under the dispersion that is in force, whose own posterior is kept in
    ``spread``: rows that come together are learned until both agree; of rows that come one after
    another those of a stretch have the dispersion that all before it tell, which keeps every
    prediction honest. Each row counts with its predictive probability under every dispersion.
    """

    counts: Any
    spread: Dispersion

    rows_leave_no_trace: ClassVar[bool] = False

    @classmethod
    def wrap(cls, counts: Any) -> Self:
        """Begin from a posterior that has not seen any rows."""
        spread = Dispersion()
        spread.set_to_posterior_mean()
        belief = (counts.belief, counts.noise, counts.intercept, counts.prior, counts.factor)
        return cls(*belief, counts, spread)

    def copy(self) -> Self:
        """An independent copy."""
        counts = self.counts.copy()
        return self._copy_with(factor=counts.factor, counts=counts, spread=self.spread.copy())

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.counts.copy_from(other.counts)
        self.spread.copy_from(other.spread)

    def with_averages(self) -> Self:
        """The same, to average over the posterior of rows that come together."""
        return replace(self, counts=self.counts.with_averages())

    @property
    def dispersion(self) -> float:
        """The dispersion in use."""
        return self.spread.value

    @property
    def now(self) -> Any:
        """The posterior of the coefficients under it; in memory that both share."""
        return self.counts.with_likelihood_parameters(dispersion=self.dispersion)

    # ---- learning ------------------------------------------------------------------------------

    def fit(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> None:
        """Learn the first rows together; a posterior that forgets learns them in order."""
        self._learn("fit", Rows(X, y, weights, elapsed, offsets))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` for targets (n, 1) that are no counts."""
        self.counts.check_targets(y)

    def append(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> None:
        """Learn rows together, what was known before being their prior."""
        self._learn("append", Rows(X, y, weights, elapsed, offsets))

    def learn_together(self, *rows: Any) -> None:
        """Learn all rows there are, as one batch.

        In order where they are few: matched together prior and dispersion might run away.
        """
        if len(rows[0]) < ROWS_A_COEFFICIENT * self.n_coefficients:
            self.predict_then_learn(*rows)
        else:
            self.append(*rows)

    def predict_then_learn(  # type: ignore[override]
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> NegativeBinomialLogNormal:
        """Learn row after row; returns the distribution of each count before its row."""
        trial, first = self.copy(), 0
        predictions: list[Any] = []
        while first < len(X) or not predictions:
            part = slice(first, first + trial._stretch(weights, first, len(X)))
            some = None if weights is None else weights[part]
            off = None if offsets is None else offsets[part]
            one = trial.now.predict_then_learn(X[part], y[part], some, elapsed[part], off)
            predictions.append(one)
            trial.spread.learn(y[part, 0], some, one.log_mean, one.log_variance, after=False)
            if trial.spread.rows >= trial.spread.due:
                trial.spread.set_to_posterior_mean()
            first = part.stop
        self.copy_from(trial)
        return NegativeBinomialLogNormal(
            *(
                np.concatenate([getattr(one, name) for one in predictions])
                for name in ("log_mean", "log_variance", "dispersion")
            )
        )

    def remove(
        self, X: Array, y: Array, weights: Array | None, offsets: Array | None = None
    ) -> None:
        """Unlearn rows, from the coefficients and from the dispersion."""
        if self.counts.forgets:
            self.counts.remove(X, y, weights)  # refuses, and says why
        trial = self.copy()
        eta = trial.counts.linear_predictor(X, offsets)
        trial.now.remove(X, y, weights, offsets)
        trial.spread.unlearn(y[:, 0], weights, eta.loc, np.square(eta.scale))
        trial.spread.set_to_posterior_mean()
        self.copy_from(trial)

    def merge(self, other: Self) -> None:
        """Learn what ``other`` learned; dispersions from both."""
        mine, its = self.spread.copy(), other.spread
        mine.log_likelihood += its.log_likelihood
        mine.rows += its.rows
        mine.evidence_correction += its.evidence_correction
        mine.set_to_posterior_mean()
        self.counts.merge(other.counts)
        self.spread.copy_from(mine)

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior and learn in the same way."""
        return type(self) is type(other) and self.counts.has_same_prior(other.counts)

    # ---- reading -------------------------------------------------------------------------------

    has_fast_learn_one = False
    has_fast_predict_one = False
    is_one_factor = False

    @property
    def forgets(self) -> bool:
        """True if rows count for less as they age."""
        return bool(self.counts.forgets)

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """A path that only reads."""
        return self.counts.row_path(names)

    def linear_predictor(self, X: Array, offsets: Array | None = None) -> Normal:
        """Distribution of the log rate at the rows of ``X``."""
        return self.counts.linear_predictor(X, offsets)

    def predictive(self, X: Array, offsets: Array | None = None) -> Any:
        """Distribution of new counts at the rows of ``X``."""
        return self.now.predictive(X, offsets)

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        return self.counts.coefficients()

    def never_varied(self) -> NDArray[np.bool_]:
        """(m,) True where a coefficient's feature has not varied yet."""
        return self.counts.never_varied()

    def unseen_effects(self, X: Array) -> Any:
        """Sparse (n, m) sd, signed, of the effects in rows of features that never varied."""
        return self.counts.unseen_effects(X)

    def joint(self, names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        return self.counts.joint(names)

    @property
    def prior_precision(self) -> ArrayLike:
        """Prior precision of the coefficients."""
        return self.counts.prior_precision

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.counts.n_observations

    @property
    def n_effective(self) -> float:
        """The weight of the rows that is left after forgetting."""
        return self.counts.n_effective

    @property
    def has_evidence(self) -> bool:
        """True if the evidence of all rows can be computed from the state."""
        return self.counts.has_evidence

    @property
    def log_evidence(self) -> float:
        """Log p(y), the dispersion of rows that came together integrated over."""
        return self.counts.log_evidence + self.spread.evidence_correction

    # ---- inner ---------------------------------------------------------------------------------

    def _learn(self, way: str, rows: Rows) -> None:
        if self.counts.forgets or len(rows) == 1:
            self.predict_then_learn(rows.X, rows.y, rows.weights, rows.elapsed, rows.offsets)
            return
        start = self
        share = choose_stride(len(rows), self.counts.n_coefficients)
        if share > 1:
            # Some of the rows, with larger weights, find the dispersion approximately.
            start = self._together(way, rows.thin(share), self.dispersion)
        self.copy_from(self._together(way, rows, start.dispersion))

    def _together(self, way: str, rows: Rows, value: float) -> Self:
        """A copy that has learned rows together, coefficients and dispersion in turns."""
        before = mean_and_evidence(self.spread.log_likelihood)[1]
        for _ in range(MOST_ROUNDS):
            trial = self.copy()
            trial.spread.value = value
            learn = trial.now.fit if way == "fit" else trial.now.append
            learn(rows.X, rows.y, rows.weights, rows.elapsed, rows.offsets)
            eta = trial.counts.linear_predictor(rows.X, rows.offsets)
            variance = np.square(eta.scale)
            trial.spread.learn(rows.y[:, 0], rows.weights, eta.loc, variance, after=True)
            last = value
            trial.spread.set_to_posterior_mean()
            value = trial.spread.value
            if abs(value - last) <= TOLERANCE * last:
                break
        learned, spread = self.spread.log_likelihood, trial.spread
        log_likelihood = spread.log_likelihood
        at_last = interpolate_log_likelihood
        gained = at_last(log_likelihood, last) - at_last(learned, last)
        spread.evidence_correction += mean_and_evidence(log_likelihood)[1] - before - gained
        return trial

    def _stretch(self, weights: Array | None, first: int, n: int) -> int:
        """Rows left, zero weights included, until the dispersion is updated."""
        left = max(int(self.spread.due - self.spread.rows), 1)
        if weights is None:
            return left
        counted = np.cumsum(weights[first:] > 0.0)
        return min(int(np.searchsorted(counted, left)) + 1, n - first) if n > first else 1
