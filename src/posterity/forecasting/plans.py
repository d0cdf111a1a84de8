"""Exogenous columns of the next steps: how far they are outside what was learned.

The effect of a column is known in its learned range. It is extrapolated by as much as that range is
wide, on either side, and no further. Beyond, its form is not known: the forecast stays where it is
there, and has more variance, by a shock that all such steps share. With r the distance from the
range over its width, E the effect of that width and s the size of the noise, its standard deviation
is sqrt(E^2 + s^2) log r. A column that never varied has no known effect: any other value may change
the level by as much as the level is large.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtri, stdtrit

from posterity.aliases import Array, Mask
from posterity.forecasting.calendar import format_time
from posterity.forecasting.checks import ForecastWarning
from posterity.forecasting.holidays import CLOSED, HOLIDAYS, TREND
from posterity.forecasting.panel import Panel
from posterity.forecasting.paths import Paths

# A column varies if its range is larger than this share of its values.
SMALLEST_RANGE = 1e-12
# The ratio that stands for any distance from a value that never varied; its logarithm is 1.
UNKNOWN_RATIO = math.e
# The standard deviation of an effect that is not known at all, as a share of the level.
UNKNOWN_EFFECT = 0.5


@dataclass(frozen=True, eq=False)
class Plan:
    """Exogenous columns of the next steps of series, as they can be known.

    ``values`` (S, h, m) are no further from the learned range, from ``low`` (S, m) to ``high``,
    than that is wide, and ``given`` (S, h, m) are those of the user. ``ratio`` (S, h, m) are
    distances from the range over its width, where these are above 1, e where a column never varied,
    else 1. ``groups`` say by name which columns have one component, ``holidays`` the column of
    those that were not seen, and of each that was, and ``occasions`` which are 1 on days of a name.
    """

    panel: Panel
    given: Array
    values: Array
    low: Array
    high: Array
    ratio: Array
    groups: Mapping[str, Sequence[int]]
    holidays: Sequence[int] = ()
    occasions: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        panel: Panel,
        given: Array,
        groups: Mapping[str, Sequence[int]] | None = None,
        holidays: Sequence[int] = (),
        occasions: Mapping[str, Sequence[int]] | None = None,
    ) -> Plan:
        """Return the plan of a panel; ``groups`` are columns of the calendar that go together."""
        known = np.isfinite(panel.columns)
        low = np.where(known, panel.columns, np.inf).min(axis=1, initial=np.inf)
        high = np.where(known, panel.columns, -np.inf).max(axis=1, initial=-np.inf)
        low, high = (
            np.where(known.any(axis=1), low, -np.inf),
            np.where(known.any(axis=1), high, np.inf),
        )
        off = np.maximum(np.maximum(low[:, None] - given, given - high[:, None]), 0.0)
        width, fixed = high - low, never_varied(low, high)
        width = np.where(fixed, 0.0, width)
        ratio = np.maximum(off / np.where(width > 0.0, width, np.inf)[:, None], 1.0)
        ratio = np.where(fixed[:, None] & (off > width[:, None]), UNKNOWN_RATIO, ratio)
        values = np.clip(given, (low - width)[:, None], (high + width)[:, None])
        m = len(panel.names)  # what the calendar says is never far
        ratio[:, :, m:], values[:, :, m:] = 1.0, given[:, :, m:]
        each: dict[str, list[int]] = {}
        taken = {TREND, CLOSED, HOLIDAYS, *(groups or ())}
        for place, name in enumerate(panel.names):
            stem = str(name).partition("=")[0]
            each.setdefault(f"column {stem}" if stem in taken else stem, []).append(place)
        each |= {name: list(columns) for name, columns in (groups or {}).items()}
        return cls(panel, given, values, low, high, ratio, each, holidays, occasions or {})

    @property
    def far(self) -> Mask:
        """(S, h, m) what is so far outside that its effect is not known."""
        return np.asarray(self.ratio > 1.0)

    @property
    def usual(self) -> Array:
        """(S, m) values of columns that are usual: medians, the most common level, no holiday."""
        m, found = len(self.panel.names), np.zeros(self.values[:, 0].shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a series may have no rows
            found[:, :m] = np.nan_to_num(np.nanmedian(self.panel.columns[:, :, :m], axis=1))
            means = np.nan_to_num(np.nanmean(self.panel.columns[:, :, :m], axis=1))
        for columns in self.groups.values():
            if len(columns) > 1 and columns[0] < m:  # levels of a column of text
                found[:, columns] = np.eye(len(columns))[means[:, columns].argmax(axis=1)]
        return found

    def list_cases(self) -> dict[str, Array]:
        """(S, m) columns as usual but for one thing, by its name: see :func:`compute_effects`."""
        found = {}
        for columns in self.groups.values():
            level = len(columns) > 1 and columns[0] < len(self.panel.names)
            for place in columns if columns[0] < len(self.panel.names) else ():
                case = self.usual.copy()
                case[:, columns] *= 1.0 - level
                case[:, place] += 1.0
                found[str(self.panel.names[place])] = case
        for name, places in self.occasions.items():
            found[name] = self.usual.copy()
            found[name][:, places] = 1.0
        return {name: case for name, case in found.items() if (case != self.usual).any()}

    def widen(self, path: Paths, effects: Array) -> Paths:
        """Paths of one form with the variance of what is not known; ``effects`` are (S, m)."""
        for unseen in self.measure_unseen(effects).values():
            path = path.add_shocks(unseen[:, :, None])
        if not self.far.any():
            return path
        noise = path.noise.mean(axis=1)[:, None]
        width = self.high - self.low
        scale = np.sqrt(np.square(effects * np.where(np.isfinite(width), width, 0.0)) + noise**2)
        fixed = never_varied(self.low, self.high)
        scale = np.where(fixed, self._find_level_changes(path.log)[:, None], scale)
        return path.add_shocks(scale[:, None] * np.log(self.ratio))

    @cached_property
    def unseen(self) -> dict[str, tuple[Array, Sequence[int], float]]:
        """Where (S, h) there is a holiday or a level of text that was not seen, and the seen ones.

        By the names of groups; levels of text are columns of which each learned row has one.
        """
        found = {
            name: (1.0 - self.given[:, :, columns].sum(axis=2), columns, _widen_few(k))
            for name, columns in self.groups.items()
            if (k := len(columns)) > 1
            and columns[0] < len(self.panel.names)
            and has_one_each(self.panel.columns[:, :, columns])
        }
        if len(self.holidays) > 1:
            found[HOLIDAYS] = self.values[:, :, self.holidays[0]], self.holidays[1:], 1.0
        return {name: one for name, one in found.items() if one[0].any()}

    def measure_unseen(self, effects: Array) -> dict[str, Array]:
        """(S, h) standard deviations of the effects of what was not seen, by group.

        It differs from others as those that were seen do: of levels of text by a factor
        (:func:`_widen_few`), as their effects are those beyond their mean.
        """
        return {
            name: np.sqrt(np.square(effects[:, seen]).mean(axis=1) * factor)[:, None] * where
            for name, (where, seen, factor) in self.unseen.items()
        }

    def warn(self, stacklevel: int) -> None:
        """Warn of values that are far outside, and new levels, naming the first of each column."""
        for name, (unseen, *_) in self.unseen.items():
            if name != HOLIDAYS:
                series, step = np.argwhere(unseen)[0]
                warnings.warn(
                    f"X_future has a level of {name!r} for {self._describe(series, step)} that was "
                    "not learned: its effect is taken to differ from the others' as they do from "
                    "each other; correct it if it is wrong",
                    ForecastWarning,
                    stacklevel=stacklevel + 1,
                )
        for column, name in enumerate(self.panel.names):
            where = np.argwhere(self.far[:, :, column])
            if len(where):
                series, step = where[0]
                low, high = self.low[series, column], self.high[series, column]
                learned = (
                    f"from {low:,.10g} to {high:,.10g}" if high > low else f"always {low:,.10g}"
                )
                more = f" (and at {len(where) - 1} more)" if len(where) > 1 else ""
                warnings.warn(
                    f"X_future has {name!r} = {self.given[series, step, column]:,.10g} for "
                    f"{self._describe(series, step)}{more}, and in "
                    f"the learned rows it was {learned}: its effect so far outside is not known, "
                    "and intervals there are wide; correct the value if it is wrong",
                    ForecastWarning,
                    stacklevel=stacklevel + 1,
                )

    def _describe(self, series: int, step: int) -> str:
        """A step of a series in words."""
        time = format_time(self.panel.calendar.stamps(self.panel.ends[series] + step + 1))
        return f"{self.panel.describe_series(self.panel.ids[series])} at {time}"

    def _find_level_changes(self, log: bool) -> Array:
        """(S,) the standard deviation of an effect of which nothing is known."""
        values = np.where(np.isfinite(self.panel.values), self.panel.values, 0.0)
        count = np.maximum(self.panel.observed, 1)
        level = np.sqrt(np.square(values).sum(axis=1) / count)
        return np.full(len(level), np.log1p(UNKNOWN_EFFECT)) if log else UNKNOWN_EFFECT * level


def _widen_few(k: int) -> float:
    """Variance of the effect of a new level over the mean square of those of k that were seen.

    That of one more normal, whose mean and variance are not known, is (k + 1) / (k - 1); its 90%
    intervals are those of Student's t with k - 1 degrees of freedom.
    """
    return float((k + 1.0) / (k - 1.0) * np.square(stdtrit(k - 1.0, 0.95) / ndtri(0.95)))


def has_one_each(columns: Array) -> bool:
    """Return True where each row of columns (S, T, k) that is known has a one, and zeros."""
    rows = columns[np.isfinite(columns).all(axis=2)]
    return bool((rows.max(axis=1, initial=0.0) == 1.0).all() and (rows != 0.0).sum() == len(rows))


def never_varied(low: Array, high: Array) -> Mask:
    """Return True where a column was the same, to rounding, in all rows learned."""
    return np.asarray(high - low <= SMALLEST_RANGE * np.maximum(np.abs(low), np.abs(high)))
