"""Scores along a stream, stretch after stretch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array


@dataclass(frozen=True, eq=False)
class Stretches:
    """Scores over consecutive stretches of the stream.

    All are of one length but the last; in a merged result, each part's are.

    Attributes
    ----------
    row_end : (s,) int array
        Rows seen when the stretch ended.
    n_rows, n_unscored : (s,) int arrays
        Rows in the stretch, and those of them whose prediction was still flat.
    mae, rmse : (s,) arrays, units of y
    log_score : (s,) array, nats a row
    crps : (s,) array, units of y
    coverage, width : dict of level to (s,) array
        Shares between 0 and 1, and units of y. NaN where no row of the stretch was scored.
    max_error : (s,) array, units of y
        Greatest absolute error of a row in the stretch.
    """

    row_end: NDArray[np.int64]
    n_rows: NDArray[np.int64]
    n_unscored: NDArray[np.int64]
    mae: Array
    rmse: Array
    log_score: Array
    crps: Array
    coverage: dict[float, Array]
    width: dict[float, Array]
    max_error: Array

    def __len__(self) -> int:
        return len(self.row_end)
