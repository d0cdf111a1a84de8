"""The scores of one batch of predictions, as columns to be summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posterity.aliases import Array, Mask
from posterity.evaluation._row_scores import row_scores

Column = Array | Mask

# Columns of the ledger; then for each level: covered, width.
ROWS, SCORED, WITH_DENSITY, WITH_CRPS, ABSOLUTE, SQUARED, LOG_SCORE, CRPS = range(8)
FIRST_LEVEL = 8


def n_columns(levels: Sequence[float]) -> int:
    """Return the number of columns of `score_columns`."""
    return FIRST_LEVEL + 2 * len(levels)


def score_columns(
    distribution: Any, y: Array, levels: Sequence[float]
) -> tuple[list[Column], Array | None, Array]:
    """Columns (n,) to be summed, in the order of the constants above; F(y), if it is known; errors.

    A flat prediction (infinite intervals) is recognised by its interval, not by its sd: a
    Student-t with two degrees of freedom or less has an infinite one and is still a prediction.
    """
    scores = row_scores(distribution, y, levels or (0.5,))
    everyone = np.ones(len(y))
    with np.errstate(over="ignore"):
        squared = scores.error * scores.error
    columns: list[Column] = [everyone, everyone, everyone, everyone]
    columns += [np.abs(scores.error), squared, scores.log_score, scores.crps]
    for covered, width in zip(scores.covered, scores.width, strict=True):
        columns += [covered, width]
    columns = columns[: n_columns(levels)]
    first = scores.width[0]
    # A finite sum has finite entries: one cheap look spares the masks nearly always.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(first.sum() + scores.log_score.sum() + scores.crps.sum()):
            return columns, scores.u, scores.error
    return _mask_missing(columns, np.isfinite(first)), scores.u, scores.error


def _mask_missing(columns: list[Column], scored: Mask) -> list[Column]:
    """Set rows without such a score to zero, and count the others."""
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
