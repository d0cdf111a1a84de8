"""A posterior that starts again where the regression has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from posterity.distributions import Mixture, MultivariateMixture
from posterity.factor import Factor, OneStepPredictions
from posterity.factor.bank import FactorBank
from posterity.factor.usable import check_rows
from posterity.kernel import RowPath
from posterity.posteriors._runs import RunPrior, Runs
from posterity.posteriors._runs_path import RunsPath
from posterity.posteriors.gaussian import ONE_TARGET, LinearPosterior

Array = NDArray[np.float64]

UNLEARN_REFUSED = (
    "can't unlearn rows under Changepoint: where changes were found depends on every row; fit the "
    "remaining rows again"
)
MERGE_REFUSED = (
    "can't merge models under Changepoint: changes lie between the rows of one stream; fit all "
    "rows in the order they came"
)


class ChangeStrategy(Protocol):
    """Rate of changes and number of runs to keep: posterity.forgetting.Changepoint."""

    @property
    def max_runs(self) -> int:
        """Most runs to keep."""

    @property
    def smallest_probability(self) -> float:
        """Runs less probable than this are dropped."""

    def hazards(self, elapsed: Array) -> Array:
        """Probability of a change in each stretch of time."""


class RunProbabilities(Protocol):
    """Runs that are considered: each one's first row and probability; the next row's number."""

    first: NDArray[np.int64]
    probability: Array
    row: int

    @property
    def size(self) -> int:
        """Number of runs."""


class RunHistory:
    """Run probabilities before each row of a call; arrays are (n, most runs).

    ``predictions`` additionally holds error, leverage, freed and residual, if asked for.
    """

    def __init__(self, n_rows: int, most: int, with_predictions: bool) -> None:
        self.hazard = np.zeros(n_rows)
        self.size = np.zeros(n_rows, dtype=np.intp)
        self.first = np.zeros((n_rows, most), dtype=np.int64)
        self.probability = np.zeros((n_rows, most))
        shape = (n_rows if with_predictions else 0, most)
        # Padding has probability 0, so its predictions only have to be finite.
        self.error, self.leverage = np.zeros(shape), np.zeros(shape)
        self.residual_df, self.residual = np.ones(shape), np.ones(shape)

    def record_runs(self, i: int, runs: RunProbabilities, hazard: float) -> None:
        """Note what is believed before row i."""
        k = runs.size
        self.hazard[i], self.size[i] = hazard, k
        self.first[i, :k] = runs.first[:k]
        self.probability[i, :k] = runs.probability[:k]

    def record_predictions(self, i: int, before: OneStepPredictions) -> None:
        """Store the prediction of each run, the new one included, for row i."""
        k = len(before.leverage)
        self.error[i, :k] = before.error
        self.leverage[i, :k] = before.leverage
        self.residual_df[i, :k] = before.count
        self.residual[i, :k] = before.residual

    def weights(self) -> Array:
        """(n, most) probabilities of the runs at each row, the new one included."""
        weights = self.probability * (1.0 - self.hazard)[:, None]
        weights[np.arange(len(weights)), self.size] = self.hazard
        return weights / weights.sum(axis=1, keepdims=True)

    def change_probability(self, runs: RunProbabilities) -> Array:
        """(n,) probability of a change right before each row, given all rows up to the last.

        Given a change before row t, what came before it is independent of what came after. So

            g(s) = p(run s | all rows) + sum over t > s of g(t) p(run s | rows before t)

        from the last row back (Fearnhead and Liu 2007, section 3, summed instead of sampled).
        """
        n, k = len(self.hazard), runs.size
        start = runs.row - n
        # What lies before the call, or is the stream's first row and no change, collects at n.
        earliest = max(start, 1)
        begun = np.where(self.first >= earliest, self.first - start, n)
        changed = np.zeros(n + 1)
        first = runs.first[:k]
        changed[np.where(first >= earliest, first - start, n)] = runs.probability[:k]
        for t in range(n - 1, 0, -1):
            k = self.size[t]
            changed[begun[t, :k]] += changed[t] * self.probability[t, :k]
        return np.minimum(changed[:n], 1.0)


@dataclass
class Learned:
    """State: the runs, and the change probabilities of the last call's rows."""

    runs: Runs
    change_probability: Array


