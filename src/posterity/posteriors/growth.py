"""Let a posterior have other columns in the middle of a stream.

A feature that never came was 0 in every row. So its column of the data's factor is zero, and a
row and a column of zeros more is exactly what the factor would be had the feature been there from
the start. Functions of features that are sums of those there were have their factor turned. The
prior's part of the new rows is that of a posterior that has seen nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from posterity.aliases import Array
from posterity.factor import Factor
from posterity.factor.grouped import GroupBank
from posterity.factor.grouped_rows import GroupedRows
from posterity.posteriors._contrast_parts import transform_features
from posterity.posteriors._group_samples import read_sample
from posterity.posteriors._softmax_contrasts import Contrasts
from posterity.posteriors.evidence import EvidencePosterior
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.generalized import GeneralizedPosterior
from posterity.posteriors.grouped import GroupedPosterior
from posterity.posteriors.heteroscedastic import HeteroscedasticPosterior
from posterity.posteriors.mixed import MixedPosterior
from posterity.posteriors.new_columns import NewColumns
from posterity.posteriors.softmax import SoftmaxPosterior
from posterity.posteriors.targets import TargetsPosterior


def widen(new: Any, old: Any, columns: NewColumns) -> None:
    """Let ``new``, which has seen nothing and has other columns, know what ``old`` does, in place.

    A posterior of other modules says how by ``widen_from``.
    """
    fill = _WAYS.get(type(old)) or type(new).widen_from
    fill(new, old, columns)


def _widen_linear(new: LinearPosterior, old: LinearPosterior, columns: NewColumns) -> None:
    triangle = columns.place(new.factor, old.factor, old.prior)
    new.factor.set_triangle(triangle, old.factor.count, old.factor.seen)
    if new.tally is not None:
        new.tally[...] = old.tally
    if new.stored_rows is not None and old.stored_rows is not None:
        X = columns.spread(old.stored_rows.X)
        new.stored_rows.__dict__.update(replace(old.stored_rows, X=X).__dict__)


def _widen_mixed(new: MixedPosterior, old: MixedPosterior, columns: NewColumns) -> None:
    new.hypotheses.widen_from(old.hypotheses, columns, widen)


def _widen_evidence(new: EvidencePosterior, old: EvidencePosterior, columns: NewColumns) -> None:
    mine, theirs = new.state, old.state
    _widen_linear(new, old, columns)
    mine.tally = theirs.tally
    mine.clock[0] = theirs.clock[0]
    if mine.scales is not None and theirs.scales is not None:
        mine.scales.count = theirs.scales.count
        mine.scales.mean = columns.spread(theirs.scales.mean)
        mine.scales.squares = columns.spread_squares(theirs.scales.squares)
    # The nodes of the stream do not have the new columns: they are chosen again.
    new.begin_turn()


def _widen_generalized(
    new: GeneralizedPosterior, old: GeneralizedPosterior, columns: NewColumns
) -> None:
    widen(new.inner, old.inner, columns)
    new.statistics.copy_from(replace(old.statistics))
    start = old.statistics.start
    if start is not None:
        X = columns.spread(start.X)
        new.statistics.start = replace(start, X=X)
    skewed = old.statistics.skewed
    if skewed is not None:
        X = columns.spread(skewed.X)
        new.statistics.skewed = replace(skewed, X=X)


def _widen_targets(new: TargetsPosterior, old: TargetsPosterior, columns: NewColumns) -> None:
    widen(new.wide, old.wide, columns)
    for pattern, factor in old.patterns.items():
        wider = new.patterns[pattern] = Factor(new.n_coefficients, len(pattern))
        triangle = columns.place(wider, factor, Factor(old.n_coefficients, len(pattern)))
        wider.set_triangle(triangle, factor.count, factor.seen)


def _widen_heteroscedastic(
    new: HeteroscedasticPosterior, old: HeteroscedasticPosterior, columns: NewColumns
) -> None:
    # The log variance has an intercept whether or not the mean has one.
    with_intercept, its = columns.of_columns(intercept=new.intercept), old.statistics
    rule = new.spread.copy()
    widen(new.mean, old.mean, columns)
    widen(new.spread, old.spread, with_intercept)
    widen(rule, its.rule, with_intercept)
    centre, at = (with_intercept.spread(one) for one in (its.centre, its.at))
    start = its.start
    if start is not None:
        start = replace(start, X=with_intercept.spread(start.X))
    new.statistics.copy_from(replace(its, centre=centre, rule=rule, at=at, start=start))


def _widen_softmax(new: SoftmaxPosterior, old: SoftmaxPosterior, columns: NewColumns) -> None:
    p = old.n_coefficients
    _widen_contrasts(new.contrasts, old.contrasts, columns)
    if old.recent is not None:
        base = new.contrasts.copy()
        _widen_contrasts(base, old.recent.base, columns)
        new.recent = replace(old.recent, base=base, X=columns.spread(old.recent.X))
    new.prior.count, new.prior.scale = old.prior.count, old.prior.scale
    new.prior.center = columns.spread(old.prior.center)
    new.prior.squares = columns.spread_squares(old.prior.squares)
    if old.intercept:
        new.prior.root[0, 0] = old.prior.root[..., 0, 0].ravel()[0]
    if old.strategy is not None:
        new.prior = new.prior.scaled(old.prior.scale)
    if old.intercept:
        # The intercept's prior keeps its center.
        new.prior.root[..., 0, :] = columns.spread(old.prior.root.reshape(-1, p, p)[0, 0])
    new.next_prior_update = old.next_prior_update
    if new.shapes is not None:  # which are others, and stand for no scales of columns
        new.next_prior_update = 0.0
        new.choose_if_due()


def _widen_contrasts(new: Contrasts, old: Contrasts, columns: NewColumns) -> None:
    """Widen each contrast, whose columns stay in order."""
    for mine, theirs, its in zip(new.parts, old.parts, old.places, strict=True):
        matrix: Array = np.kron(np.eye(len(its)), columns.matrix).astype(np.float64)
        mine.copy_from(transform_features(theirs, matrix))
    new.constant, new.log_predictive, new.read = old.constant, old.log_predictive, None


def _widen_grouped(new: GroupedPosterior, old: GroupedPosterior, columns: NewColumns) -> None:
    matrix, span = columns.matrix, None
    if old.sample is not None:
        known = np.eye(len(matrix)) if old.row_space is None else old.row_space.root
        span = Factor(matrix.shape[1])
        span.append(known @ matrix, np.zeros((len(matrix), 1)))
    sample, small = (
        None
        if one is None
        else replace(one, rows=_transform_bank(GroupBank.of(one.rows), matrix).rows())
        for one in map(read_sample, (old.sample, old.small_sample))
    )
    bank, sites = _transform_bank(old.bank, matrix), old.sites and old.sites.in_columns(columns)
    caches: dict[str, Any] = dict.fromkeys(("prior", "read", "newest_reading", "noise_residual"))
    wider = replace(old, belief=new.belief, bank=bank, sites=sites, row_space=span, **caches)
    new.__dict__.update(replace(wider, sample=sample, small_sample=small).__dict__)


def _transform_bank(bank: GroupBank, matrix: Array) -> GroupBank:
    """A bank that has learned ``x @ matrix`` of each row x of all p columns."""
    p, triangles = bank.n_coefficients, bank.triangles
    groups, places = np.nonzero(triangles.any(axis=2))
    known, numbers = triangles[groups, places], groups.astype(np.int32)
    X, y = np.ascontiguousarray(known[:, :p] @ matrix), np.ascontiguousarray(known[:, p])
    new = GroupBank(matrix.shape[1])
    new.grow(bank.size)
    new.learn(GroupedRows(X, y, None, False, numbers, np.arange(bank.size)))
    new.count[:], new.seen[:], new.last[:] = bank.count, bank.seen, bank.last
    new.clock = bank.clock
    return new


_WAYS: dict[type, Callable[[Any, Any, NewColumns], None]] = {
    LinearPosterior: _widen_linear,
    MixedPosterior: _widen_mixed,
    EvidencePosterior: _widen_evidence,
    GeneralizedPosterior: _widen_generalized,
    SoftmaxPosterior: _widen_softmax,
    TargetsPosterior: _widen_targets,
    HeteroscedasticPosterior: _widen_heteroscedastic,
    GroupedPosterior: _widen_grouped,
}

__all__ = ["widen"]
