"""Rows that come together: their mode, or sites that agree, and the prior that they choose.

Where the prior is learned, the sites are found under the node in the middle of the posterior of its
precision, and are then the data of all nodes.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.likelihoods import Likelihood
from posterity.posteriors._site_fit import propagate
from posterity.posteriors._site_mode import Curvature, Fitted, mode, share_of
from posterity.posteriors.gaussian import LinearPosterior

Array = NDArray[np.float64]

# The prior that the evidence chooses, and the mode under it: rounds until they agree.
MOST_ROUNDS = 50
# Changes of the prior, against it, and against all that is known: what moves the mode.
AGREED, UNFELT = 1e-4, 1e-7
ROUGHLY = 1e-2  # of the prior that some of the rows choose


class SiteModel(NamedTuple):
    """A likelihood, and how its sites are found; "either": by moments, or at the mode."""

    likelihood: Likelihood
    approximation: Literal["laplace", "moments", "either"]


def fitted_together(
    inner: LinearPosterior, model: SiteModel, rows: SiteRows
) -> tuple[LinearPosterior, Fitted]:
    """A copy of ``inner`` that has learned the sites of the rows, and the sites."""
    start: Array | None = None
    chosen = inner.central().factor
    share = share_of(len(rows), inner.n_coefficients)
    if inner.learns_prior and share > 1:
        # Some of the rows, each for several, find prior and mode nearly, at little cost.
        _, fitted, chosen = _in_turns(inner, model, rows.every(share), chosen, start, ROUGHLY)
        start = fitted.coefficients
    trial, fitted, _ = _in_turns(inner, model, rows, chosen, start, AGREED)
    if not fitted.settled and model.approximation != "either":
        about = "" if model.likelihood.kinked else " about the mode, as with 'laplace'"
        warnings.warn(
            "expectation propagation did not settle: the posterior is an approximation" + about,
            stacklevel=5,
        )
    return trial, fitted


def _in_turns(
    before: LinearPosterior,
    model: SiteModel,
    rows: SiteRows,
    chosen: Factor,
    start: Array | None,
    agreed: float,
) -> tuple[LinearPosterior, Fitted, Factor]:
    """The rows learned, and the prior that they choose: each given the other, in turns."""
    settled, curvature = True, None
    for _ in range(MOST_ROUNDS):
        fitted = _fitted(chosen, model, rows, start, before.intercept, curvature)
        trial = before.copy()
        target = (fitted.sites.target - rows.offsets)[:, None]
        trial.append(rows.X, target, fitted.sites.precision, rows.elapsed)
        if not trial.learns_prior:
            break
        settled = settled and fitted.settled
        if not settled and not model.likelihood.kinked:
            model = model._replace(approximation="laplace")  # another prior would not help
        start, curvature = fitted.coefficients, fitted.curvature
        central, last = trial.central(), chosen
        chosen = central.prior.copy()
        chosen.merge(before.of_rows.factor)
        if _agree(chosen, last, central.factor, agreed):
            break
    return trial, replace(fitted, settled=settled and fitted.settled), chosen


def _fitted(
    before: Factor,
    model: SiteModel,
    rows: SiteRows,
    start: Array | None,
    intercept: bool,
    curvature: Curvature | None,
) -> Fitted:
    # A kink has no curvature: moments are matched there, from where smooth noise leads.
    fitted = mode(before, model.likelihood.smooth, rows, start, intercept, curvature)
    if model.approximation == "laplace" and not model.likelihood.kinked:
        return fitted
    moments = propagate(before, model.likelihood, rows, fitted, intercept)
    if moments.converged:
        return moments
    return replace(moments if model.likelihood.kinked else fitted, settled=False)


def _agree(prior: Factor, last: Factor, known: Factor, agreed: float) -> bool:
    """Whether another round would change nothing."""
    now, before, whole = (np.square(each.root).sum(axis=0) for each in (prior, last, known))
    moved = np.abs(now - before)
    return bool((moved <= np.maximum(agreed * before, UNFELT * whole)).all())
