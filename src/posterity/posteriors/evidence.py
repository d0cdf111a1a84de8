"""A posterior whose prior precision is learned from the evidence.

The data's factor is kept apart from the prior's. From it the evidence chooses a few precisions
with weights (the nodes), each of which then is a posterior like any other.

Reading chooses anew from all rows so far: what is read depends on the rows, not on the way they
came, and nothing changes by it. What is predicted of a row right before it is learned comes from
nodes that learn each row, and are chosen anew after a third (later a half) more rows: O(p^2) a row,
amortised. When that is depends on the number of rows, not on who learned them or how
(:mod:`posterity.posteriors._turns`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from posterity.evidence import Choice, Integrated, RunningScales, Strategy, matched
from posterity.evidence.members import InUnits, Weak, single_node
from posterity.evidence.together import Together
from posterity.factor import Factor
from posterity.factor.parallel import blas_threads
from posterity.factor.rows import SiteRows
from posterity.factor.targets import of_target
from posterity.kernel import FadingMember, LearnedPrior, NodesPath, RowPath
from posterity.noise import Distribution, Joint, Noise
from posterity.posteriors._evidence_state import Known
from posterity.posteriors._nodes import Fresh, Nodes, one_after_another
from posterity.posteriors._turns import (
    Waiting,
    last_turn,
    moved,
    rows_until,
    turns_around,
    waiting,
)
from posterity.posteriors._unseen import added_variance
from posterity.posteriors.gaussian import LinearPosterior
from posterity.priors import GaussianPrior
from posterity.safety import check_model_memory

Array = NDArray[np.float64]

# A number of rows.
NEVER = 2**62


# Of which a learned prior needs memory at once: of data, nodes, and what they are made from.
TRIANGLES = 14


@dataclass(frozen=True)
class EvidencePosterior(LinearPosterior):
    """A posterior that learns its prior precision by a strategy of :mod:`posterity.evidence`."""

    strategy: Strategy
    mean: Array
    shapes: Array | None
    known: Known = field(repr=False)
    # Whether the stream has one node, whatever is read: sites are found under one prior.
    alone: bool = False
    # Whether that node is read as well, and chosen anew when someone else says so.
    rests: bool = False

    @classmethod
    def learned(
        cls,
        strategy: Strategy,
        belief: GaussianPrior,
        noise: Noise,
        n_features: int,
        *,
        intercept: bool,
        shapes: Array | None = None,
    ) -> Self:
        """Nothing seen yet. ``belief`` gives the mean; ``shapes`` (L, m) are as in Strategy."""
        check_model_memory(n_features, TRIANGLES)
        flat = GaussianPrior(0.0, 0.0)
        data = LinearPosterior.before_data(flat, noise, n_features, intercept=intercept)
        mean = belief.means(n_features)
        return cls(
            belief, noise, intercept, data.prior, data.factor, strategy, mean, shapes, Known(data)
        )

    def copy(self) -> Self:
        """The same knowledge, to go its own way."""
        known = self.known.copy()
        return self._but(factor=known.data.factor, known=known)

    def become(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.known.become(other.known)
        self._catch_up()

    def made(self, change: Callable[[LinearPosterior], LinearPosterior]) -> LinearPosterior:
        """The same with ``change`` made to the posterior of the data, which has seen nothing."""
        data = change(self.known.data)
        known = Known(data, scales=RunningScales.before_data(len(self.mean)))
        return replace(self, factor=data.factor, known=known)

    def for_sites(self) -> LinearPosterior:
        """The same with a stream of one node, under which sites are found; all nodes are read."""
        return replace(self, alone=True)

    def at_rest(self) -> LinearPosterior:
        """The same with one node that learns and is read, until it is chosen by all rows anew.

        That is when rows are appended together, when the noise is another one, and where a feature
        that was constant begins to vary.
        """
        return self.for_sites()._but(rests=True).with_noise(self.noise)

    def with_noise(self, noise: Noise) -> LinearPosterior:
        """A copy with another noise: its prior is chosen anew."""
        known = self.known.copy()
        known.data = known.data.with_noise(noise)
        twin = self._but(noise=noise, factor=known.data.factor, known=known)
        twin._choose_later()
        return twin

    def single(self) -> LinearPosterior:
        """The same, to be one of many: with one node, where there would be several."""
        return replace(self.copy(), strategy=single_node(self.strategy))

    def member(self, *, weak: bool) -> LinearPosterior:
        """One node that predicts in units of the noise; under a weak prior, or the one it learns.

        Only "auto" can be made weak: other strategies, and shapes of a prior, were asked for.
        """
        weak = weak and self.shapes is None and isinstance(self.strategy, Integrated)
        return replace(
            self.copy(), strategy=InUnits(Weak() if weak else single_node(self.strategy))
        )

    # ---- many targets --------------------------------------------------------------------------

    def for_targets(self, count: int) -> LinearPosterior:
        """The data of so many targets, each of which chooses a prior of its own when it is read."""
        known = self.known.copy()
        known.data = known.data.for_targets(count)
        return self._but(prior=known.data.prior, factor=known.data.factor, known=known)

    def of_target(self, target: int | Sequence[int]) -> LinearPosterior:
        """What is known of one of the targets, or of some, as if they had come alone."""
        known = self.known
        scales = None if known.scales is None else known.scales.copy()
        turn = None if known.turn is None else of_target(known.turn, target)
        data = known.data.of_target(target)
        own = Known(data, scales=scales, clock=known.clock.copy(), turn=turn)
        return self._but(prior=data.prior, factor=data.factor, known=own)

    def settled(self, *, stream: bool) -> LinearPosterior:
        """The same with a strategy that has chosen, where all targets choose together."""
        together, known = self._together, self.known
        if together is None:
            return self
        strategy = together.settled(
            known.turn if stream and known.turn is not None else known.data.factor,
            self.noise,
            intercept=self.intercept,
            mean=self.mean,
            shapes=self.shapes,
            scales=None if known.scales is None else known.scales.read(intercept=self.intercept),
        )
        return self._but(strategy=strategy)

    @property
    def _together(self) -> Together | None:
        return self.strategy if isinstance(self.strategy, Together) else None

    def stretch_from(self, first: int, n: int, weights: Array | None) -> int:
        """Where the stretch of rows ends, if all targets choose together: the schedule turns."""
        if self._together is None:
            return n
        rest = None if weights is None else weights[first:]
        left = max(int(self.known.clock[1] - self.known.clock[0]), 1)
        return first + rows_until(n - first, rest, left)

    # ---- learning ------------------------------------------------------------------------------

    @property
    def forgets(self) -> bool:  # type: ignore[override]
        """Whether rows count for less as they age."""
        return self.known.data.forgets

    @property
    def tells_evidence(self) -> bool:
        """Whether the data still tell the evidence of all rows."""
        return self.known.data.tells_evidence

    @property
    def learns_lean(self) -> bool:  # type: ignore[override]
        """Whether the data do, and the nodes that learn the same rows."""
        if not self.forgets:
            return True
        return self._of_one and not self.rests and self.known.data.learns_lean

    @property
    def predicts_lean(self) -> bool:  # type: ignore[override]
        """Whether nodes that learn each row are there to be read."""
        if self.rests:
            return self.known.data.predicts_lean
        return self.learns_lean and not self.alone and self._of_one

    @property
    def _of_one(self) -> bool:
        return self.known.data.factor.n_targets == 1

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The lean path of the data's factor and the stream's nodes, or of the one that is read."""
        known = self.known
        if self.rests and self.forgets:
            return self.central().factor.row_path(self.intercept, names)
        if self.rests:
            path = self.shared_factor().row_path(self.intercept, names)
            self.accompany(path, names)
            return path
        path = known.data.row_path(names)
        if not self.learns_lean:
            return path
        path.go_together(None, known.clock, self._waiting)
        if not self._of_one:
            return path  # each target has nodes of its own

        def open_nodes() -> tuple[Nodes, list[RowPath], Array]:
            nodes = self._ahead()
            paths = [node.row_path(names) for node in nodes.posteriors]
            return nodes, paths, nodes.weights

        return cast(RowPath, NodesPath(path, known, self.forgets, open_nodes, self._begin_turn))

    @property
    def fades_to_prior(self) -> bool:  # type: ignore[override]
        """Whether its nodes do."""
        return self.known.data.fades_to_prior and not self.alone

    def as_member(self) -> FadingMember:
        """What an average learns of it row by row: the node that predicts, and the data."""
        nodes, known = self._ahead(), self.known
        ready = nodes.alone and not nodes.choice.pinned.any()

        def next_turn(rows: int) -> int:
            return turns_around(rows, self.n_coefficients, forgets=True)[1]

        behind = LearnedPrior(known.data.as_member(), known, nodes, next_turn, ready)
        return behind.before(nodes.posteriors[0].as_member())

    def central(self) -> LinearPosterior:
        """The one posterior that stands for all nodes of what is known now."""
        return (self._stream() if self.rests else self._chosen(single=True)).posteriors[0]

    @property
    def parts(self) -> tuple[tuple[float, LinearPosterior], ...]:
        """The nodes, with their weights."""
        nodes = self.nodes
        return tuple(zip(nodes.weights.tolist(), nodes.posteriors, strict=True))

    def shared_factor(self) -> Factor:
        """The factor of the stream's only node, for a path that goes on to learn in it."""
        (node,) = self._stream().posteriors
        self.known.shared = node.factor
        return node.factor

    def accompany(self, path: RowPath, names: Sequence[str] | None) -> None:
        """Let the data learn what ``path``, the single node's, learns; its prior is kept up."""
        known = self.known
        path.go_together(known.data.row_path(names), known.clock, self._waiting)

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows at once."""
        if self.rests or self.forgets:
            self._append_in_order(X, y, weights, elapsed)
            return
        known, n_more = self.known, _count(weights, len(X))
        rows = int(known.clock[0]) + n_more
        last, due = turns_around(rows, self.n_coefficients, forgets=False)
        still = self._waiting() if known.clock[0] or not self.intercept else None
        first = last_turn(self._features(X), weights, known.clock, last, still)
        data, turn = known.data.copy(), known.turn
        for part in (slice(0, first), slice(first, len(X))):
            some = None if weights is None else weights[part]
            if part.start < part.stop or not len(X):
                data.append(X[part], y[part], some, elapsed[part])
            if 0 < part.stop == first:
                turn = data.factor.copy()
        known.data.become(data)
        if known.scales is not None:
            known.scales.learn(self._features(X), weights)
        known.clock[:] = rows, due
        if first:
            known.turn, known.stream = turn, None
        self._catch_up()

    def _append_in_order(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        if not self.forgets:  # and rests: who lets the prior rest chooses it by all rows
            self.learn_data(X, y, weights, elapsed)
        else:
            self.predict_then_learn(X, y, weights, elapsed)
        if self.rests:
            self._choose_later()

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Distribution:
        """Learn row after row; returns the distribution of each target before its row."""
        before = self.copy()
        told: list[Distribution] = []
        first = 0
        try:
            while first < len(X) or not told:
                stream = self._stream()
                stop = self._stretch(stream, X, weights, first)
                part = slice(first, stop)
                some = None if weights is None else weights[part]
                added = self.unseen(stream, X[part])
                told.append(stream.predict_then_learn(X[part], y[part], some, elapsed[part], added))
                self.learn_data(X[part], y[part], some, elapsed[part])
                first = stop
        except BaseException:
            self.become(before)
            raise
        together = one_after_another(told)
        if not self.tells_evidence:
            counted = together.logpdf(y[:, 0])
            self.known.tally += float(np.sum(counted if weights is None else weights * counted))
        return together

    learns_prior: ClassVar[bool] = True

    def learn_sites(
        self, learn: Callable[[LinearPosterior, SiteRows], Any], rows: SiteRows
    ) -> list[Any]:
        """In stretches between which the prior is chosen anew: one node learns, data go along."""
        learned = []
        first = 0
        while first < len(rows):
            stream = self._stream()
            part = rows[first : self._stretch(stream, rows.X, rows.weights, first)]
            (node,) = stream.posteriors
            told = learn(node, part)
            target = (told.sites.target - part.offsets)[:, None]
            self.learn_data(part.X, target, told.sites.precision, part.elapsed)
            learned.append(told)
            first += len(part)
        return learned

    @property
    def predicts_sites_lean(self) -> bool:
        """Whether the stream's node does."""
        return not self.forgets

    def believed(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) of x.w, matched to those of all nodes."""
        nodes = self.nodes
        told = [node.believed(X) for node in nodes.posteriors]
        added = self.unseen(nodes, X)
        if added is not None:  # the noise of sites has variance 1
            told = [(mean, var + more) for (mean, var), more in zip(told, added, strict=True)]
        if nodes.alone:
            return told[0]
        scales = np.sqrt([variance for _, variance in told])
        mean, scale = matched(np.array([mean for mean, _ in told]), scales, nodes.weights)
        return mean, scale * scale

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows; raises ``ValueError`` when they can't have been learned."""
        known = self.known
        known.data.remove(X, y, weights)
        known.clock[0] -= _count(weights, len(X))
        self._begin_anew()

    @property
    def one_triangle(self) -> LinearPosterior | None:
        """Under a flat prior, which few rows move to; None where the prior must be learned."""
        flat = isinstance(self.strategy, Integrated) and self.shapes is None
        return self.known.data.copy() if flat else None

    @property
    def of_rows(self) -> LinearPosterior:
        """The data's posterior."""
        return self.known.data

    def rows_alone(self) -> LinearPosterior:
        """A copy of the data."""
        return self.known.data.rows_alone()

    def keep(self, rows: Factor, n_gone: int) -> None:
        """Know what is left of the rows, without the prior, once so many were unlearned."""
        self.known.data.keep(rows, n_gone)
        self.known.clock[0] -= n_gone
        self._begin_anew()

    def merge(self, other: Self) -> None:
        """Learn all that ``other`` learned; the prior is then learned from both."""
        self.known.data.merge(other.known.data)
        if self.known.scales is not None and other.known.scales is not None:
            self.known.scales.merge(other.known.scales)
        self.known.clock[0] += other.known.clock[0]
        self._begin_anew()

    def same_prior(self, other: Self) -> bool:
        """Whether both learn their priors in the same way, so that they can be merged."""
        return (
            type(self) is type(other)
            and self.strategy == other.strategy
            and np.array_equal(self.mean, other.mean)
            and _same_shapes(self.shapes, other.shapes)
            and self.known.data.same_prior(other.known.data)
        )

    # ---- reading -------------------------------------------------------------------------------

    @property
    def nodes(self) -> Nodes:
        """The precisions that the evidence chooses from all rows so far."""
        return self._stream() if self.rests else self._fresh.nodes(self.mean, self.known.data)

    @property
    def _fresh(self) -> Fresh:
        known = self.known
        if known.fresh is None or known.fresh_at != known.data.factor.seen:
            known.fresh, known.fresh_at = Fresh(self._choice()), known.data.factor.seen
        return known.fresh

    def predictive(self, X: Array) -> Distribution:
        """Distribution of new observations at the rows of ``X``."""
        return self.nodes.predictive(X, self.unseen(self.nodes, X))

    def unseen(self, nodes: Nodes, X: Array) -> Array | None:
        """(K, n) what features that were constant until now add to the variance of rows."""
        if not nodes.choice.pinned.any():
            return None
        known = self.known
        added = added_variance(
            nodes,
            known.data.factor,
            known.scales,
            self._waiting(),
            self._features(X),
            mean=self.mean,
            intercept=self.intercept,
        )
        in_own_units = added is not None and X.shape[1] > len(self.mean)
        return added * np.square(X[:, 0]) if in_own_units else added

    def predict_mean_ahead(self, X: Array) -> Array:
        """Mean of the next observations at the rows of ``X``, by the stream's nodes."""
        nodes = self._ahead()
        return nodes.average([node.predict_mean(X) for node in nodes.posteriors])

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        if self.known.data.n_observations == 0.0:  # the prior's, under whatever precision
            return np.concatenate([np.zeros(self.n_flat), self.mean])
        if self.rests:
            return self.central().coefficients()
        return self._fresh.coefficients(self.mean, self.known.data).copy()

    def joint(self, names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        return self.nodes.joint(names)

    @property
    def prior_precision(self) -> Array:
        """(m,) geometric mean of the precisions, in the user's units."""
        choice = self.nodes.choice if self.rests else self._fresh.choice
        return np.exp(choice.weights @ np.log(choice.precisions)) / self.noise.prior_unit

    @property
    def n_flat(self) -> int:
        """Number of directions whose prior is flat: the intercept's."""
        return int(self.intercept)

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.known.data.n_observations

    @property
    def n_effective(self) -> float:
        """What is left of them after forgetting."""
        return self.known.data.n_effective

    @property
    def noise_precision(self) -> float:
        """Known, or the mean of what was learned."""
        return float(self.nodes.average([node.noise_precision for node in self.nodes.posteriors]))

    @property
    def log_evidence(self) -> float:
        """Log p(y) at the prior that was chosen, or of the rows as they came."""
        return self._fresh.choice.log_evidence if self.tells_evidence else self.known.tally

    # ---- inner ---------------------------------------------------------------------------------

    def _chosen(
        self, turn: Factor | None = None, *, stream: bool = False, single: bool = False
    ) -> Nodes:
        """Nodes by the evidence of all data, or as they were at a turn of the stream."""
        choice = self._choice(turn, stream=stream, single=single)
        return Nodes.of(choice, self.mean, self.known.data)

    def _choice(
        self, turn: Factor | None = None, *, stream: bool = False, single: bool = False
    ) -> Choice:
        data, scales = self.known.data, self.known.scales
        single = single or (stream and self.alone)
        strategy = single_node(self.strategy) if single else self.strategy
        if stream and isinstance(strategy, Integrated):
            strategy = strategy.in_stream
        with blas_threads(len(self.mean)):
            return strategy.choose(
                data.factor if turn is None else turn,
                self.noise,
                intercept=self.intercept,
                mean=self.mean,
                shapes=self.shapes,
                scales=None if scales is None else scales.read(intercept=self.intercept),
            )

    def _stream(self) -> Nodes:
        """The nodes of the stream, as old as the schedule has them."""
        known, ahead = self.known, self._ahead()
        if ahead is not known.stream:
            known.follow(ahead)
        assert known.stream is not None
        return known.stream

    def _ahead(self) -> Nodes:
        """The same for those who only read: where there are none, some are made and not kept."""
        known = self.known
        if known.stream is None:
            return self._chosen(known.turn, stream=True)
        if not self.forgets and not self._in_step(known.stream):
            return Nodes.of(known.stream.choice, self.mean, known.data)
        return known.stream

    def _in_step(self, stream: Nodes) -> bool:
        """Whether the nodes know all rows that the data know."""
        return stream.posteriors[0].factor.seen == self.known.data.factor.seen

    def _begin_turn(self, rows: int) -> tuple[Factor | None, RowPath | None, int]:
        """What a lean path needs when the schedule turns after so many rows, as in _turned."""
        due = turns_around(rows, self.n_coefficients, forgets=self.forgets)[1]
        if self.forgets:
            return None, None, due
        turn = Factor(self.n_coefficients)
        return turn, turn.row_path(self.intercept), due

    def _turned(self) -> None:
        """The schedule turns: from now on the stream rests on the data as they are."""
        known = self.known
        known.turn = known.data.factor.copy() if not self.forgets else None
        known.stream = known.fresh = None
        rows, p = int(known.clock[0]), self.n_coefficients
        known.clock[1] = NEVER if self.rests else turns_around(rows, p, forgets=self.forgets)[1]

    def _choose_later(self) -> None:
        """The prior is chosen anew when it is needed, from the data as they are then."""
        known = self.known
        known.turn = known.stream = known.fresh = None
        if self.rests:
            known.clock[1] = NEVER
        self._catch_up()

    def _begin_anew(self) -> None:
        """After rows were unlearned or merged: both what is read and the stream rest on all."""
        self._turned()
        self._catch_up()

    def _catch_up(self) -> None:
        """Let the stream know what was learned, or unlearned, without it."""
        self.known.fresh = None
        if self.known.shared is not None:
            self._stream()

    def _stretch(self, stream: Nodes, X: Array, weights: Array | None, first: int) -> int:
        """Where the stretch of rows that starts at ``first`` ends: the schedule turns there."""
        rest = None if weights is None else weights[first:]
        left = int(self.known.clock[1] - self.known.clock[0])
        stop = first + rows_until(len(X) - first, rest, left)
        if stream.choice.pinned.any():
            features, constants = self._waiting()
            moves = moved(self._features(X[first:stop])[:, features], constants).any(axis=1)
            if weights is not None:
                moves &= weights[first:stop] > 0.0
            if moves.any():
                # A feature that was constant begins to vary. Its row stands alone: what it may mean
                # is told by the rows right before it, and asked right after it.
                still = int(np.argmax(moves))
                stop = first + max(still, 1)
                if still == 0:
                    self.known.clock[1] = 0
        return stop

    def _waiting(self) -> Waiting:
        return waiting(self.known.data.factor, self.known.scales, intercept=self.intercept)

    def learn_data(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Let the data learn rows that the stream has learned, or that nobody predicts."""
        known = self.known
        if len(X):
            known.data.absorb(X, y, weights, elapsed)
        known.fresh = None
        if known.scales is not None:
            known.scales.learn(self._features(X), weights)
        known.clock[0] += _count(weights, len(X))
        if known.clock[0] >= known.clock[1]:
            self._turned()

    def _features(self, X: Array) -> Array:
        """The features of rows, which may bring a first column, the 1 in their own units."""
        return X if X.shape[1] == len(self.mean) else X[:, 1:] / X[:, :1]


def _count(weights: Array | None, n: int) -> int:
    return n if weights is None else int(np.count_nonzero(weights))


def _same_shapes(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
