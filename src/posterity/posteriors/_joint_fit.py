"""Rows that come together: their mode, averages or moments, and the prior that they choose.

Where the prior is learned, the sites are found under the node in the middle of the posterior of its
precision, and are then the data of all nodes.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Literal, NamedTuple

from posterity.aliases import Array
from posterity.factor import Factor
from posterity.factor.gram import ROUGH_CONDITION
from posterity.factor.rows import SiteRows
from posterity.factor.sites import summarize_sites
from posterity.likelihoods import Likelihood
from posterity.posteriors._averaged_fit import (
    MOST_PRIOR_ROUNDS,
    SMALL_VARIANCE,
    average_near_mode,
    average_sites,
    learn_near_mode,
    leaves_scale_open,
)
from posterity.posteriors._near_mode import (
    ANSWER,
    FEW,
    MANY,
    MOST_ROUNDS,
    PRIOR_TOLERANCE,
    START_TOLERANCE,
    THINNED,
    TOLERANCE,
    WarmStart,
    compute_level,
    leaves_coefficient_open,
    search_near_mode,
)
from posterity.posteriors._site_fit import TOLERANCE as SITE_TOLERANCE
from posterity.posteriors._site_fit import propagate_expectations
from posterity.posteriors._site_mode import (
    Fitted,
    ModeSearch,
    choose_stride,
    find_mode,
)
from posterity.posteriors.gaussian import LinearPosterior

# Tolerances of the prior's change in a fit to some of the rows, and of what averages begin at.
THINNED_TOLERANCE, ROUGH_TOLERANCE = 3e-2, 1e-3
# Tolerance of sites, relative to the prior's change; at most; and at most for a result.
SITE_TO_PRIOR_TOLERANCE, LARGEST_SITE_TOLERANCE, RESULT_SITE_TOLERANCE = 3e-2, 1e-2, 1e-5
# Squared decrement of the mode that averages start from, and of one whose likelihood still moves.
START_DECREMENT, ROUGH_DECREMENT = 1e-12, 1e-6

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
        searched, averaged, model = _search_from_mode(inner, model, rows, begun)
    if averaged is not None:
        return averaged
    # Averages follow the prior themselves: a rough one is enough to begin with.
    roughly = max(agreed, ROUGH_TOLERANCE) if model.averages else agreed
    if searched is None:
        fitted, begun = _alternate_prior_and_mode(inner, model, rows, begun, roughly)
    else:
        begun = searched
        fitted = _fit_under_prior(begun, model, rows, inner.intercept, 0.0, rough)
    if model.averages:
        if fitted.converged:
            averaged = average_sites(inner, begun.prior, model.likelihood, rows, fitted, most)
        if averaged is not None:
            return averaged
        fitted, begun = _alternate_prior_and_mode(inner, model, rows, begun, agreed)
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
            begun = WarmStart(chosen.combine(inner.factor), compute_level(chosen))
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
        found = search_near_mode(inner, model.likelihood, few, begun, THINNED)
    if found is None:
        found = _alternate_prior_and_mode(inner, model, few, begun, THINNED_TOLERANCE)[1]
    return found._replace(curvature=found.curvature and found.curvature.of_some(), sites=None)


def _search_from_mode(
    inner: LinearPosterior, model: SiteModel, rows: SiteRows, begun: WarmStart
) -> tuple[WarmStart | None, tuple[LinearPosterior, Fitted] | None, SiteModel]:
    """Prior and mode by products; the answer, if they tell it; and how it is found if not.

    The first is None where products have not the digits.
    """
    share = choose_stride(len(rows), inner.n_coefficients)
    alone = share == 1 or not inner.needs_products_only  # or each row has to be learned
    searched = search_near_mode(inner, model.likelihood, rows, begun, FEW if alone else MANY)
    if searched is None or searched.of_sites is None or alone:
        return searched, None, model
    if model.averages_many(share):
        near_mode = learn_near_mode(inner, rows, searched.of_sites)
        known = searched.prior.combine(searched.of_sites)
        variance = known.predict(rows.X, intercept=inner.intercept)[1]
        averaged = average_near_mode(inner, model.likelihood, rows, near_mode, variance)
        if averaged is not None:
            return searched, averaged, model
        model = model.choose_for(variance)
    if model.averages or searched.is_stalled:
        nearer = search_near_mode(inner, model.likelihood, rows, searched, FEW)
        return nearer or searched, None, model
    exactly = search_near_mode(inner, model.likelihood, rows, searched, ANSWER)
    if exactly is None or exactly.is_stalled or exactly.of_sites is None or exactly.start is None:
        return searched, None, model
    search = ModeSearch(exactly.prior, model.likelihood, rows, inner.intercept)
    search.curvature = exactly.curvature
    fitted = search.read_sites(search.look(exactly.start), converged=True)
    return exactly, (learn_near_mode(inner, rows, exactly.of_sites), fitted), model


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
        under, sites = begun, (fitted.sites.precision, fitted.sites.target - rows.offsets)
        of_sites = summarize_sites(rows.X, *sites, before.intercept, ROUGH_CONDITION)
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
