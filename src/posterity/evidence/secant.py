"""Searches in turns: each turn moves a number part of the way, because something else follows it.

How far it has to go at once is told by the last two moves (the secant method).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

# Two moves can't tell that the next one is less.
LEAST_RATE = 1e-3


@dataclass(frozen=True)
class SecantSteps:
    """Steps of a number that is asked, turn after turn, to move further.

    Parameters
    ----------
    most
        No step is longer.
    near
        A longer move is made as it is: far away two moves say little of a third, unless they go to
        opposite sides.
    shortest, longest
        How many times as long as a move its step can be.
    least
        By what share a step is longer or shorter than a move at least, else it is the move.
    times
        How many times as long the first step is, as another search of the kind told.
    last
        The last move, and the step that was made.

    Examples
    --------
    >>> steps = SecantSteps()
    >>> place = 0.0
    >>> for _ in range(3):
    ...     step, steps = steps.lengthen(0.2 * (1.0 - place))  # a fifth of the way to 1
    ...     place += step
    >>> round(place, 9)
    1.0
    """

    most: float = math.inf
    near: float = 0.5
    shortest: float = 0.5
    longest: float = 5.0
    least: float = 0.0
    times: float = 1.0
    last: tuple[float, float] | None = None

    def lengthen(self, move: float) -> tuple[float, Self]:
        """Return the step to make where this move is asked for, and the state after it."""
        step, times, near = min(max(move, -self.most), self.most), self.times, abs(move) < self.near
        if self.last is not None:
            before, made = self.last
            times = made / (before - move) if before != move else 1.0
            near = near or before * move < 0.0
        if near and times > 0.0 and abs(times - 1.0) >= self.least:
            step *= min(max(times, self.shortest), self.longest)
        return step, replace(self, times=times, last=(move, step))

    @property
    def rate(self) -> float:
        """The share of a move that the next one is, as the last two told; 1 where none did."""
        known = self.times not in (0.0, 1.0)
        return min(max(abs(1.0 - 1.0 / self.times), LEAST_RATE), 1.0) if known else 1.0

    def restart(self) -> Self:
        """The state before another search, in which moves are followed as in this one."""
        return replace(self, last=None)
