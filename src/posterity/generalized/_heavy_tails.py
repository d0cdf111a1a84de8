"""The posterior of a regression with heavy-tailed noise: a Gaussian factor of reweighted rows.

A row's weight depends on its own error before it came, and on the scale then: both come out of
learning in the factor, once the weights of the rows before it are right. So a stretch of rows is
learned again and again, each time with the weights that the last time implies; the first row is
right at once, and each row as soon as those before it. In a few rounds all are what learning row
after row gives.

The first rows are kept, and their most probable fit is found from all of them, for a start that
outliers can't spoil.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from posterity.aliases import Array
from posterity.distributions import MultivariateNormal, MultivariateT, StudentT
from posterity.distributions.row_distribution import RowDistribution
from posterity.evidence.columns import mean_squares
from posterity.factor.usable import check_rows
from posterity.generalized._few_rows import ROWS_A_COEFFICIENT
from posterity.generalized._heavy_tails_row import HeavyTailedPath
from posterity.generalized._heavy_tails_state import HeavyTailsState, RowPredictions
from posterity.generalized._noise_tally import NoiseSums, OneStepScales
from posterity.generalized._start import ModeFit, StoredRows, WarmStart, make_noise, most_probable
from posterity.generalized._unlearning import in_order, make_matched_site, take_out
from posterity.generalized._working_noise import WorkingNoise
from posterity.kernel import RowPath
from posterity.noise import JointOfOne
from posterity.posteriors import LinearPosterior
from posterity.posteriors._reads import read_along
from posterity.posteriors._removal import weigh_rest
from posterity.posteriors.gaussian import refuse_waiting
from posterity.posteriors.growth import widen
from posterity.posteriors.memory import Memory
from posterity.posteriors.new_columns import NewColumns

# Rows that are kept for the start: at least so many, and until they are not few.
START_ROWS = 64
# While rows tell less than so many of the middle do, all are fitted again after a sixteenth more.
FEW_TOLD = 8
# A fit of so large a share of them waits for all.
NEARLY = 0.9
LONGEST_STRETCH = 1024
# In the midst of a stretch the past never fades to less than this.
MOST_FADING = 1e-150
LEAST_DISCOUNT = 1e-12
SETTLED = 1e-10


@dataclass(frozen=True)
class HeavyTailedPosterior(LinearPosterior):
    """Posterior of [intercept, coefficients] under a :class:`WorkingNoise` of unknown scale.

    ``fresh`` is a posterior that has seen nothing, with noise known at 1, that forgets as it likes.
    """

    # What a posterior holds besides: that of the rows as they stand.
    belief: ClassVar[Any] = read_along("fresh.belief")  # type: ignore[misc]
    noise: ClassVar[Any] = read_along("state.inner.noise")  # type: ignore[misc]
    intercept: ClassVar[Any] = read_along("fresh.intercept")  # type: ignore[misc]
    prior: ClassVar[Any] = read_along("fresh.prior")  # type: ignore[misc]
    factor: ClassVar[Any] = read_along("_node.factor")  # type: ignore[misc]
    memory: ClassVar[Any] = read_along("fresh.memory")  # type: ignore[misc]

    fresh: LinearPosterior
    likelihood: WorkingNoise
    state: HeavyTailsState = field(repr=False)

    rows_leave_no_trace: ClassVar[bool] = False
    # Not known: an unknown scale is not that of normal noise.
    improper: ClassVar[None] = None

    n_flat = read_along("fresh.n_flat")
    # The rows as they are weighted now; the scale of the noise.
    n_observations = read_along("state.seen")
    n_effective = read_along("state.tally.count")
    log_evidence = read_along("state.log_predictive")  # after a fit Laplace's approximation
    scale = read_along("state.tally.scale")
    feature_scales = read_along("state.inner.feature_scales")
    feature_means = read_along("state.inner.feature_means")
    # The noise that is likeliest now: of predictions, and of rows that came together. Others are
    # learned under ``likelihood``: fewer degrees of freedom would claim that they tell too much.
    in_force = read_along("state.tally.noise")
    find_sums_to_one = read_along("state.inner.find_sums_to_one")
    never_varied = read_along("state.inner.never_varied")
    unseen_effects = read_along("state.inner.unseen_effects")
    has_fast_predict_one = read_along("state.inner.has_fast_predict_one")
    prior_precision = read_along("_node.prior_precision")  # in the user's units

    @property
    def _node(self) -> LinearPosterior:
        """The one that learns and is read: under the prior that is given, or was learned."""
        return self.state.inner.central()

    @classmethod
    def wrap(cls, fresh: LinearPosterior, tally: NoiseSums) -> Self:
        """Take over what a posterior that has seen nothing believes, relative to the noise."""
        fresh = fresh.with_one_node(rests=True)
        nothing = StoredRows(np.empty((0, fresh.n_features)), np.empty(0), np.empty(0), np.empty(0))
        return cls._make_from(fresh, tally.noise, HeavyTailsState(fresh.copy(), tally, nothing))

    @classmethod
    def _make_from(cls, *parts: Any) -> Self:
        make: Any = cls  # whose fields are not its parent's
        posterior: Self = make(*parts)
        return posterior

    wait = refuse_waiting
    joins_strategies: ClassVar[bool] = False

    def copy(self) -> Self:
        """An independent copy."""
        return self._copy_with(state=self.state.copy())

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        other.state.inner.central()  # its prior is chosen now, not when it is read
        self.state.copy_from(other.state)

    def widen_from(self, old: Self, columns: NewColumns) -> None:
        """Know what ``old`` does, of other columns."""
        state, inner = old.state.copy(), self.fresh.with_noise(old.state.inner.noise)
        widen(inner, state.inner, columns)
        state.inner, state.warm_start = inner, WarmStart()
        state.tally.n_flat = self.fresh.n_flat
        if state.kept is not None:
            state.kept = replace(state.kept, X=columns.spread(state.kept.X))
        self.state.copy_from(state)
        for mine, theirs in zip(self.companions, old.companions, strict=True):
            widen(mine, theirs, columns)
        self._set_due()

    def with_memory(self, memory: Memory) -> Self:
        """The same that forgets, before it has seen anything."""
        fresh = self.fresh.with_memory(memory)
        return self.wrap(fresh, self.state.tally.copy())

    def copy_for_average(self) -> Self:
        """A copy to be one of many that are averaged, which all have the same tails."""
        return self.wrap(self.fresh, self.state.tally.for_average())

    # ---- learning ------------------------------------------------------------------------------

    def fit(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows at once: their most probable fit. Nothing was learned before."""
        check_rows(X, y, weights)
        g = np.ones(len(X)) if weights is None else weights
        ahead, rows = self.copy(), StoredRows(X, y[:, 0], g, elapsed)
        state = ahead.state
        found = ahead._fit_mode(rows)
        state.log_predictive, state.seen = found.log_evidence, float(np.sum(g))
        state.clock = int(np.count_nonzero(g))
        state.kept = rows if state.clock < ahead._n_start else None
        ahead._set_due()
        self.copy_from(ahead)

    def learn_together(self, *rows: Any) -> None:
        """Learn all rows there are, at once."""
        self.fit(*rows)

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        self.predict_then_learn(X, y, weights, elapsed)

    def predict_then_learn(  # type: ignore[override]
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> RowDistribution:
        """Learn row after row; returns the distribution of each target before its row."""
        check_rows(X, y, weights)
        g = np.ones(len(X)) if weights is None else weights
        target = y[:, 0]
        ahead = self.copy()
        state = ahead.state
        if state.kept is None and len(X):
            state.learn_in_order_from_now()
        if state.clock == 0:
            elapsed = np.where(np.cumsum(g > 0.0) - (g > 0.0) == 0, 0.0, elapsed)
        predictions: list[RowPredictions] = []
        first = 0
        while first < len(X) or not predictions:
            stop = ahead._find_stretch_end(g, elapsed, first)
            part = slice(first, stop)
            predictions.append(ahead._learn_stretch(X[part], target[part], g[part], elapsed[part]))
            first = stop
        self.copy_from(ahead)
        parts = zip(
            *([one.mean, one.leverage, one.scale, one.df] for one in predictions), strict=True
        )
        return self.in_force.predictive(*(np.concatenate(each) for each in parts))

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows: those of the start exactly, others by their present sites."""
        self.memory.check_removal()
        g = np.ones(len(X)) if weights is None else weights
        some = g > 0.0
        rows = StoredRows(X[some], y[some, 0], g[some], np.ones(int(some.sum())))
        ahead = self.copy()
        state = ahead.state
        if not weigh_rest(state.seen, float(np.sum(g))):
            ahead = self.wrap(self.fresh, state.tally.restart(self.likelihood))
        elif state.kept is not None:
            left = state.kept.without(rows)
            ahead.fit(left.X, left.y[:, None], left.weights, left.elapsed)
        else:
            ahead._remove_rows(rows)
        self.copy_from(ahead)

    def _remove_rows(self, rows: StoredRows) -> None:
        state, together = self.state, self.state.spread is not None
        if together:
            site = make_matched_site(self.in_force, self._unit, rows.weights)
        else:
            site = in_order(self.likelihood, self.scale)
        tally, slope = take_out(state.inner, state.tally, rows, site, together=together)
        state.tally = tally
        if together and tally.known_scale is None:
            # As the scale is learned by a fit: a step of Newton's method.
            information = self.in_force.scale_information * tally.count
            tally.beyond_core += tally.count * min(max(slope / information, -1.0), 1.0)
        state.clock -= len(rows.y)
        state.seen -= float(np.sum(rows.weights))
        mean, leverage = self.relative(rows.X)
        density = self.in_force.log_density(
            rows.y - mean, leverage, np.full(len(mean), self.scale), self._scale_df
        )
        state.log_predictive -= float(rows.weights @ density)
        self._set_due()

    def merge(self, other: Self) -> None:
        """Learn all that ``other`` learned, with the weights that its rows have there."""
        self.memory.check_merging()
        ahead = self.copy()
        both, its = ahead.state, other.state
        both.clock += its.clock
        seen, over = both.seen + its.seen, both.clock >= self._n_start
        if both.kept is not None and its.kept is not None:
            one = its.kept
            rows = both.kept.join(one.X, one.y, one.weights, one.elapsed)
            ahead._fit_mode(rows, in_order=over)
            both.kept = None if over else rows
        else:
            both.inner.merge(its.inner.with_noise(both.inner.noise))
            both.tally.merge(its.tally)
            both.tally.noise = both.tally.find_likely_noise()
            both.learn_in_order_from_now()
        both.log_predictive, both.seen = both.log_predictive + its.log_predictive, seen
        ahead._set_due()
        self.copy_from(ahead)

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior, so that they can be merged."""
        return (
            type(self) is type(other)
            and self.likelihood == other.likelihood
            and self.state.tally.known_scale == other.state.tally.known_scale
            and self.fresh.has_same_prior(other.fresh)
        )

    # ---- reading -------------------------------------------------------------------------------

    @property
    def has_fast_learn_one(self) -> bool:
        """True if nothing is forgotten."""
        return not self.memory.forgets

    @property
    def companions(self) -> Sequence[LinearPosterior]:
        """Posteriors that learn the features of every row, with targets 0 and its own weight."""
        return ()

    @property
    def parts(self) -> tuple[tuple[float, LinearPosterior], ...]:
        """The posterior of the reweighted rows."""
        return ((1.0, self._node),)

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """Return the path that reads, predicts and learns single rows."""
        return cast(RowPath, HeavyTailedPath(self, names))

    def with_row(
        self, X: Array, y: float, g: float, error: float, leverage: float
    ) -> tuple[float, float, dict[str, Any]]:
        """Weight of a row, how far its target moves, and all else as it is with the row learned.

        The twin of :meth:`_learn_stretch`, in plain numbers.
        """
        held_state, leverage = self.state, max(leverage, 0.0)
        tally, kept = held_state.tally, held_state.kept
        scale = tally.scale
        weight, shift = 1.0, 0.0
        if math.isfinite(leverage) and math.isfinite(scale):
            weight, shift = self.likelihood.site(error, leverage, scale)
        wide = leverage * self._widened
        log_density = self.in_force.log_density_one(error, wide, scale, self._scale_df)
        if kept is not None:
            kept = kept.join(X, np.array([y]), np.array([g]), np.ones(1))
        state = {
            "tally": tally.with_row(error, leverage, g),
            "log_predictive": held_state.log_predictive + g * log_density,
            "clock": held_state.clock + 1,
            "seen": held_state.seen + g,
            "kept": kept,
        }
        return weight, shift, state

    def relative(self, X: Array) -> tuple[Array, Array]:
        """Mean (n,) of the line at the rows of ``X``, and its variance over scale^2."""
        mean, leverage = self._raw(X)
        return mean, leverage * self._widened

    def predictive(self, X: Array) -> RowDistribution:  # type: ignore[override]
        """Distribution of new observations at the rows of ``X``."""
        mean, leverage = self.relative(X)
        return self.in_force.predictive(mean, leverage, self.state.tally.scale, self._scale_df)

    def core_predictive(self, X: Array) -> StudentT:
        """The same for observations that are no outliers: normal noise of the core's scale."""
        mean, leverage = self.relative(X)
        with np.errstate(invalid="ignore"):
            scale = np.sqrt(self.core**2 + self.state.tally.scale**2 * leverage)
        return StudentT(self._df, mean, np.where(np.isnan(scale), np.inf, scale))

    def joint(self, names: tuple[str, ...]) -> JointOfOne:
        """Joint distribution of [intercept, coefficients]: t where the scale is learned."""
        tally, spread = self.state.tally, self.state.spread
        joint = cast(JointOfOne, self._node.joint(names))
        root = joint.precision_root * (self._unit / joint.scale)
        if tally.known_scale is not None:
            return MultivariateNormal(joint.mean, root, tally.scale, names=names)
        scale = tally.scale * math.sqrt(self._widened)
        df = tally.residual_df if spread is None else spread.df
        return MultivariateT(max(df, 0.0), joint.mean, root, scale, names=names)

    @property
    def _relative_prior_root(self) -> Array:
        """(p, p) root of the prior's precision, in the units of :meth:`joint`'s."""
        node = self._node
        scale = cast(JointOfOne, node.joint(("",) * self.n_coefficients)).scale
        return np.asarray(node.prior.root * (self._unit / scale))

    @property
    def core(self) -> float:
        """Standard deviation of the noise without its outliers."""
        return self.state.tally.core if self.state.tally.residual_df > 0.0 else math.inf

    @property
    def noise_scale(self) -> float:
        """Scale of the noise that is in force."""
        return self.scale * self.in_force.unit

    @property
    def noise_precision(self) -> float:
        """1 / noise_scale^2."""
        return 1.0 / self.noise_scale**2 if math.isfinite(self.scale) else math.nan

    # ---- inner ---------------------------------------------------------------------------------

    def _raw(self, X: Array) -> tuple[Array, Array]:
        inner = self.state.inner
        predictive = inner.predictive(X)
        return predictive.mean(), _compute_leverage(predictive, inner.noise)

    @property
    def _widened(self) -> float:
        spread = self.state.spread
        return 1.0 if spread is None else spread.widened**2

    @property
    def _unit(self) -> float:
        """Scale in whose squares the inner posterior's information is: of its own noise."""
        return float(self.state.inner.noise_precision**-0.5)

    @property
    def _df(self) -> float:
        tally = self.state.tally
        return math.inf if tally.known_scale is not None else max(tally.residual_df, 1.0)

    @property
    def _scale_df(self) -> float:
        """Degrees of freedom of the scale after a fit; infinite after other rows."""
        spread = self.state.spread
        return math.inf if spread is None else spread.df

    @property
    def _n_told(self) -> int:
        """Number of coefficients, less those of features that have not varied in any rows yet."""
        rows = self.state.inner.factor
        pinned = mean_squares(rows, intercept=self.intercept).pinned & (rows.count > 0.0)
        return self.n_coefficients - int(np.count_nonzero(pinned))

    @property
    def _n_start(self) -> int:
        return max(START_ROWS, ROWS_A_COEFFICIENT * self._n_told)

    @property
    def _told_by_row(self) -> float:
        """What a row tells, of what one tells of the middle of the noise."""
        return 1.0

    def _find_stretch_end(self, g: Array, elapsed: Array, first: int) -> int:
        """Return the end of the stretch of rows that starts at ``first``."""
        last = min(first + 2 * LONGEST_STRETCH, len(g))
        rows = np.cumsum(g[first:last] > 0.0)
        left = self.state.due - self.state.clock
        stop = first + min(int(np.searchsorted(rows, left)) + 1, last - first)
        faded = np.cumprod(self._discounts_of_sums(elapsed[first:stop]))
        return first + max(1, int(np.count_nonzero(faded > MOST_FADING)))

    def _discounts_of_sums(self, elapsed: Array) -> Array:
        return np.maximum(self.memory.discounts_of_sums(elapsed), LEAST_DISCOUNT)

    def _learn_stretch(self, X: Array, y: Array, g: Array, elapsed: Array) -> RowPredictions:
        """Learn rows whose weights depend on those before them, until nothing moves."""
        if not len(X):
            return RowPredictions(np.empty(0), np.empty(0), np.empty(0), np.empty(0))
        state = self.state
        tally, discounts = state.tally.copy(), self._discounts_of_sums(elapsed)
        mean, leverage = self._raw(X)
        n = len(X) + 1
        before = OneStepScales(np.full(n, tally.scale), np.full(n, tally.core))
        inner, added = state.inner, np.zeros(0)
        for _ in range(n + 3):
            error = y - mean
            weight, shift = self._sites(error, leverage, before.scale[:-1])
            added = tally.compute_terms(error, leverage, g, before)
            new_before = tally.compute_scales_before(added, discounts)
            inner = state.inner.copy()
            predictive = inner.predict_then_learn(X, (y + shift)[:, None], weight * g, elapsed)
            new_mean, new_leverage = predictive.mean(), _compute_leverage(predictive, inner.noise)
            done = (
                _is_same(new_mean, mean, before.scale[:-1])
                and _is_same(new_leverage, leverage, 1.0 + leverage)
                and _is_same(new_before.scale[:-1], before.scale[:-1], before.scale[:-1])
                and _is_same(new_before.core[:-1], before.core[:-1], before.core[:-1])
            )
            mean, leverage, before = new_mean, new_leverage, new_before
            if done:
                break
        scale, leverage, df = before.scale[:-1], leverage * self._widened, self._scale_df
        densities = self.in_force.log_density(y - mean, leverage, scale, df)
        tally.learn(added, discounts)
        state.inner, state.tally, state.log_predictive = (
            inner,
            tally,
            state.log_predictive + float(g @ densities),
        )
        self._note(X, y, g, elapsed)
        return RowPredictions(mean, leverage, scale, np.full(len(y), df))

    def _sites(self, error: Array, leverage: Array, scale: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            weight, shift = self.likelihood.sites(error, leverage, scale)
        # Where nothing is known of the line or the noise, a row is taken as it is.
        open_ = ~np.isfinite(leverage) | ~np.isfinite(scale)
        return np.where(open_, 1.0, weight), np.where(open_, 0.0, shift)

    def _note(self, X: Array, y: Array, g: Array, elapsed: Array) -> None:
        """Count rows; when it is due, fit the start anew, or ask anew how large the prior is."""
        state = self.state
        state.clock += int(np.count_nonzero(g))
        state.seen += float(np.sum(g))
        if state.kept is not None:
            state.kept = state.kept.join(X, y, g, elapsed)
        if state.clock < state.due:
            return
        if state.kept is None:
            state.tally.noise = state.tally.find_likely_noise()
        if state.kept is not None and state.clock >= self._n_start:
            self._fit_mode(state.kept, WarmStart(), in_order=True)
            state.learn_in_order_from_now()
        elif state.kept is not None:
            self._fit_mode(state.kept, state.warm_start)
        elif self.fresh.learns_prior:  # with the noise of today
            state.inner = state.inner.with_noise(make_noise(state.tally.scale))
        self._set_due()

    def _set_due(self) -> None:
        n, start = self.state.clock, self._n_start
        if n < start:
            # What flat directions take says nothing: half as many more of the rows beyond, a fourth
            # where they are few for each coefficient, and less where noise and line can hardly be
            # distinguished: there rows that are learned in order are believed too much.
            beyond, p = max(n - self.fresh.n_flat, 0), self._n_told
            share = 2 if n >= ROWS_A_COEFFICIENT * p else 4 if n >= 2 * p else 16
            share = share if n * self._told_by_row >= FEW_TOLD else 16
            wait = max(1, beyond // share) if math.isfinite(self.scale) else 1
            due = self.fresh.n_flat + beyond + wait
            self.state.due = due if due < NEARLY * start else start
        else:
            self.state.due = n + min(n // 4, LONGEST_STRETCH)

    def _fit_mode(
        self, kept: StoredRows, warm_start: WarmStart | None = None, *, in_order: bool = False
    ) -> ModeFit:
        """Know the most probable fit of these rows, and nothing else of them.

        A fit that will stay is also tried under the noise that is likeliest after it.
        """
        tally, discounts = self.state.tally, self._discounts_of_sums(kept.elapsed)

        def fit(noise: WorkingNoise) -> ModeFit:
            problem = self.fresh, noise, tally.known_scale, kept
            return most_probable(*problem, discounts, warm_start, in_order=in_order)

        found = fit(self.likelihood)
        self.state.set_mode(found)
        likely = self.state.tally.find_likely_noise()
        if warm_start is None and not in_order and likely != self.likelihood:
            again = fit(likely)
            if again.log_evidence > found.log_evidence:
                found = again
                self.state.set_mode(found)
            else:
                likely = self.likelihood
        self.state.tally.noise = likely
        return found


def _compute_leverage(predictive: Any, noise: Any) -> Array:
    """Return the part of predictive variances beyond the noise's, relative to the noise's."""
    return np.maximum(predictive.var() * noise.known_precision - 1.0, 0.0)


def _is_same(one: Array, other: Array, scale: Array | float) -> bool:
    with np.errstate(invalid="ignore"):
        moved = np.abs(one - other) > SETTLED * np.minimum(scale, 1e300)
    return not moved.any()
