"""What a regression with heavy-tailed noise knows: a Gaussian factor whose rows were reweighted.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions import MultivariateNormal, MultivariateT, StudentT
from posterity.distributions.row_distribution import RowDistribution
from posterity.factor.usable import check_usable
from posterity.generalized._noise_tally import SUMS, Before, NoiseFading, NoiseTally
from posterity.generalized._row import ReweightedPath
from posterity.generalized._start import (
    Begun,
    Kept,
    has_node,
    most_probable,
    node_of,
    noise_of,
    predicted,
    read_stream,
    rows_until_a_move,
    with_noise,
)
from posterity.generalized._working_noise import Spread, WorkingNoise
from posterity.kernel import RowPath
from posterity.noise import JointOfOne, KnownNoise
from posterity.posteriors import EvidencePosterior, LinearPosterior

Array = NDArray[np.float64]

# Rows that are kept for the start: at least so many, and so many a coefficient.
START_ROWS, START_ROWS_A_COEFFICIENT = 64, 4
# A fit of so large a share of them waits for all.
NEARLY = 0.9
LONGEST_STRETCH = 1024
# In the midst of a stretch the past never fades to less than this.
MOST_FADING = 1e-150
LEAST_DISCOUNT = 1e-12
SETTLED = 1e-10


@dataclass(frozen=True)
class Told:
    """What was said of each row before it: mean, relative leverage, scale, and the scale's df."""

    mean: Array
    leverage: Array
    scale: Array
    df: Array


