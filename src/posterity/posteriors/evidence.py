"""A posterior whose prior precision is learned from the evidence.

The data's factor is kept apart from the prior's. From it the evidence chooses a few precisions
with weights (the nodes), each of which then is a posterior like any other.

Reading chooses anew from all rows so far: what is read depends on the rows, not on the way they
came. A stream that is predicted and learned row by row goes on with the nodes it has, which learn
each row, and has them chosen anew after a third (later a half) more rows: O(p^2) a row, amortised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from posterity.evidence import Integrated, Relevance, RunningScales, Strategy
from posterity.evidence.columns import mean_squares
from posterity.kernel import RowPath
from posterity.noise import Distribution, JointOfOne, Noise
from posterity.posteriors._nodes import Nodes, one_after_another
from posterity.posteriors.gaussian import LinearPosterior
from posterity.priors import GaussianPrior

Array = NDArray[np.float64]

# Choosing costs about 30 p^3: where rows are forgotten, so many lie between two choices in the end.
LONGEST_STRETCH = 4096
ROWS_A_COEFFICIENT = 64
# Of a constant feature: a value further away, relative to it, is another value.
SAME = 1e-9


@dataclass
class Known:
    """State: the data under a flat prior, the nodes of the stream, and what was read last.

    ``clock`` counts the rows learned; when they are as many as its second number, the stream's
    nodes are chosen anew. ``fresh`` knows rows of the total weight ``fresh_at``. ``tally`` sums
    the log densities of the rows as they came. ``scales`` are the features' where data fade.
    """

    data: LinearPosterior
    stream: Nodes | None = None
    fresh: Nodes | None = None
    fresh_at: float = -1.0
    scales: RunningScales | None = None
    clock: NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, dtype=np.int64))
    tally: float = 0.0

    @property
    def left(self) -> int:
        """Rows to go until the stream's nodes are chosen anew."""
        return int(self.clock[1] - self.clock[0])

    def copy(self) -> Known:
        """The same, to go its own way."""
        stream = None if self.stream is None else self.stream.copy()
        scales = None if self.scales is None else self.scales.copy()
        data, clock = self.data.copy(), self.clock.copy()
        return Known(data, stream, self.fresh, self.fresh_at, scales, clock, self.tally)

    def become(self, other: Known) -> None:
        """Take over what another one knows, in the memory that is there."""
        self.data.become(other.data)
        self.follow(other.stream)
        self.fresh, self.scales = None, other.scales
        self.clock[:] = other.clock
        self.tally = other.tally

    def follow(self, stream: Nodes | None) -> None:
        """Go on with these nodes; a single one keeps the factor that row paths share."""
        if stream is not None and stream.alone and self.stream is not None and self.stream.alone:
            factor = self.stream.posteriors[0].factor
            factor.become(stream.posteriors[0].factor)
            stream = Nodes(
                stream.choice, (stream.posteriors[0]._but(factor=factor),), stream.log_weights
            )
        self.stream = stream


