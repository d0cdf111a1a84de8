"""Leave-one-out predictions: each row from all others, without learning any again."""

from __future__ import annotations

import numpy as np

from posterity.aliases import Array
from posterity.distributions import Mixture
from posterity.distributions.location_scale import LocationScale
from posterity.distributions.row_distribution import RowDistribution
from posterity.posteriors import LinearPosterior

# A row with a larger leverage is the only one with information on some direction.
LARGEST_LEVERAGE = 1.0 - 1e-12

ONE_TARGET = (
    "leave_one_out needs one target, constant Gaussian noise and no forgetting: use cross "
    "validation here"
)


def leave_one_out(posterior: LinearPosterior, X: Array, y: Array) -> RowDistribution:
    """Distribution of targets ``y`` (n, 1) at columns ``X`` (n, m), each given all other rows."""
    if not posterior.of_rows.is_plain:
        raise ValueError(ONE_TARGET)
    if len(y) > posterior.n_observations:
        raise ValueError(
            f"there are {len(y)} rows, but only {posterior.n_observations:g} were learned: give "
            "only learned rows"
        )
    weights, parts = zip(*posterior.parts, strict=True)
    predictives = [_predict_with(part, X, y[:, 0]) for part in parts]
    if len(predictives) == 1:
        return predictives[0]
    # The probability of a node without the row, whose likelihood is divided out.
    logs = np.log(weights) - np.stack([one.logpdf(y[:, 0]) for one in predictives], axis=1)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return Mixture.of(predictives, shares / shares.sum(axis=1, keepdims=True))


def _predict_with(part: LinearPosterior, X: Array, y: Array) -> LocationScale:
    mean, leverage = part.factor.predict(X, intercept=part.intercept)
    residual = y - mean[:, 0]
    left = np.where(leverage < LARGEST_LEVERAGE, 1.0 - leverage, np.nan)
    open_ = np.isnan(left)
    squares = np.maximum(part.residual - np.square(residual) / left, 0.0)
    return part.noise.predictive(
        np.where(open_, mean[:, 0], y - residual / left),
        np.where(open_, np.inf, leverage / left),
        np.full(len(y), part.residual_df - 1.0),
        np.where(open_, part.residual, squares),
    )
