"""Results of a validation: overall and along time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posterity.aliases import Array, DataFrame, Document, Figure
from posterity.distributions.joint_distribution import require_pandas
from posterity.distributions.pit import PIT, skewness_in_words
from posterity.evaluation import _scores as column
from posterity.evaluation._tables import count_rows, html_table, pick_plain, to_plain
from posterity.evaluation._totals import Totals
from posterity.evaluation.baselines import Baseline
from posterity.evaluation.coefficient_path import CoefficientPath
from posterity.evaluation.drift import DriftPeriod, drift_periods
from posterity.evaluation.residuals import Residuals
from posterity.evaluation.slices import Slices
from posterity.evaluation.stretches import Stretches

SCORES = ("mae", "rmse", "log_score", "crps", "coverage", "width")


@dataclass(frozen=True)
class WorstRow:
    """A row that was predicted badly: its place among the rows predicted, from 0, and its target.

    ``error`` is absolute, in units of y.
    """

    row: int
    y: float
    error: float


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
        For each level, the mean width of that interval, in units of y: how sharp predictions are.
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
    pit : PIT or None
        Where y fell in its predictive distribution, and from that coverage at any level; None if
        the distributions have no ``cdf`` or are discrete.
    baselines : dict of str to Baseline
        "mean so far", "last value" and, where a period was given, "value one season ago", each with
        the model's skill over it.
    slices : dict of str to Slices
        Scores by slice of each feature that was asked for.
    path : CoefficientPath or None
        Coefficients along the stream, where `follow` asked for them; not of merged results.
    worst : tuple of WorstRow
        The five rows with the largest errors, the largest first; not of merged results.
    residuals : Residuals or None
        Standardised residuals of some rows; None where there is no PIT, and of merged results.
    totals : object
        The sums that all this is made of: what :func:`merged` adds.
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
    pit: PIT | None = field(default=None, repr=False)
    baselines: dict[str, Baseline] = field(default_factory=dict, repr=False)
    slices: dict[str, Slices] = field(default_factory=dict, repr=False)
    path: CoefficientPath | None = field(default=None, repr=False)
    worst: tuple[WorstRow, ...] = field(default=(), repr=False)
    residuals: Residuals | None = field(default=None, repr=False)
    totals: Totals = field(kw_only=True, repr=False)

    @property
    def skill(self) -> dict[str, float]:
        """Skill over each baseline, by absolute errors: 1 is perfect, 0 equals the baseline."""
        return {name: baseline.skill for name, baseline in self.baselines.items()}

    def drift_periods(self) -> list[DriftPeriod]:
        """Rows in which predictions were worse than in those before, if there were such.

        Rows whose errors are larger than those before, beyond chance and by a twentieth at least.
        Where nothing drifts none of 200 streams of independent errors have such rows, and 1 in 20,
        at most 1 in 10, if errors have heavy tails or go together over some ten rows
        (:doc:`/guarantees`). What begins in the first tenth of a stream is taken for usual.
        """
        return drift_periods(self.along)

    def to_frame(self, by: str = "time") -> DataFrame:
        """A pandas data frame of scores.

        Parameters
        ----------
        by : str
            "time": a row for each stretch; "level": coverage by level, those asked for and (if
            there is a PIT) 0.02 to 0.98; or the name of a feature in `slices`.

        Raises
        ------
        ValueError
            If there is no such feature.
        ImportError
            If pandas is not installed.
        """
        pandas = require_pandas("to_frame", "to_dict()")
        if by == "level":
            return pandas.DataFrame(self._tabulate_levels()).set_index("level").sort_index()
        if by == "time":
            columns = {"row_end": self.along.row_end, **_columns(self.along)}
            columns["max_error"] = self.along.max_error
            return pandas.DataFrame(columns).set_index("row_end")
        if by not in self.slices:
            listed = ", ".join(repr(name) for name in ("time", "level", *self.slices))
            raise ValueError(f"there is no table {by!r}: give one of {listed}")
        chosen = self.slices[by]
        return pandas.DataFrame({by: chosen.names, **_columns(chosen)}).set_index(by)

    def plot(self, title: str = "Predict, then learn", *, unit: str = "units of y") -> Figure:
        """Coverage and error along time, and, if there is a PIT, its histogram and calibration.

        Returns
        -------
        matplotlib Figure
            Not registered with pyplot: notebooks show it, ``savefig`` saves it.

        Raises
        ------
        ModuleNotFoundError
            Matplotlib is not installed.
        """
        from posterity.plots import plot_validation

        return plot_validation(self, title, unit=unit)

    def to_dict(self) -> Document:
        """Plain numbers, strings, lists and None (for what is not finite): ready for JSON.

        Levels become strings, since JSON has no other keys.
        """
        along, pit = self.along, self.pit
        baselines = ("n_rows", "mae", "rmse", "log_score", "crps", "skill", "skill_crps")
        slices = ("names", "edges", "n_rows", "n_unscored", *SCORES)
        drift = ("row_start", "row_end", "mae", "usual")
        return {
            **pick_plain(self, *SCORES, "n_rows", "n_unscored", "n_certain"),
            "along": pick_plain(along, "row_end", "n_rows", "n_unscored", "max_error", *SCORES),
            "calibration_error": None if pit is None else to_plain(pit.error),
            "pit": None if pit is None else pit.counts.tolist(),
            "baselines": {
                name: pick_plain(each, *baselines, "log_score_gain")
                for name, each in self.baselines.items()
            },
            "slices": {name: pick_plain(each, *slices) for name, each in self.slices.items()},
            "worst": [pick_plain(one, "row", "y", "error") for one in self.worst],
            "drift": [pick_plain(one, *drift) for one in self.drift_periods()],
        }

    def __repr__(self) -> str:
        lines = [f"Progressive validation of {self.n_rows:,} rows"]
        lines += [f"  {label:<34}{value:>14}" for label, value in self._table()]
        return "\n".join([*lines, *(f"  {note}" for note in self._notes())])

    def _repr_html_(self) -> str:
        title = f"Progressive validation of {self.n_rows:,} rows"
        return html_table(title, ("score", "value"), self._table(), self._notes())

    def _notes(self) -> list[str]:
        notes = []
        if self.n_unscored:
            notes.append(f"{count_rows(self.n_unscored)} not scored: the prediction was still flat")
        if self.n_certain:
            notes.append(
                f"{count_rows(self.n_certain)} without log score: predicted with certainty"
            )
        return notes + skewness_in_words(self.pit)

    def _tabulate_levels(self) -> list[dict[str, float]]:
        asked = [
            {"level": level, "coverage": share, "width": self.width[level]}
            for level, share in self.coverage.items()
        ]
        if self.pit is None:
            return asked
        levels = self.pit.levels
        shares = zip(levels.tolist(), self.pit.coverage(levels).tolist(), strict=True)
        return asked + [
            {"level": level, "coverage": share, "width": math.nan}
            for level, share in shares
            if not any(math.isclose(level, other) for other in self.coverage)
        ]

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
        if self.pit is not None:
            rows.append(("calibration error", f"{self.pit.error:.6g}"))
        for name, baseline in self.baselines.items():
            rows.append((f"skill over {name}", f"{baseline.skill:.6g}"))
        return rows


def summarize(totals: Totals) -> ValidationResult:
    """Turn sums into means."""
    levels, overall, sums = totals.levels, totals.overall, totals.stretches
    along = means(sums, levels)
    return ValidationResult(
        **{name: _convert_to_floats(value) for name, value in means(overall, levels).items()},
        n_rows=int(overall[column.ROWS]),
        n_unscored=int(overall[column.ROWS] - overall[column.SCORED]),
        n_certain=int(overall[column.SCORED] - overall[column.WITH_DENSITY]),
        along=Stretches(
            row_end=np.cumsum(sums[:, column.ROWS]).astype(np.int64),
            **_counts(sums),
            **along,
            max_error=totals.most,
        ),
        pit=None if totals.counts is None else PIT(totals.counts),
        baselines=dict(totals.baselines),
        slices={
            name: Slices(
                feature=name,
                edges=each.edges,
                levels=each.levels,
                **_counts(each.sums),
                **means(each.sums, levels),
            )
            for name, each in totals.slices.items()
        },
        totals=totals,
    )


def _counts(sums: Array) -> Document:
    rows = sums[:, column.ROWS]
    return {
        "n_rows": rows.astype(np.int64),
        "n_unscored": (rows - sums[:, column.SCORED]).astype(np.int64),
    }


def means(sums: Array, levels: Sequence[float]) -> Document:
    """Means along the last axis of the sums; NaN where nothing was counted."""

    def mean(numerator: int, count: int) -> Array:
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


def _convert_to_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {level: float(entry) for level, entry in value.items()}
    return float(value)


def _columns(scores: Stretches | Slices) -> dict[str, Any]:
    """Columns of a data frame, one level after the other."""
    columns: dict[str, Any] = {
        name: getattr(scores, name)
        for name in ("n_rows", "n_unscored", "mae", "rmse", "log_score", "crps")
    }
    for level, share in scores.coverage.items():
        columns[f"coverage_{level:g}"] = share
        columns[f"width_{level:g}"] = scores.width[level]
    return columns
