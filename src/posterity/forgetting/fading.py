"""Strategies of forgetting: old rows count for less, or coefficients follow a random walk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from posterity import kernel
from posterity.aliases import Array, Indices
from posterity.factor import Factor, OneStepPredictions, Rows
from posterity.factor.forgetting import (
    SMALLEST_DISCOUNT,
    absorb_stabilized,
    learn_fading,
    learn_in_order,
    learn_stabilized,
)
from posterity.kernel import RowPath
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.memory import Learned, Memory

# What all rows so far count for one row on, and how many rows there are at most.
DiscountAndLength = tuple[float, int | None]


class Strategy(Memory):
    """A memory that a posterior can begin with."""

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one without data."""
        return posterior.with_memory(self)


@dataclass(frozen=True)
class _Discounted(Strategy):
    only_discounts: ClassVar[bool] = True
    compiles_sites: ClassVar[bool] = True

    discount: float | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if (self.discount is None) == (self.half_life is None):
            raise ValueError(
                f"{name} needs either a discount or a half_life: give one of them, as in "
                f"{name}(0.99)"
            )
        if self.discount is not None and not 0.0 < self.discount <= 1.0:
            raise ValueError(
                f"discount is {self.discount}: it must be above 0 and at most 1, as in 0.99"
            )
        if self.half_life is not None and not 0.0 < self.half_life < math.inf:
            raise ValueError(f"half_life is {self.half_life}: it must be positive and finite")

    @property
    def rate(self) -> float:
        """The factor by which one unit of time multiplies the weight of the past."""
        if self.discount is not None:
            return self.discount
        assert self.half_life is not None
        return 0.5 ** (1.0 / self.half_life)

    def discounts(self, elapsed: Array) -> Array:
        """The same for each stretch of time."""
        return np.power(self.rate, elapsed)

    def find_steady_time(self, elapsed: float) -> float:
        """Time that forgets as much as if variances grew by as much in each unit as in the first.

        West and Harrison (1997, section 6.3).
        """
        left = 1.0 / (1.0 + elapsed * (1.0 / self.rate - 1.0))
        return elapsed if left == 1.0 else math.log(left) / math.log(self.rate)

    def before_sites(self, data: Learned, elapsed: Array) -> dict[str, Any]:
        """What ``kernel.learn_sites`` is told to forget before each row, after this time (n,)."""
        discounts = self.discounts(elapsed)
        if not self.keeps_prior:
            return {"discounts": discounts}
        kept = {"prior": data.prior.triangle}
        return kept | {"discounts": np.maximum(discounts, SMALLEST_DISCOUNT)}

    def fade(self, data: Learned, path: RowPath) -> None:
        """Let all that ``data`` know fade before each row that ``path`` learns in them."""
        if self.keeps_prior:
            path.fade(max(self._of_one_row, SMALLEST_DISCOUNT), data.prior.triangle)
        else:
            path.fade(self._of_one_row)

    @property
    def _of_one_row(self) -> float:
        return float(self.discounts(np.ones(1))[0])


@dataclass(frozen=True)
class Exponential(_Discounted):
    """Discount the data and the prior of the coefficients: weights are discount^age.

    The likelihood of old rows to the power discount^age (a power prior: Ibrahim and Chen 2000).
    With a flat prior this is weighted least squares; a learned one fades from when it was last
    chosen. Counts, the noise (never below its own prior)
    and the evidence fade as well. A feature that goes quiet is forgotten without bound: where that
    can happen use :class:`Stabilized`.

    Parameters
    ----------
    discount
        Weight of what is one unit of time old, in (0, 1].
    half_life
        Time after which a weight has halved; instead of ``discount``.

    Examples
    --------
    >>> Exponential(half_life=10.0).discounts(np.array([10.0, 20.0]))
    array([0.5 , 0.25])
    """

    def memories(self, n_coefficients: int) -> tuple[DiscountAndLength, ...]:
        """Return the memories of a forecaster's forms: a discount, and no window."""
        return ((self.rate, None),)

    def learn(self, data: Learned, rows: Rows) -> OneStepPredictions:
        """Learn rows in order in the factor of ``data``; elapsed[i] >= 0 passes before row i."""
        return learn_fading(data.factor, rows, self.discounts(rows.elapsed))