class ReweightedPosterior:
    """Posterior of [intercept, coefficients] under a :class:`WorkingNoise`.

    ``fresh`` is a posterior that has seen nothing, with noise known at 1, that forgets as it likes;
    ``discounts`` turns elapsed times into what is left of the noise's sums.
    """

    tells_evidence: ClassVar[bool] = True

    # How well a fit knows the scale; None once other rows were learned in order.
    spread: Spread | None = None
    # Where the next fit of the kept rows begins.
    begun: Begun = Begun()

    def __init__(
        self,
        fresh: LinearPosterior,
        noise: WorkingNoise,
        known_scale: float | None,
        discounts: NoiseFading,
    ) -> None:
        self.fresh = fresh
        self.inner = fresh.copy()
        self.noise = noise
        self.discounts = discounts
        self.intercept = fresh.intercept
        self.tally = NoiseTally(noise, known_scale, fresh.n_flat)
        m = fresh.n_coefficients - int(fresh.intercept)
        self.kept: Kept | None = Kept(np.empty((0, m)), np.empty(0), np.empty(0), np.empty(0))
        # Rows so far, and how many there are when the prior, or the start's fit, is due anew.
        self.clock = 0
        self.due = 1
        self.evidence = 0.0
        self.mode_evidence = 0.0
        self._seen = 0.0

    # ---- learning ------------------------------------------------------------------------------

    def copy(self) -> ReweightedPosterior:
        """The same knowledge, to go its own way."""
        twin = object.__new__(type(self))
        twin.__dict__ = self.__dict__ | {"inner": self.inner.copy(), "tally": self.tally.copy()}
        return twin

    def become(self, other: ReweightedPosterior) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.__dict__ = dict(other.__dict__)

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        self.predict_then_learn(X, y, weights, elapsed)

    absorb = append

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> RowDistribution:
        """Learn row after row; returns the distribution of each target before its row."""
        told = self._learn_rows(X, y, weights, elapsed)
        return self.noise.predictive(told.mean, told.leverage, told.scale, told.df)

    def settle(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows at once: their most probable fit. Nothing was learned before."""
        check_usable(X, y)
        g = np.ones(len(X)) if weights is None else weights
        ahead = self.copy()
        ahead._fit(Kept(X, y[:, 0], g, elapsed), self.noise)
        ahead.evidence = ahead.mode_evidence
        ahead.clock = int(np.count_nonzero(g))
        if ahead.clock < ahead._n_start:
            ahead.kept = Kept(X, y[:, 0], g, elapsed)
        else:
            ahead.kept = None
        ahead._set_due()
        self.become(ahead)

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Refuse: weights can't be taken back."""
        raise ValueError(
            "can't unlearn rows under heavy-tailed noise: a row's weight depended on the rows "
            "before it, and weighted those after it; fit the remaining rows again"
        )

    def merge(self, other: ReweightedPosterior) -> None:
        """Learn all that ``other`` learned, with the weights that its rows have there."""
        both = self.copy()
        both.clock += other.clock
        seen = self._seen + other._seen
        if self.kept is not None and other.kept is not None:
            one = other.kept
            both.kept = self.kept.joined(one.X, one.y, one.weights, one.elapsed)
            over = both.clock >= both._n_start
            both._fit(both.kept, self.noise.in_order() if over else self.noise)
        else:
            noise = self.inner.noise
            assert isinstance(noise, KnownNoise)
            both.inner.merge(with_noise(other.inner, noise))
            both.tally.merge(other.tally)
            both._go_on()
        read_stream(both.inner)
        if both.clock >= both._n_start:
            both.kept = None
        both.evidence = self.evidence + other.evidence
        both._seen = seen
        both._set_due()
        self.become(both)

    def same_prior(self, other: object) -> bool:
        """Whether both started from the same belief, so that they can be merged."""
        return (
            type(self) is type(other)
            and isinstance(other, ReweightedPosterior)
            and self.noise == other.noise
            and self.tally.known_scale == other.tally.known_scale
            and self.fresh.same_prior(other.fresh)
        )

    # ---- as one of many ------------------------------------------------------------------------

    def made(self, change: Callable[[LinearPosterior], LinearPosterior]) -> ReweightedPosterior:
        """The same with ``change`` made to what it starts from, as a strategy that forgets does."""
        strategies: list[Any] = []

        def noted(data: LinearPosterior) -> Any:
            changed: Any = change(data)
            strategies.append(changed.strategy)
            return changed

        fresh = self.fresh.made(noted)
        return type(self)(fresh, self.noise, self.tally.known_scale, NoiseFading(strategies[0]))

    def single(self) -> ReweightedPosterior:
        """A copy to be one of many that are averaged."""
        return self.copy()

    def average_of(self, read: Callable[[Any], Any]) -> Any:
        """What ``read`` reads of it: of an ensemble, the weighted average over its members."""
        return read(self)

    def mixture_of(self, read: Callable[[Any], Any]) -> Any:
        """The prediction that ``read`` reads of it: of an ensemble, the mixture."""
        return read(self)

    # ---- reading -------------------------------------------------------------------------------

    @property
    def learns_lean(self) -> bool:
        """Whether nothing is forgotten, and the prior that is learned has one node."""
        return has_node(self.inner) and self.inner.learns_lean

    @property
    def predicts_lean(self) -> bool:
        """Whether one factor predicts."""
        return has_node(self.inner) and node_of(self.inner).predicts_lean

    @property
    def beside(self) -> Sequence[LinearPosterior]:
        """Posteriors that learn the features of every row, with targets 0 and its own weight."""
        return ()

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """What reads, predicts and learns single rows."""
        return cast(RowPath, ReweightedPath(self, names))

    def with_row(
        self, X: Array, y: float, g: float, error: float, leverage: float
    ) -> tuple[float, float, dict[str, Any]]:
        """Weight of a row, how far its target moves, and all else as it is with the row learned.

        The twin of :meth:`_learn_stretch`, in plain numbers.
        """
        tally, leverage = self.tally, max(leverage, 0.0)
        scale = tally.scale
        weight, shift = 1.0, 0.0
        if math.isfinite(leverage) and math.isfinite(scale):
            weight, shift = self.noise.site(error, leverage, scale)
        told = self.noise.log_density_one(error, leverage * self._widened, scale, self._scale_df)
        kept = self.kept
        if kept is not None:
            kept = kept.joined(X, np.array([y]), np.array([g]), np.ones(1))
        state = {
            "tally": tally.with_row(error, leverage, g),
            "evidence": self.evidence + g * told,
            "clock": self.clock + 1,
            "_seen": self._seen + g,
            "kept": kept,
        }
        return weight, shift, state

    def relative(self, X: Array) -> tuple[Array, Array]:
        """Mean (n,) of the line at the rows of ``X``, and its variance over scale^2."""
        mean, leverage = self._raw(X)
        return mean, leverage * self._widened

    def predictive(self, X: Array) -> RowDistribution:
        """Distribution of new observations at the rows of ``X``."""
        mean, leverage = self.relative(X)
        return self.noise.predictive(mean, leverage, self.tally.scale, self._scale_df)

    def core_predictive(self, X: Array) -> StudentT:
        """The same for observations that are no outliers: normal noise of the core's scale."""
        mean, leverage = self.relative(X)
        with np.errstate(invalid="ignore"):
            scale = np.sqrt(self._core**2 + self.tally.scale**2 * leverage)
        return StudentT(self._df, mean, np.where(np.isnan(scale), np.inf, scale))

    def predict_mean(self, X: Array) -> Array:
        """Mean of the line at the rows of ``X``."""
        return node_of(self.inner).predict_mean(X)

    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients]."""
        return node_of(self.inner).coefficients()

    def joint(self, names: tuple[str, ...]) -> JointOfOne:
        """Joint distribution of [intercept, coefficients]: t where the scale is learned."""
        told = node_of(self.inner).joint(names)
        root = told.precision_root * (self._unit / told.scale)  # type: ignore[union-attr]
        if self.tally.known_scale is not None:
            return MultivariateNormal(told.mean, root, self.tally.scale, names=names)
        scale = self.tally.scale * math.sqrt(self._widened)
        df = self.tally.freed if self.spread is None else self.spread.df
        return MultivariateT(max(df, 0.0), told.mean, root, scale, names=names)

    @property
    def prior_precision(self) -> ArrayLike:
        """Prior precision of the coefficients, in the user's units."""
        nodes = read_stream(self.inner)
        if nodes is not None:
            return nodes.choice.precisions[0] / self._prior_unit
        return self.inner.prior_precision

    @property
    def n_coefficients(self) -> int:
        """Coefficients, intercept included."""
        return self.fresh.n_coefficients

    @property
    def n_features(self) -> int:
        """Columns of the rows that it learns."""
        return self.fresh.n_features

    @property
    def n_observations(self) -> float:
        """Sum of the weights of the rows learned."""
        return self._seen

    @property
    def n_effective(self) -> float:
        """What is left of them after forgetting."""
        return self.tally.count

    @property
    def noise_precision(self) -> float:
        """1 / scale^2."""
        scale = self.tally.scale
        return 1.0 / scale**2 if math.isfinite(scale) else math.nan

    @property
    def log_evidence(self) -> float:
        """Log densities of the rows as they came, or Laplace's approximation after a fit."""
        return self.evidence

    # ---- inner ---------------------------------------------------------------------------------

    def _raw(self, X: Array) -> tuple[Array, Array]:
        told = predicted(self.inner, X)
        assert isinstance(self.inner.noise, KnownNoise)
        return told.mean(), _leverage(told, self.inner.noise)

    @property
    def _prior_unit(self) -> float:
        return self.noise.prior_unit

    @property
    def _widened(self) -> float:
        return 1.0 if self.spread is None else self.spread.widened**2

    @property
    def _unit(self) -> float:
        """Scale in whose squares the inner posterior's information is: of its own noise."""
        assert isinstance(self.inner.noise, KnownNoise)
        return self.inner.noise.known_precision**-0.5

    @property
    def _df(self) -> float:
        return math.inf if self.tally.known_scale is not None else max(self.tally.freed, 1.0)

    @property
    def _scale_df(self) -> float:
        """How well the scale is known, where a fit says; after other rows it is plugged in."""
        return math.inf if self.spread is None else self.spread.df

    @property
    def _core(self) -> float:
        return self.tally.core if self.tally.freed > 0.0 else math.inf

    @property
    def _n_start(self) -> int:
        return max(START_ROWS, START_ROWS_A_COEFFICIENT * self.n_coefficients)

    def _learn_rows(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> Told:
        check_usable(X, y)
        g = np.ones(len(X)) if weights is None else weights
        target = y[:, 0]
        ahead = self.copy()
        if ahead.kept is None and len(X):
            ahead._go_on()
        if ahead.clock == 0:
            elapsed = np.where(np.cumsum(g > 0.0) - (g > 0.0) == 0, 0.0, elapsed)
        told: list[Told] = []
        first = 0
        while first < len(X) or not told:
            stop = ahead._stretch(X, g, elapsed, first)
            part = slice(first, stop)
            told.append(ahead._learn_stretch(X[part], target[part], g[part], elapsed[part]))
            first = stop
        read_stream(ahead.inner)
        self.become(ahead)
        return Told(*(np.concatenate(parts) for parts in zip(*map(_fields, told), strict=True)))

    def _stretch(self, X: Array, g: Array, elapsed: Array, first: int) -> int:
        """Where the stretch of rows that starts at ``first`` ends."""
        last = min(first + 2 * LONGEST_STRETCH, len(g))
        rows = np.cumsum(g[first:last] > 0.0)
        stop = first + min(int(np.searchsorted(rows, self.due - self.clock)) + 1, last - first)
        faded = np.cumprod(self._left(elapsed[first:stop]))
        stop = first + max(1, int(np.count_nonzero(faded > MOST_FADING)))
        return first + rows_until_a_move(self.inner, X[first:stop], g[first:stop])

    def _left(self, elapsed: Array) -> Array:
        return np.maximum(self.discounts(elapsed), LEAST_DISCOUNT)

    def _learn_stretch(self, X: Array, y: Array, g: Array, elapsed: Array) -> Told:
        """Learn rows whose weights depend on those before them, until nothing moves."""
        if not len(X):
            return Told(np.empty(0), np.empty(0), np.empty(0), np.empty(0))
        mean, leverage = self._raw(X)
        discounts = self._left(elapsed)
        n = len(X) + 1
        before = Before(np.full(n, self.tally.scale), np.full(n, self.tally.core))
        inner, added = self.inner, np.zeros((len(SUMS), n - 1))
        for _ in range(n + 3):
            error = y - mean
            weight, shift = self._sites(error, leverage, before.scale[:-1])
            added = self.tally.adds(error, leverage, g, before)
            new_before = self.tally.before(added, discounts)
            inner = self.inner.copy()
            told = inner.predict_then_learn(X, (y + shift)[:, None], weight * g, elapsed)
            assert isinstance(inner.noise, KnownNoise)
            new_mean, new_leverage = told.mean(), _leverage(told, inner.noise)
            done = (
                _same(new_mean, mean, before.scale[:-1])
                and _same(new_leverage, leverage, 1.0 + leverage)
                and _same(new_before.scale[:-1], before.scale[:-1], before.scale[:-1])
                and _same(new_before.core[:-1], before.core[:-1], before.core[:-1])
            )
            mean, leverage, before = new_mean, new_leverage, new_before
            if done:
                break
        self.inner, leverage = inner, leverage * self._widened
        scale, df = before.scale[:-1], self._scale_df
        self.evidence += float(g @ self.noise.log_density(y - mean, leverage, scale, df))
        self.tally.learn(added, discounts)
        self._note(X, y, g, elapsed)
        return Told(mean, leverage, scale, np.full(len(y), df))

    def _sites(self, error: Array, leverage: Array, scale: Array) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            weight, shift = self.noise.sites(error, leverage, scale)
        # Where nothing is known of the line or the noise, a row is taken as it is.
        open_ = ~np.isfinite(leverage) | ~np.isfinite(scale)
        return np.where(open_, 1.0, weight), np.where(open_, 0.0, shift)

    def _note(self, X: Array, y: Array, g: Array, elapsed: Array) -> None:
        """Count rows; when it is due, fit the start anew, or ask anew how large the prior is."""
        self.clock += int(np.count_nonzero(g))
        self._seen += float(np.sum(g))
        if self.kept is not None:
            self.kept = self.kept.joined(X, y, g, elapsed)
        if self.clock < self.due:
            return
        if self.kept is not None and self.clock >= self._n_start:
            self._fit(self.kept, self.noise.in_order(), Begun())
            self._go_on()
        elif self.kept is not None:
            self._fit(self.kept, self.noise, self.begun)
        else:
            self._refresh()
        self._set_due()

    def _set_due(self) -> None:
        n, start = self.clock, self._n_start
        if n < start:
            # What flat directions take says nothing: half as many more of the rows beyond.
            beyond = max(n - self.fresh.n_flat, 0)
            due = self.fresh.n_flat + beyond + max(1, beyond // 2)
            self.due = due if due < NEARLY * start else start
        else:
            self.due = n + min(n // 4, LONGEST_STRETCH)

    def _refresh(self) -> None:
        """Give the inner posterior the noise scale of today, to choose its prior by."""
        if isinstance(self.inner, EvidencePosterior):
            self.inner = with_noise(self.inner, noise_of(self.tally.scale))

    def _fit(self, kept: Kept, noise: WorkingNoise, begun: Begun | None = None) -> None:
        """The most probable fit of these rows, and nothing else."""
        discounts = self._left(kept.elapsed)
        found = most_probable(self.fresh, noise, self.tally.known_scale, kept, discounts, begun)
        self._seen = float(np.sum(kept.weights))
        self.begun = found.begun
        self.inner, self.mode_evidence = found.inner, found.log_evidence
        if found.mode is None:
            self.tally.count, self.tally.spread, self.spread = found.rows.total, 0.0, None
        else:
            self.spread = found.spread
            scale = found.mode.scale if found.spread is None else found.spread.scale
            self.tally.settle(found.rows, found.mode, scale)

    def _go_on(self) -> None:
        """From now on rows are learned in order."""
        self.kept, self.spread, self.begun = None, None, Begun()


def _leverage(told: RowDistribution, noise: KnownNoise) -> Array:
    """What a predictive variance says beyond the noise's own, relative to it."""
    return np.maximum(told.var() * noise.known_precision - 1.0, 0.0)


def _same(one: Array, other: Array, scale: Array | float) -> bool:
    with np.errstate(invalid="ignore"):
        moved = np.abs(one - other) > SETTLED * np.minimum(scale, 1e300)
    return not moved.any()


def _fields(told: Told) -> tuple[Array, Array, Array, Array]:
    return told.mean, told.leverage, told.scale, told.df
