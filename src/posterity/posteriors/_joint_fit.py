"""Rows that come together: their mode, averages or moments, and the prior that they choose.

Where the prior is learned, the sites are found under the node in the middle of the posterior of its
precision, and are then the data of all nodes.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from posterity.evidence.secant import SecantSteps
from posterity.factor import Factor
from posterity.factor.gram import ROUGH_CONDITION, Products
from posterity.factor.rows import SiteRows
from posterity.likelihoods import Likelihood, Sites
from posterity.posteriors._averaged_fit import (
    MOST_PRIOR_ROUNDS,
    SMALL_VARIANCE,
    average_near_mode,
    average_sites,
    learn_near_mode,
    leaves_coefficient_open,
    leaves_scale_open,
)
from posterity.posteriors._site_fit import TOLERANCE as SITE_TOLERANCE
from posterity.posteriors._site_fit import propagate_expectations
from posterity.posteriors._site_mode import (
    Convergence,
    Curvature,
    Fitted,
    are_many,
    choose_stride,
    find_mode,
    find_near_mode,
)
from posterity.posteriors.gaussian import LinearPosterior

Array = NDArray[np.float64]

# The prior that the evidence chooses, and the mode under it: rounds until they agree.
MOST_ROUNDS, MOST_STALLED, LESS = 50, 5, 0.95
# Tolerance of the prior's change, relative to the prior; and the share of the total precision
# below which a prior is not counted in it, as it can't move the mode.
PRIOR_TOLERANCE, NEGLIGIBLE_SHARE = 1e-4, 1e-3
# Tolerances of the expected change in another round, extrapolated from the last ones: of the
# result, of its starting values, of a fit to some of the rows, and of what averages begin at.
TOLERANCE, START_TOLERANCE, THINNED_TOLERANCE, ROUGH_TOLERANCE = 5e-7, 1e-2, 3e-2, 1e-3
# Tolerance of sites, relative to the prior's change; at most; and at most for a result.
SITE_TO_PRIOR_TOLERANCE, LARGEST_SITE_TOLERANCE, RESULT_SITE_TOLERANCE = 3e-2, 1e-2, 1e-5
# Values in rows from which their products take less time than their rotations.
MANY_VALUES = 2**16
# Squared decrement of the mode that averages start from, and of one whose likelihood still moves.
START_DECREMENT, ROUGH_DECREMENT = 1e-12, 1e-6
# The mode and its curvature are at least so near while the prior moves: where rows are many times
# as many as coefficients, so that a curvature costs more than a choice of the prior, and else.
FAR, NEAR = 1.0, 0.003


# How the sites of rows are found. "averages": from the mode on, over the posterior.
Approximation = Literal["laplace", "moments", "averages"]


class SiteModel(NamedTuple):
    """A likelihood, and how its sites are found."""

    likelihood: Likelihood
    approximation: Approximation

    @property
    def at_mode(self) -> bool:
        """True if the sites are those at the posterior mode, or found from these."""
        return self.approximation in ("laplace", "averages") and not self.likelihood.kinked

    @property
    def averages(self) -> bool:
        """True if the sites are averages: at a kink are none, and Gaussian sites are the same."""
        exact = self.likelihood.is_gaussian or self.likelihood.kinked
        return self.approximation == "averages" and not exact

    def averages_many(self, share: int) -> bool:
        """True if sites of many rows, of which every ``share``-th begins, are averages near a mode.

        Those of noise are searched for in another way, as few rows' are.
        """
        return self.averages and share > 1 and not self.likelihood.is_noise

    def choose_for(self, variance: Array) -> SiteModel:
        """The same, at the mode where each eta is known so well that this is as good."""
        if variance.max(initial=0.0) < SMALL_VARIANCE:
            return self._replace(approximation="laplace")
        return self


class NearFit(NamedTuple):
    """A fit of the same rows under another parameter, or of some of them; all learned by then."""

    fitted: Fitted
    rows: SiteRows
    learned: Factor


class WarmStart(NamedTuple):
    """The posterior before the rows, under a prior; a start for the mode, and curvature near it.

    ``sites`` are those that agreed in the last round. ``change`` is that of the prior in that
    round, and ``rate`` that over the one before. ``level`` is the logarithm of the prior's
    precision: sites follow the prior, and the prior the sites, so that it takes longer ``steps``.
    For so many rounds, ``stalled``, the change was not clearly below the ``least`` one.
    ``of_sites`` is the factor of the rows that chose the prior.
    """

    prior: Factor
    level: float
    start: Array | None = None
    curvature: Curvature | None = None
    change: float = math.inf
    rate: float = 1.0
    sites: Sites | None = None
    steps: SecantSteps = SecantSteps()
    least: float = math.inf
    stalled: int = 0
    of_sites: Factor | None = None

    @property
    def is_stalled(self) -> bool:
        """True if more rounds would bring nothing: a prior that is drawn moves without end."""
        return self.stalled >= MOST_STALLED

    @classmethod
    def of(cls, inner: LinearPosterior) -> WarmStart:
        """Return the start of the first round: the prior of ``inner``."""
        central = inner.central()
        change = math.inf if inner.learns_prior else 0.0
        return cls(central.factor, _compute_level(central.prior), change=change)

    @property
    def ahead(self) -> float:
        """The change that another round would bring."""
        return self.change * self.rate

    def continue_from(
        self,
        before: LinearPosterior,
        of_sites: Factor,
        start: Array | None,
        near: Curvature | None,
        rows: SiteRows,
    ) -> WarmStart:
        """The next, under the prior that these sites choose, unless that holds nothing."""
        known = before.factor
        chosen = before.choose_prior(of_sites.combine(known))
        prior = chosen.combine(known)
        if leaves_coefficient_open(prior.combine(of_sites), of_sites.count, rows):
            return self._replace(start=start, curvature=near, sites=None, stalled=MOST_STALLED)
        change = _relative_change(prior, self.prior, of_sites, int(before.intercept))
        rate = change / self.change if 0.0 < self.change < math.inf else self.rate
        move = _compute_level(chosen) - self.level
        step, steps = self.steps.lengthen(move)
        if step != move:
            chosen.scale(math.exp(step - move))
            prior = chosen.combine(known)
        level = self.level + step
        nearer = change < LESS * self.least
        stalled, least = (0, change) if nearer else (self.stalled + 1, self.least)
        return WarmStart(
            prior, level, start, near, change, min(rate, 1.0), None, steps, least, stalled, of_sites
        )


def fit_sites_together(
    inner: LinearPosterior,
    model: SiteModel,
    rows: SiteRows,
    near: NearFit | None = None,
    agreed: float = PRIOR_TOLERANCE,
) -> tuple[LinearPosterior, Fitted]:
    """A copy of ``inner`` that has learned the sites of the rows, and the sites.

    They are searched for from a fit ``near``, if there is one.
    They and the prior have ``agreed`` where its change is no more than this.
    """
    share, rough = choose_stride(len(rows), inner.n_coefficients), agreed == math.inf
    begun, most = _begin(inner, model, rows, near, share), 1 if rough else MOST_PRIOR_ROUNDS
    searched, averaged = None, None
    if near is not None and near.rows is rows:
        if near.fitted.averaged:  # nearly right averages need no mode to start from
            averaged = average_sites(inner, begun.prior, model.likelihood, rows, near.fitted, most)
        elif model.averages and share > 1:  # the mode was as good a moment ago
            model = model._replace(approximation="laplace")
    elif near is None and model.at_mode and (inner.learns_prior or model.averages_many(share)):
        searched, averaged, model = _search_from_mode(inner, model, rows, begun, agreed)
    if averaged is not None:
        return averaged
    settle = _alternate_prior_and_mode if searched is None else _settle_near_mode
    # Averages follow the prior themselves: a rough one is enough to begin with.
    roughly = max(agreed, ROUGH_TOLERANCE) if model.averages else agreed
    fitted, begun = settle(inner, model, rows, searched or begun, roughly)
    if model.averages:
        if fitted.converged:
            averaged = average_sites(inner, begun.prior, model.likelihood, rows, fitted, most)
        if averaged is not None:
            return averaged
        fitted, begun = settle(inner, model, rows, begun, agreed)
    if not fitted.settled:
        about = "" if model.likelihood.kinked else " about the mode, as with 'laplace'"
        warnings.warn(
            "expectation propagation did not converge: the posterior is an approximation" + about,
            stacklevel=5,
        )
    trial, target = inner.copy(), (fitted.sites.target - rows.offsets)[:, None]
    trial.append_sites(rows.X, target, fitted.sites.precision, rows)
    return trial, fitted


def _begin(
    inner: LinearPosterior, model: SiteModel, rows: SiteRows, near: NearFit | None, share: int
) -> WarmStart:
    """Where to begin: at a fit ``near``, or where every ``share``-th row leads."""
    begun = WarmStart.of(inner)
    if near is not None:
        fitted, chosen = near.fitted, inner.choose_prior(near.learned)
        known, count = chosen.combine(near.learned), near.learned.count
        if not leaves_coefficient_open(known, count, rows):
            begun = WarmStart(chosen.combine(inner.factor), _compute_level(chosen))
        begun = begun._replace(start=fitted.coefficients)
        if near.rows is rows:
            curvature = fitted.curvature and replace(fitted.curvature, ended=None)
            begun = begun._replace(curvature=curvature, sites=fitted.sites)
        return begun
    if share == 1 or not (inner.learns_prior or model.averages_many(share)):
        return begun
    few = rows.thin(share)  # with larger weights, they find prior and mode approximately
    found = None
    if model.at_mode:
        found = _search_near_mode(inner, model, few, begun, THINNED_TOLERANCE)
    if found is None:
        found = _alternate_prior_and_mode(inner, model, few, begun, THINNED_TOLERANCE)[1]
    near_mode = found.curvature
    if near_mode is not None and found.start is not None:
        near_mode = near_mode.at(rows, found.start, inner.intercept)
    return WarmStart(found.prior, found.level, found.start, near_mode, rate=found.rate)


def _search_from_mode(
    inner: LinearPosterior, model: SiteModel, rows: SiteRows, begun: WarmStart, agreed: float
) -> tuple[WarmStart | None, tuple[LinearPosterior, Fitted] | None, SiteModel]:
    """Prior and mode by products, the averages near it, and how the sites of the mode are found.

    None where products have not the digits, and where averages are not found so.
    """
    searched = _search_near_mode(inner, model, rows, begun, START_TOLERANCE)
    if searched is None:
        return None, None, model
    many = model.averages_many(choose_stride(len(rows), inner.n_coefficients))
    if many and searched.of_sites is not None:
        near_mode = learn_near_mode(inner, rows, searched.of_sites)
        variance = near_mode.linear_moments(rows.X)[1]
        averaged = average_near_mode(inner, model.likelihood, rows, near_mode, variance)
        if averaged is not None:
            return searched, averaged, model
        model = model.choose_for(variance)
    return searched, None, model


def _settle_near_mode(
    before: LinearPosterior, model: SiteModel, rows: SiteRows, found: WarmStart, agreed: float
) -> tuple[Fitted, WarmStart]:
    """The sites of the mode, and the prior that they choose, from where both were ``found``."""
    if before.learns_prior and agreed <= START_TOLERANCE:
        ahead = TOLERANCE if agreed <= PRIOR_TOLERANCE else agreed
        found = _search_near_mode(before, model, rows, found, ahead) or found
    rough = agreed == math.inf
    return _fit_under_prior(found, model, rows, before.intercept, 0.0, rough), found


def _search_near_mode(
    before: LinearPosterior,
    model: SiteModel,
    rows: SiteRows,
    begun: WarmStart,
    agreed: float,
) -> WarmStart | None:
    """Search for prior and mode by products of the site rows; None where they have not the digits.

    So it is where rows are fewer than coefficients. While the prior still moves, the mode and its
    curvature need be no nearer.
    """
    if len(rows) < before.n_coefficients:
        return None
    farthest = FAR if are_many(len(rows), before.n_coefficients) else NEAR
    for _ in range(MOST_ROUNDS):
        move = min(max(begun.change, 10.0 * agreed), farthest)
        near = find_near_mode(
            begun.prior,
            model.likelihood,
            rows,
            begun.start,
            before.intercept,
            begun.curvature,
            Convergence(move**2, move),
        )
        if near is None:
            return None
        begun = begun.continue_from(before, *near, rows)
        if begun.ahead <= agreed or begun.change <= PRIOR_TOLERANCE or begun.is_stalled:
            break
    return begun


def _alternate_prior_and_mode(
    before: LinearPosterior,
    model: SiteModel,
    rows: SiteRows,
    begun: WarmStart,
    agreed: float = PRIOR_TOLERANCE,
) -> tuple[Fitted, WarmStart]:
    """The sites of the rows, and the prior that they choose: each given the other, in turns."""
    settled, last = True, None
    for _ in range(MOST_ROUNDS):
        # While the prior still moves, sites need no more precision than it has.
        near = min(
            max(SITE_TO_PRIOR_TOLERANCE * begun.change, SITE_TOLERANCE), LARGEST_SITE_TOLERANCE
        )
        near = SITE_TOLERANCE if model.at_mode or not before.learns_prior else near
        fitted = _fit_under_prior(begun, model, rows, before.intercept, near, agreed == math.inf)
        if last is not None and not fitted.settled:
            return last  # better sites that agree under the last prior than a mode under this one
        if not before.learns_prior:
            break
        if last is not None and leaves_scale_open(begun.prior, fitted.sites.precision, rows):
            return last
        settled = settled and fitted.settled
        if not settled and not model.likelihood.kinked:
            model = model._replace(approximation="laplace")  # another prior would not help
        under, of_sites = begun, _summarize_sites(before, fitted.sites, rows)
        begun = begun.continue_from(before, of_sites, fitted.coefficients, fitted.curvature, rows)
        if settled and not model.at_mode:
            begun = begun._replace(sites=fitted.sites)
            if not model.likelihood.kinked:
                last = fitted, begun._replace(prior=under.prior)
        agree = begun.change <= agreed or (
            begun.change <= START_TOLERANCE and begun.ahead <= TOLERANCE
        )
        close = near <= max(RESULT_SITE_TOLERANCE, SITE_TO_PRIOR_TOLERANCE * agreed)
        if (agree and close) or begun.is_stalled:
            break
    return replace(fitted, settled=settled and fitted.settled), begun


def _summarize_sites(before: LinearPosterior, sites: Sites, rows: SiteRows) -> Factor:
    """A factor of the site rows alone; of many rows by products, where these have the digits."""
    target, precision = sites.target - rows.offsets, sites.precision
    if rows.X.size >= MANY_VALUES:
        products = Products.of(rows.X, target, precision, intercept=before.intercept)
        triangle = products.triangle(ROUGH_CONDITION)
        if triangle is not None:
            return Factor.of(triangle, float(np.sum(precision)))
    factor = Factor(before.n_coefficients)
    factor.append(rows.X, target[:, None], precision, intercept=before.intercept)
    return factor


def _fit_under_prior(
    begun: WarmStart, model: SiteModel, rows: SiteRows, intercept: bool, near: float, rough: bool
) -> Fitted:
    before, likelihood = begun.prior, model.likelihood
    if begun.sites is not None and not model.at_mode:
        moments = propagate_expectations(before, likelihood, rows, begun.sites, intercept, near)
        if moments.converged:
            return moments
    # A kink has no curvature: moments are matched there, starting from a fit with smooth noise.
    close = ROUGH_DECREMENT if rough else START_DECREMENT if model.averages else 0.0
    fitted = find_mode(
        before, likelihood.smooth, rows, begun.start, intercept, begun.curvature, close
    )
    if model.at_mode:
        return fitted
    moments = propagate_expectations(before, likelihood, rows, fitted.sites, intercept, near)
    if moments.converged:
        return replace(moments, curvature=fitted.curvature)
    return replace(moments if likelihood.kinked else fitted, settled=False)


def _compute_level(prior: Factor) -> float:
    """Return the logarithm of a prior's precision: of the coefficient in the middle."""
    diagonal = np.abs(np.diagonal(prior.root))
    known = sorted(diagonal[diagonal > 0.0].tolist())
    return 2.0 * math.log(known[len(known) // 2]) if known else 0.0


def _relative_change(prior: Factor, last: Factor, of_sites: Factor, flat: int) -> float:
    """The largest change of a prior precision, relative to it or, where less, to all known.

    That is of features about their means, where ``flat`` is 1, for an intercept's column.
    """
    now, before = (np.square(each.root[flat:]).sum(axis=0) for each in (prior, last))
    whole = now + np.square(of_sites.root[flat:]).sum(axis=0)
    moved, felt = np.abs(now - before), np.maximum(before, NEGLIGIBLE_SHARE * whole)
    return float((moved / np.where(felt > 0.0, felt, 1.0)).max(initial=0.0))