@dataclass(frozen=True)
class Stabilized(_Discounted):
    """Discount the data but not the prior (Kulhavy and Zarrop 1993).

    A direction that no row visits falls back to its prior, and never beyond. After every call the
    posterior is exactly that. In the midst of a call over many rows the prior is refreshed every
    few rows only, and weighs between 1 and 1.84 times its own; predictions there are as cautious as
    that prior says.

    Parameters
    ----------
    discount
        Weight of what is one unit of time old, in (0, 1].
    half_life
        Time after which a weight has halved; instead of ``discount``.

    Examples
    --------
    >>> Stabilized(discount=0.5).discounts(np.array([0.0, 2.0]))
    array([1.  , 0.25])
    """

    keeps_prior: ClassVar[bool] = True
    why_not_merge = ""

    def memories(self, n_coefficients: int) -> tuple[DiscountAndLength, ...]:
        """Return the memories of a forecaster's forms: a discount, and no window."""
        return ((self.rate, None),)

    def learn(self, data: Learned, rows: Rows) -> OneStepPredictions:
        """Learn rows in order in the factor of ``data``; elapsed[i] >= 0 passes before row i."""
        return learn_stabilized(data.factor, data.prior, rows, self.discounts(rows.elapsed))

    def absorb(self, data: Learned, rows: Rows) -> None:
        """Learn them where nobody asks how they were predicted."""
        absorb_stabilized(data.factor, data.prior, rows, self.discounts(rows.elapsed))


@dataclass(frozen=True)
class Directional(_Discounted):
    """Discount only the direction of each new row, and never below the prior.

    Before a row x, the information D that data have brought loses
    (1 - discount) D x x'D / (x'D x): directions that rows do not visit keep all they know (Cao and
    Schwartz 2000; Lai and Bernstein 2024, SIFt, is the same for one row at a time). Theirs fades
    the prior with the rest; here D excludes it, so that the posterior never knows less than the
    prior. The noise fades as a whole. Slower than the others: O(p^2), but about eight times a
    plain row.

    Parameters
    ----------
    discount
        What is left of what is known of a row's direction, after one unit of time, in (0, 1].
    half_life
        Time after which it has halved; instead of ``discount``.

    Examples
    --------
    >>> Directional(discount=0.9).rate
    0.9
    """

    has_evidence: ClassVar[bool] = False
    only_discounts: ClassVar[bool] = False
    compiles_sites: ClassVar[bool] = False
    keeps_prior: ClassVar[bool] = True
    by_direction: ClassVar[bool] = True
    has_fast_learn_one: ClassVar[bool] = True

    def learn(self, data: Learned, rows: Rows) -> OneStepPredictions:
        """Learn rows in order in the factor of ``data``; elapsed[i] >= 0 passes before row i."""
        factor, prior, left = data.factor, data.prior, self.discounts(rows.elapsed)
        how, spent = (left, left, prior.triangle), factor.rank - prior.rank
        return learn_in_order(kernel.learn_directional, factor, rows, *how, spent=spent)

    def row_path(self, data: Learned, names: Sequence[str] | None) -> RowPath:
        """A path that learns single rows so, one unit of time apart."""
        how = self._of_one_row, data.prior.triangle
        return data.factor.open_path(kernel.DirectionalPath, data.intercept, names, *how)

    def fade(self, data: Learned, path: RowPath) -> None:
        """Fade nothing by itself: only the path of :meth:`row_path` knows directions."""


@dataclass(frozen=True)
class Smoothing(Strategy):
    """A weighted average of the old information and the new row: gamma old + (1 - gamma) new.

    The smoothing of a well-known tutorial (Halford 2020), for comparison. Each row weighs
    1 - gamma and fades by gamma, so the effective sample size never exceeds one row: intervals are
    far too wide. Prefer :class:`Stabilized` with the same discount, which weighs rows fully.

    Parameters
    ----------
    gamma
        Share of the old, in (0, 1).

    Examples
    --------
    >>> Smoothing(0.8).gamma
    0.8
    """

    gamma: float

    def __post_init__(self) -> None:
        if not 0.0 < self.gamma < 1.0:
            raise ValueError(f"gamma is {self.gamma}: it must lie between 0 and 1, as in 0.8")

    def learn(self, data: Learned, rows: Rows) -> OneStepPredictions:
        """Learn rows in order in the factor of ``data``; elapsed[i] >= 0 passes before row i."""
        elapsed = rows.elapsed
        if data.factor.seen == 0.0:
            # The tutorial's average forgets the prior at the first row already.
            elapsed = np.where(np.arange(len(elapsed)) == rows.first, 1.0, elapsed)
        return learn_fading(data.factor, rows, self.discounts_of_sums(elapsed), 1.0 - self.gamma)

    def discounts_of_sums(self, elapsed: Array) -> Array:
        """(n,) what is left of sums over the rows after each time."""
        return np.power(self.gamma, elapsed)


