"""What contrasts ask of a posterior: other columns, a row more, other counts, time that passes."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from posterity.aliases import Array
from posterity.factor import Factor
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.new_columns import transform_factor

AnyLinear = TypeVar("AnyLinear", bound=LinearPosterior)


def pass_time(posterior: LinearPosterior, X: Array, elapsed: float) -> None:
    """Let time pass before an observation, of rows ``X`` that are not learned."""
    memory, factor = posterior.memory, posterior.factor
    count, seen, rows = factor.count, factor.seen, X[:1]
    if memory.by_direction:
        # In identified directions all fade once; they fade together if at all.
        rows = np.linalg.svd(factor.root @ X.T)[2] @ X
    nothing = np.zeros(len(rows))
    posterior.learn_each(rows, nothing[:, None], nothing, np.full(len(rows), elapsed))
    if memory.by_direction and len(rows) > 1:
        spent = factor.rank - posterior.prior.rank  # does not fade
        left = (factor.count - spent) / (count - spent) if count > spent else 1.0
        count = spent + left ** (1.0 / len(rows)) * (count - spent)
        factor.set_triangle(factor.triangle, count, seen)


def add_pseudo_row(posterior: AnyLinear, x: Array, target: float, precision: float) -> AnyLinear:
    """The same that knows one row (1, p) more, which is no observation."""
    twin, factor = posterior.copy(), posterior.factor
    twin.factor.append(x, np.array([[target]]), np.array([precision]))
    twin.factor.set_triangle(twin.factor.triangle, factor.count, factor.seen)
    return twin


def transform_features(posterior: AnyLinear, matrix: Array) -> AnyLinear:
    """The same data under a flat prior, whose rows x, with any 1, are x @ ``matrix`` now."""
    prior, factor = Factor(matrix.shape[1]), transform_factor(posterior.factor, matrix)
    return replace(posterior, intercept=False, prior=prior, factor=factor)
