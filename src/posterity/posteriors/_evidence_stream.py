"""A posterior that learns its prior, as a stream: which nodes predict its rows, and until when.

Of one target the nodes learn each row, and predict it before. They are chosen anew after a third
(later a half) more rows: O(p^2) a row, amortised. When that is depends on the number of rows, not
on who learned them or how (:mod:`posterity.posteriors._turns`). Of several targets each has nodes
of its own (:mod:`posterity.posteriors.targets`): together there are the data, and the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array
from posterity.evidence import Choice, Integrated, RunningScales, Strategy
from posterity.evidence.members import InUnits, use_single_node
from posterity.evidence.together import SharedScale
from posterity.factor import Factor
from posterity.factor.parallel import limit_blas_threads
from posterity.factor.rows import SiteRows
from posterity.kernel import FadingMember, LearnedPrior, NodesPath, RowPath
from posterity.posteriors._faded_rows import restore_weight
from posterity.posteriors._nodes import Nodes
from posterity.posteriors._repeated_rows import count_once
from posterity.posteriors._turns import (
    ConstantFeatures,
    count_rows,
    count_rows_until,
    find_constant_features,
    find_turns_around,
    have_moved,
)
from posterity.posteriors._unseen import FirstVariations, find_first_variations
from posterity.posteriors.gaussian import LinearPosterior
from posterity.priors import GaussianPrior

# Numbers of rows, at which a turn is due never, or right after the row that comes.
NEVER, NOW = 2**62, 0


@dataclass
class EvidenceState:
    """What the stream's prior is chosen by, and what was chosen.

    ``clock`` counts the rows learned; when they are as many as its second number, the stream's
    nodes are chosen anew, from ``turn``, the data as they were then (None: as they are, as rows
    that came together were the last; they are those that are read, until a row comes). ``stream``
    are those nodes. Where nothing is forgotten they can be made at any time, and are only kept
    while the stream goes on. ``fresh`` are those that were read last. ``tally`` sums the log
    densities of the rows as they came. ``scales`` are the features' where data fade.
    """

    stream: Nodes | None = None
    fresh: Nodes | None = None
    scales: RunningScales | None = None
    clock: NDArray[np.int64] = field(default_factory=lambda: np.array([0, 1]))
    tally: float = 0.0
    turn: Factor | None = None

    def copy(self) -> EvidenceState:
        """An independent copy."""
        stream = None if self.stream is None else self.stream.copy()
        scales = None if self.scales is None else self.scales.copy()
        return replace(self, stream=stream, scales=scales, clock=self.clock.copy())

    def copy_from(self, other: EvidenceState) -> None:
        """Take over what another one knows; those who share the clock see it go on."""
        self.clock[:] = other.clock
        self.__dict__.update(other.__dict__, clock=self.clock)


@dataclass(frozen=True)
class EvidenceStream(LinearPosterior):
    """Data under a flat prior, ``factor``, and the rule by which they choose another one.

    ``mean`` (m,) and ``shapes`` (L, m) are those of :class:`Strategy`.
    """

    strategy: Strategy
    mean: Array
    shapes: Array | None
    state: EvidenceState = field(repr=False)
    # True if the stream has a single node, whatever is read: sites are found under one prior.
    single_node: bool = False
    # True if that node is also read, and its prior is chosen again on request only.
    prior_is_frozen: bool = False

    @property
    def of_rows(self) -> LinearPosterior:
        """The posterior of the data, which shares their memory."""
        return LinearPosterior(
            GaussianPrior(0.0, 0.0),
            self.noise,
            self.intercept,
            self.prior,
            self.factor,
            memory=self.memory,
            tally=self.tally,
            stored_rows=self.stored_rows,
        )

    def copy_with_factor(self, factor: Factor, **changes: object) -> Self:
        """An independent copy but for its factor, which is this one, and for ``changes``."""
        return super().copy_with_factor(factor, state=self.state.copy(), **changes)

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        super().copy_from(other)
        self.state.copy_from(other.state)

    # ---- the choice of a prior -----------------------------------------------------------------

    def _choose(self, strategy: Strategy, turn: Factor | None = None) -> Choice:
        """Choose the prior by the evidence of all data, or as they were at a turn of the stream."""
        rows = turn or self._unfaded
        if isinstance(strategy, Integrated) and self.noise.parameters[0]:  # as that of sites is
            strategy = strategy.for_sites(rows.count, float(self.state.clock[0]), len(self.mean))
        once = count_once(rows, self.noise, self.n_flat)
        with limit_blas_threads(len(self.mean)):
            choice = strategy.choose(once, self.noise, **self._given)
        if once is rows:
            return choice
        times = (rows.count - self.n_flat) / max(once.count - self.n_flat, 1.0)
        return replace(choice, log_evidence=times * choice.log_evidence)  # of as many rows

    @property
    def _given(self) -> dict[str, Any]:
        """What else a strategy is told; features' scales over all rows, where they are kept."""
        scales = self.state.scales
        read = None if scales is None else scales.read(intercept=self.intercept)
        prior = {"mean": self.mean, "shapes": self.shapes}
        return {**prior, "scales": read, "intercept": self.intercept}

    @property
    def _unfaded(self) -> Factor:
        """The factor that the prior is chosen from: all data, with the weight that rows had."""
        scales = self.state.scales
        if scales is None or not (self.memory.forgets and self.memory.only_discounts):
            return self.factor
        return restore_weight(self.factor, scales.count)

    @property
    def _rows_once(self) -> LinearPosterior:
        """The posterior of the data, with rows that came again counted as in :meth:`_choose`."""
        rows, once = self.of_rows, count_once(self.factor, self.noise, self.n_flat)
        return rows if once is rows.factor else rows.copy_with_factor(once)

    @property
    def rows_ahead(self) -> LinearPosterior:
        """The posterior of the data by which the next row is predicted."""
        return self._rows_once if self.is_settled else self.of_rows

    def fix_prior_choice(self, *, stream: bool) -> LinearPosterior:
        """The same with a strategy that has chosen, where all targets choose together."""
        if not isinstance(self.strategy, SharedScale):
            return self
        rows = (self.state.turn if stream else None) or self._unfaded
        chosen = self.strategy.fix_prior_choice(rows, self.noise, **self._given)
        return self._copy_with(strategy=chosen)

    # ---- the nodes -----------------------------------------------------------------------------

    @property
    def reads_stream(self) -> bool:
        """True if the stream's node is read: one is, of many, that is weighed by its stream."""
        return self.prior_is_frozen or isinstance(self.strategy, InUnits)

    @property
    def is_settled(self) -> bool:
        """True if rows that came together were the last: what is read predicts the next one."""
        return self.state.turn is None and self.factor.seen > 0.0 and not self.memory.forgets

    @property
    def fresh(self) -> Nodes:
        """The nodes that the evidence of all rows so far chooses."""
        state = self.state
        if state.fresh is None or not self.is_known_to(state.fresh):
            state.fresh = self.read_nodes(self._choose(self.strategy))
        return state.fresh

    def read_nodes(self, choice: Choice) -> Nodes:
        """The chosen priors, each with all data, in which rows that came again count once."""
        return Nodes.of(choice, self.mean, self._rows_once)

    def make_nodes(self, choice: Choice) -> Nodes:
        """The same that predict the next row: in a stream they learn each row as it comes."""
        return Nodes.of(choice, self.mean, self.rows_ahead)

    def current(self) -> Nodes:
        """The nodes of the stream, as old as the schedule has them."""
        self.state.stream = nodes = self.nodes_ahead()
        return nodes

    def nodes_ahead(self) -> Nodes:
        """The same for those who only read: where there are none, some are made and not kept."""
        stream = self.state.stream
        if stream is None or not (self.memory.forgets or self.is_known_to(stream)):
            return self.make_nodes(self._choice_ahead())
        return stream

    def is_known_to(self, nodes: Nodes) -> bool:
        """Return True if nodes have learned all rows that the data's factor has."""
        return nodes.posteriors[0].factor.seen == self.factor.seen

    def _choice_ahead(self) -> Choice:
        state = self.state
        if state.stream is not None:
            return state.stream.choice
        if self.is_settled and not (self.prior_is_frozen or self.single_node):
            return self.fresh.choice
        strategy = use_single_node(self.strategy) if self.single_node else self.strategy
        if isinstance(strategy, Integrated) and not self.prior_is_frozen:
            strategy = strategy.for_stream
        return self._choose(strategy, state.turn)

    def begin_turn(self) -> None:
        """The schedule turns: from now on the nodes rest on the data as they are."""
        state = self.state
        state.turn = self.factor.copy() if not self.memory.forgets else None
        state.stream = state.fresh = None
        state.clock[1] = NEVER if self.prior_is_frozen else self._find_turn(int(state.clock[0]))

    def settle(self) -> None:
        """The same where rows came together: the next one is predicted by what is read of them."""
        state = self.state
        if self.memory.forgets or self.prior_is_frozen:
            self.begin_turn()
            return
        state.turn = state.stream = state.fresh = None
        state.clock[1] = state.clock[0] + 1

    def _find_turn(self, rows: int) -> int:
        """The number of rows at which the prior is chosen next, after so many."""
        p = self.n_coefficients - len(self.find_constant_features()[0])
        return find_turns_around(rows, p, forgets=self.memory.forgets)[1]

    def use_prior(self, chosen: Choice) -> None:
        """Let one node learn and be read, under the prior that this choice of one node has."""
        own = self._choice_ahead()
        precisions = np.where(own.pinned, own.precisions[:1], chosen.precisions)
        own = replace(own, precisions=precisions, weights=np.ones(1))
        self.state.stream = self.make_nodes(replace(own, contrasts=chosen.contrasts))

    def wait(self, elapsed: float) -> None:
        """Let so much time pass after the last row, in the nodes as well."""
        super().wait(elapsed)
        stream = self.state.stream
        for node in () if stream is None else stream.posteriors:
            node.wait(elapsed)
        self.state.fresh = None

    # ---- single rows ---------------------------------------------------------------------------

    @property
    def has_fast_learn_one(self) -> bool:
        """True if compiled code learns single rows, in the data's factor and in the nodes."""
        if not self.memory.forgets:
            return True
        one = self.factor.n_targets == 1  # each of several has nodes that have to learn the rows
        return one and not self.prior_is_frozen and super().has_fast_learn_one

    @property
    def has_fast_predict_one(self) -> bool:  # type: ignore[override]
        """True if compiled code can predict: there are nodes that learn each row."""
        nodes = self.factor.n_targets == 1 and not self.single_node
        return self.prior_is_frozen or (nodes and self.has_fast_learn_one)

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The compiled path of the data's factor and of the stream's nodes."""
        if self.prior_is_frozen and self.memory.forgets:  # which only reads
            return self.nodes_ahead().posteriors[0].factor.row_path(self.intercept, names)
        if self.prior_is_frozen:
            return self.open_path(RowPath, names)
        path = super().row_path(names)
        if not self.has_fast_learn_one:
            return path
        path.go_together(None, self.state.clock, self.find_constant_features)
        if self.factor.n_targets > 1:
            return path

        def open_nodes() -> tuple[Nodes, list[RowPath], Array]:
            nodes = self.nodes_ahead()
            paths = [node.row_path(names) for node in nodes.posteriors]
            return nodes, paths, nodes.weights

        ways = self.memory.forgets, open_nodes, self._open_turn, not self.memory.has_evidence
        return cast(RowPath, NodesPath(path, self.state, *ways))

    def _open_turn(self, rows: int) -> tuple[Factor | None, RowPath | None, int]:
        """Return the next choice's factor and compiled path, and the row at which it is due."""
        due = self._find_turn(rows)
        if self.memory.forgets:
            return None, None, due
        turn = Factor(self.n_coefficients)
        return turn, turn.row_path(self.intercept), due

    def open_path(
        self, kind: Callable[..., RowPath], names: Sequence[str] | None, *how: Any
    ) -> RowPath:
        """A path by which the stream's only node learns rows, and the data with it."""
        nodes = self.nodes_ahead()
        (node,) = nodes.posteriors
        path, data = node.open_path(kind, names, *how), super().open_path(RowPath, names)
        path.go_together(data, self.state.clock, self.find_constant_features, self.state, nodes)
        return path

    def as_member(self) -> FadingMember:
        """Return what an average updates row by row: the predicting node, and the data's factor."""
        nodes = self.nodes_ahead()
        ready = nodes.is_single and not nodes.choice.pinned.any()
        behind = LearnedPrior(super().as_member(), self.state, nodes, self._find_turn, ready)
        return behind.before(nodes.posteriors[0].as_member())

    # ---- many rows -------------------------------------------------------------------------------

    def learn_sites(
        self, learn: Callable[[LinearPosterior, SiteRows], Any], rows: SiteRows
    ) -> list[Any]:
        """Learn sites in stretches between which the prior is chosen anew; one node finds them."""
        learned = []
        first = 0
        while first < len(rows):
            nodes = self.current()
            part = rows[first : self._find_stretch(nodes.choice, rows.X, rows.weights, first)]
            if self.state.clock[1] == NOW:
                nodes = self._choose_for_new_feature(learn, nodes, part)
            (node,) = nodes.posteriors
            part_learned = learn(node, part)
            self._learn_sites(part, part_learned, part_learned.sites.target)
            learned.append(part_learned)
            first += len(part)
        return learned

    def _choose_for_new_feature(
        self, learn: Callable[[LinearPosterior, SiteRows], Any], nodes: Nodes, row: SiteRows
    ) -> Nodes:
        """Return nodes for a row in which a feature that was constant begins to vary.

        Under a prior that says that its coefficient is 0 the row would be met around the wrong
        place. So the prior is the one chosen after a row that says nothing but what was predicted.
        """
        (node,) = nodes.posteriors
        looked_at, after = learn(node.copy(), row), self.copy()
        after._learn_sites(row, looked_at, looked_at.mean)
        return self.make_nodes(after._choice_ahead())

    def _learn_sites(self, rows: SiteRows, learned: Any, targets: Array) -> None:
        target = (targets - rows.offsets)[:, None]
        self.absorb(rows.X, target, learned.sites.precision, rows.elapsed)

    def absorb(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Let the data learn rows that the nodes have learned, or that nobody predicts."""
        self._learn_data(X, y, weights, elapsed)
        if self.state.clock[0] >= self.state.clock[1]:
            self.begin_turn()

    def _learn_data(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        if len(X):
            super().absorb(X, y, weights, elapsed)
        state = self.state
        state.fresh = None
        if state.scales is not None:
            state.scales.learn(self._features(X), weights)
        state.clock[0] += count_rows(weights, len(X))

    def _find_stretch(self, choice: Choice, X: Array, weights: Array | None, first: int) -> int:
        """Return the end of the stretch of rows from ``first``: the prior's next choice."""
        rest = None if weights is None else weights[first:]
        left = max(int(self.state.clock[1] - self.state.clock[0]), 0)
        stop = first + count_rows_until(len(X) - first, rest, left)
        if choice.pinned.any():
            features, constants = self.find_constant_features()
            moves = have_moved(self._features(X[first:stop])[:, features], constants).any(axis=1)
            if weights is not None:
                moves &= weights[first:stop] > 0.0
            if moves.any():
                # A feature that was constant begins to vary. Its row stands alone: what it may mean
                # is told by the rows right before it, and asked right after it.
                still = int(np.argmax(moves))
                stop = first + max(still, 1)
                if still == 0:
                    self.state.clock[1] = NOW
        return stop

    def find_stretch_end(self, first: int, n: int, weights: Array | None) -> int:
        """Return the end of the stretch after which all targets choose their prior together."""
        if not isinstance(self.strategy, SharedScale):
            return n
        rest = None if weights is None else weights[first:]
        left = max(int(self.state.clock[1] - self.state.clock[0]), 1)
        return first + count_rows_until(n - first, rest, left)

    # ---- features that were constant -----------------------------------------------------------

    def find_constant_features(self) -> ConstantFeatures:
        """Features that have not varied, and their values."""
        return find_constant_features(self.factor, self.state.scales, intercept=self.intercept)

    def unseen(self, nodes: Nodes, X: Array) -> Array | None:
        """(K, n) what features that were constant until now add to the variance of rows."""
        moves = self.find_first_variations(nodes, X)
        return None if moves is None else moves.add_variances(len(X))

    def find_first_variations(self, nodes: Nodes, X: Array) -> FirstVariations | None:
        """Find the entries of these rows at which features vary for the first time."""
        if not nodes.choice.pinned.any():
            return None
        data = self.factor, self.state.scales, self.find_constant_features()
        moves = find_first_variations(nodes, *data, self._features(X))
        if moves is None or X.shape[1] == len(self.mean):
            return moves
        return moves.scaled(X[:, 0])  # rows in units of their own noise

    def _features(self, X: Array) -> Array:
        """The features of rows, which may bring a first column, the 1 in their own units."""
        return X if X.shape[1] == len(self.mean) else X[:, 1:] / X[:, :1]


__all__ = ["NEVER", "NOW", "EvidenceState", "EvidenceStream"]
