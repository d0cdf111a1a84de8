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
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from posterity.evidence import Integrated, RunningScales, Strategy, match_moments
from posterity.evidence.columns import PINNING_PRECISION
from posterity.evidence.members import InUnits, UnitInformation, use_many_nodes, use_single_node
from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.factor.targets import of_target
from posterity.kernel import FadingMember, RowPath
from posterity.noise import Distribution, Joint, Noise
from posterity.posteriors._chooser import Chooser
from posterity.posteriors._evidence_state import EvidenceState
from posterity.posteriors._evidence_stream import NodesStream, TargetsStream
from posterity.posteriors._nodes import Nodes, concatenate_rows
from posterity.posteriors._turns import count_rows
from posterity.posteriors.gaussian import LinearPosterior
from posterity.priors import GaussianPrior
from posterity.safety import check_model_memory

Array = NDArray[np.float64]

# A precision above this share of a pinning one counts as such: weights may have grown since.
PINNED_SHARE = 0.02
# Number of triangles in memory at once under a learned prior: data, nodes, and intermediates.
TRIANGLES = 14


@dataclass(frozen=True)
class EvidencePosterior(LinearPosterior):
    """A posterior that learns its prior precision by a strategy of :mod:`posterity.evidence`."""

    strategy: Strategy
    mean: Array
    shapes: Array | None
    state: EvidenceState = field(repr=False)
    # True if the stream has a single node, whatever is read: sites are found under one prior.
    single_node: bool = False
    # True if that node is also read, and its prior is chosen again on request only.
    prior_is_frozen: bool = False

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
        flat = GaussianPrior(0.0, 0.0)
        data = LinearPosterior.before_data(flat, noise, n_features, intercept=intercept)
        mean = belief.means(n_features)
        return cls(
            belief,
            noise,
            intercept,
            data.prior,
            data.factor,
            strategy,
            mean,
            shapes,
            EvidenceState(data),
        )

    def copy(self) -> Self:
        """The same knowledge, to go its own way."""
        state = self.state.copy()
        return self._copy_with(factor=state.data.factor, state=state)

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.state.copy_from(other.state)
        self.stream.update_nodes()

    def with_change(self, change: Callable[[LinearPosterior], LinearPosterior]) -> LinearPosterior:
        """The same with ``change`` made to the posterior of the data, which has seen nothing."""
        data = change(self.state.data)
        state = EvidenceState(data, scales=RunningScales.before_data(len(self.mean)))
        return replace(self, factor=data.factor, state=state)

    def for_sites(self) -> LinearPosterior:
        """The same with a stream of one node, under which sites are found; all nodes are read."""
        return replace(self, single_node=True)

    def with_one_node(self) -> LinearPosterior:
        """The same with one node that learns and is read, until it is chosen by all rows anew.

        That is when rows are appended together, when the noise is another one, and where a feature
        that was constant begins to vary.
        """
        return self.for_sites()._copy_with(prior_is_frozen=True).with_noise(self.noise)

    def with_noise(self, noise: Noise) -> LinearPosterior:
        """A copy with another noise: its prior is chosen anew."""
        state = self.state.copy()
        state.data = state.data.with_noise(noise)
        twin = self._copy_with(noise=noise, factor=state.data.factor, state=state)
        twin.stream.choose_later()
        return twin

    def use_prior_precision(self, precision: Array) -> None:
        """Let one node of this prior precision (m,), relative to the noise, learn and be read."""
        self.stream.use_prior_precision(precision)

    def copy_for_average(self) -> LinearPosterior:
        """The same, to be one of many: with one node, where there would be several."""
        return replace(self.copy(), strategy=use_single_node(self.strategy))

    def member(self, *, weak: bool) -> LinearPosterior:
        """Return one node in units of the noise, under a weak prior or the one it learns.

        Only "auto" can be made weak: other strategies, and shapes of a prior, were asked for.
        """
        weak = weak and self.shapes is None and isinstance(self.strategy, Integrated)
        return replace(
            self.copy(),
            strategy=InUnits(UnitInformation() if weak else use_single_node(self.strategy)),
        )

    # ---- many targets --------------------------------------------------------------------------

    def for_targets(self, count: int) -> LinearPosterior:
        """The data of so many targets, each of which chooses a prior of its own when it is read."""
        state = self.state.copy()
        state.data = state.data.for_targets(count)
        return self._copy_with(prior=state.data.prior, factor=state.data.factor, state=state)

    def of_target(self, target: int | Sequence[int]) -> LinearPosterior:
        """Return the posterior of one target, or of some, as if they had come alone."""
        state = self.state
        scales = None if state.scales is None else state.scales.copy()
        turn = None if state.turn is None else of_target(state.turn, target)
        data = state.data.of_target(target)
        own = EvidenceState(data, scales=scales, clock=state.clock.copy(), turn=turn)
        return self._copy_with(prior=data.prior, factor=data.factor, state=own)

    def fix_prior_choice(self, *, stream: bool) -> LinearPosterior:
        """The same with a strategy that has chosen, where all targets choose together."""
        return self._copy_with(strategy=self.stream.fix_prior_choice(ahead=stream))

    def find_stretch_end(self, first: int, n: int, weights: Array | None) -> int:
        """Return the end of the stretch after which all targets choose their prior together."""
        return self.stream.find_stretch_end(first, n, weights)

    # ---- learning ------------------------------------------------------------------------------

    @property
    def stream(self) -> NodesStream:
        """The learner of rows in order, of one target or of several."""
        kind = NodesStream if self.state.data.factor.n_targets == 1 else TargetsStream
        return kind(self._chooser, self.state, self.single_node, self.prior_is_frozen)

    @property
    def _chooser(self) -> Chooser:
        return Chooser(self.strategy, self.noise, self.intercept, self.mean, self.shapes)

    @property
    def forgets(self) -> bool:
        """True if rows count for less as they age."""
        return self.state.data.forgets

    @property
    def has_evidence(self) -> bool:
        """True if the evidence of all rows can be computed from the data's factor."""
        return self.state.data.has_evidence

    @property
    def has_fast_learn_one(self) -> bool:
        """True if compiled code learns single rows, in the data's factor and in the nodes."""
        return self.stream.has_fast_learn_one

    @property
    def has_fast_predict_one(self) -> bool:  # type: ignore[override]
        """True if compiled code can predict: there are nodes that learn each row."""
        return self.stream.has_fast_predict_one

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """Return the compiled path of the data's factor and the stream's nodes."""
        if not self.prior_is_frozen:
            return self.stream.row_path(names)
        if self.forgets:
            return self.central().factor.row_path(self.intercept, names)
        path = self.shared_factor().row_path(self.intercept, names)
        self.learn_alongside(path, names)
        return path

    @property
    def fades_to_prior(self) -> bool:
        """True if its nodes fade to their priors."""
        return self.state.data.fades_to_prior and not self.single_node

    def as_member(self) -> FadingMember:
        """Return what an average updates row by row: the predicting node, and the data's factor."""
        return self.stream.as_member()

    def central(self) -> LinearPosterior:
        """The one posterior that stands for all nodes of what is known now."""
        if self.prior_is_frozen:
            return self.stream.current().posteriors[0]
        choice = self._chooser.choice(self.state, single=True)
        return Nodes.of(choice, self.mean, self.state.data).posteriors[0]

    def choose_prior(self, rows: Factor) -> Factor:
        """The prior of that posterior, were these all the rows learned; nothing is forgotten."""
        strategy = self._chooser.select_strategy(stream=True, single=True)
        (node,) = self._choose_nodes(rows, self.noise, strategy).posteriors
        return node.prior

    def integrate_prior(
        self, rows: Factor, noise: Noise
    ) -> tuple[tuple[float, LinearPosterior], ...]:
        """The parts that these rows would choose under this noise; nothing is forgotten."""
        return self._choose_nodes(rows, noise, use_many_nodes(self.strategy)).parts

    def _choose_nodes(self, rows: Factor, noise: Noise, strategy: Strategy) -> Nodes:
        flat, p = GaussianPrior(0.0, 0.0), self.n_coefficients
        data = LinearPosterior(flat, noise, self.intercept, Factor(p), rows)
        chooser = replace(self._chooser, strategy=strategy, noise=noise)
        return Nodes.of(chooser.choice(EvidenceState(data)), self.mean, data)

    @property
    def parts(self) -> tuple[tuple[float, LinearPosterior], ...]:
        """The nodes, with their weights."""
        return self.nodes.parts

    def shared_factor(self) -> Factor:
        """The factor of the stream's only node, for a path that goes on to learn in it."""
        (node,) = self.stream.current().posteriors
        self.state.shared = node.factor
        return node.factor

    def learn_alongside(self, path: RowPath, names: Sequence[str] | None) -> None:
        """Let the data learn what ``path``, the single node's, learns; its prior is kept up."""
        self.stream.learn_alongside(path, names)

    @property
    def reads_columns(self) -> bool:
        """True if rows may be columns that lie apart, and are learned at once."""
        return not self.prior_is_frozen and self.state.data.reads_columns

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows at once."""
        if not self.prior_is_frozen and not self.forgets:
            self.stream.append(X, y, weights, elapsed)
            return
        if not self.forgets:  # and frozen: who freezes the prior chooses it by all rows
            self.learn_data(X, y, weights, elapsed)
        else:
            self.predict_then_learn(X, y, weights, elapsed)
        if self.prior_is_frozen:
            self.stream.choose_later()

    def learn_data(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Let the data learn rows that the stream has learned, or that nobody predicts."""
        self.stream.learn_data(X, y, weights, elapsed)

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Distribution:
        """Learn row after row; returns the distribution of each target before its row."""
        before = self.copy()
        try:
            predictions = self.stream.predict_then_learn(X, y, weights, elapsed)
        except BaseException:
            self.copy_from(before)
            raise
        together = concatenate_rows(predictions)
        if not self.has_evidence:
            counted = together.logpdf(y[:, 0])
            self.state.tally += float(np.sum(counted if weights is None else weights * counted))
        return together

    learns_prior: ClassVar[bool] = True

    def learn_sites(
        self, learn: Callable[[LinearPosterior, SiteRows], Any], rows: SiteRows
    ) -> list[Any]:
        """Learn sites in stretches between which the prior is chosen anew; one node finds them."""
        return self.stream.learn_sites(learn, rows)

    @property
    def has_fast_site_predictions(self) -> bool:
        """True if compiled code predicts sites, by the stream's node."""
        return not self.forgets or self.of_rows.only_discounts

    def linear_moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) of x.w, matched to those of all nodes."""
        nodes = self.nodes
        moments = [node.linear_moments(X) for node in nodes.posteriors]
        added = self.stream.unseen(nodes, X)
        if added is not None:  # the noise of sites has variance 1
            moments = [(mean, var + more) for (mean, var), more in zip(moments, added, strict=True)]
        if nodes.is_single:
            return moments[0]
        scales = np.sqrt([variance for _, variance in moments])
        mean, scale = match_moments(np.array([mean for mean, _ in moments]), scales, nodes.weights)
        return mean, scale * scale

    def leaves_undetermined(self, X: Array) -> NDArray[np.bool_]:
        """(n,) True where the rows learned so far do not determine x.w."""
        return np.any([node.leaves_undetermined(X) for node in self.nodes.posteriors], axis=0)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows; raises ``ValueError`` when they can't have been learned."""
        state = self.state
        state.data.remove(X, y, weights)
        state.clock[0] -= count_rows(weights, len(X))
        self.stream.begin_anew()

    @property
    def single_factor(self) -> LinearPosterior | None:
        """The triangle under a flat prior, if few rows move to that; None if it must be learned."""
        flat = isinstance(self.strategy, Integrated) and self.shapes is None
        return self.state.data.copy() if flat else None

    @property
    def of_rows(self) -> LinearPosterior:
        """The data's posterior."""
        return self.state.data

    def without_prior(self) -> LinearPosterior:
        """A copy of the data."""
        return self.state.data.without_prior()

    def never_varied(self) -> NDArray[np.bool_]:
        """(m,) True where a feature has not varied yet: a precision of its own holds it.

        Functions of features have a prior whatever the rows.
        """
        if self.shapes is not None:
            return np.zeros(self.n_features, dtype=bool)
        root = self.without_prior().factor.root[:, int(self.intercept) :]
        sums = np.square(root).sum(axis=0)
        relative = self.prior_precision * self.noise.prior_unit
        return np.asarray(relative >= PINNED_SHARE * PINNING_PRECISION * sums)

    def unseen_effects(self, X: Array) -> Any:
        """Sparse (n, m) sd, signed, of the effects in rows of features that never varied.

        As other features like them do: the variance is averaged over the nodes.
        """
        nodes = self.nodes
        moves = self.stream.find_first_variations(nodes, X)
        if moves is None:
            return None
        precisions = np.array([node.noise_precision for node in nodes.posteriors])
        with np.errstate(divide="ignore", invalid="ignore"):
            units = np.where(precisions > 0.0, nodes.weights / precisions, 0.0)
        return moves.effects(units, (len(X), len(self.mean)))

    def keep(self, rows: Factor, n_gone: int) -> None:
        """Keep only this factor of the rows, without the prior, once rows were unlearned."""
        self.state.data.keep(rows, n_gone)
        self.state.clock[0] -= n_gone
        self.stream.begin_anew()

    def merge(self, other: Self) -> None:
        """Learn all that ``other`` learned; the prior is then learned from both."""
        self.state.data.merge(other.state.data)
        if self.state.scales is not None and other.state.scales is not None:
            self.state.scales.merge(other.state.scales)
        self.state.clock[0] += other.state.clock[0]
        self.stream.begin_anew()

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both learn their priors in the same way, so that they can be merged."""
        return (
            type(self) is type(other)
            and self.strategy == other.strategy
            and np.array_equal(self.mean, other.mean)
            and _same_shapes(self.shapes, other.shapes)
            and self.state.data.has_same_prior(other.state.data)
        )

    # ---- reading -------------------------------------------------------------------------------

    @property
    def nodes(self) -> Nodes:
        """The precisions that the evidence chooses from all rows so far."""
        return self.stream.current() if self.prior_is_frozen else self._fresh

    @property
    def _fresh(self) -> Nodes:
        state, seen = self.state, self.state.data.factor.seen
        if state.fresh is None or state.fresh_at != seen:
            nodes = Nodes.of(self._chooser.choice(state), self.mean, state.data)
            state.fresh, state.fresh_at = nodes, seen
        return state.fresh

    def predictive(self, X: Array) -> Distribution:
        """Distribution of new observations at the rows of ``X``."""
        nodes = self.nodes
        return nodes.predictive(X, self.stream.unseen(nodes, X))

    def predict_mean_ahead(self, X: Array) -> Array:
        """Mean of the next observations at the rows of ``X``, by the stream's nodes."""
        nodes = self.stream.ahead()
        return nodes.average([node.predict_mean(X) for node in nodes.posteriors])

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        if self.state.data.n_observations == 0.0:  # the prior's, under whatever precision
            return np.concatenate([np.zeros(self.n_flat), self.mean])
        if self.prior_is_frozen:
            return self.central().coefficients()
        return self._fresh.coefficients.copy()

    def joint(self, names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        return self.nodes.joint(names)

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
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.state.data.n_observations

    @property
    def n_effective(self) -> float:
        """The weight of the rows that is left after forgetting."""
        return self.state.data.n_effective

    @property
    def noise_precision(self) -> float:
        """The noise precision: as given, or the posterior mean."""
        if self.prior_is_frozen:
            return self.central().noise_precision
        nodes = self.nodes
        return float(nodes.average([node.noise_precision for node in nodes.posteriors]))

    @property
    def log_evidence(self) -> float:
        """Log p(y) at the prior that was chosen, or of the rows as they came."""
        return self._fresh.choice.log_evidence if self.has_evidence else self.state.tally


def _same_shapes(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
