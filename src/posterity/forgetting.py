"""Ways to forget, so that a model follows a world that changes.

A strategy is a frozen dataclass without data. ``begin(posterior)`` turns a posterior that has
seen nothing into one that forgets; that object owns all state. Time is counted in rows, or in the
unit of ``times=`` where rows come with times: time that passes without rows forgets as well.

Examples
--------
>>> import numpy as np
>>> from posterity import BayesianLinearRegression
>>> from posterity.forgetting import Stabilized
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(400, 1))
>>> y = np.where(np.arange(400) < 200, 1.0, -1.0) * X[:, 0] + 0.1 * rng.normal(size=400)
>>> follows = BayesianLinearRegression(forgetting=Stabilized(discount=0.95)).fit(X, y)
>>> stays = BayesianLinearRegression().fit(X, y)
>>> bool(follows.coef_[0] < -0.9), bool(abs(stays.coef_[0]) < 0.2)
(True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.factor import Before, Factor, Rows
from posterity.factor.forgetting import (
    learn_directional,
    learn_fading,
    learn_stabilized,
    learn_wandering,
)
from posterity.posteriors.averaged import AveragedPosterior
from posterity.posteriors.changepoint import ChangepointPosterior
from posterity.posteriors.fading import FadingPosterior
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.window import WindowPosterior

Array = NDArray[np.float64]


@runtime_checkable
class Forgetting(Protocol):
    """What an estimator asks of ``forgetting=``."""

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one that has seen nothing."""


@dataclass(frozen=True)
class _Discounted:
    discount: float | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if (self.discount is None) == (self.half_life is None):
            raise ValueError(f"{name} needs either a discount or a half_life")
        if self.discount is not None and not 0.0 < self.discount <= 1.0:
            raise ValueError(
                f"discount is {self.discount}: it must be above 0 and at most 1, as in 0.99"
            )
        if self.half_life is not None and not 0.0 < self.half_life < math.inf:
            raise ValueError(f"half_life is {self.half_life}: it must be positive and finite")

    @property
    def rate(self) -> float:
        """What the weight of the past is multiplied by in one unit of time."""
        if self.discount is not None:
            return self.discount
        assert self.half_life is not None
        return 0.5 ** (1.0 / self.half_life)

    def discounts(self, elapsed: Array) -> Array:
        """The same for each stretch of time."""
        return np.power(self.rate, elapsed)

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one that has seen nothing."""
        return FadingPosterior.around(posterior, self)

    def learn(self, factor: Factor, prior: Factor, rows: Rows, elapsed: Array) -> Before:
        """Learn rows in order in ``factor``, where elapsed[i] >= 0 passes before row i."""
        raise NotImplementedError  # each kind says how


@dataclass(frozen=True)
class Exponential(_Discounted):
    """Everything fades, the prior of the coefficients too: weights are discount^age.

    The likelihood of old rows to the power discount^age (a power prior: Ibrahim and Chen 2000).
    With a flat prior this is weighted least squares. Counts, the noise (never below its own prior)
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

    def learn(self, factor: Factor, prior: Factor, rows: Rows, elapsed: Array) -> Before:
        """Learn rows in order in ``factor``, where elapsed[i] >= 0 passes before row i."""
        return learn_fading(factor, rows, self.discounts(elapsed))


@dataclass(frozen=True)
class Stabilized(_Discounted):
    """Data fade, the prior does not: prior + discounted data (Kulhavy and Zarrop 1993).

    A direction that no row visits falls back to its prior, and never beyond. After every call the
    posterior is exactly that. In the midst of a call over many rows the prior is refreshed every
    few rows only, and weighs between 1 and 1.4 times its own; predictions there are as cautious as
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

    def learn(self, factor: Factor, prior: Factor, rows: Rows, elapsed: Array) -> Before:
        """Learn rows in order in ``factor``, where elapsed[i] >= 0 passes before row i."""
        return learn_stabilized(factor, prior, rows, self.discounts(elapsed))


@dataclass(frozen=True)
class Directional(_Discounted):
    """Only what a new row speaks about fades, and never below the prior.

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

    def learn(self, factor: Factor, prior: Factor, rows: Rows, elapsed: Array) -> Before:
        """Learn rows in order in ``factor``, where elapsed[i] >= 0 passes before row i."""
        return learn_directional(factor, prior, rows, self.discounts(elapsed))


