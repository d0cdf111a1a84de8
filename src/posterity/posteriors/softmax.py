"""What a classifier of many classes knows: a Gaussian over the contrasts between them.

K classes have K linear predictors, of which only the K - 1 differences matter. With the rows of H
(K, K - 1) orthonormal contrasts (Helmert's: class k + 1 against the mean of those before it), the
predictors are eta = H V x, and K independent priors Normal(0, 1 / precision), one a class, are the
same independent priors on the rows of V (K - 1, p), whatever happens to the common part, which no
label tells of. So the mode is that of a penalty on all K classes alike. And the first K - 1
later adds one row to V. (By the independence of irrelevant alternatives the rows before it stay
what they were: choices among the classes there were.) Of the new row the prior is known, and that
all rows before, taken at their mean, were of other classes.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from posterity.posteriors._softmax_contrasts import Contrasts
from posterity.posteriors._softmax_likelihood import (
    N_POINTS,
    Array,
    Index,
    Rows,
    helmert,
    integrated,
    log_softmax,
    spread,
)
from posterity.posteriors._softmax_prior import ContrastPrior, log_belief, peak
from posterity.posteriors._softmax_recent import RecentRows

# Of the log of the prior's scale, between which the best one is looked for.
STEP = math.log(4.0)
# Logs of scales that agree, where sites tell of averages.
AGREE = 3e-2
BLOCK_NUMBERS = 4_000_000


@dataclass
class SoftmaxPosterior:
    """Contrasts, the prior they are read with, and how much was learned.

    Parameters
    ----------
    contrasts
        What the data say.
    prior
        The prior now in use; its scale is learned where ``learns`` is true.
    rate
        What is left of the past after one unit of time; 1: nothing is forgotten.
    recent
        The last rows, to be learned again together; ``contrasts`` knows them already.
    """

    learns_lean: ClassVar[bool] = False
    predicts_lean: ClassVar[bool] = False

    contrasts: Contrasts
    prior: ContrastPrior
    learns: bool
    rate: float = 1.0
    n_observations: float = 0.0
    n_effective: float = 0.0
    due: float = field(default=0.0, repr=False)
    recent: RecentRows | None = field(default=None, repr=False)

    def copy(self) -> SoftmaxPosterior:
        """The same knowledge, to go its own way."""
        twin = copy.copy(self)
        twin.contrasts, twin.prior = self.contrasts.copy(), self.prior.copy()
        return twin

    @property
    def n_classes(self) -> int:
        """Classes there are so far."""
        return self.contrasts.n_classes

    def add_classes(self, n_classes: int) -> None:
        """Make room for so many classes in all, the new ones last."""
        self.settle()
        for _ in range(n_classes - self.n_classes):
            self.contrasts.add_class()
            if self.n_effective > 0.0:
                self.contrasts.rule_out(self.prior.center, self.n_effective, self.prior)
        self.wait()

    def reorder(self, order: Index) -> None:
        """Put class ``order[i]`` into place i: the contrasts V become H' P H V."""
        self.settle()
        contrasts = helmert(self.n_classes)
        self.contrasts.turn(contrasts.T @ contrasts[order])

    def same_prior(self, other: SoftmaxPosterior) -> bool:
        """Whether both started from the same belief and forget alike."""
        return (
            self.learns == other.learns
            and self.rate == other.rate
            and type(self.contrasts) is type(other.contrasts)
            and self.prior.intercept == other.prior.intercept
            and (self.learns or np.array_equal(self.prior.precision(), other.prior.precision()))
        )

    def merge(self, other: SoftmaxPosterior) -> None:
        """Learn all that ``other`` has learned about the same classes."""
        self.settle()
        other = other.copy()
        other.settle()
        self.contrasts.merge(other.contrasts)
        self.prior.merge(other.prior)
        self.n_observations += other.n_observations
        self.n_effective += other.n_effective
        if self.learns:
            self.prior = self.prior.scaled(self.contrasts.scale(self.prior))
            self.due = 1.25 * self.n_effective

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Refuse: what a row said depended on what was known when it came."""
        raise ValueError(
            "can't unlearn rows of a classifier: what a row said depended on what was known when "
            "it came; fit the remaining rows again"
        )

    # ---- learning ------------------------------------------------------------------------------

    def fit(self, rows: Rows, *, averaged: bool = False) -> None:
        """Learn the first rows, iterated to the mode (with the prior that its evidence chooses).

        Or, if ``averaged``, until what they say on average over what is open is what they are
        taken for; here and below.
        """
        self.prior = self.prior.with_flat_intercept()
        self._saw(rows)
        self._begin(rows, averaged=averaged)
        self._count(rows, rows)
        self.due, self.recent = 1.25 * self.n_effective, None

    def append(self, rows: Rows, elapsed: Array, *, averaged: bool = True) -> None:
        """Learn a mini-batch, all of it together and with the rows before it, as :meth:`_learn`."""
        after = self.rate ** (np.sum(elapsed) - np.cumsum(elapsed))
        self._fade(float(np.sum(elapsed)))
        self._learn(rows, Rows(rows.X, rows.labels, rows.weights * after), averaged=averaged)

    def predict_then_learn(self, rows: Rows, elapsed: Array, *, averaged: bool = True) -> Array:
        """Learn row after row; (n, K) log probabilities before each."""
        told = np.empty((len(rows.X), self.n_classes))
        for i in range(len(rows.X)):
            one = rows.of(slice(i, i + 1))
            self._fade(float(elapsed[i]))
            told[i] = self.log_probabilities(one.X)[0]
            self._learn(one, one, averaged=averaged)
        return told

    def settle(self) -> None:
        """Learn the last rows together, and keep them no longer."""
        if self.recent is not None and self.recent.fresh > 0:
            self._learn_again(self.recent)
        self.recent = None

    def _learn(self, rows: Rows, faded: Rows, *, averaged: bool) -> None:
        """Learn rows that came at one time; those that count, and with what is left of them.

        They are kept for a while, and learned again together with those that come after them. With
        a flat prior they are not: a few rows then have no mode.
        """
        told = faded.of(np.flatnonzero(faded.weights))
        if len(told.X) == 0:
            return
        first = self.n_observations == 0.0
        self._saw(told)
        recent, again = self.recent, False
        if self.prior.proper:
            if recent is None:
                recent = RecentRows.after(self.contrasts.copy(), told.X.shape[1], first=first)
            recent = recent.and_these(told, averaged=averaged)
            again = recent.due and self._learn_again(recent)
            recent = recent.settled() if again else recent
            recent = None if recent.full else recent
        if first and len(told.X) > 1 and not again:
            self._begin(told, averaged=averaged)
        elif not again:
            self.contrasts.append(told, self.prior, averaged=averaged)
        self.recent = recent
        self._count(rows, faded)
        self._choose()

    def _learn_again(self, recent: RecentRows) -> bool:
        """Learn the last rows together, from what was known before them, if their mode is found."""
        again = recent.base.copy()
        if not again.append(recent.rows, self.prior, averaged=recent.averaged):
            return False
        self.contrasts = again
        if recent.first and self.learns:
            self._begin(recent.rows, averaged=recent.averaged)
        return True

    def _begin(self, rows: Rows, *, averaged: bool) -> None:
        """Learn the first rows with the prior that their evidence chooses."""
        if self.learns:
            # The sizes of the features are taken into account anew, too.
            scale = self.prior.scale if averaged else self._best_scale(rows)
            self.prior = self.prior.scaled(scale)
        self.contrasts.fit(rows, self.prior, averaged=averaged)
        for _ in range(20 if self.learns and averaged else 0):
            scale = self.contrasts.scale(self.prior)
            change = abs(np.log(scale / self.prior.scale))
            self.prior = self.prior.scaled(scale)
            self.contrasts.fit(rows, self.prior, averaged=averaged)
            if change < AGREE:
                break
        self.due = 1.25 * float(np.sum(rows.weights))

    def _best_scale(self, rows: Rows) -> float:
        """Where the evidence of the rows, each time at their mode, is largest.

        Curvatures found at a mode speak for the scale that led there: taken as they are, as those
        of averages are, they would keep it where it is.
        """
        trial = self.contrasts.copy()

        def told(log_scale: float) -> float:
            prior = self.prior.scaled(math.exp(log_scale))
            trial.fit(rows, prior, averaged=False)
            return trial.log_evidence(prior) + log_belief(log_scale)

        return math.exp(peak(told, math.log(self.prior.scale), STEP))

    def _saw(self, rows: Rows) -> None:
        """Take the sizes of the features into account."""
        self.prior.saw(rows.X, rows.weights)
        if self.learns and self.n_observations == 0.0:
            self.prior = self.prior.scaled(1.0)
            self.wait()

    def wait(self) -> None:
        """Keep the prior's scale until there are as many rows as coefficients.

        From fewer that came one by one, each met with the prior before, a scale would be chosen
        that is but that prior's echo.
        """
        self.due = max(self.due, float(self.prior.center.size * (self.n_classes - 1)))

    def _count(self, rows: Rows, faded: Rows) -> None:
        self.n_observations += float(np.sum(rows.weights))
        self.n_effective += float(np.sum(faded.weights))

    def _fade(self, elapsed: float) -> None:
        if self.rate < 1.0 and elapsed > 0.0 and self.n_observations > 0.0:
            discount = self.rate**elapsed
            self.contrasts.fade(discount)
            self.prior.fade(discount)
            if self.recent is not None:
                self.recent = self.recent.faded(discount)
            self.n_effective *= discount
            self.due *= discount

    def _choose(self) -> None:
        """Choose the prior's scale anew, after a fourth more rows."""
        if self.learns and self.n_effective >= self.due and self.n_effective > 0.0:
            self.prior = self.prior.scaled(self.contrasts.scale(self.prior))
            self.due = 1.25 * self.n_effective + 1.0

    # ---- reading -------------------------------------------------------------------------------

    def coefficients(self) -> Array:
        """(K, p) posterior mean, one row a class; the columns sum to 0."""
        return helmert(self.n_classes) @ self.contrasts.mean(self.prior)

    def predictors(self, X: Array) -> Array:
        """(n, K) posterior mean of the linear predictors."""
        return X @ self.coefficients().T

    def log_probabilities(self, X: Array) -> Array:
        """(n, K) log of the probabilities, integrated over the posterior."""
        told = np.empty((len(X), self.n_classes))
        for part in self._blocks(len(X)):
            told[part] = integrated(*self.contrasts.contrasts(X[part], self.prior))
        return told

    def probability_interval(self, X: Array, level: float) -> Array:
        """(n, K, 2) ends of the central interval of each probability."""
        ends = np.empty((len(X), self.n_classes, 2))
        for part in self._blocks(len(X)):
            mean, covariance = self.contrasts.contrasts(X[part], self.prior)
            drawn = np.exp(log_softmax(spread(mean, covariance)))
            both = np.quantile(drawn, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=1)
            ends[part] = np.moveaxis(both, 0, -1)
        return ends

    def _blocks(self, n: int) -> list[slice]:
        """Rows to be read at a time: their covariances and points are held in memory."""
        size = max(1, BLOCK_NUMBERS // (self.n_classes * (self.n_classes + 2 * N_POINTS)))
        return [slice(start, start + size) for start in range(0, n, size)]

    @property
    def log_evidence(self) -> float:
        """Laplace's evidence of the labels; a flat direction has density 1."""
        return self.contrasts.log_evidence(self.prior)
