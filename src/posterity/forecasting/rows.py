"""Series as rows of a regression, by form, and the triangles that learn them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.signal import oaconvolve

from posterity.aliases import Array, Indices
from posterity.factor.grouped import GroupBank
from posterity.factor.grouped_rows import GroupedRows, check_together
from posterity.forecasting.forms import Form, count_sines
from posterity.forecasting.gaps import bridge_gaps, carry_forward, find_nearest_lags
from posterity.forecasting.log_scale import LOGARITHMS, LogScale
from posterity.forecasting.moves import Moves
from posterity.forecasting.panel import Panel

# Values in the rows that are built at once.
BLOCK = 4_000_000
# Most columns learned at once, and multiply-adds that take as long as another call.
MOST_TOGETHER, TOGETHER = 64, 40_000
# Columns of the panel that are learned together, from which on long means are taken by filters.
MANY_COLUMNS = 1_000
# Most steps since the last observed value whose noise is counted.
MOST_BEHIND = 500
# Steps in which a level on a line changes by its slope.
LONG = 100.0


@dataclass(frozen=True, eq=False)
class Levels:
    """Values z (S, T) of a panel on the scale of a form, and the same with gaps bridged.

    ``bridged`` has, where none was observed, the value ``back`` (S,) steps before, and NaN before
    the first. Both are less what exogenous ``columns`` (S, T, m) have by their ``effects`` (S, m),
    and by what the level has moved since, by its ``moves``. The number of the first column in the
    calendar is ``begins`` (S,). The first ``n_lagged`` columns are those that users gave: what they
    were ``column_lags`` steps before comes after all of them.
    """

    observed: Array
    bridged: Array
    columns: Array
    effects: Array
    back: Indices
    begins: NDArray[np.int64]
    moves: Moves
    column_lags: tuple[int, ...] = ()
    n_lagged: int = 0

    @classmethod
    def of(
        cls,
        panel: Panel,
        *,
        log: bool,
        scale: LogScale = LOGARITHMS,
        first: int | None = None,
        periods: Sequence[int] = (),
    ) -> Levels:
        """The levels; of logarithms NaN for series that do not have them throughout.

        Those from column ``first`` on, if it is given, are not known before they come: a series
        then has logarithms until a value that has none. Gaps are bridged by the value before, or
        that of one of the ``periods`` before, whichever has been nearer.
        """
        values, none = panel.values, np.zeros((len(panel), panel.columns.shape[2]))
        known = panel.length if first is None else first
        back = find_nearest_lags(values[:, :known], periods)
        begins = panel.ends - (panel.length - 1)
        has_level = np.ones(values.shape, dtype=bool)
        if log:
            values = scale.find(values)
            has_level = np.logical_and.accumulate(~np.isinf(values), axis=1)
            has_level[:, :known] = has_level[:, known - 1 : known]
            values = np.where(has_level, values, np.nan)
        moves = Moves.of(values, panel.left_out, known, periods)
        values = values - moves.moved
        bridged = np.where(has_level, bridge_gaps(values, back), np.nan)
        return cls(values, bridged, panel.columns, none, back, begins, moves, (), len(panel.names))

    def with_lags(self, column_lags: tuple[int, ...]) -> Levels:
        """The same with exogenous columns of some steps before, of levels without any."""
        columns = add_lags(self.columns, column_lags, self.n_lagged)
        effects = np.zeros((len(columns), columns.shape[2]))
        return replace(self, columns=columns, effects=effects, column_lags=column_lags)

    def less_columns(self, effects: Array) -> Levels:
        """The same less what columns have by these effects (S, m), of levels that still have it."""
        observed = self.observed - np.einsum("stm,sm->st", np.nan_to_num(self.columns), effects)
        bridged = np.where(np.isnan(self.bridged), np.nan, bridge_gaps(observed, self.back))
        return replace(self, observed=observed, bridged=bridged, effects=effects)

    @property
    def exogenous(self) -> Array:
        """(S, T, m) exogenous columns without their lags."""
        return self.columns[:, :, : self.columns.shape[2] - self.n_lagged * len(self.column_lags)]

    def find_behind(self, columns: Indices) -> Indices:
        """(n S,) how many levels have come, before each column, since the last observed one."""
        first, stop = max(int(columns[0]) - MOST_BEHIND, 0), int(columns[-1])
        known = np.isfinite(self.observed[:, first:stop])
        last = np.maximum.accumulate(np.where(known, np.arange(first, stop), -stop), axis=1)
        behind = np.minimum(columns - 1 - last[:, columns - 1 - first], MOST_BEHIND)
        return np.where(np.isfinite(self.bridged[:, columns - 1]), behind, 0).T.reshape(-1)

    def find_last(self, last: Indices, length: int) -> Array:
        """(n S, L) the last levels up to columns ``last`` (n S,), observed ones.

        A series had its first level before.
        """
        places = last[:, None] + np.arange(1 - length, 1)
        series = np.arange(len(last))[:, None] % len(self.bridged)
        some = np.where(places >= 0, self.bridged[series, np.maximum(places, 0)], np.nan)
        return carry_forward(some[:, ::-1])[:, ::-1]

    def find_ahead(self, places: Indices, exogenous: Array, form: Form) -> Array:
        """(n S, b, q) known columns of a form at places (n S, b), of exogenous ones (S, T', m)."""
        whole = add_lags(exogenous, self.column_lags, self.n_lagged)
        series = np.broadcast_to(np.arange(len(places))[:, None] % len(whole), places.shape)
        known = _build_known(form, whole, self.begins, series, places)
        return np.nan_to_num(np.concatenate(known, axis=2))

    def find_offsets(self, steps: Indices, exogenous: Array) -> Array:
        """(n S, h) what levels are less of at steps (n, h), with exogenous columns (S, T', m)."""
        whole = add_lags(exogenous, self.column_lags, self.n_lagged)[:, steps]
        effects = np.einsum("snhm,sm->nsh", np.nan_to_num(whole), self.effects)
        return np.concatenate(effects + self.moves.find_at(steps))


def add_lags(columns: Array, lags: tuple[int, ...], count: int) -> Array:
    """(S, T, m + n count) columns (S, T, m), and what the first ones were so many steps before."""
    some = columns[:, :, :count]
    before = [
        np.pad(some, ((0, 0), (lag, 0), (0, 0)), mode="edge")[:, : columns.shape[1]]
        for lag in lags
        if some.size
    ]
    return np.concatenate([columns, *before], axis=2)


def learn(bank: GroupBank, levels: Levels, form: Form, first: int, stop: int) -> None:
    """Have the triangles of all series learn the targets in columns ``first`` to ``stop``."""
    first = max(first, form.length)
    if stop <= first:
        return
    width = len(form.reach) + n_columns(form, levels) + 3
    if form.long_columns.any() and stop - first >= MANY_COLUMNS:
        width = int(form.window[:, ~form.long_columns].any(axis=1).sum()) + form.n_lags
        width += n_columns(form, levels) + 3
    columns = max(1, min(BLOCK // width, stop - first))
    share = max(1, BLOCK // (columns * width))
    for begin, start in itertools.product(range(first, stop, columns), range(0, bank.size, share)):
        which = slice(start, min(start + share, bank.size))
        end = min(begin + columns, stop)
        rows, numbers, _ = _build_rows(levels, form, begin, end, which)
        _learn(bank, rows, numbers, np.arange(which.start, which.stop), form.discount)


def learn_each(
    bank: GroupBank, levels: Levels, form: Form, first: int, stop: int
) -> Iterator[GroupBank]:
    """Banks of what is known after each column, (n S,) of some columns one after another.

    What ``bank`` knows stays as it is. Columns are learned at once, each by a copy that learns
    those before it, too.
    """
    begin, size = min(max(first, form.length), stop), bank.size
    if begin > first:
        yield bank.repeat(begin - first)
    # Each column learns those before it, so that the cost grows with the square of their number.
    ahead = np.sqrt(TOGETHER / (size * bank.n_coefficients**2 + 1))
    ahead = int(np.clip(ahead, 1, MOST_TOGETHER))
    for start in range(begin, stop, ahead):
        columns = min(ahead, stop - start)
        rows, numbers, at = _build_rows(levels, form, start, start + columns, slice(0, size))
        copy, row = np.nonzero(at <= np.arange(columns)[:, None])
        order = np.lexsort((at[row], copy))
        copy, row = copy[order], row[order]
        copies = bank.repeat(columns)
        slots = np.arange(copies.size)
        _learn(
            copies, rows[row], (copy * size + numbers[row]).astype(np.int32), slots, form.discount
        )
        yield copies
        bank = copies.select(np.arange(-size, 0))


def compute_residuals(
    levels: Levels, form: Form, coefficients: Array, which: Indices, first: int
) -> Array:
    """(s, T - first) targets of the series ``which`` (s,), less what coefficients (s, p) expect.

    NaN where there is no target.
    """
    residuals = np.full((len(which), levels.observed.shape[1] - first), np.nan)
    stop, begin = levels.observed.shape[1], max(first, form.length)
    if stop > begin:
        rows, series, at = _build_rows(levels, form, begin, stop, which)
        expected = np.einsum("np,np->n", rows[:, :-1], coefficients[series])
        residuals[series, begin - first + at] = rows[:, -1] - expected
    return residuals


def n_columns(form: Form, levels: Levels) -> int:
    """p, the coefficients of a form: of its level, lags, exogenous columns, waves and drift."""
    drift = int(form.drift and form.difference > 0)
    return form.n_free + form.n_lags + levels.columns.shape[2] + form.n_waves + drift


def make_bank(form: Form, levels: Levels) -> GroupBank:
    """A triangle for each series, which knows nothing."""
    bank = GroupBank(n_columns(form, levels))
    bank.grow(len(levels.observed))
    return bank


# ---- inner ---------------------------------------------------------------------------------------


def _learn(
    bank: GroupBank, rows: Array, numbers: NDArray[np.int32], slots: Indices, rate: float
) -> None:
    if len(rows):
        X, y = np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])
        check_together(X, y, None)
        bank.learn(GroupedRows(X, y, None, False, numbers, slots), rate)


def _build_rows(
    levels: Levels, form: Form, first: int, stop: int, which: slice | Indices
) -> tuple[Array, NDArray[np.int32], Indices]:
    """Rows [free, lags, others, target] (n, p + 1), and of which series and column each is.

    See :func:`_build_known`.
    """
    length, back = form.length, form.difference
    bridged = levels.bridged[which]
    target = levels.observed[which, first:stop]
    if back:
        target = target - bridged[:, first - back : stop - back]
    kept = np.isfinite(target) & np.isfinite(bridged[:, first - length : stop - length])
    series, at = np.nonzero(kept)
    free, others = _build_known(
        form, levels.columns[which], levels.begins[which], series, first + at
    )
    looked_at = _look_back(bridged, form, first, stop, series, at)
    rows = np.concatenate([free, looked_at, others, target[series, at][:, None]], axis=1)
    usable = np.isfinite(rows).all(axis=1)
    return rows[usable], series[usable].astype(np.int32), at[usable]


def _look_back(
    bridged: Array,
    form: Form,
    first: int,
    stop: int,
    series: Indices,
    at: Indices,
) -> Array:
    """(n, p) columns of the last levels of rows: those of long means for all columns at once."""
    long = form.long_columns if stop - first >= MANY_COLUMNS else np.zeros(form.n_lags, dtype=bool)
    found = np.empty((len(series), form.n_lags))
    # Of the last values only those that some column looks at.
    window = form.window[:, ~long]
    lags = np.flatnonzero(window.any(axis=1)) + 1
    found[:, ~long] = bridged[series[:, None], first + at[:, None] - lags] @ window[lags - 1]
    if long.any():
        values = bridged[:, first - form.length : stop - 1]
        centre = np.nanmean(np.where(np.isfinite(values), values, np.nan), axis=1, keepdims=True)
        values = np.nan_to_num(values - centre)
        for column in np.flatnonzero(long):
            weights = form.window[:, column]
            means = oaconvolve(values, weights[None], mode="valid", axes=1)
            found[:, column] = (means + weights.sum() * centre)[series, at]
    return found


def _build_known(
    form: Form,
    exogenous: Array,
    begins: NDArray[np.int64],
    series: Indices,
    places: Indices,
) -> tuple[Array, Array]:
    """Columns (..., q) that are known ahead, of ``series`` (...) at ``places`` in the panel.

    Those whose coefficients are free, of the level and its slope; and the others: exogenous columns
    less those a difference before, waves, and the drift.
    """
    d, shape = form.difference, (*places.shape, 1)
    free = [np.ones(shape), places[..., None] / LONG][: form.n_free]
    others = []
    if exogenous.shape[2]:
        now = exogenous[series, places]
        before = np.where((places >= d)[..., None], exogenous[series, np.maximum(places - d, 0)], 0)
        others.append(now - before if d else now)
    numbers = begins[series] + places
    for period, count in form.waves:
        angle = 2.0 * np.pi / period * np.mod(numbers, period)[..., None] * np.arange(1, count + 1)
        others += [np.cos(angle), np.sin(angle[..., : count_sines(period, count)])]
    if d and form.drift:
        others.append(np.ones(shape))
    none = np.zeros((*places.shape, 0))
    return np.concatenate([none, *free], axis=-1), np.concatenate([none, *others], axis=-1)
