"""Strategies that try several memories and average over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from posterity.aliases import Array
from posterity.forgetting.fading import DiscountAndLength, RandomWalk, SlopeWalk, Stabilized
from posterity.posteriors.banked_runs import BankedRuns
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.mixed import MixedPosterior
from posterity.posteriors.regimes import Regimes
from posterity.posteriors.strategies import Strategies
from posterity.posteriors.switching import Switching

# Variances of the steps of a level that moves, relative to the noise's.
LEVEL_VARIANCES = (0.003, 0.03, 0.3)
# Share by which the variance of a slope that moves alone grows, and most slopes that are tried.
SLOPE_GROWTH, MOST_SLOPES = 0.15, 20
# Shortest memory of a forecaster's form, in rows for each coefficient, and for the noise.
SHORTEST = 3


@dataclass(frozen=True)
class Adaptive:
    """Average over ways to change, weighted by how well each has predicted lately.

    Dynamic model averaging (Raftery, Karny and Ettler 2010). The members are

    * :class:`Stabilized` posteriors, one for each discount: all coefficients fade;
    * random walks of the intercept alone, of three sizes (:class:`RandomWalk`): a level moves, and
      slopes stay known;
    * walks of each slope alone, of up to 20: all others stay known;
    * :class:`Changepoint`: all begins anew, and intervals are sharp again soon after a jump.

    Predictions are their mixture. A member's weight is the product of its past predictive
    densities, each to the power persistence^age; since no one persistence serves calm and turmoil
    alike, several are tried, and weighed in the same way with ``outer_persistence``. The
    discounts are averaged first, and share noise memories that are apart from those of the
    coefficients; where the prior is learned, every second one has a weak one instead, worth a tenth
    of a row. What has never drifted is predicted nearly as well as without forgetting.

    Parameters
    ----------
    discounts
        Average over these alone, each in (0, 1], without walks and changes. By default eight, from
        no forgetting to a memory of 2.5 rows, or of a row for each coefficient where that is more:
        see :meth:`grid`.
    persistence
        How much of past success counts one unit further back, each in (0, 1].
    outer_persistence
        The same among the averages that each persistence makes.

    Notes
    -----
    A model without an intercept has no level that moves. ``Changepoint`` is a member where it is
    fast: with Gaussian targets, and a prior given in numbers or "auto". Labels of two classes and
    counts have discounts and walks. With heavy tails, quantiles, more than two classes and
    ``noise="linear"`` there are discounts alone.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = np.where(np.arange(400) < 200, 1.0, -1.0) * X[:, 0] + 0.1 * rng.normal(size=400)
    >>> model = BayesianLinearRegression(forgetting=Adaptive()).fit(X, y)
    >>> bool(model.coef_[0] < -0.8)
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
        [1.0, 0.9995, 0.9985, 0.9954, 0.9859, 0.9569, 0.8687, 0.6]
        """
        shortest = max(2.5, float(n_coefficients))
        memories = np.geomspace(max(2000.0, 40.0 * shortest), shortest, 7)
        return (1.0, *(1.0 - 1.0 / memories).tolist())

    def memories(self, n_coefficients: int) -> tuple[DiscountAndLength, ...]:
        """Return the memories that forecasts average over: every second discount of the grid."""
        return tuple((rate, None) for rate in self.discounts or self.grid(n_coefficients)[::2])

    def over_discounts(self, n_coefficients: int) -> Adaptive:
        """The same without walks and changes."""
        return replace(self, discounts=self.discounts or self.grid(n_coefficients))

    @property
    def needs_each_column(self) -> bool:
        """As Changepoint, where that is a member."""
        return self.discounts is None

    def begin(self, posterior: LinearPosterior) -> LinearPosterior:
        """Return a posterior that forgets in this way, from one without data."""
        if self.discounts is None and not posterior.joins_strategies:
            return self.over_discounts(posterior.n_coefficients).begin(posterior)
        if self.discounts is None:
            return self._average(self._begin_each(posterior))
        rules = tuple(self.persistence), self.outer_persistence
        learns_noise = posterior.noise.parameters[0] == 0.0
        members = [
            Stabilized(discount).begin(
                posterior.member(weak=i % 2 == 1) if learns_noise else posterior.copy_for_average()
            )
            for i, discount in enumerate(self.discounts)
        ]
        return MixedPosterior.of(Switching.before_data(members, *rules, learns_noise=learns_noise))

    def _average(self, members: Sequence[LinearPosterior]) -> LinearPosterior:
        rules = tuple(self.persistence), self.outer_persistence
        return MixedPosterior.of(Strategies.before_data(members, *rules, learns_noise=False))

    def _begin_each(self, posterior: LinearPosterior) -> list[LinearPosterior]:
        """Return what is averaged over by default; only what fades learns its prior.

        All slopes count for as much as one level: with many of them each is less probable.
        """
        fading = self.over_discounts(posterior.n_coefficients)
        flat = posterior.single_factor
        plain = posterior.copy_for_average() if flat is None else flat
        p, unit = posterior.n_coefficients, posterior.noise.prior_unit
        stay = (0.0,) * posterior.n_features
        levels = LEVEL_VARIANCES if posterior.intercept else ()
        places = range(int(posterior.intercept), p)
        slopes = [RandomWalk((0.0,) * p), *(SlopeWalk.of(j, p, SLOPE_GROWTH) for j in places)]
        tried = 0 < posterior.n_features <= MOST_SLOPES
        return [
            fading.begin(posterior.copy_for_average()),
            *(RandomWalk((variance * unit, *stay)).begin(plain.copy()) for variance in levels),
            *([] if flat is None else [Changepoint().begin(flat)]),
            *([self._average([walk.begin(plain.copy()) for walk in slopes])] if tried else []),
        ]


@dataclass(frozen=True)
class Changepoint:
    """Restart after changes of the data: Bayesian online changepoint detection.

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
    With Gaussian targets, and a prior given in numbers or "auto", which is flat here, all runs are
    triangles that learn a row at once: some 20 microseconds a row. Where the prior is learned for
    each run ("ard", ``Maximized()``, that of a basis), and under any other likelihood, each has a
    posterior of its own: this is slow: with 3 features 7 to 16 milliseconds a row, of
    :class:`~posterity.BayesianRobustRegression` 90. What all
    targets so far were, a Student-t of their mean and spread, then stands for what a run predicts
    before it knows anything, and rows are dropped from consideration after every 16.

    A new regime starts from the prior. Where a prior given in numbers is improper, as a flat
    intercept and noise of unknown size are, it can't be compared with what was learned, so it is
    completed by what all rows so far say, with the weight of at most one row, and by the noise now,
    with the weight of three (unit information: Kass and Wasserman 1995); until there are rows
    enough for that, no change is considered. ``log_evidence_`` is the sum of the log predictive
    densities.

    Every regime shares the estimator's prior: one that is much too tight (``prior_precision`` is
    relative to the noise when that is learned) makes all fit badly, and hides small changes. With
    Gaussian targets a row may be an outlier instead: with probability 1% its noise has ten times
    the standard deviation. A regime of 15 rows or more does not learn a row that is more probable
    so; predictions do not expect outliers. For labels and counts an outlier still looks like a
    change, and the rows after it like another. Slow drift is reported as a
    change, too, and is followed better by :class:`Adaptive`. A call that predicts keeps about 2 kB
    a row while it runs: pass long streams in chunks.

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

    # New runs begin with what all rows say, where the prior is flat.
    needs_each_column: ClassVar[bool] = True

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
        """Return a posterior that restarts after changes of the data."""
        banked = posterior.single_factor
        if banked is not None:  # all runs are triangles in one bank
            return MixedPosterior.of(BankedRuns.before_data(banked, self))
        return MixedPosterior.of(Regimes.before_data(posterior, self))

    def memories(self, n_coefficients: int) -> tuple[DiscountAndLength, ...]:
        """Return the memories of a forecaster: all rows, or multiples of the usual run length."""
        usual = (math.ceil(share / self.hazard) for share in (1.0, 0.5, 0.25, 0.125))
        sizes = sorted({max(rows, SHORTEST * (n_coefficients + 1)) for rows in usual})
        return ((1.0, None), *((1.0, rows) for rows in sizes))

    def hazards(self, elapsed: Array) -> Array:
        """Probability of a change in each stretch of time: 1 - (1 - hazard)^elapsed."""
        return -np.expm1(elapsed * math.log1p(-self.hazard))

    def after(self, elapsed: float) -> Changepoint:
        """The same whose unit of time is so long: its hazard is that of all of it."""
        least, most = np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg
        return replace(self, hazard=float(np.clip(self.hazards(np.array(elapsed)), least, most)))
