"""The posterior of a classifier of many classes: a Gaussian over the contrasts between them.

K classes have K linear predictors, of which only the K - 1 differences matter. With the rows of H
(K, K - 1) orthonormal contrasts (Helmert's: class k + 1 against the mean of those before it), the
predictors are eta = H V x, and K independent priors Normal(0, 1 / precision), one a class, are the
same independent priors on the rows of V (K - 1, p), whatever happens to the common part, which no
label tells of. So the mode is that of a penalty on all K classes alike. And the first K - 1
later adds one row to V. (By the independence of irrelevant alternatives the rows before it stay
what they were: choices among the classes there were.) Of the new row the prior is known, and that
all rows before, taken at their mean, were of other classes.

What the data say is kept under a flat prior, in a posterior that may forget in any way that has one
memory; the prior, which never fades, is joined to it when something is learned or read.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from posterity.aliases import Array, Indices
from posterity.distributions import Categorical
from posterity.evidence.members import use_single_node
from posterity.factor.factor import NotInFactorError
from posterity.posteriors._removal import explain_never_learned, weigh_rest
from posterity.posteriors._softmax_contrasts import Contrasts
from posterity.posteriors._softmax_likelihood import Rows, helmert
from posterity.posteriors._softmax_prior import ContrastPrior
from posterity.posteriors._softmax_reading import SoftmaxReading
from posterity.posteriors._softmax_recent import RecentRows
from posterity.posteriors._softmax_rule import begin, choose_prior
from posterity.posteriors.gaussian import refuse_waiting
from posterity.posteriors.memory import Memory


@dataclass
class SoftmaxPosterior(SoftmaxReading):
    """Posterior of the contrasts of many classes.

    Rows ``X`` (n, m) come without the intercept's 1, ``y`` (n, 1) are places of classes, from 0.
    """

    wait = refuse_waiting
    joins_strategies: ClassVar[bool] = False

    def copy(self) -> SoftmaxPosterior:
        """An independent copy."""
        twin = copy.copy(self)
        twin.contrasts, twin.prior = self.contrasts.copy(), self.prior.copy()
        twin.recent = copy.copy(self.recent)
        twin._clear_caches()  # its factors are those of this one
        return twin

    def copy_from(self, other: SoftmaxPosterior) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.__dict__.update(other.copy().__dict__)

    def with_memory(self, memory: Memory) -> SoftmaxPosterior:
        """The same that forgets, before it has seen anything."""
        twin = self.copy()
        twin.contrasts = self.contrasts.with_memory(memory)
        return twin

    def copy_for_average(self) -> SoftmaxPosterior:
        """A copy to be one of many that are averaged: of one node."""
        twin = self.copy()
        twin.strategy = self.strategy and use_single_node(self.strategy)
        return twin

    # ---- classes, models, rows that leave ------------------------------------------------------

    def add_classes(self, n_classes: int) -> None:
        """Make room for so many classes in all, the new ones last."""
        self.learn_recent_rows()
        for _ in range(n_classes - self.n_classes):
            if self.prior.root.ndim == 3:  # contrasts that had a prior each
                self.prior = self.prior.scaled(self.prior.scale)
            self.contrasts.add_class(self.prior.center, self.prior)
        self.postpone_prior()

    def reorder(self, order: Indices) -> None:
        """Put class ``order[i]`` into place i: the contrasts V become H' P H V."""
        self.learn_recent_rows()
        contrasts = helmert(self.n_classes)
        self.contrasts.rotate(contrasts.T @ contrasts[order])
        self._clear_caches()

    def has_same_prior(self, other: Any) -> bool:
        """Return True if both started from the same prior and forget alike."""
        mine, its = self.contrasts, other.contrasts
        return (
            self.strategy == other.strategy
            and mine.separate == its.separate
            and mine.one.has_same_prior(its.one)
            and self.intercept == other.intercept
            and (
                self.strategy is not None
                or np.array_equal(self.prior.precision(), other.prior.precision())
            )
        )

    def merge(self, other: SoftmaxPosterior) -> None:
        """Learn all that ``other`` has learned about the same classes."""
        both, other = self.copy(), other.copy()
        both.learn_recent_rows()
        other.learn_recent_rows()
        both.contrasts.merge(other.contrasts)
        both.prior.merge(other.prior)
        both._choose()
        self.copy_from(both)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows: subtract their sites, evaluated at the current posterior.

        Exact for rows of a fit, but for what the others would say without them.
        """
        self.memory.check_removal()
        rows, after = self._rows(X, y, weights), self.copy()
        rows = rows.of(np.flatnonzero(rows.weights))
        learned = self.n_observations
        rest = weigh_rest(learned, rows.total)
        if not len(rows.X):
            return
        after.learn_recent_rows()
        together = after.together == learned
        averaged = self.approximation == "moments" if together else self._averages
        if not rest:
            after._reset()
        else:
            try:
                after.contrasts.unlearn(rows, after.prior, averaged=averaged, together=together)
            except NotInFactorError as error:
                raise ValueError(explain_never_learned("one of the rows")) from error
            after.prior.add_scales(rows.X, -rows.weights)
            after._count(rest, rest)
            # What the others say was found under this prior, and would but echo it.
            after.next_prior_update = min(
                after.next_prior_update, rest + 0.25 * self.n_effective + 1.0
            )
            after._clear_caches()
        after.together = -1.0
        self.copy_from(after)

    def _reset(self) -> None:
        """Forget all rows; keep the number of classes."""
        contrasts = self.contrasts
        self.contrasts = Contrasts.before_data(
            contrasts.n_classes, contrasts.n_columns, separate=contrasts.separate
        )
        root = self.prior.given_root
        root = root.reshape(-1, *root.shape[-2:])[0]
        self.prior = ContrastPrior.of(root, intercept=self.intercept)
        self.next_prior_update = 0.0
        self._clear_caches()

    # ---- learning ------------------------------------------------------------------------------

    def fit(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn the first rows, iterated to the mode (with the prior that its evidence chooses).

        Or by averages ("moments"), until what they say on average over what is open is what they
        are taken for. A posterior that forgets learns them as a batch.
        """
        if self.memory.forgets:
            self.append(X, y, weights, elapsed)
            return
        rows, after = self._rows(X, y, weights), self.copy()
        rows = rows.of(np.flatnonzero(rows.weights))
        after.prior = after.prior.with_flat_intercept()
        after._add_scales(rows)
        after._begin(rows, after.contrasts, averaged=self.approximation == "moments")
        after.recent, total = None, float(np.sum(rows.weights))
        after._count(total, total)
        after.together = total
        self.copy_from(after)

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn a mini-batch: all of it together and with the rows before it, as far as it can be.

        Where what is left of a row is no number, as in a window, row after row.
        """
        rows, after = self._rows(X, y, weights), self.copy()
        if not self.memory.only_discounts:
            self.predict_then_learn(X, y, weights, elapsed)
            return
        if len(rows.X):
            discounts = self.memory.discounts(elapsed)
            later = np.append(np.cumprod(discounts[:0:-1])[::-1], 1.0)
            begins = int(np.argmax(rows.weights > 0.0)) + 1 if after.n_observations == 0.0 else 0
            after._pass_time(rows.X[:1], elapsed[begins:])
            after._learn(Rows(rows.X, rows.labels, rows.weights * later), float(rows.weights.sum()))
        self.copy_from(after)

    def learn_together(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn all rows there are, as one batch that no others will follow."""
        rows, after = self._rows(X, y, weights), self.copy()
        rows = rows.of(np.flatnonzero(rows.weights))
        after._add_scales(rows)
        after.prior = after.prior.with_flat_features_closed()
        if len(rows.X) > 1:
            after._begin(rows, after.contrasts, averaged=after._averages)
        else:
            after.contrasts.learn(rows, after.prior, averaged=after._averages)
        after._count(float(np.sum(rows.weights)))
        after._clear_caches()
        self.copy_from(after)

    def check_targets(self, y: Array) -> None:
        """Accept all: places of classes were checked where labels were read."""

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Categorical:
        """Learn row after row; returns the distribution of each class's place before its row."""
        rows, after = self._rows(X, y, weights), self.copy()
        log_probabilities, path = np.empty((len(rows.X), self.n_classes)), None
        for i in range(len(rows.X)):
            one = rows.of(slice(i, i + 1))
            if path is None and after.has_fast_learn_one:
                path = after.row_path(None)
            if path is not None:
                log_probabilities[i] = path.log_probabilities(X[i])
                if path.learn(X[i], y[i, 0], one.weights[0]):
                    continue
            if after.n_observations > 0.0:
                after._pass_time(one.X, elapsed[i : i + 1])
            if path is None:
                log_probabilities[i] = after.log_probabilities_of(one.X)
            after._learn(one, float(one.weights[0]))
            path = None
        self.copy_from(after)
        return Categorical(np.arange(self.n_classes), log_probabilities)

    def learn_recent_rows(self) -> None:
        """Learn the last rows together, and keep them no longer."""
        if self.recent is not None and self.recent.fresh > 0:
            seen = self.n_observations
            self._relearn_recent_rows(self.recent)
            self._count(seen)
        self.recent = None

    def _rows(self, X: Array, y: Array, weights: Array | None) -> Rows:
        weights = np.ones(len(X)) if weights is None else weights
        return Rows(self.design(X), y[:, 0].astype(np.intp), weights)

    def _learn(self, rows: Rows, weight: float) -> None:
        """Learn rows that came at one time, of so much weight before it faded.

        They are kept for a while, and learned again together with those that come after them, but
        not where they do not fade alike. A flat prior is one that believes nearly nothing: a few
        rows have no mode without it.
        """
        rows = rows.of(np.flatnonzero(rows.weights))
        if len(rows.X) == 0:
            return
        seen, averaged = self.n_observations, self._averages
        first = seen == 0.0
        self._add_scales(rows)
        if first:
            self.prior = self.prior.with_flat_features_closed()
        log_predictive, before = self.contrasts.log_predictive, 0.0
        if self.memory.forgets and len(rows.X) == 1:
            log_predictive += float(
                rows.weights[0] * self.log_probabilities_of(rows.X)[0, rows.labels[0]]
            )
        elif self.memory.forgets:
            before = self.contrasts.log_density(self.prior.whole)
        again = self._keep(rows, averaged=averaged, first=first)
        if first and len(rows.X) > 1 and not again:
            self._begin(rows, self.contrasts, averaged=averaged)
        elif not again:
            self.contrasts.learn(rows, self.prior, averaged=averaged)
        if self.recent is not None and self.recent.full:
            self.recent = RecentRows.after(self.contrasts.copy(), rows.X.shape[1], first=False)
        if self.memory.forgets and len(rows.X) > 1:
            # Each label in full, whatever has faded since the first of them.
            faded = float(np.sum(rows.weights)) / weight
            log_predictive += (self.contrasts.log_density(self.prior.whole) - before) / faded
        self.contrasts.log_predictive = log_predictive
        self._count(seen + weight)
        self._clear_caches()
        self.choose_if_due()

    def _keep(self, rows: Rows, *, averaged: bool, first: bool) -> bool:
        """Keep rows where all fade alike; whether they were learned, together with the last."""
        if not self.prior.proper:
            return False
        if not self.memory.only_discounts:
            self.prior = self.prior.with_flat_features_closed()
            return False
        recent = self.recent
        if recent is None:
            recent = RecentRows.after(self.contrasts.copy(), rows.X.shape[1], first=first)
        self.recent = recent = recent.with_rows(rows, averaged=averaged)
        if not recent.due:
            return False
        self.prior = self.prior.with_flat_features_closed()
        again = self._relearn_recent_rows(recent)
        if again:
            self.recent = replace(recent, fresh=0)
        return again

    def _relearn_recent_rows(self, recent: RecentRows) -> bool:
        """Learn the last rows together, from what was known before them, if their mode is found."""
        again, now = recent.base.copy(), self.contrasts
        start = now.join_prior(self.prior)
        if not again.learn(recent.rows, self.prior, averaged=recent.averaged, start=start):
            return False
        self.contrasts = again
        if recent.first and self.strategy is not None:
            self._begin(recent.rows, recent.base, averaged=recent.averaged)
        self._clear_caches()
        return True

    def _begin(self, rows: Rows, before: Contrasts, *, averaged: bool) -> None:
        """Learn the first rows with the prior that their evidence chooses."""
        rule = self.strategy, self.shapes
        self.contrasts, self.prior = begin(before, self.prior, rows, *rule, averaged=averaged)
        self._clear_caches()
        self._schedule_next_choice()

    def _add_scales(self, rows: Rows) -> None:
        """Add the features' mean squares of rows."""
        self.prior = self.prior.copy()
        self.prior.add_scales(rows.X, rows.weights)
        if self.strategy is None and self.n_observations == 0.0:
            self.prior = self.prior.with_centered_intercept()
        elif self.n_observations == 0.0:
            self.prior = self.prior.scaled(1.0)
            self.postpone_prior()
        elif self.awaits_first_prior:
            self.prior = self.prior.scaled(self.prior.scale)

    def postpone_prior(self) -> None:
        """Keep the prior until there are as many rows as coefficients.

        From fewer that came one by one, each met with the prior before, a scale would be chosen
        that is but that prior's echo.
        """
        self.next_prior_update = max(
            self.next_prior_update, float(self.n_coefficients * (self.n_classes - 1))
        )
        self.awaits_first_prior = self.strategy is not None
        self._clear_caches()

    def _pass_time(self, x: Array, elapsed: Array) -> None:
        """Let time pass before a row ``x`` (1, p); before the first there is nothing to forget."""
        passed, part = float(np.sum(elapsed)), self.contrasts.one
        if self.memory.forgets and passed > 0.0:
            self.contrasts.pass_time(x, passed)
            if not part.memory.keeps_prior:
                left = part.memory.discounts_of_sums(np.array([passed]))
                self.prior = self.prior.faded(float(left[0]))
            if self.recent is not None:
                self.recent = self.recent.faded(x, passed)
            self._clear_caches()

    def _count(self, seen: float, effective: float | None = None) -> None:
        """Rows of so much weight have come, whatever has faded of them when they were learned."""
        for part in self.contrasts.parts:
            factor = part.factor
            left = factor.count if effective is None else effective
            factor.set_triangle(factor.triangle, left, seen)

    # ---- the prior -----------------------------------------------------------------------------

    def choose_if_due(self) -> None:
        """Choose the prior anew when there are rows enough."""
        if self.strategy is not None and self.n_observations >= self.next_prior_update:
            self._choose()

    def _choose(self) -> None:
        """Choose the prior anew."""
        if self.strategy is not None and self.n_effective > 0.0:
            self.prior = choose_prior(self.contrasts, self.prior, self.strategy, self.shapes)
        self._clear_caches()
        self._schedule_next_choice()

    def _schedule_next_choice(self) -> None:
        """The prior is chosen anew after a fourth more rows."""
        self.next_prior_update = self.n_observations + 0.25 * self.n_effective + 1.0
        self.awaits_first_prior = False