@dataclass(frozen=True)
class RandomWalk(Strategy):
    """Coefficients follow a random walk: w_t = w_(t-1) + Normal(0, variance) per unit of time.

    The local-level model of dynamic regression, learned by a square-root information filter
    (Bierman 1977); the same as a Kalman filter, without its loss of digits. O(p^3) a row.

    Parameters
    ----------
    variance
        Variance of a step: one for all (the intercept too), one for each feature (the intercept
        then stays), or one for the intercept and each feature. In coefficient units squared when
        the noise precision is known, relative to the noise variance when it is learned.

    Examples
    --------
    >>> RandomWalk(0.01).variance
    0.01
    """

    has_evidence: ClassVar[bool] = False
    has_fast_learn_one: ClassVar[bool] = True
    compiles_sites: ClassVar[bool] = True

    variance: ArrayLike

    def __post_init__(self) -> None:
        variance = np.asarray(self.variance, dtype=np.float64)
        if variance.ndim > 1 or not (np.isfinite(variance) & (variance >= 0.0)).all():
            raise ValueError(
                f"variance is {self.variance!r}: it must be a number, or one for each feature, "
                "finite and not negative"
            )

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one without data."""
        steps = self.steps(posterior.n_coefficients, posterior.intercept)
        return posterior.with_memory(replace(self, variance=tuple(steps.tolist())))

    def in_units(self, unit: float) -> RandomWalk:
        """The same relative to the noise, in whose units rows are: a known precision's."""
        return replace(self, variance=tuple((np.asarray(self.variance) / unit).tolist()))

    def steps(self, n_coefficients: int, intercept: bool) -> Array:
        """Variance of each coefficient's step, intercept first."""
        variance = np.asarray(self.variance, dtype=np.float64)
        if variance.ndim == 0:
            return np.full(n_coefficients, variance)
        if intercept and len(variance) == n_coefficients - 1:
            return np.concatenate([[0.0], variance])
        if len(variance) != n_coefficients:
            raise ValueError(
                f"variance has {len(variance)} numbers: give one, or one for each of the "
                f"{n_coefficients - int(intercept)} features"
            )
        return variance

    def learn(self, data: Learned, rows: Rows) -> OneStepPredictions:
        """Learn rows in order in the factor of ``data``; elapsed[i] >= 0 passes before row i."""
        how = np.ascontiguousarray(rows.elapsed), self._each(data.factor), self._slope
        return learn_in_order(kernel.learn_random_walk, data.factor, rows, np.ones(len(rows)), *how)

    def before_sites(self, data: Learned, elapsed: Array) -> dict[str, Any]:
        """What ``kernel.learn_sites`` is told to forget before each row, after this time (n,)."""
        return {"variance": self._each(data.factor), "elapsed": elapsed, "slope": self._slope}

    def row_path(self, data: Learned, names: Sequence[str] | None) -> RowPath:
        """A path that learns single rows so, one unit of time apart."""
        path = data.factor.open_path(kernel.ForgettingPath, data.intercept, names)
        self.fade(data, path)
        return path

    def fade(self, data: Learned, path: RowPath) -> None:
        """Let coefficients move before each row that ``path`` learns."""
        path.wander(self._each(data.factor), self._slope)

    def widened(self, places: Indices, n_coefficients: int) -> RandomWalk:
        """The same among ``n_coefficients``, of which ``places`` (p,) were those so far."""
        variance, kept = np.zeros(n_coefficients), places >= 0
        variance[places[kept]] = np.asarray(self.variance)[kept]
        return replace(self, variance=tuple(variance.tolist()))

    @property
    def _slope(self) -> int:
        """The coefficient that moves alone, by a share of its variance; -1: there is none."""
        return -1

    def _each(self, factor: Factor) -> Array:
        # With K classes there are K - 1 times the coefficients of one contrast.
        return np.resize(np.asarray(self.variance, dtype=np.float64), factor.n_coefficients)


@dataclass(frozen=True)
class SlopeWalk(RandomWalk):
    """One slope moves and all else stays: component discounting (West and Harrison 1997, 6.3).

    Its variance grows by a share of itself before a row, which needs no unit, and no more than ten
    times what the row tells of it: what no row visits is not forgotten. What is expected where the
    feature is at its mean stays as it is. A part of :class:`Adaptive`.

    Parameters
    ----------
    variance
        The share at the place of the slope, 0 for all other coefficients, the intercept first.
    slope
        Which coefficient it is, the intercept counted.

    Examples
    --------
    >>> SlopeWalk.of(2, 4, 0.15)
    SlopeWalk(variance=(0.0, 0.0, 0.15, 0.0), slope=2)
    """

    slope: int

    @classmethod
    def of(cls, slope: int, n_coefficients: int, growth: float) -> SlopeWalk:
        """The walk of this one of so many coefficients."""
        return cls(tuple((growth * (np.arange(n_coefficients) == slope)).tolist()), slope)

    def in_units(self, unit: float) -> SlopeWalk:
        """The same: a share has no unit."""
        return self

    def widened(self, places: Indices, n_coefficients: int) -> SlopeWalk:
        """The same among ``n_coefficients``, of which ``places`` (p,) were those so far."""
        growth = float(np.sum(self.variance))
        return self.of(int(places[self.slope]), n_coefficients, growth)

    @property
    def _slope(self) -> int:
        return self.slope
