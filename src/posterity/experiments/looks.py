"""What an experiment has shown as its rows came."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from posterity.aliases import Array, DataFrame
from posterity.distributions.joint_distribution import require_pandas

# By how much rows grow between two looks that are kept, so that a million rows have some 700.
_GROWTH = 1.02


@dataclass(frozen=True)
class Look:
    """Effects (K - 1,) beside the control, and their ends, when so many rows had come."""

    rows: int
    effects: Array
    low: Array
    high: Array


def keep_look(looks: tuple[Look, ...], look: Look) -> tuple[Look, ...]:
    """The looks with this one, if enough rows have come since the last."""
    if looks and look.rows < _GROWTH * looks[-1].rows:
        return looks
    return (*looks, look)


def make_frame(looks: Sequence[Look], arms: Sequence[Hashable]) -> DataFrame:
    """A pandas data frame of looks: rows, arm, effect, low, high."""
    columns = {
        "rows": np.repeat([look.rows for look in looks], len(arms)),
        "arm": list(arms) * len(looks),
        "effect": np.ravel([look.effects for look in looks]),
        "low": np.ravel([look.low for look in looks]),
        "high": np.ravel([look.high for look in looks]),
    }
    return require_pandas("effects_over_time").DataFrame(columns)
