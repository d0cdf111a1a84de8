"""A posterior under any likelihood: every observation is a Gaussian row, its site."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from posterity.aliases import Array
from posterity.distributions import Normal
from posterity.distributions.bent_normal import NODES, SHARES
from posterity.distributions.mixing import mix_exactly
from posterity.distributions.row_distribution import RowDistribution
from posterity.evidence.secant import SecantSteps
from posterity.factor import Factor
from posterity.factor.rows import SiteRows, as_targets
from posterity.factor.sites import SiteCode
from posterity.kernel import RowPath, SitePath, fading_counts
from posterity.likelihoods import Likelihood
from posterity.noise import LOG_2PI
from posterity.posteriors._joint_fit import (
    Approximation,
    NearFit,
    SiteModel,
    fit_sites_together,
)
from posterity.posteriors._near_mode import PRIOR_TOLERANCE
from posterity.posteriors._parameter_nodes import fit_at_nodes
from posterity.posteriors._pearson import compute_pearson_dispersion
from posterity.posteriors._reads import read_along
from posterity.posteriors._removal import weigh_rest
from posterity.posteriors._site_fit import compute_cavity
from posterity.posteriors._site_mode import choose_stride
from posterity.posteriors._site_removal import remove_sites
from posterity.posteriors._site_rows import (
    LearnedSites,
    join_learned_sites,
    learn_rows,
)
from posterity.posteriors._site_start import StartRows, are_few, count_rows_until
from posterity.posteriors._site_statistics import SiteStatistics
from posterity.posteriors._skewed import MOST_VALUES, SkewedRows
from posterity.posteriors._skewed_reads import CorrectsSkewness
from posterity.posteriors.ensemble import (
    HAS_VARIANCE,
    clip_log_densities,
    predict_and_score_rows,
    predict_members,
    rank_next_row,
)
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.joint_parameters import begin_to_learn
from posterity.posteriors.memory import Memory
from posterity.posteriors.phi import BelievedRows

# Rows that members of an average predict at once, at most: more would not stay in the cache.
MOST_ROWS_AT_ONCE = 100
# Rounds in which sites and the likelihood's parameter agree; fewer for rows that will be fitted
# again soon. Standard deviations apart at which they agree nearly, and well enough for these: in
# few rounds, and in more.
MOST_ROUNDS, FEW_ROUNDS, NEARLY, FOR_NOW, NO_LONGER = 20, 3, 0.3, 0.15, 1.0
# Rows that come together whose parameters are found at nodes: more of them are nearly Gaussian.
MOST_AT_NODES = 400
# Share of what is known of a row's eta that it told itself, beyond which the rest is rounding.
MOST_LED, TINY = 0.98, 1e-290


@dataclass(frozen=True)
class GeneralizedPosterior(CorrectsSkewness):
    """Gaussian posterior of [intercept, coefficients] under any likelihood of y given eta = x.w.

    ``inner`` is any posterior with known noise of precision 1: it learns the site rows, forgets
    and learns its prior as it always does. Rows that come one after another have their sites found
    once (assumed-density filtering); rows that come together are iterated to the mode ("laplace")
    or until their sites agree ("moments": expectation propagation; so too for kinked noise, which
    has no curvature), with what was known before as the prior. ``offsets`` (n,) are added to eta,
    known and without a coefficient.

    An intercept with a flat prior is exactly flat in :meth:`fit`. Rows that come one after another
    can have no site while nothing at all is known of their eta: the first of them is then believed
    to be Normal(0, 10^2), once for each open direction. So too in :meth:`fit` where all targets
    leave eta open, as counts that are all 0 do.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.likelihoods import Bernoulli
    >>> from posterity.noise import KnownNoise
    >>> from posterity.priors import GaussianPrior
    >>> inner = LinearPosterior.before_data(
    ...     GaussianPrior(0.0, 0.1), KnownNoise(1.0), 1, intercept=False
    ... )
    >>> posterior = GeneralizedPosterior.wrap(inner, Bernoulli(), "moments")
    >>> posterior.fit(np.ones((3, 1)), np.ones((3, 1)), None, np.zeros(3))
    >>> posterior.predictive(np.array([[10.0]])).mean().round(2)
    array([0.96])
    """

    likelihood: Likelihood
    approximation: Approximation
    inner: LinearPosterior
    statistics: SiteStatistics = field(default_factory=SiteStatistics, repr=False)
    keeps_start: bool = False

    rows_leave_no_trace: ClassVar[bool] = False

    # The weights of the rows that it learned, and what is left of them after forgetting.
    n_observations = read_along("statistics.seen")
    n_effective = read_along("statistics.effective")
    # What is known of the coefficients, and of the prior.
    memory: ClassVar[Any] = read_along("inner.memory")  # type: ignore[misc]
    coefficients = read_along("marginal.coefficients")
    joint = read_along("marginal.joint")
    parts = read_along("marginal.parts")
    prior_precision = read_along("inner.prior_precision")
    learns_prior = read_along("inner.learns_prior")
    is_settled = read_along("inner.is_settled")
    begin_turn = read_along("inner.begin_turn")
    wait = read_along("inner.wait")
    n_flat = read_along("inner.n_flat")
    # What the site rows alone say, and of which features they say nothing.
    without_prior = read_along("inner.without_prior")
    keep = read_along("inner.keep")
    never_varied = read_along("inner.never_varied")
    unseen_effects = read_along("inner.unseen_effects")

    @classmethod
    def wrap(
        cls,
        inner: LinearPosterior,
        likelihood: Likelihood,
        approximation: Approximation,
        *,
        keeps_start: bool = False,
        learns_parameter: bool = False,
    ) -> Self:
        """Begin from a posterior that has not seen any rows."""
        if approximation not in ("laplace", "moments"):
            raise ValueError(
                f"approximation is {approximation!r}: it must be 'laplace' or 'moments'"
            )
        inner = inner.with_one_node(rests=False)
        phi = begin_to_learn(likelihood, inner.n_coefficients) if learns_parameter else None
        return cls(
            inner.belief,
            inner.noise,
            inner.intercept,
            inner.prior,
            inner.factor,
            likelihood,
            approximation,
            inner,
            SiteStatistics(phi=phi),
            keeps_start=keeps_start,
        )

    def copy(self) -> Self:
        """An independent copy."""
        return self._with(self.inner.copy(), replace(self.statistics))

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        self.inner.copy_from(other.inner)
        self.statistics.copy_from(other.statistics)

    def with_averages(self) -> Self:
        """The same, to average over the posterior of rows that come together; in shared memory."""
        stays = self.memory.forgets or self.approximation == "laplace"
        return self if stays else replace(self, approximation="averages")

    def with_memory(self, memory: Memory) -> Self:
        """The same, whose site rows are forgotten."""
        return self._with(self.inner.with_memory(memory), self._nothing())

    def _with(self, inner: LinearPosterior, statistics: SiteStatistics) -> Self:
        return self._copy_with(factor=inner.factor, inner=inner, statistics=statistics)

    # ---- learning ------------------------------------------------------------------------------

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` for targets (n, k) that the likelihood does not know."""
        self.likelihood.check_targets(as_targets(y))

    def absorb(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        self.predict_then_learn(X, y, weights, elapsed)

    def predict_then_learn(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> Any:
        """Learn row after row; returns the distribution of each target before its row."""
        return self.predict_from_moments(self.learn_in_order(X, y, weights, elapsed, offsets))

    def learn_in_order(self, *rows: Any) -> LearnedSites:
        """Learn row after row; returns what was believed of each eta before, and its site."""
        return join_learned_sites(self._in_order(self._check_rows(*rows)))

    def remove(
        self, X: Array, y: Array, weights: Array | None, offsets: Array | None = None
    ) -> None:
        """Unlearn rows: remove the sites that they have in the present posterior.

        Exact for the row that was learned last, and but for what the others' sites would become
        for rows of a fit. Raises ``ValueError`` when they can't have been learned.
        """
        self.memory.check_removal()
        rows = self._check_rows(X, y, weights, None, offsets)
        rows = rows[rows.weights > 0.0]
        statistics, rest = self.statistics, weigh_rest(self.n_observations, rows.total)
        if not rest:
            self.keep(Factor(self.n_coefficients), len(rows))
            statistics.copy_from(self._nothing())
            return
        if statistics.start is not None:
            trial, kept = self.copy(), statistics.start.without(rows)
            trial._fit_again(kept)
            trial.statistics.start = kept.fitted()
            self.copy_from(trial)
            return
        together = statistics.together == statistics.seen
        left, precision, logs = remove_sites(
            self.inner.without_prior().factor,
            self.inner.central(),
            SiteModel(self.known, self._choose_approximation(together)),
            rows,
            together=together,
        )
        self.keep(left, round(rows.total))
        statistics.seen = statistics.effective = rest
        statistics.log_sites -= float(np.sum(logs + 0.5 * LOG_2PI * precision))
        statistics.together = -1.0
        if statistics.skewed is not None:
            statistics.skewed = statistics.skewed.without(rows) or None
        if statistics.phi is not None:
            self._settle(statistics.phi.unlearn(self.likelihood, self._believe(rows)))

    def merge(self, other: Self) -> None:
        """Learn the rows of ``other`` where it keeps them, else its site rows as it found them.

        The prior counts once.
        """
        if self._merge_start(other):
            return
        mine, its = self.statistics, other.statistics
        theirs = other.inner.copy()
        if mine.phi is not None and its.phi is not None:
            mine.log_sites += its.phi.move_to(mine.phi, theirs)
        self.inner.merge(theirs)
        mine.log_sites += its.log_sites
        mine.seen += its.seen
        mine.effective += its.effective
        mine.log_predictive += its.log_predictive
        if mine.phi is not None and its.phi is not None:
            self._settle(mine.phi.merge(its.phi, self.likelihood))
        if its.skewed is not None:
            self._keep_skewed(its.skewed)

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior and learn in the same way."""
        return (
            type(self) is type(other)
            and self.likelihood == other.likelihood
            and (self.statistics.phi is None) == (other.statistics.phi is None)
            and self.approximation == other.approximation
            and self.inner.has_same_prior(other.inner)
        )

    # ---- reading -------------------------------------------------------------------------------

    @property
    def has_fast_learn_one(self) -> bool:
        """True if compiled code knows the likelihood, and one factor learns the site rows."""
        waits = self.keeps_first_rows and self.statistics.start is None
        return self._has_site_path and self.inner.memory.compiles_sites and not waits

    @property
    def has_fast_predict_one(self) -> bool:  # type: ignore[override]
        """True if one factor predicts: of a learned prior the stream's, once rows come in order.

        So too where rows are kept because the posterior is skewed.
        """
        known = self.statistics.phi is None
        return self._has_site_path and not (self._corrects_rows or self.is_settled) and known

    @property
    def scores_rows(self) -> bool:  # type: ignore[override]
        """True if a row adds to the evidence how its path predicted it: where rows fade."""
        return self.memory.forgets and self.has_fast_learn_one and self.has_fast_predict_one

    @property
    def _has_site_path(self) -> bool:
        """True if compiled code knows the likelihood, and one factor learns the site rows."""
        one = self.inner.memory.compiles_sites or not self.learns_prior
        return one and self.likelihood.kernel_code is not None

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """The compiled path, a :class:`SitePath` where it predicts at least; else it only reads."""
        code, inner = self.known.kernel_code, self.inner
        if code is None or not self._has_site_path:
            return Factor(self.n_coefficients).row_path(self.intercept, names)
        site, phi = SiteCode(*code, self.approximation == "moments"), self.statistics.phi
        nodes = None if phi is None else phi.compile_nodes(self.likelihood)
        how = site, self.statistics, self.likelihood, nodes
        return inner.open_path(SitePath, names, *how)

    def linear_predictor(self, X: Array, offsets: Array | None = None) -> RowDistribution:
        """Distribution of eta at the rows of ``X``."""
        mean, variance = self.marginal.linear_moments(X)
        shift = 0.0 if offsets is None else offsets
        return self.correct(self._add_ones(X), Normal(mean + shift, np.sqrt(variance)), shift)

    def predictive(self, X: Array, offsets: Array | None = None) -> Any:
        """Distribution of new targets at the rows of ``X``."""
        mean, variance = self.inner.linear_moments(X)
        shift = np.zeros(len(X)) if offsets is None else offsets
        normal = self._predict(
            self.known, mean + shift, variance, self._spread(self.inner.central, X)
        )
        skewed, some = self._find_skewed(self._add_ones(X), np.sqrt(variance), of_rows=True)
        if not skewed.any():
            return normal
        points, exact = np.zeros((len(X), len(NODES))), np.zeros(len(X))
        points[skewed] = some + shift[skewed, None]
        parts = [normal, *(self._predict(self.known, each, exact) for each in points.T)]
        weights = np.concatenate([~skewed[:, None], np.outer(skewed, SHARES)], axis=1)
        return mix_exactly(parts, weights)

    @property
    def marginal(self) -> LinearPosterior:
        """What is known of the coefficients, whatever the likelihood's parameters are."""
        phi = self.statistics.phi
        return self.inner if phi is None else phi.marginalize(self.inner)

    @property
    def pearson(self) -> tuple[float, float]:
        """Pearson's dispersion of the site rows; see ``compute_pearson_dispersion``."""
        return compute_pearson_dispersion(self.inner, self.n_effective)

    @property
    def log_evidence(self) -> float:
        """Log p(y) of the approximation, or of the rows as they came where they are forgotten.

        The first rows of a stream are fitted together again. Flat directions have density 1.
        """
        if self.memory.forgets:
            return self.statistics.log_predictive
        again = self._fit_start_again()
        return again.statistics.log_sites + again.inner.log_evidence

    @property
    def keeps_first_rows(self) -> bool:
        """True if rows that come one after another are kept, to be fitted together again."""
        return self.n_flat <= int(self.intercept) and super().keeps_first_rows

    @property
    def joins_batches(self) -> bool:  # type: ignore[override]
        """True if few rows could leave open how parameters and coefficients grow together."""
        phi = self.statistics.phi
        return phi is not None and phi.moves_coefficients

    # ---- inner ---------------------------------------------------------------------------------

    def _count_until_turn(self, n: int) -> int:
        phi = self.statistics.phi
        return n if phi is None else phi.n_missing

    def _compute_variance(self, X: Array) -> Array:
        return self.inner.linear_moments(X)[1]

    def _learn_at_once(self, rows: SiteRows) -> None:
        few = self.keeps_first_rows and are_few(rows)
        way = self.with_averages() if few else self  # as when they are fitted again
        way._close(rows)
        way._together(rows)

    def _fit_again(self, start: StartRows) -> None:
        statistics, rows, before = self.statistics, start.rows, replace(self.statistics)
        self.keep(Factor(self.n_coefficients), len(rows))
        statistics.copy_from(self._nothing())
        way = self.with_averages()  # as a fit does
        if start.closed:
            way._close(rows)
        way._together(rows, before.phi and before.phi.search_from(statistics.phi))
        statistics.log_predictive = before.log_predictive
        statistics.together = -1.0  # single rows are predicted as the stream does

    def _learn_each(self, rows: SiteRows) -> LearnedSites:
        inner, nothing = self.inner, np.empty(0)
        spread = self._spread(inner.central_ahead, rows.X)
        next_ones = rows.X[: count_rows_until(rows.weights, 1)]
        ahead = inner.linear_moments(next_ones) if inner.is_settled else (nothing, nothing)
        # Predictive densities add up to the evidence: that saves a sum for every row.
        adds_up = inner.is_plain and inner.factor.rank == inner.n_coefficients
        before = inner.log_evidence if adds_up else math.nan
        learned = learn_rows(inner, self.known, self.approximation, rows)
        precision, log_sites = learned.sites.precision, float(np.sum(learned.sites.log_normalizer))
        if adds_up:
            log_scale = log_sites - (inner.log_evidence - before)
            log_scale -= 0.5 * LOG_2PI * float(np.sum(precision))
        else:
            log_scale = float(np.sum(learned.log_scale))
        self._count(rows, precision, log_scale)
        self.statistics.log_predictive += log_sites
        phi, told = self.statistics.phi, learned.told_ahead(*ahead, rows.offsets)
        if phi is None:
            return told
        self._settle(phi.learn(self.likelihood, self._gather(rows, learned.mean, learned.variance)))
        value = np.full((len(rows), *np.shape(phi.value)), phi.value)
        return replace(told, parameter=value, spread=spread)

    def _count(self, rows: SiteRows, precision: Array, log_scale: float) -> None:
        """Add rows to the statistics, once ``inner`` has learned their sites."""
        statistics, inner = self.statistics, self.inner
        statistics.log_sites += log_scale + 0.5 * LOG_2PI * float(np.sum(precision))
        statistics.seen += float(np.sum(rows.weights))
        if self.memory.forgets and inner.memory.only_discounts:
            left = inner.memory.discounts(rows.elapsed)
            faded = fading_counts(statistics.effective, len(rows), rows.weights, left)
            statistics.effective = float(faded[-1])
        elif self.memory.forgets and inner.n_observations > 0.0:
            # As much of the rows as of what their sites say.
            statistics.effective = statistics.seen * inner.n_effective / inner.n_observations
        else:
            statistics.effective = statistics.seen

    def predict_from_moments(self, learned: LearnedSites) -> Any:
        """Distribution of targets by what was believed of their eta before they were learned."""
        known = self.likelihood
        if learned.parameter is not None:
            known = known.with_parameter(learned.parameter)
        return self._predict(known, learned.mean, learned.variance, learned.spread)

    def _predict(
        self, known: Likelihood, mean: Array, variance: Array, spread: Array | None = None
    ) -> Any:
        if not known.is_noise:
            # As little as is believed of eta when the first row is learned.
            variance = np.where(np.isinf(variance), known.vague_variance, variance)
        if spread is None:
            return known.predictive(mean, variance)
        points = ((self.likelihood.with_parameter(at[:, 1:]), mean + at[:, 0]) for at in spread)
        parts = [one.predictive(centre, variance) for one, centre in points]
        return mix_exactly(parts, np.full(len(parts), 1.0 / len(parts)))

    def _spread(self, find_node: Any, X: Array) -> Array | None:
        phi = self.statistics.phi
        return None if phi is None else phi.spread(find_node, X)

    def _settle(self, phi: Any, before: Any = None) -> None:
        """Know this of the parameter, and the coefficients with it."""
        self.statistics.phi, gain = phi.settle_in(self.inner, before)
        self.statistics.log_sites += gain

    def _nothing(self) -> SiteStatistics:
        """What is known before any rows."""
        learns = self.statistics.phi is not None
        phi = begin_to_learn(self.likelihood, self.n_coefficients) if learns else None
        return SiteStatistics(phi=phi)

    def _believe(self, rows: SiteRows, precision: Any = 0.0, shift: Any = 0.0) -> BelievedRows:
        """Rows, and what is believed of their eta without sites of this precision and shift."""
        mean, variance = self.inner.linear_moments(rows.X)
        return self._gather(rows, *compute_cavity(mean + rows.offsets, variance, precision, shift))

    def _gather(self, rows: SiteRows, mean: Array, variance: Array) -> BelievedRows:
        # Coefficients that move are no longer those that parameters met.
        beside = () if self.memory.forgets else (rows.X, rows.offsets)
        return BelievedRows(rows.y, mean, variance, rows.weights, *beside)

    def _choose_approximation(self, together: bool) -> Approximation:
        """Return how the sites of the rows were found, which those fitted together may know."""
        if together and self.statistics.averaged:
            return "averages"
        return "laplace" if together and self.statistics.at_mode else self.approximation

    def _together(self, rows: SiteRows, near: Any = None) -> None:
        """Learn rows together; the search for the parameter begins ``near``."""
        far = self.known.flat_far_out and self.approximation != "laplace"  # a mode is near
        if far or self.known.is_open(rows.y):
            self._close(rows)  # a flat prior would leave nothing that ends
        if self.statistics.phi is None:
            fit = self._fit_sites(rows)
        else:
            trial, fit = self._find_parameter(rows, near)
            self.copy_from(trial)
        if self._keeps_skewed_rows and rows.X.size <= MOST_VALUES:
            self._keep_skewed(SkewedRows.of(rows, fit.fitted.sites))

    def _find_parameter(self, rows: SiteRows, near: Any) -> tuple[Self, NearFit]:
        """A copy that has learned rows together, as well as they ask for; and their fit."""
        phi, way, at_nodes = self.statistics.phi, self, False
        if phi.moves_coefficients:
            way = self.copy()
            way._close(rows)
            is_open = self.known.is_open(rows.y)  # no average over all ends
            way = replace(way, approximation="moments") if is_open else way
            first = self.statistics.seen == 0.0  # later ones meet what was found so
            at_nodes = first and not is_open and len(rows) <= MOST_AT_NODES
        if near is not None:
            return way._fit_with_parameter(rows, near, FOR_NOW)[:2]
        trial, fit, _ = way._fit_with_parameter(rows, phi)
        if at_nodes:
            found = trial.statistics.phi
            trial = fit_at_nodes(found, phi, lambda one: way._fit_given(rows, one, fit)[0])
        return trial, fit

    def _fit_with_parameter(
        self, rows: SiteRows, near: Any, within: float = 0.0
    ) -> tuple[Self, NearFit, SecantSteps]:
        """A copy that has learned rows together, sites and parameter in turns; fit and last steps.

        Sites and their prior go only one step, until the parameter nearly agrees with the last one;
        in the end to rounding, or at once ``within`` standard deviations.
        """
        phi, share = self.statistics.phi, choose_stride(len(rows), self.n_coefficients)
        fit: Any = None
        rough = not within
        steps = SecantSteps(near=1.0, shortest=0.1, longest=2.0, least=0.1)
        if share > 1:  # some of the rows, with larger weights, find it approximately
            few, fit, steps = self._fit_with_parameter(rows.thin(share), near)
            near, steps = few.statistics.phi, steps.restart()
        for number in range(MOST_ROUNDS):
            agreed = math.inf if rough or within else PRIOR_TOLERANCE
            tried = self._fit_given(rows, near, fit, agreed)
            if number and fit.fitted.averaged and not tried[1].fitted.averaged:
                break  # averages have run away: the last ones are kept
            trial, fit = tried
            sites = fit.fitted.sites
            # Equal rows are others to each other. One that leads alone leaves nothing but rounding.
            precision = sites.precision / np.maximum(rows.weights, 1.0)
            variance = np.maximum(trial.inner.linear_moments(rows.X)[1], TINY)
            precision = np.minimum(precision, MOST_LED / variance)
            rows_without = trial._believe(rows, precision, precision * sites.target)
            last, (near, integrate) = near, phi.learn_together(self.likelihood, near, rows_without)
            trial._settle(near, phi)
            near = trial.statistics.phi
            within = within and (within if number < FEW_ROUNDS else NO_LONGER)
            if near.agrees_with(last, within, steps.rate) and not rough:
                break
            nearly = near.agrees_with(last, NEARLY / steps.rate)
            rough = rough and number < MOST_ROUNDS // 2 and not nearly
            near, steps = near.extrapolate(last, steps)
        trial.statistics.log_sites += integrate()
        return trial, fit, steps

    def _fit_given(self, rows: SiteRows, phi: Any, *how: Any) -> tuple[Self, NearFit]:
        """A copy that has learned rows together given the parameter, and their fit."""
        trial = self.copy()
        trial.statistics.phi = phi
        trial.statistics.log_sites += self.statistics.phi.move_to(phi, trial.inner)
        return trial, trial._fit_sites(rows, *how)

    def _fit_sites(self, rows: SiteRows, *how: Any) -> NearFit:
        model = SiteModel(self.known, self.approximation)
        with np.errstate(over="ignore"):  # of averages that run away
            trial, fitted = fit_sites_together(self.inner, model, rows, *how)
        first = self.statistics.seen == 0.0
        self.inner.copy_from(trial)
        self._count(rows, fitted.sites.precision, fitted.log_scale)
        self.statistics.together = self.statistics.seen if first else -1.0
        self.statistics.at_mode = self.approximation == "laplace" or not fitted.averaged
        self.statistics.averaged = fitted.averaged
        return NearFit(fitted, rows, trial.factor)


@predict_and_score_rows.register
def _predict_and_score(member: GeneralizedPosterior, *rows: Any) -> tuple[Any, Array]:
    """Return predictions and log densities, by which the members are weighted."""
    learned = member.learn_in_order(*rows)
    return member.predict_from_moments(learned), clip_log_densities(learned.sites.log_normalizer)


@rank_next_row.register
def _rank_ahead(member: GeneralizedPosterior) -> int:
    """Return the rank of every prediction: each has a spread, however little is known of eta."""
    return HAS_VARIANCE


@predict_members.register
def _predict_at_once(
    first: GeneralizedPosterior, members: Sequence[Any], X: Array, *offsets: Array
) -> list[Any]:
    """Ask the likelihood once for all: of a few rows that takes as long as for one member."""
    n, known = len(X), [one.statistics for one in members]
    if n > MOST_ROWS_AT_ONCE or any(one.phi is not None or one.skewed is not None for one in known):
        return [one.predictive(X, *offsets) for one in members]
    mean, variance = np.stack([one.inner.linear_moments(X) for one in members], axis=1)
    told = first._predict(first.known, np.ravel(mean + sum(offsets)), np.ravel(variance))
    return [told[start : start + n] for start in range(0, len(members) * n, n)]
