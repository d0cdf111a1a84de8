"""Average effects of features over several models, each as probable as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from posterity.aliases import Array, DataFrame
from posterity.averaging import inputs
from posterity.averaging.members import get_final_step, transform_for_last
from posterity.distributions.joint_distribution import require_pandas
from posterity.kernel.tables import find_table
from posterity.linear.effects import feature_names, mean_of_draws, table_of_effects


def average_effects(
    average: BaseEstimator,
    X: Any,
    *,
    per: str,
    level: float,
    size: int,
    rng: int | np.random.Generator | None,
) -> DataFrame:
    """As :meth:`AverageOfModels.average_effects` says."""
    if size < 1:
        raise ValueError(f"size is {size}: it must be at least 1")
    rows = inputs.read_points(average, X)
    if rows.array is None:
        raise ValueError(
            "X has columns that are not numbers: effects are of features that are numbers; encode "
            "the others before"
        )
    rng = np.random.default_rng(rng)
    seed, weights = int(rng.integers(2**63)), average.weights_
    which = rng.choice(len(weights), size, p=weights)
    table = find_table(X)

    def draws(model: BaseEstimator, values: Array) -> Array:
        frame = values if table is None else require_pandas().DataFrame(values, columns=table.names)
        points = inputs.Rows(frame, values, np.empty(0)).of(model)
        final, points = get_final_step(model), transform_for_last(model, points)
        return mean_of_draws(final, np.asarray(points, dtype=np.float64), size, seed, {})

    def effects(low: Array, high: Array) -> list[tuple[list[str], Any]]:
        change = np.stack([draws(one, high) - draws(one, low) for one in average.models_])
        return [([], change[which, np.arange(size)])]

    return table_of_effects(rows.array, feature_names(average), effects, per=per, level=level)
