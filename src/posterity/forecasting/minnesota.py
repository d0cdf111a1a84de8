"""The posterior of a vector autoregression under Minnesota's prior with learned tightness.

With signals in units of their own AR(1) errors, z_t = y_t - delta y_{t-1}, and the features
[1, y_{t-1}, ..., y_{t-L}] of all signals, the model is a chain of regressions, one a signal,

    z_j = x.b_j + sum_{k<j} a_jk z_k + e_j ,    e_j ~ Normal(0, sigma_j^2) ,

with the priors  b_j ~ Normal(0, sigma_j^2 lambda^2 / l^2), lambda one number for own lags and one
for those of others, l the lag; a_jk ~ Normal(0, sigma_j^2); and 2 + j rows of unit errors for
sigma_j^2, which is InverseWishart(I, q + 2) for all signals together (Chan 2022, asymmetric
conjugate priors). So everything is read from one triangle of [x, y], evidence too: the two
lambdas and delta (0: signals return; 1: they walk) are averaged over a grid by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainccinv, gammaln, logsumexp, ndtri

from posterity.aliases import Array
from posterity.forecasting.posterior import make_sobol_points

# Prior standard deviations of own first lags, and of others' as a share of that.
OWN = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
OTHERS = (0.02, 0.1, 0.25, 0.5, 1.0)
# Weight of the prior of the first signal's noise, in rows of unit errors.
NOISE_ROWS = 2.0


@dataclass(frozen=True)
class Nodes:
    """Tightness of own and of others' lags (G,), and delta (G,)."""

    own: Array
    others: Array
    delta: Array

    @classmethod
    def grid(cls) -> Nodes:
        """Return the grid of all nodes that are averaged."""
        own, share, delta = (
            one.ravel() for one in np.meshgrid(OWN, OTHERS, (0.0, 1.0), indexing="ij")
        )
        return cls(own, own * share, delta)

    @classmethod
    def given(cls, own: float, others: float) -> Nodes:
        """Return the node that users give; infinite is a flat prior."""
        return cls(np.array([own, own]), np.array([others, others]), np.array([0.0, 1.0]))

    def __len__(self) -> int:
        return len(self.own)


@dataclass(frozen=True)
class Regressions:
    """Regression of one link of the chain under each node: triangles (G, k + 1, k + 1).

    ``shape`` (G,) and ``rate`` (G,) are of the noise's posterior, ``log_evidence`` (G,).
    """

    triangles: Array
    shape: Array
    rate: Array
    log_evidence: Array


@dataclass(frozen=True)
class System:
    """The triangle (p + q, p + q) of ``n`` rows [1, lags, signals], lags by lag, then by signal."""

    triangle: Array
    n: int
    lags: int

    @property
    def n_signals(self) -> int:
        """q."""
        return (len(self.triangle) - 1) // (self.lags + 1)

    @property
    def n_features(self) -> int:
        """p, the constant included."""
        return 1 + self.lags * self.n_signals

    def link(
        self, j: int, nodes: Nodes, *, before: bool = True, without: int | None = None
    ) -> Regressions:
        """The regression of signal ``j``, on those ``before`` it too, or ``without`` one's lags."""
        p, q = self.n_features, self.n_signals
        lag, signal = np.divmod(np.arange(p - 1), q)
        tightness = np.where(signal == j, nodes.own[:, None], nodes.others[:, None])
        precision = np.zeros((len(nodes), p))
        precision[:, 1:] = np.square((lag + 1.0) / tightness)
        kept = np.append(True, signal != without)
        targets = self.triangle[:, p:] - nodes.delta[:, None, None] * self.triangle[:, 1 : q + 1]
        k = j if before else 0
        features = np.broadcast_to(self.triangle[:, :p][:, kept], (len(nodes), p + q, kept.sum()))
        rows = np.concatenate([features, targets[:, :, :k], targets[:, :, j : j + 1]], axis=2)
        precision = np.hstack([precision[:, kept], np.ones((len(nodes), k))])
        return _posterior(rows, precision, self.n, NOISE_ROWS + 1.0 + k)

    def chain(self, nodes: Nodes) -> list[Regressions]:
        """Return all links of the chain."""
        return [self.link(j, nodes) for j in range(self.n_signals)]


