"""The evidence with one precision for each feature: value, derivatives, best single moves.

Symbols: A the standardised columns of the data's factor, z the target, lambda_j the precision of
feature j relative to the noise (infinite: pruned), Sigma = (A'A + diag lambda)^-1 and
mu = Sigma A'z over the features that are kept, E = 2 b_n, twice the rate of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from posterity.noise import KnownNoise, LearnedNoise, Noise

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Columns:
    """Standardised columns ``matrix`` (r, m) and ``target`` (r,), with what follows from them."""

    matrix: Array
    target: Array
    residual: float
    freed: float
    noise: Noise
    gram: Array
    product: Array

    @classmethod
    def of(
        cls, matrix: Array, target: Array, residual: float, freed: float, noise: Noise
    ) -> Columns:
        """Multiply once what every iteration needs."""
        gram, product = matrix.T @ matrix, matrix.T @ target
        return cls(matrix, target, residual, freed, noise, gram, product)

    @property
    def twice_shape(self) -> float:
        """2 a_n; NaN where the noise is known."""
        noise = self.noise
        return 2.0 * noise.shape + self.freed if isinstance(noise, LearnedNoise) else np.nan

    @property
    def twice_rate(self) -> float:
        """2 b_0: what the noise's prior adds to the residual sum of squares."""
        return 2.0 * self.noise.rate if isinstance(self.noise, LearnedNoise) else 0.0


@dataclass(frozen=True, eq=False)
class State:
    """Everything about one set of precisions.

    ``logs`` (m,) log lambda, infinite where pruned; ``kept`` the indices of the others (k,), which
    ``sigma`` (k, k) and ``mu`` (k,) are about; ``misfit`` (r,) z - A mu; ``value`` the log evidence
    up to a constant.
    """

    columns: Columns
    logs: Array
    kept: NDArray[np.intp]
    sigma: Array
    mu: Array
    misfit: Array
    energy: float
    value: float

    @classmethod
    def at(cls, columns: Columns, logs: Array) -> State:
        """Evaluate, O(k^3)."""
        kept = np.flatnonzero(logs < np.inf)
        precisions = np.exp(logs[kept])
        sigma, mu, log_determinant = _solved(columns, kept, precisions)
        # Not y'y - mu'A'z: the difference would lose the digits that a good fit is about.
        misfit = columns.target - columns.matrix[:, kept] @ mu
        residual = columns.residual + float(misfit @ misfit + precisions @ (mu * mu))
        energy = columns.twice_rate + residual
        value = 0.5 * (float(logs[kept].sum()) - log_determinant)
        if isinstance(columns.noise, KnownNoise):
            value -= 0.5 * columns.noise.known_precision * energy
        else:
            with np.errstate(divide="ignore"):
                value -= 0.5 * columns.twice_shape * float(np.log(energy))
        return cls(columns, logs, kept, sigma, mu, misfit, energy, value)

    @property
    def beta(self) -> float:
        """Noise precision a_n / b_n, or known."""
        noise = self.columns.noise
        if isinstance(noise, KnownNoise):
            return noise.known_precision
        return self.columns.twice_shape / self.energy

    @property
    def known(self) -> Array:
        """(k,) gamma_j = 1 - lambda_j Sigma_jj, how well the data determine each coefficient."""
        return 1.0 - np.exp(self.logs[self.kept]) * np.diag(self.sigma)

    def gradient(self) -> Array:
        """(k,) in log lambda; 0 where 1 / lambda_j = Sigma_jj + beta mu_j^2 (MacKay 1992)."""
        precisions = np.exp(self.logs[self.kept])
        return 0.5 * (1.0 - precisions * (np.diag(self.sigma) + self.beta * self.mu**2))

    def hessian(self) -> Array:
        """(k, k) in log lambda, by d Sigma / d log lambda_i = -lambda_i Sigma_:i Sigma_i:"""
        precisions = np.exp(self.logs[self.kept])
        pull = precisions * self.mu
        scaled = precisions[:, None] * self.sigma * precisions
        both = 0.5 * scaled * self.sigma + self.beta * np.outer(self.mu, self.mu) * scaled
        if isinstance(self.columns.noise, LearnedNoise):  # beta moves with E
            energies = self.beta * pull * self.mu
            both += np.outer(energies, energies) / (2.0 * self.columns.twice_shape)
        diagonal = 0.5 * precisions * (np.diag(self.sigma) + self.beta * self.mu**2)
        both[np.diag_indices_from(both)] -= diagonal
        return both

    def moves(self) -> tuple[Array, Array]:
        """(m,) the best log lambda_j, all others as they are, and what each gains.

        With feature j taken out, let s = phi' C^-1 phi, q = phi' C^-1 z and E be as they are then.
        The evidence as a function of l = lambda_j (Tipping and Faul 2003, with the noise
        integrated),

            1/2 log(l / (l + s)) - a_n log(E - q^2 / (l + s)),

        has one maximum: at l = s (s E - q^2) / (2 a_n q^2 - s E) if that is positive, else at
        infinity. With the noise known: 1/2 log(l / (l + s)) + beta/2 q^2 / (l + s), and
        l = s^2 / (beta q^2 - s).
        """
        columns, kept = self.columns, self.kept
        precisions, spread = np.exp(self.logs[kept]), np.diag(self.sigma)
        # phi' C^-1 phi and phi' C^-1 z of every feature, as sums of squares: nothing cancels.
        explained = self.sigma @ columns.gram[kept]
        left = columns.matrix - columns.matrix[:, kept] @ explained
        s = (left * left).sum(axis=0) + precisions @ (explained * explained)
        q = columns.matrix.T @ self.misfit
        # Without itself: of the two ways, the one that does not cancel.
        weak = s[kept] < 0.5 * precisions
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            taken_out = s[kept] / (1.0 - s[kept] / precisions)
            s[kept] = np.where(weak, taken_out, 1.0 / spread - precisions)
            q[kept] = self.mu / spread
        s = np.maximum(s, np.finfo(float).tiny)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            now = np.exp(self.logs)
            best = self._single_best(now, s, q * q)
            return np.log(best), np.nan_to_num(self._gain(now, best, s, q * q))

    def _single_best(self, now: Array, s: Array, square: Array) -> Array:
        if isinstance(self.columns.noise, KnownNoise):
            numerator, scale = s * s, s
            denominator = self.columns.noise.known_precision * square - s
        else:
            # E without the feature is E + q^2 / (l + s), put in where the terms do not cancel.
            scale = s * self.energy
            own = np.where(np.isinf(now), 0.0, s / (now + s))
            numerator = s * np.maximum(scale - square * (1.0 - own), 0.0)
            denominator = square * (self.columns.twice_shape - own) - scale
        # Beyond rounding: where one row is left for the noise, any feature fits it equally.
        best = np.where(denominator > 1e-9 * scale, numerator / denominator, np.inf)
        return np.where(best < LARGEST_RATIO * s, np.maximum(best, SMALLEST_RATIO * s), np.inf)

    def _gain(self, now: Array, best: Array, s: Array, square: Array) -> Array:
        """(m,) log evidence gained by going from ``now`` to ``best``."""
        finite = np.isfinite(now) & np.isfinite(best)
        lost = 1.0 / (now + s) - 1.0 / (best + s)
        lost[finite] = ((best - now) / ((now + s) * (best + s)))[finite]
        gain = 0.5 * (np.log1p(s / now) - np.log1p(s / best))
        if isinstance(self.columns.noise, KnownNoise):
            return gain - 0.5 * self.columns.noise.known_precision * square * lost
        # A perfect fit takes all of E; rounding may take more.
        growth = np.maximum(square * lost / self.energy, -1.0 + np.finfo(float).eps)
        return gain - 0.5 * self.columns.twice_shape * np.log1p(growth)


