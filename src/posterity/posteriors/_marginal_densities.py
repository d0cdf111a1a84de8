"""Densities of one number, known by their logs at points: as quantiles, and mixed."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma, gammaln, ndtr, ndtri, polygamma

from posterity.aliases import Array
from posterity.distributions.bent_normal import NODES
from posterity.noise import LOG_2PI

# Points in standard deviations; more where a density begins and ends, this far below its highest;
# and steps between two points.
STEP = 0.7
POINTS, MORE, FALLEN, FINER = STEP * np.arange(-10, 11), np.arange(1, 8) / 8.0, 30.0, 4
# Shapes of gamma variables, by the skewness of their logs; less of it is none.
GAMMA_LOG_SHAPES = np.linspace(-1.2, 10.0, 200)
GAMMA_SKEWNESS = (
    polygamma(2, np.exp(GAMMA_LOG_SHAPES)) / polygamma(1, np.exp(GAMMA_LOG_SHAPES)) ** 1.5
)
LEAST_GAMMA_SKEWNESS = 0.01
# A standard normal number beyond all that is known.
FARTHEST = 38.0


def compare_log_gamma(skewness: Array, z: Array) -> Array:
    """(n, k) log density of skewed numbers (n,) at z (n, k), over that of normal ones.

    They have mean 0, variance 1 and are logs of gamma variables, as log rates are and nearly log
    odds: so third moments of many rows, none of which says much, are those of a density.
    """
    logs, some = np.zeros(z.shape), np.abs(skewness) > LEAST_GAMMA_SKEWNESS
    if some.any():
        k = np.exp(np.interp(-np.abs(skewness[some]), GAMMA_SKEWNESS, GAMMA_LOG_SHAPES))[:, None]
        sd, turned = np.sqrt(polygamma(1, k)), -np.sign(skewness[some])[:, None] * z[some]
        x = digamma(k) + sd * turned
        logs[some] = k * x - np.exp(np.minimum(x, 700.0)) - gammaln(k) + np.log(sd)
        logs[some] += 0.5 * np.square(z[some]) + 0.5 * LOG_2PI
    return logs


def find_ends(logs: Array) -> Array:
    """More points (n, 28) in the intervals where log densities (n, 21) begin and end."""
    there = logs > logs.max(axis=1, keepdims=True) - FALLEN
    last = len(POINTS) - 1
    first, end = there.argmax(axis=1), last - there[:, ::-1].argmax(axis=1)
    places = np.clip(np.stack([first - 1, first, end - 1, end], axis=1), 0, last - 1)
    # Of a narrow density both ends lie in the same intervals: a little further there.
    shifted = MORE + 0.01 * np.arange(4)[:, None]
    return np.asarray((POINTS[places][..., None] + STEP * shifted).reshape(len(logs), -1))


def integrate(z: Array, logs: Array) -> tuple[Array, Array]:
    """Finer points and the masses around them, of densities at points (n, k).

    Between points their logs are monotone cubics (Fritsch and Butland 1984).
    """
    step = np.diff(z)
    rise = np.diff(logs) / step
    before, after = rise[:, :-1], rise[:, 1:]
    of_before, of_after = 2.0 * step[:, 1:] + step[:, :-1], step[:, 1:] + 2.0 * step[:, :-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (of_before + of_after) / (of_before / before + of_after / after)
    between = np.where(before * after > 0.0, between, 0.0)
    slope = np.concatenate([rise[:, :1], between, rise[:, -1:]], axis=1)
    t, low, high = np.arange(FINER) / FINER, slope[:, :-1, None], slope[:, 1:, None]
    rise, step = rise[:, :, None], step[:, :, None]
    bend = (3.0 * rise - 2.0 * low - high) + t * (low + high - 2.0 * rise)
    values = logs[:, :-1, None] + step * t * (low + t * bend)
    fine = (z[:, :-1, None] + step * t).reshape(len(z), -1)
    fine = np.concatenate([fine, z[:, -1:]], axis=1)
    values = np.concatenate([values.reshape(len(z), -1), logs[:, -1:]], axis=1)
    widths, nothing = 0.5 * np.diff(fine), np.zeros((len(z), 1))
    around = np.concatenate([widths, nothing], axis=1) + np.concatenate([nothing, widths], axis=1)
    return fine, np.exp(values) / math.sqrt(2.0 * math.pi) * around


def mix(found: list[tuple[float, Array, Array]]) -> Array:
    """Quantiles (n, 57) of mixtures of points and masses (n, k), each with its log weight."""
    most = max(log for log, _, _ in found)
    weighted = [(points, math.exp(log - most) * masses) for log, points, masses in found]
    points, masses = (np.concatenate(each, axis=1) for each in zip(*weighted, strict=True))
    order = np.argsort(points, axis=1)
    points, masses = (np.take_along_axis(one, order, axis=1) for one in (points, masses))
    near = np.array([_interpolate(*one) for one in zip(_score(masses), points, strict=True)])
    if len(found) == 1:
        return near
    # Points of one lie between those of another: there its share is read, not counted.
    below, above = np.zeros(near.shape), np.zeros(near.shape)
    for each, of_each in weighted:
        scores, totals = _score(of_each), of_each.sum(axis=1, keepdims=True)
        pairs = zip(near, each, scores, strict=True)
        z = np.array([np.interp(x, *one) for x, *one in pairs])
        below, above = below + totals * ndtr(z), above + totals * ndtr(-z)
    z = _find_score(below / (below + above), above / (below + above))
    return np.array([_interpolate(*one) for one in zip(z, near, strict=True)])


def _find_score(below: Array, above: Array) -> Array:
    """The standard normal number with these shares, the smaller of which has its digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(below < 0.5, ndtri(below), -ndtri(above))
    return np.clip(z, -FARTHEST, FARTHEST)


def _score(masses: Array) -> Array:
    """Standard normal numbers (n, k) with as much below them as of masses (n, k) at points."""
    masses = masses / masses.sum(axis=1, keepdims=True)
    below = np.cumsum(masses, axis=1) - 0.5 * masses
    above = np.cumsum(masses[:, ::-1], axis=1)[:, ::-1] - 0.5 * masses
    return _find_score(below, above)


def _interpolate(z: Array, points: Array) -> Array:
    """Quantiles (57,) from those of rising standard normal numbers; beyond the last, straight."""
    known = np.abs(z) < FARTHEST
    if np.count_nonzero(known) < 2:  # all of it lies at one point
        return np.full(len(NODES), points[np.argmin(np.abs(z))])
    z, points = z[known], points[known]
    slope = (points[-1] - points[0]) / (z[-1] - z[0])
    low, high = points[0] - slope * (z[0] + FARTHEST), points[-1] + slope * (FARTHEST - z[-1])
    return np.asarray(np.interp(NODES, [-FARTHEST, *z, FARTHEST], [low, *points, high]))
