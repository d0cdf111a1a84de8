"""Forms of an autoregression: the lags it has, and the scale that it works on.

With z the series or its logarithm, and d the lag whose value is taken off, ``difference``,

    z_t - z_{t-d} = drift + sum_j w_j (b_j . z_{t-1..t-L} - z_{t-d}) + noise,

where each b_j is a single lag (or, in place of the whole bracket, an exponentially weighted mean
less the last value, or less what it was a season ago; or such a mean of the same place in earlier
seasons). So at w = 0 the forecast is the naive one
(the last value, or that of a season ago), which is where shrinkage ends, and adding a constant to
z changes nothing but the forecast's level.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Length of an exponential mean, in half-lives; and of one over seasons.
REACH, SEASONAL_REACH = 5, 3
# Lags of a form without seasons, and most consecutive lags of any form.
N_LAGS, MOST_DENSE_LAGS = 13, 200
# Fewest values in which a drift can be distinguished from chance.
DRIFT_ROWS = 12
# Fewest rows after the first period of a seasonal form.
FEWEST_SEASONAL_ROWS = 3
# A prior over series is learned for at most this many coefficients, from at least this many series,
MOST_SHARED, FEWEST_SERIES = 60, 8
# and where a series has fewer rows than this for each.
FEW_ROWS = 20


@dataclass(frozen=True)
class Form:
    """One form.

    Parameters
    ----------
    difference
        d >= 1: 1 starts from the last value, a period from the season before.
    lags
        Lags l >= 1 whose coefficients are learned.
    half_lives
        Half-lives, in steps, of exponentially weighted means that are looked at besides: how far
        the mean is from the last value, or how far it has moved since a season ago.
    log
        Whether z is the logarithm: for values above 0.
    shared
        Whether the prior of the coefficients is learned over all series.
    drift
        Whether z has a drift.
    discount
        What all rows so far count for, one row on, in (0, 1]: below 1 the form forgets.
    rows
        How many steps back its rows begin; None for all.
    seasonal_half_lives
        Half-lives, in seasons, of exponentially weighted means of the same place in earlier
        seasons, as of the last Mondays: how far such a mean is from the value a season ago, and
        the last season's mean from that of these seasons.

    Examples
    --------
    >>> Form(difference=1, lags=(1, 2)).window
    array([[-1.],
           [ 1.]])
    >>> str(Form(difference=12, lags=(1, 2, 3, 12, 13), log=True))
    'log, difference 12, lags 1-3, 12-13'
    """

    difference: int = 1
    lags: tuple[int, ...] = ()
    half_lives: tuple[float, ...] = ()
    log: bool = False
    shared: bool = False
    drift: bool = True
    discount: float = 1.0
    rows: int | None = None
    seasonal_half_lives: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        means = (*self.half_lives, *self.seasonal_half_lives)
        if self.difference < 1 or min(self.lags, default=1) < 1 or min(means, default=1) <= 0:
            raise ValueError(
                f"{self!r}: difference, lags and half-lives must be positive, because a "
                "forecast uses only the past"
            )
        if self.seasonal_half_lives and self.difference == 1:
            raise ValueError(
                f"{self!r}: means over seasons need a season: give difference, as in "
                "Form(7, seasonal_half_lives=(5,))"
            )
        if not 0.0 < self.discount <= 1.0:
            raise ValueError(
                f"discount is {self.discount}: it must be above 0 and at most 1, as in 0.99"
            )
        if self.rows is not None and self.rows < 1:
            raise ValueError(f"rows is {self.rows}: it must be at least 1, or None for all")

    @property
    def length(self) -> int:
        """L, how many values back are looked at."""
        reach = max((int(np.ceil(REACH * half)) for half in self.half_lives), default=1)
        shift = self.difference if self.half_lives and self.difference > 1 else 0
        seasons = max(map(_count_seasons, self.seasonal_half_lives), default=1)
        return max(self.difference * seasons, reach + shift, *self.lags)

    @property
    def window(self) -> Array:
        """(L, p) columns over the lags 1..L, so that features are z_{t-1..t-L} @ window.

        The lag that is taken off says nothing, and is left out.
        """
        return _build_window(self)

    @property
    def reach(self) -> NDArray[np.intp]:
        """(m,) lags whose values matter."""
        return _find_reach(self)

    def __str__(self) -> str:
        words = ["log"] if self.log else []
        words.append(f"difference {self.difference}")
        if self.lags:
            words.append(f"lags {_describe_lags(self.lags)}")
        if self.half_lives:
            words.append("means " + ", ".join(f"{half:g}" for half in self.half_lives))
        if self.seasonal_half_lives:
            each = ", ".join(f"{half:g}" for half in self.seasonal_half_lives)
            words.append(f"means of seasons {each}")
        words += ["shared"] if self.shared else []
        words += [f"discount {self.discount:g}"] if self.discount < 1.0 else []
        words += [f"last {self.rows} rows"] if self.rows is not None else []
        return ", ".join(words)


def choose_forms(
    n: int, periods: Iterable[int], *, positive: bool = True, n_series: int = 1
) -> tuple[Form, ...]:
    """Forms for series of ``n`` values with these seasonal periods.

    A period counts where there are two of it, and a form where its lags leave half of the rows. Of
    a period that came once, and a bit of it again, two forms see whether it returns. Each comes in
    logarithms with a drift, where values allow it, and in values: with a drift where it looks at
    lags and starts from the last value, of a series that is not too short, else without. Where a
    series has few rows for a form's coefficients and there are many series, it comes a second time
    with a prior that is learned over all of them.

    Examples
    --------
    >>> [str(form) for form in choose_forms(20, ())][:3]
    ['log, difference 1', 'difference 1', 'log, difference 1, lags 1-3']
    """
    once = [
        form
        for m in periods
        if n // 2 < m <= n - FEWEST_SEASONAL_ROWS
        for form in _make_short_season_forms(int(m))
    ]
    periods = sorted({int(m) for m in periods if 1 < m <= n // 2})
    plain = _make_plain_forms(n) + [
        form for m in periods for form in _make_seasonal_forms(m, dense=m == periods[0])
    ]
    if len(periods) > 1:
        plain += _make_nested_forms(periods)
    plain = [form for form in dict.fromkeys(plain) if form.length <= max(n // 2, 1)] + once
    drifts = n >= DRIFT_ROWS
    scales = [
        replace(form, drift=drifts and form.difference == 1 and bool(form.lags)) for form in plain
    ]
    if positive:
        pairs = zip((replace(form, log=True) for form in plain), scales, strict=True)
        scales = [form for pair in pairs for form in pair]
    pooled = [
        replace(form, shared=True)
        for form in scales
        if n_series >= FEWEST_SERIES
        and 0 < form.window.shape[1] <= MOST_SHARED
        and n < FEW_ROWS * form.window.shape[1]
    ]
    return (*scales, *pooled)


def add_memories(forms: Iterable[Form], forgetting: Any) -> tuple[Form, ...]:
    """Each form with each memory of a way to forget.

    Examples
    --------
    >>> from posterity.forgetting import Window
    >>> [str(form) for form in add_memories([Form()], Window(size=50))]
    ['difference 1, last 50 rows']
    """
    if forgetting is None:
        return tuple(forms)
    found = [
        replace(form, discount=form.discount * rate, rows=rows)
        for form in forms
        for rate, rows in forgetting.memories(form.window.shape[1] + int(form.drift))
    ]
    return tuple(dict.fromkeys(found))


# ---- inner ---------------------------------------------------------------------------------------


def _make_plain_forms(n: int) -> list[Form]:
    long = min(N_LAGS, max(n // 4, 1))
    return [Form(), Form(1, span(1, 3)), Form(1, span(1, long)), Form(1, (), (1.0, 3.0))]


def _make_short_season_forms(m: int) -> list[Form]:
    return [Form(m), Form(m, (1,))]


def _make_seasonal_forms(m: int, *, dense: bool) -> list[Form]:
    forms = [Form(m, (1, 2, 3, m, m + 1)), Form(m, (1, 2, 3)), Form(m, (), (1.0, 3.0))]
    forms += [
        Form(m, (), (1.0, 3.0), seasonal_half_lives=(12.0,)),
        Form(m, seasonal_half_lives=(2.0, 8.0)),
        Form(m, (1, 2, 3), seasonal_half_lives=(5.0,)),
    ]
    if dense and m <= MOST_DENSE_LAGS:
        forms += [Form(1, span(1, m + 1)), Form(m, (*span(1, m + 1), 2 * m, 2 * m + 1))]
    return forms


def _make_nested_forms(periods: list[int]) -> list[Form]:
    short, long = periods[0], periods[-1]
    around = (long - 1, long, long + 1)
    if short > MOST_DENSE_LAGS:
        return [Form(long, (1, 2, 3, short, short + 1, *around))]
    ladder = tuple(sorted({*span(1, short + 1), *range(2 * short, long, short), *around}))
    forms = [Form(short, ladder), Form(long, ladder)]
    return [*forms, Form(short, span(1, long + 1))] if long <= MOST_DENSE_LAGS else forms


def span(first: int, last: int) -> tuple[int, ...]:
    """Lags from the first to the last."""
    return tuple(range(first, last + 1))


@lru_cache(maxsize=1024)
def _build_window(form: Form) -> Array:
    length = form.length
    lags = [lag for lag in form.lags if lag != form.difference]
    window = np.zeros((length, len(lags)))
    window[np.array(lags, dtype=np.int64) - 1, np.arange(len(lags))] = 1.0
    window[form.difference - 1] -= 1.0
    means = np.array([_build_exponential_mean(form, half, length) for half in form.half_lives])
    seasons = [
        _build_seasonal_means(form.difference, half, length) for half in form.seasonal_half_lives
    ]
    window = np.hstack([window, means.reshape(len(means), length).T, *seasons])
    window.setflags(write=False)
    return window


@lru_cache(maxsize=1024)
def _find_reach(form: Form) -> NDArray[np.intp]:
    looked_at = np.asarray(form.window.any(axis=1))
    looked_at[form.difference - 1] = True
    return np.flatnonzero(looked_at) + 1


def _build_exponential_mean(form: Form, half: float, length: int) -> Array:
    """The exponential mean less the last value; or less itself a season ago, in seasonal forms."""
    ages = np.arange(length)
    reach = ages < np.ceil(REACH * half)
    weights = np.where(reach, 0.5 ** (ages / half), 0.0)
    weights /= weights.sum()
    if form.difference == 1:
        return np.asarray(weights - (ages == 0))
    return np.asarray(weights - np.roll(weights, form.difference))


def _count_seasons(half: float) -> int:
    return int(np.ceil(SEASONAL_REACH * half))


def _build_seasonal_means(m: int, half: float, length: int) -> Array:
    """(L, 2) mean of the same place in seasons less its last value; last season less that mean."""
    count = _count_seasons(half)
    weights = 0.5 ** (np.arange(count) / half)
    weights = np.pad(weights / weights.sum(), (0, -(-length // m) - count))
    place, age = np.arange(length) % m, np.arange(length) // m
    same = np.where(place == m - 1, weights[age] - (age == 0), 0.0)
    return np.column_stack([same, ((age == 0) - weights[age]) / m])


def _describe_lags(lags: tuple[int, ...]) -> str:
    """Lags in words, neighbours as ranges."""
    runs: list[list[int]] = []
    for lag in sorted(lags):
        if runs and lag == runs[-1][-1] + 1:
            runs[-1].append(lag)
        else:
            runs.append([lag])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
