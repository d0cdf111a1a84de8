"""The posterior of a linear model: factors of its prior and of prior and data, and its noise.

All posteriors of the package have the methods of :class:`LinearPosterior`. Rows ``X`` (n, m) come
without the intercept's 1, ``y`` is (n, 1), and ``elapsed`` (n,) is the time before each row, which
only those that forget look at. What learns changes state in one step at its end, or raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NoReturn, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Indices, Mask
from posterity.distributions.row_distribution import RowDistribution
from posterity.factor import Factor, OneStepPredictions, Rows
from posterity.factor.dummies import find_sums_to_one
from posterity.factor.forgetting import SMALLEST_DISCOUNT
from posterity.factor.rows import SiteRows
from posterity.factor.targets import for_targets, of_target
from posterity.kernel import FadingMember, ForgettingPath, RowPath
from posterity.noise import Joint, Noise, Predictive
from posterity.posteriors._reads import read_along, refuse
from posterity.posteriors._removal import unlearn
from posterity.posteriors._row_evidence import sum_evidence_gains
from posterity.posteriors.memory import KEEP, KeptRows, Memory
from posterity.priors import GaussianPrior
from posterity.safety import check_model_memory

T = TypeVar("T")

ONE_TARGET = "y has several columns, and {} follows a single target: fit a model for each column"
NO_CHANGES = "{} is reported only with forgetting=Changepoint(...)"
NO_NOISE_COEFFICIENTS = "noise_intercept_ and noise_coef_ are reported only with noise='linear'"


def refuse_waiting(posterior: Any, elapsed: float) -> NoReturn:
    """In place of ``wait``, where predictions are only for the time of the last row."""
    raise ValueError(
        "times= is for predictions of one target, without heavy tails, quantiles, more than two "
        "classes or a window over labels and counts: here a prediction is for the time of the "
        "last row; leave times out"
    )


@dataclass(frozen=True)
class LinearPosterior:
    """Posterior of [intercept, coefficients] of a Gaussian linear model (one target).

    Before each row its ``memory`` forgets. ``tally`` (1,) sums log densities of the rows as they
    came, where the factor does not know the evidence; ``stored_rows`` are those in a window.
    """

    belief: GaussianPrior
    noise: Noise
    intercept: bool
    prior: Factor
    factor: Factor
    memory: Memory = field(default=KEEP, kw_only=True)
    tally: Array | None = field(default=None, repr=False, compare=False, kw_only=True)
    stored_rows: KeptRows | None = field(default=None, repr=False, compare=False, kw_only=True)

    @classmethod
    def before_data(
        cls, belief: GaussianPrior, noise: Noise, n_features: int, *, intercept: bool
    ) -> Self:
        """The prior, as a posterior that has seen nothing."""
        check_model_memory(n_features)
        prior = belief.factor(n_features, intercept=intercept, unit=noise.prior_unit)
        return cls(belief, noise, intercept, prior, prior.copy())

    def with_memory(self, memory: Memory) -> Self:
        """The same that forgets, before it has seen anything."""
        memory, kept = memory.in_units(self.noise.prior_unit), memory.keep_rows(self.n_features)
        return self._copy_with(memory=memory, tally=np.zeros(1), stored_rows=kept)

    @property
    def is_plain(self) -> bool:
        """True if a triangle is all that it knows, and nothing is forgotten."""
        return type(self) is LinearPosterior and not self.memory.forgets

    def copy(self) -> Self:
        """An independent copy."""
        return self.copy_with_factor(self.factor.copy())

    def copy_with_factor(self, factor: Factor, **changes: object) -> Self:
        """An independent copy but for its factor, which is this one, and for ``changes``."""
        if self.memory.forgets:
            kept = self.stored_rows
            changes["tally"] = None if self.tally is None else self.tally.copy()
            changes["stored_rows"] = None if kept is None else replace(kept)
        return self._copy_with(factor=factor, **changes)

    def _copy_with(self, **changes: object) -> Self:
        """The same with these fields changed: dataclasses.replace, made for every row."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, **changes)
        return twin

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.factor.copy_from(other.factor)
        if self.tally is not None:
            self.tally[...] = other.tally
        if self.stored_rows is not None:
            self.stored_rows.__dict__.update(other.stored_rows.__dict__)

    # A copy to be one of many that are averaged.
    copy_for_average = read_along("copy")

    def with_one_node(self, *, rests: bool) -> Self:
        """The same, whose rows all are met under one prior; see :class:`EvidencePosterior`."""
        return self

    def append_sites(self, X: Array, y: Array, precision: Array, rows: Any) -> None:
        """Learn the Gaussian rows that stand for ``rows``, which came together."""
        self.append(X, y, precision, rows.elapsed)

    def with_noise(self, noise: Noise) -> Self:
        """A copy with another noise."""
        return self.copy()._copy_with(noise=noise)

    def member(self, *, weak: bool) -> LinearPosterior:
        """A copy that predicts in units of the noise, which is learned beside it.

        Where the prior is learned, ``weak`` asks for one that hardly knows anything instead.
        """
        return self._copy_with(factor=self.factor.copy(), noise=self.noise.unit)

    def average_of(self, read: Callable[[Any], ArrayLike]) -> Any:
        """Return ``read(self)``; of an ensemble, the weighted average of it over the members."""
        return read(self)

    @property
    def common(self) -> Any:
        """The same; of an ensemble, what stands for all its members."""
        return self

    # The prediction that ``read`` reads of it: of an ensemble, the mixture.
    mixture_of = average_of

    def with_averages(self) -> LinearPosterior:
        """The same, to find the mode of rows that come together; in memory that both share."""
        return self

    # ---- many targets --------------------------------------------------------------------------

    def for_targets(self, count: int) -> LinearPosterior:
        """Return a posterior before data of ``count`` targets, each with this one's prior.

        It only learns: what is read of it is read target by target, or by who knows of them all.
        """
        prior, kept = for_targets(self.prior, count), self.stored_rows
        nothing = None if kept is None else KeptRows.none_of(kept.X.shape[1], count)
        return self._copy_with(prior=prior, factor=prior.copy(), stored_rows=nothing)

    def of_target(self, target: int | Sequence[int]) -> Self:
        """Return the posterior of one target, or of some, as if they had come alone."""
        own = self.copy_with_factor(of_target(self.factor, target))
        if own.stored_rows is not None:
            some = [target] if isinstance(target, int) else list(target)
            own.stored_rows.y = np.ascontiguousarray(own.stored_rows.y[:, some])
        return own._copy_with(prior=of_target(self.prior, target))

    def fix_prior_choice(self, *, stream: bool) -> LinearPosterior:
        """The same, with what all targets have to choose together chosen."""
        return self

    def find_stretch_end(self, first: int, n: int, weights: Array | None) -> int:
        """Return the end of the stretch of rows from ``first``, which are learned at once."""
        return n

    # ---- learning ------------------------------------------------------------------------------

    # True if a row that is rotated out leaves as if it had never come.
    rows_leave_no_trace: ClassVar[bool] = True

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` for targets (n, 1) that can't be learned."""

    # Learn all rows there are, as one batch: (X, y, weights, elapsed), and any offsets; learn the
    # first rows together. What forgets learns them in order.
    learn_together = read_along("append")
    fit = read_along("append")

    # True if rows that come together may be columns that each lie by themselves.
    reads_columns = read_along("is_plain")

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows at once; where something is forgotten, in order."""
        if self.memory.has_evidence:
            self.absorb(X, y, weights, elapsed)
        else:
            self.predict_then_learn(X, y, weights, elapsed)

    def absorb(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order, and keep no account of how they were predicted."""
        self.memory.absorb(self, self._rows_to_learn(X, y, weights, elapsed))

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> Predictive:
        """Learn row after row; returns the distribution of each target before its row."""
        before = self.learn_each(X, y, weights, elapsed)
        if self.tally is not None and not self.memory.has_evidence:
            self.tally[0] += sum_evidence_gains(self.noise, before, weights, self.n_flat)
        mean = np.subtract(y, before.error, out=before.error)[:, 0]
        residual_df = np.subtract(before.count, self.n_flat, out=before.count)
        return self.noise.predictive(mean, before.leverage, residual_df, before.residual[:, 0])

    def learn_each(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> OneStepPredictions:
        """Learn row after row, forgetting before each; returns what was known of each before it."""
        return self.memory.learn(self, self._rows_to_learn(X, y, weights, elapsed))

    def wait(self, elapsed: float) -> None:
        """Let so much time pass after the last row."""
        if self.n_observations:
            self.memory.wait(self, elapsed)

    def _rows_to_learn(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> Rows:
        """The rows, and the time before each in which something is forgotten."""
        rows = Rows(X, y, weights, elapsed, intercept=self.intercept)
        if self.memory.forgets and self.factor.seen == 0.0:
            # Before the first row there is nothing to forget.
            later = np.arange(len(elapsed)) > rows.first
            return replace(rows, elapsed=np.where(later, elapsed, 0.0))
        return rows

    @property
    def has_fast_learn_one(self) -> bool:
        """True if its compiled path learns single rows, one unit of time apart."""
        one = self.factor.n_targets == 1
        return self.memory.only_discounts or (one and self.memory.has_fast_learn_one)

    # True if its compiled path predicts single rows.
    has_fast_predict_one: ClassVar[bool] = True
    # True if the linear predictors of new rows are as good as normal, whoever asks.
    predicts_normally: ClassVar[bool] = False
    # True if its path tells how it predicted the row that it learned last.
    tells_rows: ClassVar[bool] = False
    # True if a row adds to the evidence how its path predicted it.
    scores_rows: ClassVar[bool] = False
    # True if ways to forget that differ in kind may be averaged over.
    joins_strategies: ClassVar[bool] = True
    # True if the factor is its only statistic, but for other parts.
    is_one_factor: ClassVar[bool] = True

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The compiled path that reads and predicts single rows, and may learn them."""
        if not self.has_fast_learn_one:
            return self.factor.row_path(self.intercept, names)
        path = self.memory.row_path(self, names)
        if not self.memory.has_evidence:
            tallying, tally = cast(ForgettingPath, path), cast(Array, self.tally)
            tallying.keep_tally(tally, self.noise.parameters, self.n_flat)
        return path

    def as_member(self) -> FadingMember:
        """The member of a compiled average; only where it fades to its prior."""
        left = float(self.memory.discounts(np.ones(1))[0])
        return self.factor.fading(self.prior, max(left, SMALLEST_DISCOUNT))

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows; raises ``ValueError`` when they can't have been learned."""
        self.memory.check_removal()
        unlearn(self.factor, self.prior, X, y, weights, intercept=self.intercept)

    def merge(self, other: Self) -> None:
        """Learn all that ``other`` learned from the same prior, which then counts once.

        The prior is taken out of the sum of both factors, where it is at most half of anything:
        no digits go, not even when ``other`` knows little.
        """
        self.memory.check_merging()
        both = self.factor.copy()
        both.merge(other.factor)
        both.take_out(self.prior)
        self.factor.copy_from(both)

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior, so that they can be merged."""
        return (
            type(self) is type(other)
            and self.noise == other.noise
            and self.intercept == other.intercept
            and self.memory == other.memory
            and np.array_equal(self.prior.triangle, other.prior.triangle)
        )

    def central(self) -> LinearPosterior:
        """The posterior at the central node of the learned prior."""
        return self

    def central_ahead(self) -> LinearPosterior:
        """The same by which the next row's site is found."""
        return self

    def choose_prior(self, rows: Factor) -> Factor:
        """The prior of the central node, were these all the rows learned."""
        return self.prior

    @property
    def parts(self) -> tuple[tuple[float, LinearPosterior], ...]:
        """Posteriors with different priors, and their weights: this one is their mixture."""
        return ((1.0, self),)

    @property
    def single_factor(self) -> LinearPosterior | None:
        """The same where one triangle is all that it will know, for many of them in a bank."""
        return self if self.is_plain else None

    @property
    def of_rows(self) -> LinearPosterior:
        """The posterior that holds the rows: the data's, where the prior is learned."""
        return self

    def without_prior(self) -> LinearPosterior:
        """A copy that knows what the rows say, and what is left of a prior that fades with them."""
        rows = self.of_rows.copy()
        if rows.memory.keeps_prior:
            rows.factor.take_out(self.prior)
        return rows

    def feature_scales(self) -> Array:
        """(m,) standard deviations of the features, each row counted by its weight here.

        NaN where they are not known: without an intercept, or before any rows.
        """
        if not self.intercept:
            return np.full(self.n_features, np.nan)
        root = self.without_prior().factor.root
        with np.errstate(divide="ignore", invalid="ignore"):
            # Below the intercept's row: about the mean, however large that is.
            return np.sqrt(np.square(root[1:, 1:]).sum(axis=0)) / np.abs(root[0, 0])

    def feature_means(self) -> Array:
        """(m,) means of the features, each row counted by its weight here; 0 without an intercept.

        NaN before any rows.
        """
        if not self.intercept:
            return np.zeros(self.n_features)
        root = self.without_prior().factor.root
        with np.errstate(invalid="ignore"):
            return np.asarray(root[0, 1:] / root[0, 0])

    def find_sums_to_one(self) -> list[Indices]:
        """Sets of columns of zeros and ones of which each row has one 1, as the intercept has."""
        if not self.intercept:
            return []
        return find_sums_to_one(self.without_prior().factor.root)

    def never_varied(self) -> Mask:
        """(m,) True where a coefficient, under a learned prior, has a feature that never varied."""
        return np.zeros(self.n_features, dtype=bool)

    def unseen_effects(self, X: Array) -> Any:
        """Sparse (n, m) sd, signed, of the effects in rows of features that never varied.

        Under a learned prior; None where no such feature moves, or all are known of.
        """
        return None

    def correct(
        self,
        columns: Array,
        normal: RowDistribution,
        shift: Array | float = 0.0,
        *,
        of_rows: bool = True,
    ) -> RowDistribution:
        """``normal``, the distribution of sums of coefficients, where that is not quite right."""
        return normal

    def keep(self, rows: Factor, n_gone: int) -> None:
        """Keep only this factor of the rows, without the prior, once rows were unlearned."""
        left = self.prior.copy()
        left.merge(rows)
        self.factor.copy_from(left)

    def replace_rows(self, rows: Factor) -> None:
        """Know this factor in place of another one of the same rows."""
        self.keep(rows, 0)

    # ---- as the posterior of site rows ---------------------------------------------------------

    # True if the prior is chosen by the rows.
    learns_prior: ClassVar[bool] = False

    @property
    def needs_products_only(self) -> bool:
        """True if the products of rows are all that it keeps of them."""
        return True

    @property
    def is_settled(self) -> bool:
        """True if rows that came together were the last, and chose the prior that is read."""
        return False

    def append_in_order(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows of a stream that nobody predicts."""
        self.append(X, y, weights, elapsed)

    def begin_turn(self) -> None:
        """Let the rows so far choose the prior of those to come, where it is learned."""

    def learn_sites(
        self, learn: Callable[[LinearPosterior, SiteRows], T], rows: SiteRows
    ) -> list[T]:
        """Let ``learn`` find sites row after row, in stretches under one prior each."""
        return [learn(self, rows)]

    def open_path(
        self, kind: Callable[..., RowPath], names: Sequence[str] | None, *how: Any
    ) -> RowPath:
        """A path of this kind that learns rows, before each of which all that is known fades."""
        path = self.factor.open_path(kind, self.intercept, names, *how)
        self.memory.fade(self, path)
        return path

    def linear_moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) of x.w; infinite where a direction is open."""
        mean, leverage = self.factor.predict(X, intercept=self.intercept)
        return mean[:, 0], leverage

    def leaves_open(self, X: Array) -> Mask:
        """(n,) True where x.w may be anything."""
        return np.isinf(self.linear_moments(X)[1])

    # ---- reading -------------------------------------------------------------------------------

    def predictive(self, X: Array) -> Predictive:
        """Distribution of new observations at the rows of ``X``."""
        mean, leverage = self.factor.predict(X, intercept=self.intercept)
        return self.noise.predictive(mean[:, 0], leverage, self.residual_df, self.residual)

    def predict_mean(self, X: Array) -> Array:
        """Mean of new observations at the rows of ``X``."""
        coefficients = self.coefficients()
        if self.intercept:
            return X @ coefficients[1:] + coefficients[0]
        return X @ coefficients

    # The same where a row is predicted in a stream, before it is learned.
    predict_mean_ahead = read_along("predict_mean")

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        return self.factor.coefficients()[:, 0]

    def joint(self, names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]."""
        mean = self.coefficients()
        return self.noise.posterior(mean, self.factor.root, self.residual_df, self.residual, names)

    # Prior precision of the coefficients, in the user's units; their number, intercept included.
    prior_precision = read_along("belief.precision")
    n_coefficients = read_along("prior.n_coefficients")
    # Sum of the weights of the rows learned; what is left of it after forgetting; and of that the
    # most, of several memories.
    n_observations = read_along("factor.seen")
    n_effective = read_along("factor.count")
    n_held = read_along("n_effective")

    @property
    def n_features(self) -> int:
        """Columns of the rows that it learns."""
        return self.n_coefficients - int(self.intercept)

    @property
    def n_flat(self) -> int:
        """Number of directions whose prior is flat."""
        return self.prior.n_coefficients - self.prior.rank

    @property
    def improper(self) -> tuple[int, tuple[float, float] | None] | None:
        """Flat directions, and the noise's shape and rate if improper; None if unknown."""
        return self.n_flat, self.noise.improper

    @property
    def residual_df(self) -> float:
        """Residual degrees of freedom: the number of rows less the flat directions they tell of."""
        return self.factor.count - max(self.factor.rank - self.prior.rank, 0)

    @property
    def residual(self) -> float:
        """Residual sum of squares, prior penalty included."""
        return float(self.factor.residual_root[0, 0]) ** 2

    @property
    def noise_precision(self) -> float:
        """The noise precision: as given, or the posterior mean."""
        return self.noise.precision(self.residual_df, self.residual)

    # Attributes that only some kinds have: the others refuse them, in the user's words.

    change_probability = refuse(NO_CHANGES.format("change_probability_"))
    changes = refuse(NO_CHANGES.format("changes_"))
    noise_coefficients = refuse(NO_NOISE_COEFFICIENTS)

    @property
    def log_evidence(self) -> float:
        """Log p(y), or of the rows as they came; flat directions have density 1."""
        if self.tally is not None and not self.memory.has_evidence:
            return float(self.tally[0])
        log_determinants = self.prior.log_determinant() - self.factor.log_determinant()
        return self.noise.log_evidence(self.residual_df, self.residual, log_determinants)
