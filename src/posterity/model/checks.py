"""Checks of rows that a model is fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterity.model.design import Design


def check_groups(design: Design, frame: Any) -> None:
    """Raise ``ValueError`` for a group of one level, or a slope that no group tells anything of."""
    rows = design.read(frame)
    for part in rows.parts:
        effect, bar, group = part.name.partition(" | ")
        if not bar or part.keys is None or part.values is None:
            continue
        n_levels = len(part.keys.labels)
        if n_levels < 2:
            raise ValueError(
                f"the group {group!r} has one level in all rows, so its variance can't be told: "
                f"leave ({effect} | {group}) out"
            )
        if effect == "1":
            continue
        numbers, values = part.keys.numbers, part.values
        first = np.zeros(n_levels)
        first[numbers] = values
        if (values == first[numbers]).all():
            raise ValueError(
                f"{effect!r} is constant within each level of {group!r}, so no level tells its "
                f"slope: write {effect} as a fixed effect, and (1 | {group})"
            )


__all__ = ["check_groups"]
