"""Result of a paired comparison of models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from posterity.aliases import Array, Axes, DataFrame, Document
from posterity.distributions.joint_distribution import require_pandas
from posterity.evaluation._long_run import estimate_standard_error
from posterity.evaluation._tables import count_rows, html_table, to_plain
from posterity.evaluation.result import ValidationResult

UNITS = {
    "log_score": "nats",
    "crps": "units of y",
    "absolute": "units of y",
    "squared": "units of y^2",
}
HEADER = ("model", "mean loss", "behind the best", "standard error", "p-value", "mean error")


def p_value_text(p_value: float) -> str:
    """A p-value in words: what is below 0.001 is no more exact than that.

    Examples
    --------
    >>> p_value_text(3.9e-97), p_value_text(0.0432), p_value_text(1.0)
    ('< 0.001', '0.043', '1')
    """
    return "< 0.001" if p_value < 0.001 else f"{p_value:.2g}"


@dataclass(frozen=True)
class PairedDifference:
    """Mean difference of two models' losses in the same rows.

    Attributes
    ----------
    mean : float
        Of the first model's loss less the second's: positive if the second is better.
    standard_error : float
        Of the mean, allowing for rows that go together.
    p_value : float
        Two-sided, of no difference, by Student's t.
    n_rows : int
    degrees_of_freedom : int
        Of the standard error: 4 to 12, fewer below 32 rows.
    """

    mean: float
    standard_error: float
    p_value: float
    n_rows: int
    degrees_of_freedom: int

    @property
    def statistic(self) -> float:
        """Diebold and Mariano's statistic: the mean in standard errors."""
        return _ratio(self.mean, self.standard_error)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the mean difference."""
        half = float(stdtrit(self.degrees_of_freedom, 0.5 + level / 2.0)) * self.standard_error
        return self.mean - half, self.mean + half


@dataclass(frozen=True, eq=False)
class PairedComparison:
    """Models on the same stream, each row predicted by all of them before it was learned.

    Attributes
    ----------
    names : tuple of str
    loss : str
        What is compared: smaller is better.
    results : mapping of name to ValidationResult
        Each model's own scores.
    row_end, n_scored : (s,) int arrays
        Rows seen at the end of each stretch of the stream, and those of the stretch that all models
        scored.
    losses : (k, s) array
        Mean loss of each model in each stretch, over those rows.
    models : mapping of name to model
        The copies that have learned the stream.
    """

    names: tuple[str, ...]
    loss: str
    results: Mapping[str, ValidationResult]
    row_end: NDArray[np.int64]
    n_scored: NDArray[np.int64]
    losses: Array
    models: Mapping[str, Any] = field(repr=False)
    _sums: Array = field(repr=False)  # (k, s) of losses, relative to the other models'

    @property
    def n_rows(self) -> int:
        """Rows that all models scored."""
        return int(self.n_scored.sum())

    @property
    def mean_losses(self) -> Array:
        """Mean loss of each model over the rows that all scored, (k,)."""
        total = np.where(self.n_scored > 0, self.losses, 0.0) @ self.n_scored
        return np.asarray(total / self.n_rows)

    @property
    def best(self) -> str:
        """Name of the model with the smallest mean loss."""
        return self.names[int(np.argmin(self.mean_losses))]

    def between(self, one: str, other: str) -> PairedDifference:
        """Loss of `one` less that of `other`, with its uncertainty.

        Raises
        ------
        ValueError
            If there is no such model.
        """
        first, second = self._number(one), self._number(other)
        differences, rows = self._sums[first] - self._sums[second], self.n_scored
        mean = float(differences.sum()) / self.n_rows
        error, degrees_of_freedom = estimate_standard_error(differences, rows.astype(np.float64))
        error = 0.0 if first == second else error
        p_value = 2.0 * float(stdtr(degrees_of_freedom, -abs(_ratio(mean, error))))
        return PairedDifference(mean, error, p_value, self.n_rows, degrees_of_freedom)

    def difference_along(self, one: str, other: str) -> tuple[Array, Array]:
        """Mean difference over all rows so far, and its standard error, at each of `row_end`.

        The error is that of the whole stream, scaled by the number of rows.
        """
        first, second = self._number(one), self._number(other)
        seen = np.cumsum(self.n_scored)
        each = np.where(self.n_scored > 0, self.losses[first] - self.losses[second], 0.0)
        known = np.maximum(seen, 1)
        mean = np.where(seen > 0, np.cumsum(each * self.n_scored) / known, math.nan)
        error = self.between(one, other).standard_error * np.sqrt(self.n_rows / known)
        return mean, error

    def to_dict(self) -> Document:
        """Plain numbers, strings, lists and None (for what is not finite): ready for JSON."""
        return {
            "loss": self.loss,
            "best": self.best,
            "n_rows_compared": self.n_rows,
            "models": [
                to_plain(row) | {"validation": self.results[row["name"]].to_dict()}
                for row in self._rows()
            ],
        }

    def to_frame(self) -> DataFrame:
        """A pandas data frame with a row for each model, the best first.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = require_pandas("to_frame", "to_dict()")
        return pandas.DataFrame(self._rows()).set_index("name")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how far each model is behind the best along time; returns matplotlib Axes."""
        from posterity.plots import plot_differences

        return plot_differences(self, ax)

    def __repr__(self) -> str:
        wide = max(len("model"), *(len(name) for name in self.names))
        lines = [
            f"  {name:<{wide}}" + "".join(f"{cell:>17}" for cell in cells)
            for name, *cells in (HEADER, *self.cells())
        ]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        return html_table(self._title(), HEADER, self.cells())

    def _title(self) -> str:
        return (
            f"{len(self.names)} models on {count_rows(self.n_rows)}, by {self.loss} "
            f"({UNITS[self.loss]}; smaller is better)"
        )

    def cells(self) -> list[tuple[str, ...]]:
        """Name, loss, how far behind, standard error, p-value and mean error, the best first."""
        return [
            (
                row["name"],
                f"{row['loss']:.6g}",
                f"{row['behind']:.4g}",
                f"{row['standard_error']:.2g}",
                p_value_text(row["p_value"]),
                f"{row['mae']:.6g}",
            )
            for row in self._rows()
        ]

    def _rows(self) -> list[Document]:
        """Each model against the best, best first."""
        best, means = self.best, self.mean_losses
        rows = []
        for k in np.argsort(means, kind="stable").tolist():
            behind, result = self.between(self.names[k], best), self.results[self.names[k]]
            rows.append(
                {
                    "name": self.names[k],
                    "loss": float(means[k]),
                    "behind": behind.mean,
                    "standard_error": behind.standard_error,
                    "p_value": behind.p_value,
                    "mae": result.mae,
                    "rmse": result.rmse,
                    "crps": result.crps,
                    "log_score": result.log_score,
                    **{f"coverage_{level:g}": s for level, s in result.coverage.items()},
                }
            )
        return rows

    def _number(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"there is no model {name!r}: give one of {', '.join(self.names)}")
        return self.names.index(name)


def _ratio(mean: float, error: float) -> float:
    if error > 0.0:
        return mean / error
    return 0.0 if mean == 0.0 else math.copysign(math.inf, mean)
