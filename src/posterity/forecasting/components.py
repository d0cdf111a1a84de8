"""What a forecast is the sum of: a trend, seasons, holidays and exogenous columns.

Of each form and draw the expected path is taken twice: with all columns, and as if exogenous ones
were as usual and there were no holidays. What a column adds is linear in it; of a path in
logarithms it is its share of the whole difference, by the logarithmic mean of both paths (Ang
2005), so that components add up. The path without effects follows the values before it. What a
moving mean over a period takes away from that is the season of the period, the shortest first; what
is left of all is the trend (Cleveland and others 1990).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import AnyArray, Array, Indices, Mask
from posterity.forecasting.ensemble import FormLevels, Learner, join_paths
from posterity.forecasting.gaps import carry_forward
from posterity.forecasting.holidays import CLOSED, TREND
from posterity.forecasting.log_scale import LARGEST_LOG
from posterity.forecasting.marginals import Component, Marginals, scale_spread
from posterity.forecasting.names import make_names_array
from posterity.forecasting.paths import Paths, continue_changes
from posterity.forecasting.plans import Plan
from posterity.forecasting.rows import Levels
from posterity.forecasting.steps import StepsAhead, make_frame
from posterity.safety import check_memory

Numbers = Indices
Steps = NDArray[np.int64]

# Standard deviation by which draws of a component are smoothed, in that of all draws.
SMOOTHING = 0.2
# Share of the variance of a step that is noise of its value alone: that and not more is known of
# a series that may as well walk.
NOISE = 0.5
# Changes of values before, at most, by which it is found how much of their noise is repeated.
PROBES = 32
# Beyond the range of most paths, what a path in logarithms may rise by.
LARGEST_RISE = 1.0
# Changes of a logarithm that are as small as no change.
SMALL = 1e-9
# Arrays of all draws and steps that one form's components take.
COPIES = 8


@dataclass(frozen=True, eq=False)
class Components(Mapping[str, StepsAhead]):
    """Components of a forecast by name: each a distribution over series and steps.

    "trend", "season 7" for a period of 7 steps, "holidays", "closed" on days that are known to have
    0, and own events and exogenous columns by
    their names: what they add beyond their usual value, the median or the most common level. Means
    add up to that of the forecast's expected course.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.forecasting import Forecaster
    >>> t = np.arange(140)
    >>> rng = np.random.default_rng(0)
    >>> y = 50 + 0.1 * t + 5 * np.sin(2 * np.pi * t / 7) + rng.normal(size=140)
    >>> components = Forecaster(seasonality=7).fit(y).forecast(7).components()
    >>> list(components)
    ['trend', 'season 7']
    >>> low, high = components["trend"].interval(0.95)
    >>> bool(((low < 64 + 0.1 * np.arange(7)) & (64 + 0.1 * np.arange(7) < high)).all())
    True
    """

    parts: Mapping[str, StepsAhead]

    def __getitem__(self, name: str) -> StepsAhead:
        if name not in self.parts:
            raise KeyError(f"there is no component {name!r}: there are {list(self.parts)}")
        return self.parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        """Return the components and how large each is."""
        sizes = (f"{name} {_describe_range(part.mean())}" for name, part in self.parts.items())
        return f"Components({', '.join(sizes)})"

    def to_columns(self, level: float = 0.95) -> dict[str, AnyArray]:
        """Columns of a long table: series, times, and each component with its interval."""
        first = next(iter(self.parts.values()))
        found: dict[str, AnyArray] = {
            "unique_id": np.repeat(make_names_array(first.ids), np.shape(first.times)[-1]),
            "ds": first.calendar.write(np.asarray(first.times).reshape(-1)),
        }
        for name, part in self.parts.items():
            low, high = part.interval(level)
            found[name] = part.mean().reshape(-1)
            found[f"{name}-lo-{100 * level:g}"] = low.reshape(-1)
            found[f"{name}-hi-{100 * level:g}"] = high.reshape(-1)
        return found

    def to_frame(self, level: float = 0.95) -> Any:
        """The same as a pandas data frame.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return make_frame(self.to_columns(level))


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the components of a forecast are computed from, when they are asked for.

    ``shares`` (S, F) are the weights of the ``learners``, whose paths are as wide as ``factor``;
    ``future`` (S, h', m) are the columns of the next steps, and ``steps`` (S, h) which of these are
    forecast. Of steps that are ``closed`` (S, h) a component takes away all others.
    """

    learners: Sequence[Learner]
    levels: FormLevels
    plan: Plan
    future: Array
    steps: Steps
    shares: Array
    factor: float
    size: int
    periods: Sequence[float]
    closed: Mask

    def get_history(self, name: Any) -> tuple[AnyArray, Array]:
        """Times and values (n,) of the learned rows of a series."""
        panel, number = self.plan.panel, self.plan.panel.ids.index(name)
        length = int(panel.lengths[number])
        times = panel.calendar.stamps(panel.ends[number] + np.arange(1 - length, 1))
        return times, panel.values[number, panel.length - length :]

    def compute(self, ids: Sequence[Any], *, single: bool) -> Components:
        """Components of some of the series, by their names."""
        panel = self.plan.panel
        series = np.array([number for number, name in enumerate(panel.ids) if name in ids])
        margins = sum(count_margin(*season) for season in list_seasons(self.periods))
        length = self.future.shape[1] + margins
        check_memory(
            8.0 * COPIES * len(self.shares) * self.size * length * (2 + len(self.plan.groups)),
            f"the components of {len(self.shares):,} series and {length:,} steps",
        )
        found: dict[str, list[Component]] = {}
        for learner in self.learners:
            for name, part in self._explain(learner, series, margins).items():
                found.setdefault(name, []).append(part)
        index = panel.ends[series, None] + np.arange(1, self.steps.shape[1] + 1)
        times = panel.calendar.stamps(index)
        return Components(
            {
                name: StepsAhead(
                    tuple(panel.ids[number] for number in series),
                    Marginals(parts, self.shares[series]),
                    single,
                    times[0] if single else times,
                    panel.calendar,
                )
                for name, parts in found.items()
            }
        )

    def _explain(self, learner: Learner, series: Numbers, margins: int) -> dict[str, Component]:
        """Components of one form, and of its draws."""
        length = self.future.shape[1] + margins
        none = np.repeat(self.plan.usual[:, None], length, axis=1)
        base, levels = self.draw(learner, none).part(series), self.levels[learner.form]
        history = _find_history(levels, learner.learned, margins)[series]
        found, sds = split_seasons(base, history, self.periods)
        echoes = find_echoes(learner, levels, series, history, none.shape[1], self.periods)
        noise = np.sqrt(NOISE) * base.noise[:, :, None] * base.slopes(found[TREND])
        sds = {name: np.hypot(sd, noise * echoes[name][:, None]) for name, sd in sds.items()}
        found |= self._find_effects(learner, base, none, series)
        at = np.broadcast_to(self.steps[series, None] - 1, (*base.noise.shape, self.steps.shape[1]))
        means = {name: np.take_along_axis(one, at, axis=2) for name, one in found.items()}
        sds = {name: np.take_along_axis(one, at, axis=2) for name, one in sds.items()}
        if self.closed.any():
            whole = sum(means.values(), np.zeros(1))
            means[CLOSED] = np.where(self.closed[series, None], -whole, 0.0)
        for name, unseen in self.plan.measure_unseen(levels.effects).items():
            sds[name] = unseen[series, None] * base.slopes(means[TREND])
        parts = {}
        for name, mean in means.items():
            spread = SMOOTHING * mean.std(axis=1, keepdims=True)
            sd = np.hypot(sds.get(name, 0.0), np.broadcast_to(spread, mean.shape))
            parts[name] = scale_spread(Component(mean, sd, log=False), self.factor)
        return parts

    def _find_effects(
        self, learner: Learner, base: Paths, none: Array, series: Numbers
    ) -> dict[str, Array]:
        """(S, K, h) what columns add to the path on which they are as usual."""
        found = {}
        for name, columns in self.plan.groups.items():
            some = self.draw(learner, _keep_columns(self.future, columns, none)).part(series)
            found[name] = some.mean - base.mean
        if not (base.log and found):
            return found
        total = sum(found.values(), np.zeros(1))
        total = np.where(np.abs(total) < SMALL, SMALL, total)
        mean = base.scale.changes(base.mean, total) / total
        return {name: mean * one for name, one in found.items()}

    def draw(self, learner: Learner, future: Array) -> Paths:
        """Paths of one form with other columns (S, h, m) of the next steps."""
        return join_paths(learner.paths(self.levels[learner.form], future, self.size))


def list_seasons(periods: Sequence[float]) -> list[tuple[float, int]]:
    """Each period with how many of it the next one has, where that is a whole number; else 0."""
    following = (*periods, 0.0)[1:]
    return [
        (period, int(after // period) if after % period == 0.0 else 0)
        for period, after in zip(periods, following, strict=True)
    ]


def count_margin(period: float, cycles: int) -> int:
    """Steps on either side that the season of a period is found from."""
    return _count_half(period) + (int(period) * _count_half(cycles) if cycles else 0)


def split_seasons(
    base: Paths, history: Array, periods: Sequence[float]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Trend and seasons (S, K, h) of paths that follow a history (S, P), and their spreads.

    The last steps of the paths, as many as the margins of all periods, are used up. The trend goes
    where shocks move it: its variance grows with that of the steps.
    """
    before = np.broadcast_to(history[:, None], (*base.mean.shape[:2], history.shape[1]))
    rest = np.concatenate([before, base.mean], axis=2)
    responses = np.concatenate([np.zeros(before.shape), base.responses], axis=2)
    early = np.zeros((*rest.shape, 0))
    if base.early is not None:
        early = np.concatenate([np.zeros((*before.shape, base.early.shape[3])), base.early], axis=2)
    margin, found = history.shape[1], {}
    h = base.mean.shape[2] - margin
    if base.log:
        rest = base.scale.values(_limit(rest, margin + h))
    for period, cycles in list_seasons(periods):
        margin -= count_margin(period, cycles)
        season, rest = _split(rest, period, cycles)
        found[f"season {period:g}"] = season[:, :, margin : margin + h]
        responses, early = (_split(one, period, cycles)[1] for one in (responses, early))
    squares = np.cumsum(np.square(responses), axis=2)[:, :, -h:]
    squares += np.square(early[:, :, :h]).sum(axis=3)
    grown = np.cumsum(np.square(base.responses[:, :, :h]), axis=2)
    squares = np.maximum(squares, squares[:, :, :1] + grown - grown[:, :, :1])
    sd = base.noise[:, :, None] * np.sqrt(squares)
    none = {name: np.zeros(sd.shape) for name in found}
    return {TREND: rest} | found, {TREND: base.slopes(rest) * sd} | none


def find_echoes(
    learner: Learner,
    levels: Levels,
    series: Numbers,
    history: Array,
    steps: int,
    periods: Sequence[float],
) -> dict[str, Array]:
    """(S, h) by how much trend and seasons repeat noise in the values before.

    It is the root of the sum of squares of what a change of one in each of them changes.
    """
    form, length = learner.form, max(learner.form.length, history.shape[1])
    changes = _make_changes(length)
    found: dict[str, list[Array]] = {}
    for weights in learner.coefficients(levels, series):
        path = continue_changes(form, weights, changes[:, length - form.length :], steps)
        parts, _ = split_seasons(path, changes[:, length - history.shape[1] :], periods)
        for name, part in parts.items():
            found.setdefault(name, []).append(np.sqrt(np.square(part[:, 0]).sum(axis=0)))
    return {name: np.array(each) for name, each in found.items()}


# ---- inner ---------------------------------------------------------------------------------------


def _split(values: Array, period: float, cycles: int) -> tuple[Array, Array]:
    """The season of a period in steps, the third axis, and the rest: what a moving mean leaves.

    Where a longer season has so many ``cycles`` of it, the mean of these: what differs between them
    is of the longer season.
    """
    smooth, cut = _average(values, period), _count_half(period)
    season = values[:, :, cut:-cut] - smooth
    if not cycles:
        return season, smooth
    season = _average(season, cycles, int(period))
    cut = count_margin(period, cycles)
    return season, values[:, :, cut:-cut] - season


def _average(values: Array, count: float, stride: int = 1) -> Array:
    """Moving means over a ``count``, whole or not, of values a stride apart on the third axis."""
    half, n = _count_half(count), values.shape[2]
    length = n - 2 * half * stride
    ends = 0.5 * (count - (2 * half - 1))
    if stride == 1:
        sums = np.concatenate([np.zeros_like(values[:, :, :1]), np.cumsum(values, axis=2)], axis=2)
        total = sums[:, :, 2 * half : n] - sums[:, :, 1 : length + 1]
    else:
        inner = range(stride, 2 * half * stride, stride)
        total = sum((values[:, :, at : at + length] for at in inner), np.zeros(1))
    total = total + ends * (values[:, :, :length] + values[:, :, n - length :])
    return np.asarray(total / count)


def _count_half(count: float) -> int:
    """Values on either side that a moving mean takes in."""
    return int((count - 1.0) // 2) + 1


@lru_cache(maxsize=16)
def _make_changes(length: int) -> Array:
    """Changes (n, L) of L values whose effects have a sum of squares as those of one in each.

    In expectation, of many values: at random up or down (Hutchinson 1990).
    """
    if length <= PROBES:
        return np.eye(length)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(PROBES, length))
    return np.asarray(signs / np.sqrt(PROBES))


def _limit(logarithms: Array, stop: int) -> Array:
    """Paths (S, K, n) within a factor of where most are before a step: a few may go anywhere."""
    middle = np.median(logarithms[:, :, :stop], axis=1, keepdims=True)
    low, high = middle.min(axis=2, keepdims=True), middle.max(axis=2, keepdims=True)
    return np.clip(logarithms, low - LARGEST_RISE, np.minimum(high + LARGEST_RISE, LARGEST_LOG))


def _find_history(levels: Levels, column: int, count: int) -> Array:
    """(S, P) the levels before a column; those before a series began are as its first."""
    some = levels.bridged[:, max(column - count, 0) : column]
    some = np.pad(some, ((0, 0), (count - some.shape[1], 0)), constant_values=np.nan)
    return carry_forward(carry_forward(some)[:, ::-1])[:, ::-1]


def _keep_columns(future: Array, columns: Sequence[int], none: Array) -> Array:
    """The values of some columns in the next steps; others, and later ones, are as usual."""
    some = none.copy()
    some[:, : future.shape[1], columns] = future[:, :, columns]
    return some


def _describe_range(values: Array) -> str:
    return f"{np.min(values):.4g} to {np.max(values):.4g}"
