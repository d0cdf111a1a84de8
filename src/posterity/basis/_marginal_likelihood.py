"""Length scales and variances of an exact Gaussian process, by marginal likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from posterity.aliases import Array
from posterity.basis._kernels import SMOOTHNESS
from posterity.kernel.values import read_floats

MOST_ROWS = 600
MOST_STEPS = 80
# Prior sds of log length scale, log variance and log noise variance. They are wide, and decide only
# where rows say nothing: without any, a useless feature's length scale would go off to infinity.
LOG_PRIOR_SDS = (1.5, 3.0, 3.0)
# Prior medians of a variance and of the noise's, of targets of unit variance.
VARIANCE, NOISE = 0.5, 0.1
LARGEST_LOG_MOVE = (
    7.0  # how far logs may be from the prior's median; noise needs more on smooth data
)
LEAST_LOG_NOISE = math.log(1e-8)
STARTS = (1.0, 3.0, 9.0, 27.0)  # the search begins with scales so much shorter than the median


@dataclass(frozen=True)
class FittedProcess:
    """The most probable process: in the unit of the features, of targets of unit variance.

    Attributes
    ----------
    length_scales
        (d,)
    variances
        (b + 1,) of the parts that were given, and of the stationary process.
    """

    length_scales: Array
    variances: Array


def maximize_posterior(
    X: Array, y: ArrayLike | None, kernel: str, parts: Sequence[Array] = (), seed: int = 0
) -> FittedProcess:
    """Maximise the posterior density of length scales, variances and noise.

    Parameters
    ----------
    X : (n, d) array
        Rows, of which 600 at most are looked at, and each once, however often it came.
    y : (n,) or (n, q) array
        Targets, which share everything; rows without one count for nothing.
    kernel : str
        Of the stationary process, with a length scale for each feature.
    parts : sequence of (n, k) arrays
        Columns with independent coefficients of one variance, a variance for each part.
    seed : int
        Of the choice of rows.

    Notes
    -----
    ``log p(y) = -y' K^-1 y / 2 - log det K / 2`` and its gradient ``tr((a a' - K^-1) dK) / 2``,
    ``a = K^-1 y`` (Rasmussen and Williams 2006, eq. 5.8-5.9). The derivatives by all length scales
    take one product of matrices, for squared distances are made of squares and products.
    """
    targets = _targets(y, len(X))
    known = np.flatnonzero(np.isfinite(targets).all(axis=1))
    # A row that comes again would say that there is no noise.
    different = np.unique(np.hstack([X, targets])[known], axis=0, return_index=True)[1]
    known = known[np.sort(different)]
    if len(known) > MOST_ROWS:
        known = np.random.default_rng(seed).permutation(known)[:MOST_ROWS]
    unit = X.std(axis=0)
    unit = np.where(unit > 0.0, unit, 1.0)
    rows = (X[known] - X.mean(axis=0)) / unit
    # Distances grow with the root of their number.
    median = 0.5 * math.log(2.0 * X.shape[1])
    grams = [part[known] @ part[known].T for part in parts]
    problem = _Problem(rows, _standardize_targets(targets[known]), kernel, grams)
    d, n_variances = X.shape[1], len(parts) + 1
    centre = np.repeat([median, math.log(VARIANCE), math.log(NOISE)], [d, n_variances, 1])
    widths = np.repeat(LOG_PRIOR_SDS, [d, n_variances, 1])
    found = _search(problem, centre, widths) if len(rows) > 1 else centre
    return FittedProcess(np.exp(found[:d]) * unit, np.exp(found[d:-1]))


def _search(problem: _Problem, centre: Array, widths: Array) -> Array:
    """The logs of largest posterior density, under a normal prior."""
    bounds = [(one - LARGEST_LOG_MOVE, one + LARGEST_LOG_MOVE) for one in centre]
    bounds[-1] = LEAST_LOG_NOISE, 2.0

    def loss(place: Array) -> tuple[float, Array]:
        value, slope = problem.log_density(place)
        off = (place - centre) / widths
        return 0.5 * float(off @ off) - value, off / widths - slope

    # Of a function that turns many times long scales explain nothing, and a little shorter ones
    # neither: a search that begins there ends there.
    is_scale = np.arange(len(centre)) < problem.rows.shape[1]
    starts = [centre - np.log(factor) * is_scale for factor in STARTS]
    start = min(starts, key=lambda place: loss(place)[0])
    options = {"maxiter": MOST_STEPS}
    # Threads do not pay for matrices of some hundred rows, and cost much on a busy machine.
    with threadpool_limits(1, user_api="blas"):
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(found.x)


class _Problem:
    """The log marginal likelihood as a function of logs: length scales, variances, noise."""

    def __init__(self, rows: Array, targets: Array, kernel: str, grams: list[Array]) -> None:
        self.rows, self.targets, self.kernel, self.grams = rows, targets, kernel, grams

    def log_density(self, place: Array) -> tuple[float, Array]:
        """Value and gradient."""
        n, d = self.rows.shape
        scaled = self.rows / np.exp(place[:d])
        *variances, noise = np.exp(place[d:])
        process, slope = stationary(self.kernel, _compute_squared_distances(scaled))
        parts = [*self.grams, process]
        covariance = sum(v * part for v, part in zip(variances, parts, strict=True))
        covariance[np.diag_indices(n)] += noise + 1e-10
        try:
            factor = cho_factor(covariance, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return -1e10, np.zeros(len(place))
        lower = np.tril(dpotri(factor[0], lower=1)[0])
        inverse = lower + np.tril(lower, -1).T
        solved = inverse @ self.targets
        q = self.targets.shape[1]
        value = -0.5 * float(np.sum(self.targets * solved))
        value -= q * float(np.log(np.diag(factor[0])).sum())
        weights = 0.5 * (solved @ solved.T - q * inverse)
        gradient = np.empty(len(place))
        inner = -2.0 * variances[-1] * weights * slope
        sums = inner.sum(axis=1)
        crossed = np.einsum("ij,ij->j", scaled, inner @ scaled)
        gradient[:d] = 2.0 * (sums @ np.square(scaled) - crossed)
        gradient[d:-1] = [
            v * float(np.vdot(weights, part)) for v, part in zip(variances, parts, strict=True)
        ]
        gradient[-1] = noise * float(np.trace(weights))
        return value, gradient


def stationary(kernel: str, squares: Array) -> tuple[Array, Array]:
    """Correlations at squared distances, in length scales, and their derivatives by these."""
    nu = SMOOTHNESS[kernel]
    if math.isinf(nu):
        values = np.exp(-0.5 * squares)
        return values, -0.5 * values
    distances = np.sqrt(2.0 * nu * squares)
    fading = np.exp(-distances)
    if nu == 1.5:
        return (1.0 + distances) * fading, -1.5 * fading
    whole = (1.0 + distances + np.square(distances) / 3.0) * fading
    return whole, -5.0 / 6.0 * (1.0 + distances) * fading


def _compute_squared_distances(rows: Array) -> Array:
    squares = np.square(rows).sum(axis=1)
    return np.maximum(squares[:, None] + squares - 2.0 * (rows @ rows.T), 0.0)


def _targets(y: ArrayLike | None, n: int) -> Array:
    if y is None:
        raise ValueError(
            "length scales are learned from targets, and this transformer requires y to be passed, "
            "but the target y is None: call fit(X, y), or use it as basis= of a model"
        )
    return read_floats(y, "y").reshape(n, -1)


def _standardize_targets(targets: Array) -> Array:
    """Targets of mean 0 and variance 1; 0 where one is constant."""
    largest = np.abs(targets).max(axis=0, initial=0.0)
    targets = targets / np.where(largest > 0.0, largest, 1.0)  # their squares may overflow
    targets = targets - targets.mean(axis=0) if len(targets) else targets
    spread = targets.std(axis=0) if len(targets) else np.ones(targets.shape[1])
    return targets / np.where(spread > 1e-12, spread, np.inf)
