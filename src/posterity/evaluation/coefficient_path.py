"""Coefficients along a stream: what a model believed, and when."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from sys import maxsize
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.evaluation._batches import bounded_batches, take

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoefficientPath:
    """Posterior means and intervals of coefficients after so many rows.

    Attributes
    ----------
    row_end : (s,) int array
        Rows learned.
    mean, low, high : (s, m) arrays
        Of intercept (if there is one) and coefficients: posterior mean, and ends of the central
        interval of `level`; infinite where nothing is known yet.
    names : tuple of str
    level : float
    """

    row_end: NDArray[np.int64]
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    names: tuple[str, ...]
    level: float


def follow_coefficients(
    model: Any,
    stream: Any,
    y: Any = None,
    *,
    points: int = 100,
    level: float = 0.95,
    sample_weight: Any = None,
) -> CoefficientPath:
    """Let a model learn a stream, and note its coefficients along the way.

    The model learns in place, by ``partial_fit``.

    Parameters
    ----------
    model : estimator
        With a joint posterior of its coefficients.
    stream : (n, p) array or data frame, tuple, or iterable
        As in :func:`progressive_validation`.
    y : (n,) array, optional
        Targets, when `stream` is X.
    points : int
        An array is noted at so many places, evenly; each batch of an iterable of batches likewise.
    level : float
        Level of the intervals.
    sample_weight : (n,) array, optional
        With arrays only.

    Returns
    -------
    CoefficientPath

    Raises
    ------
    ValueError
        If `points` is below 1, or there is no row.
    TypeError
        If the model has no joint posterior of its coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> path = follow_coefficients(BayesianLinearRegression(), X, X @ [1.0, -2.0], points=10)
    >>> path.names, path.mean.shape
    (('intercept', 'x0', 'x1'), (10, 3))
    """
    if points < 1:
        raise ValueError(f"points must be at least 1, got {points}")
    if not hasattr(type(model), "posterior_"):
        raise TypeError(f"{type(model).__name__} has no posterior_ of its own to follow")
    rows, means, ends = [], [], []
    seen = 0
    for X, target, weight in bounded_batches(stream, y, sample_weight, maxsize):
        borders = np.unique(np.linspace(0, len(target), points + 1).astype(int))
        for start, end in pairwise(borders):
            part = slice(start, end)
            X_part = take(X, part)
            model.partial_fit(
                X_part, target[part], sample_weight=None if weight is None else weight[part]
            )
            joint = model.posterior_
            rows.append(seen + int(end))
            means.append(np.asarray(joint.mean))
            ends.append(np.asarray(joint.interval(level)))
        seen += len(target)
    if not rows:
        raise ValueError("the stream is empty: there is no row to learn")
    interval = np.stack(ends)
    names = joint.names or tuple(f"coefficient {k}" for k in range(len(joint.mean)))
    return CoefficientPath(
        np.array(rows),
        np.stack(means),
        interval[..., 0],
        interval[..., 1],
        tuple(str(name) for name in names),
        level,
    )


__all__ = ["CoefficientPath", "follow_coefficients"]
