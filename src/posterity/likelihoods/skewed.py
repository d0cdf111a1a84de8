"""The likelihood of a target with noise that is skewed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import erfcx, log_ndtr, ndtr, owens_t

from posterity.aliases import Array
from posterity.distributions.known_by_cdf import solved_quantile
from posterity.likelihoods.frozen import freeze
from posterity.likelihoods.noises import LOG_2PI, VAGUE_SCALES, AddedNoise, check_scale

# Beyond so many standard deviations of a normal there is nothing.
FURTHEST = 40.0


@dataclass(frozen=True)
class SkewNormal(AddedNoise):
    """Skew normal noise (Azzalini 1985) around the mean eta.

    With z = (y - location) / scale, log p = log(2 / scale) + log phi(z) + log Phi(skew z). The
    location is eta - scale delta sqrt(2 / pi), delta = skew / sqrt(1 + skew^2), so that the mean of
    the noise is 0. The log density is concave.

    Parameters
    ----------
    skew : float
        Finite; positive where large targets lie far out. 0 is :class:`Gaussian`.
    scale : float
        Positive. The variance is scale^2 (1 - 2 delta^2 / pi).

    Raises
    ------
    ValueError
        For another skew or scale.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = SkewNormal(4.0, 0.5).distribution(1.0 + X[:, 0]).rvs(random_state=rng)
    >>> BayesianGeneralizedLinear(SkewNormal(4.0, 0.5)).fit(X, y).coef_.round(1)
    array([1.])
    """

    skew: float = 4.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_scale("scale", self.scale)
        if not np.isfinite(self.skew):
            raise ValueError(f"skew is {self.skew}: it must be finite")

    @property
    def vague_variance(self) -> float:
        """Variance of eta around the target under a vague prior."""
        return (VAGUE_SCALES * self.scale) ** 2

    def log_density(self, y: Array, eta: Array) -> Array:
        """log(2 / scale) + log phi(z) + log Phi(skew z)."""
        z = (y - self._locate(eta)) / self.scale
        normal = -0.5 * (z * z + LOG_2PI) - np.log(0.5 * self.scale)
        return np.asarray(normal + log_ndtr(self.skew * z))

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """With r = phi(u) / Phi(u), u = skew z: (z - skew r) / scale, and

        (1 + skew^2 r (r + u)) / scale^2, where r (r + u) lies between 0 and 1.
        """
        z = (y - self._locate(eta)) / self.scale
        u = self.skew * z
        r = np.sqrt(2.0 / np.pi) / erfcx(-u / np.sqrt(2.0))
        bend = 1.0 + self.skew**2 * np.clip(r * (r + u), 0.0, 1.0)
        return (z - self.skew * r) / self.scale, bend / self.scale**2

    def distribution(self, eta: Array) -> Any:
        """Skew normal of the mean eta."""
        return freeze(skew_normal, self.skew, self._locate(eta), self.scale)

    def mean(self, eta: Array) -> Array:
        """It is eta."""
        return np.asarray(eta)

    def _locate(self, eta: Array) -> Array:
        delta = self.skew / np.hypot(1.0, self.skew)
        return np.asarray(eta) - self.scale * delta * np.sqrt(2.0 / np.pi)


class OwensSkewNormal(type(stats.skewnorm)):  # type: ignore[misc]
    """SciPy's by Owen's function: its own integrates tails point by point, as only logs need."""

    def _cdf(self, x: Array, a: Array) -> Array:
        return np.clip(ndtr(x) - 2.0 * owens_t(x, a), 0.0, 1.0)

    def _ppf(self, q: Array, a: Array) -> Array:
        q, a = np.broadcast_arrays(q, a)
        most = np.full(q.shape, FURTHEST)
        return solved_quantile(lambda x: self._cdf(x, a), q, -most, most)

    def _logcdf(self, x: Array, a: Array) -> Array:
        return np.asarray(np.log(super()._cdf(x, a)))

    def _logsf(self, x: Array, a: Array) -> Array:
        return self._logcdf(-x, -a)


skew_normal = OwensSkewNormal(name="skew_normal")
