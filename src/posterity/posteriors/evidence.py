"""A posterior whose prior precision is learned from the evidence.

The data's factor is kept apart from the prior's. From it the evidence chooses a few precisions
with weights (the nodes), each of which then is a posterior like any other.

Reading the posterior chooses the precisions anew from all rows so far. What is read depends on the
rows, not on the order in which they came, and reading changes nothing. Predictions of a row right
before it is learned come from the nodes of the stream
(:mod:`posterity.posteriors._evidence_stream`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any, ClassVar, Self

import numpy as np

from posterity.aliases import Array, Mask
from posterity.evidence import Integrated, RunningScales, Strategy
from posterity.evidence.columns import PINNING_PRECISION
from posterity.evidence.members import InUnits, UnitInformation, use_single_node, use_stream_nodes
from posterity.factor import Factor, Rows
from posterity.factor.targets import of_target
from posterity.kernel import mix_moments
from posterity.noise import Distribution, Noise
from posterity.posteriors._evidence_stream import NEVER, NOW, EvidenceState, EvidenceStream
from posterity.posteriors._nodes import Nodes, concatenate_rows, predict_nodes
from posterity.posteriors._reads import read_along
from posterity.posteriors._turns import count_rows, find_last_turn
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.memory import KEEP, Memory
from posterity.priors import GaussianPrior
from posterity.safety import check_model_memory

# A precision above this share of a pinning one counts as such: weights may have grown since.
PINNED_SHARE = 0.02
# As many rows as a sum of weights counts for at most.
MOST_ROWS = 2.0**53
# Number of triangles in memory at once under a learned prior: data, nodes, and intermediates.
TRIANGLES = 14


@dataclass(frozen=True)
class EvidencePosterior(EvidenceStream):
    """A posterior that learns its prior precision by a strategy of :mod:`posterity.evidence`."""

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
        """Return a posterior before data. ``belief`` has the mean; ``shapes`` (L, m): Strategy."""
        check_model_memory(n_features, TRIANGLES)
        flat = GaussianPrior(0.0, 0.0).factor(n_features, intercept=intercept)
        rule = strategy, belief.means(n_features), shapes, EvidenceState()
        return cls(belief, noise, intercept, flat, flat.copy(), *rule)

    def with_memory(self, memory: Memory) -> Self:
        """The same that forgets, before it has seen anything."""
        scales = RunningScales.before_data(len(self.mean))
        return super().with_memory(memory)._copy_with(state=EvidenceState(scales=scales))

    def with_one_node(self, *, rests: bool) -> Self:
        """The same, before data, with a stream of one node, under which sites are found.

        All nodes are read, unless the one ``rests``: it is read too, and chosen by all rows anew
        only when rows are appended together, when the noise is another one, and where a feature
        that was constant begins to vary.
        """
        return replace(self, single_node=True, prior_is_frozen=rests).with_noise(self.noise)

    def with_noise(self, noise: Noise) -> Self:
        """A copy with another noise: its prior is chosen anew."""
        twin = super().with_noise(noise)
        twin.settle()
        return twin

    def copy_for_average(self) -> Self:
        """The same, to be one of many: with one node, where there would be several."""
        return replace(self.copy(), strategy=use_single_node(self.strategy))

    def member(self, *, weak: bool) -> Self:
        """Return one node in units of the noise, under a weak prior or the one it learns.

        Only "auto" can be made weak: other strategies, and shapes of a prior, were asked for.
        """
        weak = weak and self.shapes is None and isinstance(self.strategy, Integrated)
        return replace(
            self.copy(),
            strategy=InUnits(UnitInformation() if weak else use_single_node(self.strategy)),
        )

    def of_target(self, target: int | Sequence[int]) -> Self:
        """Return the posterior of one target, or of some, as if they had come alone."""
        own = super().of_target(target)
        if own.state.turn is not None:
            own.state.turn = of_target(own.state.turn, target)
        return own

    # ---- learning ------------------------------------------------------------------------------

    def central(self) -> LinearPosterior:
        """The one posterior that stands for all nodes of what is known now."""
        if self.prior_is_frozen:
            return self.current().posteriors[0]
        return self.read_nodes(self._choose(use_single_node(self.strategy))).posteriors[0]

    def central_ahead(self) -> LinearPosterior:
        """The first of the stream's nodes, which are as old as the schedule has them."""
        return self.current().posteriors[0]

    def choose_prior(self, rows: Factor) -> Factor:
        """The prior of the stream's only node, were these all the rows; nothing is forgotten."""
        (node,) = self._with_rows(rows, self.noise).nodes_ahead().posteriors
        return node.prior

    def integrate_prior(self, rows: Factor, noise: Noise) -> Nodes:
        """The nodes by which a new row of these would be predicted; nothing is forgotten."""
        twin = self._with_rows(rows, noise)
        return twin.read_nodes(twin._choose(use_stream_nodes(self.strategy)))

    def _with_rows(self, rows: Factor, noise: Noise) -> Self:
        data = {"factor": rows, "memory": KEEP, "tally": None, "stored_rows": None}
        return self._copy_with(**data, noise=noise, state=EvidenceState())

    # The nodes, with their weights; joint distribution of [intercept, coefficients].
    parts = read_along("nodes.parts")
    joint = read_along("nodes.joint")

    @property
    def needs_products_only(self) -> bool:
        """True if the products of rows are all that it keeps of them: no scales of features."""
        return self.state.scales is None

    @property
    def reads_columns(self) -> bool:
        """True if rows may be columns that lie apart, and are learned at once."""
        return not self.prior_is_frozen and not self.memory.forgets

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows at once; one row goes on the stream."""
        if self.memory.forgets:
            self.predict_then_learn(X, y, weights, elapsed)
        elif len(X) == 1 and not self.prior_is_frozen:
            self.append_in_order(X, y, weights, elapsed)
        else:
            self._learn_data(X, y, weights, elapsed)
        if self.prior_is_frozen or (len(X) > 1 and not self.memory.forgets):
            self.settle()

    def append_sites(self, X: Array, y: Array, precision: Array, rows: Any) -> None:
        """Learn the Gaussian rows that stand for ``rows``: one of weight 2 counts twice."""
        super().append_sites(X, y, precision, rows)
        if not self.memory.forgets:
            more = round(min(float(np.sum(rows.weights)), MOST_ROWS)) - count_rows(
                precision, len(X)
            )
            self.state.clock += np.array([more, more if self.state.clock[1] < NEVER else 0])

    def append_in_order(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Let the data learn rows of a stream, and keep them as they were at the last turn."""
        after, rows = self.copy(), Rows(X, y, weights, elapsed)
        clock = after.state.clock
        still = self.find_constant_features() if clock[0] or not self.intercept else None
        first = find_last_turn(self._features(X), weights, clock, self.n_coefficients, still)
        if first:
            clock[1] = NOW  # the schedule turns right after them
        for some in (rows[:first], rows[first:]):
            after.absorb(some.X, some.y, some.weights, some.elapsed)
        self.copy_from(after)

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Distribution:
        """Learn row after row; returns the distribution of each target before its row."""
        after = self.copy()
        together = concatenate_rows(after._learn_stretches(X, y, weights, elapsed))
        if not self.memory.has_evidence:
            counted = together.logpdf(y[:, 0])
            after.state.tally += float(np.sum(counted if weights is None else weights * counted))
        self.copy_from(after)
        return together

    def _learn_stretches(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> list[Distribution]:
        """Learn row after row; returns the predictions of each stretch before it was learned."""
        predictions: list[Distribution] = []
        # Nodes that are made of the data at any time need not learn each row themselves.
        by_data, first = isinstance(self.strategy, Integrated) and not self.memory.forgets, 0
        while first < len(X) or not predictions:
            turn, nodes = self.state.turn, None if by_data else self.current()
            choice = nodes.choice if nodes else self._choice_ahead()
            part = slice(first, self._find_stretch(choice, X, weights, first))
            some = None if weights is None else weights[part]
            rows = X[part], y[part], some, elapsed[part]
            if nodes is None and choice.is_plain:
                predictions.append(predict_nodes(choice, self.mean, self.rows_ahead, *rows[:3]))
            else:
                nodes = nodes or self.make_nodes(choice)
                added = self.unseen(nodes, X[part])
                predictions.append(nodes.predict(methodcaller("predict_then_learn", *rows), added))
            self.absorb(*rows)
            if by_data and self.state.turn is turn:
                self.state.stream = self.make_nodes(choice)
            first = part.stop
        return predictions

    learns_prior: ClassVar[bool] = True

    def linear_moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) of x.w, matched to those of all nodes."""
        nodes = self.nodes
        triangles = [one.factor.triangle for one in nodes.posteriors]
        # The noise of sites has variance 1.
        return mix_moments(triangles, nodes.weights, X, self.unseen(nodes, X))

    def leaves_open(self, X: Array) -> Mask:
        """(n,) True where x.w may be anything: where no row has told of the intercept."""
        return np.full(len(X), self.intercept and self.factor.root[0, 0] == 0.0)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows; raises ``ValueError`` when they can't have been learned."""
        super().remove(X, y, weights)
        self.state.clock[0] -= count_rows(weights, len(X))
        self.settle()

    @property
    def single_factor(self) -> LinearPosterior | None:
        """The triangle under a flat prior, if few rows move to that; None if it must be learned."""
        flat = isinstance(self.strategy, Integrated) and self.shapes is None
        return self.of_rows.copy() if flat else None

    def never_varied(self) -> Mask:
        """(m,) True where a feature has not varied yet: a precision of its own holds it.

        Functions of features have a prior whatever the rows.
        """
        if self.shapes is not None:
            return np.zeros(self.n_features, dtype=bool)
        root = self.factor.root[:, int(self.intercept) :]
        sums = np.square(root).sum(axis=0)
        relative = self.prior_precision * self.noise.prior_unit
        return np.asarray(relative >= PINNED_SHARE * PINNING_PRECISION * sums)

    def unseen_effects(self, X: Array) -> Any:
        """Sparse (n, m) sd, signed, of the effects in rows of features that never varied.

        As other features like them do: the variance is averaged over the nodes.
        """
        nodes = self.nodes
        moves = self.find_first_variations(nodes, X)
        if moves is None:
            return None
        precisions = np.array([node.noise_precision for node in nodes.posteriors])
        with np.errstate(divide="ignore", invalid="ignore"):
            units = np.where(precisions > 0.0, nodes.weights / precisions, 0.0)
        return moves.effects(units, (len(X), len(self.mean)))

    def keep(self, rows: Factor, n_gone: int) -> None:
        """Keep only this factor of the rows, without the prior, once rows were unlearned."""
        super().keep(rows, n_gone)
        self.state.clock[0] = max(self.state.clock[0] - n_gone, 0) if rows.seen else 0
        self.settle()

    def replace_rows(self, rows: Factor) -> None:
        """As in the base; a stream goes on under its prior."""
        super().keep(rows, 0)
        state = self.state
        state.fresh = None
        if state.stream is not None:
            state.stream = self.make_nodes(state.stream.choice)

    def merge(self, other: Self) -> None:
        """Learn all that ``other`` learned; the prior is then learned from both."""
        super().merge(other)
        if self.state.scales is not None and other.state.scales is not None:
            self.state.scales.merge(other.state.scales)
        self.state.clock[0] += other.state.clock[0]
        self.settle()

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both learn their priors in the same way, so that they can be merged."""
        equal: Callable[..., bool] = np.array_equal  # of None, too
        return (
            super().has_same_prior(other)
            and self.strategy == other.strategy
            and equal(self.mean, other.mean)
            and equal(self.shapes, other.shapes)
        )

    # ---- reading -------------------------------------------------------------------------------

    @property
    def nodes(self) -> Nodes:
        """The precisions that the evidence chooses from all rows so far."""
        return self.current() if self.reads_stream else self.fresh

    def predictive(self, X: Array) -> Distribution:
        """Distribution of new observations at the rows of ``X``."""
        nodes = self.nodes
        return nodes.predict(methodcaller("predictive", X), self.unseen(nodes, X))

    def predict_mean_ahead(self, X: Array) -> Array:
        """Mean of the next observations at the rows of ``X``, by the stream's nodes."""
        nodes = self.nodes_ahead()
        return nodes.average([node.predict_mean(X) for node in nodes.posteriors])

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        if self.n_observations == 0.0:  # the prior's, under whatever precision
            return np.concatenate([np.zeros(self.n_flat), self.mean])
        if self.reads_stream:
            return self.current().posteriors[0].coefficients()
        return self.fresh.coefficients.copy()

    @property
    def prior_precision(self) -> Array:
        """(m,) geometric mean of the precisions, in the user's units."""
        choice = self.nodes.choice
        return np.exp(choice.weights @ np.log(choice.precisions)) / self.noise.prior_unit

    @property
    def n_flat(self) -> int:
        """Number of directions whose prior is flat: the intercept's."""
        return int(self.intercept)

    @property
    def noise_precision(self) -> float:
        """The noise precision: as given, or the posterior mean."""
        nodes = self.nodes
        return float(nodes.average([node.noise_precision for node in nodes.posteriors]))

    @property
    def log_evidence(self) -> float:
        """Log p(y) at the prior that was chosen, or of the rows as they came."""
        if not self.memory.has_evidence:
            return self.state.tally
        return self.fresh.choice.log_evidence
