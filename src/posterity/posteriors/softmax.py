"""What a classifier of many classes knows: a Gaussian over the contrasts between them.

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
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions import Categorical, MultivariateNormal
from posterity.evidence import OddsScale, Strategy
from posterity.evidence.members import single_node
from posterity.factor.factor import NotInFactorError
from posterity.factor.sites import softmax_path
from posterity.kernel import SoftmaxPath
from posterity.noise import KnownNoise, Noise
from posterity.posteriors._softmax_contrasts import Contrasts, Joined
from posterity.posteriors._softmax_likelihood import (
    N_POINTS,
    Array,
    Index,
    Rows,
    balanced_points,
    helmert,
    integrated,
    log_softmax,
    principal_root_of,
    root_of,
    spread,
    spread_points,
)
from posterity.posteriors._softmax_prior import ContrastPrior, peak
from posterity.posteriors._softmax_recent import RecentRows
from posterity.posteriors._softmax_rule import choice_of, chosen
from posterity.posteriors._softmax_sites import POINTS
from posterity.posteriors.gaussian import LinearPosterior, never_learned

# Of the log of the prior's scale, between which the best one is looked for.
STEP = math.log(4.0)
# Logs of precisions that agree, where sites and prior are found in turns.
AGREE, MOST_TURNS = 3e-2, 20
BLOCK_NUMBERS = 4_000_000
# Rows after which the lean path asks anew.
UNTIL_LATER = 1_000


Approximation = Literal["auto", "laplace", "moments"]


@dataclass
class SoftmaxPosterior:
    """Contrasts, the prior they are read with, and how it is learned.

    Rows ``X`` (n, m) come without the intercept's 1, ``y`` (n, 1) are places of classes, from 0.

    Parameters
    ----------
    contrasts
        What the data say.
    prior
        The prior that labels are met with; of the strategy's nodes, the one that stands for all.
    strategy, shapes
        How the prior is learned; None: it is given. And the shapes (L, m) that it is offered.
    approximation
        "laplace", "moments", or "auto": the first in ``fit``, the second in all else.
    due, waiting
        As many rows, and the prior is chosen anew; whether it is for the first time.
    recent
        The last rows, to be learned again together; ``contrasts`` knows them already.
    together
        The rows' weight when all of them were fitted at once.
    """

    contrasts: Contrasts
    prior: ContrastPrior
    strategy: Strategy | None = None
    shapes: Array | None = None
    approximation: Approximation = "auto"
    due: float = field(default=0.0, repr=False)
    waiting: bool = field(default=False, repr=False)
    recent: RecentRows | None = field(default=None, repr=False)
    nodes: list[tuple[float, Joined]] | None = field(default=None, repr=False)
    together: float = field(default=-1.0, repr=False)

    noise: ClassVar[Noise] = KnownNoise(1.0)
    one_triangle: ClassVar[None] = None
    improper: ClassVar[None] = None

    def copy(self) -> SoftmaxPosterior:
        """The same knowledge, to go its own way."""
        twin = copy.copy(self)
        twin.contrasts, twin.prior = self.contrasts.copy(), self.prior.copy()
        twin.recent = copy.copy(self.recent)
        twin._turned()  # its factors are those of this one
        return twin

    def become(self, other: SoftmaxPosterior) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.__dict__.update(other.copy().__dict__)

    def made(self, change: Callable[[LinearPosterior], LinearPosterior]) -> SoftmaxPosterior:
        """The same with ``change`` made to the posterior of the data, which has seen nothing."""
        twin = self.copy()
        twin.contrasts = self.contrasts.made(change)
        return twin

    def single(self) -> SoftmaxPosterior:
        """A copy to be one of many that are averaged: of one node."""
        twin = self.copy()
        twin.strategy = self.strategy and single_node(self.strategy)
        return twin

    # ---- what it is ----------------------------------------------------------------------------

    @property
    def n_classes(self) -> int:
        """Classes there are so far."""
        return self.contrasts.n_classes

    @property
    def intercept(self) -> bool:
        """Whether each contrast has one."""
        return self.prior.intercept

    @property
    def n_coefficients(self) -> int:
        """Of one contrast, intercept included."""
        return self.contrasts.n_columns

    @property
    def n_features(self) -> int:
        """Columns of the rows that it learns."""
        return len(self.prior.center) - int(self.intercept)

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.contrasts.parts[0].n_observations

    @property
    def n_effective(self) -> float:
        """What is left of them after forgetting."""
        return self.contrasts.parts[0].n_effective

    @property
    def forgets(self) -> bool:
        """Whether rows count for less as they age."""
        return self.contrasts.forgets

    def add_classes(self, n_classes: int) -> None:
        """Make room for so many classes in all, the new ones last."""
        self.settle()
        for _ in range(n_classes - self.n_classes):
            if self.prior.root.ndim == 3:  # contrasts that had a prior each
                self.prior = self.prior.scaled(self.prior.scale)
            self.contrasts.add_class(self.prior.center, self.prior)
        self.start_waiting()

    def reorder(self, order: Index) -> None:
        """Put class ``order[i]`` into place i: the contrasts V become H' P H V."""
        self.settle()
        contrasts = helmert(self.n_classes)
        self.contrasts.turn(contrasts.T @ contrasts[order])
        self._turned()

    def same_prior(self, other: Any) -> bool:
        """Whether both started from the same belief and forget alike."""
        mine, its = self.contrasts, other.contrasts
        return (
            self.strategy == other.strategy
            and mine.separate == its.separate
            and mine.parts[0].same_prior(its.parts[0])
            and self.intercept == other.intercept
            and (
                self.strategy is not None
                or np.array_equal(self.prior.precision(), other.prior.precision())
            )
        )

    def merge(self, other: SoftmaxPosterior) -> None:
        """Learn all that ``other`` has learned about the same classes."""
        both, other = self.copy(), other.copy()
        both.settle()
        other.settle()
        both.contrasts.merge(other.contrasts)
        both.prior.merge(other.prior)
        both._choose()
        self.become(both)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows: what they say in what is known now is taken out.

        Exact for rows of a fit, but for what the others would say without them.
        """
        if self.forgets:
            self.contrasts.parts[0].remove(X, y, weights)  # refuses, and says why
        rows, after = self._rows(X, y, weights), self.copy()
        rows = rows.of(np.flatnonzero(rows.weights))
        gone, learned = float(np.sum(rows.weights)), self.n_observations
        if learned - gone < -1e-12 * gone:
            raise ValueError(
                f"can't unlearn rows of total weight {gone:g}: only {learned:g} is learned; "
                "nothing was changed"
            )
        if not len(rows.X):
            return
        after.settle()
        together = after.together == learned
        averaged = self.approximation == "moments" if together else self._averages
        if learned - gone <= 1e-12 * gone:
            after._forget_all()
        else:
            try:
                after.contrasts.unlearn(rows, after.prior, averaged=averaged, together=together)
            except NotInFactorError as error:
                raise ValueError(never_learned("one of the rows")) from error
            after.prior.unsaw(rows.X, rows.weights)
            after._count(learned - gone, learned - gone)
            # What the others say was found under this prior, and would but echo it.
            after.due = min(after.due, learned - gone + 0.25 * self.n_effective + 1.0)
            after._turned()
        after.together = -1.0
        self.become(after)

    def _forget_all(self) -> None:
        """Know of classes, and of nothing else."""
        known, offset = self.contrasts, int(self.intercept)
        self.contrasts = Contrasts.before_data(
            known.n_classes, known.n_columns, separate=known.separate
        )
        root = self.prior.root.reshape(-1, *self.prior.root.shape[-2:])[0]
        self.prior = ContrastPrior.of(root[offset:, offset:], intercept=self.intercept)
        self.due = 0.0
        self._turned()

    # ---- learning ------------------------------------------------------------------------------

    def fit(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> None:
        """Learn the first rows, iterated to the mode (with the prior that its evidence chooses).

        Or by averages ("moments"), until what they say on average over what is open is what they
        are taken for. A posterior that forgets learns them as a batch.
        """
        if self.forgets:
            self.append(X, y, weights, elapsed, offsets)
            return
        rows, after = self._rows(X, y, weights), self.copy()
        rows = rows.of(np.flatnonzero(rows.weights))
        after.prior = after.prior.with_flat_intercept()
        after._saw(rows)
        after._begin(rows, after.contrasts, averaged=self.approximation == "moments")
        after.recent, total = None, float(np.sum(rows.weights))
        after._count(total, total)
        after.together = total
        self.become(after)

    def append(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> None:
        """Learn a mini-batch: all of it together and with the rows before it, as far as it can be.

        Where what is left of a row is no number, as in a window, row after row.
        """
        rows, after = self._rows(X, y, weights), self.copy()
        discounts = after.contrasts.parts[0].discounts(elapsed)
        if discounts is None:
            for _ in after._in_order(rows, elapsed):
                pass
        elif len(rows.X):
            later = np.append(np.cumprod(discounts[:0:-1])[::-1], 1.0)
            after._pass_time(rows.X[:1], elapsed)
            after._learn(Rows(rows.X, rows.labels, rows.weights * later), float(rows.weights.sum()))
        self.become(after)

    absorb = append

    def predict_then_learn(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> Categorical:
        """Learn row after row; returns the distribution of each class's place before its row."""
        rows, after = self._rows(X, y, weights), self.copy()
        told, path = np.empty((len(rows.X), self.n_classes)), None
        for i in range(len(rows.X)):
            one = rows.of(slice(i, i + 1))
            if path is None and after.learns_lean:
                path = after.row_path(None)
            if path is not None:
                told[i] = path.log_probabilities(X[i])
                if path.learn(X[i], y[i, 0], one.weights[0]):
                    continue
            after._pass_time(one.X, elapsed[i : i + 1])
            if path is None:
                told[i] = after.log_probabilities_of(one.X)
            after._learn(one, float(one.weights[0]))
            path = None
        self.become(after)
        return Categorical(np.arange(self.n_classes), told)

    def settle(self) -> None:
        """Learn the last rows together, and keep them no longer."""
        if self.recent is not None and self.recent.fresh > 0:
            seen = self.n_observations
            self._learn_again(self.recent)
            self._count(seen)
        self.recent = None

    @property
    def _averages(self) -> bool:
        """Whether rows that come online are learned by averages."""
        return self.approximation != "laplace"

    def _rows(self, X: Array, y: Array, weights: Array | None) -> Rows:
        weights = np.ones(len(X)) if weights is None else weights
        return Rows(self.design(X), y[:, 0].astype(np.intp), weights)

    def design(self, X: Array) -> Array:
        """The columns (n, p) with the intercept's 1 in front."""
        return np.column_stack([np.ones(len(X)), X]) if self.intercept else X

    def _in_order(self, rows: Rows, elapsed: Array) -> Iterator[Array]:
        """Learn row after row, each right after it was handed out."""
        for i in range(len(rows.X)):
            one = rows.of(slice(i, i + 1))
            self._pass_time(one.X, elapsed[i : i + 1])
            yield one.X
            self._learn(one, float(one.weights[0]))

    def _learn(self, rows: Rows, weight: float) -> None:
        """Learn rows that came at one time, of so much weight before it faded.

        They are kept for a while, and learned again together with those that come after them. With
        a flat prior they are not: a few rows then have no mode. Nor where they do not fade alike.
        """
        rows = rows.of(np.flatnonzero(rows.weights))
        if len(rows.X) == 0:
            return
        seen, averaged = self.n_observations, self._averages
        first = seen == 0.0
        self._saw(rows)
        told, before = self.contrasts.told, 0.0
        if self.forgets and len(rows.X) == 1:
            told += float(rows.weights[0] * self.log_probabilities_of(rows.X)[0, rows.labels[0]])
        elif self.forgets:
            before = self.contrasts.log_density(self.prior)
        recent, again = self.recent, False
        if self.prior.proper and self.contrasts.parts[0].discounts(np.zeros(1)) is not None:
            if recent is None:
                recent = RecentRows.after(self.contrasts.copy(), rows.X.shape[1], first=first)
            recent = recent.and_these(rows, averaged=averaged)
            again = recent.due and self._learn_again(recent)
            recent = recent.settled() if again else recent
            recent = None if recent.full else recent
        if first and len(rows.X) > 1 and not again:
            self._begin(rows, self.contrasts, averaged=averaged)
        elif not again:
            self.contrasts.learn(rows, self.prior, averaged=averaged)
        self.recent = recent
        if self.forgets and len(rows.X) > 1:
            # Each label in full, whatever has faded since the first of them.
            faded = float(np.sum(rows.weights)) / weight
            told += (self.contrasts.log_density(self.prior) - before) / faded
        self.contrasts.told = told
        self._count(seen + weight)
        self._turned()
        self.choose_if_due()

    def _learn_again(self, recent: RecentRows) -> bool:
        """Learn the last rows together, from what was known before them, if their mode is found."""
        again, now = recent.base.copy(), self.contrasts
        start = now.coordinates(now.joined(self.prior))
        if not again.learn(recent.rows, self.prior, averaged=recent.averaged, start=start):
            return False
        self.contrasts = again
        if recent.first and self.strategy is not None:
            self._begin(recent.rows, recent.base, averaged=recent.averaged)
        self._turned()
        return True

    def _begin(self, rows: Rows, before: Contrasts, *, averaged: bool) -> None:
        """Learn the first rows with the prior that their evidence chooses."""
        profiled = isinstance(self.strategy, OddsScale) and self.shapes is None and not averaged
        if self.strategy is not None:
            # The sizes of the features are taken into account anew, too.
            scale = self._best_scale(rows, before) if profiled else self.prior.scale
            self.prior = self.prior.scaled(scale)
        self._begin_under(rows, before, None, averaged=averaged)
        for _ in range(0 if self.strategy is None or profiled else MOST_TURNS):
            start, last = self.contrasts.coordinates(self.contrasts.joined(self.prior)), self.prior
            self.prior = self._chosen()
            self._begin_under(rows, before, start, averaged=averaged)
            if self.prior.change_from(last) < AGREE:
                break
        self._turned()
        self._next_turn()

    def _begin_under(
        self, rows: Rows, before: Contrasts, start: Array | None, *, averaged: bool
    ) -> None:
        known = before.copy()
        known.begin(rows, self.prior, averaged=averaged, start=start)
        self.contrasts = known

    def _best_scale(self, rows: Rows, before: Contrasts) -> float:
        """Where the evidence of the rows, each time at their mode, is largest.

        Curvatures found at a mode speak for the scale that led there: taken as they are, as those
        of averages are, they would keep it where it is.
        """
        strategy, start = self.strategy, None
        assert isinstance(strategy, OddsScale)

        def told(log_scale: float) -> float:
            nonlocal start
            prior, trial = self.prior.scaled(math.exp(log_scale)), before.copy()
            trial.learn(rows, prior, averaged=False, start=start)
            start = trial.coordinates(trial.joined(prior))
            return trial.log_density(prior) + float(strategy.log_belief(np.asarray(log_scale)))

        return math.exp(peak(told, math.log(self.prior.scale), STEP))

    def _saw(self, rows: Rows) -> None:
        """Take the sizes of the features into account."""
        self.prior = self.prior.copy()
        self.prior.saw(rows.X, rows.weights)
        if self.strategy is not None and self.n_observations == 0.0:
            self.prior = self.prior.scaled(1.0)
            self.start_waiting()
        elif self.waiting:
            self.prior = self.prior.scaled(self.prior.scale)

    def start_waiting(self) -> None:
        """Keep the prior until there are as many rows as coefficients.

        From fewer that came one by one, each met with the prior before, a scale would be chosen
        that is but that prior's echo.
        """
        self.due = max(self.due, float(self.n_coefficients * (self.n_classes - 1)))
        self.waiting = self.strategy is not None
        self._turned()

    def _pass_time(self, x: Array, elapsed: Array) -> None:
        """Let time pass before a row ``x`` (1, p); before the first there is nothing to forget."""
        passed = float(np.sum(elapsed))
        if self.forgets and passed > 0.0 and self.n_observations > 0.0:
            self.contrasts.pass_time(x, passed)
            if self.recent is not None:
                self.recent = self.recent.faded(x, passed)
            self._turned()

    def _count(self, seen: float, effective: float | None = None) -> None:
        """Rows of so much weight have come, whatever has faded of them when they were learned."""
        for part in self.contrasts.parts:
            factor = part.factor
            left = factor.count if effective is None else effective
            factor.commit(factor.triangle, left, seen)

    # ---- the prior -----------------------------------------------------------------------------

    def choose_if_due(self) -> None:
        """Choose the prior anew when there are rows enough."""
        if self.strategy is not None and self.n_observations >= self.due:
            self._choose()

    def _choose(self) -> None:
        """Choose the prior anew."""
        if self.strategy is not None and self.n_effective > 0.0:
            self.prior = self._chosen()
        self._turned()
        self._next_turn()

    def _next_turn(self) -> None:
        """The prior is chosen anew after a fourth more rows."""
        self.due = self.n_observations + 0.25 * self.n_effective + 1.0
        self.waiting = False

    def _turned(self) -> None:
        """What was read is no more."""
        self.nodes = None

    def _chosen(self) -> ContrastPrior:
        """The one prior that stands for all nodes."""
        assert self.strategy is not None
        return chosen(self.contrasts, self.prior, self.strategy, self.shapes)

    def _read(self) -> list[tuple[float, Joined]]:
        """All nodes with their weights: factors of prior and data."""
        if self.nodes is None:
            strategy = self.strategy
            if strategy is None or strategy == single_node(strategy) or not self.n_effective:
                self.nodes = [(1.0, self.contrasts.joined(self.prior))]
            else:
                choice = choice_of(self.contrasts, self.prior, strategy, self.shapes)
                k = self.n_classes - 1
                priors = [self.prior.chosen(one.reshape(k, -1)) for one in choice.precisions]
                joined = [self.contrasts.join(prior) for prior in priors]
                self.nodes = list(zip(choice.weights.tolist(), joined, strict=True))
        return self.nodes

    # ---- reading -------------------------------------------------------------------------------

    @property
    def predicts_lean(self) -> bool:
        """Whether one factor of all contrasts, open in no direction, predicts."""
        one_node = self.strategy is None or self.strategy == single_node(self.strategy)
        if self.contrasts.separate or not (one_node or not self.n_effective):
            return False
        (joined,) = self.contrasts.joined(self.prior)
        return bool(np.diagonal(joined.root).all())

    @property
    def learns_lean(self) -> bool:
        """Whether the kernel learns single rows, until some are learned again, or the prior is."""
        return not self.forgets and self._rows_to_come() > 0 and self.predicts_lean

    def _rows_to_come(self) -> int:
        """How many rows may come one by one before something else than learning them is due."""
        if self.n_observations == 0.0 or self.waiting:
            return 0
        if not self.prior.proper:
            return UNTIL_LATER
        return 0 if self.recent is None else self.recent.before_due

    def row_path(self, names: Sequence[str] | None) -> SoftmaxPath:
        """The lean path: it learns rows, in place, and predicts, in microseconds."""
        (joined,), r = self.contrasts.joined(self.prior), self.n_classes - 1
        return softmax_path(
            self.contrasts.parts[0].factor,
            joined,
            self.intercept,
            names,
            self.contrasts.basis,
            balanced_points(r, POINTS) if self._averages else None,
            spread_points(r),
            self,
            0 if self.forgets else self._rows_to_come(),
            math.inf if self.strategy is None else self.due,
        )

    @property
    def prior_precision(self) -> ArrayLike:
        """Prior precision of the coefficients, of all contrasts alike or one row for each."""
        return self.prior.precision()

    def coefficients(self) -> Array:
        """(K, p) posterior mean, one row a class; the columns sum to 0."""
        means = [weight * self.contrasts.coordinates(joined) for weight, joined in self._read()]
        each: Array = self.contrasts.basis @ np.sum(means, axis=0)
        return each - each.mean(axis=0)

    def predictive(self, X: Array, offsets: Array | None = None) -> Categorical:
        """Distribution of the place of the class at rows ``X`` (n, m)."""
        return Categorical(np.arange(self.n_classes), self.log_probabilities(self.design(X)))

    def log_probabilities(self, X: Array) -> Array:
        """(n, K) log of the probabilities at rows (n, p), integrated over the posterior."""
        return self._integrated(X, self._read())

    def log_probabilities_of(self, x: Array) -> Array:
        """(1, K) the same in a stream, of the prior that its labels are met with."""
        return self._integrated(x, [(1.0, self.contrasts.joined(self.prior))])

    def _integrated(self, X: Array, nodes: list[tuple[float, Joined]]) -> Array:
        told = np.empty((len(X), self.n_classes))
        for part in self.blocks(len(X)):
            mean, covariance = self._moments(X[part], nodes)
            told[part] = integrated(mean, root_of(covariance), self.contrasts.basis)
        return told

    def probability_interval(self, X: Array, level: float) -> Array:
        """(n, K, 2) ends of the central interval of each probability at rows ``X`` (n, m)."""
        ends = np.empty((len(X), self.n_classes, 2))
        for part in self.blocks(len(X)):
            drawn = self.probability_points(X[part])
            both = np.quantile(drawn, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=1)
            ends[part] = np.moveaxis(both, 0, -1)
        return ends

    def probability_points(self, X: Array) -> Array:
        """(n, S, K) probabilities at rows ``X`` (n, m) that stand for the posterior."""
        mean, covariance = self._moments(self.design(X), self._read())
        points = spread(mean, principal_root_of(covariance)) @ self.contrasts.basis.T
        return np.exp(log_softmax(points))

    def _moments(self, X: Array, nodes: list[tuple[float, Joined]]) -> tuple[Array, Array]:
        """Mean and covariance of the coordinates at rows, those of the mixture of all nodes."""
        told = [(weight, *self.contrasts.moments(X, joined)) for weight, joined in nodes]
        if len(told) == 1:
            return told[0][1:]
        centre = sum(weight * mean for weight, mean, _ in told)
        spreads = [
            weight * (covariance + (mean - centre)[:, :, None] * (mean - centre)[:, None])
            for weight, mean, covariance in told
        ]
        return np.asarray(centre), np.sum(spreads, axis=0)

    def blocks(self, n: int) -> list[slice]:
        """Rows to be read at a time: their covariances and points are held in memory."""
        size = max(1, BLOCK_NUMBERS // (self.n_classes * (self.n_classes + 2 * N_POINTS)))
        return [slice(start, start + size) for start in range(0, n, size)]

    @property
    def log_evidence(self) -> float:
        """Laplace's evidence of the labels; or as they came, where they are forgotten."""
        return self.contrasts.log_evidence(self.prior)

    def joint(self, names: tuple[str, ...], classes: tuple[str, ...] = ()) -> MultivariateNormal:
        """Joint posterior of what each class has more of than the first: class by class.

        Without names of the ``classes`` these are numbered.

        With U = T V, T (K - 1, K - 1) the differences of the rows of H to its first.
        """
        from posterity.posteriors._softmax_joint import joint_of

        classes = classes or tuple(str(place) for place in range(self.n_classes))
        labels = tuple(f"{name} ({one} - {classes[0]})" for one in classes[1:] for name in names)
        return joint_of(self.contrasts, self._read(), labels)