@dataclass(frozen=True)
class EvidencePosterior(LinearPosterior):
    """A posterior that learns its prior precision by a strategy of :mod:`posterity.evidence`."""

    strategy: Strategy
    mean: Array
    shapes: Array | None
    known: Known = field(repr=False)

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

    def become(self, other: LinearPosterior) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        assert isinstance(other, EvidencePosterior)
        self.known.become(other.known)

    def made(self, change: Callable[[LinearPosterior], LinearPosterior]) -> LinearPosterior:
        """The same with ``change`` made to the posterior of the data, which has seen nothing."""
        data = change(self.known.data)
        known = Known(data, scales=RunningScales.before_data(len(self.mean)))
        return replace(self, factor=data.factor, known=known)

    def single(self) -> LinearPosterior:
        """The same, to be one of many: with one node, where there would be several."""
        return replace(self.copy(), strategy=self._single_node)

    @property
    def _single_node(self) -> Strategy:
        strategy = self.strategy
        if isinstance(strategy, Integrated | Relevance):
            return replace(strategy, most_nodes=1)
        return strategy

    def fixed(self) -> LinearPosterior:
        """The same under a flat prior that is not learned."""
        return self.known.data.copy()

    # ---- learning ------------------------------------------------------------------------------

    @property
    def tells_evidence(self) -> bool:
        """Whether the data still tell the evidence of all rows."""
        return self.known.data.tells_evidence

    @property
    def learns_lean(self) -> bool:  # type: ignore[override]
        """Whether nothing is forgotten; single rows then go on with one node."""
        return self.known.data.learns_lean

    @property
    def predicts_lean(self) -> bool:  # type: ignore[override]
        """Whether the stream has one node by now; its prior is as old as the schedule has it."""
        if not self.learns_lean:
            return False
        stream = self.known.stream
        if (stream is None or not stream.alone) and self.known.left <= 0:
            stream = self._stream()
        return stream is not None and stream.alone

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The lean path of a single node, which the data's factor goes along with.

        From the first such row on the stream has one node: its mean is as good as that of several
        (in simulations a little better), which matter for intervals, and those are read anew.
        """
        known = self.known
        if not self.learns_lean:
            return known.data.row_path(names)
        if known.stream is None or not known.stream.alone:
            self._go_on_with(self._chosen(single=True))
        assert known.stream is not None
        path = known.stream.posteriors[0].row_path(names)
        self.accompany(path, names)
        return path

    def accompany(self, path: RowPath, names: Sequence[str] | None) -> None:
        """Let the data learn what ``path``, the single node's, learns; its prior is kept up."""
        known = self.known

        def when_due() -> tuple[NDArray[np.intp], Array]:
            self._stream()
            return self._waiting()

        path.go_together(known.data.row_path(names), known.clock, self._waiting(), when_due)

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows at once."""
        if not self.tells_evidence:
            self.predict_then_learn(X, y, weights, elapsed)
            return
        known = self.known
        known.data.append(X, y, weights, elapsed.copy())
        self._account_for(X, weights)
        if known.stream is not None:
            self._catch_up()

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
                told.append(stream.predict_then_learn(X[part], y[part], some, elapsed[part].copy()))
                self._learn(X[part], y[part], some, elapsed[part])
                first = stop
        except BaseException:
            self.become(before)
            raise
        together = one_after_another(told)
        if not self.tells_evidence:
            counted = together.logpdf(y[:, 0])
            self.known.tally += float(np.sum(counted if weights is None else weights * counted))
        return together

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows; raises ``ValueError`` when they can't have been learned."""
        known = self.known
        known.data.remove(X, y, weights)
        known.clock[0] -= _count(weights, len(X))
        self._catch_up()

    def merge(self, other: LinearPosterior) -> None:
        """Learn all that ``other`` learned; the prior is then learned from both."""
        assert isinstance(other, EvidencePosterior)
        self.known.data.merge(other.known.data)
        if self.known.scales is not None and other.known.scales is not None:
            self.known.scales.merge(other.known.scales)
        self.known.clock[0] += other.known.clock[0]
        self._catch_up()

    def same_prior(self, other: LinearPosterior) -> bool:
        """Whether both learn their priors in the same way, so that they can be merged."""
        return (
            isinstance(other, EvidencePosterior)
            and self.strategy == other.strategy
            and np.array_equal(self.mean, other.mean)
            and _same_shapes(self.shapes, other.shapes)
            and self.known.data.same_prior(other.known.data)
        )

    # ---- reading -------------------------------------------------------------------------------

    @property
    def nodes(self) -> Nodes:
        """The precisions that the evidence chooses from all rows so far."""
        known = self.known
        if known.fresh is None or known.fresh_at != known.data.factor.seen:
            known.fresh, known.fresh_at = self._chosen(), known.data.factor.seen
        return known.fresh

    def predictive(self, X: Array) -> Distribution:
        """Distribution of new observations at the rows of ``X``."""
        return self.nodes.predictive(X)

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        return self.nodes.average([node.coefficients() for node in self.nodes.posteriors])

    def joint(self, names: tuple[str, ...]) -> JointOfOne:
        """Joint distribution of [intercept, coefficients]."""
        return self.nodes.joint(names)

    @property
    def prior_precision(self) -> Array:
        """(m,) geometric mean of the precisions, in the user's units."""
        nodes = self.nodes
        logs = np.log(nodes.choice.precisions)
        return np.exp(nodes.average(logs)) / self.noise.prior_unit

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
        return self.nodes.choice.log_evidence if self.tells_evidence else self.known.tally

    # ---- inner ---------------------------------------------------------------------------------

    def _chosen(self, *, single: bool = False) -> Nodes:
        """Nodes by the evidence of the data, or one only."""
        data, scales = self.known.data, self.known.scales
        strategy = self._single_node if single else self.strategy
        choice = strategy.choose(
            data.factor,
            self.noise,
            intercept=self.intercept,
            mean=self.mean,
            shapes=self.shapes,
            scales=None if scales is None else scales.read(intercept=self.intercept),
        )
        return Nodes.of(choice, self.mean, data)

    def _catch_up(self) -> None:
        """Let the stream know what was learned, or unlearned, without it."""
        known = self.known
        known.fresh = None
        if known.stream is not None and known.stream.alone:
            known.follow(self._chosen(single=True))
        else:
            known.stream = None

    def _stream(self) -> Nodes:
        """The nodes of the stream, chosen anew when that is due."""
        known = self.known
        if known.stream is None or known.left <= 0:
            alone = known.stream is not None and known.stream.alone
            self._go_on_with(self._chosen(single=alone))
        assert known.stream is not None
        return known.stream

    def _go_on_with(self, stream: Nodes) -> None:
        """Let the stream have these nodes until a third, later a half, more rows have come."""
        known = self.known
        known.follow(stream)
        rows, p = int(known.clock[0]), self.n_coefficients
        some = rows // (3 if rows < 8 * p else 2)
        if not known.data.learns_lean:  # what forgets stays as young as this
            some = min(some, max(LONGEST_STRETCH, ROWS_A_COEFFICIENT * p))
        known.clock[1] = rows + max(some, p // 16, 1)

    def _stretch(self, stream: Nodes, X: Array, weights: Array | None, first: int) -> int:
        """Where the stretch of rows that starts at ``first`` ends: choosing anew is due there."""
        left = self.known.left
        if weights is None:
            stop = min(first + left, len(X))
        else:
            rows = np.cumsum(weights[first:] > 0.0)
            stop = first + min(int(np.searchsorted(rows, left)) + 1, len(X) - first)
        if stream.choice.pinned.any():
            features, constants = self._waiting()
            off = np.abs(X[first:stop, features] - constants)
            moves = (off > SAME * np.abs(constants)).any(axis=1)
            if moves.any():
                # A feature that was constant begins to vary: what it means is asked right after.
                stop = first + int(np.argmax(moves)) + 1
                self.known.clock[1] = 0
        return stop

    def _waiting(self) -> tuple[NDArray[np.intp], Array]:
        """Features that have not varied, and their values: the mean, or 0 without an intercept."""
        known, root = self.known, self.known.data.factor.root
        if known.scales is not None:
            pinned = known.scales.read(intercept=self.intercept).pinned
            constants = known.scales.mean
        else:
            pinned = mean_squares(known.data.factor, intercept=self.intercept).pinned
            seen = self.intercept and root[0, 0] != 0.0
            constants = root[0, 1:] / root[0, 0] if seen else np.zeros(len(self.mean))
        features = np.flatnonzero(pinned)
        return features, constants[features]

    def _learn(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        known = self.known
        if len(X):
            known.data.absorb(X, y, weights, elapsed)
        self._account_for(X, weights)
        self._stream()  # at once: what is due must not wait for whoever asks next

    def _account_for(self, X: Array, weights: Array | None) -> None:
        """Count rows that the data have learned."""
        known = self.known
        known.clock[0] += _count(weights, len(X))
        known.fresh = None
        if known.scales is not None:
            known.scales.learn(X, weights)


def _count(weights: Array | None, n: int) -> int:
    return n if weights is None else int(np.count_nonzero(weights))


def _same_shapes(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
