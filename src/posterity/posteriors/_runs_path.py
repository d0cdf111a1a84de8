"""The compiled path of runs: a row a call, learned in all of them, in place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.factor.usable import LARGEST
from posterity.kernel import RowPath, RunsKernel
from posterity.posteriors._runs import Change, RunPrior, Runs, Start

Array = NDArray[np.float64]


class RunsPath:
    """Learns and predicts single rows in the runs of ``learned``, as a call for each row would.

    ``reader`` reads rows of features, ``history`` is one for a row, without predictions; ``rules``
    are as in :meth:`Runs.learn_rows`, and ``hazard`` is that of a unit of time.
    """

    def __init__(
        self,
        reader: RowPath,
        learned: Any,
        beginning: RunPrior,
        rules: tuple[float, int],
        hazard: float,
        history: Any,
    ) -> None:
        self.reader, self.learned, self.beginning = reader, learned, beginning
        self.rules, self.hazard, self.history = rules, hazard, history
        m = beginning.prior.n_coefficients - int(beginning.intercept)
        self._row = np.zeros((1, m)), np.zeros((1, 1)), np.ones(1), np.full(1, hazard)
        self._runs: Runs | None = None
        self._kernel: RunsKernel
        self._closed = False

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, if they have any."""
        return self.reader.names

    def values(self, x: ArrayLike | Mapping[str, float]) -> Array:
        """The features of ``x`` as an array (1, m), checked."""
        return self.reader.values(x)

    def close(self) -> None:
        """Close the path: it learns no more rows, and its user must ask for another."""
        self._closed = True

    def learn(self, x: ArrayLike | Mapping[str, float], y: float, weight: float = 1.0) -> bool:
        """Learn the row; False, and nothing happens, where it must be learned in another way."""
        if not (weight >= 0.0 and math.isfinite(weight)):
            raise ValueError(f"weight is {weight}: it must be finite and not negative")
        values, largest = self.values(x), LARGEST / max(math.sqrt(weight), 1.0)
        # Rows that can't be learned are left to the general code, which says why.
        if values.shape != self._row[0].shape:
            raise ValueError(
                f"x has {values.shape[1]} features, but the rows learned have "
                f"{self._row[0].shape[1]}: give the same features"
            )
        if self._closed or weight == 0.0 or not abs(y) <= largest:
            return False
        if not np.abs(values).max(initial=0.0) <= largest:
            return False
        runs, path = self._open_runs()
        self._row[0][...], self._row[1][0, 0], self._row[2][0] = values, y, weight
        before = runs.size, runs.row, runs.changes
        start = self._start(runs) if runs.seen > 0.0 else None
        try:
            if path.learn(0, start):
                self._record_start(runs, path, start, *before)
        except BaseException:
            if runs.row != before[1]:  # the row is learned: an interrupt must not leave half of it
                self._record_start(runs, path, start, *before)
            raise
        return bool(runs.row != before[1])

    def _record_start(
        self,
        runs: Runs,
        path: RunsKernel,
        start: Start | None,
        size: int,
        row: int,
        changes: list[Change | None],
    ) -> None:
        """Note start and changes after a row was learned; to do so twice is to do so once."""
        if self.beginning.from_prior is None:
            runs.latest_start = start
        if runs.changes is changes:
            runs.changes = runs.update_changes(path, size, changes)
        last = runs.size - 1
        began = row > 0 and runs.first[last] == row
        self.learned.change_probability = np.minimum(runs.probability[last : last + 1] * began, 1.0)
        path.again()

    def predict_mean(self, x: ArrayLike | Mapping[str, float]) -> float:
        """Mean at ``x``, as the next row."""
        values = self.values(x)
        runs, path = self._open_runs()
        start = self._start(runs) if runs.seen > 0.0 else None
        return path.predict_mean(values, start, self.hazard)

    def _open_runs(self) -> tuple[Runs, RunsKernel]:
        """The runs as they are now, which calls of another way replace."""
        runs: Runs = self.learned.runs
        if runs is not self._runs:
            self._kernel = runs.in_kernel(self.history, self.beginning, self.rules, self._row)
            self._runs = runs
        return runs, self._kernel

    def _start(self, runs: Runs) -> Start | None:
        """The start of a run that begins now; changes nothing."""
        start = self.beginning.from_prior or runs.latest_start
        if start is not None and self._kernel.serves(start):
            return start
        with np.errstate(all="ignore"):
            return replace(runs).start(self.beginning)
