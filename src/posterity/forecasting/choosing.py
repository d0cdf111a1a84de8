"""Which forms a series is forecast by: by its length and its seasonal periods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from posterity.forecasting.forms import Form, span

# Lags of a form without seasons, and most consecutive lags of any form.
N_LAGS, MOST_DENSE_LAGS = 13, 200
# Most harmonics of a season, and those of a long one.
MOST_HARMONICS, LONG_HARMONICS = 12, (10, 4)
# Share of a period by which two that are one may differ, as 52 weeks and a year.
SAME = 0.05
# Half-lives of means of a level that moves.
FAST_MEANS = (2.0, 8.0)
# The slower one of two means that say together how steep a series without a season is, and how many
# rows there are for each step of it.
SLOPE_MEAN, SLOPE_ROWS = 9.0, 10
# Half-lives of means beside a long season, in the shortest ones, and that of the slowest in steps.
MEANS, SLOW_MEAN, SLOWEST = (1, 4), 16, 400
# Lags of exogenous columns.
COLUMN_LAGS = (1, 2, 3)
# Fewest values in which a drift can be distinguished from chance.
DRIFT_ROWS = 12
# Fewest values whose trials distinguish a level that a series returns to from a slow walk.
LEVEL_ROWS = 50
# Fewest rows after the first period of a seasonal form.
FEWEST_SEASONAL_ROWS = 3
# A prior over series is learned for at most this many coefficients, from at least this many series,
MOST_SHARED, FEWEST_SERIES = 60, 8
# and where a series has fewer rows than this for each.
FEW_ROWS = 20


def choose_forms(
    n: int,
    periods: Iterable[float],
    *,
    ends: tuple[float, float] | None = (0.0, np.inf),
    n_series: int = 1,
    columns: bool = False,
) -> tuple[Form, ...]:
    """Forms for series of ``n`` values with these seasonal periods.

    A period counts where there are two of it, and a form where its lags leave half of the rows. Of
    a period that came once, and a bit of it again, two forms see whether it returns. One that is
    not whole, or long, is one of waves. Each form comes in logarithms with a drift, where values
    are between ``ends``, 0 and above or a floor and a capacity; and in values: with a drift where
    it looks at lags and starts from the last value, of a series that is not too short, else
    without. Where a series has few rows for a form's coefficients and there are many series, it
    comes a second time with a prior that is learned over all of them. Where there are exogenous
    ``columns``, some forms come a second time with their lags.

    Examples
    --------
    >>> [str(form) for form in choose_forms(20, ())][:3]
    ['log, difference 1', 'difference 1', 'log, difference 1, lags 1-3']
    """
    plain = _list_plain_forms(n, list(periods))
    scales = [_limit_drift(form, n) for form in plain]
    if ends:
        between = ends if np.isfinite(ends[1]) else None
        logs = [replace(form, log=True, between=between) for form in plain]
        scales = [form for pair in zip(logs, scales, strict=True) for form in pair]
    pooled = [
        replace(form, shared=True)
        for form in scales
        if n_series >= FEWEST_SERIES
        and not form.waves
        and 0 < form.n_lags <= MOST_SHARED
        and n < FEW_ROWS * form.n_lags
    ]
    lagged = [
        replace(form, column_lags=COLUMN_LAGS)
        for form in scales
        if columns
        and n >= DRIFT_ROWS
        and form.length + max(COLUMN_LAGS) <= n // 2
        and len(form.lags) == 3
    ]
    return (*scales, *pooled, *lagged)


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
        for rate, rows in forgetting.memories(form.n_lags + form.n_waves + int(form.drift))
    ]
    return tuple(dict.fromkeys(found))


# ---- inner ---------------------------------------------------------------------------------------


def _list_plain_forms(n: int, periods: list[float]) -> list[Form]:
    """Forms in values, whatever the number of series."""
    whole = sorted({int(m) for m in periods if float(m).is_integer()})
    once = [
        form
        for m in whole
        if n // 2 < m <= n - FEWEST_SEASONAL_ROWS
        for form in (Form(m), Form(m, (1,)))
    ]
    whole = [m for m in whole if 1 < m <= n // 2]
    short = [m for m in whole if m <= MOST_DENSE_LAGS]
    long = sorted({float(m) for m in periods if m not in short and m <= n / 2})
    apart = [m for m in short if all(abs(m - period) >= SAME * m for period in long)]
    forms = _make_plain_forms(n)
    if not whole and not long and n >= LEVEL_ROWS:
        slow = min(SLOPE_MEAN, float(n // SLOPE_ROWS))
        forms.append(Form(1, (), (slow / 3.0, slow)))
    for m in whole:
        forms += _make_seasonal_forms(m, dense=m == whole[0])
    if len(whole) > 1:
        forms += _make_nested_forms(whole)
    forms += _make_level_forms(apart, long, levels=n >= LEVEL_ROWS)
    return [form for form in dict.fromkeys(forms) if form.length <= max(n // 2, 1)] + once


def _limit_drift(form: Form, n: int) -> Form:
    """A form in values has a drift where it looks at lags and starts from the last value."""
    if form.difference == 0:
        return form
    return replace(form, drift=n >= DRIFT_ROWS and form.difference == 1 and bool(form.lags))


def _make_plain_forms(n: int) -> list[Form]:
    long = min(N_LAGS, max(n // 4, 1))
    return [Form(), Form(1, span(1, 3)), Form(1, span(1, long)), Form(1, (), (1.0, 3.0))]


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


def _make_level_forms(short: list[int], long: list[float], *, levels: bool) -> list[Form]:
    """Forms that return to a level with seasons, and that follow a level which moves."""
    waves = _make_waves(short)
    if long:
        return [Form(0, (1, 2, 3), drift=False, waves=waves), *_make_long_forms(short, long)]
    some = ((), (1, 2, 3)) if levels else ((),) if not waves else ()
    forms = [Form(0, lags, drift=False, waves=waves) for lags in some]
    if short and short[0] <= 2 * MOST_HARMONICS:
        forms += [Form(1, (), FAST_MEANS, waves=_make_waves(short[:1]))]
    return forms


def _make_long_forms(short: list[int], long: list[float]) -> list[Form]:
    """Forms of seasons that come too seldom for lags of a season: beside means of the values."""
    m = short[0] if short else 1
    many, few = (
        (*_make_waves(short), *((period, count) for period in long)) for count in LONG_HARMONICS
    )
    means = tuple(float(m * half) for half in MEANS)
    slow = Form(0, span(1, m + 1), (float(min(SLOW_MEAN * m, SLOWEST)),), waves=many)
    return [Form(1, (), means, waves=many), Form(1, (), means, waves=few), slow]


def _make_waves(periods: list[int]) -> tuple[tuple[float, int], ...]:
    return tuple((float(m), min(m // 2, MOST_HARMONICS)) for m in periods)
