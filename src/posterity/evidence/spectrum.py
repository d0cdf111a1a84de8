"""The data's factor in coordinates where the evidence of a prior precision is a sum.

With X = Q R (the centred columns if there is an intercept) and features divided by the roots of
their shapes, A = R diag(shape)^-1/2 = U diag(d) V'. For the prior w ~ N(m0, sigma^2 / (ratio
shape)), and q = U' (Z - R m0),

    log |Lambda_0| - log |Lambda_n| = sum_i log f_i        f_i = ratio / (ratio + d_i^2)
    s^2                             = S^2 + sum_i f_i q_i^2

so that after one singular value decomposition any ``ratio`` costs O(p), however many rows there
were (MacKay 1992; Bishop 2006, section 3.5). ``ratio`` is alpha / beta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaln

from posterity.aliases import Array
from posterity.evidence.columns import read_rows
from posterity.factor import Factor
from posterity.noise import LOG_2PI, Noise

# Smallest square, relative to the largest, that is found by squares with ten digits: in half of the
# time.
WELL_CONDITIONED = 1e-5


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values and projections of the data, from which the evidence is computed.

    Parameters
    ----------
    squares
        (r,) squared singular values d_i^2; 0 where the data say nothing, or a feature is pinned.
    projections
        (r,) q_i, the target along each singular direction.
    rotation
        (r, r) U: what turns singular directions back into rows of the factor.
    residual
        S^2, the residual sum of squares of least squares.
    count, freed
        n, the sum of weights, and n - d, that less 1 for an intercept.
    log_information
        log of the information on the intercept, 0 without one.

    Notes
    -----
    Law: ``log_evidence`` is that of the posterior with this fixed prior, flat directions having
    density 1. Methods take ``ratio`` as (g,), or as a number, which is a (1,).

    Examples
    --------
    >>> import numpy as np
    >>> data = Factor(1)
    >>> data.append(np.array([[3.0], [4.0]]), np.array([[3.0], [4.0]]))
    >>> spectrum = Spectrum.of(data, intercept=False, mean=np.zeros(1), shape=np.ones(1))
    >>> spectrum.squares, spectrum.projections.round(12) ** 2
    (array([25.]), array([25.]))
    >>> spectrum.n_parameters(25.0)
    array([0.5])
    """

    squares: Array
    projections: Array
    rotation: Array
    residual: float
    count: float
    residual_df: float
    log_information: float

    @classmethod
    def of(cls, data: Factor, *, intercept: int, mean: Array, shape: Array) -> Self:
        """Decompose a factor of rows without a prior, whose first ``intercept`` columns are flat.

        ``mean`` (m,) and ``shape`` (m,) are those of the prior; a shape of infinity pins its
        feature to its mean.
        """
        offset = int(intercept)
        root, target = read_rows(data, data.root[offset:, offset:], mean, intercept=intercept)
        first = np.diag(data.root)[:offset]
        squares, rotation = _decompose(root / np.sqrt(shape))
        return cls(
            squares,
            rotation.T @ target,
            rotation,
            float(data.residual_root[0, 0]) ** 2,
            data.count,
            data.count - int(np.count_nonzero(first)),
            2.0 * float(np.sum(np.log(np.abs(first[first != 0.0])))),
        )

    # ---- parts of the evidence -----------------------------------------------------------------

    def shares(self, ratio: Array | float) -> Array:
        """(g, r) f_i: the share of each direction that is left to the prior, from 0 to 1."""
        column = np.atleast_1d(np.asarray(ratio, dtype=np.float64))[:, None]
        return column / (column + self.squares)

    def residuals(self, shares: Array) -> Array:
        """(g,) residual sums of squares s^2, prior penalty included."""
        return shares @ (self.projections * self.projections) + self.residual

    def log_determinants(self, shares: Array) -> Array:
        """(g,) ``log |Lambda_0| - log |Lambda_n|``."""
        # A product of eight is far from underflow, and one logarithm.
        places = np.arange(0, shares.shape[1], 8)
        products = np.multiply.reduceat(shares, places, axis=1) if len(places) else shares
        with np.errstate(divide="ignore"):
            logs = np.log(products).sum(axis=1)
            underflow = np.isneginf(logs)  # labels that a line separates have shares of 1e-45
            logs[underflow] = np.log(shares[underflow]).sum(axis=1)
        return np.asarray(logs - self.log_information)

    def n_parameters(self, ratio: Array | float) -> Array:
        """(g,) gamma, the effective number of coefficients (Bishop 2006, eq. 3.91)."""
        return (1.0 - self.shares(ratio)).sum(axis=1)

    # ---- the evidence --------------------------------------------------------------------------

    def log_evidence(self, ratio: Array | float, noise: Noise) -> Array:
        """(g,) log p(y) for each ratio; infinite where learned noise is found to be none."""
        return self.compute_log_evidence(self.shares(ratio), noise)

    def compute_log_evidence(self, shares: Array, noise: Noise) -> Array:
        """(g,) the same, for (g, r) shares."""
        determinants = self.log_determinants(shares)
        residual = self.residuals(shares)
        known, first_shape, first_rate = noise.parameters
        if known:
            constant = self.residual_df * (np.log(known) - LOG_2PI)
            return 0.5 * (constant + determinants - known * residual)
        shape, rate = first_shape + 0.5 * self.residual_df, first_rate + 0.5 * residual
        if shape <= 0.0:
            return np.zeros(len(shares))
        value = 0.5 * (determinants - self.residual_df * LOG_2PI) + gammaln(shape)
        with np.errstate(divide="ignore"):
            value -= shape * np.log(rate)
        if first_shape > 0.0 and first_rate > 0.0:
            value += first_shape * np.log(first_rate) - gammaln(first_shape)
        return value

    def slopes(self, ratio: Array | float, noise: Noise) -> tuple[Array, Array]:
        """(g,) first and second derivative of the log evidence in log ratio.

        With g = 1 - f: f' = f g and g' = -f g, so ``(log |Lambda_0| - log |Lambda_n|)'`` = sum g,
        and the rest follows from (s^2)' = sum f g q^2.
        """
        shares = self.shares(ratio)
        # Not 1 - shares, which would have no digits left where the data have little information.
        known = self.squares / (np.atleast_1d(ratio)[:, None] + self.squares)
        both = shares * known
        energy = self.projections * self.projections
        once, twice = both @ energy, (both * (known - shares)) @ energy
        precision, shape, first_rate = noise.parameters
        if precision:
            first, second = precision * once, precision * twice
        else:
            shape += 0.5 * self.residual_df
            rate = first_rate + 0.5 * self.residuals(shares)
            with np.errstate(divide="ignore", invalid="ignore"):
                first = np.nan_to_num(max(shape, 0.0) * once / rate)
                second = np.nan_to_num(max(shape, 0.0) * (twice / rate - 0.5 * (once / rate) ** 2))
        return 0.5 * (known.sum(axis=1) - first), -0.5 * (both.sum(axis=1) + second)

    def noise_precision(self, shares: Array, noise: Noise) -> Array:
        """(g,) noise precision: known, or shape_n / rate_n; NaN before there is one."""
        known, shape, rate = noise.parameters
        shape += 0.5 * self.residual_df
        if known or shape <= 0.0:
            return np.full(len(shares), known or np.nan)
        with np.errstate(divide="ignore"):
            return shape / (rate + 0.5 * self.residuals(shares))

    @property
    def rank(self) -> int:
        """Number of directions that the data say something of, beyond rounding."""
        smallest = (len(self.squares) * np.finfo(float).eps) ** 2
        return int(np.count_nonzero(self.squares > smallest * self.squares.max(initial=0.0)))

    @property
    def signal(self) -> float:
        """Mean over the rows of the prior variance of the regression line, at ratio 1.

        The ratio of this size makes signal and noise equally large before the data are seen; it is
        the number of features where the shapes are their mean squares.
        """
        total = float(self.squares.sum())
        return total / self.count if total > 0.0 else 1.0


def _decompose(matrix: Array) -> tuple[Array, Array]:
    """Squared singular values and U of a matrix that is not tall (U square)."""
    if not matrix.size:
        return np.zeros(len(matrix)), np.eye(len(matrix))
    # NumPy's, as all products are: NumPy and SciPy each have a pool of threads, and small matrices
    # that alternate between them would wait for the other pool's threads to sleep.
    if len(matrix) == matrix.shape[1]:
        squares, left = np.linalg.eigh(matrix @ matrix.T)
        if squares[0] > WELL_CONDITIONED * squares[-1]:
            return squares, left
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return values * values, left
