"""The stream of a posterior whose prior is learned: which nodes learn its rows, and until when.

Of one target the nodes learn each row, and predict it before. They are chosen anew after a third
(later a half) more rows: O(p^2) a row, amortised. When that is depends on the number of rows, not
on who learned them or how (:mod:`posterity.posteriors._turns`). Of several targets each has nodes
of its own (:mod:`posterity.posteriors.targets`): together there are the data, and the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from posterity.evidence import Choice, Integrated, Strategy
from posterity.evidence.together import SharedScale
from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.kernel import FadingMember, LearnedPrior, NodesPath, RowPath
from posterity.noise import Distribution
from posterity.posteriors._chooser import Chooser
from posterity.posteriors._evidence_state import EvidenceState
from posterity.posteriors._nodes import Nodes, predict_nodes
from posterity.posteriors._turns import (
    ConstantFeatures,
    count_rows,
    count_rows_until,
    find_constant_features,
    find_last_turn,
    find_turns_around,
    have_moved,
)
from posterity.posteriors._unseen import FirstVariations, find_first_variations
from posterity.posteriors.gaussian import LinearPosterior

Array = NDArray[np.float64]

# A number of rows.
NEVER = 2**62


@dataclass(frozen=True)
class NodesStream:
    """The nodes of one target's stream; flags as in :class:`EvidencePosterior`."""

    chooser: Chooser
    state: EvidenceState
    single_node: bool
    prior_is_frozen: bool

    @property
    def forgets(self) -> bool:
        """True if rows count for less as they age."""
        return self.state.data.forgets

    @property
    def _p(self) -> int:
        return self.state.data.n_coefficients

    # ---- single rows ---------------------------------------------------------------------------

    @property
    def has_fast_learn_one(self) -> bool:
        """True if compiled code learns single rows, in the data's factor and in the nodes."""
        if not self.forgets:
            return True
        return not self.prior_is_frozen and self.state.data.has_fast_learn_one

    @property
    def has_fast_predict_one(self) -> bool:
        """True if compiled code can predict: there are nodes that learn each row."""
        if self.prior_is_frozen:
            return self.state.data.has_fast_predict_one
        return self.has_fast_learn_one and not self.single_node

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The compiled path of the data's factor and of the nodes."""
        state = self.state
        path = state.data.row_path(names)
        if not self.has_fast_learn_one:
            return path
        path.go_together(None, state.clock, self.find_constant_features)

        def open_nodes() -> tuple[Nodes, list[RowPath], Array]:
            nodes = self.ahead()
            paths = [node.row_path(names) for node in nodes.posteriors]
            return nodes, paths, nodes.weights

        ways = self.forgets, open_nodes, self._begin_turn, not state.data.has_evidence
        return cast(RowPath, NodesPath(path, state, *ways))

    def learn_alongside(self, path: RowPath, names: Sequence[str] | None) -> None:
        """Let the data learn what ``path``, the single node's, learns; its prior is kept up."""
        state = self.state
        (node,) = self.current().posteriors
        node.learn_alongside(path, names)
        path.go_together(
            state.data.row_path(names), state.clock, self.find_constant_features, state
        )

    def as_member(self) -> FadingMember:
        """Return what an average updates row by row: the predicting node, and the data's factor."""
        nodes, state, p = self.ahead(), self.state, self._p
        ready = nodes.is_single and not nodes.choice.pinned.any()

        def next_turn(rows: int) -> int:
            return find_turns_around(rows, p, forgets=True)[1]

        behind = LearnedPrior(state.data.as_member(), state, nodes, next_turn, ready)
        return behind.before(nodes.posteriors[0].as_member())

    def _begin_turn(self, rows: int) -> tuple[Factor | None, RowPath | None, int]:
        """Return the next choice's factor and compiled path, and the row at which it is due."""
        due = find_turns_around(rows, self._p, forgets=self.forgets)[1]
        if self.forgets:
            return None, None, due
        turn = Factor(self._p)
        return turn, turn.row_path(self.chooser.intercept), due

    # ---- the nodes -----------------------------------------------------------------------------

    def current(self) -> Nodes:
        """The nodes of the stream, as old as the schedule has them."""
        state, ahead = self.state, self.ahead()
        if ahead is not state.stream:
            state.follow(ahead)
        assert state.stream is not None
        return state.stream

    def ahead(self) -> Nodes:
        """The same for those who only read: where there are none, some are made and not kept."""
        state, mean = self.state, self.chooser.mean
        if state.stream is None:
            return Nodes.of(self._choice_ahead(), mean, state.data)
        if not self.forgets and not self._is_up_to_date(state.stream):
            return Nodes.of(state.stream.choice, mean, state.data)
        return state.stream

    def _choice_ahead(self) -> Choice:
        state = self.state
        if state.stream is not None:
            return state.stream.choice
        ahead = not self.prior_is_frozen
        return self.chooser.choice(state, state.turn, stream=ahead, single=self.single_node)

    def _is_up_to_date(self, stream: Nodes) -> bool:
        """Return True if the nodes have learned all rows that the data's factor has."""
        return stream.posteriors[0].factor.seen == self.state.data.factor.seen

    # ---- many rows -----------------------------------------------------------------------------

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> list[Distribution]:
        """Learn row after row; returns the predictions of each stretch before it was learned."""
        predictions: list[Distribution] = []
        first = 0
        while first < len(X) or not predictions:
            choice = self._choice_ahead() if self._has_plain_nodes else self.current().choice
            part = slice(first, self._stretch(choice, X, weights, first))
            some = None if weights is None else weights[part]
            rows = X[part], y[part], some, elapsed[part]
            predictions.append(self._predict_by(choice, *rows))
            turn = self.state.turn
            self.learn_data(*rows)
            if self._has_plain_nodes and self.state.turn is turn:
                self.state.stream = Nodes.of(choice, self.chooser.mean, self.state.data)
            first = part.stop
        return predictions

    @property
    def _has_plain_nodes(self) -> bool:
        """True if nodes can be built from the data at any time, and predict as linear models do."""
        state, plain = self.state, isinstance(self.chooser.strategy, Integrated)
        return plain and state.shared is None and state.data.is_plain

    def _predict_by(
        self, choice: Choice, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Distribution:
        """Return each row's one-step-ahead prediction, averaged over the nodes of this choice."""
        state, mean = self.state, self.chooser.mean
        if not self._has_plain_nodes:
            nodes = self.current()
        elif not choice.is_plain:
            nodes = Nodes.of(choice, mean, state.data)
        else:
            return predict_nodes(choice, mean, state.data, X, y, weights)
        return nodes.predict_then_learn(X, y, weights, elapsed, self.unseen(nodes, X))

    def learn_sites(
        self, learn: Callable[[LinearPosterior, SiteRows], Any], rows: SiteRows
    ) -> list[Any]:
        """Learn sites in stretches between which the prior is chosen anew; one node finds them."""
        learned = []
        first = 0
        while first < len(rows):
            nodes = self.current()
            part = rows[first : self._stretch(nodes.choice, rows.X, rows.weights, first)]
            if self.state.clock[1] == 0:
                nodes = self._with_new_feature(learn, nodes, part)
            (node,) = nodes.posteriors
            part_learned = learn(node, part)
            self._learn_sites(part, part_learned, part_learned.sites.target)
            learned.append(part_learned)
            first += len(part)
        return learned

    def _with_new_feature(
        self, learn: Callable[[LinearPosterior, SiteRows], Any], nodes: Nodes, row: SiteRows
    ) -> Nodes:
        """Return nodes for a row in which a feature that was constant begins to vary.

        Under a prior that says that its coefficient is 0 the row would be met around the wrong
        place. So the prior is the one chosen after a row that says nothing but what was predicted.
        """
        (node,) = nodes.posteriors
        before = self.state.copy()
        looked_at = learn(node.copy(), row)
        self._learn_sites(row, looked_at, looked_at.mean)
        choice = self._choice_ahead()
        self.state.copy_from(before)
        return Nodes.of(choice, self.chooser.mean, self.state.data)

    def _learn_sites(self, rows: SiteRows, learned: Any, targets: Array) -> None:
        target = (targets - rows.offsets)[:, None]
        self.learn_data(rows.X, target, learned.sites.precision, rows.elapsed)

    def learn_data(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Let the data learn rows that the nodes have learned, or that nobody predicts."""
        state = self.state
        if len(X):
            state.data.absorb(X, y, weights, elapsed)
        state.fresh = None
        if state.scales is not None:
            state.scales.learn(self.features(X), weights)
        state.clock[0] += count_rows(weights, len(X))
        if state.clock[0] >= state.clock[1]:
            self.begin_turn()

    def _stretch(self, choice: Choice, X: Array, weights: Array | None, first: int) -> int:
        """Return the end of the stretch of rows from ``first``: the prior's next choice."""
        rest = None if weights is None else weights[first:]
        left = max(int(self.state.clock[1] - self.state.clock[0]), 0)
        stop = first + count_rows_until(len(X) - first, rest, left)
        if choice.pinned.any():
            features, constants = self.find_constant_features()
            moves = have_moved(self.features(X[first:stop])[:, features], constants).any(axis=1)
            if weights is not None:
                moves &= weights[first:stop] > 0.0
            if moves.any():
                # A feature that was constant begins to vary. Its row stands alone: what it may mean
                # is told by the rows right before it, and asked right after it.
                still = int(np.argmax(moves))
                stop = first + max(still, 1)
                if still == 0:
                    self.state.clock[1] = 0
        return stop

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Let the data learn rows at once, and keep them as they were at the last turn."""
        state, n_more = self.state, count_rows(weights, len(X))
        rows = int(state.clock[0]) + n_more
        last, due = find_turns_around(rows, self._p, forgets=False)
        still = (
            self.find_constant_features() if state.clock[0] or not self.chooser.intercept else None
        )
        first = find_last_turn(self.features(X), weights, state.clock, last, still)
        data, turn = state.data.copy(), state.turn
        for part in (slice(0, first), slice(first, len(X))):
            some = None if weights is None else weights[part]
            if part.start < part.stop or not len(X):
                data.append(X[part], y[part], some, elapsed[part])
            if 0 < part.stop == first:
                turn = data.factor.copy()
        state.data.copy_from(data)
        if state.scales is not None:
            state.scales.learn(self.features(X), weights)
        state.clock[:] = rows, due
        if first:
            state.turn, state.stream = turn, None
        self.update_nodes()

    # ---- the schedule --------------------------------------------------------------------------

    def begin_turn(self) -> None:
        """The schedule turns: from now on the nodes rest on the data as they are."""
        state = self.state
        state.turn = state.data.factor.copy() if not self.forgets else None
        state.stream = state.fresh = None
        due = find_turns_around(int(state.clock[0]), self._p, forgets=self.forgets)[1]
        state.clock[1] = NEVER if self.prior_is_frozen else due

    def choose_later(self) -> None:
        """The prior is chosen anew when it is needed, from the data as they are then."""
        state = self.state
        state.turn = state.stream = state.fresh = None
        if self.prior_is_frozen:
            state.clock[1] = NEVER
        self.update_nodes()

    def use_prior_precision(self, precision: Array) -> None:
        """Let one node of this prior precision (m,) be what learns and is read."""
        choice = self._choice_ahead()
        precisions = np.where(choice.pinned, choice.precisions[:1], precision)
        choice = replace(choice, precisions=precisions, weights=np.ones(1), contrasts=None)
        self.state.stream = Nodes.of(choice, self.chooser.mean, self.state.data)

    def begin_anew(self) -> None:
        """Rebuild the nodes from all data, after rows were unlearned or merged."""
        self.begin_turn()
        self.update_nodes()

    def update_nodes(self) -> None:
        """Let the nodes know what was learned, or unlearned, without them."""
        self.state.fresh = None
        if self.state.shared is not None:
            self.current()

    # ---- several targets -----------------------------------------------------------------------

    def fix_prior_choice(self, *, ahead: bool) -> Strategy:
        """The strategy of each target; where all choose together, what they have chosen."""
        chooser, state = self.chooser, self.state
        if not isinstance(chooser.strategy, SharedScale):
            return chooser.strategy
        return chooser.strategy.fix_prior_choice(
            state.rows_for_prior(state.turn if ahead else None),
            chooser.noise,
            intercept=chooser.intercept,
            mean=chooser.mean,
            shapes=chooser.shapes,
            scales=chooser.scales(state),
        )

    def find_stretch_end(self, first: int, n: int, weights: Array | None) -> int:
        """Return the end of the stretch after which all targets choose their prior together."""
        if not isinstance(self.chooser.strategy, SharedScale):
            return n
        rest = None if weights is None else weights[first:]
        left = max(int(self.state.clock[1] - self.state.clock[0]), 1)
        return first + count_rows_until(n - first, rest, left)

    # ---- features that were constant -----------------------------------------------------------

    def find_constant_features(self) -> ConstantFeatures:
        """Features that have not varied, and their values."""
        state = self.state
        return find_constant_features(
            state.data.factor, state.scales, intercept=self.chooser.intercept
        )

    def unseen(self, nodes: Nodes, X: Array) -> Array | None:
        """(K, n) what features that were constant until now add to the variance of rows."""
        moves = self.find_first_variations(nodes, X)
        return None if moves is None else moves.add_variances(len(X))

    def find_first_variations(self, nodes: Nodes, X: Array) -> FirstVariations | None:
        """Find the entries of these rows at which features vary for the first time."""
        if not nodes.choice.pinned.any():
            return None
        state, mean = self.state, self.chooser.mean
        moves = find_first_variations(
            nodes,
            state.data.factor,
            state.scales,
            self.find_constant_features(),
            self.features(X),
            mean=mean,
            intercept=self.chooser.intercept,
        )
        if moves is None or X.shape[1] == len(mean):
            return moves
        return moves.scaled(X[:, 0])  # rows in units of their own noise

    def features(self, X: Array) -> Array:
        """The features of rows, which may bring a first column, the 1 in their own units."""
        return X if X.shape[1] == len(self.chooser.mean) else X[:, 1:] / X[:, :1]


@dataclass(frozen=True)
class TargetsStream(NodesStream):
    """The stream of several targets: their data, of which each target makes nodes of its own."""

    @property
    def has_fast_learn_one(self) -> bool:
        """True if nothing is forgotten: otherwise each target's nodes have to learn the rows."""
        return not self.forgets

    @property
    def has_fast_predict_one(self) -> bool:
        """False: there are no nodes to predict with."""
        return self.prior_is_frozen and self.state.data.has_fast_predict_one

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The compiled path of the data's factor."""
        path = self.state.data.row_path(names)
        if self.has_fast_learn_one:
            path.go_together(None, self.state.clock, self.find_constant_features)
        return path


__all__ = ["NEVER", "NodesStream", "TargetsStream"]
