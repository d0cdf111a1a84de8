"""Runs of a Gaussian model: triangles in one bank, learned by compiled code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from posterity import kernel
from posterity.aliases import Array
from posterity.distributions import Mixture, MultivariateMixture
from posterity.distributions.mixing import tabulate
from posterity.factor import Factor
from posterity.factor.bank import FactorBank, combine_prior_with_data
from posterity.factor.usable import check_rows
from posterity.kernel import RowPath, RunsKernel
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.new_columns import NewColumns
from posterity.posteriors.runs import (
    EXTRA_DROPPED_SHARE,
    JUDGING_ROWS,
    NEGLIGIBLE_SHARE,
    OUTLIER_PROBABILITY,
    OUTLIER_SCALE,
    Change,
    ChangeStrategy,
    RunHistory,
    Runs,
)

# Rows that the noise's prior weighs in a new run: with fewer, mixtures would have no variance.
NOISE_ROWS = 3.0
# The start of a new run is computed again once the rows or the noise have changed by this much.
RESTART_CHANGE = 0.02
# Rows between two looks at which runs are negligible.
ROWS_BETWEEN_LOOKS = 8


@dataclass(frozen=True)
class Start:
    """The start of a new run: its triangle, and the observations its noise counts for.

    ``count`` and ``variance`` are the weight of the rows and the noise's variance it was made for;
    a count of 0 stands for any.
    """

    triangle: Array
    residual_df: float
    count: float = 0.0
    variance: float = 0.0

    def serves(self, count: float, variance: float) -> bool:
        """Return True if count and variance are still about the same."""
        return self.count == 0.0 or (
            count <= (1.0 + RESTART_CHANGE) * self.count
            and abs(variance - self.variance) <= RESTART_CHANGE * self.variance
        )


@dataclass(kw_only=True)
class BankedRuns(Runs):
    """Runs (c,) in a ``bank``: that of all rows, without a prior, then one for each.

    ``residual_df`` (c,) counts the observations that each one's noise has.

    A new run must not win because an improper prior's density is 1 everywhere. So where the prior
    says nothing (flat directions, noise of unknown size) it starts with a little of what all rows
    so far say, and until that suffices no change is considered:

    * the rows so far, all together as one row of weight v/V: v is the noise's variance now, V that
      of the targets so far (around their mean if there is an intercept, otherwise around 0). The
      new coefficients are centred on those of all rows, as uncertain as to predict an average row
      no better than knowing nothing but mean and spread of the targets does: a unit information
      prior (Kass and Wasserman 1995) of the scale of the targets instead of the noise's;
    * the noise's variance now, with the weight of ``NOISE_ROWS`` rows.
    """

    bank: FactorBank
    residual_df: Array
    latest_start: Start | None = None

    owned: ClassVar[tuple[str, ...]] = (*Runs.owned, "bank", "residual_df")

    @classmethod
    def before_data(cls, fresh: Any, strategy: ChangeStrategy) -> Self:
        """Return one run, which began with the stream at the prior."""
        prior, p, capacity = fresh.prior, fresh.n_coefficients, strategy.max_runs + 1
        bank = FactorBank(p, capacity + 1)
        bank.push(Factor(p).triangle)
        bank.push(prior.triangle)
        probability, learned, residual_df = np.zeros((3, capacity))
        probability[0] = 1.0
        # Each flat direction takes an observation to be determined.
        residual_df[0] = prior.rank - p
        suffices = prior.rank == p and fresh.noise.improper is None
        return cls(
            fresh=fresh,
            strategy=strategy,
            first=np.zeros(capacity, np.int64),
            probability=probability,
            learned=learned,
            bank=bank,
            residual_df=residual_df,
            latest_start=Start(prior.triangle, 0.0) if suffices else None,
        )

    @property
    def size(self) -> int:
        """Number of runs."""
        return self.bank.size - 1

    # ---- the start of a run --------------------------------------------------------------------

    def start(self) -> Start | None:
        """The start of a run that begins now; None while it would be improper.

        To be called where NumPy's warnings are silent.
        """
        if self.latest_start is not None and self.latest_start.count == 0.0:
            return self.latest_start
        variance = self._noise_variance()
        if self.latest_start is None or not self.latest_start.serves(self.seen, variance):
            self.latest_start = self._make_start(variance)
        return self.latest_start

    def find_start(self) -> Start | None:
        """The same for those who only read: it does not become the latest."""
        with np.errstate(all="ignore"):
            return replace(self).start()

    def _noise_variance(self) -> float:
        """Known, or 1 / the mean of the precision; infinite or 0 before there is one."""
        k = self.size
        known, shape, rate = self.fresh.noise.parameters
        if known:
            return 1.0 / known
        count = self.residual_df[:k] + 2.0 * shape
        if k == 1 and count[0] <= 0.0:
            return math.inf
        precision = float(count / (self.bank.residual()[1:] + 2.0 * rate) @ self.probability[:k])
        return 1.0 / precision if precision > 0.0 else math.inf

    def _make_start(self, variance: float) -> Start | None:
        """Start of a run after the rows so far, with noise of this variance."""
        fresh, data, p = self.fresh, self.bank.triangles[0], self.fresh.n_coefficients
        # The intercept's rotation took the mean out of the rows below the first.
        targets = data[int(fresh.intercept) : p + 1, p]
        spread = float(targets @ targets) / self.seen if self.seen > 0.0 else 0.0
        if not (0.0 < variance < math.inf and spread > 0.0):
            return None
        share = min(variance / spread, 1.0) / self.seen
        triangle = combine_prior_with_data(fresh.prior, data, share)
        if not triangle.diagonal()[:p].all():
            return None
        # A run's starting point fits itself by construction: only the noise is informative.
        rows = 0.0 if fresh.noise.improper is None else NOISE_ROWS
        triangle[p, p] = math.sqrt(rows * variance)
        return Start(triangle, rows, self.seen, variance)

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, *rows: Any) -> Any:
        """Learn rows; returns the mixture predicted for each target before its row."""
        return self.learn_and_score(*rows)[0]

    def learn_and_score(self, X: Array, y: Array, weights: Array | None, *others: Array) -> Any:
        """Learn rows; returns the mixture predicted for each target, and its log densities (n,).

        Its components are the runs, and a new one for the case of a change right before the row.
        """
        history = self._learn(X, y, weights, *others, with_predictions=True)
        most = int(history.size.max(initial=0)) + 1
        noise, components = self.fresh.noise, []
        for run in range(most):
            parts = (history.leverage, history.residual_df, history.residual)
            mean = y[:, 0] - history.error[:, run]
            components.append(noise.predictive(mean, *(part[:, run].copy() for part in parts)))
        return Mixture(components, history.weights()[:, :most]), history.log_density

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        self._learn(X, y, weights, elapsed, with_predictions=False)

    def _learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array, *, with_predictions: bool
    ) -> RunHistory:
        check_rows(X, y, weights)
        capacity, hazards = len(self.first), self.strategy.hazards(elapsed)
        history = RunHistory(len(X), capacity, with_predictions=with_predictions)
        path = self.in_kernel(history, (X, y, weights, hazards)) if len(X) else None
        i = 0
        with np.errstate(all="ignore"):
            while path is not None and i < len(X):
                after = path.learn(
                    i, self.start() if hazards[i] > 0.0 and self.seen > 0.0 else None
                )
                if after == i:
                    self._learn_without_density(i, history, X, y, weights)
                i = max(after, i + 1)
        if path is not None:
            self.take_changes(path)
        self.bank.check_usable()
        self.found = history.find_changes(self)
        return history

    def _learn_without_density(
        self, i: int, history: RunHistory, X: Array, y: Array, weights: Array | None
    ) -> None:
        """Learn a row to which no run gives a density: a point mass, which it hits or misses.

        It changes no probability.
        """
        row, k = slice(i, i + 1), self.size
        some = None if weights is None else weights[row]
        weight = 1.0 if some is None else float(some[0])
        history.record(i, self, 0.0)
        before = self.bank.learn(X[row], y[row], some, intercept=self.fresh.intercept)
        if len(history.error):
            history.error[i, :k], history.leverage[i, :k] = before[0][1:, 0], before[1][1:]
            history.residual_df[i, :k] = self.residual_df[:k]
            history.residual[i, :k] = before[2][1:, 0]
        self.residual_df[:k] += weight
        self.learned[:k] += weight
        self.seen += weight
        self.row += 1

    def in_kernel(self, history: RunHistory, rows: Any) -> RunsKernel:
        """The compiled learner of ``rows``: X, y, weights and hazards; ``history`` records each."""
        X, y, weights, hazards = rows
        rules = (
            self.strategy.smallest_probability,
            NEGLIGIBLE_SHARE,
            EXTRA_DROPPED_SHARE,
            RESTART_CHANGE,
            self.strategy.max_runs,
            ROWS_BETWEEN_LOOKS,
            JUDGING_ROWS,
            OUTLIER_SCALE,
            math.log(OUTLIER_PROBABILITY),
        )
        ways = self.fresh.intercept, self.fresh.noise.parameters, rules
        return RunsKernel(self, history, self.bank.room, X, y, weights, hazards, *ways)

    def take_changes(self, path: RunsKernel) -> None:
        """Know the changes that the runs began with which ``path`` has learned."""
        numbers, rows, earlier = path.changes()
        made = self.changes.copy()
        for row, before in zip(rows.tolist(), earlier.tolist(), strict=True):
            made.append(Change(row, made[before]))
        self.changes = [made[number] for number in numbers]

    @property
    def has_row_path(self) -> bool:
        """True: compiled code learns and predicts single rows."""
        return True

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The path that learns and predicts single rows."""
        return cast(RowPath, RunsPath(Factor(self.fresh.n_features).row_path(False, names), self))

    def widen_from(self, other: Self, columns: NewColumns, widen: Any) -> None:
        """Know what ``other`` does, of other columns: in each run those that are new were 0.

        Nothing begins anew, and no run is told from another, by a row of a direction that the prior
        leaves open.
        """
        known, flat = other.copy(), self.fresh.n_flat - other.fresh.n_flat
        start, p = self.latest_start, self.bank.n_coefficients
        both = self.fresh, other.fresh
        self.__dict__.update(known.__dict__, fresh=self.fresh, latest_start=start)
        self.residual_df[: self.size] -= flat
        self.bank = FactorBank(p, len(known.bank.room))
        for run, factor in enumerate(known.bank.factors()):
            mine, its = (one.prior if run else Factor(one.n_coefficients) for one in both)
            self.bank.push(columns.place(mine, factor, its))

    # ---- reading -------------------------------------------------------------------------------

    def _ahead(self) -> tuple[FactorBank, Array, Array]:
        """The runs and the one to come, their observations, and their weights at the next row."""
        k, start, bank = self.size, None, self.bank.copy()
        bank.keep(np.arange(k + 1) > 0)
        if self.seen > 0.0:
            start = self.find_start()
        if start is None:
            return bank, self.residual_df[:k], self.probability[:k]
        bank.push(start.triangle)
        weights = np.append((1.0 - self.next_hazard) * self.probability[:k], self.next_hazard)
        return bank, np.append(self.residual_df[:k], start.residual_df), weights

    def ahead(self) -> tuple[Sequence[LinearPosterior], Array]:
        """The runs and the one to come, and their weights at the next row."""
        bank, residual_df, weights = self._ahead()
        members = []
        for factor, count in zip(bank.factors(), residual_df.tolist(), strict=True):
            flat = max(factor.rank - self.fresh.prior.rank, 0)
            factor.set_triangle(factor.triangle, count + flat, 0.0)
            members.append(self.fresh.copy_with_factor(factor))
        return members, weights

    def joint(self, *names: tuple[str, ...]) -> Any:
        """Joint distribution of [intercept, coefficients]: all runs are solved together."""
        (bank, df, weights), p = self._ahead(), self.bank.n_coefficients
        roots, right = bank.triangles[:, :p, :p], bank.triangles[:, :, p : p + 1]
        if not np.diagonal(roots, axis1=1, axis2=2).all():
            return super().joint(*names)
        means = np.linalg.solve(roots, right[:, :p])[:, :, 0]
        parts = zip(means, roots, df, right[:, p, 0] ** 2, strict=True)
        each = [self.fresh.noise.posterior(*part, *names) for part in parts]
        return MultivariateMixture(each, weights)


class RunsPath(kernel.RunsPath):
    """Learns and predicts single rows in its ``runs``; ``reader`` reads rows of features."""

    def __init__(self, reader: RowPath, runs: BankedRuns) -> None:
        def open_kernel(row: Any) -> tuple[RunsKernel, RunHistory]:
            history = RunHistory(1, len(runs.first), with_predictions=True)
            return runs.in_kernel(history, row), history

        super().__init__(reader, runs, runs.fresh.n_features, open_kernel)

    def told(self) -> Array:
        """Weights, degrees of freedom, means and scales (4, k) that predicted the last row."""
        history, (y,) = self.history, self.row[1][0]
        size = int(history.size[0])
        weights = (1.0 - history.hazard[0]) * history.probability[0, : size + 1]
        weights[size] = history.hazard[0]
        parts = (history.leverage, history.residual_df, history.residual)
        of_runs = (part[0, : size + 1].copy() for part in parts)
        predictions = self.runs.fresh.noise.predictive(y - history.error[0, : size + 1], *of_runs)
        return tabulate(predictions, weights / weights.sum())
