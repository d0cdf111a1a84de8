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
from posterity.posteriors.softmax import SoftmaxPosterior

Array = NDArray[np.float64]
Model = TypeVar("Model", bound=LinearModel)


def widened(model: Model, n_more: int) -> Model:
    """A model that knows what ``model`` does, and has ``n_more`` features behind the others.

    Raises ``ValueError`` under a strategy that can't take features later.

    Examples
    --------
    >>> from posterity import BayesianLinearRegression
    >>> settings = {"prior_precision": 1.0, "fit_intercept": False}
    >>> early = BayesianLinearRegression(**settings).fit([[1.0], [2.0]], [1.0, 3.0])
    >>> late = widened(early, 1).partial_fit([[1.0, 1.0]], [2.0])
    >>> rows = [[1.0, 0.0], [2.0, 0.0], [1.0, 1.0]]
    >>> whole = BayesianLinearRegression(**settings).fit(rows, [1.0, 3.0, 2.0])
    >>> bool(np.allclose(late.coef_, whole.coef_))
    True
    """
    fresh: Any = model._fresh()
    fresh._set_features(model.n_features_in_ + n_more, None)
    if isinstance(model, Classifier):
        fresh.classes_, fresh._flipped = model.classes_, model._flipped
    fresh._start()
    _fill(fresh._posterior_or_none, model._posterior_or_none)
    fresh._now = model._now
    return fresh


def _fill(new: Any, old: Any) -> None:
    """Let ``new``, which has seen nothing, know what ``old`` does, in place."""
    fill = _WAYS.get(type(old))
    if fill is None:
        name = type(getattr(old, "strategy", old)).__name__
        raise ValueError(
            f"under {name} features can't join later: give every row all of them from the "
            "start, 0.0 where one is absent, or use another way to forget"
        )
    fill(new, old)


def _linear(new: LinearPosterior, old: LinearPosterior) -> None:
    p = old.n_coefficients
    triangle = new.factor.triangle.copy()  # of the prior: what it says of the features that are new
    _place(triangle, old.factor, np.arange(p), new.n_coefficients)
    new.factor.commit(triangle, old.factor.count, old.factor.seen)


def _fading(new: FadingPosterior, old: FadingPosterior) -> None:
    _linear(new, old)
    new.tally[...] = old.tally


def _window(new: WindowPosterior, old: WindowPosterior) -> None:
    _linear(new, old)
    n_more = new.n_coefficients - old.n_coefficients
    new.kept.__dict__.update(replace(old.kept, X=_padded(old.kept.X, n_more)).__dict__)


def _averaged(new: AveragedPosterior, old: AveragedPosterior) -> None:
    # Memories must be longer with more coefficients: each member goes on with its place in the
    # grid, at the discount that the place has from now on.
    for mine, theirs in zip(new.runs, old.runs, strict=True):
        _fill(mine, theirs)
    new.expert_weights.__dict__.update(copy.deepcopy(old.expert_weights).__dict__)


def _adaptive(new: AdaptivePosterior, old: AdaptivePosterior) -> None:
    _averaged(new, old)
    for mine, theirs in zip(new.noises, old.noises, strict=True):
        mine.copy_from(theirs)


def _evidence(new: EvidencePosterior, old: EvidencePosterior) -> None:
    mine, theirs = new.state, old.state
    _fill(mine.data, theirs.data)
    mine.tally = theirs.tally
    mine.clock[0] = theirs.clock[0]
    if mine.scales is not None and theirs.scales is not None:
        n_more = len(new.mean) - len(old.mean)
        mine.scales.count = theirs.scales.count
        mine.scales.mean = _padded(theirs.scales.mean, n_more)
        mine.scales.squares = _padded(theirs.scales.squares, n_more)
    # The nodes of the stream, which know nothing of the new features, are chosen anew.
    new.stream.begin_anew()


def _generalized(new: GeneralizedPosterior, old: GeneralizedPosterior) -> None:
    _fill(new.inner, old.inner)
    new.statistics.copy_from(replace(old.statistics))
    start, more = old.statistics.start, new.n_coefficients - old.n_coefficients
    if start is not None:
        new.statistics.start = replace(start, X=_padded(start.X, more))


def _dispersed(new: DispersedPosterior, old: DispersedPosterior) -> None:
    _fill(new.counts, old.counts)
    new.spread.copy_from(old.spread.copy())


def _softmax(new: SoftmaxPosterior, old: SoftmaxPosterior) -> None:
    p, wider = old.n_coefficients, new.n_coefficients
    _wider_contrasts(new.contrasts, old.contrasts)
    if old.recent is not None:
        base = new.contrasts.copy()
        _wider_contrasts(base, old.recent.base)
        new.recent = replace(old.recent, base=base, X=_padded(old.recent.X, wider - p))
    new.prior.count, new.prior.scale = old.prior.count, old.prior.scale
    new.prior.center = _padded(old.prior.center, wider - p)
    new.prior.squares = _padded(old.prior.squares, wider - p)
    if old.intercept:
        new.prior.root[0, 0] = old.prior.root[..., 0, 0].ravel()[0]
        new.prior = new.prior.with_centered_intercept()
    if old.strategy is not None:
        new.prior = new.prior.scaled(old.prior.scale)
    new.due = old.due


def _wider_contrasts(new: Contrasts, old: Contrasts) -> None:
    """Each contrast has columns of its own, which stay in order."""
    columns = np.eye(old.n_columns, new.n_columns)
    for mine, theirs, places in zip(new.parts, old.parts, old.places, strict=True):
        matrix: Array = np.kron(np.eye(len(places)), columns).astype(np.float64)
        mine.copy_from(theirs.recast(matrix))
    new.constant, new.log_predictive, new.read = old.constant, old.log_predictive, None


def _place(triangle: Array, factor: Factor, columns: NDArray[np.intp], p: int) -> None:
    """Put the factor's root and moments into these columns of a larger triangle."""
    k = factor.n_targets
    triangle[np.ix_(columns, columns)] = factor.root
    triangle[columns, p : p + k] = factor.moments
    triangle[p:, p : p + k] = factor.residual_root


def _padded(array: Array, n_more: int) -> Array:
    """The array with so many zeros more at the end of its last axis."""
    return np.concatenate([array, np.zeros((*array.shape[:-1], n_more))], axis=-1)


_WAYS: dict[type, Callable[[Any, Any], None]] = {
    LinearPosterior: _linear,
    FadingPosterior: _fading,
    WindowPosterior: _window,
    AveragedPosterior: _averaged,
    AdaptivePosterior: _adaptive,
    EvidencePosterior: _evidence,
    GeneralizedPosterior: _generalized,
    DispersedPosterior: _dispersed,
    SoftmaxPosterior: _softmax,
}
