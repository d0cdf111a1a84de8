"""Bounds that hold at all times: whoever looks whenever, as often as they like."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

Array = NDArray[np.float64]

# Rows around which sequences are narrow where none are planned, and the weight of each.
_SIZES = np.array([1e3, 1e4, 1e5, 1e6])
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
# Share of the errors that may be made until the planned rows; the others, at any time.
_SHARE_OF_PLAN = 0.7
# The largest bet of `LowerBound`.
_LARGEST_BET = 0.5
_NEWTON_STEPS = 8


def sequence_radius(
    variance: ArrayLike, rows: ArrayLike, level: float, planned_rows: float | None = None
) -> Array:
    r"""Return a bound on the sum of errors, valid at all times together with probability ``level``.

    With :math:`V` the sum of squared errors of :math:`n` rows and :math:`\alpha` one minus the
    level, the sum strays no farther than :math:`s \sqrt V`. Where no rows are planned :math:`s`
    solves

    .. math:: \sum_k w_k (1 + \tau_k^2 n)^{-1/2}
        \exp\Bigl(\frac{\tau_k^2 n}{1 + \tau_k^2 n} \, \frac{s^2}{2}\Bigr) = \frac1\alpha :

    a mixture of :math:`e^{\theta S - \theta^2 n / 2}` over normal :math:`\theta` (Robbins 1970) of
    four sizes, which are what an experiment of a thousand to a million rows can find; asymptotic
    for rows that are not normal (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024).

    Where :math:`N` rows are planned seven tenths of :math:`\alpha` are kept for the time until
    then: :math:`s = z \sqrt{N / n}`, which a random walk crosses by :math:`N` with probability
    :math:`4 \Phi(-z)` at most (O'Brien and Fleming 1979, at all times). The others go to a sequence
    that never ends, with :math:`\theta` around plus and minus the effect that it finds by then.

    Parameters
    ----------
    variance : array
        Sums of squared errors.
    rows : array
        Numbers of rows.
    level : float
        Between 0 and 1.
    planned_rows : float, optional
        Chosen before anything was seen.

    Examples
    --------
    >>> float((sequence_radius(1000.0, 1000, 0.95) / np.sqrt(1000.0)).round(2))
    3.3
    >>> float((sequence_radius(1000.0, 1000, 0.95, planned_rows=1000) / np.sqrt(1000.0)).round(2))
    2.38
    """
    alpha, n = 1.0 - level, np.maximum(np.asarray(rows, dtype=np.float64), 1.0)
    if planned_rows is None:
        reach = _compute_reach(n, alpha)
    else:
        time = n / planned_rows
        reach = _compute_planned_reach(time, (1.0 - _SHARE_OF_PLAN) * alpha)
        until = _find_planned_errors(alpha) / np.sqrt(time)
        reach = np.where(time <= 1.0, np.minimum(reach, until), reach)
    return np.asarray(np.sqrt(np.asarray(variance, dtype=np.float64)) * reach)


def _find_planned_errors(alpha: float) -> float:
    """Standard errors that are needed when the planned rows have come."""
    return float(-ndtri(_SHARE_OF_PLAN * alpha / 4.0))


def compute_power(drift: float, level: float) -> float:
    """Probability that a sum leaves :func:`sequence_radius` upwards by the planned rows.

    A Wiener process with drift crosses a constant by time 1 (Siegmund 1985, equation 3.15). What
    the other three tenths of the errors find besides is left out.

    Parameters
    ----------
    drift : float
        The effect in standard errors at the planned rows.
    level : float
        Between 0 and 1.

    Examples
    --------
    >>> round(compute_power(3.24, 0.95), 2)
    0.85
    """
    bound = _find_planned_errors(1.0 - level)
    early = np.exp(2.0 * bound * drift + log_ndtr(-bound - drift))
    return float(ndtr(drift - bound) + early)


def compute_sizes(alpha: float) -> Array:
    """(4,) squared effects, beside the variance of a row, around which sequences are narrowest."""
    surprise = -np.log(alpha)
    return np.asarray((2.0 * surprise + np.log(2.0 * surprise) + 1.0) / _SIZES)


def _compute_reach(n: Array, alpha: float) -> Array:
    """Standard errors that sequences of four sizes together stray at n rows."""
    surprise = -np.log(alpha)
    time = n[..., None] * compute_sizes(alpha)
    constant, slope = np.log(WEIGHTS) - 0.5 * np.log1p(time), time / (1.0 + time)
    half = np.min((surprise - constant) / slope, axis=-1)  # of s^2: any of them alone gets there
    for _ in range(_NEWTON_STEPS):  # from above, on a convex function
        terms = constant + slope * half[..., None]
        total = logsumexp(terms, axis=-1)
        weights = np.exp(terms - total[..., None])
        half = half - (total - surprise) / np.sum(weights * slope, axis=-1)
    return np.asarray(np.sqrt(2.0 * half))


def _compute_planned_reach(time: Array, alpha: float) -> Array:
    """Standard errors strayed by a sequence with effects around those that are found at time 1."""
    surprise, sides = -np.log(alpha), np.log(2.0)
    shift = np.sqrt(2.0 * (surprise + sides))
    needed = np.square(shift) * time
    needed = needed + 2.0 * (1.0 + time) * (surprise + 0.5 * np.log1p(time) + sides)
    return np.asarray((np.sqrt(np.square(shift) + needed) - shift) / np.sqrt(time))


@dataclass
class LowerBound:
    r"""A lower bound of the mean of rows that are never negative; their means lie in [0, 1].

    Rows themselves may be as large as they like, as reward times weight are. With bets
    :math:`\lambda_i` and guesses :math:`\hat x_i` that rest on the rows before,

    .. math:: \frac{\sum_i \lambda_i x_i + \log \alpha
        - \sum_i (-\log(1 - \lambda_i) - \lambda_i) (x_i - \hat x_i)^2}{\sum_i \lambda_i}

    holds at all times with probability :math:`1 - \alpha`, whatever the rows' distribution
    (Howard, Ramdas, McAuliffe and Sekhon 2021; Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro
    2022). The largest one so far is kept.

    Examples
    --------
    >>> bound = LowerBound(alpha=0.05)
    >>> for _ in range(4):
    ...     bound.learn(np.tile([0.0, 1.0], 500))
    >>> round(bound.value, 2)
    0.47
    """

    alpha: float
    value: float = 0.0
    _rows: int = 0
    _sum: float = field(default=0.5, repr=False)  # of x, with half a row before the first
    _squares: float = field(default=0.25, repr=False)  # of x - guess
    _bets: float = field(default=0.0, repr=False)
    _log_capital: float = field(default=0.0, repr=False)

    def learn(self, x: Array) -> None:
        """Rows (n,), in the order in which they came."""
        if not len(x):
            return
        place = self._rows + np.arange(1.0, len(x) + 1.0)
        sums = self._sum + np.concatenate([[0.0], np.cumsum(x)])
        error = np.square(x - np.minimum(sums[:-1] / place, 1.0))
        squares = self._squares + np.concatenate([[0.0], np.cumsum(error)])
        bets = np.sqrt(-2.0 * np.log(self.alpha) / (squares[:-1] / place * place * np.log1p(place)))
        bets = np.minimum(bets, _LARGEST_BET)
        log_capital = self._log_capital + np.cumsum(bets * x + (np.log1p(-bets) + bets) * error)
        staked = self._bets + np.cumsum(bets)
        best = float(np.max((log_capital + np.log(self.alpha)) / staked))
        self.value = min(max(self.value, best), 1.0)
        self._rows += len(x)
        self._sum, self._squares = float(sums[-1]), float(squares[-1])
        self._bets, self._log_capital = float(staked[-1]), float(log_capital[-1])
