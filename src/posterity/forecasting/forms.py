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

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.forecasting.log_scale import LOGARITHMS, LogScale

# A column of more lags is long.
MANY_LAGS = 32
# Length of an exponential mean, in half-lives; and of one over seasons.
REACH, SEASONAL_REACH = 5, 3


@dataclass(frozen=True)
class Form:
    """One form.

    Parameters
    ----------
    difference
        d >= 0: 1 starts from the last value, a period from the season before; 0 from a level that
        is estimated, to which the series returns.
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
        Whether z has a drift; at d = 0, whether its level is a straight line.
    discount
        What all rows so far count for, one row on, in (0, 1]: below 1 the form forgets.
    rows
        How many steps back its rows begin; None for all.
    seasonal_half_lives
        Half-lives, in seasons, of exponentially weighted means of the same place in earlier
        seasons, as of the last Mondays: how far such a mean is from the value a season ago, and
        the last season's mean from that of these seasons.
    waves
        Pairs of a period, which need not be whole, and a number of harmonics: sines and cosines
        of the time, whose amplitudes are learned.
    column_lags
        Lags l >= 1 of exogenous columns that have effects, beside those of the step itself.
    between
        A floor and a capacity: z is then the log odds of where the value is between the two.

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
    waves: tuple[tuple[float, int], ...] = ()
    column_lags: tuple[int, ...] = ()
    between: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        means, lags = (*self.half_lives, *self.seasonal_half_lives), (*self.lags, *self.column_lags)
        if self.difference < 0 or min(lags, default=1) < 1 or min(means, default=1) <= 0:
            raise ValueError(
                f"{self!r}: lags and half-lives must be positive, and difference not negative, "
                "because a forecast uses only the past"
            )
        if min((min(wave) for wave in self.waves), default=1) <= 0:
            raise ValueError(
                f"{self!r}: waves are pairs of a period and a number of harmonics, both above 0, "
                "as in Form(0, waves=((7, 3),))"
            )
        if self.seasonal_half_lives and self.difference < 2:
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
        if self.between is not None and not (self.log and self.between[0] < self.between[1]):
            raise ValueError(
                f"between is {self.between}: it must be a floor and a capacity above it, of a form "
                "with log=True, as in Form(log=True, between=(0, 100))"
            )

    @property
    def scale(self) -> LogScale:
        """The scale of its logarithms, if it has these."""
        if self.between is None:
            return LOGARITHMS
        floor, capacity = self.between
        return LogScale(floor, capacity - floor)

    @property
    def length(self) -> int:
        """L >= 1, how many values back are looked at."""
        reach = max((int(np.ceil(REACH * half)) for half in self.half_lives), default=1)
        shift = self.difference if self.half_lives and self.difference > 1 else 0
        seasons = max(map(_count_seasons, self.seasonal_half_lives), default=1)
        return max(self.difference * seasons, reach + shift, 1, *self.lags, *self.column_lags)

    @property
    def n_lags(self) -> int:
        """Number of coefficients of what is looked at."""
        return int(self.window.shape[1])

    @property
    def n_waves(self) -> int:
        """Number of sines and cosines."""
        return sum(count + count_sines(period, count) for period, count in self.waves)

    @property
    def n_free(self) -> int:
        """Number of coefficients that are not shrunk: of the level, and of its slope."""
        return 0 if self.difference else 1 + int(self.drift)

    @property
    def is_level(self) -> bool:
        """Whether it has a level, and nothing else."""
        return self.n_free == 1 and not (self.n_lags or self.waves)

    @property
    def window(self) -> Array:
        """(L, p) columns over the lags 1..L, so that features are z_{t-1..t-L} @ window.

        The lag that is taken off says nothing, and is left out.
        """
        return _build_window(self)

    @property
    def long_columns(self) -> Mask:
        """(p,) which columns of the window are of many lags."""
        return np.asarray((self.window != 0.0).sum(axis=0) > MANY_LAGS)

    @property
    def reach(self) -> Indices:
        """(m,) lags whose values matter."""
        return _find_reach(self)

    def __str__(self) -> str:
        words = ["log"] if self.log else []
        if self.between is not None:
            words = ["log odds from {:g} to {:g}".format(*self.between)]
        level = "line" if self.drift else "level"
        words.append(f"difference {self.difference}" if self.difference else level)
        if self.lags:
            words.append(f"lags {_describe_lags(self.lags)}")
        if self.half_lives:
            words.append("means " + ", ".join(f"{half:g}" for half in self.half_lives))
        if self.seasonal_half_lives:
            each = ", ".join(f"{half:g}" for half in self.seasonal_half_lives)
            words.append(f"means of seasons {each}")
        if self.waves:
            words.append("waves " + ", ".join(f"{m:g}:{count}" for m, count in self.waves))
        if self.column_lags:
            words.append(f"columns {_describe_lags(self.column_lags)} before")
        words += ["shared"] if self.shared else []
        words += [f"discount {self.discount:g}"] if self.discount < 1.0 else []
        words += [f"last {self.rows} rows"] if self.rows is not None else []
        return ", ".join(words)


def count_sines(period: float, count: int) -> int:
    """Count the sines of so many harmonics: of half a period they are 0 at whole steps."""
    return count - int(2 * count == period)


def span(first: int, last: int) -> tuple[int, ...]:
    """Lags from the first to the last."""
    return tuple(range(first, last + 1))


# ---- inner ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _build_window(form: Form) -> Array:
    length = form.length
    lags = [lag for lag in form.lags if lag != form.difference]
    window = np.zeros((length, len(lags)))
    window[np.array(lags, dtype=np.int64) - 1, np.arange(len(lags))] = 1.0
    if form.difference:
        window[form.difference - 1] -= 1.0
    means = np.array([_build_exponential_mean(form, half, length) for half in form.half_lives])
    seasons = [
        _build_seasonal_means(form.difference, half, length) for half in form.seasonal_half_lives
    ]
    window = np.hstack([window, means.reshape(len(means), length).T, *seasons])
    window.setflags(write=False)
    return window


@lru_cache(maxsize=1024)
def _find_reach(form: Form) -> Indices:
    looked_at = np.asarray(form.window.any(axis=1))
    if form.difference:
        looked_at[form.difference - 1] = True
    return np.flatnonzero(looked_at) + 1


def _build_exponential_mean(form: Form, half: float, length: int) -> Array:
    """The exponential mean less the last value; or less itself a season ago, in seasonal forms."""
    ages = np.arange(length)
    reach = ages < np.ceil(REACH * half)
    weights = np.where(reach, 0.5 ** (ages / half), 0.0)
    weights /= weights.sum()
    if form.difference < 2:
        return np.asarray(weights - form.difference * (ages == 0))
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
