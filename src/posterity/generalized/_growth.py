"""Give a model features that it has not met so far, in the middle of a stream."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from posterity.linear.base import LinearModel
from posterity.posteriors.growth import widen
from posterity.posteriors.new_columns import JoinedColumns

Model = TypeVar("Model", bound=LinearModel)


def widen_model(model: Model, n_more: int) -> Model:
    """A model that knows what ``model`` does, and has ``n_more`` features behind the others.

    Raises ``ValueError`` under a strategy that can't take features later, and for categories.

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
    if model._categories is not None:
        raise ValueError(
            "features can't join a model that takes some as categories: give every row all of them "
            "from the start"
        )
    fresh: Any = model._copy_unfitted()
    fresh._set_features(model.n_features_in_ + n_more, None)
    fresh._set_targets_of(model)
    fresh._start()
    known = model._posterior
    places = np.arange(known.n_coefficients)
    widen(fresh._posterior_or_none, known, JoinedColumns(places, len(places) + n_more))
    fresh._now = model._now
    return fresh
