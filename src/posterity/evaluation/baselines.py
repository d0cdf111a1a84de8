"""What any model must beat: the mean so far, the last value, the last value of the season."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posterity.evaluation import _scores as column
from posterity.evaluation._scores import Column

FloatArray = NDArray[np.float64]

# Rows, and those with a CRPS; absolute and squared errors of the baseline; its absolute errors in
# the rows with a CRPS; then the model's absolute and squared errors and CRPS in the same rows.
N_SUMS = 8


@dataclass(frozen=True)
class Baseline:
    """A forecast of one number that needs no features, beside the model on the same rows.

    Attributes
    ----------
    name : str
        "mean so far", "last value", or "value one season ago".
    n_rows : int
        Rows that it could predict.
    mae, rmse : float
        Its errors, in units of y.
    model_mae, model_rmse : float
        The model's in the same rows.
    skill : float
        1 - model_mae / mae: 1 is perfect, 0 no better than the baseline, negative is worse.
    skill_crps : float
        1 - CRPS of the model / CRPS of the baseline, in the rows where the model has one. The CRPS
        of one number is its absolute error (Gneiting and Raftery 2007, J. Am. Stat. Assoc. 102,
        359-378).
    """

    name: str
    n_rows: int
    mae: float
    rmse: float
    model_mae: float
    model_rmse: float
    skill: float
    skill_crps: float


class BaselineLedger:
    """Runs the baselines along a stream: memory for as many targets as the longest lag."""

    def __init__(self, delay: int, period: int | None) -> None:
        self._lags = {"mean so far": delay + 1, "last value": delay + 1}
        if period is not None:
            # The newest row of the same season whose target is known.
            self._lags["value one season ago"] = period * (delay // period + 1)
        self._longest = max(self._lags.values())
        self._recent = np.empty((2, 0))  # targets, and sums of all targets up to each
        self._sums = {name: np.zeros(N_SUMS) for name in self._lags}
        self._seen = 0
        self._origin = 0.0

    def add(self, y: FloatArray, columns: list[Column]) -> None:
        """Score the next rows, whose targets are `y` and whose scores by the model `columns`."""
        with np.errstate(over="ignore", invalid="ignore"):
            self._add(y, columns)

    def _add(self, y: FloatArray, columns: list[Column]) -> None:
        if self._seen == 0:
            self._origin = float(y[0])
        # Relative to the first target: sums of what is far from zero would lose digits.
        so_far = self._recent[1, -1] if self._recent.shape[1] else 0.0
        sums = so_far + np.cumsum(y - self._origin)
        known = np.concatenate([self._recent, np.stack([y, sums])], axis=1)
        n_recent = self._recent.shape[1]
        for name, lag in self._lags.items():
            first = max(lag - self._seen, 0)
            if first >= len(y):
                continue
            which = slice(n_recent + first - lag, n_recent + len(y) - lag)
            if name == "mean so far":
                count = self._seen + np.arange(first, len(y)) - lag + 1.0
                forecast = self._origin + known[1, which] / count
            else:
                forecast = known[0, which]
            self._score(name, np.abs(y[first:] - forecast), [c[first:] for c in columns])
        self._recent = known[:, -self._longest :]
        self._seen += len(y)

    def _score(self, name: str, error: FloatArray, columns: list[Column]) -> None:
        with_crps = columns[column.WITH_CRPS]
        sums = (
            len(error),
            with_crps.sum(),
            error.sum(),
            error @ error,
            error @ with_crps,
            columns[column.ABSOLUTE].sum(),
            columns[column.SQUARED].sum(),
            columns[column.CRPS].sum(),
        )
        self._sums[name] += np.array(sums, dtype=np.float64)

    def results(self) -> dict[str, Baseline]:
        """Every baseline that could predict some row."""
        return {name: _baseline(name, sums) for name, sums in self._sums.items() if sums[0] > 0}


def _baseline(name: str, sums: FloatArray) -> Baseline:
    rows, _, absolute, squared, absolute_with_crps, model_absolute, model_squared, crps = (
        sums.tolist()
    )
    return Baseline(
        name,
        int(rows),
        absolute / rows,
        math.sqrt(squared / rows),
        model_absolute / rows,
        math.sqrt(model_squared / rows),
        _skill(model_absolute, absolute),
        _skill(crps, absolute_with_crps),
    )


def _skill(of_model: float, of_baseline: float) -> float:
    return 1.0 - of_model / of_baseline if 0.0 < of_baseline < math.inf else math.nan


__all__ = ["Baseline"]
