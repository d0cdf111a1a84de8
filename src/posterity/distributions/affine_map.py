"""The steps of a pipeline before its model, as one affine map of its rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Far enough from 0 that differences keep their digits; a power of two, by which nothing is rounded.
LARGE_OFFSET = 2.0**30
RELATIVE_TOLERANCE = 1e-9


def compute_affine_map(steps: Any) -> tuple[Array, Array]:
    """A (m, k) and b (k,) with ``steps.transform(X) = X @ A + b``.

    Raises ``ValueError`` where the steps are no affine map of numbers: scalers, principal
    components and choices of columns are; encoders and functions are not.
    """
    m = int(steps.n_features_in_)
    try:
        start = _transform_columns(steps, np.zeros((1, m)))[0]
        slopes = (_transform_columns(steps, LARGE_OFFSET * np.eye(m)) - start) / LARGE_OFFSET
        probes = np.random.default_rng(0).normal(size=(64, m)) * np.logspace(-3, 6, 64)[:, None]
        found = _transform_columns(steps, probes)
    except (TypeError, ValueError) as error:
        raise ValueError(_REFUSAL) from error
    size = 1.0 + np.abs(probes) @ np.abs(slopes) + np.abs(start)
    if not (np.abs(found - probes @ slopes - start) <= RELATIVE_TOLERANCE * size).all():
        raise ValueError(_REFUSAL)
    return slopes, start


_REFUSAL = (
    "the steps are no affine map of numbers, as StandardScaler, PCA and choices of columns are"
)


def _transform_columns(steps: Any, X: Array) -> Array:
    names = getattr(steps, "feature_names_in_", None)
    rows: Any = X
    if names is not None:
        import pandas

        rows = pandas.DataFrame(X, columns=names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(steps.transform(rows), dtype=np.float64)
