"""The calibration kernel again, slowly and plainly: the oracle its tests compare it with.

Same functions, same arguments, same answers to rounding; see ``posterity_calibration.h``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def normal_scores(
    y: Array, loc: Array, scale: Array, df: Array | None = None, weights: Array | None = None
) -> Array:
    """Scores of targets; Wallace (1959) where they are Student-t."""
    with np.errstate(all="ignore"):
        z = (y - loc) / scale
        known = (scale > 0.0) & (scale < np.inf) & (np.abs(z) < 1e150)
        if df is not None:
            root = np.sqrt(df * np.log1p(z**2 / df))
            wallace = np.sign(z) * (8.0 * df + 1.0) / (8.0 * df + 3.0) * root
            z, known = np.where(df < np.inf, wallace, z), known & (df > 0.0)
    if weights is not None:
        known = known & (weights > 0.0)
    return np.where(known, z, np.nan)


def targets_at(scores: Array, loc: Array, scale: Array, df: Array | None = None) -> Array:
    """The inverse of the scores."""
    z = scores + np.zeros(np.broadcast_shapes(scores.shape, loc.shape, scale.shape))
    if df is not None:
        with np.errstate(all="ignore"):
            straight = z * (8.0 * df + 3.0) / (8.0 * df + 1.0)
            inverse = np.sign(z) * np.sqrt(df * np.expm1(straight**2 / df))
        z = np.where(df < np.inf, inverse, z)
    return np.asarray(loc + scale * z)


def _nested(bounds: Array) -> Array:
    """Bounds (2, L): no interval less than a point, wider levels around narrower ones."""
    bounds = bounds.copy()
    if bounds[1, 0] < -bounds[0, 0]:
        middle = 0.5 * (bounds[1, 0] - bounds[0, 0])
        bounds[:, 0] = -middle, middle
    return np.maximum.accumulate(bounds, axis=1)


def track(
    scores: Array, tails: Array, steps: Array, integrator: tuple[float, float],
    forgetting_rate: float, bounds: Array, integrals: Array, scale: Array, return_predictions: bool,
) -> Array | None:  # fmt: skip
    """Conformal PID."""
    gain, saturation = integrator
    outputs = []
    for score in scores:
        rows = scale[2] + 1.0
        x = np.clip(integrals * math.log(rows) / (saturation * rows), -1.5, 1.5)
        now = _nested(bounds + gain * np.tan(x))
        outputs.append(scale[0] * now * np.array([[-1.0], [1.0]]))
        if math.isnan(score):
            continue
        missed = np.array([[-score / scale[0]], [score / scale[0]]]) > now
        bounds += steps * (missed - tails)
        integrals += missed - tails
        size = min(math.sqrt(math.pi / 2.0) * abs(score), 8.0 * scale[0])
        share = max(1.0 / (scale[1] + 1.0), forgetting_rate)
        scale[1] += 1.0 / (scale[1] + 1.0) >= forgetting_rate
        scale[0] = max(scale[0] + share * (size - scale[0]), 1e-4)
        scale[2] += 1.0
    return np.array(outputs).reshape(len(scores), 2, len(tails)) if return_predictions else None


def tail_bound(window: Array, aim: float, tail: float) -> float:
    """Return the bound that scores exceed with probability ``aim``, by those of a sorted window."""
    m = len(window)
    rank = (1.0 - aim) * (m + 1)
    if rank >= m:
        return float(window[-1] + (window[-1] - window[m // 2]) * (rank - m) / ((m + 1) * tail))
    return float(np.quantile(window, min(1.0 - aim, 1.0), method="weibull"))


def tail_of(window: Array, x: float, tail: float) -> float:
    """The largest aim whose bound holds x."""
    m = len(window)
    if x > window[-1]:
        spread = window[-1] - window[m // 2]
        beyond = (x - window[-1]) / spread * (m + 1) * tail if spread > 0.0 else math.inf
        return float(1.0 - (m + beyond) / (m + 1))
    below = int(np.sum(window < x))
    if below == 0:
        return 1.0
    inside = (x - window[below - 1]) / (window[below] - window[below - 1])
    return float(1.0 - (below + inside) / (m + 1))


def adapt(
    scores: Array, tails: Array, rates: Array, temperatures: Array, share: float, aims: Array,
    weights: Array, sorted_scores: Array, recent: Array, count: NDArray[np.int64],
    return_predictions: bool,
) -> Array | None:  # fmt: skip
    """Adaptive conformal inference, with one rate or several."""
    outputs, capacity = [], len(recent)
    for score in scores:
        held = np.sort(sorted_scores[: count[0]])
        sides = (np.sort(-held), held)
        mean = np.sum(weights * aims, axis=2)
        now = _nested(
            np.array(
                [[tail_bound(sides[s], mean[s, i], a) for i, a in enumerate(tails)] for s in (0, 1)]
            )
        )
        outputs.append(now * np.array([[-1.0], [1.0]]))
        if math.isnan(score):
            continue
        for s, x in ((0, -score), (1, score)):
            for i, a in enumerate(tails):
                missed = np.full(len(rates), x > now[s, i])
                if len(rates) > 1:
                    reached = tail_of(sides[s], x, a)
                    u = reached - aims[s, i]
                    loss = np.where(u >= 0.0, a * u, (a - 1.0) * u)
                    weights[s, i] *= np.exp(-temperatures[i] * np.minimum(loss, 1.0))
                    even = share / len(rates)
                    weights[s, i] = (1.0 - share) * weights[s, i] / weights[s, i].sum() + even
                    missed = reached < aims[s, i]
                aims[s, i] = np.minimum(aims[s, i] + rates * a * (a - missed), 1.0)
        place = count[0] if count[0] < capacity else count[1]
        recent[place] = score
        if count[0] < capacity:
            count[0] += 1
        else:
            count[1] = (count[1] + 1) % capacity
        sorted_scores[: count[0]] = np.sort(recent[: count[0]])
    return np.array(outputs).reshape(len(scores), 2, len(tails)) if return_predictions else None
