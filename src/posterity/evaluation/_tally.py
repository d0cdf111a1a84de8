"""Everything that is kept of a stream while it is scored, in constant memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array
from posterity.distributions.pit import N_BINS, count_bins
from posterity.evaluation import _scores as column
from posterity.evaluation._batches import refuse_nothing
from posterity.evaluation._ledger import StretchLedger
from posterity.evaluation._scores import Column, n_columns
from posterity.evaluation._totals import Totals
from posterity.evaluation.baselines import BaselineLedger
from posterity.evaluation.residuals import ResidualLedger
from posterity.evaluation.result import ValidationResult, WorstRow, summarize
from posterity.evaluation.slices import Sliced, SliceLedger

N_WORST = 5


@dataclass(frozen=True)
class ScoredBatch:
    """One batch of predictions with their scores.

    Attributes
    ----------
    X, y : the rows
    columns : list of (n,) arrays, as `_scores` names them
    u : (n,) array or None
        F(y), where the distribution can say it.
    error : (n,) array
        y less the predicted mean.
    offsets : (n,) array or None
        Logs of the exposures of counts.
    """

    X: Any
    y: Array
    columns: list[Column]
    u: Array | None
    error: Array
    offsets: Array | None = None


class RunningScores:
    """Sums over the rows scored so far."""

    def __init__(
        self, levels: tuple[float, ...], *, delay: int, period: int | None, slices: Sliced | None
    ) -> None:
        self._levels = levels
        self._ledger = StretchLedger(n_columns(levels), n_maxima=1)
        self._baselines = BaselineLedger(delay, period)
        self._counts: NDArray[np.int64] | None = np.zeros(N_BINS, dtype=np.int64)
        self._worst: list[WorstRow] = []
        self._residuals = ResidualLedger()
        self._slices = [
            SliceLedger(feature, edges, levels) for feature, edges in (slices or {}).items()
        ]

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self._ledger.n_rows

    def add(self, scored: ScoredBatch) -> None:
        """Add a batch."""
        columns = scored.columns
        self._note_worst(scored.y, np.asarray(columns[column.ABSOLUTE], dtype=np.float64))
        for ledger in self._slices:
            ledger.add(scored.X, columns)
        self._ledger.add(columns, [columns[column.ABSOLUTE]])
        self._baselines.add(scored.y, columns, scored.offsets)
        if scored.u is None or self._counts is None:
            self._counts = None
        else:
            counted = columns[column.WITH_DENSITY]  # a point has no quantiles to compare
            self._residuals.add(scored.y - scored.error, scored.u, counted.astype(bool))
            u = scored.u if counted.all() else scored.u[counted.astype(bool)]
            self._counts += count_bins(u)

    def _note_worst(self, y: Array, error: Array) -> None:
        """Keep the rows with the largest errors so far, the largest first."""
        least = self._worst[-1].error if len(self._worst) == N_WORST else -1.0
        rows = np.flatnonzero(error > least)
        rows = rows[np.argsort(-error[rows], kind="stable")[:N_WORST]]
        news = [WorstRow(self.n_rows + int(k), float(y[k]), float(error[k])) for k in rows]
        self._worst = sorted(self._worst + news, key=lambda one: -one.error)[:N_WORST]

    def result(self) -> ValidationResult:
        """Return the result; raises ``ValueError`` if there was no row."""
        refuse_nothing(self.n_rows)
        found = summarize(
            Totals(
                self._levels,
                self._ledger.overall(),
                self._ledger.stretches()[1],
                self._ledger.maxima()[:, 0].copy(),
                self._counts,
                {ledger.name: ledger.total() for ledger in self._slices},
                self._baselines.results(),
            )
        )
        residuals = None if self._counts is None else self._residuals.result()
        return replace(found, worst=tuple(self._worst), residuals=residuals)
