"""Members of an average that learn the same rows side by side, each fading towards its prior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Rows
from posterity.factor.forgetting import SMALLEST_DISCOUNT, learn_side_by_side

Array = NDArray[np.float64]


def learn_members(
    runs: Sequence[Any],
    X: Array,
    y: Array,
    weights: Array | None,
    elapsed: Array,
    precision: float,
) -> tuple[Array, Array]:
    """Learn row after row in all runs, of which each ``fades_to_prior``.

    A run tells by ``side_by_side`` up to which row it can go, and the posteriors that learn: the
    first predicts; by itself where there are none. Returns error and leverage (n, lanes) of each
    row before it was learned, the noise's ``precision`` being known, or the unit.
    """
    errors: list[Array] = []
    leverages: list[Array] = []
    first = 0
    while first < len(X) or not errors:
        ways = [run.side_by_side(X, weights, first) for run in runs]
        part = slice(first, min(stop for stop, _ in ways))
        some = None if weights is None else weights[part]
        rows = X[part], y[part], some, elapsed[part]
        if all(who for _, who in ways):
            error, leverage = _together([who for _, who in ways], *rows)
            for run in runs:
                run.has_learned(X[part], some)
        else:
            error, leverage = _in_turn(runs, *rows, precision)
        errors.append(error)
        leverages.append(leverage)
        first = part.stop
    if len(errors) == 1:
        return errors[0], leverages[0]
    return np.concatenate(errors), np.concatenate(leverages)


def _together(
    members: Sequence[Sequence[Any]], X: Array, y: Array, weights: Array | None, elapsed: Array
) -> tuple[Array, Array]:
    """What the first of each member's posteriors told; all of them learn."""
    posteriors = [one for together in zip(*members, strict=True) for one in together]
    rows = Rows(X, y, weights, intercept=posteriors[0].intercept)
    if posteriors[0].factor.seen == 0.0:  # before the first row there is nothing to forget
        elapsed = np.where(np.arange(len(X)) > rows.first, elapsed, 0.0)
    rates = np.array([max(one.kept_in_a_unit, SMALLEST_DISCOUNT) for one in posteriors])
    factors, priors = [one.factor for one in posteriors], [one.prior for one in posteriors]
    error, leverage = learn_side_by_side(factors, priors, rates, rows, elapsed)
    lanes = -(-len(members) // 8) * 8
    return np.ascontiguousarray(error[:, :lanes]), np.ascontiguousarray(leverage[:, :lanes])


def _in_turn(
    runs: Sequence[Any],
    X: Array,
    y: Array,
    weights: Array | None,
    elapsed: Array,
    precision: float,
) -> tuple[Array, Array]:
    error = np.zeros((len(X), -(-len(runs) // 8) * 8))
    leverage = np.zeros(error.shape)
    for i, run in enumerate(runs):
        told = run.predict_then_learn(X, y, weights, elapsed)
        error[:, i] = y[:, 0] - told.loc
        leverage[:, i] = np.square(told.scale) * precision - 1.0
    return error, leverage
