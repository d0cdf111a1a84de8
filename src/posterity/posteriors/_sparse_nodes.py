"""Nodes over the few coordinates of a prior: their posterior is integrated over, not maximised.

Along the axes of the curvature at the mode stands a lattice where that posterior is skewed and has
up to three dimensions, else a central composite design (Rue, Martino & Chopin 2009, section 6.5).
The axes of the latter have scales of their own on either side where the posterior is skewed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from posterity.aliases import Array
from posterity.posteriors._sparse_search import Found

# Spacing of a lattice in standard deviations, how many nats it goes below the mode, and the most
# nodes it has.
SPACING, DEPTH, MOST_NODES = 1.25, 6.0, 1000
# Dimensions of which there may be a lattice.
LATTICE_DIMENSIONS = 3
# What a log density is off that of a normal distribution, in nats, where it is taken for skewed;
# and the scales that a skewed axis may have on either side.
SKEWED, STRETCHES = 0.25, (0.4, 2.5)
# Radius of the design's points, relative to the root of the number of dimensions.
RADIUS = 1.1
# Dimensions up to which the corners of the design are all, and half of all.
ALL_CORNERS, HALF_CORNERS = 4, 8
# The least information of a coordinate, and the least curvature of an axis, relative to it; nodes
# of less than the least weight are left out.
LEAST_INFORMATION, LEAST_CURVATURE, LEAST_WEIGHT = 1.0, 0.1, 1e-5
# The step of differences, in standard deviations.
STEP = 0.1


class Node(NamedTuple):
    """A place (d,) of the coordinates, its log posterior density, and what was found there."""

    at: Array
    log_density: float
    found: Found


# Evaluates a place, beginning with what was found near it.
Evaluate = Callable[[Array, Found], Node]
# The gradient (d,) of the log density at a node, and Fisher's information (d, d).
Slope = Callable[[Node], tuple[Array, Array]]


class Placed(NamedTuple):
    """Nodes, their weights, and the log of the integral of the density over all places."""

    nodes: list[Node]
    weights: Array
    log_integral: float


def place_nodes(mode: Node, evaluate: Evaluate, slope: Slope) -> Placed:
    """Nodes around a mode; the mode alone where its density overflows."""
    if not np.isfinite(mode.log_density):
        return Placed([mode], np.ones(1), mode.log_density)
    axes, size = _find_axes(mode, evaluate, slope), len(mode.at)
    log_volume = float(np.linalg.slogdet(axes)[1])

    def look(z: Array, near: Node) -> Node:
        return evaluate(mode.at + axes @ z, near.found)

    if size == 1:
        return _walk(mode, look, log_volume)
    star = np.vstack([np.eye(size), -np.eye(size)]) * RADIUS * np.sqrt(size)
    nodes = [look(z, mode) for z in star]
    drops = np.array([mode.log_density - node.log_density for node in nodes])
    scales = np.ones((2, size))  # of the axes, above the mode and below it
    if np.abs(drops - 0.5 * RADIUS**2 * size).max() > SKEWED:
        if size <= LATTICE_DIMENSIONS:
            return _walk(mode, look, log_volume)
        stretch = RADIUS * np.sqrt(0.5 * size / np.maximum(drops, 1e-3))
        scales = np.clip(stretch, *STRETCHES).reshape(2, size)
        nodes = [look(z * _choose(scales, z), mode) for z in star]
    corners = RADIUS * _list_corners(size)
    nodes += [look(z * _choose(scales, z), mode) for z in corners]
    points = np.vstack([star, corners])
    volumes = np.array([np.log(_choose(scales, z)).sum() for z in [0.0 * star[0], *points]])
    shares = 0.5 * np.square(points).sum(axis=1) - np.log(len(points) * RADIUS**2)
    shares = np.append(np.log(1.0 - RADIUS**-2), shares) + volumes
    return _keep([mode, *nodes], shares + log_volume + 0.5 * size * np.log(2.0 * np.pi))


def _choose(scales: Array, z: Array) -> Array:
    """(d,) the scale of each axis on the side of z, and between both at 0."""
    above = 0.5 + 0.5 * np.sign(z)
    return np.asarray(above * scales[0] + (1.0 - above) * scales[1])


def _find_axes(mode: Node, evaluate: Evaluate, slope: Slope) -> Array:
    """(d, d) the axes of the curvature, each of a standard deviation's length: columns."""
    here, information = slope(mode)
    deviations = 1.0 / np.sqrt(np.maximum(information.diagonal(), LEAST_INFORMATION))
    curvature = np.zeros_like(information)
    for place, change in enumerate(STEP * np.diag(deviations)):
        there, _ = slope(evaluate(mode.at + change, mode.found))
        curvature[place] = (here - there) / change[place]
    relative = 0.5 * (curvature + curvature.T) * np.outer(deviations, deviations)
    values, vectors = np.linalg.eigh(relative)
    roots = np.sqrt(np.maximum(values, LEAST_CURVATURE))
    return np.asarray(deviations[:, None] * vectors / roots)


def _walk(mode: Node, look: Callable[[Array, Node], Node], log_volume: float) -> Placed:
    """The nodes of a lattice that are not far below the mode, each reached from its neighbour."""
    size = len(mode.at)
    steps = [tuple(step) for step in np.vstack([np.eye(size), -np.eye(size)]).astype(int)]
    found = {(0,) * size: mode}
    waiting, nodes = [(0,) * size], []
    while waiting and len(found) < MOST_NODES:
        place = waiting.pop(0)
        node = found[place]
        if not node.log_density >= mode.log_density - DEPTH:  # nor where it is no number
            continue
        nodes.append(node)
        for step in steps:
            near = tuple(a + b for a, b in zip(place, step, strict=True))
            if near not in found:
                found[near] = look(SPACING * np.array(near, dtype=np.float64), node)
                waiting.append(near)
    return _keep(nodes, np.full(len(nodes), log_volume + size * np.log(SPACING)))


def _list_corners(size: int) -> Array:
    """(corners, size) corners of a cube, or half of them, or none."""
    if size <= ALL_CORNERS:
        return np.array(list(product((-1.0, 1.0), repeat=size)))
    if size <= HALF_CORNERS:
        some = np.array(list(product((-1.0, 1.0), repeat=size - 1)))
        return np.hstack([some, some.prod(axis=1, keepdims=True)])
    return np.zeros((0, size))


def _keep(nodes: list[Node], log_volumes: Array) -> Placed:
    """The nodes that count, of these volumes (k,)."""
    logs = log_volumes + [node.log_density for node in nodes]
    logs = np.where(np.isnan(logs), -np.inf, logs)
    total = float(logsumexp(logs))
    weights = np.exp(logs - total)
    kept = weights > LEAST_WEIGHT
    some = [node for node, keep in zip(nodes, kept, strict=True) if keep]
    return Placed(some, weights[kept] / weights[kept].sum(), total)


__all__ = ["Node", "Placed", "place_nodes"]
