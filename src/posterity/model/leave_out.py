"""Each row predicted from the others: leave-one-out, of rows and of groups of rows.

Given standard deviations, correlations and parameters, rows that are left out take their Gaussian
rows, or sites, out of the posterior. Of S the covariance of eta of these, T their precisions and v
their shifts, what is left has the covariance C = (I - S T)^-1 S and the mean
(I - S T)^-1 (eta - S v), the cavity (Vehtari et al. 2016). Nodes lose what the rows said of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp

from posterity.aliases import Array, DataFrame, Indices
from posterity.distributions import StudentT
from posterity.distributions.joint_distribution import require_pandas
from posterity.likelihoods import Likelihood
from posterity.linear.keys import Keys
from posterity.model.engines import TermRows
from posterity.posteriors._site_rows import find_sites
from posterity.posteriors._sparse_nodes import Node
from posterity.posteriors._sparse_rows import Observations
from posterity.posteriors._sparse_solution import Solution
from posterity.posteriors.sparse import SparsePosterior

# Rows that are left out at once; what keeps a number from 0.
BLOCK, TINY = 512, 1e-300


class Learned(NamedTuple):
    """Rows that were learned: features (n, P), targets, weights, and what is added to eta (n,)."""

    X: csr_array
    y: Array
    weights: Array
    offsets: Array

    @classmethod
    def of(cls, posterior: SparsePosterior, given: Observations) -> Learned:
        """The rows that a user gives; raise ``ValueError`` where they are not those learned."""
        kept, weights = posterior.targets, given.own_weights
        same = abs(weights.sum() - posterior.n_observations) <= 1e-6 * posterior.n_observations
        if not posterior.likelihood.is_noise:
            same = np.array_equal(given.y, kept)
        if not same or (given.rows.features < 0).any():
            raise ValueError(
                "these are not the rows that the model has learned: give all of them, with the "
                "weights and in the order in which they were learned"
            )
        centres = posterior.solution().centres
        X = posterior._matrix(posterior.centre_rows(given.rows, centres, None))
        return cls(X, given.y, weights, given.own_offsets)

    def take(self, some: Indices) -> Learned:
        """Some of the rows."""
        return Learned(*(part[some] for part in self))


class Cavity(NamedTuple):
    """Of groups of s rows: eta (m, s) without them, its covariance (m, s, s), their precisions."""

    mean: Array
    covariance: Array
    precision: Array

    @property
    def variance(self) -> Array:
        """(m, s)."""
        return np.asarray(np.einsum("mss->ms", self.covariance))


class LeftOut(NamedTuple):
    """Of rows (m, s): expected targets, log densities, and log densities (m,) of all s together."""

    expected: Array
    log_density: Array
    together: Array


def list_left_out(
    engine: TermRows, given: Observations, by: str | None, keys: Keys | None
) -> DataFrame:
    """Table of rows, each predicted from all but it, or but those with the same of ``keys``."""
    posterior = engine._posterior
    rows = Learned.of(posterior, given)
    groups = np.arange(len(rows.y)) if keys is None else keys.numbers.astype(np.intp)
    mean, log_density = leave_out(posterior, rows, groups)
    if engine.sign < 0.0:
        mean = 1.0 - mean
    shown = {} if keys is None else {by: [keys.label(number) for number in groups.tolist()]}
    return require_pandas().DataFrame({**shown, "mean": mean, "log_density": log_density})


def leave_out(posterior: SparsePosterior, rows: Learned, groups: Indices) -> tuple[Array, Array]:
    """Expected targets and log densities (n,) of rows, given those of other ``groups`` (n,)."""
    reading = posterior.reading()
    likelihoods = reading.observe_each(posterior.likelihood)
    order = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[order])) + 1
    each = np.split(order, ends)
    sizes = np.array([len(one) for one in each])
    expected, densities = np.empty(len(groups)), np.empty(len(groups))
    for size in np.unique(sizes).tolist():
        alike = np.array([one for one in each if len(one) == size])
        for start in range(0, len(alike), max(BLOCK // size, 1)):
            some = alike[start : start + max(BLOCK // size, 1)]
            found = [
                _predict(posterior, solution, node, likelihood, rows, some)
                for solution, node, likelihood in zip(
                    reading.solutions, reading.nodes, likelihoods, strict=True
                )
            ]
            logs = np.log(reading.weights)[:, None] - [one.together for one in found]
            logs -= logsumexp(logs, axis=0)
            parts = logs[:, :, None] + [one.log_density for one in found]
            densities[some] = logsumexp(parts, axis=0)
            means = [one.expected for one in found]
            expected[some] = np.einsum("km,kms->ms", np.exp(logs), means)
    return expected, densities


# ---- inner ---------------------------------------------------------------------------------------


def _predict(
    posterior: SparsePosterior,
    solution: Solution,
    node: Node,
    likelihood: Likelihood,
    rows: Learned,
    some: Indices,
) -> LeftOut:
    """Rows (m, s) under one node."""
    own = rows.take(some.ravel())
    if posterior.likelihood.is_noise:
        precision, at = own.weights, posterior.centre + own.offsets
        shift = precision * (own.y - at)
    else:
        precision, shift = (part[some.ravel()] for part in np.split(node.found.sites, 2))
        at = own.offsets
    cavity = _find_cavity(solution, node, own.X, precision, shift, some.shape)
    mean = cavity.mean + at.reshape(some.shape)
    if posterior.noise is not None:
        return _predict_noise(solution, cavity, mean, own.y.reshape(some.shape))
    parts = own.y, mean.ravel(), cavity.variance.ravel()
    densities, together = (
        find_sites(likelihood, "moments", *parts, weights).log_normalizer.reshape(some.shape)
        for weights in (np.ones(some.size), own.weights)
    )
    if some.shape[1] > 1:  # what several rows say of scales takes another fit: nodes keep it
        together = np.zeros((len(some), 1))
    expected = likelihood.predictive(mean, cavity.variance).mean()
    return LeftOut(np.asarray(expected), densities, together[:, 0])


def _find_cavity(
    solution: Solution,
    node: Node,
    X: csr_array,
    precision: Array,
    shift: Array,
    shape: tuple[int, ...],
) -> Cavity:
    """Eta of groups of rows (m, s) without their own precisions and shifts."""
    met = csr_array(X[:, solution.met])
    white = solution.factor.whiten(met.toarray().T).T.reshape(*shape, -1)
    S = white @ white.transpose(0, 2, 1)
    t, v = precision.reshape(shape), shift.reshape(shape)
    eta = (met @ node.found.sweep.mean).reshape(shape)
    left = np.eye(shape[1]) - S * t[:, None, :]
    mean = np.linalg.solve(left, eta[:, :, None] - S @ v[:, :, None])[:, :, 0]
    return Cavity(mean, np.asarray(np.linalg.solve(left, S), dtype=np.float64), t)


def _predict_noise(solution: Solution, cavity: Cavity, mean: Array, y: Array) -> LeftOut:
    """Numbers (m, s), whose noise is learned: they take their squares off what is known of it."""
    shape = solution.shape
    spread = cavity.covariance + np.eye(y.shape[1]) / np.maximum(cavity.precision, TINY)[:, None, :]
    errors = (y - mean)[:, :, None]
    squares = (errors * np.linalg.solve(spread, errors)).sum(axis=(1, 2))
    a = shape - 0.5 * cavity.precision.sum(axis=1)
    b = np.maximum(solution.rate - 0.5 * squares, TINY)
    if (a <= 0.0).any():
        raise ValueError("too few rows are left to tell the noise: leave fewer out at once")
    together = gammaln(shape) - gammaln(a) + a * np.log(b) - shape * np.log(solution.rate)
    together -= 0.5 * np.linalg.slogdet(spread)[1]  # but for constants, the same of all nodes
    sd = np.sqrt((b / a)[:, None] * (1.0 + cavity.variance))
    each = StudentT(np.repeat(2.0 * a, y.shape[1]), mean.ravel(), sd.ravel())
    return LeftOut(mean, each.logpdf(y.ravel()).reshape(mean.shape), together)
