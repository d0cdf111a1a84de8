"""Stretches of a stream in which predictions were worse than before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from posterity.evaluation.result import Stretches

FloatArray = NDArray[np.float64]

# Both what chance explains, allowing for errors of neighbours that go together, and what matters.
STANDARD_ERRORS = 5.0
RATIO = 1.25
FEWEST_ROWS = 20


@dataclass(frozen=True)
class DriftPeriod:
    """A range of rows whose predictions were worse than those before.

    Attributes
    ----------
    row_start, row_end : int
        Its first row, and the row after its last; the first of the stream is 0.
    mae : float
        Mean absolute error in it, in units of y.
    usual : float
        Mean absolute error in the rows before it, without earlier periods.
    """

    row_start: int
    row_end: int
    mae: float
    usual: float

    @property
    def ratio(self) -> float:
        """Ratio of the error to the usual one."""
        return self.mae / self.usual if self.usual > 0.0 else float("inf")


def drift_periods(along: Stretches) -> list[DriftPeriod]:
    """Stretches whose mean absolute error exceeds that of the rows before by 5 standard errors.

    And by a quarter at least. Neighbours are joined. A description of the stream, not a test with a
    known rate of false alarms: errors of neighbouring rows may go together.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _find_periods(along)


def _find_periods(along: Stretches) -> list[DriftPeriod]:
    ends, rows, mae, squares = _group_neighbours(along)
    variance = np.maximum(squares - mae**2, 0.0)
    seen = total = spread = 0.0
    found: list[DriftPeriod] = []
    for k in range(len(ends)):
        usual = total / seen if seen else np.nan
        noise = np.sqrt((spread / seen) * (1.0 / rows[k] + 1.0 / seen)) if seen else np.nan
        worse = mae[k] > max(RATIO * usual, usual + STANDARD_ERRORS * noise)
        if seen >= FEWEST_ROWS and worse:
            start = int(ends[k] - rows[k])
            found = _join_neighbours(
                found, DriftPeriod(start, int(ends[k]), float(mae[k]), float(usual))
            )
            continue
        seen += rows[k]
        total += rows[k] * mae[k]
        # The spread of single errors, within the stretch and of its mean.
        spread += rows[k] * (variance[k] + (0.0 if np.isnan(usual) else (mae[k] - usual) ** 2))
    return found


def _group_neighbours(along: Stretches) -> tuple[FloatArray, ...]:
    """Neighbours joined to 20 rows and more: last row, rows, mean absolute and squared error."""
    starts, gathered = [0], 0
    for k, n_rows in enumerate(along.n_rows.tolist()):
        if gathered >= FEWEST_ROWS:
            starts.append(k)
            gathered = 0
        gathered += n_rows
    rows = np.add.reduceat(along.n_rows, starts).astype(np.float64)
    absolute = np.add.reduceat(along.n_rows * along.mae, starts) / rows
    squares = np.add.reduceat(along.n_rows * along.rmse**2, starts) / rows
    return np.cumsum(rows), rows, absolute, squares


def _join_neighbours(found: list[DriftPeriod], new: DriftPeriod) -> list[DriftPeriod]:
    if not found or found[-1].row_end != new.row_start:
        return [*found, new]
    last = found[-1]
    rows, more = last.row_end - last.row_start, new.row_end - new.row_start
    mae = float((rows * last.mae + more * new.mae) / (rows + more))
    return [*found[:-1], DriftPeriod(last.row_start, new.row_end, mae, last.usual)]


__all__ = ["DriftPeriod"]
