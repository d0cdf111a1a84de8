"""Posterior of standard deviations and correlations, from nodes over them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import RBFInterpolator
from scipy.special import gammainccinv, ndtri
from scipy.stats import qmc

from posterity.aliases import Array
from posterity.posteriors._sparse_fit import Reading
from posterity.posteriors._sparse_terms import Terms

# The logarithm of the number of points, and how far they spread, in standard deviations of nodes.
LOG_POINTS, SPREAD = 12, 1.5
# How far beyond nodes their density is read, in standard deviations.
REACH = 2.0
# Where the noise's precision has a Gamma distribution of a smaller shape, rows say nothing of it.
LEAST_SHAPE = 1e-3


class Points(NamedTuple):
    """Weighted points of the posterior: coordinates (n, d) of terms, and the noise's variance."""

    at: Array
    noise: Array
    weights: Array

    def summarize(self, values: Array, level: float) -> dict[str, float]:
        """Mean, standard deviation and central interval of a value (n,) at each point."""
        mean = float(self.weights @ values)
        sd = float(np.sqrt(self.weights @ np.square(values - mean)))
        order = np.argsort(values)
        places = np.cumsum(self.weights[order]) - 0.5 * self.weights[order]
        low, high = np.interp([0.5 - 0.5 * level, 0.5 + 0.5 * level], places, values[order])
        return {"mean": mean, "sd": sd, "low": float(low), "high": float(high)}


def find_points(reading: Reading) -> Points:
    """Points between the nodes, weighted by the density that is interpolated there.

    The noise is NaN where rows say nothing of it, in whose units standard deviations are.

    A quadratic plus what is left of the log density at nodes, by cubic radial functions, which
    grow no faster than it.
    """
    nodes = reading.nodes
    at = np.array([node.at for node in nodes])
    rates = np.log([max(one.rate, 1e-300) for one in reading.solutions])
    heights = np.array([node.log_density for node in nodes])
    size, shape = at.shape[1], reading.solutions[0].shape
    unit = qmc.Sobol(size + 1, scramble=True, rng=np.random.default_rng(0)).random_base2(LOG_POINTS)
    unit = np.clip(unit, 1e-9, 1.0 - 1e-9)
    places, weights = np.zeros((len(unit), size)), np.ones(len(unit))
    if len(nodes) > 1:
        centre = reading.weights @ at
        root = np.linalg.cholesky(
            np.cov(at.T, aweights=reading.weights, bias=True).reshape(size, -1)
        )
        normal = SPREAD * ndtri(unit[:, :size])
        places = centre + normal @ root.T
        white = np.linalg.solve(root, (at - centre).T).T
        surface = RBFInterpolator(
            white, np.stack([heights, rates], axis=1), kernel="cubic", degree=2
        )
        # Far from the nodes a surface may rise, or fall: it knows nothing there.
        found, log_rate = np.minimum(surface(normal), [heights.max(), rates.max()]).T
        near = (normal > white.min(axis=0) - REACH) & (normal < white.max(axis=0) + REACH)
        found[~near.all(axis=1)] = -np.inf
        log_rate = np.maximum(log_rate, rates.min())
        logs = found + 0.5 * np.square(normal).sum(axis=1) / SPREAD**2
        weights = np.exp(logs - logs.max())
    else:
        places, log_rate = places + at[0], np.full(len(unit), rates[0])
    noise = np.full(len(unit), reading.solutions[0].rate)  # where it is known
    if 0.0 <= shape < LEAST_SHAPE:
        noise[:] = np.nan
    elif shape > 0.0:
        noise = np.exp(log_rate) / gammainccinv(shape, unit[:, size])
    return Points(places, noise, weights / weights.sum())


def list_components(terms: Terms, names: Any, at: Array, noise: Array) -> list[tuple[str, Array]]:
    """Names, and values (n,) at coordinates (n, d): standard deviations and correlations.

    ``names`` (terms, k): those of the columns of each term, "effect | group".
    """
    found: list[tuple[str, Array]] = []
    starts = np.cumsum([0, *(term.size for term in terms.terms)])
    for term, columns, start in zip(terms.terms, names, starts, strict=False):
        own = at[:, start : start + term.size]
        k = len(columns)
        if k == 1:
            sds, matrices = np.exp(own) * term.unit[0, 0], np.ones((len(own), 1, 1))
        else:
            covariances = np.array([term.covariance(one) for one in own])
            sds = np.sqrt(np.einsum("nii->ni", covariances))
            matrices = covariances / (sds[:, :, None] * sds[:, None, :])
        for place, column in enumerate(columns):
            found.append((f"sd({column})", sds[:, place] * np.sqrt(noise)))
        effects, _, group = zip(*(column.partition(" | ") for column in columns), strict=True)
        for i, j in zip(*np.tril_indices(k, -1), strict=True):
            found.append((f"cor({effects[j]}, {effects[i]} | {group[0]})", matrices[:, i, j]))
    return found


def list_parameters(terms: Terms, at: Array) -> list[tuple[str, Array]]:
    """Names, and values (n,) at coordinates (n, d), of the likelihood's parameters."""
    values = np.exp(at[:, terms.size - len(terms.parameters) :])
    return [(one.name, values[:, place]) for place, one in enumerate(terms.parameters)]