def _posterior(rows: Array, precision: Array, n: int, noise_rows: float) -> Regressions:
    """Regressions of the last column of ``rows`` (G, r, k + 1) with precisions (G, k)."""
    nodes, _, width = rows.shape
    prior = np.zeros((nodes, width - 1, width))
    np.einsum("gii->gi", prior[:, :, :-1])[...] = np.sqrt(precision)
    triangles = np.asarray(np.linalg.qr(np.concatenate([rows, prior], axis=1), mode="r"))
    diagonal = np.abs(np.einsum("gii->gi", triangles))
    proper = precision > 0.0
    shape = 0.5 * (noise_rows + n - (~proper).sum(axis=1))
    rate = 0.5 * (1.0 + np.square(diagonal[:, -1]))
    log_evidence = 0.5 * np.log(np.where(proper, precision, 1.0)).sum(axis=1)
    log_evidence -= np.log(np.maximum(diagonal[:, :-1], 1e-300)).sum(axis=1)
    log_evidence += gammaln(shape) - gammaln(0.5 * noise_rows) - shape * np.log(rate)
    log_evidence += 0.5 * noise_rows * np.log(0.5)
    log_evidence -= 0.5 * (n - (~proper).sum(axis=1)) * np.log(2.0 * np.pi)
    return Regressions(triangles, shape, rate, log_evidence)


@dataclass(frozen=True)
class SystemDraws:
    """K joint draws: ``weights`` (K, p, q) of the features, ``roots`` (K, q, q) of the noise."""

    weights: Array
    roots: Array


def compute_node_weights(nodes: Nodes, links: list[Regressions]) -> tuple[Array, float]:
    """(G,) posterior weights of the nodes, all as likely before, and the log evidence."""
    total = sum((link.log_evidence for link in links), np.zeros(len(nodes)))
    return np.exp(total - logsumexp(total)), float(logsumexp(total) - np.log(len(total)))


def means(system: System, nodes: Nodes, links: list[Regressions]) -> Array:
    """(p, q) posterior means of the coefficients of the chain's reduced form at each mean."""
    weights = compute_node_weights(nodes, links)[0]
    found = np.zeros((system.n_features, system.n_signals))
    for node in np.flatnonzero(weights > 1e-12):
        steps = [_solve_triangle(link.triangles[node], 0.0) for link in links]
        found += weights[node] * _reduce(system, steps, nodes.delta[node])[0]
    return found


def draws(system: System, nodes: Nodes, links: list[Regressions], size: int) -> SystemDraws:
    """Draws of a fixed set of points of low discrepancy."""
    weights = compute_node_weights(nodes, links)[0]
    widths = [link.triangles.shape[1] for link in links]
    points = make_sobol_points(size, 1 + sum(widths))
    which = np.minimum(np.searchsorted(np.cumsum(weights), points[:, 0]), len(weights) - 1)
    coefficients = np.empty((size, system.n_features, system.n_signals))
    roots = np.empty((size, system.n_signals, system.n_signals))
    ends = np.cumsum([1, *widths])
    for number, node in enumerate(which):
        steps, noise = [], []
        for link, first, stop in zip(links, ends[:-1], ends[1:], strict=True):
            shape, rate = link.shape[node], link.rate[node]
            sigma = np.sqrt(rate / gammainccinv(shape, points[number, first]))
            normal = ndtri(points[number, first + 1 : stop])
            steps.append(_solve_triangle(link.triangles[node], sigma * normal))
            noise.append(sigma)
        coefficients[number], inverse = _reduce(system, steps, nodes.delta[node])
        roots[number] = inverse * np.array(noise)
    return SystemDraws(coefficients, roots)


# ---- inner ---------------------------------------------------------------------------------------


def _solve_triangle(triangle: Array, off: Array | float) -> Array:
    return np.asarray(np.linalg.solve(triangle[:-1, :-1], triangle[:-1, -1] + off))


def _reduce(system: System, steps: list[Array], delta: float) -> tuple[Array, Array]:
    """Coefficients (p, q) without the signals of the same time, and (I - A)^-1."""
    p, q = system.n_features, system.n_signals
    ties = np.zeros((q, q))
    for j, step in enumerate(steps):
        ties[j, :j] = step[p:]
    inverse: Array = np.asarray(np.linalg.inv(np.eye(q) - ties), dtype=np.float64)
    weights = np.array([step[:p] for step in steps]).reshape(q, p).T @ inverse.T
    weights[1 : q + 1] += delta * np.eye(q)
    return weights, inverse
