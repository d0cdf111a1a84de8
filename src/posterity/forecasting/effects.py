"""Effects of columns, holidays and events, one by one: what each adds to a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posterity.aliases import AnyArray
from posterity.forecasting.components import SMOOTHING, Explanation
from posterity.forecasting.marginals import Component, Marginals, scale_spread
from posterity.forecasting.names import make_names_array


def compute_effects(
    explanation: Explanation, ids: Sequence[Any], level: float
) -> dict[str, AnyArray]:
    """Columns of a table, a row for each series and effect, with ends of intervals.

    What the next step has more where a column is larger by 1, where a level of text comes in place
    of the most common one, or where there is a holiday or an event; all else is as usual.
    """
    plan = explanation.plan
    cases = plan.list_cases()
    names = tuple(name for name in plan.panel.ids if name in ids)
    series = np.array([plan.panel.ids.index(name) for name in names])
    parts: dict[str, list[Component]] = {name: [] for name in cases}
    for learner in explanation.learners:
        base = explanation.draw(learner, plan.usual[:, None]).part(series)
        for name, columns in cases.items():
            mean = explanation.draw(learner, columns[:, None]).part(series).mean - base.mean
            if base.log:
                mean = base.scale.changes(base.mean, mean)
            sd = SMOOTHING * mean.std(axis=1, keepdims=True)
            part = Component(mean, np.broadcast_to(sd, mean.shape), log=False)
            parts[name].append(scale_spread(part, explanation.factor))
    each = [Marginals(some, explanation.shares[series]) for some in parts.values()]
    ends = {
        "mean": [one.mean() for one in each],
        "std": [np.sqrt(one.variance()) for one in each],
        "low": [one.quantile(0.5 - 0.5 * level) for one in each],
        "high": [one.quantile(0.5 + 0.5 * level) for one in each],
    }
    return {
        "unique_id": np.repeat(make_names_array(names), len(cases)),
        "effect": np.tile(np.array(list(cases), dtype=str), len(names)),
    } | {
        name: np.reshape(some, (len(cases), len(names))).T.reshape(-1)
        for name, some in ends.items()
    }
