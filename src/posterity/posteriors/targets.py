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
from numpy.typing import ArrayLike, NDArray

from posterity.distributions import JointPrediction, Normal, StudentT
from posterity.evidence.correlation import compute_correlations
from posterity.factor import Factor
from posterity.kernel import RowPath, TargetsPath
from posterity.noise import Distribution, Noise
from posterity.posteriors._dependence import accumulate_correlations, log_dependence
from posterity.posteriors._nodes import concatenate_rows
from posterity.posteriors._target_coefficients import TargetCoefficients
from posterity.posteriors.gaussian import NO_CHANGES, LinearPosterior

Array = NDArray[np.float64]


@dataclass
class TargetViews:
    """Each target by itself, made when it is first read; of rows of the total weight ``at``."""

    each: list[LinearPosterior] | None = None
    at: float = -1.0


@dataclass(frozen=True)
class TargetsPosterior:
    """Posterior of [intercept, coefficients] of several targets.

    ``wide`` learns the rows, and is of the kind that one target would have. What is read is the
    joint prediction of all targets, under a given prior from their one triangle, and under a
    learned one from what each target says by itself.
    """

    wide: LinearPosterior
    names: tuple[str, ...] | None = None
    views: TargetViews = field(default_factory=TargetViews, repr=False, compare=False)

    # True if rows may lack some of the targets.
    lacks_targets: ClassVar[bool] = False

    @classmethod
    def wrap(cls, one: LinearPosterior, count: int, names: Sequence[str] | None = None) -> Self:
        """Return the posterior before data of ``count`` targets, each with the prior of ``one``."""
        return cls(one.for_targets(count), None if names is None else tuple(names))

    def copy(self) -> Self:
        """An independent copy."""
        return type(self)(self.wide.copy(), self.names)

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.wide.copy_from(other.wide)
        self._clear_views()

    def feature_scales(self) -> Array:
        """(m,) standard deviations of the features."""
        return self.wide.feature_scales()

    def find_sums_to_one(self) -> list[NDArray[np.intp]]:
        """Sets of columns of which each row has one 1."""
        return self.wide.find_sums_to_one()

    def never_varied(self) -> NDArray[np.bool_]:
        """(m,) of every target, True where a coefficient's feature has not varied yet."""
        if not self.wide.learns_prior:
            return np.zeros(self.wide.n_features, dtype=bool)
        return np.all([one.never_varied() for one in self.each], axis=0)

    # ---- learning ------------------------------------------------------------------------------

    @property
    def reads_columns(self) -> bool:
        """True if rows that come together may be columns that each lie by themselves."""
        return self.wide.reads_columns

    def fit(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn the first rows together."""
        self.append(X, y, weights, elapsed)

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows; where they are forgotten, in order."""
        together = self.wide.learns_prior and not self.wide.forgets
        learn = self.wide.append if together else self.wide.learn_data
        learn(X, y, weights, elapsed)
        self._clear_views()

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> JointPrediction:
        """Learn row after row; returns the distribution of the targets before each row."""
        before = self.copy()
        left = self.wide.of_rows.discounts_of_sums(elapsed)
        if self.wide.learns_prior:
            marginals = self._stream(X, y, weights, elapsed)
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = (y - marginals.loc) / marginals.scale
            make = partial(accumulate_correlations, before, steps, weights, left, in_units=True)
            return JointPrediction(marginals, make, names=self.names)
        known = self.wide.learn_each(X, y, weights, elapsed)
        self._clear_views()
        spread = 1.0 + (known.leverage if weights is None else weights * known.leverage)
        steps = known.error / np.sqrt(spread)[:, None]
        residual_df = known.count[:, None] - self.n_flat
        leverage = np.repeat(known.leverage[:, None], self.n_targets, axis=1)
        marginals = self.noise.predictive(y - known.error, leverage, residual_df, known.residual)
        make = partial(accumulate_correlations, before, steps, weights, left, in_units=False)
        return JointPrediction(marginals, make, names=self.names)

    def _stream(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> Distribution:
        """Yield predictions of each target for rows before they are learned, in stretches."""
        after, first = self.copy(), 0
        predictions: list[Distribution] = []
        while first < len(X) or not predictions:
            part = slice(first, after.wide.find_stretch_end(first, len(X), weights))
            some = None if weights is None else weights[part]
            rows = X[part], y[part], some, elapsed[part]
            each = enumerate(after._separate(stream=True))
            predictions.append(
                stack_targets(
                    [
                        one.predict_then_learn(
                            rows[0], np.ascontiguousarray(rows[1][:, j : j + 1]), *rows[2:]
                        )
                        for j, one in each
                    ]
                )
            )
            after.append(*rows)
            first = part.stop
        self.copy_from(after)
        return concatenate_rows(predictions)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows; raises ``ValueError`` when they can't have been learned."""
        self.wide.remove(X, y, weights)
        self._clear_views()

    def merge(self, other: Self) -> None:
        """Learn all that ``other`` learned from the same prior."""
        self.wide.merge(other.wide)
        self._clear_views()

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior, so that they can be merged."""
        return type(self) is type(other) and self.wide.has_same_prior(other.wide)

    @property
    def has_fast_learn_one(self) -> bool:
        """True if its compiled path may learn single rows."""
        return self.n_targets > 1 and self.wide.has_fast_learn_one

    @property
    def has_fast_predict_one(self) -> bool:
        """True if its compiled path predicts single rows."""
        return self.n_targets > 1 and self.wide.has_fast_predict_one

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The compiled path that reads and predicts single rows, and may learn them."""
        path = self.wide.row_path(names)
        if self.names is not None and self.n_targets > 1:
            cast(TargetsPath, path).name_targets(self.names)
        return path

    # ---- reading -------------------------------------------------------------------------------

    def predictive(self, X: Array) -> JointPrediction:
        """Joint distribution of the targets of new observations at the rows of ``X``."""
        if self.wide.learns_prior:
            marginals = stack_targets([one.predictive(X) for one in self.each])
        else:
            mean, leverage = self.factor.predict(X, intercept=self.intercept)
            leverage = np.repeat(leverage[:, None], self.n_targets, axis=1)
            residual = np.diag(self.factor.residual()).copy()
            marginals = self.noise.predictive(mean, leverage, self.residual_df, residual)
        make = partial(TargetsPosterior.correlation, self.copy())
        return JointPrediction(marginals, make, names=self.names)

    def predict_mean(self, X: Array) -> Array:
        """(n, q) means of new observations at the rows of ``X``."""
        coefficients = self.coefficients()
        if self.intercept:
            return X @ coefficients[1:] + coefficients[0]
        return X @ coefficients

    def predict_mean_ahead(self, X: Array) -> Array:
        """The same as :meth:`predict_then_learn` would give them."""
        if not self.wide.learns_prior:
            return self.predict_mean(X)
        each = self._separate(stream=True)
        return np.column_stack([one.predict_mean_ahead(X) for one in each])

    def coefficients(self) -> Array:
        """(p, q) means of [intercept, coefficients]."""
        if self.wide.learns_prior:
            return np.column_stack([one.coefficients() for one in self.each])
        return self.factor.coefficients()

    def joint(self, names: tuple[str, ...]) -> TargetCoefficients:
        """Joint distributions of [intercept, coefficients], each target's and all of them."""
        joints = [one.joint(names) for one in self.each]
        return TargetCoefficients(joints, self.correlation(), names=names, targets=self.names)

    def products(self) -> Array:
        """Psi (q, q): sums of squares and products of residuals and penalties, of prior too."""
        if self.wide.learns_prior:
            rows = self._compute_penalized_residuals()
            products = rows.T @ rows
        else:
            products = self.factor.residual()
        return products + 2.0 * self.noise.parameters[2] * np.eye(self.n_targets)

    def correlation(self) -> Array:
        """(q, q) correlations of the targets given the features."""
        return np.asarray(compute_correlations(self.noise, self.residual_df, self.products()))

    def _compute_penalized_residuals(self) -> Array:
        """(r, q) rows whose products are Psi, each target's from its own solution."""
        factor, offset = self.factor, int(self.intercept)
        coefficients = self.coefficients()
        off = coefficients[offset:] - self.wide.belief.means(len(coefficients) - offset)[:, None]
        precision = np.asarray(self.prior_precision, dtype=np.float64).T * self.noise.prior_unit
        return np.vstack(
            [
                factor.residual_root,
                factor.moments - factor.root @ coefficients,
                np.sqrt(precision) * off,
            ]
        )

    @property
    def each(self) -> list[LinearPosterior]:
        """Posteriors for reading, of each target by itself."""
        views = self.views
        if views.each is None or views.at != self.factor.seen:
            views.each, views.at = self._separate(), self.factor.seen
        return views.each

    def _separate(self, *, stream: bool = False) -> list[LinearPosterior]:
        wide = self.wide.fix_prior_choice(stream=stream)
        return [wide.of_target(target) for target in range(self.n_targets)]

    def _clear_views(self) -> None:
        self.views.each = None

    @property
    def log_evidence(self) -> float:
        """The log evidence log p(y): the sum over targets, and the gain from their dependence."""
        if not self.wide.has_evidence:
            raise AttributeError(
                "log_evidence_ of several targets is not available under this way to forget: "
                "sum the "
                "logpdf of what predict_then_learn returns"
            )
        alone = sum(one.log_evidence for one in self.each)
        return alone + log_dependence(self.noise, self.residual_df, self.products())

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

    @property
    def noise(self) -> Noise:
        """The noise, as each target's was believed to be."""
        return self.wide.noise

    @property
    def intercept(self) -> bool:
        """True if a 1 comes before each row."""
        return self.wide.intercept

    @property
    def factor(self) -> Factor:
        """The factor of all targets."""
        return self.wide.factor

    @property
    def n_targets(self) -> int:
        """Number of targets, q."""
        return self.factor.n_targets

    @property
    def n_coefficients(self) -> int:
        """Coefficients of one target, intercept included."""
        return self.wide.n_coefficients

    @property
    def n_features(self) -> int:
        """Columns of the rows that it learns."""
        return self.wide.n_features

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self.wide.n_observations

    @property
    def n_effective(self) -> float:
        """The weight of the rows that is left after forgetting."""
        return self.wide.n_effective

    @property
    def n_flat(self) -> int:
        """Number of directions whose prior is flat."""
        return self.wide.n_flat

    @property
    def residual_df(self) -> float:
        """Residual degrees of freedom: the number of rows less the flat directions."""
        return self.factor.count - self.n_flat

    forgets: ClassVar[Any] = property(lambda self: self.wide.forgets)

    @property
    def change_probability(self) -> Array:
        """Refuse: changes are found of one target only."""
        raise AttributeError(NO_CHANGES.format("change_probability_"))

    @property
    def changes(self) -> NDArray[np.int64]:
        """Refuse: changes are found of one target only."""
        raise AttributeError(NO_CHANGES.format("changes_"))

    def noise_coefficients(self) -> Array:
        """Refuse: the noise of several targets is constant."""
        return self.wide.noise_coefficients()


def stack_targets(predictions: Sequence[Any]) -> Distribution:
    """Predictions (n,) of each target as one (n, q); Normal among Student-t has infinite df."""
    loc = np.column_stack([one.loc for one in predictions])
    scale = np.column_stack([np.broadcast_to(one.scale, one.loc.shape) for one in predictions])
    df = [np.broadcast_to(getattr(one, "df", np.inf), one.loc.shape) for one in predictions]
    if np.isinf(df).all():
        return Normal(loc, scale)
    return StudentT(np.column_stack(df), loc, scale)


__all__ = ["TargetsPosterior"]
