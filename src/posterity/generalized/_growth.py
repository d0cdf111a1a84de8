"""Give a model features that it has not met so far, in the middle of a stream.

A feature that never came was 0 in every row. So its column of the data's factor is zero, and a
row and a column of zeros more is exactly what the factor would be had the feature been there from
the start. The prior's part of the new rows is that of a model that has seen nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor
from posterity.generalized._classifier import Classifier
from posterity.linear.base import LinearModel
from posterity.posteriors import (
    AdaptivePosterior,
    AveragedPosterior,
    EvidencePosterior,
    FadingPosterior,
    GeneralizedPosterior,
    LinearPosterior,
    WindowPosterior,
)
from posterity.posteriors._softmax_contrasts import Contrasts
from posterity.posteriors.dispersed import DispersedPosterior
from posterity.posteriors.refitted import RefittedPosterior
from posterity.posteriors.softmax import SoftmaxPosterior

Array = NDArray[np.float64]
Model = TypeVar("Model", bound=LinearModel)


def widen_model(model: Model, n_more: int) -> Model:
    """A model that knows what ``model`` does, and has ``n_more`` features behind the others.

    Raises ``ValueError`` under a strategy that can't take features later.

    Examples
    --------
    >>> from posterity import BayesianLinearRegression
    >>> settings = {"prior_precision": 1.0, "fit_intercept": False}
    >>> early = BayesianLinearRegression(**settings).fit([[1.0], [2.0]], [1.0, 3.0])
    >>> late = widen_model(early, 1).partial_fit([[1.0, 1.0]], [2.0])
    >>> rows = [[1.0, 0.0], [2.0, 0.0], [1.0, 1.0]]
    >>> whole = BayesianLinearRegression(**settings).fit(rows, [1.0, 3.0, 2.0])
    >>> bool(np.allclose(late.coef_, whole.coef_))
    True
    """
    fresh: Any = model._copy_unfitted()
    fresh._set_features(model.n_features_in_ + n_more, None)
    if isinstance(model, Classifier):
        fresh.classes_, fresh._flipped = model.classes_, model._flipped
    fresh._start()
    _copy_into(fresh._posterior_or_none, model._posterior_or_none)
    fresh._now = model._now
    return fresh


def _copy_into(new: Any, old: Any) -> None:
    """Let ``new``, which has seen nothing, know what ``old`` does, in place."""
    fill = _WAYS.get(type(old))
    if fill is None:
        name = type(getattr(old, "strategy", old)).__name__
        raise ValueError(
            f"under {name} features can't join later: give every row all of them from the "
            "start, 0.0 where one is absent, or use another way to forget"
        )
    fill(new, old)


def _widen_linear(new: LinearPosterior, old: LinearPosterior) -> None:
    p = old.n_coefficients
    triangle = new.factor.triangle.copy()  # of the prior: what it says of the features that are new
    _place(triangle, old.factor, np.arange(p), new.n_coefficients)
    new.factor.set_triangle(triangle, old.factor.count, old.factor.seen)


def _widen_fading(new: FadingPosterior, old: FadingPosterior) -> None:
    _widen_linear(new, old)
    new.tally[...] = old.tally


def _widen_window(new: WindowPosterior, old: WindowPosterior) -> None:
    _widen_linear(new, old)
    n_more = new.n_coefficients - old.n_coefficients
    new.stored_rows.__dict__.update(
        replace(old.stored_rows, X=_pad(old.stored_rows.X, n_more)).__dict__
    )


def _widen_refitted(new: RefittedPosterior, old: RefittedPosterior) -> None:
    new.take_rows(old.state, lambda y: y, new.n_coefficients - old.n_coefficients)


def _widen_averaged(new: AveragedPosterior, old: AveragedPosterior) -> None:
    # Memories must be longer with more coefficients: each member goes on with its place in the
    # grid, at the discount that the place has from now on.
    for mine, theirs in zip(new.runs, old.runs, strict=True):
        _copy_into(mine, theirs)
    new.expert_weights.__dict__.update(copy.deepcopy(old.expert_weights).__dict__)


def _widen_adaptive(new: AdaptivePosterior, old: AdaptivePosterior) -> None:
    _widen_averaged(new, old)
    for mine, theirs in zip(new.noises, old.noises, strict=True):
        mine.copy_from(theirs)


def _widen_evidence(new: EvidencePosterior, old: EvidencePosterior) -> None:
    mine, theirs = new.state, old.state
    _copy_into(mine.data, theirs.data)
    mine.tally = theirs.tally
    mine.clock[0] = theirs.clock[0]
    if mine.scales is not None and theirs.scales is not None:
        n_more = len(new.mean) - len(old.mean)
        mine.scales.count = theirs.scales.count
        mine.scales.mean = _pad(theirs.scales.mean, n_more)
        mine.scales.squares = _pad(theirs.scales.squares, n_more)
    # The nodes of the stream do not have the new features: they are chosen again.
    new.stream.begin_anew()


def _widen_generalized(new: GeneralizedPosterior, old: GeneralizedPosterior) -> None:
    _copy_into(new.inner, old.inner)
    new.statistics.copy_from(replace(old.statistics))
    start, more = old.statistics.start, new.n_coefficients - old.n_coefficients
    if start is not None:
        new.statistics.start = replace(start, X=_pad(start.X, more))


def _widen_dispersed(new: DispersedPosterior, old: DispersedPosterior) -> None:
    _copy_into(new.counts, old.counts)
    new.spread.copy_from(old.spread.copy())


def _widen_softmax(new: SoftmaxPosterior, old: SoftmaxPosterior) -> None:
    p, wider = old.n_coefficients, new.n_coefficients
    _widen_contrasts(new.contrasts, old.contrasts)
    if old.recent is not None:
        base = new.contrasts.copy()
        _widen_contrasts(base, old.recent.base)
        new.recent = replace(old.recent, base=base, X=_pad(old.recent.X, wider - p))
    new.prior.count, new.prior.scale = old.prior.count, old.prior.scale
    new.prior.center = _pad(old.prior.center, wider - p)
    new.prior.squares = _pad(old.prior.squares, wider - p)
    if old.intercept:
        new.prior.root[0, 0] = old.prior.root[..., 0, 0].ravel()[0]
    if old.strategy is not None:
        new.prior = new.prior.scaled(old.prior.scale)
    if old.intercept:
        # The intercept's prior keeps its center.
        new.prior.root[..., 0, :] = _pad(old.prior.root.reshape(-1, p, p)[0, 0], wider - p)
    new.next_prior_update = old.next_prior_update


def _widen_contrasts(new: Contrasts, old: Contrasts) -> None:
    """Widen each contrast, whose columns stay in order."""
    columns = np.eye(old.n_columns, new.n_columns)
    for mine, theirs, places in zip(new.parts, old.parts, old.places, strict=True):
        matrix: Array = np.kron(np.eye(len(places)), columns).astype(np.float64)
        mine.copy_from(theirs.transform_features(matrix))
    new.constant, new.log_predictive, new.read = old.constant, old.log_predictive, None


def _place(triangle: Array, factor: Factor, columns: NDArray[np.intp], p: int) -> None:
    """Put the factor's root and moments into these columns of a larger triangle."""
    k = factor.n_targets
    triangle[np.ix_(columns, columns)] = factor.root
    triangle[columns, p : p + k] = factor.moments
    triangle[p:, p : p + k] = factor.residual_root


def _pad(array: Array, n_more: int) -> Array:
    """The array with so many zeros more at the end of its last axis."""
    return np.concatenate([array, np.zeros((*array.shape[:-1], n_more))], axis=-1)


_WAYS: dict[type, Callable[[Any, Any], None]] = {
    LinearPosterior: _widen_linear,
    FadingPosterior: _widen_fading,
    WindowPosterior: _widen_window,
    RefittedPosterior: _widen_refitted,
    AveragedPosterior: _widen_averaged,
    AdaptivePosterior: _widen_adaptive,
    EvidencePosterior: _widen_evidence,
    GeneralizedPosterior: _widen_generalized,
    DispersedPosterior: _widen_dispersed,
    SoftmaxPosterior: _widen_softmax,
}