@dataclass(frozen=True)
class ChangepointPosterior(LinearPosterior):
    """Bayesian online changepoint detection (Adams and MacKay 2007; Fearnhead and Liu 2007).

    What it says is of the next row, one unit of time from now: there the last run goes on, or a
    new one has begun, which has learned nothing yet.
    """

    strategy: ChangeStrategy
    learned: Learned = field(repr=False)

    forgets: ClassVar[bool] = True
    has_fast_learn_one: ClassVar[bool] = True
    has_fast_predict_one: ClassVar[bool] = True
    is_one_factor: ClassVar[bool] = False

    @classmethod
    def wrap(cls, posterior: LinearPosterior, strategy: ChangeStrategy) -> Self:
        """Begin from a posterior that has not seen any rows."""
        runs = Runs.before_data(posterior.prior, strategy.max_runs + 1)
        return cls(
            posterior.belief,
            posterior.noise,
            posterior.intercept,
            posterior.prior,
            posterior.factor,
            strategy,
            Learned(runs, np.zeros(0)),
        )

    def copy(self) -> Self:
        """An independent copy."""
        learned = Learned(self.runs.copy(), self.change_probability)
        return replace(self, factor=self.factor.copy(), learned=learned)

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The path that learns and predicts single rows."""
        strategy = self.strategy
        path = RunsPath(
            Factor(self.n_features).row_path(False, names),
            self.learned,
            self._beginning,
            (strategy.smallest_probability, strategy.max_runs),
            float(strategy.hazards(np.ones(1))[0]),
            RunHistory(1, strategy.max_runs + 1, False),
        )
        return cast(RowPath, path)

    def for_targets(self, count: int) -> LinearPosterior:
        """Refuse: changes are found by how one target is predicted."""
        raise ValueError(ONE_TARGET.format("Changepoint"))

    # ---- learning ------------------------------------------------------------------------------

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        self._learn(X, y, weights, elapsed, with_predictions=False)

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Mixture:
        """Learn row after row; returns the mixture predicted for each target before its row.

        Its components are the runs, and a new one for the case of a change right before the row.
        """
        history = self._learn(X, y, weights, elapsed, with_predictions=True)
        most = int(history.size.max(initial=0)) + 1
        components = []
        for run in range(most):
            mean, leverage = y[:, 0] - history.error[:, run], history.leverage[:, run].copy()
            residual_df, residual = (
                history.residual_df[:, run].copy(),
                history.residual[:, run].copy(),
            )
            components.append(self.noise.predictive(mean, leverage, residual_df, residual))
        return Mixture(components, history.weights()[:, :most])

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Refuse: which runs would have been dropped without a row is not known."""
        raise ValueError(UNLEARN_REFUSED)

    def merge(self, other: Self) -> None:
        """Refuse: changes lie between rows of one stream."""
        raise ValueError(MERGE_REFUSED)

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior and forget alike."""
        return super().has_same_prior(other) and other.strategy == self.strategy

    def _learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array, *, with_predictions: bool
    ) -> RunHistory:
        check_rows(X, y, weights)
        runs, beginning = self.runs.copy(), self._beginning
        history = RunHistory(len(X), self.strategy.max_runs + 1, with_predictions)
        hazards = self.strategy.hazards(elapsed)
        rules = self.strategy.smallest_probability, self.strategy.max_runs
        rows, i = (X, y, weights, hazards), 0
        with np.errstate(all="ignore"):
            while i < len(X):
                i = runs.learn_rows(i, history, beginning, rules, rows)
                if i < len(X):
                    self._learn_row(i, runs, history, rows)
                    i += 1
        runs.bank.check_usable()
        self.learned.change_probability = history.change_probability(runs)
        self.learned.runs = runs
        return history

    def _learn_row(self, i: int, runs: Runs, history: RunHistory, rows: Any) -> None:
        """The same of row i, plainly."""
        X, y, weights, hazards = rows
        # Before the first row there is nothing to change.
        asked = hazards[i] > 0.0 and runs.seen > 0.0
        start = runs.start(self._beginning) if asked else None
        hazard = 0.0 if start is None else float(hazards[i])
        history.record_runs(i, runs, hazard)
        if start is not None:
            runs.begin(start, hazard)
        row = slice(i, i + 1)
        weight = None if weights is None else weights[row]
        before = runs.learn(X[row], y[row], weight, self.noise, intercept=self.intercept)
        if len(history.error):
            history.record_predictions(i, before)
        runs.drop(self.strategy.smallest_probability, self.strategy.max_runs)

    # ---- reading -------------------------------------------------------------------------------

    @property
    def runs(self) -> Runs:
        """The runs that are still considered."""
        return self.learned.runs

    @property
    def run_starts(self) -> NDArray[np.int64]:
        """(k,) first row of each run, counted from the start of the stream."""
        return self.runs.first[: self.runs.size].copy()

    @property
    def run_probabilities(self) -> Array:
        """(k,) probability that the last row belongs to each run."""
        return self.runs.probability[: self.runs.size].copy()

    @property
    def change_probability(self) -> Array:
        """(n,) for the rows of the last call: probability of a change right before each.

        Given all rows up to the end of that call: learned one at a time, each row's is what was
        known when it came.
        """
        return self.learned.change_probability.copy()

    @property
    def changes(self) -> NDArray[np.int64]:
        """Rows right before which the regression changed, counted from the start of the stream.

        The last is the median of the row at which the present run began, given all rows so far: the
        change lies there or later with probability 1/2 at least, and there or earlier as well. Each
        of those before it is the same of the run before it. Rows to come may move or revoke them.
        """
        last = self.runs.last_change()
        return np.array([] if last is None else last.rows(), dtype=np.int64)

    def predictive(self, X: Array) -> Mixture:
        """Distribution of new observations at the rows of ``X``, each as the next row."""
        weights, bank, residual_df = self._ahead()
        components = []
        for factor, count, residual in zip(
            bank.factors(), residual_df, bank.residual(), strict=True
        ):
            mean, leverage = factor.predict(X, intercept=self.intercept)
            components.append(self.noise.predictive(mean[:, 0], leverage, count, residual))
        return Mixture(components, weights)

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        weights, bank, _ = self._ahead()
        return weights @ bank.coefficients()

    def joint(self, names: tuple[str, ...]) -> MultivariateMixture:
        """Joint distribution of [intercept, coefficients]."""
        weights, bank, residual_df = self._ahead()
        components = []
        for factor, mean, count, residual in zip(
            bank.factors(), bank.coefficients(), residual_df, bank.residual(), strict=True
        ):
            count, residual = float(count), float(residual)
            components.append(self.noise.posterior(mean, factor.root, count, residual, names))
        return MultivariateMixture(components, weights)

    @property
    def noise_precision(self) -> float:
        """The noise precision: as given, or the posterior mean."""
        weights, bank, residual_df = self._ahead()
        precisions = [
            self.noise.precision(float(count), float(residual))
            for count, residual in zip(residual_df, bank.residual(), strict=True)
        ]
        return float(weights @ np.array(precisions))

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of the rows as they came (point masses left out)."""
        return self.runs.log_evidence

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.runs.seen

    @property
    def n_effective(self) -> float:
        """Expected weight of the rows of the present run."""
        return float(self.run_probabilities @ self.runs.learned[: self.runs.size])

    @property
    def _beginning(self) -> RunPrior:
        return RunPrior(self.prior, self.noise, self.intercept)

    def _ahead(self) -> tuple[Array, FactorBank, Array]:
        """Weights, triangles and freed observations of the runs at the next row."""
        runs = self.runs
        k, start = runs.size, None
        bank = runs.bank.copy()
        bank.keep(np.arange(k + 1) > 0)
        residual_df, weights = runs.residual_df[:k], runs.probability[:k]
        hazard = float(self.strategy.hazards(np.ones(1))[0])
        if runs.seen > 0.0:
            with np.errstate(all="ignore"):
                # Of a copy: a read must not change what the next row starts from.
                start = replace(runs).start(self._beginning)
        if start is None:
            return weights.copy(), bank, residual_df.copy()
        bank.push(start.triangle)
        return (
            np.append((1.0 - hazard) * weights, hazard),
            bank,
            np.append(residual_df, start.residual_df),
        )