@dataclass(frozen=True)
class Smoothing:
    """A weighted average of what is known and the new row: gamma old + (1 - gamma) new.

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

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one that has seen nothing."""
        return FadingPosterior.around(posterior, self)

    def learn(self, factor: Factor, prior: Factor, rows: Rows, elapsed: Array) -> Before:
        """Learn rows in order in ``factor``, where elapsed[i] >= 0 passes before row i."""
        if factor.seen == 0.0:
            elapsed[:1] = 1.0  # the tutorial's average forgets the prior at the first row already
        return learn_fading(factor, rows, np.power(self.gamma, elapsed), 1.0 - self.gamma)


@dataclass(frozen=True)
class RandomWalk:
    """Coefficients wander: w_t = w_(t-1) + Normal(0, variance) a unit of time.

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

    variance: ArrayLike

    def __post_init__(self) -> None:
        variance = np.asarray(self.variance, dtype=np.float64)
        if variance.ndim > 1 or not (np.isfinite(variance) & (variance >= 0.0)).all():
            raise ValueError(
                f"variance is {self.variance!r}: it must be a number, or one for each feature, "
                "finite and not negative"
            )

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one that has seen nothing."""
        relative = self.steps(posterior.n_coefficients, posterior.intercept)
        # Rows are in noise-relative units: a known precision turns variances into those.
        return FadingPosterior.around(
            posterior, RandomWalk(tuple(relative / posterior.noise.prior_unit))
        )

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

    def learn(self, factor: Factor, prior: Factor, rows: Rows, elapsed: Array) -> Before:
        """Learn rows in order in ``factor``, where elapsed[i] >= 0 passes before row i."""
        return learn_wandering(factor, rows, elapsed, np.asarray(self.variance, dtype=np.float64))


@dataclass(frozen=True)
class Window:
    """Exactly the last rows, and nothing of those before them.

    Rows that leave are rotated out; where that would lose digits, as after a row of enormous
    leverage, and once a window's length anyway, the window is built anew from its rows, which it
    keeps.

    Parameters
    ----------
    size
        Number of rows.
    duration
        Length of time, instead: rows older than this have left. Needs ``times=`` to mean anything
        else than rows.

    Examples
    --------
    >>> Window(size=500).size
    500
    """

    size: int | None = None
    duration: float | None = None

    def __post_init__(self) -> None:
        if (self.size is None) == (self.duration is None):
            raise ValueError("Window needs either a size, in rows, or a duration")
        if self.size is not None and (self.size != int(self.size) or self.size < 1):
            raise ValueError(f"size is {self.size}: it must be a whole number of rows, at least 1")
        if self.duration is not None and not 0.0 < self.duration < math.inf:
            raise ValueError(f"duration is {self.duration}: it must be positive and finite")

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one that has seen nothing."""
        return WindowPosterior.around(posterior, self)

    def first_kept(self, times: Array, weights: Array, start: int) -> NDArray[np.intp]:
        """First row in the window at each of rows start..n, and after the last of them.

        ``times`` and ``weights`` (n,) are those of all rows, kept and new. A row is predicted from
        the rows before it that are at most ``size`` rows or ``duration`` old; rows of weight 0 do
        not count.
        """
        if self.size is not None:
            counted = weights > 0.0
            before = np.concatenate([[0], np.cumsum(counted)])[start:]
            places = np.append(np.flatnonzero(counted), len(weights))
            full = before > self.size
            return np.where(full, places[np.where(full, before - self.size, 0)], 0).astype(np.intp)
        assert self.duration is not None
        now = np.append(times[start:], times[-1])
        kept = np.searchsorted(times, now - self.duration, side="left")
        return np.minimum(kept, np.arange(start, len(times) + 1)).astype(np.intp)


@dataclass(frozen=True)
class Adaptive:
    """No knob: an average over discounts, weighed by how well each has predicted lately.

    Dynamic model averaging (Raftery, Karny and Ettler 2010). Every discount has a
    :class:`Stabilized` posterior of its own, and predictions are their mixture. A member's weight
    is the product of its past predictive densities, each to the power persistence^age; since no
    one persistence serves calm and turmoil alike, several are tried, and weighed in the same way
    with ``outer_persistence``. What has never drifted is predicted nearly as well as without
    forgetting, and after a change the short memories take over within a few rows.

    Parameters
    ----------
    discounts
        Discounts to average over, each in (0, 1]. By default eight, from no forgetting to a memory
        of 2.5 rows, or of half a row for each coefficient where that is more: see :meth:`grid`.
    persistence
        How much of past success counts one unit further back, each in (0, 1].
    outer_persistence
        The same among the averages that each persistence makes.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = np.where(np.arange(400) < 200, 1.0, -1.0) * X[:, 0] + 0.1 * rng.normal(size=400)
    >>> model = BayesianLinearRegression(forgetting=Adaptive()).fit(X, y)
    >>> bool(abs(model.coef_[0] + 1.0) < 0.05)
    True
    """

    discounts: tuple[float, ...] | None = None
    persistence: tuple[float, ...] = (1.0, 0.999, 0.99, 0.9)
    outer_persistence: float = 0.999

    def __post_init__(self) -> None:
        for name, values in (
            ("discounts", (1.0,) if self.discounts is None else self.discounts),
            ("persistence", self.persistence),
            ("outer_persistence", (self.outer_persistence,)),
        ):
            if len(values) == 0 or not all(0.0 < value <= 1.0 for value in values):
                raise ValueError(f"{name} is {values}: each must be above 0 and at most 1")

    @staticmethod
    def grid(n_coefficients: int) -> tuple[float, ...]:
        """Eight discounts whose memories 1 / (1 - discount) are spread evenly on a log scale.

        Examples
        --------
        >>> [round(discount, 4) for discount in Adaptive.grid(2)]
        [1.0, 0.9995, 0.9985, 0.9954, 0.9859, 0.957, 0.8687, 0.6]
        """
        shortest = max(2.5, n_coefficients / 2.0)
        memories = np.geomspace(max(2000.0, 40.0 * shortest), shortest, 7)
        return (1.0, *(1.0 - 1.0 / memories).tolist())

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one that has seen nothing."""
        discounts = self.discounts or self.grid(posterior.n_coefficients)
        runs = [Stabilized(discount).begin(posterior.copy()) for discount in discounts]
        return AveragedPosterior.around(
            posterior, runs, tuple(self.persistence), self.outer_persistence
        )


