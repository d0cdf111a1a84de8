"""The likelihood of positive amounts whose variance grows with the cube of the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from posterity.aliases import Array
from posterity.distributions.known_by_cdf import solved_quantile
from posterity.likelihoods.amounts import PowerOfMean
from posterity.likelihoods.positive import (
    LARGEST_LOG,
    as_scale,
    check_positive,
)

# Below this an inverse Gaussian amount is 0; and between which its log is looked for.
LEAST_AMOUNT, LOWEST_LOG = 1e-300, -690.0


@dataclass(frozen=True)
class InverseGaussian(PowerOfMean):
    """A positive amount of the mean exp(eta) and the variance dispersion exp(3 eta).

    More skewed than :class:`Gamma`: the time in which a drifting walk first reaches a place.

    Parameters
    ----------
    dispersion : float, optional
        Positive, in 1 / units of the target. None: it is learned; log(dispersion) is
        Normal(0, 3^2) before data.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = rng.wald(np.exp(1.0 + 0.5 * X[:, 0]), 4.0)
    >>> model = BayesianGeneralizedLinear(InverseGaussian()).fit(X, y)
    >>> model.coef_.round(1), model.likelihood_parameters_["dispersion"].mean().round(1)
    (array([0.5]), np.float64(0.2))
    """

    flat_far_out: ClassVar[bool] = True

    dispersion: float | None = None

    @property
    def power(self) -> float:
        """It is 3."""
        return 3.0

    def log_base_density(self, y: Array) -> Array:
        """-(log(2 pi dispersion y^3) + 1 / (dispersion y)) / 2."""
        return -0.5 * (np.log(2.0 * np.pi * self.known) + 3.0 * np.log(y) + 1.0 / (self.known * y))

    def distribution(self, eta: Array) -> Any:
        """Inverse Gaussian of this dispersion and the mean exp(eta)."""
        return InverseGaussians(as_scale(eta), 1.0 / self.known)

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are positive and finite."""
        check_positive(y, "InverseGaussian")


class InverseGaussians:
    """Inverse Gaussian distributions of a mean and a rate, 1 over the dispersion, as SciPy's.

    SciPy's own quantiles end the process where the mean is very large.
    """

    def __init__(self, mean: Array, rate: Any) -> None:
        self.centre, self.rate = np.broadcast_arrays(mean, rate)

    def mean(self) -> Array:
        """The mean."""
        return self.centre

    def var(self) -> Array:
        """The variance: mean^3 / rate."""
        return np.asarray(self.centre**3 / self.rate)

    def logpdf(self, y: ArrayLike) -> Array:
        """Log density."""
        y = np.asarray(y, dtype=np.float64)
        off = np.square(y / self.centre - 1.0) * self.rate / y
        return np.asarray(0.5 * (np.log(self.rate / (2.0 * np.pi)) - 3.0 * np.log(y) - off))

    def logcdf(self, y: ArrayLike) -> Array:
        """Log probability of at most y (Shuster 1968)."""
        return np.logaddexp(*self._parts(y, 1.0))

    def logsf(self, y: ArrayLike) -> Array:
        """Log probability of more than y."""
        first, second = self._parts(y, -1.0)
        return np.asarray(first + np.log(-np.expm1(np.minimum(second - first, 0.0))))

    def cdf(self, y: ArrayLike) -> Array:
        """Probability of at most y."""
        return np.minimum(np.exp(self.logcdf(y)), 1.0)

    def ppf(self, q: ArrayLike) -> Array:
        """Quantiles, by bisection of their logs."""
        q = np.broadcast_to(q, np.broadcast_shapes(np.shape(q), self.centre.shape))
        ends = np.full(q.shape, LOWEST_LOG), np.full(q.shape, LARGEST_LOG)
        log = solved_quantile(lambda at: self.cdf(np.exp(at)), q, *ends)
        return np.where(q == 0.0, 0.0, np.where(q == 1.0, np.inf, np.exp(log)))

    def rvs(self, size: Any = None, random_state: Any = None) -> Array:
        """Draws."""
        return np.asarray(np.random.default_rng(random_state).wald(self.centre, self.rate, size))

    def _parts(self, y: ArrayLike, sign: float) -> tuple[Array, Array]:
        """Logs of the two normal probabilities, whose sum or difference is that of a side."""
        y = np.maximum(y, LEAST_AMOUNT)
        root, share = np.sqrt(self.rate / y), y / self.centre
        first = log_ndtr(sign * root * (share - 1.0))
        return first, 2.0 * self.rate / self.centre + log_ndtr(-root * (share + 1.0))
