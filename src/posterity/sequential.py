"""Bounds that hold at all times: whoever looks whenever, as often as they like."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# Rows at which sequences are narrowest, relative to what could be, where none are planned.
_USUAL_ROWS = 1000
# The largest bet of `LowerBound`.
_LARGEST_BET = 0.5


def sequence_radius(
    variance: ArrayLike, rows: ArrayLike, level: float, planned_rows: float | None = None
) -> Array:
    r"""Return a bound on the sum of errors, valid at all times together with probability ``level``.

    With :math:`V` the sum of squared errors of :math:`n` rows, :math:`t = n / n_0` and
    :math:`\alpha` one minus the level, it strays no farther than :math:`s \sqrt{V / t}`, where
    :math:`s` solves, with :math:`g = 1 + \tau^2 t`,

    .. math:: \frac{\tau^2 s^2 + 2 \delta s - \delta^2 t}{2 g} - \frac12 \log g - h
        = \log \frac1\alpha :

    a mixture of :math:`e^{\theta S - \theta^2 t / 2}` over normal :math:`\theta`, asymptotic for
    rows that are not normal (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024). Where no rows
    are planned, :math:`\delta = h = 0` (Robbins 1970): nearly as narrow at any time as around
    :math:`n_0 = 1000`. Around planned rows it is narrower, and wider far from them, with
    :math:`\theta` around :math:`\pm \delta`, the effect that is found by then and hardly
    before: :math:`\delta^2 = 2 \log (2 / \alpha)`, :math:`\tau = 1`, and :math:`h = \log 2` for
    the two sides.

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
    3.04
    >>> float((sequence_radius(1000.0, 1000, 0.95, planned_rows=1000) / np.sqrt(1000.0)).round(2))
    2.84
    """
    surprise = -np.log(1.0 - level)
    if planned_rows is None:
        planned_rows, shift, sides = _USUAL_ROWS, 0.0, 0.0
        spread = 2.0 * surprise + np.log(2.0 * surprise) + 1.0  # which is tau squared
    else:
        sides = np.log(2.0)
        shift, spread = np.sqrt(2.0 * (surprise + sides)), 1.0
    time = np.maximum(np.asarray(rows, dtype=np.float64), 1.0) / planned_rows
    grown = 1.0 + spread * time
    needed = np.square(shift) * time + 2.0 * grown * (surprise + 0.5 * np.log(grown) + sides)
    reach = (np.sqrt(np.square(shift) + spread * needed) - shift) / spread
    return np.asarray(np.sqrt(np.asarray(variance, dtype=np.float64) / time) * reach)


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


__all__ = ["LowerBound", "sequence_radius"]
