"""Each row told from all others, without learning any again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.distributions import Mixture
from posterity.posteriors import LinearPosterior

Array = NDArray[np.float64]

# A row of a larger leverage is the only one that tells of some direction.
WHOLE = 1.0 - 1e-12


def leave_one_out(known: LinearPosterior, X: Array, y: Array) -> Any:
    """Distribution of targets ``y`` (n, 1) at columns ``X`` (n, m), each given all other rows."""
    if y.shape[1] > 1 or known.forgets or known.of_rows.one_triangle is None:
        raise ValueError(
            "leave_one_out needs one target, constant Gaussian noise and no forgetting: use "
            "cross validation here"
        )
    if len(y) > known.n_observations:
        raise ValueError(
            f"there are {len(y)} rows, but only {known.n_observations:g} were learned: give "
            "only learned rows"
        )
    weights, parts = zip(*known.parts, strict=True)
    told = [_predict_with(part, X, y[:, 0]) for part in parts]
    if len(told) == 1:
        return told[0]
    # How probable a node is without the row: what the row said of it is taken back.
    logs = np.log(weights) - np.stack([one.logpdf(y[:, 0]) for one in told], axis=1)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return Mixture.of(told, shares / shares.sum(axis=1, keepdims=True))


def _predict_with(part: LinearPosterior, X: Array, y: Array) -> Any:
    mean, leverage = part.factor.predict(X, intercept=part.intercept)
    residual = y - mean[:, 0]
    left = np.where(leverage < WHOLE, 1.0 - leverage, np.nan)
    open_ = np.isnan(left)
    squares = np.maximum(part.residual - np.square(residual) / left, 0.0)
    return part.noise.predictive(
        np.where(open_, mean[:, 0], y - residual / left),
        np.where(open_, np.inf, leverage / left),
        np.full(len(y), part.residual_df - 1.0),
        np.where(open_, part.residual, squares),
    )
