"""What a validation found: overall and along time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.evaluation import _scores as column
from posterity.evaluation._ledger import StretchLedger

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stretches:
    """Scores over consecutive stretches of the stream, all of one length but the last.

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
    """

    row_end: NDArray[np.int64]
    n_rows: NDArray[np.int64]
    n_unscored: NDArray[np.int64]
    mae: FloatArray
    rmse: FloatArray
    log_score: FloatArray
    crps: FloatArray
    coverage: dict[float, FloatArray]
    width: dict[float, FloatArray]

    def __len__(self) -> int:
        return len(self.row_end)


@dataclass(frozen=True, eq=False)
class ValidationResult:
    """Scores of predictions made before their rows were learned.

    Attributes
    ----------
    mae, rmse : float
        Mean absolute error and root mean squared error of the predictive mean, over all rows, in
        units of y.
    log_score : float
        Mean log predictive density in nats a row, over the scored rows; larger is better.
    crps : float
        Mean continuous ranked probability score in units of y, over the scored rows whose
        distribution has one (a Student-t needs more than one degree of freedom); smaller is better.
    coverage : dict of float to float
        For each level, the share of the scored rows whose y fell in the central interval.
    width : dict of float to float
        For each level, the mean width of that interval, in units of y.
    n_rows : int
        Rows seen.
    n_unscored : int
        Rows whose prediction was still flat (an infinite interval, before enough was known). They
        count in `mae` and `rmse` only.
    n_certain : int
        Rows predicted with certainty (zero scale): their log density is infinite, and they are left
        out of `log_score`.
    along : Stretches
        The same scores along time.
    """

    mae: float
    rmse: float
    log_score: float
    crps: float
    coverage: dict[float, float]
    width: dict[float, float]
    n_rows: int
    n_unscored: int
    n_certain: int
    along: Stretches = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and None (for what is not finite): ready for JSON.

        Levels become strings, since JSON has no other keys.
        """
        along = self.along
        return {
            **_plain_scores(self),
            "n_rows": self.n_rows,
            "n_unscored": self.n_unscored,
            "n_certain": self.n_certain,
            "along": {
                "row_end": along.row_end.tolist(),
                "n_rows": along.n_rows.tolist(),
                "n_unscored": along.n_unscored.tolist(),
                **_plain_scores(along),
            },
        }

    def __repr__(self) -> str:
        lines = [f"Progressive validation of {self.n_rows:,} rows"]
        lines += [f"  {label:<34}{value:>14}" for label, value in self._table()]
        if self.n_unscored:
            lines.append(f"  {_rows(self.n_unscored)} not scored: the prediction was still flat")
        if self.n_certain:
            lines.append(f"  {_rows(self.n_certain)} without log score: predicted with certainty")
        return "\n".join(lines)

    def _table(self) -> list[tuple[str, str]]:
        rows = [
            ("mean absolute error", f"{self.mae:.6g}"),
            ("root mean squared error", f"{self.rmse:.6g}"),
            ("mean log score (nats)", f"{self.log_score:.6g}"),
            ("mean CRPS", f"{self.crps:.6g}"),
        ]
        for level, share in self.coverage.items():
            rows.append((f"{level:.6g} interval: coverage", f"{share:.6g}"))
            rows.append((f"{level:.6g} interval: mean width", f"{self.width[level]:.6g}"))
        return rows


def summarize(ledger: StretchLedger, levels: Sequence[float]) -> ValidationResult:
    """Turn the ledger's sums into means."""
    row_end, sums = ledger.stretches()
    overall = ledger.overall()
    total = _means(overall, levels)
    along = _means(sums, levels)
    return ValidationResult(
        **{name: _as_floats(value) for name, value in total.items()},
        n_rows=int(overall[column.ROWS]),
        n_unscored=int(overall[column.ROWS] - overall[column.SCORED]),
        n_certain=int(overall[column.SCORED] - overall[column.WITH_DENSITY]),
        along=Stretches(
            row_end=row_end,
            n_rows=sums[:, column.ROWS].astype(np.int64),
            n_unscored=(sums[:, column.ROWS] - sums[:, column.SCORED]).astype(np.int64),
            **along,
        ),
    )


def _means(sums: FloatArray, levels: Sequence[float]) -> dict[str, Any]:
    """Means along the last axis of the sums; NaN where nothing was counted."""

    def mean(numerator: int, count: int) -> FloatArray:
        counted = sums[..., count]
        return np.where(counted > 0, sums[..., numerator] / np.maximum(counted, 1.0), np.nan)

    first = column.FIRST_LEVEL
    return {
        "mae": mean(column.ABSOLUTE, column.ROWS),
        "rmse": np.sqrt(mean(column.SQUARED, column.ROWS)),
        "log_score": mean(column.LOG_SCORE, column.WITH_DENSITY),
        "crps": mean(column.CRPS, column.WITH_CRPS),
        "coverage": {level: mean(first + 2 * i, column.SCORED) for i, level in enumerate(levels)},
        "width": {level: mean(first + 2 * i + 1, column.SCORED) for i, level in enumerate(levels)},
    }


def _as_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {level: float(entry) for level, entry in value.items()}
    return float(value)


def _plain_scores(scores: ValidationResult | Stretches) -> dict[str, Any]:
    return {
        "mae": _plain(scores.mae),
        "rmse": _plain(scores.rmse),
        "log_score": _plain(scores.log_score),
        "crps": _plain(scores.crps),
        "coverage": {f"{level:g}": _plain(value) for level, value in scores.coverage.items()},
        "width": {f"{level:g}": _plain(value) for level, value in scores.width.items()},
    }


def _plain(value: float | FloatArray) -> float | list[float | None] | None:
    if isinstance(value, np.ndarray):
        return [entry if math.isfinite(entry) else None for entry in value.tolist()]
    return value if math.isfinite(value) else None


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"
