"""The posterior of several targets of the same rows: one triangle, O(p^2 + p q) a row.

W (p, q), the coefficients of all targets, are matrix normal given the covariance of the noise,
W | Sigma ~ MN(M, Lambda^-1, Sigma), and Sigma is inverse-Wishart (West and Harrison 1997, section
16.4; Gelman et al. 2013, section 3.6). With R, Z, S the parts of the factor of prior and rows,

    Psi = S'S + 2 rate I       nu = 2 shape + q - 1 + n - d
    y | x ~ t_{nu - q + 1}(W'x, Psi (1 + h) / (nu - q + 1)) ,

h the leverage. The degrees of freedom are such that each target by itself is predicted just as by
a model of its own, with n - d + 2 shape of them. Where each target learns a prior precision of its
own there is no such formula for all of them; then too each is predicted as by a model of its own,
and correlations are those of Psi, whose rows of residuals and penalties each come from the target's
own solution: where the precisions agree that is the formula again.

Psi of a noise prior without a rate says that targets depend on each other perfectly while there are
fewer rows than targets, and too much for long after. With such a prior correlations are believed
as far as their evidence says (:mod:`posterity.evidence.correlation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Mask
from posterity.distributions import JointPrediction
from posterity.factor import Factor, NotInFactorError
from posterity.factor.usable import LARGEST, check_usable
from posterity.kernel import RowPath, TargetsPath
from posterity.noise import Distribution
from posterity.posteriors._nodes import Nodes, concatenate_rows
from posterity.posteriors._reads import read_along
from posterity.posteriors._removal import explain_never_learned
from posterity.posteriors._target_chain import ChainReading, Pattern
from posterity.posteriors._target_coefficients import TargetCoefficients
from posterity.posteriors._target_reading import JointReading, stack_targets
from posterity.posteriors.gaussian import LinearPosterior, refuse_waiting


@dataclass
class TargetsPosterior:
    """Posterior of [intercept, coefficients] of several targets.

    ``wide`` learns the rows that bring all targets, and is of the kind that one target would have.
    ``patterns`` are triangles of the other rows, by the targets that they bring; a row without any
    target is no row. ``streams`` are the nodes of each target where old rows are forgotten and
    priors learned, once they have learned a row: they can't be made from the data any more.
    ``newest_reading`` is a cache: the weight of rows at which it was made, and what is read.
    """

    tells_rows: ClassVar[bool] = False

    wide: LinearPosterior
    names: tuple[str, ...] | None = None
    patterns: dict[Pattern, Factor] = field(default_factory=dict)
    streams: list[Nodes] = field(default_factory=list)
    newest_reading: tuple[float, JointReading | ChainReading] | None = field(
        default=None, repr=False, compare=False
    )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"newest_reading": None}

    wait = refuse_waiting

    def copy(self) -> Self:
        """An independent copy."""
        patterns = {pattern: factor.copy() for pattern, factor in self.patterns.items()}
        streams = [nodes.copy() for nodes in self.streams]
        return type(self)(self.wide.copy(), self.names, patterns, streams)

    # ---- learning ------------------------------------------------------------------------------

    # True if rows that come together may be columns that each lie by themselves.
    reads_columns = read_along("wide.reads_columns")

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows; where they are forgotten, in order.

        Those without any target are left out, but for the time that they take.
        """
        self.newest_reading = None
        if self._lacks_targets(y):
            X = np.asarray(X)  # rows are sorted by the targets that they lack
        elif not (self.patterns and self.wide.memory.forgets):
            self._append_whole(X, y, weights, elapsed)
            return
        if self.wide.memory.forgets:
            self._append_fading(X, y, weights, elapsed)
            return
        for pattern, rows in self._sort_by_pattern(X, y, weights):
            if len(pattern) == self.n_targets:
                self._append_whole(*rows, elapsed[: len(rows[0])])
            else:
                factor = self._open_pattern(pattern)
                factor.append(*rows, intercept=self.intercept, largest=LARGEST)

    fit = append

    def _append_whole(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        learns, forgets = self.wide.learns_prior, self.wide.memory.forgets
        if learns and forgets and not self.patterns:
            self._stream(X, y, weights, elapsed)
            return
        self.streams = []
        learn = self.wide.append if learns and not forgets else self.wide.absorb
        learn(X, y, weights, elapsed)

    def _append_fading(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Let all triangles fade before each row, and the row's own pattern learn it."""
        fades = self.wide.memory.discounts(elapsed)  # what else forgets was refused
        left = np.append(np.cumprod(fades[::-1])[::-1], 1.0)
        given = np.ones(len(X)) if weights is None else weights
        whole = np.asarray(~np.isnan(y).any(axis=1))
        for factor in self.patterns.values():
            factor.scale(float(left[0]))
        for pattern, (rows, targets, both) in self._sort_by_pattern(
            X[~whole], y[~whole], np.column_stack([given, left[1:] * given])[~whole]
        ):
            assert both is not None
            factor = self._open_pattern(pattern)
            seen = factor.seen + float(both[:, 0].sum())
            factor.append(rows, targets, np.ascontiguousarray(both[:, 1]), intercept=self.intercept)
            factor.set_triangle(factor.triangle, factor.count, seen)
        # A row that other triangles learn has no weight here: only its time passes.
        self._append_whole(
            X, np.where(whole[:, None], y, 0.0), np.where(whole, given, 0.0), elapsed
        )

    def _lacks_targets(self, y: Array) -> bool:
        """Return True if some of several targets are NaN; raises where that can't be learned."""
        lacks = self.n_targets > 1 and bool(np.isnan(y).any())
        if lacks and self.wide.memory.forgets and not self.wide.memory.only_discounts:
            raise ValueError(
                "y lacks some targets of a row, which this way to forget does not support: use "
                "Exponential or Stabilized, drop such rows, or fit a model for each target"
            )
        return lacks

    def _open_pattern(self, pattern: Pattern) -> Factor:
        return self.patterns.setdefault(pattern, Factor(self.n_coefficients, len(pattern)))

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

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> JointPrediction:
        """Learn row after row; returns the distribution of the targets before each row."""
        if self.patterns or self._lacks_targets(y):
            return self._predict_row_by_row(X, y, weights, elapsed)
        before = JointReading(self.wide.copy())
        left = self.wide.memory.discounts_of_sums(elapsed)
        if self.wide.learns_prior:
            marginals = self._stream(X, y, weights, elapsed)
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = (y - marginals.loc) / marginals.scale
        else:
            self.newest_reading = None
            known = self.wide.learn_each(X, y, weights, elapsed)
            spread = 1.0 + (known.leverage if weights is None else weights * known.leverage)
            steps = known.error / np.sqrt(spread)[:, None]
            marginals = self.wide.noise.predictive(
                y - known.error,
                np.repeat(known.leverage[:, None], self.n_targets, axis=1),
                known.count[:, None] - self.wide.n_flat,
                known.residual,
            )
        make = partial(before.accumulate_correlations, steps, weights, left)
        return JointPrediction(marginals, make, names=self.names)

    def _stream(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> Distribution:
        """Predict each target of rows before they are learned, in stretches, as if alone."""
        first, predictions, forgets = 0, list[Distribution](), self.wide.memory.forgets
        while first < len(X) or not predictions:
            part = slice(first, self.wide.find_stretch_end(first, len(X), weights))
            some = None if weights is None else weights[part]
            each = self._separate_streams()
            told = [
                one.predict_then_learn(
                    X[part], np.ascontiguousarray(y[part, [j]]), some, elapsed[part]
                )
                for j, one in enumerate(each)
            ]
            predictions.append(stack_targets(told))
            self.newest_reading = None
            learn = self.wide.absorb if forgets else self.wide.append_in_order
            learn(X[part], y[part], some, elapsed[part])
            streams = [one.state.stream for one in each] if forgets else []
            self.streams = [] if None in streams else streams
            first = part.stop
        return concatenate_rows(predictions)

    def _separate_streams(self) -> list[Any]:
        """Posteriors of each target, which predict the next row."""
        each: list[Any] = JointReading(self.wide).separate(stream=True)
        for one, nodes in zip(each, self.streams, strict=False):
            one.state.stream = nodes
        return each

    def _predict_row_by_row(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> JointPrediction:
        predictions = [self.predictive(X[:0])]
        for i in range(len(X)):
            row = slice(i, i + 1)
            predictions.append(self.predictive(X[row]))
            self.append(X[row], y[row], None if weights is None else weights[row], elapsed[row])
        q = self.n_targets
        each = [np.broadcast_to(one.correlation, (len(one), q, q)) for one in predictions]
        marginals = concatenate_rows([one.marginals for one in predictions])
        return JointPrediction(marginals, np.concatenate(each), names=self.names)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows; raises ``ValueError`` when they can't have been learned."""
        self.newest_reading = None
        if not self._lacks_targets(y) or self.wide.memory.forgets:  # which refuses
            self.wide.remove(X, np.nan_to_num(y), weights)
            return
        for pattern, rows in self._sort_by_pattern(X, y, weights):
            if len(pattern) == self.n_targets:
                self.wide.remove(*rows)
            else:
                self._remove_from(pattern, *rows)

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

    def merge(self, other: Self) -> None:
        """Learn all that ``other`` learned from the same prior."""
        self.newest_reading, self.streams = None, []
        self.wide.merge(other.wide)
        for pattern, factor in other.patterns.items():
            self._open_pattern(pattern).merge(factor)

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior, so that they can be merged."""
        return type(self) is type(other) and self.wide.has_same_prior(other.wide)

    @property
    def has_fast_learn_one(self) -> bool:
        """True if its compiled path may learn single rows."""
        return self._has_one_triangle and self.wide.has_fast_learn_one

    @property
    def has_fast_predict_one(self) -> bool:
        """True if its compiled path predicts single rows."""
        return self._has_one_triangle and self.wide.has_fast_predict_one

    @property
    def _has_one_triangle(self) -> bool:
        return self.n_targets > 1 and not self.patterns

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The compiled path that reads and predicts single rows, and may learn them."""
        path = self.wide.row_path(names)
        if self.names is not None and self.n_targets > 1:
            cast(TargetsPath, path).name_targets(self.names)
        return path

    # ---- reading -------------------------------------------------------------------------------

    @property
    def reading(self) -> JointReading | ChainReading:
        """What is read of all rows so far, of one triangle or of several."""
        at = self.wide.factor.seen  # row paths learn without saying so
        if self.newest_reading is None or self.newest_reading[0] != at:
            made: JointReading | ChainReading = JointReading(self.wide)
            if self.patterns:
                made = ChainReading.of(self.wide, self.patterns)
            self.newest_reading = at, made
        return self.newest_reading[1]

    @property
    def each(self) -> list[LinearPosterior]:
        """Posteriors for reading, of each target by itself."""
        return self.reading.each

    def predictive(self, X: Array) -> JointPrediction:
        """Joint distribution of the targets of new observations at the rows of ``X``."""
        return self.reading.predictive(X, self.names)

    def predict_mean(self, X: Array) -> Array:
        """(n, q) means of new observations at the rows of ``X``."""
        coefficients = self.coefficients()
        if self.intercept:
            return X @ coefficients[1:] + coefficients[0]
        return X @ coefficients

    def predict_mean_ahead(self, X: Array) -> Array:
        """The same as :meth:`predict_then_learn` would give them."""
        if self.patterns or not self.wide.learns_prior:
            return self.predict_mean(X)
        each = self._separate_streams()
        return np.column_stack([one.predict_mean_ahead(X) for one in each])

    def coefficients(self) -> Array:
        """(p, q) means of [intercept, coefficients]."""
        return self.reading.coefficients()

    def joint(self, names: tuple[str, ...]) -> TargetCoefficients:
        """Joint distributions of [intercept, coefficients], each target's and all of them."""
        reading = self.reading
        return TargetCoefficients(
            reading.joints(names), reading.correlation(), names=names, targets=self.names
        )

    def never_varied(self) -> Mask:
        """(m,) of every target, True where a coefficient's feature has not varied yet."""
        if not self.wide.learns_prior:
            return self.wide.never_varied()
        return np.all([one.never_varied() for one in self.each], axis=0)

    @property
    def noise_precision(self) -> Array:
        """(q,) noise precisions: as given, or their posterior means."""
        return np.array([one.noise_precision for one in self.each])

    @property
    def prior_precision(self) -> ArrayLike:
        """Prior precision of the coefficients: as given, or (q, m) where each target learns it."""
        if self.wide.learns_prior:
            return np.stack([np.asarray(one.prior_precision) for one in self.each])
        return self.wide.prior_precision

    # ---- what all targets have in common ---------------------------------------------------------

    # True if a 1 comes before each row; the number of targets, q; coefficients of one target.
    intercept = read_along("wide.intercept")
    n_targets = read_along("wide.factor.n_targets")
    n_coefficients = read_along("wide.n_coefficients")
    # Of the features, which all targets share.
    feature_scales = read_along("wide.feature_scales")
    feature_means = read_along("wide.feature_means")
    find_sums_to_one = read_along("wide.find_sums_to_one")
    # The log evidence log p(y) of all targets together.
    log_evidence = read_along("reading.log_evidence")
    # These are of one target only, and refused.
    change_probability = read_along("wide.change_probability")
    changes = read_along("wide.changes")
    noise_coefficients = read_along("wide.noise_coefficients")

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.wide.n_observations + sum(one.seen for one in self.patterns.values())

    @property
    def n_effective(self) -> float:
        """The weight of the rows that is left after forgetting."""
        return self.wide.n_effective + sum(one.count for one in self.patterns.values())


__all__ = ["TargetsPosterior"]