@dataclass(frozen=True)
class Changepoint:
    """Begin anew where the world has changed: Bayesian online changepoint detection.

    Every row may be the first of a new regime. Each row at which the last change may have been has
    a regression, and a noise, of its own, learned from the rows since; predictions are their
    mixture, weighed by how probable each is (Adams and MacKay 2007; Fearnhead and Liu 2007), with
    the possibility that the world changes right before the row that is predicted.

    The model then reports ``change_probability_``, the probability of a change right before each
    row of the last call given all rows of it, and ``changes_``, the rows (from the start of the
    stream) right before which the world changed, as far as is known by now.

    Parameters
    ----------
    hazard
        Probability of a change within one unit of time, in (0, 1).
    max_runs
        Most rows to consider as the last change's; learning a row takes that many times longer.
    smallest_probability
        Rows that are less probable as the last change's than this are not considered any more.

    Notes
    -----
    A new regime starts from the prior. Where the prior is improper, as a flat intercept and noise
    of unknown size are, it can't be compared with what was learned, so it is completed by what all
    rows so far say, with the weight of at most one row, and by the noise now, with the weight of
    three (unit information: Kass and Wasserman 1995); until there are rows enough for that, no
    change is considered. ``log_evidence_`` is the sum of the log predictive densities.

    An outlier, many noise standard deviations away, looks like a change, and the rows after it like
    another. Slow drift is followed better by :class:`Adaptive`. A call that predicts keeps about
    2 kB a row while it runs: pass long streams in chunks.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = np.where(np.arange(400) < 200, 1.0, -1.0) * X[:, 0] + 0.1 * rng.normal(size=400)
    >>> model = BayesianLinearRegression(forgetting=Changepoint()).fit(X, y)
    >>> model.changes_
    array([200])
    >>> model.coef_.round(1), round(model.n_effective_)
    (array([-1.]), 200)
    """

    hazard: float = 1.0 / 250.0
    max_runs: int = 50
    smallest_probability: float = 1e-8

    def __post_init__(self) -> None:
        if not 0.0 < self.hazard < 1.0:
            raise ValueError(
                f"hazard is {self.hazard}: it must lie between 0 and 1, as in 1/250 for a change "
                "every 250 rows"
            )
        if self.max_runs != int(self.max_runs) or self.max_runs < 2:
            raise ValueError(f"max_runs is {self.max_runs}: it must be a whole number, at least 2")
        if not 0.0 <= self.smallest_probability < 1.0:
            raise ValueError(
                f"smallest_probability is {self.smallest_probability}: it must be at least 0 and "
                "below 1, as in 1e-8"
            )

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that begins anew where the world has changed."""
        return ChangepointPosterior.around(posterior, self)

    def hazards(self, elapsed: Array) -> Array:
        """Probability of a change in each stretch of time: 1 - (1 - hazard)^elapsed."""
        return -np.expm1(elapsed * math.log1p(-self.hazard))
