"""The scores of one batch of predictions, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Column = NDArray[np.float64] | NDArray[np.bool_]

# Columns of the ledger; then for each level: covered, width.
ROWS, SCORED, WITH_DENSITY, WITH_CRPS, ABSOLUTE, SQUARED, LOG_SCORE, CRPS = range(8)
FIRST_LEVEL = 8


class Distribution(Protocol):
    """What a prediction must answer, one entry a row."""

    def mean(self) -> FloatArray: ...
    def interval(self, level: float) -> tuple[FloatArray, FloatArray]: ...
    def logpdf(self, y: FloatArray, /) -> FloatArray: ...
    def crps(self, y: FloatArray, /) -> FloatArray: ...


def n_columns(levels: Sequence[float]) -> int:
    """How many columns `score_columns` gives."""
    return FIRST_LEVEL + 2 * len(levels)


def score_columns(
    distribution: Distribution, y: FloatArray, levels: Sequence[float]
) -> list[Column]:
    """Columns (n,) to be summed, in the order of the constants above.

    A flat prediction (infinite intervals) is told by its interval, not by its standard deviation:
    a Student-t with two degrees of freedom or less has an infinite one and is still a prediction.
    """
    n = len(y)
    everyone = np.ones(n)
    error = y - distribution.mean()
    log_score = distribution.logpdf(y)
    crps = distribution.crps(y)
    limits = [distribution.interval(level) for level in levels or (0.5,)]
    widths = [high - low for low, high in limits]
    with np.errstate(over="ignore"):
        squared = error * error
    columns: list[Column] = [everyone, everyone, everyone, everyone]
    columns += [np.abs(error), squared, log_score, crps]
    for (low, high), width in zip(limits, widths, strict=True):
        columns += [(low <= y) & (y <= high), width]
    columns = columns[: n_columns(levels)]
    # A finite sum has finite entries: one cheap look spares the masks nearly always.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(widths[0].sum() + log_score.sum() + crps.sum()):
            return columns
    return _masked(columns, np.isfinite(widths[0]))


def _masked(columns: list[Column], scored: NDArray[np.bool_]) -> list[Column]:
    """Zeros, and no count, where a row has no such score."""
    with_density = scored & np.isfinite(columns[LOG_SCORE])
    with_crps = scored & np.isfinite(columns[CRPS])
    masked = list(columns)
    masked[SCORED], masked[WITH_DENSITY], masked[WITH_CRPS] = scored, with_density, with_crps
    masked[LOG_SCORE] = np.where(with_density, columns[LOG_SCORE], 0.0)
    masked[CRPS] = np.where(with_crps, columns[CRPS], 0.0)
    for i in range(FIRST_LEVEL, len(columns), 2):
        masked[i] = np.logical_and(columns[i], scored)
        masked[i + 1] = np.where(scored, columns[i + 1], 0.0)
    return masked
