"""Prior scales of coefficients and what the data say beside them, found in turns.

With A the standardised columns of the data's factor and z the target, coefficients have the prior
w_j ~ N(0, v_j), in units of the noise. Given precisions T_j = 1 / v_j of the others, the data say
of coefficient j one normal, its cavity, of mean c_j and variance C_j: the evidence of v_j is
N(c_j; 0, C_j + v_j), with the noise integrated by formula. On a lattice of log v all posteriors are
sums: of each v_j, of the scale t that all share, and of the choice whether all are alike. Dummies
of a category share a scale of their own in the same way, which then is one of those around t. T_j
is what shrinks c_j as much as the posterior of v_j does on average,

    1 / (1 + T_j C_j) = E[v_j / (C_j + v_j)] ,

and cavities and precisions are found in turns: expectation propagation (Minka 2001) with sites
around the prior mean, whose posterior means are those of the tilted distributions. Where features
do not correlate the first turn is exact.

Nodes are parts of these posteriors: node k has, for each coefficient, the mean shrinkage of the
k-th part of the posterior of v_j, from weak to strong. So the mixture of the nodes has the means
above, and wide or skewed marginals where the data leave open whether an effect is strong.

Fewer rows than columns leave open how much of the target is noise, too: coefficients that are all
strong together would leave none. So nodes are then parts of the posterior of t, in each of which
precisions are found anew, and which are weighed by their evidence.

The kernel has the same for few columns (``posterity_scales.h``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.special import softmax

from posterity.aliases import Array, Indices
from posterity.distributions.triangles import solve_triangle
from posterity.evidence._shared_scale import (
    LOG_SHARES,
    LONGEST_LATTICE,
    TINY,
    SharedScale,
    compute_log_hyperprior,
)

# Shares of the posterior of each scale, from weak to strong, that the nodes stand for.
NODES = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
# The lattice has steps of 1. It begins so far below the smallest variance of a cavity, and ends so
# far above the largest effect: what is beyond has no weight.
BELOW, ABOVE = 7.0, 12.0
# Where the data tell of a coefficient less than this share of what they tell of the best known one,
# shrinkage is compared as if they told so much: a Cauchy has no variance that could be matched.
LEAST_TOLD = 0.1
SWEEPS, TOLERANCE = 30, 1e-4
# A turn begins so many times as far as the last one moved beyond where it led, or back, at most.
SHARES_BACK = -4.0, 0.5
# The same of a prior that sites are found under, which search for each other; and in parts of the
# shared scale, which are coarse themselves.
TOLERANCE_OF_ONE, TOLERANCE_OF_PARTS = 1e-9, 1e-2
# Smallest precision relative to a column's square, and residual relative to the target's: rounding.
SMALLEST_PRECISION, SMALLEST_RESIDUAL = 1e-12, 1e-20
EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class StandardRows:
    """What rows say of standardised coefficients: ``matrix`` (r, m), ``target`` (r,).

    The noise has the precision ``known``, or if that is 0 a gamma prior, of which ``shape`` is a_n
    and ``rest`` what there is of 2 b_n without the coefficients. ``least`` is the smallest 2 b_n
    beyond rounding. ``ends`` tells where each term of neighbouring columns ends.
    """

    matrix: Array
    target: Array
    rest: float
    shape: float
    known: float
    least: float
    ends: Indices

    @cached_property
    def lengths(self) -> Array:
        """(m,) squares of the columns."""
        return np.asarray(np.square(self.matrix).sum(axis=0))

    @cached_property
    def gram(self) -> Array:
        """(m, m) products of the columns."""
        return np.asarray(self.matrix.T @ self.matrix)

    @cached_property
    def lattice_base(self) -> float:
        """Log of the first variance on the lattice."""
        return -float(np.log(self.lengths.max())) - BELOW

    @property
    def log_hyperprior(self) -> Array:
        """(2, g) log prior of the shared scale on the longest lattice."""
        points = np.arange(float(LONGEST_LATTICE))
        return compute_log_hyperprior(self.lattice_base + points, self.lengths)

    @property
    def could_be_met(self) -> bool:
        """True if the coefficients could meet as many rows, which are all that tell the noise."""
        return not self.known and 2.0 * self.shape < self.matrix.shape[1]


class Turns(NamedTuple):
    """Precisions (m,) and those of the nodes (k, m); what the evidence is made of.

    ``energy`` is twice the noise's rate, ``log_determinant`` that of I + A T^-1 A', and
    ``log_gain`` what the evidence gains over that of a normal prior of the precisions.
    The last are as in :class:`~posterity.evidence.Choice`, ``weights`` (k,) the nodes'.
    """

    precisions: Array
    nodes: Array
    energy: float
    log_determinant: float
    log_gain: float
    disagreement: float
    n_parameters: float
    weights: Array = NODES


class _Turn(NamedTuple):
    """Logs (m,) of the precisions that are ``wanted``, and how far they have to ``move``."""

    wanted: Array
    move: Array

    @property
    def change(self) -> float:
        return float(np.max(np.abs(self.move)))

    def extrapolate(self, last: _Turn | None) -> Array:
        """Where the next turn begins: further on if the moves since the last one agree.

        This is Anderson's acceleration of one step (Walker and Ni 2011).
        """
        if last is None or self.change >= last.change:
            return self.wanted
        off = self.move - last.move
        share = np.clip(self.move @ off / max(float(off @ off), TINY), *SHARES_BACK)
        return np.asarray(self.wanted - share * (self.wanted - last.wanted))


class _Cavities(NamedTuple):
    """What the data say of each coefficient: ``information`` (m,) is 1 / C_j, ``centre`` c_j."""

    information: Array
    centre: Array
    energy: float
    log_determinant: float

    @classmethod
    def of(cls, rows: StandardRows, precisions: Array) -> Self:
        """O(m^3), or of few rows O(r^2 m)."""
        few = len(rows.matrix) < len(precisions)
        find = _find_of_few_rows if few else _find_of_many_rows
        information, centre, mean, log_determinant = find(rows, precisions)
        left = rows.target - rows.matrix @ mean
        energy = rows.rest + float(left @ left) + float(precisions @ np.square(mean))
        return cls(information, centre, max(energy, rows.least), log_determinant)

    def compute_unit(self, rows: StandardRows) -> float:
        """Precision of the noise."""
        return rows.known or 2.0 * rows.shape / self.energy

    def compute_reach(self, rows: StandardRows) -> float:
        """How far the lattice must reach for the largest effect."""
        largest = np.square(self.centre) * self.compute_unit(rows) + 1.0 / self.information
        needed = float(np.log(largest.max())) - rows.lattice_base + ABOVE
        return min(needed, LONGEST_LATTICE - 1.0)

    def weigh_variances(self, rows: StandardRows, precisions: Array, v: Array) -> Array:
        """(m, g) log evidence of variances ``v`` (g,), over that of the present precisions."""
        inverse, squared = 1.0 / self.information[:, None], np.square(self.centre)[:, None]
        own = inverse + 1.0 / precisions[:, None]
        spread, mine = inverse + v, squared / own
        value = -0.5 * np.log(spread / own)
        if rows.known:
            return np.asarray(value - 0.5 * rows.known * (squared / spread - mine))
        others = np.maximum(self.energy - mine, SMALLEST_RESIDUAL * self.energy)
        return np.asarray(value - rows.shape * np.log((others + squared / spread) / self.energy))


def find_precisions(
    rows: StandardRows, tolerance: float, log_hyperprior: Array, start: Array | None = None
) -> Turns:
    """Find precisions and cavities in turns, under a prior (2, g) of the shared scale."""
    m = rows.matrix.shape[1]
    floor = SMALLEST_PRECISION * rows.lengths
    # Signal and noise as large as each other, if there is no better start.
    place, reach, last = np.log(np.maximum(float(m) if start is None else start, floor)), 0.0, None
    for _ in range(SWEEPS):
        before = np.maximum(np.exp(place), floor)
        cavities = _Cavities.of(rows, before)
        reach = max(reach, cavities.compute_reach(rows))
        tilted = _Tilted.of(rows, cavities, before, reach, log_hyperprior)
        precisions = np.maximum(tilted.match(tilted.posterior), floor)
        turn = _Turn(np.log(precisions), np.log(precisions) - place)
        if turn.change < tolerance:
            break
        place, last = turn.extrapolate(last), turn
    is_known = tilted.information >= LEAST_TOLD * tilted.information.max()
    nodes = np.where(is_known, tilted.split(), precisions)  # what is not known has no parts
    information = cavities.information
    unit = cavities.compute_unit(rows)
    shares = information / (information + nodes)
    off = (shares - NODES @ shares) * cavities.centre
    squared = np.square(off @ rows.matrix.T).sum(axis=1) + np.square(off) @ precisions
    return Turns(
        precisions,
        nodes,
        cavities.energy,
        cavities.log_determinant,
        tilted.log_gain,
        float(unit * (NODES @ squared)),
        float(np.sum(information / (information + precisions))),
    )


def part_shared_scale(
    rows: StandardRows,
    turns: Turns,
    find: Callable[[Array, Array], Turns],
    weigh: Callable[[Turns], float],
) -> Turns:
    """The same with nodes for parts of the shared scale, found under a hyperprior from a start.

    Coefficients of which rows tell more than the prior move through their own posteriors beside.
    """
    cavities = _Cavities.of(rows, turns.precisions)
    start = turns.precisions
    parts = [find(prior, start) for prior in _split_hyperprior(rows, cavities, start)]
    own = np.where(cavities.information > start, turns.nodes / start, 1.0)
    nodes = np.array([part.precisions for part in parts]) * own
    return turns._replace(nodes=nodes, weights=softmax([weigh(part) for part in parts]))


def _split_hyperprior(rows: StandardRows, cavities: _Cavities, precisions: Array) -> list[Array]:
    """The prior of the shared scale in parts, whose posterior has the shares ``NODES``."""
    how = cavities.compute_reach(rows), rows.log_hyperprior
    shared = _Tilted.of(rows, cavities, precisions, *how).shared
    points = np.arange(float(LONGEST_LATTICE))
    ends = np.hstack([0.0, np.cumsum(shared)])
    inner = np.interp(np.cumsum(NODES)[:-1], ends, np.arange(float(len(ends))))
    edges = [0.0, *inner, float(len(points))]
    shares = [
        np.clip(np.minimum(points + 1.0, b) - np.maximum(points, a), TINY, 1.0)
        for a, b in pairwise(edges)
    ]
    return [rows.log_hyperprior + np.log(share) for share in shares]


class _Tilted(NamedTuple):
    """Posteriors (m, g) of each coefficient's variance on the lattice ``v`` (g,).

    ``shared`` (g,) is that of the scale that all share.
    """

    posterior: Array
    shared: Array
    v: Array
    information: Array
    log_gain: float

    @classmethod
    def of(
        cls,
        rows: StandardRows,
        cavities: _Cavities,
        precisions: Array,
        reach: float,
        log_hyperprior: Array,
    ) -> Self:
        """On a lattice up to ``reach``, whose last point has a part of its weight."""
        v = np.exp(rows.lattice_base + np.arange(int(reach) + 1.0))
        values = cavities.weigh_variances(rows, precisions, v)
        top = values.max(axis=1, keepdims=True)
        likelihood = np.exp(values - top)
        likelihood[:, -1] *= reach - int(reach)
        ends = rows.ends
        counts = np.diff(ends, prepend=0)
        terms = likelihood[ends - counts]
        several = {
            t: SharedScale.of(likelihood[ends[t] - counts[t] : ends[t]], LOG_SHARES)
            for t in np.flatnonzero(counts > 1)
        }
        for t, shared in several.items():
            terms[t] = shared.likelihood
        together = SharedScale.of(terms, log_hyperprior[:, : len(v)])
        of_terms = together.find_posteriors()
        posterior = np.repeat(of_terms, counts, axis=0)
        for t, shared in several.items():
            weight = of_terms[t] / np.maximum(shared.likelihood, TINY)
            posterior[ends[t] - counts[t] : ends[t]] = shared.find_posteriors(weight)
        logs = [shared.log_top for shared in (together, *several.values())]
        total = together.likelihood.sum()
        gain = float(top.sum() + sum(logs) + np.log(total))
        return cls(posterior, together.likelihood / total, v, cavities.information, gain)

    def match(self, weights: Array) -> Array:
        """(m,) the precision that shrinks as much as the average over ``weights`` (m, g)."""
        information = np.maximum(self.information, LEAST_TOLD * self.information.max())
        told = information[:, None] * self.v
        free = np.sum(weights / (1.0 + told), axis=1)
        kept = np.sum(weights * told / (1.0 + told), axis=1)
        return np.asarray(information * free / np.maximum(kept, TINY))

    def split(self) -> Array:
        """(k, m) precisions of the parts of each posterior, in the order of the variances."""
        ends = np.cumsum(self.posterior, axis=1)
        starts = np.hstack([np.zeros((len(ends), 1)), ends[:, :-1]])
        edges = [0.0, *np.cumsum(NODES)[:-1], 2.0]
        parts = [
            np.maximum(np.minimum(ends, high) - np.maximum(starts, low), 0.0)
            for low, high in pairwise(edges)
        ]
        return np.array([self.match(part) for part in parts])


def _find_of_many_rows(rows: StandardRows, precisions: Array) -> tuple[Array, Array, Array, float]:
    upper = _factorize(rows.gram + np.diag(precisions))
    covariance = dpotri(upper)[0]
    covariance = np.triu(covariance) + np.triu(covariance, 1).T
    variance = np.diag(covariance)
    mean = covariance @ (rows.matrix.T @ rows.target)
    information = np.maximum(1.0 / variance - precisions, EPS * rows.lengths)
    log_determinant = 2.0 * np.log(np.diag(upper)).sum() - np.log(precisions).sum()
    return information, mean / (variance * information), mean, float(log_determinant)


def _find_of_few_rows(rows: StandardRows, precisions: Array) -> tuple[Array, Array, Array, float]:
    scaled = rows.matrix / np.sqrt(precisions)
    inner = scaled @ scaled.T
    inner[np.diag_indices(len(inner))] += 1.0
    upper = _factorize(inner)
    solved = solve_triangle(upper, rows.target, transposed=True)
    parts = dtrsm(1.0, upper, scaled.T, side=1, overwrite_b=1)
    lengths = precisions * np.einsum("ij,ij->i", parts, parts)
    products = np.sqrt(precisions) * (parts @ solved)
    information = lengths / np.maximum(1.0 - lengths / precisions, EPS)
    information = np.maximum(information, EPS * rows.lengths)
    centre = products / np.maximum(lengths, TINY)
    log_determinant = 2.0 * np.log(np.diag(upper)).sum()
    return information, centre, products / precisions, float(log_determinant)


def _factorize(matrix: Array) -> Array:
    """Upper Cholesky factor; precisions have a floor, so there is one."""
    upper, _ = dpotrf(matrix, clean=1)
    return np.asarray(upper)
