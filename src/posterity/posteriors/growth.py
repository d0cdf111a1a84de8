"""Let a posterior know features that it has not met so far, in the middle of a stream.

A feature that never came was 0 in every row. So its column of the data's factor is zero, and a
row and a column of zeros more is exactly what the factor would be had the feature been there from
the start. The prior's part of the new rows is that of a posterior that has seen nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor
from posterity.posteriors._contrast_parts import transform_features
from posterity.posteriors._softmax_contrasts import Contrasts
from posterity.posteriors.evidence import EvidencePosterior
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.generalized import GeneralizedPosterior
from posterity.posteriors.heteroscedastic import HeteroscedasticPosterior
from posterity.posteriors.mixed import MixedPosterior
from posterity.posteriors.softmax import SoftmaxPosterior
from posterity.posteriors.targets import TargetsPosterior

Array = NDArray[np.float64]
Places = NDArray[np.intp]


def widen(new: Any, old: Any, places: Places) -> None:
    """Let ``new``, which has seen nothing and has more features, know what ``old`` does, in place.

    ``places`` (p,) says where the columns of ``old``, with any intercept, are in ``new``; they
    come in the same order. A posterior of other modules says how by ``widen_from``. Raises
    ``ValueError`` where there is no such way.
    """
    fill = _WAYS.get(type(old)) or getattr(type(new), "widen_from", None)
    if fill is None:
        raise ValueError(
            f"features can't join a {type(old).__name__} later: give every row all of them from "
            "the start, 0.0 where one is absent"
        )
    fill(new, old, places)


def _widen_linear(new: LinearPosterior, old: LinearPosterior, places: Places) -> None:
    triangle = new.factor.triangle.copy()  # of the prior: what it says of the features that are new
    place(triangle, old.factor, places)
    new.factor.set_triangle(triangle, old.factor.count, old.factor.seen)
    if new.tally is not None:
        new.tally[...] = old.tally
    if new.stored_rows is not None and old.stored_rows is not None:
        X = spread_columns(old.stored_rows.X, places, new.n_coefficients)
        new.stored_rows.__dict__.update(replace(old.stored_rows, X=X).__dict__)


def _widen_mixed(new: MixedPosterior, old: MixedPosterior, places: Places) -> None:
    new.hypotheses.widen_from(old.hypotheses, places, widen)


def _widen_evidence(new: EvidencePosterior, old: EvidencePosterior, places: Places) -> None:
    mine, theirs = new.state, old.state
    _widen_linear(new, old, places)
    mine.tally = theirs.tally
    mine.clock[0] = theirs.clock[0]
    if mine.scales is not None and theirs.scales is not None:
        p = new.n_coefficients
        mine.scales.count = theirs.scales.count
        mine.scales.mean = spread_columns(theirs.scales.mean, places, p)
        mine.scales.squares = spread_columns(theirs.scales.squares, places, p)
    # The nodes of the stream do not have the new features: they are chosen again.
    new.begin_turn()


def _widen_generalized(
    new: GeneralizedPosterior, old: GeneralizedPosterior, places: Places
) -> None:
    widen(new.inner, old.inner, places)
    new.statistics.copy_from(replace(old.statistics))
    start = old.statistics.start
    if start is not None:
        X = spread_columns(start.X, places, new.n_coefficients)
        new.statistics.start = replace(start, X=X)
    skewed = old.statistics.skewed
    if skewed is not None:
        X = spread_columns(skewed.X, places, new.n_coefficients)
        new.statistics.skewed = replace(skewed, X=X)


def _widen_targets(new: TargetsPosterior, old: TargetsPosterior, places: Places) -> None:
    widen(new.wide, old.wide, places)
    for pattern, factor in old.patterns.items():
        wider = new.patterns[pattern] = Factor(new.n_coefficients, len(pattern))
        triangle = wider.triangle.copy()
        place(triangle, factor, places)
        wider.set_triangle(triangle, factor.count, factor.seen)


def _widen_heteroscedastic(
    new: HeteroscedasticPosterior, old: HeteroscedasticPosterior, places: Places
) -> None:
    # The log variance has an intercept whether or not the mean has one.
    intercept, p = int(new.intercept), new.n_coefficients - int(new.intercept)
    features = places[intercept:] - intercept
    all_places, its = np.concatenate([[0], features + 1]), old.statistics
    rule = new.spread.copy()
    widen(new.mean, old.mean, places)
    widen(new.spread, old.spread, all_places)
    widen(rule, its.rule, all_places)
    centre, at = (spread_columns(one, features, p) for one in (its.centre, its.at))
    start = its.start
    if start is not None:
        start = replace(start, X=spread_columns(start.X, features, p))
    new.statistics.copy_from(replace(its, centre=centre, rule=rule, at=at, start=start))


def _widen_softmax(new: SoftmaxPosterior, old: SoftmaxPosterior, places: Places) -> None:
    p, wider = old.n_coefficients, new.n_coefficients
    _widen_contrasts(new.contrasts, old.contrasts, places)
    if old.recent is not None:
        base = new.contrasts.copy()
        _widen_contrasts(base, old.recent.base, places)
        new.recent = replace(old.recent, base=base, X=spread_columns(old.recent.X, places, wider))
    new.prior.count, new.prior.scale = old.prior.count, old.prior.scale
    new.prior.center = spread_columns(old.prior.center, places, wider)
    new.prior.squares = spread_columns(old.prior.squares, places, wider)
    if old.intercept:
        new.prior.root[0, 0] = old.prior.root[..., 0, 0].ravel()[0]
    if old.strategy is not None:
        new.prior = new.prior.scaled(old.prior.scale)
    if old.intercept:
        # The intercept's prior keeps its center.
        new.prior.root[..., 0, :] = spread_columns(
            old.prior.root.reshape(-1, p, p)[0, 0], places, wider
        )
    new.next_prior_update = old.next_prior_update


def _widen_contrasts(new: Contrasts, old: Contrasts, places: Places) -> None:
    """Widen each contrast, whose columns stay in order."""
    columns = np.eye(new.n_columns)[places]
    for mine, theirs, its in zip(new.parts, old.parts, old.places, strict=True):
        matrix: Array = np.kron(np.eye(len(its)), columns).astype(np.float64)
        mine.copy_from(transform_features(theirs, matrix))
    new.constant, new.log_predictive, new.read = old.constant, old.log_predictive, None


def place(triangle: Array, factor: Factor, columns: Places) -> None:
    """Put the factor's root and moments into these columns of a larger triangle."""
    k, p = factor.n_targets, len(triangle) - factor.n_targets
    triangle[np.ix_(columns, columns)] = factor.root
    triangle[columns, p : p + k] = factor.moments
    triangle[p:, p : p + k] = factor.residual_root


def spread_columns(array: Array, places: Places, p: int) -> Array:
    """The array with zeros for new columns, of ``p`` in all, in its last axis."""
    without = len(places) - array.shape[-1]
    spread = np.zeros((*array.shape[:-1], p - without))
    spread[..., places[without:] - without] = array
    return spread


_WAYS: dict[type, Callable[[Any, Any, Places], None]] = {
    LinearPosterior: _widen_linear,
    MixedPosterior: _widen_mixed,
    EvidencePosterior: _widen_evidence,
    GeneralizedPosterior: _widen_generalized,
    SoftmaxPosterior: _widen_softmax,
    TargetsPosterior: _widen_targets,
    HeteroscedasticPosterior: _widen_heteroscedastic,
}

__all__ = ["place", "spread_columns", "widen"]
