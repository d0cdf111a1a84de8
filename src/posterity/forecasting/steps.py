"""Distributions over the steps of series, whatever they are of: forecasts, or their parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import AnyArray, Array
from posterity.distributions._limits import check_single_level
from posterity.distributions.guesses import TellsNames, tell_call
from posterity.distributions.joint_distribution import require_pandas
from posterity.forecasting.calendar import Calendar
from posterity.forecasting.marginals import Marginals
from posterity.forecasting.names import make_names_array
from posterity.kernel.values import read_floats

# Steps in the repr of a forecast.
SHOWN = 3
# Our names for those of pandas, statsmodels and others.
OUR_NAMES = {
    "sum": "total(steps)",
    "sample": "rvs(size), which has sample paths",
    "simulate": "rvs(size), which has sample paths",
    "conf_int": "interval(0.95)",
    "predict_interval": "interval(0.95)",
    "predicted_mean": "mean() or median()",
    "summary_frame": "to_frame()",
    "to_pandas": "to_frame()",
    "ppf": "quantile(q)",
    "plot": "posterity.plots.plot_forecast(forecast)",
}


@dataclass(frozen=True, eq=False, repr=False)
class StepDistribution(TellsNames):
    """Distributions over (series, step), each a mixture of normals and lognormals.

    Methods answer with arrays (S, h), or (h,) of a single series that has no name.
    """

    ids: tuple[Any, ...]
    marginals: Marginals
    single: bool

    _our_names = OUR_NAMES

    def __repr__(self) -> str:
        """Return the number of series and steps, and the forecast of the first series."""
        count, steps = self.marginals.components[0].mean[:, 0].shape
        what = f"{steps} step" + "s" * (steps != 1)
        if not self.single:
            what = f"{count} series, {what} each"
        low, high = (np.atleast_2d(end)[0] for end in self.interval())
        rows = zip(np.atleast_2d(self.median())[0], low, high, strict=True)
        shown = ", ".join(f"{middle:.4g} [{a:.4g}, {b:.4g}]" for middle, a, b in list(rows)[:SHOWN])
        more = ", ..." if steps > SHOWN else ""
        of = "" if self.single else f" of {self.ids[0]!r}"
        return f"{type(self).__name__}({what}; median{of} and 95% interval: {shown}{more})"

    def mean(self) -> Array:
        """Means. Of forms in logarithms they exist as long as the noise's draws are finite."""
        return self._reshape(self.marginals.mean())

    def var(self) -> Array:
        """Variances."""
        return self._reshape(self.marginals.variance())

    def std(self) -> Array:
        """Standard deviations."""
        return np.sqrt(self.var())

    def median(self) -> Array:
        """Medians: the point forecasts, for which absolute errors are least."""
        return self.quantile(0.5)

    def quantile(self, q: float) -> Array:
        """Quantiles, 0 < q < 1."""
        if not 0.0 < q < 1.0:
            raise ValueError(f"q is {q}: a quantile needs a probability between 0 and 1")
        return self._reshape(self.marginals.quantile(q))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Ends of the central intervals of each step at a probability ``level``."""
        level = check_single_level(level)
        if not 0.0 < level < 1.0:
            raise ValueError(f"level is {level}: it must be between 0 and 1, as in 0.95")
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    def cdf(self, y: ArrayLike) -> Array:
        """Probabilities of no more than ``y``, a number or one for each step."""
        return self._reshape(self.marginals.cdf(self._read(y)))

    def p_value(self, y: ArrayLike) -> Array:
        """Probability of an outcome at least as extreme as ``y``: small for anomalies.

        Twice the probability of the tail that ``y`` is in, of each step by itself.
        """
        below = self.cdf(y)
        return 2.0 * np.minimum(below, 1.0 - below)

    def logpdf(self, y: ArrayLike) -> Array:
        """Marginal log densities of each step at outcomes ``y``."""
        return self._reshape(self.marginals.logpdf(self._read(y)))

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability scores of outcomes ``y``, less is better.

        The integral is done numerically, to a thousandth of the score.
        """
        return self._reshape(self.marginals.crps(self._read(y)))

    # ---- inner ---------------------------------------------------------------------------------

    def _reshape(self, values: Array) -> Array:
        return values[0] if self.single else values

    def _read(self, y: ArrayLike) -> Array:
        some = self.marginals.components[0].mean
        shape = (some.shape[0], some.shape[2])
        return np.broadcast_to(read_floats(y, "y"), shape)


@dataclass(frozen=True, eq=False, repr=False)
class StepsAhead(StepDistribution):
    """The same of steps that have times, (S, h), or (h,) of a single series."""

    times: AnyArray
    calendar: Calendar

    def to_columns(self, levels: Sequence[float] = (0.8, 0.95)) -> dict[str, AnyArray]:
        """Columns of a long table, a row each series and step, for any library of data frames.

        Named as Nixtla's: ``unique_id``, ``ds`` (times as those of the learned rows are written, so
        that the two join), ``Forecaster`` (the median), and
        ``Forecaster-lo-95``, ``Forecaster-hi-95`` for each level.
        """
        h = np.shape(self.times)[-1]
        columns: dict[str, AnyArray] = {
            "unique_id": np.repeat(make_names_array(self.ids), h),
            "ds": self.calendar.write(np.asarray(self.times).reshape(-1)),
            "Forecaster": self.median().reshape(-1),
        }
        for level in levels:
            for name, end in zip(("lo", "hi"), self.interval(level), strict=True):
                columns[f"Forecaster-{name}-{100 * level:g}"] = end.reshape(-1)
        return columns

    @tell_call
    def to_frame(self, levels: Sequence[float] = (0.8, 0.95)) -> Any:
        """The same as a pandas data frame.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return make_frame(self.to_columns(levels))


def make_frame(columns: dict[str, AnyArray]) -> Any:
    """Columns as a pandas data frame; raises ``ImportError`` if pandas is not installed."""
    return require_pandas("to_frame", "to_columns()").DataFrame(as_lists(columns))


def as_lists(columns: dict[str, AnyArray]) -> dict[str, Any]:
    """The same with lists in place of arrays of objects: frames find out what these are."""
    return {name: one.tolist() if one.dtype == object else one for name, one in columns.items()}
