"""Least weighted check loss, exactly: quantiles and least absolute deviations.

    minimise over w   sum_i g_i rho(y_i - x_i w) + |R w - z|^2 / 2,   rho(e) = e (q - [e < 0])

With e = u - v, and s and t = g - s the slacks of its dual, the optimum has u s = v t = 0. An
interior-point method (Portnoy and Koenker 1997, with Mehrotra's corrector) follows u s = v t = mu
to mu = 0. Each step is a weighted least-squares problem: rows appended to the prior's factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posterity.aliases import Array
from posterity.distributions.triangles import solve_triangle
from posterity.factor import Factor
from posterity.generalized._working_noise import Rows, solution

MOST_STEPS = 60
# Tolerances of the duality gap, relative to the loss.
GAP_TOLERANCE, ROUGH_GAP_TOLERANCE = 1e-13, 1e-4
# Under a prior the optimum is no corner: nearer to it, rounding of the rows that it meets moves it.
PRIOR_GAP_TOLERANCE = 1e-9
# A step that leaves a larger share of the gap is stalled; the search ends after more stalled steps.
STALLED_RATIO, MOST_STALLED_STEPS = 0.99, 4
# Largest share of the way to the boundary in one step.
BOUNDARY_SHARE = 0.9995


def check_loss(error: Array, quantile: float) -> Array:
    """rho(e) = e (q - [e < 0]) (Koenker and Bassett 1978)."""
    return error * (quantile - (error < 0.0))


@dataclass
class _Iterate:
    """u, v, s, t (n,), all positive, and the coefficients (p,)."""

    w: Array
    u: Array
    v: Array
    s: Array
    t: Array

    @property
    def gap(self) -> float:
        return float(self.u @ self.s + self.v @ self.t)


def minimize_check_loss(
    rows: Rows, prior: Factor, quantile: float, precise: float = GAP_TOLERANCE
) -> Array:
    """(p,) coefficients of the least check loss plus half the prior's squares."""
    # As losses are in units of the target, squares count in its spread.
    spread = max(float(np.mean(np.abs(rows.y - rows.median(rows.y)))), rows.floor)
    w = solution(rows.stack_on_prior(prior, rows.y, np.full(len(rows.y), 1.0 / spread)))
    error = rows.y - rows.compute_fitted(w)
    g = rows.weights
    size = float(g @ np.abs(error)) / rows.total
    if size <= 1e-14 * float(g @ np.abs(rows.y)) / rows.total or size <= 1e-150:
        return w  # every row is met
    away = 0.1 * size
    point = _Iterate(
        w,
        np.maximum(error, 0.0) + away,
        np.maximum(-error, 0.0) + away,
        quantile * g,
        (1.0 - quantile) * g,
    )
    precise = max(precise, PRIOR_GAP_TOLERANCE) if prior.rank else precise
    best, stalled = point, 0
    for _ in range(MOST_STEPS):
        loss = float(g @ check_loss(rows.y - rows.compute_fitted(point.w), quantile))
        if point.gap <= precise * (loss + 1e-3 * size * rows.total):
            break
        ahead = _take_step(rows, prior, quantile, point)
        stalled = stalled + 1 if ahead.gap > STALLED_RATIO * point.gap else 0
        if stalled > MOST_STALLED_STEPS:
            break  # rounding has the last word
        point = ahead
        if point.gap < best.gap:
            best = point
    return best.w


def _take_step(rows: Rows, prior: Factor, quantile: float, now: _Iterate) -> _Iterate:
    """Predict with mu = 0, see how far that would go, then correct for it."""
    newton = _Newton(rows, prior, quantile, now)
    zero = np.zeros(len(rows.y))
    ahead = newton.solve_step(zero, zero)
    reach = _find_step_length(now, ahead)
    would_be = float(
        (now.u + reach * ahead.u) @ (now.s + reach * ahead.s)
        + (now.v + reach * ahead.v) @ (now.t + reach * ahead.t)
    )
    # Mehrotra 1992: centre the more, the less the prediction achieved. Weight 2 is the row twice.
    mu = (would_be / now.gap) ** 3 * now.gap / (2.0 * rows.total) * rows.weights
    step = newton.solve_step(mu - ahead.u * ahead.s, mu - ahead.v * ahead.t)
    reach = min(1.0, BOUNDARY_SHARE * _find_step_length(now, step))
    moved = (one + reach * by for one, by in zip(_list_parts(now), _list_parts(step), strict=True))
    return _Iterate(*moved)


class _Newton:
    """Newton's steps from a point to u s = to_us, v t = to_vt.

    s du + u ds = to_us - u s and t dv - v ds = to_vt - v t give, with theta = 1 / (u/s + v/t),
    ds = theta (to_us / s - u - to_vt / t + v + X dw - r), r = y - X w - (u - v): what is left
    is least squares in w, of rows with weight theta. The second of them has the first one's factor.
    """

    def __init__(self, rows: Rows, prior: Factor, quantile: float, now: _Iterate) -> None:
        self.rows, self.prior, self.now = rows, prior, now
        self.theta = 1.0 / (now.u / now.s + now.v / now.t)
        self.fit = rows.compute_fitted(now.w)
        # What a target is beside what a step asks for.
        self.centre = self.fit + (quantile * rows.weights - now.s) / self.theta
        self.apart = rows.y - self.fit - (now.u - now.v)
        self.solved: tuple[Factor, Array, Array] | None = None

    def solve_step(self, to_us: Array, to_vt: Array) -> _Iterate:
        """The step to these products (n,)."""
        now = self.now
        rest = to_us / now.s - now.u - to_vt / now.t + now.v - self.apart
        w = self._least_squares(self.centre - rest)
        ds = self.theta * (rest + self.rows.compute_fitted(w) - self.fit)
        du = to_us / now.s - now.u - now.u / now.s * ds
        dv = to_vt / now.t - now.v + now.v / now.t * ds
        return _Iterate(w - now.w, du, dv, ds, -ds)

    def _least_squares(self, target: Array) -> Array:
        if self.solved is None:
            factor = self.rows.stack_on_prior(self.prior, target, self.theta / self.rows.weights)
            w = solution(factor)
            self.solved = factor, target, w
            return w
        factor, before, w = self.solved
        if not factor.determined.all():
            return solution(
                self.rows.stack_on_prior(self.prior, target, self.theta / self.rows.weights)
            )
        pull = self.rows.multiply_transposed(self.theta * (target - before))
        half = solve_triangle(factor.root, pull, transposed=True)
        return np.asarray(w + solve_triangle(factor.root, half))


def _find_step_length(now: _Iterate, step: _Iterate) -> float:
    """The share of a step, at most 1, that keeps everything positive."""
    least = 1.0
    for one, by in zip(_list_parts(now)[1:], _list_parts(step)[1:], strict=True):
        fastest = float((by / one).min())
        least = min(least, -1.0 / min(fastest, -1.0))
    return least


def _list_parts(point: _Iterate) -> tuple[Array, ...]:
    return point.w, point.u, point.v, point.s, point.t
