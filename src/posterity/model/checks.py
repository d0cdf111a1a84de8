"""Checks of rows that a model is fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterity.aliases import Array
from posterity.likelihoods import Bernoulli
from posterity.model.design import Design
from posterity.model.engines import TermRows
from posterity.sparse.parts import Part


def check_rows(design: Design, frame: object, engine: TermRows) -> None:
    """Raise ``ValueError`` for effects of which no row tells: of one level, or of too many."""
    rows, noisy = design.read(frame), engine.learned_noise is not None
    sure = noisy or (engine.likelihood == Bernoulli() and design.formula.trials is None)
    for part in rows.parts:
        if part.keys is None or part.values is None:
            continue
        if part.rows is not None:
            _check_factor(part, rows.n, sure)
            continue
        effect, _, group = part.name.partition(" | ")
        n_levels = len(part.keys.labels)
        if n_levels < 2:
            raise ValueError(
                f"the group {group!r} has one level in all rows, so its variance can't be told: "
                f"leave ({effect} | {group}) out"
            )
        if effect == "1" and n_levels == rows.n and noisy:
            raise ValueError(
                f"each row has a level of its own of {group!r}, whose effect can't be told from "
                f"the noise: leave (1 | {group}) out"
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


def check_targets(targets: Any, design: Design, engine: TermRows) -> None:
    """Raise ``ValueError`` for text, or two numbers a row, where numbers are expected."""
    two = np.ndim(targets) > 1 or engine.likelihood.n_numbers > 1
    if two and not design.formula.has_ends:
        raise ValueError(
            "targets of several columns, as the two ends under Censored, are written in the "
            "formula: 'Surv(time, ended) ~ ...' or 'cens(low, high) ~ ...'"
        )
    labels = engine.likelihood == Bernoulli() and design.formula.trials is None
    if isinstance(next(iter(targets), None), str) and not labels:
        raise ValueError(
            "the target holds text, and its likelihood is of numbers: give numbers, or "
            "likelihood='bernoulli' for two labels"
        )


def split_trials(successes: Any, trials: Array) -> tuple[Array, Array]:
    """Failures and successes (n,); raises ``ValueError`` naming the row of what can't be."""
    y = np.asarray(successes, dtype=np.float64)
    bad = np.flatnonzero(~((y >= 0.0) & (y <= trials)))
    if len(bad):
        row = bad[0]
        raise ValueError(
            f"there are {y[row]:g} successes of {trials[row]:g} trials in row {row}: give numbers "
            "from 0 to the number of trials"
        )
    return trials - y, y


def _check_factor(part: Part, n: int, sure: bool) -> None:
    """Refuse levels of one row each, but for sums, as counts are, which tell something.

    ``sure``: one row says no more than where it lies.
    """
    assert part.keys is not None
    count = len(part.keys.numbers)
    if sure and len(part.keys.labels) == count >= n - 1:
        raise ValueError(
            f"each row has a level of its own of {part.name!r}, so no row is left to tell "
            "the noise: make numbers of it, if it is text or dates, or leave it out"
        )