# A precision this many times what the data say of a coefficient prunes it.
LARGEST_RATIO = 1e14
# One that is this part of it is no prior at all.
SMALLEST_RATIO = 1e-28
# A Cholesky factor of a diagonal wider than this has lost digits that are needed.
WELL_CONDITIONED = 1e-3


def _solved(
    columns: Columns, kept: NDArray[np.intp], precisions: Array
) -> tuple[Array, Array, float]:
    """Sigma (k, k), mu (k,) and log |A'A + diag lambda|."""
    if not len(kept):
        return np.zeros((0, 0)), np.zeros(0), 0.0
    information = columns.gram[np.ix_(kept, kept)]
    information[np.diag_indices_from(information)] += precisions
    try:
        root = np.linalg.cholesky(information)
    except np.linalg.LinAlgError:
        return _solved_without_squaring(columns, kept, precisions)
    diagonal = np.diag(root)
    if diagonal.min() <= WELL_CONDITIONED * diagonal.max():
        return _solved_without_squaring(columns, kept, precisions)
    back = np.linalg.inv(root)
    sigma = back.T @ back
    return sigma, sigma @ columns.product[kept], 2.0 * float(np.log(diagonal).sum())


def _solved_without_squaring(
    columns: Columns, kept: NDArray[np.intp], precisions: Array
) -> tuple[Array, Array, float]:
    """The same for nearly collinear features, from the rows of data and prior."""
    k = len(kept)
    rows = np.zeros((len(columns.matrix) + k, k + 1))
    rows[:k, :k] = np.diag(np.sqrt(precisions))
    rows[k:, :k], rows[k:, k] = columns.matrix[:, kept], columns.target
    _, triangle = np.linalg.qr(rows)
    back = solve_triangular(triangle[:k, :k], np.eye(k), check_finite=False)
    log_determinant = 2.0 * float(np.log(np.abs(np.diag(triangle)[:k])).sum())
    return back @ back.T, back @ triangle[:k, k], log_determinant
