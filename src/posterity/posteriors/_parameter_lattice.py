"""Parameters of the likelihood of few rows, and coefficients given them, on a lattice.

A fit knows the logs t of parameters as one normal, and coefficients given the values in force. To
read, the sites of all rows are found again at points of t around these, as far as the rows are not
much less likely there. Their evidence is the density of t, skewed and bent as it may be, and by it
the posteriors of the coefficients are mixed (Rue, Martino and Chopin 2009, section 6.5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

from posterity.aliases import Array
from posterity.likelihoods import Likelihood
from posterity.posteriors._marginal_densities import mix
from posterity.posteriors._skewed import LEAST_WEIGHT, Hypothesis

# The most points, and rows, three times as many for one parameter less.
MOST_POINTS, MOST_ROWS = 400, 3600
# Steps of the lattice, in standard deviations of one parameter given the others; how far below the
# highest log density it ends; and points across, or steps are halved up to so many times.
STEP, FALLEN, FEWEST_ACROSS, HALVINGS = 1.5, 7.0, 5, 3
# Points of t, between two of the lattice, at which its density is summed.
FINER = 16

Cell = tuple[int, ...]


class Point(NamedTuple):
    """The log density of t (d,), and the hypotheses of all prior nodes with their log weights."""

    t: Array
    log_density: float
    hypotheses: list[tuple[float, Hypothesis | None]]


class Lattice(NamedTuple):
    """Hypotheses with their log weights, and quantiles (57, d) of the logs of the parameters."""

    settled: list[tuple[float, Hypothesis]]
    quantiles: Array


def settle_parameters(posterior: Any) -> Lattice | None:
    """The lattice of a posterior that keeps all its rows, found once; None where it has none.

    That is where no parameter is learned or too many are, or where the lattice does not end.
    """
    phi, rows, seen = (getattr(posterior.statistics, of) for of in ("phi", "skewed", "seen"))
    if phi is None or rows is None or abs(float(rows.weights.sum()) - seen) > 1e-9 * seen:
        return None
    if len(rows) * 3 ** len(phi.covariance) > MOST_ROWS:
        return None
    key = [phi, *(node for _, node in posterior.inner.parts)]
    known, found = rows.__dict__.get("_lattice", ((), None))
    if len(known) != len(key) or any(a is not b for a, b in zip(known, key, strict=True)):
        found = _find(posterior)
        rows.__dict__["_lattice"] = key, found
    return found


def _find(posterior: Any) -> Lattice | None:
    phi, cells = posterior.statistics.phi, {}
    centre, spread = np.atleast_1d(phi.mean), np.diag(np.linalg.inv(phi.covariance)) ** -0.5
    ask = _ask_about(posterior)
    for halving in range(HALVINGS):
        cells = _fill(ask, centre, STEP * 0.5**halving * spread)
        across = min((len(set(each)) for each in zip(*cells, strict=True)), default=0)
        if not cells or across >= FEWEST_ACROSS:
            break
    if not cells or across < FEWEST_ACROSS:
        return None
    most = max(point.log_density for point in cells.values())
    each = [one for point in cells.values() for one in point.hypotheses]
    settled = [(log, one) for log, one in each if one is not None and log > most - FALLEN]
    quantiles = [_read(cells, axis) for axis in range(len(centre))]
    return Lattice(settled, np.array(quantiles).T)


def _ask_about(posterior: Any) -> Callable[[Array, Point | None], Point]:
    """What finds the point at t, from one near it."""
    likelihood, rows = posterior.likelihood, posterior.statistics.skewed
    data = posterior.inner.without_prior().factor
    parts = [(math.log(w), node) for w, node in posterior.inner.parts if w > LEAST_WEIGHT]

    def ask(t: Array, near: Point | None) -> Point:
        prior, known = _find_log_prior(likelihood, t), likelihood.with_parameters(np.exp(t))
        begin = [None] * len(parts) if near is None else [one for _, one in near.hypotheses]
        tried = [
            (prior + log, Hypothesis.settle(node, known, rows, data, start))
            for (log, node), start in zip(parts, begin, strict=True)
        ]
        found = [(-math.inf if one is None else log + one.log_evidence, one) for log, one in tried]
        return Point(t, float(logsumexp([log for log, _ in found])), found)

    return ask


def _fill(
    ask: Callable[[Array, Point | None], Point], centre: Array, step: Array
) -> dict[Cell, Point]:
    """The points, so many steps from the centre, that are not much less likely than the best.

    Those beyond that were looked at are kept, too: the density ends there. None of too many.
    """
    d = len(centre)
    found: dict[Cell, Point] = {}
    waiting: dict[Cell, Point | None] = {(0,) * d: None}
    most, moves = -math.inf, [*np.eye(d, dtype=int), *-np.eye(d, dtype=int)]
    while waiting and len(found) < MOST_POINTS:
        cell = next(iter(waiting))
        point = found[cell] = ask(centre + step * cell, waiting.pop(cell))
        most = max(most, point.log_density)
        if point.log_density > most - FALLEN:
            beside = [tuple((cell + move).tolist()) for move in moves]
            waiting = {**dict.fromkeys(set(beside) - found.keys(), point), **waiting}
    kept = {cell: point for cell, point in found.items() if point.log_density > -math.inf}
    return {} if waiting else kept


def _read(cells: dict[Cell, Point], axis: int) -> Array:
    """Quantiles (57,) of one parameter's log: the others are summed over."""
    places = np.array([cell[axis] for cell in cells])
    points = list(cells.values())
    lines = [[points[i] for i in np.flatnonzero(places == one)] for one in np.unique(places)]
    t = np.array([line[0].t[axis] for line in lines])
    logs = np.array([logsumexp([point.log_density for point in line]) for line in lines])
    logs = np.maximum(logs - logs.max(), -4.0 * FALLEN)  # a cubic would swing beyond a cliff
    fine = np.linspace(t[0], t[-1], FINER * len(t))[None]
    masses = np.exp(CubicSpline(t, logs)(fine))
    return np.asarray(mix([(0.0, fine, masses)])[0])


def _find_log_prior(likelihood: Likelihood, t: Array) -> float:
    pairs = [(one.stated, at) for one, at in zip(likelihood.parameters, t, strict=True)]
    if any(not one.ends[0] <= at <= one.ends[1] for one, at in pairs):
        return -math.inf
    return sum(float(one.log_density(at)) for one, at in pairs)
