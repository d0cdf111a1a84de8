"""Powers of gamma variables, by the moments of their logs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from scipy.special import digamma, poch


class GammaPower(stats.rv_continuous):
    """A positive number whose log has mean 0, standard deviation ``sd`` and some skewness.

    Its power ``skewed`` / ``sd`` is a gamma variable (Stacy 1962): the log's skewness is nearly
    -``skewed``, which is not 0 and not beyond 1/2.

    Examples
    --------
    >>> gamma_power(0.3, 0.3, scale=2.0).ppf([0.05, 0.95]).round(2)
    array([1.19, 3.19])
    >>> float(gamma_power(3.0, -0.5).mean())
    inf
    """

    def _argcheck(self, sd: Any, skewed: Any) -> Any:
        return (sd > 0.0) & (skewed != 0.0)

    def _pdf(self, x: Any, sd: Any, skewed: Any) -> Any:
        return self._known(sd, skewed).pdf(x)

    def _cdf(self, x: Any, sd: Any, skewed: Any) -> Any:
        return self._known(sd, skewed).cdf(x)

    def _sf(self, x: Any, sd: Any, skewed: Any) -> Any:
        return self._known(sd, skewed).sf(x)

    def _ppf(self, q: Any, sd: Any, skewed: Any) -> Any:
        return self._known(sd, skewed).ppf(q)

    def _isf(self, q: Any, sd: Any, skewed: Any) -> Any:
        return self._known(sd, skewed).isf(q)

    def _munp(self, n: int, sd: Any, skewed: Any) -> Any:
        shape, exponent, scale = self._split(sd, skewed)
        exists = shape + n / exponent > 0.0
        return np.where(exists, scale**n * poch(shape, n / exponent), np.inf)

    def _known(self, sd: Any, skewed: Any) -> Any:
        shape, exponent, scale = self._split(sd, skewed)
        return stats.gengamma(shape, exponent, scale=scale)

    def _split(self, sd: Any, skewed: Any) -> tuple[Any, Any, Any]:
        # The log of a gamma variable of this shape has the variance skewed^2.
        shape, exponent = 0.5 + np.square(1.0 / skewed), skewed / sd
        return shape, exponent, np.exp(-digamma(shape) / exponent)


gamma_power = GammaPower(a=0.0, name="gamma_power")
