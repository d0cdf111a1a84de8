"""Shares of variance: of fixed effects and groups (R2), and of each group (intraclass correlation).

Nakagawa & Schielzeth (2013), with slopes by group as Johnson (2014) has them.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from posterity.aliases import Array, DataFrame, Indices
from posterity.distributions._limits import check_level
from posterity.distributions.joint_distribution import require_pandas
from posterity.model.components import Points, find_points
from posterity.model.design import Design
from posterity.model.engines import TermRows
from posterity.model.moments import Moments
from posterity.posteriors._sparse_fit import Reading


def explain_variance(engine: TermRows, design: Design, level: float) -> DataFrame:
    """Marginal and conditional R2, and the intraclass correlation of each group."""
    posterior = engine._posterior
    check_level(level)
    reading, moments = posterior.reading(), Moments.of(engine, design)
    points, groups, met = find_points(reading), _list_groups(engine), reading.solutions[0].met
    tied = [column for columns in groups.values() for term in columns for column in term]
    fixed = met[(posterior.owners[met] > 0) & ~np.isin(posterior.owners[met], tied)]
    nodes = KDTree([node.at for node in reading.nodes]).query(points.at)[1] if points.at.size else 0
    nodes = np.broadcast_to(nodes, len(points.noise))
    explained = _sample_fixed(reading, points, nodes, fixed, moments)
    shares = _sum_groups(groups, reading, points, moments.products)
    rest = engine.unexplained(points.noise, nodes)
    effects = sum(shares.values())
    within, total = rest + effects, rest + effects + explained
    found = {"R2 marginal": explained / total, "R2 conditional": (explained + effects) / total}
    found |= {f"ICC({group})": share / within for group, share in shares.items()}
    rows = [points.summarize(values, level) for values in found.values()]
    return require_pandas().DataFrame(rows, index=list(found))


# ---- inner ---------------------------------------------------------------------------------------


def _list_groups(engine: TermRows) -> dict[str, list[tuple[int, ...]]]:
    """The columns of each term of each group; curves are of none, and explain as fixed effects."""
    named = [(names[0].partition(" | ")[2], names) for names in engine.terms]
    return {
        group: [tuple(engine._index.column(name, new=False) for name in names) for _, names in some]
        for group, some in groupby(sorted(named), key=lambda one: one[0])
        if group
    }


def _sample_fixed(
    reading: Reading, points: Points, nodes: Indices, fixed: Indices, moments: Moments
) -> Array:
    """The variance over rows of what fixed effects add, with their draws at each point's node."""
    spread = moments.products[fixed][:, fixed].toarray()
    if moments.means is not None:  # else squares are those around 0
        spread -= np.outer(moments.means[fixed], moments.means[fixed])
    normal = np.random.default_rng(0).normal(size=(len(points.noise), len(fixed)))
    found = np.zeros(len(points.noise))
    for number, solution in enumerate(reading.solutions):
        some = nodes == number
        right = (solution.met[:, None] == fixed).astype(np.float64)
        white = solution.factor.whiten(right)
        root = np.linalg.cholesky(white.T @ white)
        drawn = solution.mean[fixed] + np.sqrt(points.noise[some])[:, None] * (
            normal[some] @ root.T
        )
        found[some] = np.einsum("ni,ij,nj->n", drawn, spread, drawn, optimize=True)
    return found


def _sum_groups(
    groups: dict[str, list[tuple[int, ...]]], reading: Reading, points: Points, products: Any
) -> dict[str, Array]:
    """The mean variance (points,) that each group's effects add to a row."""
    assert reading.terms is not None
    each, start, met = {}, 0, reading.solutions[0].met
    for term in reading.terms.terms:
        at, start = points.at[:, start : start + term.size], start + term.size
        features = met[term.features]
        one, other = np.broadcast_arrays(features[:, :, None], features[:, None, :])
        values = np.asarray(products[one.ravel(), other.ravel()]).reshape(one.shape)
        squares = values.sum(axis=0)
        each[term.columns] = points.noise * [np.sum(squares * term.covariance(own)) for own in at]
    return {name: sum(each[term] for term in some) for name, some in groups.items()}
