"""The stream of a posterior whose prior is learned: which nodes learn its rows, and until when.

Of one target the nodes learn each row, and predict it before. They are chosen anew after a third
(later a half) more rows: O(p^2) a row, amortised. When that is depends on the number of rows, not
on who learned them or how (:mod:`posterity.posteriors._turns`). Of several targets each has nodes
of its own (:mod:`posterity.posteriors.targets`): together there are the data, and the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from posterity.evidence import Choice, Integrated, Strategy
from posterity.evidence.columns import FeatureScales
from posterity.evidence.members import single_node
from posterity.evidence.together import Together
from posterity.factor import Factor
from posterity.factor.parallel import blas_threads
from posterity.factor.rows import SiteRows
from posterity.kernel import FadingMember, LearnedPrior, NodesPath, RowPath
from posterity.noise import Distribution, Noise
from posterity.posteriors._evidence_state import Known
from posterity.posteriors._nodes import Nodes, predicted
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

Array = NDArray[np.float64]

# A number of rows.
NEVER = 2**62


@dataclass(frozen=True)
class Chooser:
    """What chooses the prior of a model: parameters as those of :class:`Strategy`."""

    strategy: Strategy
    noise: Noise
    intercept: bool
    mean: Array
    shapes: Array | None

    def choice(
        self,
        known: Known,
        turn: Factor | None = None,
        *,
        stream: bool = False,
        single: bool = False,
    ) -> Choice:
        """By the evidence of all data, or as they were at a turn of the stream."""
        strategy = single_node(self.strategy) if single else self.strategy
        if stream and isinstance(strategy, Integrated):
            strategy = strategy.in_stream
        with blas_threads(len(self.mean)):
            return strategy.choose(
                known.data.factor if turn is None else turn,
                self.noise,
                intercept=self.intercept,
                mean=self.mean,
                shapes=self.shapes,
                scales=self.scales(known),
            )

    def scales(self, known: Known) -> FeatureScales | None:
        """Of the features of all rows that ever came, where they are kept."""
        return None if known.scales is None else known.scales.read(intercept=self.intercept)


@dataclass(frozen=True)
class NodesStream:
    """The nodes of the stream of one target: ``alone`` and ``rests`` as in EvidencePosterior."""

    chooser: Chooser
    known: Known
    alone: bool
    rests: bool

    @property
    def forgets(self) -> bool:
        """Whether rows count for less as they age."""
        return self.known.data.forgets

    @property
    def _p(self) -> int:
        return self.known.data.n_coefficients

    # ---- single rows ---------------------------------------------------------------------------

    @property
    def learns_lean(self) -> bool:
        """Whether the data do, and the nodes that learn the same rows."""
        if not self.forgets:
            return True
        return not self.rests and self.known.data.learns_lean

    @property
    def predicts_lean(self) -> bool:
        """Whether nodes that learn each row are there to be read."""
        if self.rests:
            return self.known.data.predicts_lean
        return self.learns_lean and not self.alone

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The lean path of the data's factor and of the nodes."""
        known = self.known
        path = known.data.row_path(names)
        if not self.learns_lean:
            return path
        path.go_together(None, known.clock, self.waiting)

        def open_nodes() -> tuple[Nodes, list[RowPath], Array]:
            nodes = self.ahead()
            paths = [node.row_path(names) for node in nodes.posteriors]
            return nodes, paths, nodes.weights

        ways = self.forgets, open_nodes, self._begin_turn, not known.data.tells_evidence
        return cast(RowPath, NodesPath(path, known, *ways))

    def accompany(self, path: RowPath, names: Sequence[str] | None) -> None:
        """Let the data learn what ``path``, the single node's, learns; its prior is kept up."""
        known = self.known
        (node,) = self.current().posteriors
        node.accompany(path, names)
        path.go_together(known.data.row_path(names), known.clock, self.waiting, known)

    def as_member(self) -> FadingMember:
        """What an average learns of it row by row: the node that predicts, and the data."""
        nodes, known, p = self.ahead(), self.known, self._p
        ready = nodes.alone and not nodes.choice.pinned.any()

        def next_turn(rows: int) -> int:
            return turns_around(rows, p, forgets=True)[1]

        behind = LearnedPrior(known.data.as_member(), known, nodes, next_turn, ready)
        return behind.before(nodes.posteriors[0].as_member())

    def _begin_turn(self, rows: int) -> tuple[Factor | None, RowPath | None, int]:
        """What a lean path needs when the schedule turns after so many rows, as in turned."""
        due = turns_around(rows, self._p, forgets=self.forgets)[1]
        if self.forgets:
            return None, None, due
        turn = Factor(self._p)
        return turn, turn.row_path(self.chooser.intercept), due

    # ---- the nodes -----------------------------------------------------------------------------

    def current(self) -> Nodes:
        """The nodes of the stream, as old as the schedule has them."""
        known, ahead = self.known, self.ahead()
        if ahead is not known.stream:
            known.follow(ahead)
        assert known.stream is not None
        return known.stream

    def ahead(self) -> Nodes:
        """The same for those who only read: where there are none, some are made and not kept."""
        known, mean = self.known, self.chooser.mean
        if known.stream is None:
            return Nodes.of(self._choice_ahead(), mean, known.data)
        if not self.forgets and not self._in_step(known.stream):
            return Nodes.of(known.stream.choice, mean, known.data)
        return known.stream

    def _choice_ahead(self) -> Choice:
        known = self.known
        if known.stream is not None:
            return known.stream.choice
        return self.chooser.choice(known, known.turn, stream=True, single=self.alone)

    def _in_step(self, stream: Nodes) -> bool:
        """Whether the nodes know all rows that the data know."""
        return stream.posteriors[0].factor.seen == self.known.data.factor.seen

    # ---- many rows -----------------------------------------------------------------------------

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> list[Distribution]:
        """Learn row after row; returns what was told of each stretch of rows before they were."""
        told: list[Distribution] = []
        first = 0
        while first < len(X) or not told:
            choice = self._choice_ahead() if self._has_plain_nodes else self.current().choice
            part = slice(first, self._stretch(choice, X, weights, first))
            some = None if weights is None else weights[part]
            rows = X[part], y[part], some, elapsed[part]
            told.append(self._told(choice, *rows))
            turn = self.known.turn
            self.learn_data(*rows)
            if self._has_plain_nodes and self.known.turn is turn:
                self.known.stream = Nodes.of(choice, self.chooser.mean, self.known.data)
            first = part.stop
        return told

    @property
    def _has_plain_nodes(self) -> bool:
        """Whether nodes are made from the data at any time, and predict as linear models do."""
        known, plain = self.known, isinstance(self.chooser.strategy, Integrated)
        return plain and known.shared is None and type(known.data) is LinearPosterior

    def _told(
        self, choice: Choice, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Distribution:
        """What nodes of this choice tell of each row before it is learned."""
        known, mean = self.known, self.chooser.mean
        if not self._has_plain_nodes:
            nodes = self.current()
        elif choice.pinned.any():
            nodes = Nodes.of(choice, mean, known.data)
        else:
            return predicted(choice, mean, known.data, X, y, weights)
        return nodes.predict_then_learn(X, y, weights, elapsed, self.unseen(nodes, X))

    def learn_sites(
        self, learn: Callable[[LinearPosterior, SiteRows], Any], rows: SiteRows
    ) -> list[Any]:
        """In stretches between which the prior is chosen anew: one node learns, data go along."""
        learned = []
        first = 0
        while first < len(rows):
            nodes = self.current()
            part = rows[first : self._stretch(nodes.choice, rows.X, rows.weights, first)]
            (node,) = nodes.posteriors
            told = learn(node, part)
            target = (told.sites.target - part.offsets)[:, None]
            self.learn_data(part.X, target, told.sites.precision, part.elapsed)
            learned.append(told)
            first += len(part)
        return learned

    def side_by_side(
        self, X: Array, weights: Array | None, first: int
    ) -> tuple[int, tuple[LinearPosterior, ...]]:
        """Where the stretch that starts at row ``first`` ends, and what learns it: node and data.

        The node is the one that predicts; nothing where it can't do so by itself.
        """
        nodes = self.current()
        stop = self._stretch(nodes.choice, X, weights, first)
        if not nodes.alone or nodes.choice.pinned.any():
            return stop, ()
        return stop, (nodes.posteriors[0], self.known.data)

    def learn_data(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Let the data learn rows that the nodes have learned, or that nobody predicts."""
        if len(X):
            self.known.data.absorb(X, y, weights, elapsed)
        self.has_learned(X, weights)

    def has_learned(self, X: Array, weights: Array | None) -> None:
        """Both have learned these rows."""
        known = self.known
        known.fresh = None
        if known.scales is not None:
            known.scales.learn(self.features(X), weights)
        known.clock[0] += counted(weights, len(X))
        if known.clock[0] >= known.clock[1]:
            self.turned()

    def _stretch(self, choice: Choice, X: Array, weights: Array | None, first: int) -> int:
        """Where the stretch of rows that starts at ``first`` ends: the schedule turns there."""
        rest = None if weights is None else weights[first:]
        left = int(self.known.clock[1] - self.known.clock[0])
        stop = first + rows_until(len(X) - first, rest, left)
        if choice.pinned.any():
            features, constants = self.waiting()
            moves = moved(self.features(X[first:stop])[:, features], constants).any(axis=1)
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

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Let the data learn rows at once, and keep them as they were at the last turn."""
        known, n_more = self.known, counted(weights, len(X))
        rows = int(known.clock[0]) + n_more
        last, due = turns_around(rows, self._p, forgets=False)
        still = self.waiting() if known.clock[0] or not self.chooser.intercept else None
        first = last_turn(self.features(X), weights, known.clock, last, still)
        data, turn = known.data.copy(), known.turn
        for part in (slice(0, first), slice(first, len(X))):
            some = None if weights is None else weights[part]
            if part.start < part.stop or not len(X):
                data.append(X[part], y[part], some, elapsed[part])
            if 0 < part.stop == first:
                turn = data.factor.copy()
        known.data.become(data)
        if known.scales is not None:
            known.scales.learn(self.features(X), weights)
        known.clock[:] = rows, due
        if first:
            known.turn, known.stream = turn, None
        self.catch_up()

    # ---- the schedule --------------------------------------------------------------------------

    def turned(self) -> None:
        """The schedule turns: from now on the nodes rest on the data as they are."""
        known = self.known
        known.turn = known.data.factor.copy() if not self.forgets else None
        known.stream = known.fresh = None
        due = turns_around(int(known.clock[0]), self._p, forgets=self.forgets)[1]
        known.clock[1] = NEVER if self.rests else due

    def choose_later(self) -> None:
        """The prior is chosen anew when it is needed, from the data as they are then."""
        known = self.known
        known.turn = known.stream = known.fresh = None
        if self.rests:
            known.clock[1] = NEVER
        self.catch_up()

    def begin_anew(self) -> None:
        """After rows were unlearned or merged: both what is read and the nodes rest on all."""
        self.turned()
        self.catch_up()

    def catch_up(self) -> None:
        """Let the nodes know what was learned, or unlearned, without them."""
        self.known.fresh = None
        if self.known.shared is not None:
            self.current()

    # ---- several targets -----------------------------------------------------------------------

    def settled(self, *, ahead: bool) -> Strategy:
        """The strategy of each target; where all choose together, what they have chosen."""
        chooser, known = self.chooser, self.known
        if not isinstance(chooser.strategy, Together):
            return chooser.strategy
        return chooser.strategy.settled(
            known.turn if ahead and known.turn is not None else known.data.factor,
            chooser.noise,
            intercept=chooser.intercept,
            mean=chooser.mean,
            shapes=chooser.shapes,
            scales=chooser.scales(known),
        )

    def stretch_from(self, first: int, n: int, weights: Array | None) -> int:
        """Where the stretch of rows ends, if all targets choose together: the schedule turns."""
        if not isinstance(self.chooser.strategy, Together):
            return n
        rest = None if weights is None else weights[first:]
        left = max(int(self.known.clock[1] - self.known.clock[0]), 1)
        return first + rows_until(n - first, rest, left)

    # ---- features that were constant -----------------------------------------------------------

    def waiting(self) -> Waiting:
        """Features that have not varied, and their values."""
        known = self.known
        return waiting(known.data.factor, known.scales, intercept=self.chooser.intercept)

    def unseen(self, nodes: Nodes, X: Array) -> Array | None:
        """(K, n) what features that were constant until now add to the variance of rows."""
        if not nodes.choice.pinned.any():
            return None
        known, mean = self.known, self.chooser.mean
        added = added_variance(
            nodes,
            known.data.factor,
            known.scales,
            self.waiting(),
            self.features(X),
            mean=mean,
            intercept=self.chooser.intercept,
        )
        in_own_units = added is not None and X.shape[1] > len(mean)
        return added * np.square(X[:, 0]) if in_own_units else added

    def features(self, X: Array) -> Array:
        """The features of rows, which may bring a first column, the 1 in their own units."""
        return X if X.shape[1] == len(self.chooser.mean) else X[:, 1:] / X[:, :1]


@dataclass(frozen=True)
class TargetsStream(NodesStream):
    """The stream of several targets: their data, of which each target makes nodes of its own."""

    @property
    def learns_lean(self) -> bool:
        """Where nothing is forgotten: else each target's nodes have to learn the rows."""
        return not self.forgets

    @property
    def predicts_lean(self) -> bool:
        """Not: there are no nodes to be read."""
        return self.rests and self.known.data.predicts_lean

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The lean path of the data's factor."""
        path = self.known.data.row_path(names)
        if self.learns_lean:
            path.go_together(None, self.known.clock, self.waiting)
        return path


def counted(weights: Array | None, n: int) -> int:
    """How many of ``n`` rows weigh something."""
    return n if weights is None else int(np.count_nonzero(weights))


__all__ = ["NEVER", "Chooser", "NodesStream", "TargetsStream", "counted"]
