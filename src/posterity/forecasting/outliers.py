"""Values that no forecast of one step expected: single ones, and the first after a step.

A value is expected by what was nearest before: the last value, the mean of the last five, those of
the same place in earlier seasons, or these with the level of now. It is an outlier if it is further
off than ten standard errors of the best of these, in values and, of positive series, also in
logarithms. That is known when it comes: rows that are learned one by one and at once leave out the
same. If the value after it is as far off, to the same side, the level has moved with it. It has as
well if eight values in a row are off by six standard errors on average, to the same side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Mask
from posterity.forecasting.gaps import bridge_gaps, carry_forward
from posterity.forecasting.panel import OUTLIER, STEP, Panel
from posterity.kernel.values import is_word

Marks = NDArray[np.int8]

# Fewest values before an outlier, fewest errors of what expects it, and values for each outlier
# that may be left out.
FEWEST_VALUES, FEWEST_ERRORS, VALUES_AN_OUTLIER = 20, 10, 25
# Standard errors that an outlier is beyond, by the mean absolute error of a normal.
LARGEST_ERROR, NORMAL = 10.0, float(np.sqrt(0.5 * np.pi))
# Share of that error that the next value has at least, if the level has moved.
STAYS = 0.5
# Standard errors, on average, of so many values in a row, by which it has moved as well.
LASTING, LASTS = 6.0, 8
# Values in the mean that is the level, and seasons in that of a place.
LEVEL, SEASONS = 5, 3
# Logarithms of values of 0 are those of this share of the smallest positive one.
FLOOR = 0.1
# Standard deviations from the mean so far within which an exogenous column is as usual.
USUAL = 1.5
# Errors are at least this share of the largest value: less is rounding.
ROUNDING = 1e-12
# Values in a block of series.
BLOCK = 4_000_000


def check_outliers(outliers: Any) -> None:
    """Raise ``ValueError`` unless ``outliers`` is "ignore" or "learn"."""
    if not is_word(outliers, "ignore", "learn"):
        raise ValueError(
            f'outliers is {outliers!r}: give "ignore" to leave out values that are far from all '
            'others, or "learn" to learn them'
        )


def leave_out_outliers(panel: Panel, outliers: str, periods: Sequence[float] = ()) -> Panel:
    """The same without the values that are ignored."""
    if outliers == "learn":
        return panel
    found = find_outliers(panel.values, periods, panel.columns)
    if not found.any():
        return panel
    return replace(panel, values=np.where(found > 0, np.nan, panel.values), left_out=found)


def find_outliers(
    values: Array, periods: Sequence[float] = (), columns: Array | None = None
) -> Marks:
    """(S, T) which of the values (S, T) are outliers: 1, or 2 where the level moves with it.

    NaN was not observed. At most one in 25 is an outlier, and none where most values are as the one
    before, as in demand that is mostly 0. A value whose exogenous ``columns`` (S, T, m) are not as
    usual is none either, and says nothing of the others: they may say why it is so far.

    Examples
    --------
    >>> y = np.sin(np.arange(60.0))
    >>> y[30], y[40:] = 50.0, y[40:] + 1000.0
    >>> find_outliers(y[None])[0, [29, 30, 31, 40, 41]].tolist()
    [0, 1, 0, 2, 0]
    """
    found = np.zeros(values.shape, dtype=np.int8)
    if columns is not None and columns.shape[2]:
        values = np.where(_find_unusual(columns), np.nan, values)
    whole = _choose_whole(periods, values.shape[1])
    share = max(1, BLOCK // max(values.shape[1], 1))
    for start in range(0, len(values), share):
        some = slice(start, start + share)
        for number in start + np.flatnonzero(_may_have_outliers(values[some], whole)):
            found[number] = _Search.of(values[number], whole).run()
    return found


def compare_with_expected(x: Array, known: Mask, periods: Sequence[float]) -> tuple[Array, Array]:
    """(S, T) errors of the best that expects each value of ``x``, and their standard errors so far.

    Where there are too few errors, both are NaN, as they are where a value is not ``known``.
    """
    expected, sd = expect_values(x, known, periods)
    return np.where(known, x - expected, np.nan), np.where(known, sd, np.nan)


def expect_values(x: Array, known: Mask, periods: Sequence[float]) -> tuple[Array, Array]:
    """(S, T) what each value of ``x`` is expected to be, and the standard error of that so far.

    By the best, which is that with the smallest mean absolute error of ``known`` values so far.
    Where there are too few errors, both are NaN.
    """
    best, least = np.full(x.shape, np.nan), np.full(x.shape, np.inf)
    for expected in _expect(x, _choose_whole(periods, x.shape[1])):
        counted = known & np.isfinite(x - expected)
        sizes = np.where(counted, np.abs(x - expected), 0.0)
        count: Array = np.cumsum(counted, axis=1) - counted
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            size = (np.cumsum(sizes, axis=1) - sizes) / count
        better = np.isfinite(expected) & (count >= FEWEST_ERRORS) & (size < least)
        best[better], least[better] = expected[better], size[better]
    with np.errstate(invalid="ignore"):
        rounding = ROUNDING * np.fmax.accumulate(np.abs(x), axis=1)
        least = np.where(least > 0.0, np.maximum(least, rounding), least)
    return best, NORMAL * np.where(np.isfinite(least), least, np.nan)


# ---- inner ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Search:
    """The search in one series, on two ``scales`` (T,): values, and logarithms.

    Those say nothing where ``negative``: once a value was. ``known`` values were observed and not
    left out, and those that are ``usable`` may be outliers; ``periods`` are seasonal. The
    ``changes`` (T,) of values are as they came.
    """

    scales: tuple[Array, Array]
    negative: Mask
    known: Mask
    usable: Mask
    periods: tuple[int, ...]
    changes: Array

    @classmethod
    def of(cls, values: Array, periods: tuple[int, ...]) -> _Search:
        known, filled = np.isfinite(values), _fill_gaps(values[None], periods)[0]
        usable = known & _find_usable(values[None], known[None])[0]
        negative = np.logical_or.accumulate(filled < 0.0)
        scales = filled.copy(), _take_logarithms(filled)
        return cls(scales, negative, known, usable, periods, np.diff(filled, prepend=np.nan))

    def run(self) -> Marks:
        """(T,) what each value is."""
        found = np.zeros(len(self.known), dtype=np.int8)
        budget, first = 0, 0
        while (following := self._find_next(first)) is not None:
            place, lasts = following
            first = place + 1
            if VALUES_AN_OUTLIER * budget >= place:
                continue
            if lasts:
                budget, first = budget + 1, place + LASTS
                self._move(place)
                found[first - 1] = STEP + LASTS - 1
                continue
            after = np.flatnonzero(self.known[place + 1 :])
            budget, found[place] = budget + 1, OUTLIER
            off = self._leave_out(place)
            if len(after):
                first = place + 1 + int(after[0])
                if self._follow_step(first, off):
                    found[place] = STEP
                first += 1
        return found

    def _find_next(self, first: int) -> tuple[int, bool] | None:
        """The next value that is far, or where values begin that are off to one side for long.

        And whether it is the latter, of which none is far: that is known when the last one comes.
        """
        far = lasting = self.usable & self.known
        for scale, silent in zip(self.scales, (False, self.negative), strict=True):
            error, ratio = _compare(scale[None], self.known[None], self.periods)
            far = far & ((ratio[0] > LARGEST_ERROR) | silent)
            off = np.where(ratio[0] < LARGEST_ERROR, np.sign(error[0]) * ratio[0], 0.0)
            lasting = lasting & (_last(off) | _last(-off) | np.asarray(silent, dtype=bool))
            if scale is self.scales[0]:
                far = far & ~self._find_seasonal(error[0])
        places = np.flatnonzero((far | lasting)[first:])
        return (place := first + int(places[0]), bool(lasting[place])) if len(places) else None

    def _move(self, place: int) -> None:
        """Bring what came before a lasting step to the level after it."""
        for scale in self.scales:
            error, _ = _compare(scale[None], self.known[None], self.periods)
            scale[:place] += np.median(error[0, place : place + LASTS])

    def _find_seasonal(self, error: Array) -> Mask:
        """(T,) where most of an error is a change that came a season before, too.

        In the first season what stays may be one.
        """
        stays = np.abs(np.append(self.changes[1:], np.nan)) < STAYS * np.abs(error)
        seasonal = stays & (np.arange(len(error)) <= max(self.periods, default=0))
        for m in self.periods:
            new = self.changes - _shift(self.changes[None], m)[0]
            seasonal |= np.abs(new) < STAYS * np.abs(error)
        return seasonal

    def _leave_out(self, place: int) -> list[float]:
        """Put what was expected there; by how much it was off on each scale."""
        off, copies = [], self._find_copies(place)
        for scale in self.scales:
            error, _ = _compare(scale[None], self.known[None], self.periods)
            off.append(float(error[0, place]))
            scale[copies] -= off[-1]
        self.known[place] = False
        return off

    def _find_copies(self, place: int) -> slice:
        """The value at a place, and those that were not observed and are as it was."""
        back = _find_back(self.periods)
        later = self.known[place + back :: back]
        count = int(later.argmax()) if later.any() else len(later)
        return slice(place, place + back * count + 1, back)

    def _follow_step(self, after: int, off: list[float]) -> bool:
        """Whether the next value is as far off; move what came before with it, if it is."""
        moved = []
        for scale, before, silent in zip(
            self.scales, off, (False, self.negative[after]), strict=True
        ):
            error, ratio = _compare(scale[None], self.known[None], self.periods)
            same = error[0, after] * np.sign(before) >= STAYS * abs(before)
            if not (silent or (same and ratio[0, after] > STAYS * LARGEST_ERROR)):
                return False
            moved.append(float(error[0, after]))
        for scale, step in zip(self.scales, moved, strict=True):
            scale[:after] += step
        return True


def _choose_whole(periods: Sequence[float], length: int) -> tuple[int, ...]:
    """Periods that are whole numbers of steps, and shorter than the series."""
    return tuple(int(m) for m in periods if float(m).is_integer() and 1 < m < length)


def _take_logarithms(values: Array) -> Array:
    """(T,) logarithms; of what is not positive those of a tenth of the least value so far that is.

    Before any is, they are NaN.
    """
    least = np.minimum.accumulate(np.where(values > 0.0, values, np.inf))
    floor = np.where(np.isfinite(least), FLOOR * least, np.nan)
    return np.asarray(np.log(np.where(values > 0.0, values, floor)))


def _find_back(periods: tuple[int, ...]) -> int:
    """How many steps before is the value that stands for one that was not observed."""
    return periods[0] if periods else 1


def _fill_gaps(values: Array, periods: tuple[int, ...]) -> Array:
    """(S, T) values, those that were not observed as in the shortest season before."""
    return bridge_gaps(values, np.full(len(values), _find_back(periods), dtype=np.intp))


def _find_usable(values: Array, known: Mask) -> Mask:
    """(S, T) where there are values enough before, most of which are not as the one before."""
    learned: Array = np.cumsum(known, axis=1) - known
    steps = np.diff(carry_forward(values), axis=1, prepend=np.nan)
    moved = np.cumsum((steps != 0.0) & known, axis=1) - ((steps != 0.0) & known)
    return (learned >= FEWEST_VALUES) & (2 * moved > learned)


def _may_have_outliers(values: Array, periods: tuple[int, ...]) -> Mask:
    """(S,) which series have a value further off than any may be: the first, if any, is exact."""
    known = np.isfinite(values)
    far = known & _find_usable(values, known)
    some = np.flatnonzero(far.any(axis=1))
    if len(some):
        _, ratio = _compare(_fill_gaps(values[some], periods), known[some], periods)
        far[some] &= (ratio > LARGEST_ERROR) | _last(ratio)
    return np.asarray(far.any(axis=1))


def _last(off: Array) -> Mask:
    """(..., T) where values from one on, off by so many standard errors, are far on average."""
    starts = max(off.shape[-1] - LASTS + 1, 0)
    runs = np.stack([off[..., age : age + starts] for age in range(LASTS)])
    found = np.zeros(off.shape, dtype=bool)
    far = (runs.mean(axis=0) > LASTING) & (runs.min(axis=0) > STAYS * LASTING)
    found[..., : far.shape[-1]] = far
    return found


def _compare(x: Array, known: Mask, periods: tuple[int, ...]) -> tuple[Array, Array]:
    """(S, T) errors of the best that expects each value of ``x``, and these in standard errors."""
    error, sd = compare_with_expected(x, known, periods)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.abs(error) / sd
    return error, np.where(sd > 0.0, ratio, 0.0)


def _expect(x: Array, periods: tuple[int, ...]) -> Iterator[Array]:
    """(S, T) what each value is expected to be by those before."""
    last = _shift(x, 1)
    yield last
    yield sum((_shift(x, lag) for lag in range(1, LEVEL + 1)), np.zeros(x.shape)) / LEVEL
    for m in periods:
        season = _average_seasons(x, m)
        yield season
        yield last + (season - _shift(season, 1))
        level = np.cumsum(np.nan_to_num(x), axis=1)
        recent = _shift(level - _shift(level, m), 1) / m
        yield recent + (season - _average_seasons(recent, m))


def _average_seasons(x: Array, m: int) -> Array:
    """(S, T) means of the same place in the last seasons, of as many as there are."""
    each = np.array([_shift(x, m * k) for k in range(1, SEASONS + 1)])
    known = np.isfinite(each)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, each, 0.0).sum(axis=0) / known.sum(axis=0))


def _shift(x: Array, lag: int) -> Array:
    """(S, T) values so many steps before; NaN where there are none."""
    if lag >= x.shape[1]:
        return np.full(x.shape, np.nan)
    return np.concatenate([np.full((len(x), lag), np.nan), x[:, :-lag]], axis=1)


def _find_unusual(columns: Array) -> Mask:
    """(S, T) whether a row has a value of ``columns`` (S, T, m) far from the mean of those before.

    Those of the first row are not far, nor those of a column that has risen, or fallen, in each row
    so far.
    """
    known = np.isfinite(columns)
    values = np.where(known, columns, 0.0)
    before: Array = np.cumsum(known, axis=1) - known
    count = np.maximum(before, 1)
    mean = (np.cumsum(values, axis=1) - values) / count
    squares = np.square(values)
    variance = np.maximum((np.cumsum(squares, axis=1) - squares) / count - np.square(mean), 0.0)
    far = np.abs(values - mean) > USUAL * np.sqrt(variance)
    steps = np.diff(np.where(known, columns, np.nan), axis=1, prepend=np.nan)
    trend = np.zeros(columns.shape, dtype=bool)
    for sign in (-1.0, 1.0):
        trend |= np.logical_and.accumulate(~(sign * steps <= 0.0), axis=1)
    return np.asarray((known & far & (before > 0) & ~trend).any(axis=2))
