"""The posterior of several targets where rows lack some of them.

Rows that bring the same targets share a triangle, and that is all that is kept. To be read, targets
are ordered by how many rows brought them, and each *link* of the chain

    p(y_1 | x)  p(y_2 | x, y_1)  p(y_3 | x, y_1, y_2) ...

comes from the rows that brought its target: in these the joint posterior is the ordinary one
(:class:`TargetsPosterior`). Where the pattern is monotone, so that whoever brings a target brings
all those before it, the chain is the posterior (Little and Rubin 2002, section 7.4): each link has
a prior and a likelihood of its own. With (m, Omega, nu) what a link says of x, and c the slopes of
its targets B on those before, A,

    E y_B   = m_B + c'(E y_A - m_A)
    Cov y_B = c' K c + (nu + E delta) / (nu + k - 2) (Omega_BB - c' Omega_AB),
    E delta = (E y_A - m_A)' Omega_AA^-1 (E y_A - m_A) + tr(Omega_AA^-1 K),     K = Cov y_A .

Where it is not monotone, a row of B that lacks some of A has them filled in by their expectation,
and by rows that stand for their variance: the expectation step of an EM algorithm, done until
nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from posterity.distributions import JointPrediction
from posterity.distributions.joint_prediction import correlations_of
from posterity.factor import Factor, NotInFactorError
from posterity.factor.usable import LARGEST, check_usable
from posterity.kernel import RowPath
from posterity.posteriors._target_chain import (
    Chain,
    Link,
    Pattern,
    concatenate_joint_predictions,
    condition_on_others,
    filled,
    shift_mean,
    student_t,
)
from posterity.posteriors._target_coefficients import TargetCoefficients
from posterity.posteriors.gaussian import LinearPosterior, explain_never_learned
from posterity.posteriors.targets import TargetsPosterior

Array = NDArray[np.float64]

# Most rounds of filling in, and the tolerance of the change relative to the largest number.
MOST_ROUNDS, SMALLEST_CHANGE = 20, 1e-6


@dataclass(frozen=True)
class MissingTargetsPosterior(TargetsPosterior):
    """Posterior of several targets of which rows may lack some.

    ``wide`` has learned the rows that brought all; ``patterns`` are triangles of the others, by the
    targets that they brought. A row without any target is no row.
    """

    lacks_targets: ClassVar[bool] = True
    reads_columns: ClassVar[bool] = False  # rows are sorted by the targets that they lack

    patterns: dict[Pattern, Factor] = field(default_factory=dict)
    chain: Chain = field(default_factory=Chain, repr=False, compare=False)

    @classmethod
    def of(cls, posterior: TargetsPosterior) -> MissingTargetsPosterior:
        """The same posterior, able to learn such rows."""
        if isinstance(posterior, cls):
            return posterior
        if posterior.wide.forgets and posterior.wide.of_rows.discounts(np.ones(1)) is None:
            raise ValueError(
                "y lacks some targets of a row, which this way to forget does not support: use "
                "Exponential or Stabilized, drop such rows, or "
                "fit a model for each target"
            )
        return cls(posterior.wide, posterior.names)

    def copy(self) -> Self:
        """An independent copy."""
        patterns = {pattern: factor.copy() for pattern, factor in self.patterns.items()}
        chain = Chain(self.chain.links)
        return type(self)(self.wide.copy(), self.names, patterns=patterns, chain=chain)

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        super().copy_from(other)
        self.patterns.clear()
        self.patterns.update(other.patterns)

    # ---- learning ------------------------------------------------------------------------------

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows; those without any target are left out, but for the time that they take."""
        after = self.copy()
        if self.wide.forgets:
            after._append_fading(X, y, weights, elapsed)
            self.copy_from(after)
            return
        for pattern, rows in after._sort_by_pattern(X, y, weights):
            if len(pattern) == self.n_targets:
                TargetsPosterior.append(after, *rows, elapsed[: len(rows[0])])
                continue
            factor = after.patterns.setdefault(pattern, Factor(self.n_coefficients, len(pattern)))
            factor.append(*rows, intercept=self.intercept, largest=LARGEST)
        self.copy_from(after)

    def _append_fading(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Let all triangles fade before each row, and the row's own pattern learn it."""
        fades = self.wide.of_rows.discounts(elapsed)
        assert fades is not None  # what else forgets was refused
        left = np.append(np.cumprod(fades[::-1])[::-1], 1.0)
        given = np.ones(len(X)) if weights is None else weights
        brought = ~np.isnan(y)
        whole = np.asarray(brought.all(axis=1))
        for factor in self.patterns.values():
            factor.scale(float(left[0]))
        for pattern, (rows, targets, both) in self._sort_by_pattern(
            X[~whole], y[~whole], np.column_stack([given, left[1:] * given])[~whole]
        ):
            assert both is not None
            factor = self.patterns.setdefault(pattern, Factor(self.n_coefficients, len(pattern)))
            seen = factor.seen + float(both[:, 0].sum())
            factor.append(rows, targets, np.ascontiguousarray(both[:, 1]), intercept=self.intercept)
            factor.set_triangle(factor.triangle, factor.count, seen)
        # A row that other links learn has no weight here: only its time passes.
        TargetsPosterior.append(
            self, X, np.where(whole[:, None], y, 0.0), np.where(whole, given, 0.0), elapsed
        )

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> JointPrediction:
        """Learn row after row; returns the distribution of the targets before each row."""
        after, predictions = self.copy(), [self.predictive(X[:0])]
        for i in range(len(X)):
            row = slice(i, i + 1)
            predictions.append(after.predictive(X[row]))
            after.append(X[row], y[row], None if weights is None else weights[row], elapsed[row])
        self.copy_from(after)
        return concatenate_joint_predictions(predictions, self.names)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows; raises ``ValueError`` when they can't have been learned."""
        after = self.copy()
        if self.wide.forgets:
            after.wide.remove(X, np.nan_to_num(y), weights)  # which refuses
        for pattern, rows in after._sort_by_pattern(X, y, weights):
            if len(pattern) == self.n_targets:
                after.wide.remove(*rows)
                continue
            after._remove_from(pattern, *rows)
        self.copy_from(after)

    def merge(self, other: TargetsPosterior) -> None:
        """Learn all that ``other`` learned from the same prior."""
        theirs = MissingTargetsPosterior.of(other)
        self.wide.merge(theirs.wide)
        for pattern, factor in theirs.patterns.items():
            if pattern in self.patterns:
                self.patterns[pattern].merge(factor)
            else:
                self.patterns[pattern] = factor.copy()
        self._clear_views()

    def has_same_prior(self, other: TargetsPosterior) -> bool:
        """Return True if both started from the same prior, so that they can be merged."""
        return isinstance(other, TargetsPosterior) and self.wide.has_same_prior(other.wide)

    def _remove_from(self, pattern: Pattern, X: Array, y: Array, weights: Array | None) -> None:
        factor = self.patterns.get(pattern)
        removed = float(len(X)) if weights is None else float(np.sum(weights))
        left = -removed if factor is None else factor.count - removed
        if factor is None or left < -1e-12 * max(factor.count, removed):
            raise ValueError(explain_never_learned("one of the rows with missing targets"))
        try:
            ones = factor.lacks_intercept_column(X, self.intercept)
            factor.remove(X, y, weights, intercept=ones)
        except NotInFactorError as error:
            raise ValueError(
                explain_never_learned("one of the rows with missing targets")
            ) from error
        if left <= 1e-12 * removed:
            del self.patterns[pattern]

    def _sort_by_pattern(
        self, X: Array, y: Array, weights: Array | None
    ) -> list[tuple[Pattern, tuple[Array, Array, Array | None]]]:
        """Rows by the targets that they bring, in their order; raises where x is not usable.

        There may be several weights (n, k) of each row: the first says whether it counts.
        """
        brought = ~np.isnan(y)
        check_usable(np.ascontiguousarray(X))
        kinds, which = np.unique(brought, axis=0, return_inverse=True)
        found = []
        for kind, some in enumerate(kinds):
            pattern = tuple(int(place) for place in np.flatnonzero(some))
            rows = which.reshape(-1) == kind
            if weights is not None:
                rows &= (weights.reshape(len(X), -1)[:, 0] > 0.0) | some.all()
            if pattern and rows.any():
                part = np.ascontiguousarray(y[rows][:, list(pattern)])
                share = None if weights is None else weights[rows]
                found.append((pattern, (np.ascontiguousarray(X[rows]), part, share)))
        return found

    def _clear_views(self) -> None:
        super()._clear_views()
        self.chain.links = None

    @property
    def has_fast_learn_one(self) -> bool:
        """Rows go to the triangle of their pattern."""
        return False

    @property
    def has_fast_predict_one(self) -> bool:
        """A chain is read."""
        return False

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """Raise: there is no compiled path."""
        raise NotImplementedError

    # ---- the chain -----------------------------------------------------------------------------

    @property
    def links(self) -> list[Link]:
        """The links, from the targets that most rows have to those that fewest have."""
        if self.chain.links is None:
            self.chain.links = self._link_targets()
        return self.chain.links

    def _link_targets(self) -> list[Link]:
        blocks = self._blocks()
        holes = any(
            set(pattern) & set(own) and not set(before) <= set(pattern)
            for before, own in blocks
            for pattern in self.patterns
        )
        if not holes:
            return [Link.of(*block, self._posterior_of(*block)) for block in blocks]
        # What is filled in first knows of no dependence.
        links = [Link.of((), own, self._posterior_of((), own)) for _, own in blocks]
        moments = self._compute_by_chain(links)
        for _ in range(MOST_ROUNDS):
            links = [Link.of(*block, self._posterior_of(*block, moments)) for block in blocks]
            last, moments = moments, self._compute_by_chain(links)
            if all(
                np.abs(new - old).max() <= SMALLEST_CHANGE * np.abs(new).max()
                for new, old in zip(moments, last, strict=True)
            ):
                break
        return links

    def _blocks(self) -> list[tuple[Pattern, Pattern]]:
        """Return (before, own) of each link: targets that came with the same rows are in one."""
        members: dict[tuple[Pattern, ...], list[int]] = {}
        for target in range(self.n_targets):
            key = tuple(sorted(pattern for pattern in self.patterns if target in pattern))
            members.setdefault(key, []).append(target)
        counts = {key: sum(self.patterns[pattern].count for pattern in key) for key in members}
        blocks: list[tuple[Pattern, Pattern]] = []
        before: list[int] = []
        for key in sorted(members, key=lambda key: (-counts[key], members[key])):
            blocks.append((tuple(before), tuple(members[key])))
            before += members[key]
        return blocks

    def _posterior_of(
        self, before: Pattern, own: Pattern, moments: tuple[Array, Array] | None = None
    ) -> TargetsPosterior:
        """The joint posterior of [before, own] in the rows that brought ``own``."""
        targets = [*before, *own]
        wide = self.wide.of_target(targets)
        count, seen = wide.factor.count, wide.factor.seen
        for pattern, factor in self.patterns.items():
            if not set(own) <= set(pattern):
                continue
            X, y = filled(factor, pattern, targets, moments)
            if wide.forgets:  # these rows have faded
                wide.factor.append(X, y, None, intercept=False)
            else:
                wide.learn_data(X, y, None, np.zeros(len(X)))
            count, seen = count + factor.count, seen + factor.seen
        wide.factor.set_triangle(wide.factor.triangle, count, seen)
        return TargetsPosterior(wide)

    def _compute_by_chain(self, links: Sequence[Link]) -> tuple[Array, Array]:
        """Coefficients (p, q) and covariance of the noise (q, q), by the chain."""
        return self._compute_coefficients(links), self._compute_noise(links)

    def _compute_coefficients(self, links: Sequence[Link]) -> Array:
        whole = np.zeros((self.n_coefficients, self.n_targets))
        for link in links:
            each, k = link.posterior.coefficients(), len(link.before)
            off = whole[:, list(link.before)] - each[:, :k]
            whole[:, list(link.own)] = each[:, k:] + off @ link.slopes
        return whole

    def _compute_noise(self, links: Sequence[Link]) -> Array:
        whole = np.zeros((self.n_targets, self.n_targets))
        for link in links:
            before, own, k = list(link.before), list(link.own), len(link.before)
            between = link.slopes.T @ whole[np.ix_(before, before)]
            left = link.products[k:, k:] - link.slopes.T @ link.products[:k, k:]
            whole[np.ix_(own, before)], whole[np.ix_(before, own)] = between, between.T
            whole[np.ix_(own, own)] = left + between @ link.slopes
        return whole

    # ---- reading -------------------------------------------------------------------------------

    def predictive(self, X: Array) -> JointPrediction:
        """Joint distribution of the targets of new observations at the rows of ``X``."""
        n, q = len(X), self.n_targets
        mean, spread = np.zeros((n, q)), np.zeros((n, q, q))
        df = np.full((n, q), np.inf)
        links = self.links
        predictions = [link.posterior.predictive(X) for link in links]
        least = min((float(one.df.min(initial=np.inf)) for one in predictions), default=np.inf)
        shift = 2.0 if least > 2.0 else 0.0
        for link, one in zip(links, predictions, strict=True):
            own = list(link.own)
            mean[:, own], between, among = condition_on_others(link, one, mean, spread, shift)
            spread[np.ix_(range(n), own, link.before)] = between
            spread[np.ix_(range(n), link.before, own)] = np.swapaxes(between, 1, 2)
            spread[np.ix_(range(n), own, own)] = among
            freedom = np.broadcast_to(getattr(one.marginals, "df", np.inf), one.shape)
            df[:, own] = freedom[:, len(link.before) :]
        marginals = student_t(mean, np.einsum("nii->ni", spread), df, shift)
        finite = np.where(np.isfinite(spread), spread, 0.0)
        return JointPrediction(marginals, correlations_of(finite), names=self.names)

    def predict_mean_ahead(self, X: Array) -> Array:
        """(n, q) means of new observations at the rows of ``X``."""
        return self.predict_mean(X)

    def coefficients(self) -> Array:
        """(p, q) means of [intercept, coefficients]."""
        return self._compute_coefficients(self.links)

    def joint(self, names: tuple[str, ...]) -> TargetCoefficients:
        """Joint distributions of [intercept, coefficients]: around the chain's means.

        The uncertainty of each target's coefficients comes from the rows that brought it.
        """
        means = self.coefficients().T
        pairs = zip((one.joint(names) for one in self.each), means, strict=True)
        joints = [shift_mean(mean, joint) for joint, mean in pairs]
        return TargetCoefficients(joints, self.correlation(), names=names, targets=self.names)

    def correlation(self) -> Array:
        """(q, q) correlations of the targets given the features."""
        return correlations_of(self._compute_noise(self.links))

    @property
    def each(self) -> list[LinearPosterior]:
        """Posteriors for reading, of each target by the rows that have it."""
        places = {
            target: (link, len(link.before) + place)
            for link in self.links
            for place, target in enumerate(link.own)
        }
        ordered = (places[target] for target in range(self.n_targets))
        return [link.posterior.each[place] for link, place in ordered]

    @property
    def log_evidence(self) -> float:
        """The log evidence log p(y) by the chain: each link's, less that of the targets before."""
        total = 0.0
        for link in self.links:
            if not link.posterior.n_observations:
                continue
            total += link.posterior.log_evidence
            if link.before:
                wide = link.posterior.wide.of_target(list(range(len(link.before))))
                total -= TargetsPosterior(wide).log_evidence
        return total

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.wide.n_observations + sum(one.seen for one in self.patterns.values())

    @property
    def n_effective(self) -> float:
        """The weight of the rows that is left after forgetting."""
        return self.wide.n_effective + sum(one.count for one in self.patterns.values())


__all__ = ["MissingTargetsPosterior"]
