"""Two arms side by side: their difference, the relative lift, and what is still open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from posterity.aliases import Array
from posterity.distributions._digits import count_decimals, round_rows

# How many times the rows so far a sentence tells anyone to wait for.
LONGEST_WAIT = 30.0


@dataclass(frozen=True)
class Pair:
    """The difference of two arms, of which ``arm`` has the larger mean so far.

    Attributes
    ----------
    arm, other : names
    effect, low, high : float
        Mean of ``arm`` less that of ``other``, and its interval.
    lift, lift_low, lift_high : float
        The same as a share of the mean of ``other``: 0.25 is 25% more. NaN and infinite while that
        mean may be 0 or less.
    expected_rows : float
        Rows in all by which the pair is settled, if the arms are as they seem now; infinite where
        that takes more than some ten thousand times as many.
    n_observations : int
        Rows so far.
    in_points : bool
        True if rewards are no and yes, whose effects are read in percentage points.
    smallest_effect : float
        Differences below it are not worth having.
    """

    arm: Any
    other: Any
    effect: float
    low: float
    high: float
    lift: float
    lift_low: float
    lift_high: float
    expected_rows: float
    n_observations: int
    in_points: bool
    smallest_effect: float = 0.0

    @property
    def is_decided(self) -> bool:
        """True if the interval of the difference leaves out 0."""
        return self.low > 0.0

    @property
    def is_alike(self) -> bool:
        """True if the interval holds no difference worth having, in either direction."""
        return -self.smallest_effect < self.low and self.high < self.smallest_effect

    def __str__(self) -> str:
        return self.describe("beats")

    def describe(self, verb: str) -> str:
        """The pair in a sentence; ``verb`` is what an arm of a higher mean does to the other."""
        if self.is_decided:
            return f"{self.arm} {verb} {self.other}: {self._describe_effect()}."
        if not math.isfinite(self.low + self.high):
            return f"{self.arm} against {self.other}: too few rows yet."
        if self.is_alike:
            told = f"no difference worth having, {self._describe_effect()}"
            return f"{self.arm} and {self.other}: {told}."
        more = self.expected_rows - self.n_observations
        soon = 0.0 < more < LONGEST_WAIT * self.n_observations
        waits = f"; about {round_rows(more):,} more rows would tell" if soon else ""
        return f"{self.arm} against {self.other}: not decided, {self._describe_effect()}{waits}."

    def _describe_effect(self) -> str:
        told = describe_effect(self.effect, self.low, self.high, self.in_points)
        if not math.isfinite(self.lift_low + self.lift_high):
            return told
        ends = f"{100.0 * self.lift_low:+.0f} to {100.0 * self.lift_high:+.0f}%"
        return f"{told}, {100.0 * self.lift:+.0f}% ({ends})"


def describe_effect(effect: float, low: float, high: float, in_points: bool) -> str:
    """A difference and its interval, in as many digits as these show.

    Examples
    --------
    >>> describe_effect(0.0125, 0.002, 0.023, True)
    '+1.2 points (+0.2 to +2.3)'
    """
    scale, unit = (100.0, " points") if in_points else (1.0, "")
    decimals = count_decimals(scale * low, scale * high)
    shown = [f"{scale * one:+,.{decimals}f}" for one in (effect, low, high)]
    return f"{shown[0]}{unit} ({shown[1]} to {shown[2]})"


def compute_lifts(means: Array, variances: Array, errors: Array) -> tuple[Array, Array]:
    r"""(K, K) ends of the relative lift of each row's arm over each column's (Fieller 1954).

    The lift is :math:`c - 1` where :math:`\theta_a - c\,\theta_b = 0`. The interval holds each
    :math:`c` whose difference is within so many standard errors of 0, so that it leaves out no lift
    where the interval of the difference leaves out 0, and the other way round.

    Parameters
    ----------
    means : (K,)
        Estimates.
    variances : (K + 1, K + 1)
        Of the differences of all arms, the last one being 0.
    errors : (K, K)
        Half widths of the intervals of differences, in standard errors.
    """
    own = variances[:-1, -1]
    covariance = 0.5 * (own[:, None] + own - variances[:-1, :-1])
    square = np.square(errors)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        below = np.square(means) - square * own  # of c^2
        middle = means[:, None] * means - square * covariance
        above = np.square(means)[:, None] - square * own[:, None]
        root = np.sqrt(np.maximum(np.square(middle) - below * above, 0.0))
        low, high = (middle - root) / below - 1.0, (middle + root) / below - 1.0
    known = (below > 0.0) & (means > 0.0) & np.isfinite(low + high)
    return np.where(known, low, -np.inf), np.where(known, high, np.inf)
