"""The posterior of the dispersion of counts, given their rates.

The log likelihood of log dispersion is analytic, so that its values at a few Chebyshev points say
it everywhere, to rounding, however many rows there were: sums over rows, which need not be kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from posterity.kernel import find_sites
from posterity.likelihoods import NegativeBinomial

Array = NDArray[np.float64]

LOWEST_LOG, HIGHEST_LOG = math.log(1e-5), math.log(100.0)
N_POINTS = 48
POINTS = np.polynomial.chebyshev.chebpts1(N_POINTS)
DISPERSIONS = np.exp(LOWEST_LOG + 0.5 * (HIGHEST_LOG - LOWEST_LOG) * (1.0 + POINTS))
SMALL_RATE = np.linalg.inv(np.polynomial.chebyshev.chebvander(POINTS, N_POINTS - 1))
BLOCK_ROWS = 512
GRID = 200
LOWEST_RELATIVE_LOG = 25.0  # nats below the maximum: values further below are ignored
MOST_REFINEMENTS = 12
MOST_STEPS, TOLERANCE = 60, 1e-3
# The dispersion is updated each time the rows have grown by an eighth.
GROWTH_DIVISOR = 8


@dataclass
class Dispersion:
    """Log likelihoods at DISPERSIONS, the dispersion in force, rows learned and when it is due.

    ``evidence_correction`` is what the log evidence of the counts lacks at this dispersion.
    """

    log_likelihood: Array = field(default_factory=lambda: np.zeros(N_POINTS))
    value: float = math.nan
    rows: float = 0.0
    due: float = 0.0
    evidence_correction: float = 0.0

    def copy(self) -> Dispersion:
        """An independent copy."""
        return Dispersion(
            self.log_likelihood.copy(), self.value, self.rows, self.due, self.evidence_correction
        )

    def copy_from(self, other: Dispersion) -> None:
        """Take over all of another one."""
        self.__dict__.update(other.__dict__)

    def set_to_posterior_mean(self) -> None:
        """Set the dispersion to its posterior mean."""
        self.value = mean_and_evidence(self.log_likelihood)[0]
        self.due = self.rows + max(1.0, self.rows // GROWTH_DIVISOR)

    def learn(
        self, y: Array, weights: Array | None, mean: Array, variance: Array, *, after: bool
    ) -> None:
        """Learn from counts whose log rates are Normal(mean, variance): before, or after them."""
        self._add(1.0, y, weights, mean, variance, after=after)

    def unlearn(self, y: Array, weights: Array | None, mean: Array, variance: Array) -> None:
        """Unlearn counts with log rates Normal(mean, variance)."""
        self._add(-1.0, y, weights, mean, variance, after=True)
        if self.rows <= 0.0:
            self.log_likelihood[:], self.rows = 0.0, 0.0

    def _add(
        self,
        sign: float,
        y: Array,
        weights: Array | None,
        mean: Array,
        variance: Array,
        *,
        after: bool,
    ) -> None:
        counts = np.ones(len(y)) if weights is None else weights
        some = counts > 0.0
        y, mean, variance, counts = y[some], mean[some], variance[some], counts[some]
        terms = _evaluate_at_mode if after else _before
        for first in range(0, len(y), BLOCK_ROWS):
            part = slice(first, first + BLOCK_ROWS)
            with np.errstate(all="ignore"):
                log_likelihood = terms(y[part], mean[part], variance[part], self.value)
            self.log_likelihood += sign * (counts[part] @ log_likelihood)
        self.rows += sign * float(len(y))


def mean_and_evidence(log_likelihood: Array) -> tuple[float, float]:
    """Mean of the dispersion, and log of the integral of the likelihood over its prior.

    The prior is exponential in the square root of the dispersion, with mean 1: it falls from
    Poisson on as the distance from it grows (Simpson et al. 2017, "Penalising model component
    complexity").

    Examples
    --------
    >>> mean, log_evidence = mean_and_evidence(np.zeros(N_POINTS))
    >>> round(mean, 2), round(log_evidence, 2)
    (2.0, -0.0)
    """
    series = SMALL_RATE @ log_likelihood
    low, high = LOWEST_LOG, HIGHEST_LOG
    for _ in range(MOST_REFINEMENTS):
        logs = np.linspace(low, high, GRID)
        log_posterior = np.polynomial.chebyshev.chebval(
            2.0 * (logs - LOWEST_LOG) / (HIGHEST_LOG - LOWEST_LOG) - 1.0, series
        )
        roots = np.exp(0.5 * logs)
        log_posterior = log_posterior + np.log(0.5 * roots) - roots
        highest = log_posterior.max()
        if not np.isfinite(highest):
            raise FloatingPointError("the likelihood of these counts is not finite")
        places = np.flatnonzero(log_posterior - highest > -LOWEST_RELATIVE_LOG)
        if len(places) > GRID // 3:
            break
        low, high = logs[max(places[0] - 1, 0)], logs[min(places[-1] + 1, GRID - 1)]
    share = np.exp(log_posterior - log_posterior.max())
    share[[0, -1]] *= 0.5
    total = float(share.sum())
    evidence = float(log_posterior.max()) + math.log(total * (logs[1] - logs[0]))
    return float(share @ np.square(roots)) / total, evidence


def interpolate_log_likelihood(log_likelihood: Array, dispersion: float) -> float:
    """The log likelihood at a dispersion."""
    place = 2.0 * (math.log(dispersion) - LOWEST_LOG) / (HIGHEST_LOG - LOWEST_LOG) - 1.0
    return float(np.polynomial.chebyshev.chebval(place, SMALL_RATE @ log_likelihood))


def _densities(y: Array, eta: Array) -> Array:
    """Log probabilities of counts (n,) at log rates (n, 1 or N_POINTS)."""
    a = DISPERSIONS
    # log of the product of 1 + a j over all j < y, once for each count that there is
    kinds, which = np.unique(y, return_inverse=True)
    kinds = kinds[:, None]
    rising = gammaln(kinds + 1.0 / a) - gammaln(1.0 / a) + kinds * np.log(a) - gammaln(kinds + 1.0)
    log_grown = np.log(1.0 + a * _rate(eta))
    return rising[which] + y[:, None] * (eta - log_grown) - log_grown / a


def _compute_derivatives(y: Array, rate: Array) -> tuple[Array, Array]:
    """Return the slopes of the log likelihoods in eta, and their negative second derivatives."""
    grown = 1.0 + DISPERSIONS * rate
    slope = (y[:, None] - rate) / grown
    return slope, rate * (1.0 + DISPERSIONS * y[:, None]) / np.square(grown)


def _rate(eta: Array) -> Array:
    return np.exp(np.minimum(eta, 300.0))


def _before(y: Array, mean: Array, variance: Array, dispersion: float) -> Array:
    """Log predictive probabilities (n, N_POINTS) by Laplace's method.

    The modes of eta are found from the one under the dispersion in force, by Newton's method.
    """
    v = np.maximum(variance, 1e-12)
    code, parameters = NegativeBinomial(dispersion).kernel_code
    precision, target, _ = find_sites(code, parameters, False, y, mean, v, np.ones(len(y)))
    share = v * precision / (1.0 + v * precision)
    eta = (mean + share * (target - mean))[:, None]
    mean, v = mean[:, None], v[:, None]
    for _ in range(MOST_STEPS):
        slope, curvature = _compute_derivatives(y, _rate(eta))
        step = (slope * v - (eta - mean)) / (1.0 + v * curvature)
        eta = eta + np.clip(step, -1.0, 1.0)
        if np.abs(step).max(initial=0.0) < TOLERANCE:
            break
    curvature = _compute_derivatives(y, _rate(eta))[1]
    value = _densities(y, eta) - 0.5 * np.square(eta - mean) / v
    return value - 0.5 * np.log1p(v * curvature)


def _evaluate_at_mode(y: Array, mean: Array, variance: Array, dispersion: float) -> Array:
    """The same of counts that are learned: at the mode of the coefficients.

    What the coefficients leave open is log |H| / 2 of their precision H: with a variance v of eta
    under the dispersion in force and h its curvature there, the derivative of the log determinant
    is that of the sum of log(1 + v (h' - h)).
    """
    rate = _rate(mean)
    curvature = _compute_derivatives(y, rate[:, None])[1]
    here = rate * (1.0 + dispersion * y) / np.square(1.0 + dispersion * rate)
    v = np.where(np.isfinite(variance), variance, 0.0)
    more = v[:, None] * (curvature - here[:, None])
    return _densities(y, mean[:, None]) - 0.5 * np.log1p(np.maximum(more, -0.999))
